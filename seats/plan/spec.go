package plan

import (
	"fmt"
	"math"

	"seatfence/seats"
)

// Sizes that a parametric spec leaves out, in its unit.
const (
	specPitch = 28.0
	specInset = 19.0 // of a grid's first seat from the section's position
	specArea  = 250.0
)

// specSection is a section as a spec has it: numbers that seats are made of.
type specSection struct {
	name, kind          string
	position            Point
	rows, perRow        int
	spacing             Point
	radius, arc, depth  float64
	rowNames, seatNames numbering
	skip, flags         []selector
	size                Point
	outline             []Point
	capacity            int
	at                  place
}

// selector picks seats of a row, or all of it if numbers is nil.
type selector struct {
	row     string
	numbers []string
	mark    Seat // its flags
	at      place
}

// readSpec reads a parametric spec: sections that are a grid, an arc or general admission, from which the seats are made.
func (c *cursor) readSpec() {
	floor := 0 // capacity of the only area, where the spec gives it for the whole house
	c.category(standard, place{})
	c.report.note("the format has no categories; everything is in " + standard)
	c.object(func(key string) {
		switch key {
		case "schema":
			c.object(func(key string) {
				switch key {
				case "name":
					c.plan.Name = c.text()
				case "gaCapacity":
					floor = c.whole()
				default:
					c.skip()
				}
			})
		case "sections":
			c.array(func() { c.place(c.specSection()) })
		case "shapes":
			c.array(func() { c.addShape(c.specShape()) })
		default:
			c.skip()
		}
	})
	if len(c.plan.Areas) == 1 && c.plan.Areas[0].Capacity == 0 {
		c.plan.Areas[0].Capacity = floor
	}
}

func (c *cursor) specSection() specSection {
	s := specSection{
		kind: "grid", spacing: Point{specPitch, specPitch}, arc: 90, depth: specPitch, size: Point{specArea, specArea}, at: c.here(),
		rowNames: numbering{step: 1}, seatNames: numbering{step: 1},
	}
	c.object(func(key string) {
		switch key {
		case "name":
			s.name = c.text()
		case "type":
			s.kind = c.text()
		case "position":
			s.position = c.point()
		case "rows":
			s.rows = c.whole()
		case "seatsPerRow":
			s.perRow = c.whole()
		case "spacing":
			s.spacing = c.point()
		case "radius":
			s.radius = c.number()
		case "arcDegrees":
			s.arc = c.number()
		case "rowSpacing":
			s.depth = c.number()
		case "numbering":
			c.object(func(key string) {
				switch key {
				case "rows":
					s.rowNames = c.numbering("toTop")
				case "seats":
					s.seatNames = c.numbering("toLeft")
				default:
					c.skip()
				}
			})
		case "skip":
			c.array(func() { s.skip = append(s.skip, c.selector()) })
		case "flags":
			c.array(func() { s.flags = append(s.flags, c.selector()) })
		case "width":
			s.size.X = c.number()
		case "height":
			s.size.Y = c.number()
		case "points":
			s.outline = c.points()
		case "capacity":
			s.capacity = c.whole()
		default:
			c.skip()
		}
	})
	return s
}

// numbering reads how rows or seats are named; backwards is the direction that turns the names around.
func (c *cursor) numbering(backwards string) numbering {
	n := numbering{step: 1}
	c.object(func(key string) {
		switch key {
		case "format":
			n.format = c.text()
		case "from":
			n.from = c.text()
		case "step":
			n.step = c.whole()
		case "direction":
			n.backwards = c.text() == backwards
		default:
			c.skip()
		}
	})
	return n
}

func (c *cursor) selector() selector {
	s := selector{at: c.here()}
	c.object(func(key string) {
		switch key {
		case "row":
			s.row = c.text()
		case "seats":
			s.numbers = []string{}
			c.array(func() { s.numbers = append(s.numbers, c.text()) })
		case "accessible":
			s.mark.Accessible = c.flag()
		case "companion":
			s.mark.Companion = c.flag()
		case "restrictedView":
			s.mark.RestrictedView = c.flag()
		case "hidden":
			s.mark.Inactive = c.flag()
		case "marked":
			if c.flag() {
				s.mark.Tags = []string{"marked"}
			}
		default:
			c.skip()
		}
	})
	return s
}

func (c *cursor) specShape() Shape {
	s := Shape{Kind: "decoration", at: c.here()}
	var origin, size Point
	var angle float64
	c.object(func(key string) {
		switch key {
		case "type":
			if kind := c.text(); kind != "shape" {
				s.Kind = kind
			}
		case "text":
			s.Label = c.text()
		case "position":
			origin = c.point()
		case "width":
			size.X = c.number()
		case "height":
			size.Y = c.number()
		case "angle":
			angle = c.number()
		case "points":
			s.Outline = c.points()
		default:
			c.skip()
		}
	})
	if s.Outline == nil {
		s.Outline = rectangle(size.X, size.Y)
	}
	s.Outline = moved(turned(s.Outline, angle), origin)
	return s
}

