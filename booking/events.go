package booking

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
	"seatfence/seats/plan"
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

// EventChange says what of an event to change; nil leaves a field as it is. An OrderLimit of 0 takes the limit away.
type EventChange struct {
	Name         *string    `json:"name,omitempty"`
	Venue        *string    `json:"venue,omitempty"`
	StartsAt     *time.Time `json:"starts_at,omitempty"`
	Status       *string    `json:"status,omitempty"`
	SaleStartsAt *time.Time `json:"sale_starts_at,omitempty"`
	SaleEndsAt   *time.Time `json:"sale_ends_at,omitempty"`
	OrphanRule   *bool      `json:"orphan_rule,omitempty"`
	OrderLimit   *int       `json:"order_limit,omitempty"`
}

// A change of an event first waits for its row alone. Where a crowd is buying that can take for ever, and the queue of the whole table is
// used instead, in waits that are shorter than db.LockTimeout: no sale of another event is refused because of it.
const (
	changeTries     = 10
	changeWaitMS    = "300"
	changeRunMS     = "1000"
	changeRetryWait = 100 * time.Millisecond
)

// UpdateEvent changes an event of the organizer. A pause, an end or a cancel waits for the sales that are under way, and no sale commits
// after it; the holds and bookings of a cancelled event are undone by Sweep, in transactions of their own.
func (s *Service) UpdateEvent(ctx context.Context, caller Caller, id seats.EventID, change EventChange) (Event, error) {
	if caller.Kind != Organizer {
		return Event{}, ErrForbidden
	}
	if err := checkTimes(change.StartsAt, change.SaleStartsAt, change.SaleEndsAt); err != nil {
		return Event{}, err
	}
	if !caller.knows(id, caller.Organizer) {
		return Event{}, ErrNotFound
	}
	limit, err := orderLimit(change.OrderLimit)
	if err != nil {
		return Event{}, err
	}
	from := []string{StatusDraft, StatusOnSale, StatusPaused, StatusEnded}
	if change.Status != nil {
		from = reachableFrom[*change.Status]
	}
	var row db.EventUpdateRow
	err = s.writingEvent(ctx, nil, func(tx pgx.Tx) error {
		row, err = queries.EventUpdate(ctx, tx, db.EventUpdateParams{
			ID: int64(id), OrganizerID: caller.Organizer, FromStatus: from,
			Name: change.Name, Venue: change.Venue, StartsAt: change.StartsAt, Status: change.Status,
			SaleStartsAt: change.SaleStartsAt, SaleEndsAt: change.SaleEndsAt,
			OrphanRule: change.OrphanRule, SetOrderLimit: change.OrderLimit != nil, OrderLimit: limit,
		})
		if err != nil {
			return err
		}
		return audit(ctx, tx, caller, auditEventChanged, &id, id, change)
	})
	switch {
	case db.Violates(err, db.ConstraintSaleWindow):
		return Event{}, errWindow
	case db.NotFound(err):
		_, err := s.EventHead(ctx, caller, id)
		return Event{}, cmp.Or(err, ErrBadTransition)
	case err != nil:
		return Event{}, answer(fmt.Errorf("update event: %w", err))
	}
	return eventOf(db.EventGetRow(row)), nil
}

var errWindow = invalid("/sale_ends_at", "bad_window", "the sale must end after it starts")

// A time is written as JSON in UTC, which takes the years 0 to 9999; no event needs that many.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func checkTimes(starts, saleStarts, saleEnds *time.Time) error {
	for _, given := range []struct {
		pointer string
		*time.Time
	}{{"/starts_at", starts}, {"/sale_starts_at", saleStarts}, {"/sale_ends_at", saleEnds}} {
		if t := given.Time; t != nil && (t.Before(earliest) || !t.Before(latest)) {
			return invalid(given.pointer, "bad_time", "a time lies in the years 2000 to 2199")
		}
	}
	return nil
}

// writingEvent runs a transaction whose write begins with the event's row: it waits for the sales that are under way, and until it ends
// none begins. What takes its time and touches no row that sells is for prepare, before that. Both are run again while a crowd is quicker.
func (s *Service) writingEvent(ctx context.Context, prepare, write func(tx pgx.Tx) error) error {
	for try := 0; ; try++ {
		err := s.inTx(ctx, func(tx pgx.Tx) error {
			if prepare != nil {
				if err := prepare(tx); err != nil {
					return err
				}
			}
			limits := db.EventChangeLimitsParams{LockMs: changeWaitMS, StatementMs: changeRunMS}
			if err := queries.EventChangeLimits(ctx, tx, limits); err != nil {
				return err
			}
			if try > 0 {
				if err := queries.EventsLock(ctx, tx); err != nil {
					return err
				}
			}
			return write(tx)
		})
		if try == changeTries-1 || !db.LockTimedOut(err) && !db.Canceled(err) {
			return err
		}
		if err := pause(ctx, changeRetryWait); err != nil {
			return err
		}
	}
}

