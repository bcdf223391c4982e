package plan

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"seatfence/seats"
)

// compose brings all names into Unicode form C, in which they are asked for: some systems write letters and their marks apart.
func (d *draft) compose() {
	fix := func(names ...*string) {
		for _, name := range names {
			*name = norm.NFC.String(*name)
		}
	}
	fix(&d.plan.Name)
	for i := range d.plan.Categories {
		fix(&d.plan.Categories[i].Name)
	}
	for i := range d.plan.Sections {
		section := &d.plan.Sections[i]
		fix(&section.Name)
		for j := range section.Rows {
			row := &section.Rows[j]
			fix(&row.Label)
			for k := range row.Seats {
				fix(&row.Seats[k].Number, &row.Seats[k].Category)
			}
		}
	}
	for i := range d.plan.Areas {
		fix(&d.plan.Areas[i].Name, &d.plan.Areas[i].Category)
	}
}

// tidy brings coordinates to the grain of a drawing, which takes the noise of added floats from them, and reports those that are
// nowhere; they become 0, because neither JSON nor a map has room for them.
func (d *draft) tidy() {
	fix := func(p *Point) (ok bool) {
		ok = true
		for _, f := range []*float64{&p.X, &p.Y} {
			if math.IsNaN(*f) || math.Abs(*f) > maxCoordinate {
				*f, ok = 0, false
			}
			*f = math.Round(*f/grain)/(1/grain) + 0 // -0 becomes 0
		}
		return ok
	}
	detail := fmt.Sprintf("a coordinate is a number between -%d and %d; it was set to 0", int(maxCoordinate), int(maxCoordinate))
	d.plan.each(func(key seats.Place, s *Seat) {
		if !fix(&s.Point) {
			d.report.add(Defect{Code: OutOfRange, Severity: Error, At: s.at.String(), Seat: &key, Detail: detail})
		}
	})
	outline := func(points []Point, at place) {
		bad := false
		for i := range points {
			bad = !fix(&points[i]) || bad
		}
		if bad {
			d.report.defect(OutOfRange, Error, at.String(), detail)
		}
	}
	for _, a := range d.plan.Areas {
		outline(a.Outline, a.at)
	}
	for _, s := range d.plan.Decorations {
		outline(s.Outline, s.at)
	}
	if d.plan.Focus != nil && !fix(d.plan.Focus) {
		d.report.defect(OutOfRange, Error, "/focus", detail)
	}
}

// check reports what is wrong with the plan, whatever file it came from.
func (d *draft) check() {
	d.checkNames()
	d.checkSeats()
	d.checkCategories()
	d.checkAreas()
	for i := range d.plan.Sections {
		s := &d.plan.Sections[i]
		s.crowded(func(row *Row, seat, earlier *Seat) {
			d.report.add(Defect{
				Code: Overlapping, Severity: Warning, At: seat.at.String(), Also: []string{earlier.at.String()},
				Seat: &seats.Place{Section: s.Name, Row: row.Label, Number: seat.Number}, Detail: "the seat stands on another of its section",
			})
		})
	}
}

// checkNames looks at what names categories, sections, areas and rows.
func (d *draft) checkNames() {
	names := map[string]place{}
	one := func(name string, at place, what string) {
		earlier, known := names[name]
		switch {
		case name == "":
			d.report.defect(EmptyName, Error, at.String(), what+" needs a name")
		case known:
			d.report.add(Defect{Code: DuplicateName, Severity: Error, At: at.String(), Also: []string{earlier.String()}, Detail: what + " of this name stands earlier: " + excerpt(name)})
		default:
			names[name] = at
			d.checkText(name, at, nil)
		}
	}
	for _, c := range d.plan.Categories {
		one(c.Name, c.at, "a category")
	}
	clear(names)
	for _, s := range d.plan.Sections {
		one(s.Name, s.at, "a section")
		for _, r := range s.Rows {
			if r.Label == "" {
				d.report.defect(EmptyRowLabel, Warning, r.at.String(), "the row has no label")
			}
			d.checkText(r.Label, r.at, nil)
		}
	}
	for _, a := range d.plan.Areas {
		one(a.Name, a.at, "an area")
	}
	d.checkText(d.plan.Name, place{}, nil)
	for _, c := range d.plan.Categories {
		d.checkText(c.Color, c.at, nil)
	}
	for _, s := range d.plan.Decorations {
		d.checkText(s.Kind, s.at, nil)
		d.checkText(s.Label, s.at, nil)
	}
}

