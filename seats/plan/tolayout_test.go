package plan_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"seatfence/seats"
	"seatfence/seats/plan"
)

// told is what a layout says of its seats: "section row number: line.run.pos" in the order of their ids.
func told(l seats.Layout) (list []string) {
	for _, s := range l.Seats {
		list = append(list, fmt.Sprintf("%s %s %s: %d.%d.%d", s.Section, s.Row, s.Number, s.Line, s.Run, s.Pos))
	}
	return list
}

func labelled(label string, r plan.Row) plan.Row {
	r.Label = label
	return r
}

func TestSeatsGetTheirIdsAlongTheRuns(t *testing.T) {
	t.Parallel()
	p := plan.Plan{Sections: []plan.Section{
		{Name: "Stalls", Rows: []plan.Row{
			labelled("A", line(0, 25, 75, 100, 125)),
			labelled("B", line(100, 75, 50, 25, 0)),
		}},
		{Name: "Circle", Rows: []plan.Row{labelled("A", line(0, 25, 50))}},
	}}
	want := []string{
		"Stalls A 1: 0.1.0", "Stalls A 2: 0.1.1", "Stalls A 3: 0.2.0", "Stalls A 4: 0.2.1", "Stalls A 5: 0.2.2",
		"Stalls B 5: 1.3.0", "Stalls B 4: 1.3.1", "Stalls B 3: 1.3.2", "Stalls B 2: 1.3.3", "Stalls B 1: 1.3.4",
		"Circle A 1: 0.4.0", "Circle A 2: 0.4.1", "Circle A 3: 0.4.2",
	}
	if got := told(p.Layout()); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// Whoever sits on either side of a seat that is not for sale does not sit together.
func TestInactiveSeatsLeaveAGap(t *testing.T) {
	t.Parallel()
	r := labelled("A", line(0, 25, 50, 75, 100))
	r.Seats[1].Inactive, r.Seats[4].Inactive = true, true
	p := plan.Plan{Sections: []plan.Section{{Name: "S", Rows: []plan.Row{r}}}}
	if got, want := told(p.Layout()), []string{"S A 1: 0.1.0", "S A 3: 0.1.2", "S A 4: 0.1.3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTablesAreOneRunAndOnlyWholeOnesAreSoldWhole(t *testing.T) {
	t.Parallel()
	corners := []plan.Point{{X: 0, Y: 0}, {X: 90, Y: 90}, {X: 90, Y: 0}, {X: 0, Y: 90}}
	for _, sold := range []plan.Table{plan.TableWhole, plan.TableBySeat} {
		table := labelled("T", row(corners...))
		table.Table = sold
		l := plan.Plan{Sections: []plan.Section{{Name: "S", Rows: []plan.Row{table, labelled("A", line(200, 225, 250, 275))}}}}.Layout()
		if l.WholeTables() != (sold == plan.TableWhole) {
			t.Errorf("%s: whole tables are %v", sold, l.WholeTables())
		}
		for _, s := range l.Seats {
			at := s.Row == "T"
			if s.Attributes.Has(seats.WholeTable) != (at && sold == plan.TableWhole) || at != (s.Run == 1) {
				t.Errorf("%s: %+v", sold, s)
			}
		}
	}
}

func TestLayoutKeepsWhatThereIsToKnowOfASeat(t *testing.T) {
	t.Parallel()
	l := plan.Plan{
		Categories: []plan.Category{{Name: "A"}, {Name: "B"}},
		Sections: []plan.Section{{Name: "S", Rows: []plan.Row{{Label: "A", Seats: []plan.Seat{
			{Number: "1", Category: "B", Point: plan.Point{X: 1.5, Y: -2}, Accessible: true, RestrictedView: true, Tags: []string{"sofa"}},
			{Number: "2", Category: "A", Point: plan.Point{X: 2.5, Y: -2}, Companion: true},
		}}}}},
		Areas: []plan.Area{{Name: "Floor", Category: "B", Capacity: 40}},
	}.Layout()
	first, second := l.Seats[0], l.Seats[1]
	if first.Category != 2 || first.Attributes != seats.Accessible|seats.RestrictedView || first.X != 1.5 || first.Y != -2 || !slices.Equal(first.Tags, []string{"sofa"}) {
		t.Errorf("%+v", first)
	}
	if second.Category != 1 || second.Attributes != seats.Companion || second.Tags != nil {
		t.Errorf("%+v", second)
	}
	if !slices.Equal(l.Categories, []string{"A", "B"}) || !slices.Equal(l.Areas, []seats.LayoutArea{{Name: "Floor", Category: 2, Capacity: 40}}) {
		t.Errorf("%q, %+v", l.Categories, l.Areas)
	}
}

func TestDistanceIsFromWhereEverybodyLooks(t *testing.T) {
	t.Parallel()
	back, front := labelled("B", row(plan.Point{X: 0, Y: 100}, plan.Point{X: 30, Y: 100})), labelled("A", row(plan.Point{X: 0, Y: 60}, plan.Point{X: 30, Y: 60}))
	stage := plan.Shape{Kind: plan.Stage, Outline: []plan.Point{{X: 20, Y: 0}, {X: 40, Y: 0}, {X: 40, Y: 40}, {X: 20, Y: 40}}}
	bar := plan.Shape{Kind: "bar", Outline: []plan.Point{{X: 900, Y: 900}}}
	for name, c := range map[string]struct {
		focus *plan.Point
		drawn []plan.Shape
		want  int32 // of the seat at 30, 60, in thousandths
	}{
		"what the plan says, whatever is drawn": {&plan.Point{X: 0, Y: 20}, []plan.Shape{stage}, 50_000},
		"the middle of the stage":               {nil, []plan.Shape{bar, stage}, 40_000},
		"the front, where no stage is drawn":    {nil, []plan.Shape{bar}, 15_000},
		"the front, where the stage is no more": {nil, []plan.Shape{{Kind: plan.Stage}}, 15_000},
		"further than can be counted":           {&plan.Point{X: -1e6, Y: -2e6}, nil, math.MaxInt32},
	} {
		l := plan.Plan{Focus: c.focus, Decorations: c.drawn, Sections: []plan.Section{{Name: "S", Rows: []plan.Row{back, {Label: "empty"}, front}}}}.Layout()
		if s := l.Seats[3]; s.Y != 60 || s.X != 30 || s.Distance != c.want {
			t.Errorf("%s: %+v, want %d", name, s, c.want)
		}
	}
}

func TestAHouseIsDrawnWithStraightRowsBeforeItsFocus(t *testing.T) {
	t.Parallel()
	house := plan.House{
		Categories: []plan.HouseCategory{{Name: "A", Price: 100}, {Name: "B"}},
		Sections: []plan.HouseSection{
			{Name: "Stalls", Rows: []plan.HouseRow{{Label: "A", Category: "A", Seats: 3}, {Label: "B", Category: "B", Seats: 2, First: 11}}},
			{Name: "Box", Rows: []plan.HouseRow{{Label: "1", Category: "B", Seats: 1}}},
		},
		Areas: []plan.HouseArea{{Name: "Floor", Category: "B", Capacity: 5}},
	}
	if defect := house.Check(); defect != nil {
		t.Fatal(defect)
	}
	l := house.Plan().Layout()
	want := []string{"Stalls A 1: 0.1.0", "Stalls A 2: 0.1.1", "Stalls A 3: 0.1.2", "Stalls B 11: 1.2.0", "Stalls B 12: 1.2.1", "Box 1 1: 0.3.0"}
	if got := told(l); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	var nearest []int32
	for _, i := range []int{1, 0, 2, 3, 4, 5} {
		nearest = append(nearest, l.Seats[i].Distance)
	}
	// A row is left free before the box, which is four behind the focal point.
	if !slices.IsSorted(nearest) || nearest[0] != 1_000 || nearest[1] != nearest[2] || nearest[5] != 4_000 {
		t.Errorf("the distances are %d", nearest)
	}
	if l.Seats[2].Category != 1 || l.Seats[3].Category != 2 || !slices.Equal(l.Areas, []seats.LayoutArea{{Name: "Floor", Category: 2, Capacity: 5}}) {
		t.Errorf("%+v", l)
	}
	p := house.Plan()
	if again, report := read(t, export(t, p), false); report.Errors() > 0 || !slices.Equal(told(again.Layout()), want) {
		t.Errorf("the drawing comes back as %q, %s", told(again.Layout()), tallies(report))
	}
}
