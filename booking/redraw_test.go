package booking_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// planned is a World whose event is sold from a published plan: row A of ten seats in the stalls, ids 1 to 10, and a floor of ten places.
func planned(t *testing.T) (World, plan.Plan, booking.PlanRef) {
	t.Helper()
	_, w := setup(t)
	p := plan.Plan{
		Name: "Hall", Focus: &plan.Point{}, Categories: []plan.Category{{Name: "A"}, {Name: "B"}},
		Sections: []plan.Section{{Name: "Stalls", Rows: []plan.Row{{Label: "A"}}}},
		Areas:    []plan.Area{{Name: "Floor", Category: "B", Capacity: 10}},
	}
	for i := range 10 {
		p.Sections[0].Rows[0].Seats = append(p.Sections[0].Rows[0].Seats, plan.Seat{
			Number: fmt.Sprint(i + 1), ID: fmt.Sprint("seat-", i+1), Category: "A", Point: plan.Point{X: float64(i), Y: 1},
		})
	}
	ref := published(t, w, p)
	spec := Spec()
	spec.House, spec.Plan = plan.House{}, &ref
	spec.PriceList = booking.PriceList{Prices: []booking.Price{{Category: "A", Amount: SeatPrice}, {Category: "B", Amount: FloorPrice}}}
	w.Event = w.NewEvent(t, spec)
	return w, p, ref
}

// published imports a plan and publishes it.
func published(t *testing.T, w World, p plan.Plan) booking.PlanRef {
	t.Helper()
	ctx := t.Context()
	var document strings.Builder
	if err := p.Export(&document); err != nil {
		t.Fatal(err)
	}
	read, report, err := plan.Import(ctx, strings.NewReader(document.String()), plan.Options{})
	if err != nil || report.Errors() > 0 {
		t.Fatalf("%v, %+v", err, report.Defects)
	}
	version, _, err := w.Service.ImportPlan(ctx, w.Owner, Key(), booking.PlanImport{Venue: "Old Mill", Name: "Hall", Document: read, Report: report})
	if err != nil {
		t.Fatal(err)
	}
	if version, err = w.Service.PublishPlan(ctx, w.Owner, version.Plan, version.Number); err != nil {
		t.Fatal(err)
	}
	return booking.PlanRef{Plan: version.Plan, Version: version.Number}
}

func redraw(t *testing.T, w World, p plan.Plan, prices ...booking.Price) (booking.Redrawn, error) {
	t.Helper()
	ref := published(t, w, p)
	return w.Service.ChangePlan(t.Context(), w.Owner, w.Event, booking.PlanChange{Plan: ref.Plan, Version: ref.Version, Prices: prices})
}

// allot puts a seat into a channel of its own.
func allot(t *testing.T, w World, id seats.ID) {
	t.Helper()
	_, err := w.Pool.Exec(t.Context(), `WITH c AS (
		INSERT INTO channels (event_id, id, name, created_at) VALUES ($1, 1, 'agency', now()) RETURNING id)
		UPDATE seats SET channel_id = c.id FROM c WHERE event_id = $1 AND seats.id = $2`, int64(w.Event), id)
	if err != nil {
		t.Fatal(err)
	}
}

