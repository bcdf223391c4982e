package plan

import (
	"fmt"
	"strconv"

	"seatfence/seats"
)

// repair changes what has a plain answer. It makes names unique by a count in parentheses and never touches the first that has one, it
// drops no seat, and it invents no capacity. Every change is in the report.
func (d *draft) repair() {
	d.nameSections()
	for i := range d.plan.Sections {
		d.labelRows(&d.plan.Sections[i])
		d.separate(&d.plan.Sections[i])
	}
	d.replaceIDs()
	d.addCategories()
}

// unique remembers names, and how far it has counted to make one unique.
type unique struct {
	taken map[string]bool
	last  map[string]int
}

func newUnique() unique { return unique{map[string]bool{}, map[string]int{}} }

// name returns want if it is free, or else the first free of "want (2)", "want (3)", …, and takes it.
func (u unique) name(want string) string {
	name := want
	for u.taken[name] {
		u.last[want] = max(u.last[want], 1) + 1
		name = fmt.Sprintf("%s (%d)", want, u.last[want])
	}
	u.taken[name] = true
	return name
}

func (d *draft) nameSections() {
	names := newUnique()
	fix := func(name *string, ordinal string, at place) {
		from, code := *name, DuplicateName
		want := from
		if want == "" {
			code, want = EmptyName, ordinal
		}
		if *name = names.name(want); *name != from {
			d.report.repair(code, at, from, *name)
		}
	}
	for i := range d.plan.Sections {
		fix(&d.plan.Sections[i].Name, fmt.Sprintf("Section %d", i+1), d.plan.Sections[i].at)
	}
	for i := range d.plan.Areas {
		fix(&d.plan.Areas[i].Name, fmt.Sprintf("Area %d", i+1), d.plan.Areas[i].at)
	}
}

// labelRows gives rows and seats that have no name their place in the order as one.
func (d *draft) labelRows(s *Section) {
	labels := newUnique()
	for _, r := range s.Rows {
		labels.taken[r.Label] = true
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		if r.Label == "" {
			r.Label = labels.name(strconv.Itoa(i + 1))
			d.report.repair(EmptyRowLabel, r.at, "", r.Label)
		}
		numbers := newUnique()
		for _, seat := range r.Seats {
			numbers.taken[seat.Number] = true
		}
		for j := range r.Seats {
			if seat := &r.Seats[j]; seat.Number == "" {
				seat.Number = numbers.name(strconv.Itoa(j + 1))
				d.report.repair(EmptySeatNumber, seat.at, "", seat.Number)
			}
		}
	}
}

// separate gives a row another label if an earlier one of the section has a seat of the same label, and a seat another number if its own
// row has the number twice.
func (d *draft) separate(s *Section) {
	taken := map[[2]string]bool{} // row, number
	labels := newUnique()
	for _, r := range s.Rows {
		labels.taken[r.Label] = true
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		numbers, twice := newUnique(), make([]int, 0)
		for j, seat := range r.Seats {
			if numbers.taken[seat.Number] {
				twice = append(twice, j)
			}
			numbers.taken[seat.Number] = true
		}
		for _, j := range twice {
			seat := &r.Seats[j]
			from := seat.Number
			seat.Number = numbers.name(from)
			d.report.repair(DuplicateLabel, seat.at, from, seat.Number)
		}
		for _, seat := range r.Seats {
			if taken[[2]string{r.Label, seat.Number}] {
				from := r.Label
				r.Label = labels.name(from)
				d.report.repair(DuplicateLabel, r.at, from, r.Label)
				break
			}
		}
		for _, seat := range r.Seats {
			taken[[2]string{r.Label, seat.Number}] = true
		}
	}
}

// replaceIDs gives seats of a shared id the second one of the file if it is theirs alone, or none: the key of a seat does without.
func (d *draft) replaceIDs() {
	count := map[string]int{}
	d.plan.each(func(_ seats.Place, s *Seat) {
		count[s.ID]++
		if s.spareID != s.ID {
			count[s.spareID]++
		}
	})
	d.plan.each(func(_ seats.Place, s *Seat) {
		if s.ID == "" || count[s.ID] == 1 {
			return
		}
		from := s.ID
		if s.ID = s.spareID; count[s.ID] != 1 {
			s.ID = ""
		}
		d.report.repair(DuplicateGUID, s.at, from, s.ID)
	})
}

// addCategories makes categories that seats name and the file does not. What names none is in the only category, or in Standard.
func (d *draft) addCategories() {
	known := map[string]bool{}
	for _, c := range d.plan.Categories {
		known[c.Name] = true
	}
	fallback := standard
	if len(d.plan.Categories) == 1 {
		fallback = d.plan.Categories[0].Name
	}
	fix := func(name *string, at place) {
		if known[*name] {
			return
		}
		from := *name
		if *name == "" {
			*name = fallback
		}
		if !known[*name] && len(known) >= maxCategories {
			*name = from // stays a defect
			return
		}
		d.category(*name, at)
		known[*name] = true
		d.report.repair(UnknownCategory, at, from, *name)
	}
	d.plan.each(func(_ seats.Place, s *Seat) { fix(&s.Category, s.at) })
	for i := range d.plan.Areas {
		fix(&d.plan.Areas[i].Category, d.plan.Areas[i].at)
	}
}