// lockOwnForChange takes the row of the organizer's own event for writing, in any status but cancelled.
func lockOwnForChange(ctx context.Context, tx pgx.Tx, caller Caller, id seats.EventID) (db.EventLockForChangeRow, error) {
	row, err := queries.EventLockForChange(ctx, tx, int64(id))
	switch {
	case db.NotFound(err), err == nil && !caller.knows(id, row.OrganizerID):
		return row, ErrNotFound
	case err != nil:
		return row, fmt.Errorf("lock event: %w", err)
	case row.Status == StatusCancelled:
		return row, ErrEventCancelled
	}
	return row, nil
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

// PlanRef names a version of a plan.
type PlanRef struct {
	Plan    PlanID `json:"plan"`
	Version int32  `json:"version"`
}

// NewEvent is an event to be made: what it is, the published plan or the inline house that it is sold in, and what that costs. The prices
// of a house are part of it, and PriceList adds to them.
type NewEvent struct {
	Name         string
	Venue        string
	StartsAt     time.Time
	Timezone     string
	Currency     string
	Payment      string
	Status       string // draft or on_sale
	SaleStartsAt time.Time
	SaleEndsAt   time.Time
	OrphanRule   bool
	OrderLimit   *int
	Plan         *PlanRef
	House        plan.House // if Plan is nil
	PriceList
}

// CreateEvent makes an event with all its seats. Its idempotency keys are those of event 0.
func (s *Service) CreateEvent(ctx context.Context, caller Caller, key Idempotency, spec NewEvent) (Event, bool, error) {
	if caller.Kind != Organizer {
		return Event{}, false, ErrForbidden
	}
	if caller.Events != nil {
		return Event{}, false, ErrForbidden // of which nobody has said that they may know it
	}
	if err := spec.check(); err != nil {
		return Event{}, false, err
	}
	layout, err := s.layoutOf(ctx, caller, spec)
	if err != nil {
		return Event{}, false, answer(err)
	}
	prices := spec.prices()
	if err := prices.check(layout.Categories); err != nil {
		return Event{}, false, err
	}
	limit, err := orderLimit(spec.OrderLimit)
	if err != nil {
		return Event{}, false, err
	}
	return once(ctx, s, 0, caller, key, func(ctx context.Context) (Event, error) {
		id := seats.EventID(rand.Int64N(math.MaxInt64) + 1)
		var event Event
		err := s.inTx(ctx, func(tx pgx.Tx) error {
			if err := queries.LongStatements(ctx, tx); err != nil {
				return err
			}
			if err := queries.EventInsert(ctx, tx, db.EventInsertParams{
				ID: int64(id), OrganizerID: caller.Organizer, Name: spec.Name, Venue: spec.Venue, StartsAt: spec.StartsAt,
				Timezone: spec.Timezone, Currency: spec.Currency, Payment: spec.Payment, Status: spec.Status,
				SaleStartsAt: spec.SaleStartsAt, SaleEndsAt: spec.SaleEndsAt, OrphanRule: spec.OrphanRule, WholeTables: layout.WholeTables(), OrderLimit: limit,
				PlanID: spec.Plan.id(), PlanVersion: spec.Plan.version(),
			}); err != nil {
				return err
			}
			if err := seats.Build(ctx, tx, id, layout); err != nil {
				return err
			}
			if err := writePrices(ctx, tx, id, 0, prices, layout.Categories); err != nil {
				return err
			}
			if err := queries.SeatsAnalyze(ctx, tx); err != nil {
				return err
			}
			row, err := queries.EventGet(ctx, tx, int64(id))
			if err != nil {
				return err
			}
			event = eventOf(row)
			if err := audit(ctx, tx, caller, auditEventCreated, &id, id, spec.head()); err != nil {
				return err
			}
			return remember(ctx, tx, 0, caller, key, event)
		})
		return event, err
	}, recalled[Event])
}

// head is what the audit log keeps of a new event.
func (e NewEvent) head() EventChange {
	return EventChange{
		Name: &e.Name, Venue: &e.Venue, StartsAt: &e.StartsAt, Status: &e.Status, SaleStartsAt: &e.SaleStartsAt, SaleEndsAt: &e.SaleEndsAt,
		OrphanRule: &e.OrphanRule, OrderLimit: e.OrderLimit,
	}
}

func (r *PlanRef) id() *int64 {
	if r == nil {
		return nil
	}
	return (*int64)(&r.Plan)
}

func (r *PlanRef) version() *int32 {
	if r == nil {
		return nil
	}
	return &r.Version
}

// layoutOf is what the event is to sell.
func (s *Service) layoutOf(ctx context.Context, caller Caller, spec NewEvent) (seats.Layout, error) {
	if spec.Plan == nil {
		return spec.House.Plan().Layout(), nil
	}
	drawn, err := publishedPlan(ctx, s.pool, caller, "/plan", spec.Plan.Plan, spec.Plan.Version)
	return drawn.Layout(), err
}

// prices are those of the inline house, and the others.
func (e NewEvent) prices() PriceList {
	list := e.named()
	for _, c := range e.House.Categories {
		list.Prices = append(list.Prices, Price{Category: c.Name, Type: list.Types[0], Amount: c.Price})
	}
	return list
}

func (e NewEvent) check() error {
	if _, err := time.LoadLocation(e.Timezone); err != nil || e.Timezone == "Local" || e.Timezone == "" {
		return invalid("/timezone", "unknown_timezone", "an IANA zone is needed, such as Europe/Berlin")
	}
	if err := checkTimes(&e.StartsAt, &e.SaleStartsAt, &e.SaleEndsAt); err != nil {
		return err
	}
	if !e.SaleStartsAt.Before(e.SaleEndsAt) {
		return errWindow
	}
	if !slices.Contains([]string{StatusDraft, StatusOnSale}, e.Status) {
		return invalid("/status", "bad_status", "a new event is draft or on_sale")
	}
	if e.Plan != nil {
		return nil
	}
	if defect := e.House.Check(); defect != nil {
		return invalid(defect.Pointer, defect.Code, "%s", defect.Detail)
	}
	return nil
}