// TestNewPlanAndWhoeverHasASeat: seat 5, in every state, against everything that a new plan can do to it.
func TestNewPlanAndWhoeverHasASeat(t *testing.T) {
	const seat = seats.ID(5)
	states := map[string]func(*testing.T, World) string{
		"free": func(*testing.T, World) string { return "" },
		"held": func(t *testing.T, w World) string { w.MustHold(t, Buyer(), seat); return booking.ReasonHeld },
		"sold": func(t *testing.T, w World) string {
			if _, err := w.Book(t.Context(), Buyer(), seat); err != nil {
				t.Fatal(err)
			}
			return booking.ReasonBooked
		},
		"allotted": func(t *testing.T, w World) string { allot(t, w, seat); return booking.ReasonAllotted },
	}
	changes := map[string]struct {
		change func(*plan.Row)
		safe   bool // for a seat that somebody has
		lost   string
	}{
		"dropped":       {func(r *plan.Row) { r.Seats = slices.Delete(r.Seats, 4, 5) }, false, booking.ChangeDropped},
		"made inactive": {func(r *plan.Row) { r.Seats[4].Inactive = true }, false, booking.ChangeDropped},
		"renamed":       {func(r *plan.Row) { r.Seats[4].Number = "5a" }, false, booking.ChangeRenamed},
		"moved":         {func(r *plan.Row) { r.Seats[4].X = 100 }, true, ""},
		"recategorised": {func(r *plan.Row) { r.Seats[4].Category = "B" }, true, ""},
	}
	for state, take := range states {
		for name, c := range changes {
			t.Run(state+" "+name, func(t *testing.T) {
				w, p, _ := planned(t)
				reason := take(t, w)
				before := stateOf(t, w, seat)
				row := &p.Sections[0].Rows[0]
				row.Seats = slices.Clone(row.Seats)
				c.change(row)
				done, err := redraw(t, w, p)
				after := stateOf(t, w, seat)
				if reason != "" && !c.safe {
					refusal := refused(t, err, booking.CodePlan)
					lost := refusal.Seats[0]
					if len(refusal.Seats) != 1 || lost.ID != seat || lost.Reason != reason || lost.Change != c.lost || (lost.Becomes != nil) != (name == "renamed") {
						t.Errorf("refused with %+v", refusal.Seats)
					}
					if fmt.Sprint(after) != fmt.Sprint(before) {
						t.Errorf("a refused plan changed the seat from %+v to %+v", before, after)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case !c.safe && (after.State != seats.Blocked || after.Fence != 1):
					t.Errorf("a free seat that is gone is %+v, after %+v", after, done)
				case c.safe && (after.Fence != before.Fence || after.State != before.State):
					t.Errorf("%+v became %+v", before, after)
				case name == "recategorised" && after.Category != "B":
					t.Errorf("%+v", after)
				}
			})
		}
	}
}

func TestNewPlanIsSoldAtOnce(t *testing.T) {
	w, p, _ := planned(t)
	ctx := t.Context()
	lena := Buyer()
	w.MustHold(t, lena, 1)
	if _, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 1}); err != nil { // the node knows the old drawing
		t.Fatal(err)
	}
	p.Categories = append(p.Categories, plan.Category{Name: "Box"})
	p.Sections = append(p.Sections, plan.Section{Name: "Box", Rows: []plan.Row{{Label: "1", Seats: []plan.Seat{
		{Number: "1", Category: "Box", Point: plan.Point{X: 0.5, Y: 0}}, {Number: "2", Category: "Box", Point: plan.Point{X: 1.5, Y: 0}},
	}}}})
	if _, err := redraw(t, w, p); err == nil {
		t.Error("a category without a price")
	}
	done, err := redraw(t, w, p, booking.Price{Category: "Box", Amount: 9000})
	if err != nil || done.Added != 2 || done.Kept != 20 || done.Dropped != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	hold, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 2})
	if err != nil || hold.Total != 18000 || hold.Seats[0].Section != "Box" {
		t.Errorf("%+v, %v", hold, err)
	}
	again, err := redraw(t, w, p)
	if err != nil || again.Added+again.Dropped+again.Recategorised != 0 {
		t.Errorf("the same plan again: %+v, %v", again, err)
	}
}

