package booking

import (
	"cmp"
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
	Together       *bool         `json:"together,omitempty"`    // of the answer to a wish for the best seats
	LastResort     bool          `json:"last_resort,omitempty"` // of the answer: a seat is left alone, as nothing better was free
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

// HoldRequest asks for named seats, for places of an area, or for the best seats that are free. Page is the
// live page that it comes from.
type HoldRequest struct {
	Event  seats.EventID
	Seats  []seats.Want
	Places *AreaPlaces
	Best   *BestWish
	Page   *Page
}

// count is how many seats the request asks for.
func (r HoldRequest) count() int {
	switch {
	case r.Places != nil:
		return r.Places.Quantity
	case r.Best != nil:
		return r.Best.size()
	}
	return len(r.Seats)
}

// errLost says that a write got fewer seats than it asked for. It never leaves the package: refusal says which and why.
var errLost = errors.New("some of the seats belong to somebody else")

// Hold sets seats aside, all or none.
func (s *Service) Hold(ctx context.Context, caller Caller, key Idempotency, req HoldRequest) (Hold, bool, error) {
	run := s.holdNamed
	if req.Best != nil {
		if err := s.checkBest(*req.Best); err != nil {
			return Hold{}, false, err
		}
		run = s.holdBest
	} else if err := s.checkSelection(req.Seats, req.Places); err != nil {
		return Hold{}, false, err
	}
	return once(ctx, s, req.Event, caller, key, func(ctx context.Context) (Hold, error) {
		return run(ctx, caller, key, req)
	}, recalled[Hold])
}

// holdNamed holds the seats that were named, or places of an area.
func (s *Service) holdNamed(ctx context.Context, caller Caller, key Idempotency, req HoldRequest) (hold Hold, err error) {
	err = s.judging(ctx, caller, req.Event, func(lastResort bool) error {
		chosen := selection{req.Seats, req.Places, lastResort}
		return s.choosing(ctx, func(tx pgx.Tx, patience seats.Patience) error {
			opened, err := s.openHold(ctx, tx, caller, req)
			if err != nil {
				return err
			}
			wants, alone, err := s.choose(ctx, tx, caller, opened.event, chosen, patience)
			if err != nil {
				return err
			}
			if hold, err = opened.take(ctx, tx, caller, wants, req.Places != nil); err != nil {
				return err
			}
			hold.LastResort = alone
			return remember(ctx, tx, req.Event, caller, key, hold)
		})
	})
	if errors.Is(err, errLost) {
		err = cmp.Or(s.placesSoldAs(ctx, req.Event, req.Places), err)
	}
	return hold, s.refusal(ctx, err, caller, req.Event, req.Seats)
}

// openedHold is a hold that has no seats yet, in a transaction that has its caller's cap and its event locked.
type openedHold struct {
	event db.EventLockForSaleRow
	hold  Hold
}

// openHold begins a hold of as many seats as the request asks for: cap, event and the hold's own row, in the order of all locks.
func (s *Service) openHold(ctx context.Context, tx pgx.Tx, caller Caller, req HoldRequest) (o openedHold, err error) {
	if err := lockCap(ctx, tx, caller, req.Event); err != nil {
		return o, err
	}
	if o.event, err = lockEvent(ctx, tx, caller, req.Event, newSale); err != nil {
		return o, err
	}
	if err := checkOrder(o.event, req.count()); err != nil {
		return o, err
	}
	if err := s.checkCap(ctx, tx, caller, req.Event, req.count()); err != nil {
		return o, err
	}
	id := uuid.Must(uuid.NewV7())
	made, err := queries.HoldInsert(ctx, tx, db.HoldInsertParams{
		EventID: int64(req.Event), ID: id, Buyer: caller.ID, Ttl: s.limits.HoldTTL, Longest: s.limits.HoldLongest,
	})
	if err != nil {
		return o, fmt.Errorf("insert hold: %w", err)
	}
	if p := req.Page; p != nil {
		err := queries.HoldPageInsert(ctx, tx, db.HoldPageInsertParams{EventID: int64(req.Event), HoldID: id, Session: p.Session, Gen: p.Gen, Node: p.Node})
		if err != nil {
			return o, fmt.Errorf("insert page of hold: %w", err)
		}
	}
	o.hold = Hold{
		ID: HoldID{req.Event, id}, Event: req.Event, Status: HoldOpen, Currency: o.event.Currency, Timezone: o.event.Timezone,
		AcquiredAt: made.AcquiredAt.UTC(), ExpiresAt: made.ExpiresAt.UTC(), EndsAt: made.EndsAt.UTC(), ServerTime: made.AcquiredAt.UTC(),
		ExtensionsLeft: s.limits.Extensions,
	}
	return o, nil
}

// take gives the hold its seats, whose rows are locked if there are several: all, or errLost. places says that they were picked in an area.
func (o openedHold) take(ctx context.Context, tx pgx.Tx, caller Caller, wants []seats.Want, places bool) (Hold, error) {
	if err := failpoint.Hit(ctx, failpoint.BeforeWrite); err != nil {
		return Hold{}, err
	}
	hold := o.hold
	taken, err := seats.HoldFor(ctx, tx, hold.Event, hold.ID.Key, caller.ID, hold.ExpiresAt, caller.reach(o.event.Channels), wants, places)
	if err != nil {
		return Hold{}, err
	}
	if len(taken) < len(wants) {
		return Hold{}, errLost
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
