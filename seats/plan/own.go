package plan

import "fmt"

// readOwn reads our own format, as Export writes it and docs/plan.md describes it.
func (c *cursor) readOwn() {
	c.object(func(key string) {
		switch key {
		case "format":
			if version := c.text(); version != Format {
				c.fatal(NotReadable, string(c.path), fmt.Sprintf("the format is %s, and only %s is known", excerpt(version), Format))
			}
		case "name":
			c.plan.Name = c.text()
		case "focus":
			p := c.point()
			c.plan.Focus = &p
		case "categories":
			c.array(func() { c.addCategory(c.ownCategory()) })
		case "sections":
			c.array(func() { c.addSection(c.ownSection()) })
		case "areas":
			c.array(func() { c.addArea(c.ownArea()) })
		case "decorations":
			c.array(func() { c.addShape(c.ownShape()) })
		default:
			c.keep(&c.plan.Extra, key)
		}
	})
}

func (c *cursor) ownCategory() Category {
	cat := Category{at: c.here()}
	c.object(func(key string) {
		switch key {
		case "name":
			cat.Name = c.text()
		case "color":
			cat.Color = c.text()
		default:
			c.unknown()
		}
	})
	return cat
}

func (c *cursor) ownSection() Section {
	s := Section{at: c.here()}
	c.object(func(key string) {
		switch key {
		case "name":
			s.Name = c.text()
		case "rows":
			c.array(func() {
				if r := c.ownRow(); c.rowRoom() {
					s.Rows = append(s.Rows, r)
				}
			})
		default:
			c.keep(&s.Extra, key)
		}
	})
	return s
}

func (c *cursor) ownRow() Row {
	r := Row{at: c.here()}
	c.object(func(key string) {
		switch key {
		case "label":
			r.Label = c.text()
		case "table":
			r.Table = Table(c.text())
			if r.Table != TableBySeat && r.Table != TableWhole {
				c.report.defect(WrongType, Error, string(c.path), fmt.Sprintf("a table is sold by %q or %q", TableBySeat, TableWhole))
				r.Table = ""
			}
		case "seats":
			c.array(func() {
				if seat := c.ownSeat(); c.room(1) {
					r.Seats = append(r.Seats, seat)
				}
			})
		default:
			c.keep(&r.Extra, key)
		}
	})
	return r
}

func (c *cursor) ownSeat() Seat {
	s := Seat{at: c.here()}
	c.object(func(key string) {
		switch key {
		case "number":
			s.Number = c.text()
		case "id":
			s.ID = c.text()
		case "category":
			s.Category = c.text()
		case "x":
			s.X = c.number()
		case "y":
			s.Y = c.number()
		case "accessible":
			s.Accessible = c.flag()
		case "companion":
			s.Companion = c.flag()
		case "restricted_view":
			s.RestrictedView = c.flag()
		case "inactive":
			s.Inactive = c.flag()
		case "tags":
			s.Tags = c.tags()
		default:
			c.keep(&s.Extra, key)
		}
	})
	return s
}

func (c *cursor) ownArea() Area {
	a := Area{at: c.here()}
	c.object(func(key string) {
		switch key {
		case "name":
			a.Name = c.text()
		case "category":
			a.Category = c.text()
		case "capacity":
			a.Capacity = c.whole()
		case "outline":
			a.Outline = c.points()
		default:
			c.keep(&a.Extra, key)
		}
	})
	return a
}

func (c *cursor) ownShape() Shape {
	s := Shape{at: c.here()}
	c.object(func(key string) {
		switch key {
		case "kind":
			s.Kind = c.text()
		case "label":
			s.Label = c.text()
		case "outline":
			s.Outline = c.points()
		default:
			c.unknown()
		}
	})
	return s
}
