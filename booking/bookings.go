package booking

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/internal/failpoint"
	"seatfence/seats"
)

// The statuses of a booking.
const (
	BookingConfirmed = "confirmed"
	BookingCancelled = "cancelled"
)

// Booking is a sale. Number is for people; Reference is the seller's own. Total and prices are minor units of Currency.
type Booking struct {
	ID          BookingID
	Number      string
	Event       seats.EventID
	Status      string
	Seats       []seats.Ticket
	Total       int64
	Currency    string
	Timezone    string
	Name        string
	Email       string
	Reference   *string
	CreatedAt   time.Time
	CancelledAt *time.Time
}

// BookRequest books a hold, or named seats or places of an area directly. ExpectedTotal, in minor units, refuses a direct booking with
// ErrPriceChanged if it would cost something else.
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

// Book sells what is asked for, all or nothing. Booking a hold twice gives the same booking. Nothing is confirmed to anybody before the
// commit: the mail is a row of the outbox.
func (s *Service) Book(ctx context.Context, caller Caller, key Idempotency, req BookRequest) (Booking, bool, error) {
	event, run := req.Event, s.bookSeats
	if req.Hold != nil {
		event, run = req.Hold.Event, s.confirm
	} else if err := s.checkSelection(req.Seats, req.Places); err != nil {
		return Booking{}, false, err
	}
	booking, replayed, err := once(ctx, s, event, caller, key, func(ctx context.Context) (Booking, error) {
		return run(ctx, caller, key, req)
	}, func(ctx context.Context, stored []byte) (Booking, error) {
		return s.bookingAsMade(ctx, event, stored)
	})
	switch {
	case errors.Is(err, errBooked):
		return booking, false, nil
	case err == nil && !replayed:
		s.committed()
	}
	return booking, replayed, err
}

// errBooked says that the hold has become a booking before. It makes Book look whether that was under the same key, which then replays
// or refuses another request; it never leaves the package.
var errBooked = errors.New("the hold is booked already")

