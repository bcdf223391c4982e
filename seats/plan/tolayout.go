package plan

import (
	"math"

	"seatfence/seats"
)

// perUnit is how finely the layout measures distances from the focal point.
const perUnit = 1_000

// Layout is what a sound plan has to sell. Seats that are not for sale are left out and stay a gap between their neighbours.
func (p Plan) Layout() seats.Layout {
	var layout seats.Layout
	category := map[string]int32{}
	for i, c := range p.Categories {
		layout.Categories = append(layout.Categories, c.Name)
		category[c.Name] = int32(i + 1)
	}
	focus, run := p.focalPoint(), int32(0)
	for _, s := range p.Sections {
		for line, runs := range s.Runs() {
			row := s.Rows[line]
			for _, order := range runs {
				run++
				for pos, i := range order {
					seat := row.Seats[i]
					if seat.Inactive {
						continue
					}
					layout.Seats = append(layout.Seats, seats.LayoutSeat{
						Place: seats.Place{Section: s.Name, Row: row.Label, Number: seat.Number}, Category: category[seat.Category],
						Line: int32(line), Run: run, Pos: int32(pos), Distance: int32(min(math.Round(perUnit*seat.distance(focus)), math.MaxInt32)),
						X: seat.X, Y: seat.Y, Attributes: attributes(row, seat), Tags: seat.Tags,
					})
				}
			}
		}
	}
	for _, a := range p.Areas {
		layout.Areas = append(layout.Areas, seats.LayoutArea{Name: a.Name, Category: category[a.Category], Capacity: int32(a.Capacity)})
	}
	return layout
}

func attributes(row Row, seat Seat) (set seats.Attributes) {
	add := func(has bool, attribute seats.Attributes) {
		if has {
			set |= attribute
		}
	}
	add(seat.Accessible, seats.Accessible)
	add(seat.Companion, seats.Companion)
	add(seat.RestrictedView, seats.RestrictedView)
	add(row.Table == TableWhole, seats.WholeTable)
	return set
}

// focalPoint is where everybody looks: as the plan says; or else the middle of its stage; or else a point before the middle of the front,
// which is the row whose seats are highest in the drawing.
func (p Plan) focalPoint() Point {
	if p.Focus != nil {
		return *p.Focus
	}
	for _, shape := range p.Decorations {
		if shape.Kind == Stage && len(shape.Outline) > 0 {
			return middle(shape.Outline)
		}
	}
	front, found := Point{}, false
	for _, s := range p.Sections {
		for _, r := range s.Rows {
			var at []Point
			for _, seat := range r.Seats {
				at = append(at, seat.Point)
			}
			if m := middle(at); len(at) > 0 && (!found || m.Y < front.Y) {
				front, found = m, true
			}
		}
	}
	return front
}

func middle(points []Point) (m Point) {
	for _, p := range points {
		m.X += p.X / float64(len(points))
		m.Y += p.Y / float64(len(points))
	}
	return m
}
