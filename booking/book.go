package booking

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/internal/failpoint"
	"seatfence/seats"
)

// BookRequest books a hold, or named seats or places of an area directly. ExpectedTotal, in minor units, refuses the booking with
// ErrPriceChanged if it would cost something else. Reference is for sellers: a buyer cannot name one.
type BookRequest struct {
	Hold          *HoldID
	Event         seats.EventID
	Seats         []seats.Want
	Places        *AreaPlaces
	Name          string
	Email         string
	Reference     *string
	ExpectedTotal *int64
}

// Book sells what is asked for, all or nothing. Booking a hold twice gives the same booking, unless that has been cancelled since. Nothing
// is confirmed to anybody before the commit: the mail is a row of the outbox.
func (s *Service) Book(ctx context.Context, caller Caller, key Idempotency, req BookRequest) (Booking, bool, error) {
	if req.Reference != nil && caller.Kind == Buyer {
		return Booking{}, false, ErrForbidden
	}
	event, run := req.Event, s.bookSeats
	if req.Hold != nil {
		event, run = req.Hold.Event, s.confirm
	} else if err := s.checkSelection(req.Seats, req.Places); err != nil {
		return Booking{}, false, err
	}
	if caller.Events != nil && !slices.Contains(caller.Events, event) { // the lone sale's statement knows the organizer alone
		return Booking{}, false, ErrNotFound
	}
	booking, replayed, err := once(ctx, s, event, caller, key, func(ctx context.Context) (Booking, error) {
		return run(ctx, caller, key, req)
	}, func(ctx context.Context, stored []byte) (Booking, error) {
		return s.bookingAsMade(ctx, event, stored)
	})
	if err == nil && !replayed {
		s.committed()
	}
	return booking, replayed, err
}

// newSaleOf is everything of a sale that does not come from the database.
func newSaleOf(caller Caller, key Idempotency, event seats.EventID, req BookRequest) seats.Sale {
	sale := seats.Sale{
		Event: event, Trusted: caller.Kind != Buyer, AnyChannel: caller.Kind == Organizer, Booking: uuid.Must(uuid.NewV7()), Number: newNumber(), Buyer: caller.ID,
		Places: req.Places != nil, Name: req.Name, Email: req.Email, Reference: req.Reference, Key: key.Key, Fingerprint: key.Fingerprint,
	}
	if caller.Kind != Buyer {
		sale.Organizer = &caller.Organizer
	}
	return sale
}

// newNumber is a booking's number for people: 40 random bits, such as K7M2-QX4P. The index refuses the rare second one in an event.
func newNumber() string {
	raw := make([]byte, 5)
	rand.Read(raw)
	text := strings.ToUpper(seats.IDEncoding.EncodeToString(raw))
	return text[:4] + "-" + text[4:]
}

// newCodes are the codes of n tickets, 130 random bits each.
func newCodes(n int) []string {
	codes := make([]string, n)
	for i := range codes {
		codes[i] = rand.Text()
	}
	return codes
}

// bookSeats sells without a hold. A single seat is one statement and its own transaction.
func (s *Service) bookSeats(ctx context.Context, caller Caller, key Idempotency, req BookRequest) (Booking, error) {
	sale := newSaleOf(caller, key, req.Event, req)
	var sold seats.Sold
	var err error
	if len(req.Seats) == 1 && req.ExpectedTotal == nil {
		sold, err = s.sellOne(ctx, caller, sale, req.Seats)
	} else if req.Places != nil && req.Places.Quantity == 1 && req.ExpectedTotal == nil {
		sold, err = s.sellPlace(ctx, sale, *req.Places)
	} else {
		err = errLonger
	}
	if errors.Is(err, errLonger) {
		err = s.judging(ctx, caller, req.Event, func(lastResort bool) error {
			sold, err = s.sellChosen(ctx, caller, &sale, req, lastResort)
			return err
		})
	}
	if errors.Is(err, errLost) {
		err = cmp.Or(s.placesSoldAs(ctx, req.Event, req.Places), err)
	}
	return bookingOf(sale, sold), s.refusal(ctx, err, caller, req.Event, req.Seats)
}