// place puts a section into the plan.
func (c *cursor) place(s specSection) {
	switch s.kind {
	case "ga":
		if s.outline == nil {
			s.outline = rectangle(s.size.X, s.size.Y)
		}
		c.addArea(Area{Name: s.name, Category: standard, Capacity: s.capacity, Outline: moved(s.outline, s.position), at: s.at})
		return
	case "grid", "arc":
	default:
		c.report.defect(WrongType, Error, s.at.pointer+"/type", "a section is a grid, an arc or ga, and not "+excerpt(s.kind))
		return
	}
	if s.rows == 0 || s.perRow == 0 {
		c.report.defect(WrongType, Error, s.at.pointer, "rows and seatsPerRow are whole numbers from 1 up")
		return
	}
	// What cannot fit whatever is skipped is counted and not made: making it again and again would take minutes.
	if whole := s.rows * s.perRow; c.dead || c.rows+s.rows > maxRows || c.found+whole > seats.MaxSeats+maxPicks {
		c.room(min(whole, 1e12)) // a million such sections do not overflow
		c.rows += s.rows
		return
	}
	c.fill(s)
}

// fill makes the seats of a grid or an arc.
func (c *cursor) fill(s specSection) {
	rowNames, err := s.rowNames.names(s.rows)
	if err != nil {
		c.report.defect(WrongType, Error, s.at.pointer+"/numbering/rows", err.Error())
	}
	seatNames, err := s.seatNames.names(s.perRow)
	if err != nil {
		c.report.defect(WrongType, Error, s.at.pointer+"/numbering/seats", err.Error())
	}
	skipped, marks := c.selected(s.skip, rowNames, seatNames), c.selected(s.flags, rowNames, seatNames)
	section := Section{Name: s.name, at: s.at}
	count := s.rows*s.perRow - len(skipped)
	fits := c.room(count)
	if c.rows += s.rows; !fits || c.rows > maxRows {
		return
	}
	for i, label := range rowNames {
		row := Row{Label: label, at: s.at}
		for j, number := range seatNames {
			if _, gone := skipped[[2]int{i, j}]; gone {
				continue
			}
			seat := marks[[2]int{i, j}]
			seat.Number, seat.Category, seat.Point, seat.at = number, standard, s.seat(i, j), s.at
			row.Seats = append(row.Seats, seat)
		}
		if len(row.Seats) == 0 {
			c.rows--
			continue
		}
		section.Rows = append(section.Rows, row)
	}
	c.addSection(section)
}

// seat is where the seat of a row is. An arc is centred on the section's position and open to the top.
func (s specSection) seat(row, seat int) Point {
	if s.kind == "grid" {
		return Point{s.position.X + specInset + float64(seat)*s.spacing.X, s.position.Y + specInset + float64(row)*s.spacing.Y}
	}
	degrees := 90.0
	if s.perRow > 1 {
		degrees += s.arc * (float64(seat)/float64(s.perRow-1) - 0.5)
	}
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	radius := s.radius + float64(row)*s.depth
	return Point{s.position.X + radius*cos, s.position.Y + radius*sin}
}

// selected maps the row and seat that selectors pick to their marks. A selector that picks nothing is a warning.
func (c *cursor) selected(list []selector, rowNames, seatNames []string) map[[2]int]Seat {
	picked := map[[2]int]Seat{}
	rows, numbers := indexes(rowNames), indexes(seatNames)
	for _, s := range list {
		row, known := rows[s.row]
		if !known {
			c.report.defect(NoSuchSeat, Warning, s.at.pointer+"/row", "the section has no row "+excerpt(s.row))
			continue
		}
		if s.numbers == nil {
			s.numbers = seatNames
		}
		if c.picks += len(s.numbers) + 1; c.picks > maxPicks {
			c.fatal(TooLarge, s.at.pointer, fmt.Sprintf("skip and flags name more than %d seats", maxPicks))
			break
		}
		for i, number := range s.numbers {
			if seat, known := numbers[number]; known {
				picked[[2]int{row, seat}] = picked[[2]int{row, seat}].with(s.mark)
			} else {
				c.report.defect(NoSuchSeat, Warning, fmt.Sprintf("%s/seats/%d", s.at.pointer, i), "the section has no seat "+excerpt(number))
			}
		}
	}
	return picked
}

// with is a seat with the marks of another as well.
func (s Seat) with(mark Seat) Seat {
	s.Accessible = s.Accessible || mark.Accessible
	s.Companion = s.Companion || mark.Companion
	s.RestrictedView = s.RestrictedView || mark.RestrictedView
	s.Inactive = s.Inactive || mark.Inactive
	if mark.Tags != nil {
		s.Tags = mark.Tags
	}
	return s
}

func indexes(names []string) map[string]int {
	byName := make(map[string]int, len(names))
	for i, name := range names {
		byName[name] = i
	}
	return byName
}
