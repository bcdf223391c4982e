package seats

import (
	"cmp"
	"slices"
)

// Spot is where a numbered seat is in its hall, and what it is.
type Spot struct {
	ID         ID
	Section    string
	Line       int32 // index of its row in its section, from the front; rows i and i+1 are neighbours
	Run, Pos   int32 // seats are neighbours if they are of one run and their Pos differs by one; a run lies in one row, a row may have several
	Category   int32
	Channel    int32 // 0: none
	Distance   int32 // from the focal point, 0 or more, in a unit of the hall's own
	X, Y       float64
	Attributes Attributes
	Tags       []string
}

// Vacancy is what a hall has to give at a moment.
type Vacancy struct {
	Free     []bool         // for each seat of Hall.Spots
	Released map[int32]bool // channels that have given their seats to the open sale: as if the seats were in none
}

// Hall is the numbered seats of an event, ordered for choosing among them. It does not change, and any number of goroutines may use it.
type Hall struct {
	spots    []Spot // by id
	slots    []slot // sections by their smallest id, then by line, run and pos; the indexes below are into it
	slotOf   []int32
	runs     []run
	lines    []line
	blocks   []int32 // the first line of each
	sections map[string]int32
	channels []int32
}

type access uint8

const (
	ordinary access = iota
	companion
	accessible
)

// slot is a seat as a search reads it: 50,000 of them are read for one choice.
type slot struct {
	index    int32 // in Hall.spots
	section  int32
	category int32
	channel  int32 // index in Hall.channels
	distance int32
	access   access
	table    bool
	linked   bool // a neighbour of the slot before
	x, y     float64
}

// run is slots lo to hi, hi excluded. A table is sold as a whole.
type run struct {
	lo, hi int32
	table  bool
}

// line is a row, as its runs from lo to hi, hi excluded. One that follows stands directly behind the line before, in the same section.
type line struct {
	lo, hi  int32
	follows bool
}

// blockSeats is about how many seats a block of lines has. A choice in pieces keeps one table of numbers for each block, and traces its
// way through one block at a time, so its memory hardly grows with the hall.
const blockSeats = 1024

// NewHall orders the seats, which come in any order and have ids of their own. If one seat of a run has WholeTable, the run is a table.
func NewHall(spots []Spot) *Hall {
	h := &Hall{spots: slices.Clone(spots), sections: map[string]int32{}}
	slices.SortFunc(h.spots, func(a, b Spot) int { return cmp.Compare(a.ID, b.ID) })
	order := make([]int32, len(h.spots))
	for i, s := range h.spots {
		order[i] = int32(i)
		if _, known := h.sections[s.Section]; !known {
			h.sections[s.Section] = int32(len(h.sections))
		}
		if !slices.Contains(h.channels, s.Channel) {
			h.channels = append(h.channels, s.Channel)
		}
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &h.spots[i], &h.spots[j]
		return cmp.Or(cmp.Compare(h.sections[a.Section], h.sections[b.Section]),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Pos, b.Pos))
	})
	h.slotOf = make([]int32, len(order))
	for p, i := range order {
		h.slotOf[i] = int32(p)
		h.add(int32(p), i)
	}
	for _, r := range h.runs {
		for p := r.lo; p < r.hi; p++ {
			h.slots[p].table = r.table
		}
	}
	return h
}

// add appends seat i as slot p, and opens a run, a line and a block where one begins.
func (h *Hall) add(p, i int32) {
	s := &h.spots[i]
	next := slot{
		index: i, section: h.sections[s.Section], category: s.Category, channel: int32(slices.Index(h.channels, s.Channel)),
		distance: s.Distance, x: s.X, y: s.Y,
	}
	switch {
	case s.Attributes.Has(Accessible):
		next.access = accessible
	case s.Attributes.Has(Companion):
		next.access = companion
	}
	var last Spot
	if p > 0 {
		last = h.spots[h.slots[p-1].index]
	}
	sameSection := p > 0 && last.Section == s.Section
	sameLine := sameSection && last.Line == s.Line
	sameRun := sameLine && last.Run == s.Run
	next.linked = sameRun && s.Pos == last.Pos+1
	h.slots = append(h.slots, next)
	if !sameRun {
		h.runs = append(h.runs, run{lo: p})
	}
	if !sameLine {
		if len(h.blocks) == 0 || p-h.firstSlot(h.blocks[len(h.blocks)-1]) >= blockSeats {
			h.blocks = append(h.blocks, int32(len(h.lines)))
		}
		h.lines = append(h.lines, line{lo: int32(len(h.runs) - 1), follows: sameSection && s.Line == last.Line+1})
	}
	r := &h.runs[len(h.runs)-1]
	r.hi, r.table = p+1, r.table || s.Attributes.Has(WholeTable)
	h.lines[len(h.lines)-1].hi = int32(len(h.runs))
}

func (h *Hall) firstSlot(line int32) int32 { return h.runs[h.lines[line].lo].lo }

// Spots returns the seats by ascending id, which is the order of Vacancy.Free. They are the hall's own and stay as they are.
func (h *Hall) Spots() []Spot { return h.spots }

// Index returns where a seat is in Spots.
func (h *Hall) Index(id ID) (int, bool) {
	if i := int(id) - 1; 0 <= i && i < len(h.spots) && h.spots[i].ID == id {
		return i, true // ids without a gap, as in a hall that was never drawn anew
	}
	return slices.BinarySearchFunc(h.spots, id, func(s Spot, id ID) int { return cmp.Compare(s.ID, id) })
}
