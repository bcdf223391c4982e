package seats

import "slices"

// reach is how far the pieces of a choice may lie from each other.
type reach bool

const (
	neighbouringLines reach = false
	anywhere          reach = true
)

// A tally finds the cheapest way to put a wish together from pieces. It goes through the seats from the last to the first and keeps, for
// each number of ordinary and accessible seats up to the wish's (a cell), the least cost of so many among the seats passed. As a piece
// costs more than all distances together, the least cost is also the one with the fewest pieces, and the number of pieces is no dimension
// of its own. Going backwards and preferring, among equals, the way that takes the earlier seat ends with the choice that comes first.
//
// It is the same for both reaches: a line's result is the cheapest way that takes at least one seat of it and goes on with `later`. With
// neighbouring lines that is nothing or the result of the line directly behind; anywhere it is the result of all lines behind, and a line
// may be left out.
type tally struct {
	stride int     // cell = accessible × stride + ordinary
	taken  []int64 // the last seat passed is taken
	left   []int64 // it is not, but another of its line is
	later  []int64 // no seat of its line is
	result []int64 // of the line passed last
	trail  []step  // steps since the recording began
	came   []byte  // a row of cells for each step
	record bool
}

// step is a seat or table that was passed, slots lo to hi, hi excluded. With none it is the end of a line.
type step struct {
	lo, hi int32
	cells  int // how far it is from the cell before it is taken to the cell after
}

// Where a cell's cost came from. The first three are the values of a two-bit field, the last is about tally.left.
const (
	fromTaken byte = iota
	fromLeft
	fromLater
	fromMask  byte = 3
	leftTaken byte = 4
)

func newTally(w Wish) *tally {
	stride := w.Quantity - w.Accessible + 1
	cells := stride * (w.Accessible + 1)
	t := &tally{stride: stride, came: make([]byte, cells)}
	for _, table := range []*[]int64{&t.taken, &t.left, &t.later, &t.result} {
		*table = make([]int64, cells)
	}
	fill(t.result, never)
	return t
}

func fill(table []int64, cost int64) {
	for i := range table {
		table[i] = cost
	}
}

// row returns where a step writes where its cells came from. Without a record, all steps write over the same one.
func (t *tally) row(s step) []byte {
	cells := len(t.taken)
	if !t.record {
		return t.came[:cells]
	}
	t.trail = append(t.trail, s)
	t.came = slices.Grow(t.came, cells)[:len(t.came)+cells]
	return t.came[len(t.came)-cells:]
}

// begin starts a line. Its seats can be joined with nothing, or with the result of the lines passed if it goes on with them.
func (t *tally) begin(goesOn bool) {
	t.later, t.result = t.result, t.later
	if !goesOn {
		fill(t.later, never)
	}
	t.later[0] = 0
	fill(t.taken, never)
	fill(t.left, never)
}

// pass goes by a seat or table. If it is taken after the one passed before, that costs join: a piece, or nothing if the two are neighbours.
// Each cell is read from lower ones, so that going down needs no second table.
func (t *tally) pass(lo, hi int32, l load, join int64) {
	cells := l.accessible*t.stride + l.ordinary
	row := t.row(step{lo, hi, cells})
	for cell, column := len(t.taken)-1, t.stride-1; cell >= 0; cell-- {
		cost, came := never, fromTaken
		if before := cell - cells; before >= 0 && column >= l.ordinary {
			cost = t.taken[before] + join
			if c := t.left[before] + piece; c < cost {
				cost, came = c, fromLeft
			}
			if c := t.later[before] + piece; c < cost {
				cost, came = c, fromLater
			}
			cost = min(cost+l.cost, never)
		}
		if t.taken[cell] <= t.left[cell] {
			t.left[cell] = t.taken[cell]
			came |= leftTaken
		}
		t.taken[cell], row[cell] = cost, came
		if column--; column < 0 {
			column = t.stride - 1
		}
	}
}

// end finishes a line. One that may be left out is as good as what lies behind it.
func (t *tally) end(mayBeLeftOut bool) {
	row := t.row(step{})
	for cell := range t.result {
		cost, came := t.taken[cell], fromTaken
		if t.left[cell] < cost {
			cost, came = t.left[cell], fromLeft
		}
		if mayBeLeftOut && t.later[cell] < cost {
			cost, came = t.later[cell], fromLater
		}
		t.result[cell], row[cell] = cost, came
	}
}

// retrace follows the record from its end, which is the earliest seat, and appends the slots that were taken. It returns the cell that the
// lines behind the record still have to give.
func (t *tally) retrace(cell int, slots []int32) ([]int32, int) {
	from := fromLater
	for i := len(t.trail) - 1; i >= 0 && cell > 0; i-- {
		s, came := t.trail[i], t.came[i*len(t.taken)+cell]
		switch {
		case s.lo == s.hi:
			from = came & fromMask
		case from == fromTaken:
			for p := s.lo; p < s.hi; p++ {
				slots = append(slots, p)
			}
			cell -= s.cells
			from = came & fromMask
		case from == fromLeft && came&leftTaken != 0:
			from = fromTaken
		}
	}
	return slots, cell
}

// spread returns the fewest pieces for the wish, as slots in ascending order and how many pieces; 0 if there are not enough seats within
// the reach.
func (q *search) spread(r reach) ([]int32, int) {
	t := newTally(q.wish)
	wish := len(t.result) - 1
	behind := make([][]int64, len(q.blocks)) // of each block, the result of the lines behind it
	best, first := never, -1
	for b := len(q.blocks) - 1; b >= 0; b-- {
		behind[b] = slices.Clone(t.result)
		lo, hi := q.block(b)
		for i := hi - 1; i >= lo; i-- {
			q.passLine(t, i, r)
			if c := t.result[wish]; c < never && c <= best {
				best, first = c, i
			}
		}
	}
	if first < 0 {
		return nil, 0
	}
	t.record = true
	var slots []int32
	for b, cell := 0, wish; cell > 0; b++ {
		lo, hi := q.block(b)
		if hi <= first {
			continue
		}
		t.trail, t.came = t.trail[:0], t.came[:0]
		copy(t.result, behind[b])
		for i := hi - 1; i >= max(lo, first); i-- {
			q.passLine(t, i, r)
		}
		slots, cell = t.retrace(cell, slots)
	}
	return slots, int(best / piece)
}

// block returns the lines of a block, the second excluded.
func (h *Hall) block(b int) (lo, hi int) {
	if b+1 < len(h.blocks) {
		return int(h.blocks[b]), int(h.blocks[b+1])
	}
	return int(h.blocks[b]), len(h.lines)
}

func (q *search) passLine(t *tally, i int, r reach) {
	t.begin(r == anywhere || i+1 < len(q.lines) && q.lines[i+1].follows)
	for k := q.lines[i].hi - 1; k >= q.lines[i].lo; k-- {
		run := q.runs[k]
		if run.table {
			if l, ok := q.table(run); ok {
				t.pass(run.lo, run.hi, l, piece)
			}
			continue
		}
		join := piece // for the seat at hand
		for p := run.hi - 1; p >= run.lo; p-- {
			s := &q.slots[p]
			if !q.fits(s) {
				join = piece
				continue
			}
			t.pass(p, p+1, load{1 - s.accessible(), s.accessible(), q.cost(s)}, join)
			join = piece
			if s.linked {
				join = 0
			}
		}
	}
	t.end(r == anywhere)
}
