package booking

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
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

// madeBooking is what is stored of a booking under its idempotency key; the statement Sell writes the same.
type madeBooking struct {
	Booking uuid.UUID `json:"booking"`
}

// bookingAsMade is the answer that the first request under an idempotency key got: all of it is in columns that never change.
func (s *Service) bookingAsMade(ctx context.Context, event seats.EventID, stored []byte) (booking Booking, err error) {
	var made madeBooking
	if err := json.Unmarshal(stored, &made); err != nil {
		return booking, fmt.Errorf("decode stored result: %w", err)
	}
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		booking, err = readBooking(ctx, tx, BookingID{event, made.Booking})
		return err
	})
	return booking.asMade(), answer(err)
}

// asMade is the booking as its sale answered it, whatever has become of it.
func (b Booking) asMade() Booking {
	b.Status, b.CancelledAt = BookingConfirmed, nil
	return b
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
	if db.NotFound(err) || err == nil && !caller.owns(id.Event, row.Booking.Buyer, row.OrganizerID) {
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
	return booking, answer(err)
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
		Email: filter.Email, Reference: filter.Reference, Status: filter.Status, EventID: (*int64)(filter.Event), MaxRows: int32(n), Only: caller.only(),
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
