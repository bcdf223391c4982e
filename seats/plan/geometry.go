package plan

import (
	"cmp"
	"math"
	"slices"
)

const (
	// aisle is the gap, in pitches of the section, from which two seats are no neighbours. Rows of an arc grow wider towards the back, by
	// less than half of the pitch in any hall seen; the narrowest aisle is a whole seat.
	aisle = 1.5
	// crowd is the distance, in pitches, under which two seats stand on one another. Rows may stand closer than their seats: half a pitch
	// is met in wide arcs and is no defect.
	crowd = 0.3
	// grain is the smallest distance that a drawing means: coordinates are rounded to it.
	grain = 1e-3
)

// Runs returns, for each row, its seats as runs of neighbours: indices into Seats, in the order in which people sit, broken at aisles.
// It goes by where seats are and never by what they are numbered. A table is one run, around its middle.
func (s Section) Runs() [][][]int {
	rows := make([][]int, len(s.Rows))
	var gaps []float64
	for i, r := range s.Rows {
		rows[i] = r.order()
		if r.Table == "" {
			gaps = append(gaps, r.gaps(rows[i])...)
		}
	}
	pitch := median(gaps)
	runs := make([][][]int, len(rows))
	for i, r := range s.Rows {
		if r.Table != "" || len(rows[i]) == 0 {
			runs[i] = [][]int{rows[i]}
			continue
		}
		reach, from := aisle*r.pitch(rows[i], pitch), 0
		for j, gap := range r.gaps(rows[i]) {
			if gap > reach+grain {
				runs[i] = append(runs[i], rows[i][from:j+1])
				from = j + 1
			}
		}
		runs[i] = append(runs[i], rows[i][from:])
	}
	return runs
}

// order returns the seats of a row from one end to the other.
func (r Row) order() []int {
	listed := make([]int, len(r.Seats))
	for i := range listed {
		listed[i] = i
	}
	if len(listed) < 2 {
		return listed
	}
	var mid Point
	for _, s := range r.Seats {
		mid.X += s.X / float64(len(r.Seats))
		mid.Y += s.Y / float64(len(r.Seats))
	}
	along := slices.Clone(listed)
	if r.Table != "" {
		r.sortBy(along, func(p Point) float64 { return math.Atan2(p.Y-mid.Y, p.X-mid.X) })
		return along
	}
	// The direction in which the seats spread most: the longer axis of their covariance.
	var xx, xy, yy float64
	for _, s := range r.Seats {
		dx, dy := s.X-mid.X, s.Y-mid.Y
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	sin, cos := math.Sincos(math.Atan2(2*xy, xx-yy) / 2)
	r.sortBy(along, func(p Point) float64 { return p.X*cos + p.Y*sin })
	// A row that bends by more than half a circle has no such direction; its file lists it in the order of the seats, which is then the
	// shorter way.
	if total(r.gaps(listed)) < total(r.gaps(along)) {
		return listed
	}
	return along
}

func (r Row) sortBy(list []int, by func(Point) float64) {
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(by(r.Seats[a].Point), by(r.Seats[b].Point)) })
}

func (r Row) gaps(order []int) []float64 {
	if len(order) < 2 {
		return nil
	}
	gaps := make([]float64, len(order)-1)
	for i := range gaps {
		gaps[i] = r.Seats[order[i]].distance(r.Seats[order[i+1]].Point)
	}
	return gaps
}

// pitch is the usual distance of neighbours: of the row itself if it has enough seats to tell, otherwise of the section.
func (r Row) pitch(order []int, section float64) float64 {
	if len(order) < 4 {
		return section
	}
	return median(r.gaps(order))
}

func (p Point) distance(q Point) float64 { return math.Hypot(p.X-q.X, p.Y-q.Y) }

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

func total(list []float64) (sum float64) {
	for _, f := range list {
		sum += f
	}
	return sum
}

// crowded calls fn with each seat of the section that stands on an earlier one. Floors lie above one another, so sections are not compared.
func (s *Section) crowded(fn func(row *Row, seat, earlier *Seat)) {
	var gaps []float64
	for _, r := range s.Rows {
		gaps = append(gaps, r.gaps(r.order())...)
	}
	near := max(crowd*median(gaps), grain)
	type cell struct{ x, y int64 }
	at := func(p Point) cell { return cell{int64(math.Floor(p.X / near)), int64(math.Floor(p.Y / near))} }
	standing := map[cell][]*Seat{} // a cell has few: those in it keep their distance
	find := func(p Point) *Seat {
		c := at(p)
		for x := c.x - 1; x <= c.x+1; x++ {
			for y := c.y - 1; y <= c.y+1; y++ {
				for _, other := range standing[cell{x, y}] {
					if p.distance(other.Point) < near {
						return other
					}
				}
			}
		}
		return nil
	}
	for i := range s.Rows {
		for j := range s.Rows[i].Seats {
			seat := &s.Rows[i].Seats[j]
			if earlier := find(seat.Point); earlier != nil {
				fn(&s.Rows[i], seat, earlier)
				continue
			}
			standing[at(seat.Point)] = append(standing[at(seat.Point)], seat)
		}
	}
}