// newSaleOf is everything of a sale that does not come from the database.
func newSaleOf(caller Caller, key Idempotency, event seats.EventID, req BookRequest) seats.Sale {
	sale := seats.Sale{
		Event: event, Trusted: caller.Kind != Buyer, Booking: uuid.Must(uuid.NewV7()), Number: newNumber(), Buyer: caller.ID,
		Name: req.Name, Email: req.Email, Reference: req.Reference, Key: key.Key, Fingerprint: key.Fingerprint,
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
	} else {
		err = s.choosing(ctx, func(tx pgx.Tx, patience seats.Patience) error {
			event, err := lockEvent(ctx, tx, caller, req.Event, newSale)
			if err != nil {
				return err
			}
			if sale.Wants, err = s.choose(ctx, tx, req.Event, req.Seats, req.Places, patience); err != nil {
				return err
			}
			sold, err = sell(ctx, tx, sale)
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
	}
	return bookingOf(sale, sold), s.refusal(ctx, err, caller, req.Event, req.Seats)
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
	sale.Codes = newCodes(1)
	sold, err := seats.Sell(ctx, s.pool, sale)
	if err != nil {
		return seats.Sold{}, err
	}
	if len(sold.Seats) == 1 {
		return sold, failpoint.Hit(ctx, failpoint.AfterCommit)
	}
	event, err := s.visible(ctx, caller, sale.Event)
	if err != nil {
		return seats.Sold{}, err
	}
	now := event.ServerTime
	if err := onSale(event.Status, !event.SaleStartsAt.After(now), !event.SaleEndsAt.After(now), newSale); err != nil {
		return seats.Sold{}, err
	}
	rows, err := seats.ByID(ctx, s.pool, sale.Event, seats.IDs(wants))
	if err == nil && len(rows) == 1 && !mayBuy(caller, event.Payment, rows[0].Price) {
		return seats.Sold{}, ErrPaymentRequired
	}
	return seats.Sold{}, cmpErr(err, errLost)
}

// sell runs the sale inside a transaction that holds the rows; errLost if it did not get all.
func sell(ctx context.Context, tx pgx.Tx, sale seats.Sale) (seats.Sold, error) {
	if err := failpoint.Hit(ctx, failpoint.BeforeWrite); err != nil {
		return seats.Sold{}, err
	}
	sale.Trusted = true // the transaction checks the payment when it knows the total
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
		event, eventErr := lockEvent(ctx, tx, caller, id.Event, heldSale)
		if errors.Is(eventErr, ErrNotFound) {
			return eventErr
		}
		row, kept, err := lockHold(ctx, tx, caller, id)
		if row.BookingID != nil && errors.Is(err, ErrHoldClosed) {
			booking, err = readBooking(ctx, tx, BookingID{id.Event, *row.BookingID})
			return cmpErr(err, errBooked)
		}
		if err := cmpErr(err, eventErr); err != nil {
			return err
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

// cmpErr returns the first error that is one.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func bookingOf(sale seats.Sale, sold seats.Sold) Booking {
	return Booking{
		ID: BookingID{sale.Event, sale.Booking}, Number: sale.Number, Event: sale.Event, Status: BookingConfirmed, Seats: sold.Seats,
		Total: sold.Total, Currency: sold.Currency, Timezone: sold.Timezone, Name: sale.Name, Email: sale.Email, Reference: sale.Reference,
		CreatedAt: sold.CreatedAt,
	}
}

// bookingAsMade is the answer that the first request under an idempotency key got: all of it is in columns that never change.
func (s *Service) bookingAsMade(ctx context.Context, event seats.EventID, stored []byte) (booking Booking, err error) {
	var made struct{ Booking uuid.UUID }
	if err := json.Unmarshal(stored, &made); err != nil {
		return booking, fmt.Errorf("decode stored result: %w", err)
	}
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		booking, err = readBooking(ctx, tx, BookingID{event, made.Booking})
		return err
	})
	booking.Status, booking.CancelledAt = BookingConfirmed, nil
	return booking, answer(err)
}

func readBooking(ctx context.Context, tx pgx.Tx, id BookingID) (Booking, error) {
	row, err := queries.BookingGet(ctx, tx, db.BookingGetParams{EventID: int64(id.Event), ID: id.Key})
	if db.NotFound(err) {
		return Booking{}, ErrNotFound
	}
	if err != nil {
		return Booking{}, fmt.Errorf("read booking: %w", err)
	}
	booking := bookingFrom(row.Booking, row.Timezone)
	booking.Seats, err = tickets(ctx, tx, id)
	return booking, err
}

func bookingFrom(b db.Booking, timezone string) Booking {
	booking := Booking{
		ID: BookingID{seats.EventID(b.EventID), b.ID}, Number: b.Number, Event: seats.EventID(b.EventID), Status: b.Status, Total: b.Total,
		Currency: b.Currency, Timezone: timezone, Name: b.BuyerName, Email: b.BuyerEmail, Reference: b.PaymentReference, CreatedAt: b.CreatedAt.UTC(),
	}
	if b.CancelledAt != nil {
		at := b.CancelledAt.UTC()
		booking.CancelledAt = &at
	}
	return booking
}

func tickets(ctx context.Context, tx pgx.Tx, id BookingID) ([]seats.Ticket, error) {
	rows, err := queries.BookingTickets(ctx, tx, db.BookingTicketsParams{EventID: int64(id.Event), BookingID: id.Key})
	if err != nil {
		return nil, fmt.Errorf("read tickets: %w", err)
	}
	list := make([]seats.Ticket, len(rows))
	for i, r := range rows {
		list[i] = seats.Ticket{
			Taken: seats.Taken{ID: r.SeatID, Place: seats.Place{Section: r.Section, Row: r.RowLabel, Number: r.Number}, Type: r.Type, Price: r.Price, Fence: r.Fence},
			Code:  r.Code,
		}
	}
	return list, nil
}

// GetBooking returns a booking of the caller, or any of the organizer's own events for an organizer.
func (s *Service) GetBooking(ctx context.Context, caller Caller, id BookingID) (booking Booking, err error) {
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		if err := mayRead(ctx, tx, caller, id); err != nil {
			return err
		}
		booking, err = readBooking(ctx, tx, id)
		return err
	})
	return booking, answer(err)
}

// BookingForMail returns any booking with its event, for the mails about it.
func (s *Service) BookingForMail(ctx context.Context, id BookingID) (booking Booking, event Event, err error) {
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		if booking, err = readBooking(ctx, tx, id); err != nil {
			return err
		}
		row, err := queries.EventGet(ctx, tx, int64(id.Event))
		event = eventOf(row)
		return err
	})
	return booking, event, err
}

