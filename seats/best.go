package seats

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of a wish. The time and memory of a choice in pieces grow with the product of ordinary and accessible seats: 100 of each would
// take about two seconds in a hall of 50,000.
const (
	MaxQuantity   = 200
	MaxAccessible = 20
)

// Wish is what a buyer wants of a hall.
type Wish struct {
	Quantity   int     // 1 to MaxQuantity
	Accessible int     // exactly so many of them are accessible seats, up to MaxAccessible. With 0, companion seats are not given either
	Category   int32   // 0: any
	Among      []int32 // categories that may be chosen; nil: all
	Section    string  // "": any
	Together   bool    // rather nothing than apart
	Channels   []int32 // whose seats may be taken, 0 for those of none; nil: all
	Around     []ID    // near these seats instead of the focal point; those that are not of the hall are passed over
	Strict     bool    // only seats in one piece that leave nobody alone
}

// Choice is seats for a wish.
type Choice struct {
	Seats      []ID // by run and position
	Together   bool // they are one piece
	LastResort bool // they leave a seat alone, see Strands
	Pieces     int
}

// Best returns the best free seats for a wish, or false if there are none or the wish is out of bounds. It holds nothing: whether the
// seats are still free, the write that takes them decides.
//
// A piece is as many of the chosen seats as are neighbours in a chain. A table is taken whole or not at all, and is one piece whatever the
// gaps between its seats. The first of these that can be had is chosen, and of several the one with the least cost:
//
//  1. one piece that leaves no seat alone;
//  2. one piece;
//  3. the fewest pieces in one row or in rows directly behind each other, of one section, with at least one seat in each;
//  4. the fewest pieces anywhere.
//
// Strict ends after the first and Together after the second, so a strict choice is always in one piece.
//
// The cost is the sum of the seats' distances: from the focal point, or with Around from the middle of those seats, in thousandths of the
// unit of X and Y; there a seat of a section that none of them is in counts as farther than any other. Among equals it is the choice that
// comes first in the order of sections by smallest id, line, run and pos, which is the order of ids if they run along the rows.
func (h *Hall) Best(v Vacancy, w Wish) (Choice, bool) {
	if w.Quantity < 1 || w.Quantity > MaxQuantity || w.Accessible < 0 || w.Accessible > min(w.Quantity, MaxAccessible) {
		return Choice{}, false
	}
	q := h.search(v, w)
	q.slide()
	switch {
	case q.clean.cost < never:
		return q.choice(q.clean.slots(), 1), true
	case w.Strict:
		return Choice{}, false
	case q.stranding.cost < never:
		return q.choice(q.stranding.slots(), 1), true
	case w.Together || q.fitting[0] < w.Quantity-w.Accessible || q.fitting[1] < w.Accessible:
		return Choice{}, false
	}
	for _, reach := range []reach{neighbouringLines, anywhere} {
		if slots, pieces := q.spread(reach); pieces > 0 {
			return q.choice(slots, pieces), true
		}
	}
	return Choice{}, false
}

// Costs are added up in one number each. A seat costs less than 2^42, so all seats of a wish less than a piece, and all of its pieces less
// than never: comparing sums compares the number of pieces first and then the distances.
const (
	perUnit                   = 1000
	farthest, elsewhere       = 1 << 40, 1 << 41
	piece               int64 = 1 << 50
	never               int64 = 1 << 62
)

// search is one call of Best.
type search struct {
	view
	wish      Wish
	section   int32  // -1: any
	offered   []bool // of each of Hall.channels
	near      *focus // nil: the focal point
	fitting   [2]int // seats that fit, without and with access
	clean     window // the best piece so far that leaves no seat alone
	stranding window // the best of the others
}

// window is slots lo to hi, hi excluded.
type window struct {
	lo, hi int32
	cost   int64
}

// focus is the middle of the seats that others shall be near, and the sections that these are in.
type focus struct {
	x, y     float64
	sections []int32
}

func (h *Hall) search(v Vacancy, w Wish) *search {
	q := &search{
		view: h.view(v), wish: w, section: -1, offered: make([]bool, len(h.channels)), near: h.focus(w.Around),
		clean: window{cost: never}, stranding: window{cost: never},
	}
	for i, c := range q.effective {
		q.offered[i] = w.Channels == nil || slices.Contains(w.Channels, c)
	}
	if w.Section != "" {
		var known bool
		if q.section, known = h.sections[w.Section]; !known {
			clear(q.offered)
		}
	}
	return q
}