// errLonger says that one statement cannot tell, and that a transaction has to look. It never leaves the package.
var errLonger = errors.New("the sale takes a transaction")

// sellChosen sells several seats, or some whose choice is judged, or places, in a transaction.
func (s *Service) sellChosen(ctx context.Context, caller Caller, sale *seats.Sale, req BookRequest, lastResort bool) (sold seats.Sold, err error) {
	err = s.choosing(ctx, func(tx pgx.Tx, patience seats.Patience) error {
		event, err := lockEvent(ctx, tx, caller, req.Event, newSale)
		if err != nil {
			return err
		}
		if sale.Wants, _, err = s.choose(ctx, tx, caller, event, selection{req.Seats, req.Places, lastResort}, patience); err != nil {
			return err
		}
		if err := checkOrder(event, len(sale.Wants)); err != nil {
			return err
		}
		sold, err = sell(ctx, tx, *sale)
		switch {
		case err != nil:
			return err
		case req.ExpectedTotal != nil && *req.ExpectedTotal != sold.Total:
			return ErrPriceChanged
		case !mayBuy(caller, event.Payment, sold.Total):
			return ErrPaymentRequired
		}
		return nil
	})
	return sold, err
}

// mayBuy reports whether the caller can confirm: there is no payment provider, so buyers can confirm only what needs no payment.
func mayBuy(caller Caller, payment string, total int64) bool {
	return caller.Kind != Buyer || payment == PaymentNone || total == 0
}

// sellOne sells one seat in one statement. If it sold none, reading the event says whether that was why.
func (s *Service) sellOne(ctx context.Context, caller Caller, sale seats.Sale, wants []seats.Want) (seats.Sold, error) {
	sale.Wants = wants
	if err := failpoint.Hit(ctx, failpoint.BeforeWrite); err != nil {
		return seats.Sold{}, err
	}
	sale.Codes, sale.Judged = newCodes(1), caller.Kind == Organizer
	sold, err := s.sellAlone(ctx, sale)
	if err != nil {
		return seats.Sold{}, err
	}
	if len(sold.Seats) == 1 {
		return sold, failpoint.Hit(ctx, failpoint.AfterCommit)
	}
	event, err := s.EventHead(ctx, caller, sale.Event)
	if err != nil {
		return seats.Sold{}, err
	}
	now := event.ServerTime
	if err := onSale(event.Status, !event.SaleStartsAt.After(now), !event.SaleEndsAt.After(now), newSale); err != nil {
		return seats.Sold{}, err
	}
	if (event.OrphanRule || event.WholeTables) && !sale.Judged {
		return seats.Sold{}, errLonger
	}
	if err := s.affordable(ctx, caller, event, wants[0]); err != nil {
		return seats.Sold{}, err
	}
	return seats.Sold{}, errLost
}

// sellPlace sells one place of an area in one statement: the first that is free from where this node found some last. If there is none, a
// transaction looks through the whole area.
func (s *Service) sellPlace(ctx context.Context, sale seats.Sale, places AreaPlaces) (seats.Sold, error) {
	cursor := s.cursor(sale.Event, places.Area)
	if err := failpoint.Hit(ctx, failpoint.BeforeWrite); err != nil {
		return seats.Sold{}, err
	}
	sale.Area, sale.From, sale.Quantity, sale.AreaType = &places.Area, cursor.ahead(1), 1, places.Type
	sale.Codes, sale.Judged = newCodes(1), true // nobody is left alone on a floor
	sold, err := s.sellAlone(ctx, sale)
	if err != nil {
		return seats.Sold{}, err
	}
	if len(sold.Seats) == 0 {
		cursor.reset()
		return seats.Sold{}, errLonger
	}
	s.found(sale.Event, places.Area, sold.Seats[0].ID)
	return sold, failpoint.Hit(ctx, failpoint.AfterCommit)
}

