package plan

import (
	"cmp"
	"math"
	"slices"
)

// pitch is the distance of seats and of rows where a sheet places none.
const pitch = 25.0

// layOut orders the rows of a sheet, and places what the sheet does not place.
func (s *sheet) layOut() {
	for i := range s.plan.Sections {
		section := &s.plan.Sections[i]
		s.orderRows(section)
		if s.placed(section) {
			continue
		}
		s.report.defect(NoCoordinates, Warning, section.at.String(), "seats without coordinates; the section is laid out by its rows and numbers: "+excerpt(section.Name))
		for j := range section.Rows {
			row := &section.Rows[j]
			s.orderSeats(row)
			for k := range row.Seats {
				row.Seats[k].Point = Point{pitch * float64(k), pitch * float64(j)}
			}
		}
	}
	if s.shareOrigin() {
		s.report.note("sections have seats in the same places, so their coordinates are their own; they were laid out one behind another")
		s.stack()
	}
}

func (s *sheet) placed(section *Section) bool {
	for _, r := range section.Rows {
		for _, seat := range r.Seats {
			if !s.extras[seat.at].placed {
				return false
			}
		}
	}
	return true
}

func (s *sheet) orderRows(section *Section) {
	labels := make([]string, len(section.Rows))
	for i, r := range section.Rows {
		labels[i] = r.Label
	}
	byLabel := LabelOrder(labels)
	ordered := !slices.ContainsFunc(section.Rows, func(r Row) bool { return math.IsNaN(s.extras[r.Seats[0].at].order) })
	slices.SortStableFunc(section.Rows, func(a, b Row) int {
		if ordered {
			return cmp.Compare(s.extras[a.Seats[0].at].order, s.extras[b.Seats[0].at].order)
		}
		return byLabel(a.Label, b.Label)
	})
}

func (s *sheet) orderSeats(row *Row) {
	ranked := !slices.ContainsFunc(row.Seats, func(seat Seat) bool { return math.IsNaN(s.extras[seat.at].rank) })
	slices.SortStableFunc(row.Seats, func(a, b Seat) int {
		if ranked {
			return cmp.Compare(s.extras[a.at].rank, s.extras[b.at].rank)
		}
		return compareNatural(a.Number, b.Number)
	})
}

// shareOrigin reports whether two sections have a seat in the same place, as when a sheet counts from the corner of each.
func (s *sheet) shareOrigin() bool {
	owner := map[Point]int{}
	for i, section := range s.plan.Sections {
		for _, r := range section.Rows {
			for _, seat := range r.Seats {
				if first, taken := owner[seat.Point]; taken && first != i {
					return true
				}
				owner[seat.Point] = i
			}
		}
	}
	return false
}

// stack moves every section behind the one before it, at a distance of two of its rows.
func (s *sheet) stack() {
	edge := 0.0
	for _, section := range s.plan.Sections {
		top, bottom := math.Inf(1), math.Inf(-1)
		var gaps []float64
		for _, r := range section.Rows {
			gaps = append(gaps, r.gaps(r.order())...)
			for _, seat := range r.Seats {
				if math.Abs(seat.Y) <= maxCoordinate { // the others are defects
					top, bottom = min(top, seat.Y), max(bottom, seat.Y)
				}
			}
		}
		if top > bottom {
			continue
		}
		for _, r := range section.Rows {
			shift(r.Seats, Point{0, edge - top})
		}
		edge += bottom - top + 2*cmp.Or(median(gaps), 1)
	}
}