func (h *Hall) focus(around []ID) *focus {
	var f focus
	n := 0.0
	for _, id := range around {
		if i, ok := h.Index(id); ok {
			s := &h.slots[h.slotOf[i]]
			f.x, f.y, n = f.x+s.x, f.y+s.y, n+1
			f.sections = append(f.sections, s.section)
		}
	}
	if n == 0 {
		return nil
	}
	f.x, f.y = f.x/n, f.y/n
	return &f
}

func (q *search) fits(s *slot) bool {
	return q.free[s.index] && q.offered[s.channel] &&
		(q.wish.Category == 0 || q.wish.Category == s.category) &&
		(q.wish.Among == nil || slices.Contains(q.wish.Among, s.category)) &&
		(q.section < 0 || q.section == s.section) &&
		(q.wish.Accessible > 0 || s.access == ordinary)
}

func (q *search) cost(s *slot) int64 {
	if q.near == nil {
		return int64(s.distance)
	}
	cost := int64(min(math.Hypot(s.x-q.near.x, s.y-q.near.y)*perUnit, farthest))
	if !slices.Contains(q.near.sections, s.section) {
		cost += elsewhere
	}
	return cost
}

// slide looks at each piece of the hall that is as long as the wish, and counts what fits.
func (q *search) slide() {
	for _, r := range q.runs {
		if r.table {
			if l, ok := q.table(r); ok {
				q.fitting[0] += l.ordinary
				q.fitting[1] += l.accessible
				if l.ordinary+l.accessible == q.wish.Quantity && l.accessible == q.wish.Accessible {
					q.offer(window{r.lo, r.hi, l.cost})
				}
			}
			continue
		}
		q.slideAlong(r)
	}
}

func (q *search) slideAlong(r run) {
	wanted := int32(q.wish.Quantity)
	var w window
	withAccess := 0
	for p := r.lo; p < r.hi; p++ {
		s := &q.slots[p]
		fits := q.fits(s)
		if !fits || !s.linked {
			w, withAccess = window{lo: p}, 0
		}
		if !fits {
			w.lo = p + 1
			continue
		}
		w.hi, w.cost = p+1, w.cost+q.cost(s)
		withAccess += s.accessible()
		q.fitting[s.accessible()]++
		if w.hi-w.lo > wanted {
			first := &q.slots[w.lo]
			w.lo, w.cost = w.lo+1, w.cost-q.cost(first)
			withAccess -= first.accessible()
		}
		if w.hi-w.lo == wanted && withAccess == q.wish.Accessible {
			q.offer(w)
		}
	}
}

// offer keeps the window if it is better than those before. Of a single piece only the two seats at its ends can be left alone.
func (q *search) offer(w window) {
	if w.cost >= q.clean.cost {
		return
	}
	within := func(p int32) bool { return w.lo <= p && p < w.hi }
	left, right := q.neighbours(w.lo)[0], q.neighbours(w.hi - 1)[1]
	if left >= 0 && q.alone(left, within) || right >= 0 && q.alone(right, within) {
		if w.cost < q.stranding.cost {
			q.stranding = w
		}
		return
	}
	q.clean = w
}

// load is how many seats of each sort something takes, and what they cost.
type load struct {
	ordinary, accessible int
	cost                 int64
}

// table returns what a whole table takes; false if it is not all to be had.
func (q *search) table(r run) (load, bool) {
	var l load
	for p := r.lo; p < r.hi; p++ {
		s := &q.slots[p]
		if !q.fits(s) {
			return load{}, false
		}
		l.accessible += s.accessible()
		l.cost += q.cost(s)
	}
	l.ordinary = int(r.hi-r.lo) - l.accessible
	return l, true
}

func (s *slot) accessible() int {
	if s.access == accessible {
		return 1
	}
	return 0
}

func (w window) slots() []int32 {
	slots := make([]int32, 0, w.hi-w.lo)
	for p := w.lo; p < w.hi; p++ {
		slots = append(slots, p)
	}
	return slots
}

// choice makes a choice of slots in ascending order.
func (q *search) choice(slots []int32, pieces int) Choice {
	c := Choice{Together: pieces == 1, Pieces: pieces, LastResort: len(q.strands(slots)) > 0}
	slices.SortFunc(slots, func(i, j int32) int {
		a, b := &q.spots[q.slots[i].index], &q.spots[q.slots[j].index]
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Pos, b.Pos))
	})
	for _, p := range slots {
		c.Seats = append(c.Seats, q.spots[q.slots[p].index].ID)
	}
	return c
}