func mayRead(ctx context.Context, tx pgx.Tx, caller Caller, id BookingID) error {
	row, err := queries.BookingGet(ctx, tx, db.BookingGetParams{EventID: int64(id.Event), ID: id.Key})
	if db.NotFound(err) || err == nil && !caller.owns(row.Booking.Buyer, row.OrganizerID) {
		return ErrNotFound
	}
	return err
}

// Cancel cancels a booking, frees its seats and leaves a mail in the outbox.
func (s *Service) Cancel(ctx context.Context, caller Caller, id BookingID) (booking Booking, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if err := mayRead(ctx, tx, caller, id); err != nil {
			return err
		}
		if err := cancel(ctx, tx, id, caller.ID); err != nil {
			return err
		}
		booking, err = readBooking(ctx, tx, id)
		return err
	})
	if err == nil {
		s.committed()
	}
	return booking, answer(s.refusal(ctx, err, caller, id.Event, nil))
}

// cancel undoes a sale. The seats come before the booking's row, as in every other writer; the booking's status decides who cancels.
func cancel(ctx context.Context, tx pgx.Tx, id BookingID, actor uuid.UUID) error {
	sold, err := tickets(ctx, tx, id)
	if err != nil {
		return err
	}
	ids := make([]seats.ID, len(sold))
	for i, t := range sold {
		ids[i] = t.ID
	}
	if _, err := seats.Lock(ctx, tx, id.Event, ids); err != nil {
		return fmt.Errorf("lock seats: %w", err)
	}
	_, err = queries.BookingCancel(ctx, tx, db.BookingCancelParams{EventID: int64(id.Event), ID: id.Key})
	if db.NotFound(err) {
		return ErrBookingCancelled
	}
	if err != nil {
		return fmt.Errorf("cancel booking: %w", err)
	}
	if _, err := queries.TicketsCancel(ctx, tx, db.TicketsCancelParams{EventID: int64(id.Event), BookingID: id.Key}); err != nil {
		return fmt.Errorf("cancel tickets: %w", err)
	}
	freed, err := seats.Cancel(ctx, tx, id.Event, id.Key, actor, ids)
	if err != nil {
		return fmt.Errorf("free seats: %w", err)
	}
	slices.Sort(ids)
	if !slices.Equal(freed, ids) {
		return fmt.Errorf("booking %s owned seats %v of %v", id, freed, ids)
	}
	return queries.OutboxAdd(ctx, tx, db.OutboxAddParams{EventID: int64(id.Event), BookingID: id.Key, Kind: MailCancelled})
}

// The kinds of mails that a booking leaves in the outbox.
const (
	MailConfirmed = "booking_confirmed"
	MailCancelled = "booking_cancelled"
)

// BookingFilter narrows a list of bookings; nil leaves a part open. Reference is the seller's reference or the booking's number.
type BookingFilter struct {
	Event     *seats.EventID
	Email     *string
	Reference *string
	Status    *string
}

// BookingPage is where a list of bookings goes on: before the booking made then.
type BookingPage struct {
	BeforeTime  time.Time `json:"t"`
	BeforeEvent int64     `json:"e"`
	BeforeID    uuid.UUID `json:"i"`
}

// Bookings lists bookings without their seats, newest first: of an organizer's events, or the caller's own.
func (s *Service) Bookings(ctx context.Context, caller Caller, filter BookingFilter, page *BookingPage, n int) ([]Booking, error) {
	p := db.BookingListParams{
		Email: filter.Email, Reference: filter.Reference, Status: filter.Status, EventID: (*int64)(filter.Event), MaxRows: int32(n),
		BeforeTime: endOfTime, BeforeID: uuid.Max,
	}
	if page != nil {
		p.BeforeTime, p.BeforeEvent, p.BeforeID = page.BeforeTime, page.BeforeEvent, page.BeforeID
	}
	if caller.Kind == Organizer {
		p.OrganizerID = &caller.Organizer
	} else {
		p.Buyer = &caller.ID
	}
	var rows []db.BookingListRow
	err := db.Snapshot(ctx, s.pool, func(tx pgx.Tx) (err error) {
		if err := queries.CustomPlans(ctx, tx); err != nil {
			return err
		}
		rows, err = queries.BookingList(ctx, tx, p)
		return err
	})
	if err != nil {
		return nil, answer(fmt.Errorf("list bookings: %w", err))
	}
	list := make([]Booking, len(rows))
	for i, r := range rows {
		list[i] = bookingFrom(r.Booking, r.Timezone)
	}
	return list, nil
}

// endOfTime is later than every booking and within what Postgres can compare.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