func TestDroppedSeatComesBackAndNobodyElseBringsItBack(t *testing.T) {
	w, p, _ := planned(t)
	ctx := t.Context()
	block, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{10}, "camera")
	if err != nil {
		t.Fatal(err)
	}
	shorter := p
	shorter.Sections = []plan.Section{{Name: "Stalls", Rows: []plan.Row{{Label: "A", Seats: p.Sections[0].Rows[0].Seats[:9]}}}}
	if _, err := redraw(t, w, shorter); err != nil {
		t.Fatal(err)
	}
	if err := w.Service.Unblock(ctx, w.Owner, block.ID); err != nil {
		t.Fatal(err)
	}
	history, err := w.Service.History(ctx, w.Owner, w.Event, 10, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Service.Unblock(ctx, w.Owner, booking.BlockID{Event: w.Event, Key: history.Changes[0].Ref})
	wantErr(t, err, booking.ErrNotFound)
	_, err = w.Hold(ctx, Buyer(), 10)
	refused(t, err, booking.CodeSeatTaken)
	house, err := w.Service.Seats(ctx, Buyer(), w.Event, nil)
	if err != nil || len(house.Seats) != 9 {
		t.Errorf("%d seats are listed, %v", len(house.Seats), err)
	}
	if done, err := redraw(t, w, p); err != nil || done.Kept != 20 || done.Added != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	w.MustHold(t, Buyer(), 10)
}

// A seat that the organizer has blocked stays so when a plan drops it and the next one brings it back.
func TestBlockedSeatComesBackBlocked(t *testing.T) {
	ctx := t.Context()
	w, p, _ := planned(t)
	block, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{5}, "camera")
	if err != nil {
		t.Fatal(err)
	}
	whole := p.Sections[0].Rows[0].Seats
	without := p
	without.Sections = []plan.Section{{Name: "Stalls", Rows: []plan.Row{{Label: "A", Seats: slices.Delete(slices.Clone(whole), 4, 5)}}}}
	if _, err := redraw(t, w, without); err != nil {
		t.Fatal(err)
	}
	if _, err := redraw(t, w, p); err != nil {
		t.Fatal(err)
	}
	if seat := stateOf(t, w, 5); seat.State != seats.Blocked {
		t.Errorf("the camera's seat is %s, and its block %s has not been removed", seat.State, block.ID)
	}
}

func TestAreaGrowsAndShrinks(t *testing.T) {
	w, p, _ := planned(t)
	ctx := t.Context()
	take := func(n int) error {
		_, _, err := w.Service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: 1, Quantity: n}})
		return err
	}
	size := func(n int) (booking.Redrawn, error) {
		p.Areas = []plan.Area{{Name: "Floor", Category: "B", Capacity: n}}
		return redraw(t, w, p)
	}
	if err := take(4); err != nil {
		t.Fatal(err)
	}
	_, err := size(3)
	if refusal := refused(t, err, booking.CodePlan); len(refusal.Seats) != 1 || refusal.Seats[0].Reason != booking.ReasonHeld {
		t.Errorf("%+v", refusal.Seats)
	}
	for _, n := range []int{4, 6, 12, 5, 15} {
		if _, err := size(n); err != nil {
			t.Fatalf("%d places: %v", n, err)
		}
		detail, err := w.Service.Event(ctx, Buyer(), w.Event)
		if floor := detail.Sections[1]; err != nil || floor.Total != int64(n) || floor.Held != 4 || floor.Free != int64(n-4) {
			t.Errorf("%d places: %+v, %v", n, floor, err)
		}
	}
	for range 11 {
		if err := take(1); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, take(1), booking.ErrSoldOut)
}

func TestDryRunChangesNothing(t *testing.T) {
	w, p, _ := planned(t)
	p.Sections = []plan.Section{{Name: "Stalls", Rows: []plan.Row{{Label: "A", Seats: p.Sections[0].Rows[0].Seats[:7]}}}}
	ref := published(t, w, p)
	change := booking.PlanChange{Plan: ref.Plan, Version: ref.Version, DryRun: true}
	done, err := w.Service.ChangePlan(t.Context(), w.Owner, w.Event, change)
	if err != nil || done.Dropped != 3 {
		t.Errorf("%+v, %v", done, err)
	}
	w.MustHold(t, Buyer(), 10)
	_, err = w.Service.ChangePlan(t.Context(), w.Owner, w.Event, change)
	refused(t, err, booking.CodePlan)
}

