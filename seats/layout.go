package seats

import "slices"

// Attributes is what there is to know of a seat beside its place, as a set of bits.
type Attributes int16

// The attributes. A seat with WholeTable is sold only with all others of its run.
const (
	Accessible Attributes = 1 << iota
	Companion
	RestrictedView
	WholeTable
)

// Has reports whether all of the given attributes are in the set.
func (a Attributes) Has(of Attributes) bool { return a&of == of }

// MaxSeats is how many seats and places an event can have.
const MaxSeats = 60_000

// Layout is what an event has to sell, and where each of it is. Seats get their ids in the order in which they stand here, which runs
// along the rows, so that neighbours have neighbouring ids. Categories are named by their index from 1.
type Layout struct {
	Categories []string
	Seats      []LayoutSeat
	Areas      []LayoutArea
}

// WholeTables reports whether some of the seats are sold only with all of their table.
func (l Layout) WholeTables() bool {
	return slices.ContainsFunc(l.Seats, func(s LayoutSeat) bool { return s.Attributes.Has(WholeTable) })
}

// LayoutSeat is a numbered seat. Seats are neighbours if they are of one run and their Pos differs by one. Distance is from the focal
// point, in a unit of the layout's own.
type LayoutSeat struct {
	Place
	Category   int32
	Line       int32 // index of the row in its section, from the front
	Run        int32 // a row, or the part of one between two aisles; from 1 over the whole layout
	Pos        int32 // in the run; a seat that is not for sale leaves a gap
	Distance   int32
	X, Y       float64
	Attributes Attributes
	Tags       []string
}

// LayoutArea is a floor of Capacity places without numbers.
type LayoutArea struct {
	Name     string
	Category int32
	Capacity int32
}
