package booking_test

import (
	"context"
	"errors"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats/plan"
)

// ofPlan is a new event of a plan with the categories A and B.
func ofPlan(ref booking.PlanRef) booking.NewEvent {
	spec := Spec()
	spec.House, spec.Plan = plan.House{}, &ref
	spec.PriceList = booking.PriceList{Prices: []booking.Price{{Category: "A", Amount: SeatPrice}, {Category: "B", Amount: FloorPrice}}}
	return spec
}

func TestAnEventIsOfThePublishedVersionThatItNames(t *testing.T) {
	w, p, first := planned(t)
	p.Sections[0].Rows[0].Seats = p.Sections[0].Rows[0].Seats[:6]
	second := published(t, w, p)
	if second.Plan != first.Plan || second.Version != 2 {
		t.Fatalf("%+v after %+v", second, first)
	}
	for ref, free := range map[booking.PlanRef]int64{first: 10, second: 6} {
		made, _, err := w.Service.CreateEvent(t.Context(), w.Owner, Key(), ofPlan(ref))
		if err != nil || made.Plan == nil || *made.Plan != ref {
			t.Fatalf("%+v, %v", made.Plan, err)
		}
		found, err := w.Service.Event(t.Context(), w.Owner, made.ID)
		if err != nil || found.Plan == nil || *found.Plan != ref || found.Sections[0].Total != free {
			t.Errorf("version %d: %+v, %v", ref.Version, found, err)
		}
	}
	inline, err := w.Service.Event(t.Context(), w.Owner, w.NewEvent(t, Spec()))
	if err != nil || inline.Plan != nil {
		t.Errorf("an event of its own house names the plan %+v, %v", inline.Plan, err)
	}
}

func TestAnEventIsNotOfAPlanThatCannotBeSold(t *testing.T) {
	w, _, ref := planned(t)
	draft := imported(t, w, drawn(t, smallPlan, "New Mill"))
	for name, c := range map[string]struct {
		change        func(*booking.NewEvent)
		pointer, code string
	}{
		"not published":    {func(e *booking.NewEvent) { e.Plan = &booking.PlanRef{Plan: draft.Plan, Version: draft.Number} }, "/plan", "plan_not_published"},
		"no such version":  {func(e *booking.NewEvent) { e.Plan.Version = 9 }, "/plan", "unknown_plan"},
		"no such plan":     {func(e *booking.NewEvent) { e.Plan.Plan++ }, "/plan", "unknown_plan"},
		"a category free":  {func(e *booking.NewEvent) { e.Prices = e.Prices[:1] }, "/prices", "price_missing"},
		"another category": {func(e *booking.NewEvent) { e.Prices[1].Category = "C" }, "/prices/1/category", "unknown_category"},
		"prices of a house": {func(e *booking.NewEvent) {
			e.Prices, e.House.Categories = nil, []plan.HouseCategory{{Name: "A", Price: SeatPrice}, {Name: "B", Price: FloorPrice}}
		}, "/plan", "plan_or_house"},
		"sections of a house": {func(e *booking.NewEvent) { e.House.Sections = Spec().House.Sections }, "/plan", "plan_or_house"},
		"areas of a house":    {func(e *booking.NewEvent) { e.House.Areas = Spec().House.Areas }, "/plan", "plan_or_house"},
	} {
		spec := ofPlan(ref)
		c.change(&spec)
		_, _, err := w.Service.CreateEvent(t.Context(), w.Owner, Key(), spec)
		if e, ok := errors.AsType[*booking.InvalidError](err); !ok || e.Pointer != c.pointer || e.Code != c.code {
			t.Errorf("%s: %v, want %s at %s", name, err, c.code, c.pointer)
		}
	}
	stranger := booking.Caller{Kind: booking.Organizer, ID: w.Owner.ID, Organizer: Organizer(t, w.Pool)}
	_, _, err := w.Service.CreateEvent(t.Context(), stranger, Key(), ofPlan(ref))
	wantInvalid(t, err, "/plan", "unknown_plan")
}

// Autovacuum and a second new event take the same lock.
func TestEventIsMadeWhileItsTablesAreVacuumed(t *testing.T) {
	ctx, w := setup(t)
	tx, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, "LOCK TABLE seats IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Service.CreateEvent(ctx, w.Owner, Key(), Spec()); err != nil {
		t.Errorf("%v", err)
	}
}
