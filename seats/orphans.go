package seats

import "slices"

// view is a hall at a moment.
type view struct {
	*Hall
	free      []bool
	effective []int32 // of each of Hall.channels: itself, or 0 once it is released
}

func (h *Hall) view(v Vacancy) view {
	effective := slices.Clone(h.channels)
	for i, c := range effective {
		if v.Released[c] {
			effective[i] = 0
		}
	}
	return view{h, v.Free, effective}
}

// Strands returns the seats, by ascending id, that would be left alone if all the picked ones were taken at once. A seat is left alone if
// it is free and not picked, had a free neighbour of its own kind, and all of those are picked. Seats are of one kind if category, channel
// (0 once released) and access (accessible, companion or neither) are the same; any other is a wall, as is a gap or an aisle. A seat of a
// table is never left alone. Ids that are not of the hall are passed over.
func (h *Hall) Strands(v Vacancy, picked []ID) []ID {
	slots := make([]int32, 0, len(picked))
	for _, id := range picked {
		if i, ok := h.Index(id); ok {
			slots = append(slots, h.slotOf[i])
		}
	}
	slices.Sort(slots)
	return h.view(v).strands(slots)
}

// strands is Strands for slots in ascending order.
func (v view) strands(picked []int32) []ID {
	isPicked := func(p int32) bool {
		_, found := slices.BinarySearch(picked, p)
		return found
	}
	var alone []ID
	for _, p := range picked {
		for _, x := range v.neighbours(p) {
			if x >= 0 && !isPicked(x) && v.alone(x, isPicked) {
				alone = append(alone, v.spots[v.slots[x].index].ID)
			}
		}
	}
	slices.Sort(alone)
	return slices.Compact(alone) // a seat between two picked ones was met twice
}

// alone reports whether the free neighbours of x that are of its kind, at least one, are all taken, and x itself is free.
func (v view) alone(x int32, taken func(int32) bool) bool {
	s := &v.slots[x]
	if s.table || !v.free[s.index] {
		return false
	}
	lost := false
	for _, y := range v.neighbours(x) {
		if y < 0 || !v.free[v.slots[y].index] || !v.sameKind(s, &v.slots[y]) {
			continue
		}
		if !taken(y) {
			return false
		}
		lost = true
	}
	return lost
}

func (v view) sameKind(a, b *slot) bool {
	return a.category == b.category && v.effective[a.channel] == v.effective[b.channel] && a.access == b.access
}

// neighbours returns the slots to the left and the right of p, -1 where there is none.
func (h *Hall) neighbours(p int32) [2]int32 {
	sides := [2]int32{-1, -1}
	if h.slots[p].linked {
		sides[0] = p - 1
	}
	if next := p + 1; int(next) < len(h.slots) && h.slots[next].linked {
		sides[1] = next
	}
	return sides
}
