package booking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/internal/failpoint"
	"seatfence/seats"
)

// The statuses of a hold.
const (
	HoldOpen     = "open"
	HoldBooked   = "booked"
	HoldReleased = "released"
	HoldExpired  = "expired"
)

// Hold is seats set aside for one buyer until ExpiresAt. It can be extended, never past EndsAt. Its prices are promised.
type Hold struct {
	ID             HoldID        `json:"id"`
	Event          seats.EventID `json:"event"`
	Status         string        `json:"status"`
	Checkout       bool          `json:"checkout"`
	Seats          []HeldSeat    `json:"seats"`
	Total          int64         `json:"total"`
	Currency       string        `json:"currency"`
	Timezone       string        `json:"timezone"`
	AcquiredAt     time.Time     `json:"acquired_at"`
	ExpiresAt      time.Time     `json:"expires_at"`
	EndsAt         time.Time     `json:"ends_at"`
	ServerTime     time.Time     `json:"server_time"`
	ExtensionsLeft int           `json:"extensions_left"`
	Booking        *BookingID    `json:"booking,omitempty"`
}

// HeldSeat is a seat of a hold. Owned is false once somebody else has it, or nobody.
type HeldSeat struct {
	seats.Taken
	Owned bool `json:"owned"`
}

// AreaPlaces asks for a number of places of a general admission area, as a ticket type or "" for the event's first.
type AreaPlaces struct {
	Area     int32
	Quantity int
	Type     string
}

// HoldRequest asks for named seats or for places of an area. PageSession names the live page that it comes from.
type HoldRequest struct {
	Event       seats.EventID
	Seats       []seats.Want
	Places      *AreaPlaces
	PageSession *string
}

// errLost says that a write got fewer seats than it asked for. It never leaves the package: refusal says which and why.
var errLost = errors.New("some of the seats belong to somebody else")

// Hold sets seats aside, all or none.
func (s *Service) Hold(ctx context.Context, caller Caller, key Idempotency, req HoldRequest) (Hold, bool, error) {
	if err := s.checkSelection(req.Seats, req.Places); err != nil {
		return Hold{}, false, err
	}
	return once(ctx, s, req.Event, caller, key, func(ctx context.Context) (hold Hold, err error) {
		err = s.choosing(ctx, func(tx pgx.Tx, patience seats.Patience) error {
			hold, err = s.hold(ctx, tx, caller, req, patience)
			if err != nil {
				return err
			}
			return remember(ctx, tx, req.Event, caller, key, hold)
		})
		return hold, s.refusal(ctx, err, caller, req.Event, req.Seats)
	}, recalled[Hold])
}

func (s *Service) hold(ctx context.Context, tx pgx.Tx, caller Caller, req HoldRequest, patience seats.Patience) (Hold, error) {
	count := len(req.Seats)
	if req.Places != nil {
		count = req.Places.Quantity
	}
	if err := lockCap(ctx, tx, caller, req.Event); err != nil {
		return Hold{}, err
	}
	event, err := lockEvent(ctx, tx, caller, req.Event, newSale)
	if err != nil {
		return Hold{}, err
	}
	if err := s.checkCap(ctx, tx, caller, req.Event, count); err != nil {
		return Hold{}, err
	}
	id := uuid.Must(uuid.NewV7())
	made, err := queries.HoldInsert(ctx, tx, db.HoldInsertParams{
		EventID: int64(req.Event), ID: id, Buyer: caller.ID, PageSession: req.PageSession, Ttl: s.limits.HoldTTL, Longest: s.limits.HoldLongest,
	})
	if err != nil {
		return Hold{}, err
	}
	wants, err := s.choose(ctx, tx, req.Event, caller.reach(event.Channels), req.Seats, req.Places, patience)
	if err != nil {
		return Hold{}, err
	}
	if err := failpoint.Hit(ctx, failpoint.BeforeWrite); err != nil {
		return Hold{}, err
	}
	taken, err := seats.HoldFor(ctx, tx, req.Event, id, caller.ID, made.ExpiresAt, caller.reach(event.Channels), wants, req.Places != nil)
	if err != nil {
		return Hold{}, err
	}
	if len(taken) < len(wants) {
		return Hold{}, errLost
	}
	hold := Hold{
		ID: HoldID{req.Event, id}, Event: req.Event, Status: HoldOpen, Currency: event.Currency, Timezone: event.Timezone,
		AcquiredAt: made.AcquiredAt.UTC(), ExpiresAt: made.ExpiresAt.UTC(), EndsAt: made.EndsAt.UTC(), ServerTime: made.AcquiredAt.UTC(),
		ExtensionsLeft: s.limits.Extensions,
	}
	for _, t := range taken {
		hold.add(HeldSeat{t, true})
	}
	return hold, nil
}

func (h *Hold) add(seat HeldSeat) {
	h.Seats = append(h.Seats, seat)
	h.Total += seat.Price
}

// GetHold returns a hold of the caller, also after it has run out: then it says which of its seats are gone.
func (s *Service) GetHold(ctx context.Context, caller Caller, id HoldID) (hold Hold, err error) {
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		hold, err = s.readHold(ctx, tx, caller, id)
		return err
	})
	return hold, answer(err)
}