// sellAlone runs the sale as a transaction of its own, on a connection that it gives back before anything else is asked of the pool.
func (s *Service) sellAlone(ctx context.Context, sale seats.Sale) (seats.Sold, error) {
	conn, err := db.Acquire(ctx, s.pool)
	if err != nil {
		return seats.Sold{}, err
	}
	defer conn.Release()
	return seats.Sell(ctx, conn, sale)
}

// sell runs the sale inside a transaction that holds the rows; errLost if it did not get all.
func sell(ctx context.Context, tx pgx.Tx, sale seats.Sale) (seats.Sold, error) {
	if err := failpoint.Hit(ctx, failpoint.BeforeWrite); err != nil {
		return seats.Sold{}, err
	}
	sale.Trusted, sale.Judged = true, true // by the transaction, which checks the payment when it knows the total
	sale.Codes = newCodes(len(sale.Wants))
	sold, err := seats.Sell(ctx, tx, sale)
	if err == nil && len(sold.Seats) < len(sale.Wants) {
		return seats.Sold{}, errLost
	}
	return sold, err
}

// confirm sells what a hold owns, at the prices it promised. The hold must be live: one that has run out gives nothing, even if all of
// its seats are still free.
func (s *Service) confirm(ctx context.Context, caller Caller, key Idempotency, req BookRequest) (Booking, error) {
	id := *req.Hold
	sale := newSaleOf(caller, key, id.Event, req)
	sale.Hold = &id.Key
	var booking Booking
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		event, err := lockVisible(ctx, tx, caller, id.Event)
		if err != nil {
			return err
		}
		row, kept, err := lockHold(ctx, tx, caller, id)
		if row.BookingID != nil && errors.Is(err, ErrHoldClosed) {
			if booking, err = readBooking(ctx, tx, BookingID{id.Event, *row.BookingID}); err != nil {
				return err
			}
			if booking.Status == BookingCancelled {
				return ErrBookingCancelled
			}
			return remember(ctx, tx, id.Event, caller, key, madeBooking{*row.BookingID})
		}
		if err := cmp.Or(err, onSale(event.Status, event.SaleStarted, event.SaleEnded, heldSale)); err != nil {
			return err
		}
		if req.ExpectedTotal != nil && *req.ExpectedTotal != total(kept) {
			return ErrPriceChanged
		}
		if !mayBuy(caller, event.Payment, total(kept)) {
			return ErrPaymentRequired
		}
		for _, seat := range kept {
			sale.Wants = append(sale.Wants, seats.Want{ID: seat.ID, Fence: seat.Fence, Type: seat.Type})
			sale.Prices = append(sale.Prices, seat.Price)
		}
		if _, err := seats.Lock(ctx, tx, id.Event, seats.IDs(sale.Wants)); err != nil {
			return fmt.Errorf("lock seats: %w", err)
		}
		sold, err := sell(ctx, tx, sale)
		if err != nil {
			return err
		}
		n, err := queries.HoldBook(ctx, tx, db.HoldBookParams{EventID: int64(id.Event), ID: id.Key, BookingID: &sale.Booking})
		if err == nil && n == 0 {
			err = ErrHoldExpired
		}
		booking = bookingOf(sale, sold)
		return err
	})
	return booking, s.refusal(ctx, err, caller, id.Event, sale.Wants)
}

func bookingOf(sale seats.Sale, sold seats.Sold) Booking {
	return Booking{
		ID: BookingID{sale.Event, sale.Booking}, Number: sale.Number, Event: sale.Event, Status: BookingConfirmed, Seats: sold.Seats,
		Total: sold.Total, Currency: sold.Currency, Timezone: sold.Timezone, Name: sale.Name, Email: sale.Email, Reference: sale.Reference,
		CreatedAt: sold.CreatedAt,
	}
}