func TestPriceOfANewPlanHasItsPlace(t *testing.T) {
	w, p, _ := planned(t)
	_, err := redraw(t, w, p, booking.Price{Category: "Moon", Amount: 1})
	wantInvalid(t, err, "/prices/0/category", "unknown_category")
}

// TestSalesAndNewPlansAtOnce: whoever comes first has the seat, and no answer is a fault.
func TestSalesAndNewPlansAtOnce(t *testing.T) {
	w, p, full := planned(t)
	shorter := p
	shorter.Sections = []plan.Section{{Name: "Stalls", Rows: []plan.Row{{Label: "A", Seats: p.Sections[0].Rows[0].Seats[:5]}}}}
	short := published(t, w, shorter)
	ctx, end := context.WithCancel(t.Context())
	var buyers sync.WaitGroup
	for n := range 6 {
		buyers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := seats.ID(1 + (i*7+n)%10)
				buyer := Buyer()
				hold, err := w.Hold(t.Context(), buyer, id)
				if _, ok := errors.AsType[*booking.SeatsError](err); err != nil && !ok {
					t.Errorf("hold: %v", err)
				}
				if err == nil {
					if err := w.Service.Release(t.Context(), buyer, hold.ID); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			}
		})
	}
	changed := 0
	for i := range 30 {
		ref := []booking.PlanRef{short, full}[i%2]
		_, err := w.Service.ChangePlan(t.Context(), w.Owner, w.Event, booking.PlanChange{Plan: ref.Plan, Version: ref.Version})
		if refusal, ok := errors.AsType[*booking.SeatsError](err); err != nil && (!ok || refusal.Code != booking.CodePlan) {
			t.Errorf("change %d: %v", i, err)
		}
		if err == nil {
			changed++
		}
	}
	end()
	buyers.Wait()
	if changed < 5 {
		t.Errorf("only %d of 30 plans were put on", changed)
	}
}

// TestChangesOfOneEventAtOnce: new plans with new categories, prices and channels take turns, and none is answered with a fault.
func TestChangesOfOneEventAtOnce(t *testing.T) {
	w, p, _ := planned(t)
	ctx := t.Context()
	refs := make([]booking.PlanRef, 4)
	for i := range refs {
		next := p
		next.Categories = append(slices.Clip(p.Categories), plan.Category{Name: fmt.Sprint("Box ", i)})
		next.Areas = append(slices.Clip(p.Areas), plan.Area{Name: fmt.Sprint("Box ", i), Category: fmt.Sprint("Box ", i), Capacity: 3})
		refs[i] = published(t, w, next)
	}
	var all sync.WaitGroup
	fine := func(what string, err error) {
		if _, ok := errors.AsType[*booking.InvalidError](err); err != nil && !ok && !errors.Is(err, booking.ErrBusy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i, ref := range refs {
		all.Go(func() {
			change := booking.PlanChange{Plan: ref.Plan, Version: ref.Version, Prices: []booking.Price{{Category: fmt.Sprint("Box ", i), Amount: 100}}}
			_, err := w.Service.ChangePlan(ctx, w.Owner, w.Event, change)
			fine("plan", err)
		})
		all.Go(func() {
			detail, err := w.Service.Event(ctx, w.Owner, w.Event)
			if err == nil {
				_, err = w.Service.SetPrices(ctx, w.Owner, w.Event, detail.PriceList)
			}
			fine("prices", err)
		})
		all.Go(func() {
			_, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: fmt.Sprint("agency ", i), Seats: []seats.ID{seats.ID(i + 1)}})
			fine("channel", err)
		})
	}
	all.Wait()
}
