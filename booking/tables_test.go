package booking_test

import (
	"fmt"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// tabled is a plan of three tables of four, ids 1 to 12, and a floor of ten places.
func tabled(kind plan.Table) plan.Plan {
	p := plan.Plan{
		Name: "Hall", Focus: &plan.Point{}, Categories: []plan.Category{{Name: "A"}, {Name: "B"}}, Sections: []plan.Section{{Name: "Stalls"}},
		Areas: []plan.Area{{Name: "Floor", Category: "B", Capacity: 10}},
	}
	for r := range 3 {
		row := plan.Row{Label: fmt.Sprint("T", r+1), Table: kind}
		for i := range 4 {
			row.Seats = append(row.Seats, plan.Seat{
				Number: fmt.Sprint(i + 1), ID: fmt.Sprint("t-", r, "-", i), Category: "A", Point: plan.Point{X: float64(i), Y: float64(r + 1)},
			})
		}
		p.Sections[0].Rows = append(p.Sections[0].Rows, row)
	}
	return p
}

// tableEvent is a World whose event is sold from a plan of tables.
func tableEvent(t *testing.T, kind plan.Table, change ...func(*booking.NewEvent)) World {
	t.Helper()
	_, w := setup(t)
	spec := ofPlan(published(t, w, tabled(kind)))
	for _, f := range change {
		f(&spec)
	}
	w.Event = w.NewEvent(t, spec)
	return w
}

// What is left of a table of which a seat was sold before tables were sold whole.
func TestTableThatWasSoldInPartIsSoldToItsEnd(t *testing.T) {
	w := tableEvent(t, plan.TableBySeat)
	ctx := t.Context()
	if _, err := w.Book(ctx, Buyer(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := redraw(t, w, tabled(plan.TableWhole)); err != nil {
		t.Fatal(err)
	}
	_, err := w.Hold(ctx, Buyer(), 2, 3)
	wantInvalid(t, err, "/seats", "whole_table")
	if _, err := w.Hold(ctx, Buyer(), 2, 3, 4); err != nil {
		t.Errorf("nobody can ever buy seats 2 to 4: %v", err)
	}
}

// A hold of single seats of a table goes on when the table is sold whole from now on.
func TestHoldOfATableGoesOnUnderANewPlan(t *testing.T) {
	w := tableEvent(t, plan.TableBySeat)
	ctx, lena := t.Context(), Buyer()
	hold := w.MustHold(t, lena, 1, 2, 5)
	if _, err := redraw(t, w, tabled(plan.TableWhole)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Drop: []seats.ID{5}}); err != nil {
		t.Errorf("a seat cannot be given back: %v", err)
	}
}

// Rules for seats say nothing of places, of which a hold may have some beside a whole table.
func TestPlacesAreDroppedUnderRules(t *testing.T) {
	w := tableEvent(t, plan.TableWhole, strict)
	ctx, lena := t.Context(), Buyer()
	hold, err := holdPlaces(ctx, w, lena, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []booking.HoldChange{{Drop: []seats.ID{hold.Seats[0].ID}}, {Add: Wants(1, 2, 3, 4)}} {
		if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, change); err != nil {
			t.Errorf("%+v: %v", change, err)
		}
	}
}