func (s *Service) readHold(ctx context.Context, tx pgx.Tx, caller Caller, id HoldID) (Hold, error) {
	row, err := queries.HoldGet(ctx, tx, db.HoldGetParams{EventID: int64(id.Event), ID: id.Key})
	if db.NotFound(err) || err == nil && !caller.owns(id.Event, row.Hold.Buyer, row.OrganizerID) {
		return Hold{}, ErrNotFound
	}
	if err != nil {
		return Hold{}, fmt.Errorf("read hold: %w", err)
	}
	hold := Hold{
		ID: id, Event: id.Event, Status: row.Hold.Status, Checkout: row.Hold.CheckoutAt != nil, Currency: row.Currency, Timezone: row.Timezone,
		AcquiredAt: row.Hold.AcquiredAt.UTC(), ExpiresAt: row.Hold.ExpiresAt.UTC(), EndsAt: row.Hold.EndsAt.UTC(), ServerTime: row.ServerTime.UTC(),
		ExtensionsLeft: max(0, s.limits.Extensions-int(row.Hold.Extensions)),
	}
	if hold.Status == HoldOpen && row.Over {
		hold.Status = HoldExpired
	}
	if row.Hold.BookingID != nil {
		hold.Booking = &BookingID{id.Event, *row.Hold.BookingID}
	}
	kept, err := heldSeats(ctx, tx, id)
	if err != nil {
		return Hold{}, err
	}
	for _, seat := range kept {
		hold.add(seat)
	}
	return hold, nil
}

func heldSeats(ctx context.Context, tx pgx.Tx, id HoldID) ([]HeldSeat, error) {
	rows, err := queries.HoldSeats(ctx, tx, db.HoldSeatsParams{EventID: int64(id.Event), HoldID: id.Key})
	if err != nil {
		return nil, fmt.Errorf("read seats of hold: %w", err)
	}
	list := make([]HeldSeat, len(rows))
	for i, r := range rows {
		list[i] = HeldSeat{
			Taken: seats.Taken{ID: r.SeatID, Place: seats.Place{Section: r.Section, Row: r.RowLabel, Number: r.Number}, Type: r.Type, Price: r.Price, Fence: r.Fence},
			Owned: r.Owned,
		}
	}
	return list, nil
}

// lockHold takes the row of the caller's own open hold and returns its seats. A hold that has run out is ErrHoldExpired, one that was
// booked or released ErrHoldClosed.
func lockHold(ctx context.Context, tx pgx.Tx, caller Caller, id HoldID) (db.HoldLockRow, []HeldSeat, error) {
	row, err := queries.HoldLock(ctx, tx, db.HoldLockParams{EventID: int64(id.Event), ID: id.Key})
	switch {
	case db.NotFound(err), err == nil && row.Buyer != caller.ID:
		return row, nil, ErrNotFound
	case err != nil:
		return row, nil, fmt.Errorf("lock hold: %w", err)
	case row.Status == HoldExpired, row.Status == HoldOpen && row.Over:
		return row, nil, ErrHoldExpired
	case row.Status != HoldOpen:
		return row, nil, ErrHoldClosed
	}
	kept, err := heldSeats(ctx, tx, id)
	return row, kept, err
}

// Checkout marks the hold as being paid for and returns it. Asking twice changes nothing.
func (s *Service) Checkout(ctx context.Context, caller Caller, id HoldID) (hold Hold, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		event, err := lockEvent(ctx, tx, caller, id.Event, heldSale)
		if err != nil {
			return err
		}
		_, kept, err := lockHold(ctx, tx, caller, id)
		if err != nil {
			return err
		}
		if event.Payment != PaymentNone && caller.Kind == Buyer && total(kept) > 0 {
			return ErrPaymentRequired
		}
		n, err := queries.HoldSetCheckout(ctx, tx, db.HoldSetCheckoutParams{EventID: int64(id.Event), ID: id.Key, OnCheckout: true})
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrHoldExpired
		}
		hold, err = s.readHold(ctx, tx, caller, id)
		return err
	})
	return hold, answer(err)
}

func total(list []HeldSeat) (sum int64) {
	for _, seat := range list {
		sum += seat.Price
	}
	return sum
}

// Release gives the seats of a hold back. A hold that has ended already stays as it is.
func (s *Service) Release(ctx context.Context, caller Caller, id HoldID) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		row, err := queries.HoldLock(ctx, tx, db.HoldLockParams{EventID: int64(id.Event), ID: id.Key})
		switch {
		case db.NotFound(err), err == nil && row.Buyer != caller.ID:
			return ErrNotFound
		case err != nil:
			return err
		case row.Status == HoldBooked:
			return ErrHoldClosed
		case row.Status != HoldOpen:
			return nil
		}
		return endHold(ctx, tx, id, HoldReleased, &caller.ID)
	})
	return answer(err)
}

// endHold closes a hold whose row is locked and frees the seats it still owns. status is also the action in the ledger.
func endHold(ctx context.Context, tx pgx.Tx, id HoldID, status string, actor *uuid.UUID) error {
	kept, err := heldSeats(ctx, tx, id)
	if err != nil {
		return err
	}
	taken := make([]seats.Taken, len(kept))
	ids := make([]seats.ID, len(kept))
	for i, seat := range kept {
		taken[i], ids[i] = seat.Taken, seat.ID
	}
	if _, err := seats.Lock(ctx, tx, id.Event, ids); err != nil {
		return fmt.Errorf("lock seats: %w", err)
	}
	if _, err := seats.Release(ctx, tx, id.Event, id.Key, status, actor, taken); err != nil {
		return fmt.Errorf("free seats: %w", err)
	}
	_, err = queries.HoldClose(ctx, tx, db.HoldCloseParams{EventID: int64(id.Event), ID: id.Key, Status: status})
	return err
}
