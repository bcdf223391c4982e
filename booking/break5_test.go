package booking_test

import (
	"fmt"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

func tabled(t *testing.T, size int, kind plan.Table) plan.Plan {
	t.Helper()
	p := plan.Plan{
		Name: "Hall", Focus: &plan.Point{}, Categories: []plan.Category{{Name: "A"}, {Name: "B"}}, Sections: []plan.Section{{Name: "Stalls"}},
		Areas: []plan.Area{{Name: "Floor", Category: "B", Capacity: 10}},
	}
	for r := range 3 {
		row := plan.Row{Label: fmt.Sprint("T", r+1), Table: kind}
		for i := range size {
			row.Seats = append(row.Seats, plan.Seat{Number: fmt.Sprint(i + 1), ID: fmt.Sprint("t-", r, "-", i), Category: "A", Point: plan.Point{X: float64(i), Y: float64(r + 1)}})
		}
		p.Sections[0].Rows = append(p.Sections[0].Rows, row)
	}
	return p
}

func tableEvent(t *testing.T, size int, kind plan.Table, change ...func(*booking.NewEvent)) World {
	t.Helper()
	_, w := setup(t)
	ref := published(t, w, tabled(t, size, kind))
	spec := Spec()
	spec.House, spec.Plan = plan.House{}, &ref
	spec.PriceList = booking.PriceList{Prices: []booking.Price{{Category: "A", Amount: SeatPrice}, {Category: "B", Amount: FloorPrice}}}
	for _, f := range change {
		f(&spec)
	}
	w.Event = w.NewEvent(t, spec)
	return w
}

// What is left of a table of which a seat was sold before tables were sold whole.
func TestTableThatWasSoldInPartIsSoldToItsEnd(t *testing.T) {
	w := tableEvent(t, 4, plan.TableBySeat)
	ctx := t.Context()
	if _, err := w.Book(ctx, Buyer(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := redraw(t, w, tabled(t, 4, plan.TableWhole)); err != nil {
		t.Logf("the plan is refused: %v", err)
		return
	}
	_, err := w.Hold(ctx, Buyer(), 2, 3)
	wantInvalid(t, err, "/seats", "whole_table")
	if _, err := w.Hold(ctx, Buyer(), 2, 3, 4); err != nil {
		t.Errorf("nobody can ever buy seats 2 to 4: %v", err)
	}
}

// A hold of single seats of a table goes on when the table is sold whole from now on.
func TestHoldOfATableGoesOnUnderANewPlan(t *testing.T) {
	w := tableEvent(t, 4, plan.TableBySeat)
	ctx, lena := t.Context(), Buyer()
	hold := w.MustHold(t, lena, 1, 2, 5)
	if _, err := redraw(t, w, tabled(t, 4, plan.TableWhole)); err != nil {
		return
	}
	if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Drop: []seats.ID{5}}); err != nil {
		t.Errorf("a seat cannot be given back: %v", err)
	}
}

// A hold of places is changed under rules for seats, and eight of the dearest seats have a total.
func TestPlacesAreDroppedUnderRules(t *testing.T) {
	w := tableEvent(t, 4, plan.TableWhole, strict)
	ctx, lena := t.Context(), Buyer()
	hold, _, err := w.Service.Hold(ctx, lena, Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: 1, Quantity: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Drop: []seats.ID{hold.Seats[0].ID}}); err != nil {
		t.Errorf("%v", err)
	}
	if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(1, 2, 3, 4)}); err != nil {
		t.Errorf("%v", err)
	}
	big, price := w, int64(1_000_000_000)
	if _, err := big.Service.SetPrices(ctx, w.Owner, w.Event, booking.PriceList{Prices: []booking.Price{{Category: "A", Amount: price}, {Category: "B", Amount: price}}}); err != nil {
		t.Fatal(err)
	}
	made, err := w.Book(ctx, w.Owner, 5, 6, 7, 8, 9, 10, 11, 12)
	if err != nil || made.Total != 8*price {
		t.Errorf("%d, %v", made.Total, err)
	}
}
