package seats_test

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"seatfence/seats"
)

// brute chooses by trying every set of seats against the words of the rules, one by one. It shares nothing with the package but types.
type brute struct {
	spots []seats.Spot // sections by smallest id, line, run, pos
	free  []bool
	open  map[int32]bool
	wish  seats.Wish
}

// rated is a set of seats, as bits over brute.spots, and all that ranks it.
type rated struct {
	set           uint
	stage, pieces int
	cost          int64
	strands       bool
}

func newBrute(spots []seats.Spot, v seats.Vacancy, w seats.Wish) *brute {
	byID := slices.SortedFunc(slices.Values(spots), func(a, b seats.Spot) int { return cmp.Compare(a.ID, b.ID) })
	rank, free := map[string]int{}, map[seats.ID]bool{}
	for i, s := range byID {
		free[s.ID] = v.Free[i]
		if _, ok := rank[s.Section]; !ok {
			rank[s.Section] = i
		}
	}
	b := &brute{spots: byID, open: v.Released, wish: w}
	slices.SortStableFunc(b.spots, func(a, b seats.Spot) int {
		return cmp.Or(cmp.Compare(rank[a.Section], rank[b.Section]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Pos, b.Pos))
	})
	for _, s := range b.spots {
		b.free = append(b.free, free[s.ID])
	}
	return b
}

func (b *brute) channel(s seats.Spot) int32 {
	if b.open[s.Channel] {
		return 0
	}
	return s.Channel
}

func (b *brute) table(run int32) bool {
	return slices.ContainsFunc(b.spots, func(s seats.Spot) bool { return s.Run == run && s.Attributes.Has(seats.WholeTable) })
}

func neighbours(a, b seats.Spot) bool {
	return a.Run == b.Run && (a.Pos-b.Pos == 1 || b.Pos-a.Pos == 1)
}

func (b *brute) eligible(i int) bool {
	s, w := b.spots[i], b.wish
	protected := s.Attributes.Has(seats.Accessible) || s.Attributes.Has(seats.Companion)
	return b.free[i] &&
		(w.Category == 0 || s.Category == w.Category) &&
		(w.Section == "" || s.Section == w.Section) &&
		(w.Channels == nil || slices.Contains(w.Channels, b.channel(s))) &&
		(!protected || w.Accessible > 0)
}

func (b *brute) kind(s seats.Spot) [3]int32 {
	access := int32(0)
	if s.Attributes.Has(seats.Accessible) {
		access = 1
	} else if s.Attributes.Has(seats.Companion) {
		access = 2
	}
	return [3]int32{s.Category, b.channel(s), access}
}

