package booking

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// The statuses of an event, and what its organizer may change each to.
const (
	StatusDraft     = "draft"
	StatusOnSale    = "on_sale"
	StatusPaused    = "paused"
	StatusEnded     = "ended"
	StatusCancelled = "cancelled"
)

var reachableFrom = map[string][]string{
	StatusOnSale:    {StatusDraft, StatusPaused, StatusOnSale},
	StatusPaused:    {StatusOnSale, StatusPaused},
	StatusEnded:     {StatusOnSale, StatusPaused, StatusEnded},
	StatusCancelled: {StatusDraft, StatusOnSale, StatusPaused, StatusEnded, StatusCancelled},
}

// What an event asks of its buyers before they can confirm.
const (
	PaymentNone     = "none"
	PaymentRequired = "required"
)

// Event is an event as callers see it. Times are UTC; Timezone is the venue's IANA zone.
type Event struct {
	ID           seats.EventID
	Organizer    int64
	Name         string
	Venue        string
	StartsAt     time.Time
	Timezone     string
	Currency     string
	Payment      string
	Status       string
	SaleStartsAt time.Time
	SaleEndsAt   time.Time
	OrphanRule   bool // whether a choice of seats may leave one alone
	WholeTables  bool // whether some tables are sold as a whole
	OrderLimit   *int // seats of one hold or booking, if fewer than the server's limit
	Plan         *PlanRef
	ServerTime   time.Time
}

// EventDetail is an event with its prices and areas and how much of each is left to the caller.
type EventDetail struct {
	Event
	PriceList
	Sections []Section
}

// Section counts the seats of a section, or the places of an area (Area set), of one category. Price is that of the event's first ticket
// type now; FirstSeat orders them.
type Section struct {
	Name      string
	Area      *int32
	Category  string
	Price     int64
	Total     int64
	Free      int64
	Held      int64
	Booked    int64
	Blocked   int64
	FirstSeat seats.ID
}

// EventPage is where a list of events goes on: after the event that starts then and has that id.
type EventPage struct {
	AfterStart time.Time `json:"s"`
	AfterID    int64     `json:"i"`
}

// Events lists events by their start: for a key those of its organizer, drafts included; for a buyer everybody's that are not drafts.
func (s *Service) Events(ctx context.Context, caller Caller, page EventPage, n int) ([]Event, error) {
	p := db.EventListParams{AfterStart: page.AfterStart, AfterID: page.AfterID, MaxRows: int32(n), Only: caller.only()}
	if caller.Kind != Buyer {
		p.OrganizerID = &caller.Organizer
	}
	rows, err := queries.EventList(ctx, s.pool, p)
	if err != nil {
		return nil, answer(fmt.Errorf("list events: %w", err))
	}
	list := make([]Event, len(rows))
	for i, r := range rows {
		list[i] = eventOf(db.EventGetRow(r))
	}
	return list, nil
}

// Event returns one event with its sections and prices.
func (s *Service) Event(ctx context.Context, caller Caller, id seats.EventID) (detail EventDetail, err error) {
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		if detail.Event, err = readEvent(ctx, tx, caller, id); err != nil {
			return err
		}
		if detail.PriceList, err = readPrices(ctx, tx, id); err != nil {
			return err
		}
		reach, err := reachOf(ctx, tx, caller, id)
		if err != nil {
			return err
		}
		detail.Sections, err = sections(ctx, tx, id, reach)
		return err
	})
	return detail, answer(err)
}

func sections(ctx context.Context, conn db.DBTX, id seats.EventID, reach seats.Reach) ([]Section, error) {
	rows, err := queries.EventAvailability(ctx, conn, db.EventAvailabilityParams{
		EventID: int64(id), AnyChannel: reach.All, Channels: reach.Channels,
	})
	if err != nil {
		return nil, fmt.Errorf("count seats: %w", err)
	}
	parts := make([]Section, len(rows))
	for i, r := range rows {
		parts[i] = Section{
			Name: r.Section, Area: r.AreaID, Category: r.Category, Price: r.Price, FirstSeat: r.FirstSeat,
			Total: r.Total, Booked: r.Booked, Blocked: r.Blocked, Held: r.Held, Free: r.Total - r.Booked - r.Blocked - r.Held,
		}
	}
	return parts, nil
}

// EventHead returns the event without counting its seats, if the caller may know it. A key knows its organizer's events, a buyer all but
// drafts.
func (s *Service) EventHead(ctx context.Context, caller Caller, id seats.EventID) (Event, error) {
	event, err := readEvent(ctx, s.pool, caller, id)
	return event, answer(err)
}

func readEvent(ctx context.Context, conn db.DBTX, caller Caller, id seats.EventID) (Event, error) {
	row, err := queries.EventGet(ctx, conn, int64(id))
	switch {
	case db.NotFound(err), err == nil && !caller.sees(id, row.OrganizerID, row.Status):
		return Event{}, ErrNotFound
	case err != nil:
		return Event{}, fmt.Errorf("read event: %w", err)
	}
	return eventOf(row), nil
}

func eventOf(r db.EventGetRow) Event {
	var ref *PlanRef
	if r.PlanID != nil {
		ref = &PlanRef{PlanID(*r.PlanID), *r.PlanVersion}
	}
	return Event{
		Plan: ref,
		ID:   seats.EventID(r.ID), Organizer: r.OrganizerID, Name: r.Name, Venue: r.Venue, StartsAt: r.StartsAt.UTC(), Timezone: r.Timezone,
		Currency: r.Currency, Payment: r.Payment, Status: r.Status, SaleStartsAt: r.SaleStartsAt.UTC(), SaleEndsAt: r.SaleEndsAt.UTC(),
		OrphanRule: r.OrphanRule, WholeTables: r.WholeTables, OrderLimit: orderLimitOf(r.OrderLimit), ServerTime: r.ServerTime.UTC(),
	}
}

// orderLimit is the limit as it is stored, which has no 0.
func orderLimit(n *int) (*int32, error) {
	if n == nil || *n == 0 {
		return nil, nil
	}
	if *n < 0 || *n > seats.MaxSeats {
		return nil, invalid("/order_limit", "bad_count", "an order has at least one seat")
	}
	limit := int32(*n)
	return &limit, nil
}

func orderLimitOf(stored *int32) *int {
	if stored == nil {
		return nil
	}
	n := int(*stored)
	return &n
}