// checkText reports a text that is too long for a ticket, or has characters that no ticket can show or that turn the direction of others.
func (d *draft) checkText(text string, at place, seat *seats.Place) {
	if len(text) > maxName || strings.ContainsFunc(text, unprintable) {
		d.report.add(Defect{
			Code: BadName, Severity: Error, At: at.String(), Seat: seat,
			Detail: fmt.Sprintf("a text has at most %d bytes and no control or direction characters: %s", maxName, excerpt(text)),
		})
	}
}

func unprintable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) || '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069'
}

// shared are the seats that have one value in common.
type shared struct {
	places []string // the first ones
	first  seats.Place
	count  int
}

// values finds which values of seats are shared, in the order of the file.
type values[K comparable] struct {
	byValue map[K]*shared
	order   []K
}

func (v *values[K]) add(value K, key seats.Place, at place) {
	if v.byValue == nil {
		v.byValue = map[K]*shared{}
	}
	s := v.byValue[value]
	if s == nil {
		s = &shared{first: key}
		v.byValue[value] = s
		v.order = append(v.order, value)
	}
	if s.count++; len(s.places) <= maxAlso {
		s.places = append(s.places, at.String())
	}
}

func (v *values[K]) report(r *Report, code Code, detail func(K) string) {
	for _, value := range v.order {
		if s := v.byValue[value]; s.count > 1 {
			r.add(Defect{
				Code: code, Severity: Error, At: s.places[0], Also: s.places[1:], Seat: &s.first, Seats: s.count,
				Detail: fmt.Sprintf("%d seats have %s", s.count, detail(value)),
			})
		}
	}
}

func (d *draft) checkSeats() {
	var labels values[seats.Place]
	var ids values[string]
	d.plan.each(func(key seats.Place, s *Seat) {
		at := s.at.String()
		if s.Number == "" {
			d.report.add(Defect{Code: EmptySeatNumber, Severity: Error, At: at, Seat: &key, Detail: "the seat has no number"})
		} else {
			labels.add(key, key, s.at)
		}
		if s.ID != "" {
			ids.add(s.ID, key, s.at)
		}
		if len(s.Tags) > maxTags {
			d.report.add(Defect{Code: TooManyTags, Severity: Error, At: at, Seat: &key, Detail: fmt.Sprintf("a seat has at most %d tags", maxTags)})
		}
		for _, text := range append([]string{s.Number, s.ID, s.Category}, s.Tags...) {
			d.checkText(text, s.at, &key)
		}
	})
	labels.report(&d.report, DuplicateLabel, func(p seats.Place) string { return "the label " + excerpt(p.Label()) })
	ids.report(&d.report, DuplicateGUID, func(id string) string { return "the id " + excerpt(id) })
	if d.found == 0 && len(d.plan.Areas) == 0 {
		d.report.defect(NoSeats, Error, "", "the plan has neither seats nor areas")
	}
}

func (d *draft) checkCategories() {
	used := map[string]bool{}
	for _, c := range d.plan.Categories {
		used[c.Name] = false
	}
	use := func(name string, at place, seat *seats.Place) {
		if _, known := used[name]; known {
			used[name] = true
			return
		}
		d.report.add(Defect{Code: UnknownCategory, Severity: Error, At: at.String(), Seat: seat, Detail: "no category has the name " + excerpt(name)})
	}
	d.plan.each(func(key seats.Place, s *Seat) { use(s.Category, s.at, &key) })
	for _, a := range d.plan.Areas {
		use(a.Category, a.at, nil)
	}
	for _, c := range d.plan.Categories {
		if !used[c.Name] {
			d.report.defect(UnusedCategory, Warning, c.at.String(), "no seat and no area is in the category "+excerpt(c.Name))
		}
	}
}

func (d *draft) checkAreas() {
	for _, a := range d.plan.Areas {
		if a.Capacity == 0 {
			d.report.defect(NoCapacity, Error, a.at.String(), "the area does not say how many people it has room for: "+excerpt(a.Name))
		}
	}
}
