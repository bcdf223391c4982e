package booking

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
	"seatfence/seats/plan"
)

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
	House        plan.House // if and only if Plan is nil
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
	for _, name := range []*string{&spec.Name, &spec.Venue} {
		var err error
		if *name, err = cleanTitle(*name); err != nil {
			return Event{}, false, err
		}
	}
	if err := spec.check(); err != nil {
		return Event{}, false, err
	}
	layout, err := s.layoutOf(ctx, caller, spec)
	if err != nil {
		return Event{}, false, answer(err)
	}
	prices := spec.prices()
	if err := prices.check(layout.Categories, 0); err != nil {
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
			if err := queries.FeedInsert(ctx, tx, db.FeedInsertParams{EventID: int64(id), Epoch: 1 + rand.Int64N(maxEpoch)}); err != nil {
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
		if len(e.House.Categories)+len(e.House.Sections)+len(e.House.Areas) > 0 {
			return invalid("/plan", "plan_or_house", "an event of a plan has no categories, sections and areas of its own")
		}
		return nil
	}
	if defect := e.House.Check(); defect != nil {
		return invalid(defect.Pointer, defect.Code, "%s", defect.Detail)
	}
	return nil
}