func (b *brute) stranded(set uint) (ids []seats.ID) {
	for i, x := range b.spots {
		if !b.free[i] || set>>i&1 == 1 || b.table(x.Run) {
			continue
		}
		before, after := 0, 0
		for j, y := range b.spots {
			if b.free[j] && neighbours(x, y) && b.kind(x) == b.kind(y) {
				before++
				if set>>j&1 == 0 {
					after++
				}
			}
		}
		if before > 0 && after == 0 {
			ids = append(ids, x.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (b *brute) cost(set uint) (total int64) {
	var x, y, n float64
	sections := map[string]bool{}
	for _, s := range b.spots {
		if slices.Contains(b.wish.Around, s.ID) {
			x, y, n, sections[s.Section] = x+s.X, y+s.Y, n+1, true
		}
	}
	for i, s := range b.spots {
		switch {
		case set>>i&1 == 0:
		case n == 0:
			total += int64(s.Distance)
		default:
			total += int64(1000 * math.Hypot(s.X-x/n, s.Y-y/n))
			if !sections[s.Section] {
				total += 1 << 41
			}
		}
	}
	return total
}

// pieces counts the chosen seats that have no chosen neighbour on their left, and a table once.
func (b *brute) pieces(set uint) (n int) {
	tables := map[int32]bool{}
	for i, s := range b.spots {
		if set>>i&1 == 0 {
			continue
		}
		if b.table(s.Run) {
			tables[s.Run] = true
			continue
		}
		if !slices.ContainsFunc(b.chosen(set), func(o seats.Spot) bool { return o.Run == s.Run && o.Pos == s.Pos-1 }) {
			n++
		}
	}
	return n + len(tables)
}

func (b *brute) chosen(set uint) (list []seats.Spot) {
	for i, s := range b.spots {
		if set>>i&1 == 1 {
			list = append(list, s)
		}
	}
	return list
}

// allowed says whether the set is a choice at all.
func (b *brute) allowed(set uint) bool {
	withAccess := 0
	for i, s := range b.spots {
		in := set>>i&1 == 1
		if in && !b.eligible(i) {
			return false
		}
		if in && s.Attributes.Has(seats.Accessible) {
			withAccess++
		}
		for j, o := range b.spots {
			if in && o.Run == s.Run && set>>j&1 == 0 && b.table(s.Run) {
				return false
			}
		}
	}
	return withAccess == b.wish.Accessible
}

// lines says whether the set is in consecutive lines of one section.
func (b *brute) lines(set uint) bool {
	list := b.chosen(set)
	used := map[int32]bool{}
	low, high := list[0].Line, list[0].Line
	for _, s := range list {
		if s.Section != list[0].Section {
			return false
		}
		used[s.Line] = true
		low, high = min(low, s.Line), max(high, s.Line)
	}
	return int(high-low)+1 == len(used)
}

// better compares by the stated order; equal sets of seats aside, one is always better. The lowest differing bit is the earlier seat.
func (r rated) better(o rated) bool {
	if c := cmp.Or(cmp.Compare(r.stage, o.stage), cmp.Compare(r.pieces, o.pieces), cmp.Compare(r.cost, o.cost)); c != 0 {
		return c < 0
	}
	return r.set>>bits.TrailingZeros(r.set^o.set)&1 == 1
}

func (b *brute) best() (best rated, found bool) {
	for set := uint(1); set < 1<<len(b.spots); set++ {
		if bits.OnesCount(set) != b.wish.Quantity || !b.allowed(set) {
			continue
		}
		r := rated{set: set, pieces: b.pieces(set), cost: b.cost(set), strands: len(b.stranded(set)) > 0}
		switch {
		case r.pieces == 1 && !r.strands:
			r.stage = 1
		case b.wish.Strict:
			continue
		case r.pieces == 1:
			r.stage = 2
		case b.wish.Together:
			continue
		case b.lines(set):
			r.stage = 3
		default:
			r.stage = 4
		}
		if !found || r.better(best) {
			best, found = r, true
		}
	}
	return best, found
}

func (b *brute) setOf(ids []seats.ID) (set uint) {
	for i, s := range b.spots {
		if slices.Contains(ids, s.ID) {
			set |= 1 << i
		}
	}
	return set
}

// smallHall makes up to 12 seats of everything that the rules speak of.
func smallHall(r *rand.Rand) ([]seats.Spot, seats.Vacancy) {
	var spots []seats.Spot
	n, run := 12-r.IntN(12)*r.IntN(2), int32(0)
	alike := r.IntN(3) == 0 // one category, no channels: more choice
	access := r.IntN(2) == 0
	for section := range 1 + r.IntN(3) {
		line := int32(r.IntN(2))
		for range 1 + r.IntN(4) {
			for range 1 + r.IntN(2) {
				run++
				var table seats.Attributes
				if r.IntN(7) == 0 {
					table = seats.WholeTable
				}
				pos := int32(r.IntN(3))
				for range 1 + r.IntN(5) {
					s := seats.Spot{
						Section: string(rune('A' + section)), Line: line, Run: run, Pos: pos, Category: 1, Distance: int32(r.IntN(6)),
						X: float64(r.IntN(8)), Y: float64(r.IntN(8)), Attributes: table,
					}
					if !alike {
						s.Category, s.Channel = 1+int32(r.IntN(5)/4), max(0, int32(r.IntN(7))-4)
					}
					if access {
						s.Attributes |= []seats.Attributes{0, 0, 0, seats.Accessible, seats.Companion, seats.Accessible | seats.RestrictedView}[r.IntN(6)]
					}
					spots = append(spots, s)
					pos += 1 + int32(r.IntN(6)/5)
				}
			}
			line += 1 + int32(r.IntN(5)/4)
		}
	}
	spots = spots[:min(n, len(spots))]
	ids := r.Perm(3 * len(spots))
	if r.IntN(2) == 0 {
		slices.Sort(ids)
	}
	v := seats.Vacancy{Released: map[int32]bool{}}
	odds := 3 + r.IntN(4)
	for i := range spots {
		spots[i].ID = seats.ID(ids[i] + 1)
		v.Free = append(v.Free, r.IntN(6) < odds)
	}
	if r.IntN(2) == 0 {
		v.Released[1+int32(r.IntN(2))] = true
	}
	r.Shuffle(len(spots), func(i, j int) { spots[i], spots[j] = spots[j], spots[i] })
	return spots, v
}

func someWish(r *rand.Rand, spots []seats.Spot) seats.Wish {
	w := seats.Wish{Quantity: 1 + r.IntN(5), Together: r.IntN(5) == 0, Strict: r.IntN(8) == 0}
	if r.IntN(4) == 0 {
		w.Accessible = r.IntN(min(w.Quantity, 3) + 1)
	}
	if r.IntN(6) == 0 {
		w.Category = 1 + int32(r.IntN(2))
	}
	if r.IntN(6) == 0 {
		w.Section = string(rune('A' + r.IntN(4)))
	}
	if r.IntN(5) == 0 {
		w.Channels = [][]int32{{}, {0}, {1}, {0, 1}, {2, 1}, {0, 2}}[r.IntN(6)]
	}
	for range max(0, r.IntN(6)-3) {
		w.Around = append(w.Around, spots[r.IntN(len(spots))].ID)
	}
	if r.IntN(20) == 0 {
		w.Around = append(w.Around, 999)
	}
	return w
}
