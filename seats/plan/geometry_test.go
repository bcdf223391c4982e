package plan_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"seatfence/seats/plan"
)

func row(points ...plan.Point) plan.Row {
	r := plan.Row{}
	for i, p := range points {
		r.Seats = append(r.Seats, plan.Seat{Number: fmt.Sprint(i + 1), Point: p})
	}
	return r
}

func line(xs ...float64) plan.Row {
	var points []plan.Point
	for _, x := range xs {
		points = append(points, plan.Point{X: x})
	}
	return row(points...)
}

func TestNeighboursAreWhoSitsThere(t *testing.T) {
	t.Parallel()
	var round []plan.Point // 300 degrees
	for i := range 31 {
		sin, cos := math.Sincos(float64(i) * 10 * math.Pi / 180)
		round = append(round, plan.Point{X: 100 * cos, Y: 100 * sin})
	}
	all := make([]int, len(round))
	for i := range all {
		all[i] = i
	}
	table := row(plan.Point{}, plan.Point{X: 90, Y: 90}, plan.Point{X: 90}, plan.Point{Y: 90})
	table.Table = plan.TableBySeat
	for name, c := range map[string]struct {
		row  plan.Row
		want [][]int
	}{
		"an aisle":                {line(0, 25, 75, 100, 125), [][]int{{0, 1}, {2, 3, 4}}},
		"odd numbers on the left": {line(50, 75, 25, 100, 0), [][]int{{4, 2, 0, 1, 3}}},
		"more than half a circle": {row(round...), [][]int{all}},
		"upright":                 {row(plan.Point{Y: 50}, plan.Point{Y: 0}, plan.Point{Y: 25}, plan.Point{Y: 75}), [][]int{{1, 2, 0, 3}}},
		"a table":                 {table, [][]int{{0, 2, 1, 3}}},
		"two seats of a box":      {line(0, 100), [][]int{{0}, {1}}},
		"one seat":                {line(7), [][]int{{0}}},
	} {
		// A row of the usual pitch tells what an aisle is to those that are too short to.
		s := plan.Section{Rows: []plan.Row{c.row, line(0, 25, 50, 75, 100)}}
		if got := s.Runs()[0]; !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAislesOfTheRealTheatreBreakRows(t *testing.T) {
	t.Parallel()
	p, _ := read(t, real(t, "revel-teatro-grande.csv"), false)
	runs := p.Sections[0].Runs()[0]
	if len(runs) != 2 || len(runs[0]) != 17 || len(runs[1]) != 17 {
		t.Errorf("the first row of the stalls is %v", runs)
	}
}

func TestRowsAreInTheOrderOfPeople(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{
		{"1", "2", "10"},
		{"A", "B", "Z", "AA", "AB"},
		{"A1", "A2", "A10", "B1"},
		{"I", "II", "IV", "IX", "X", "XL"},
		{"C", "D", "I"},
		{"B", "C", "CC"},
		{"07", "7", "8"},
		{"", "1"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortFunc(got, plan.LabelOrder(got))
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
