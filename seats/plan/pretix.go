package plan

import "math"

// readPretix reads a seating plan of pretix: zones of rows of seats, each placed relative to what it is in.
func (c *cursor) readPretix() {
	c.object(func(key string) {
		switch key {
		case "name":
			c.plan.Name = c.text()
		case "categories":
			c.array(func() {
				cat := Category{at: c.here()}
				c.object(func(key string) {
					switch key {
					case "name":
						cat.Name = c.text()
					case "color":
						cat.Color = c.text()
					default:
						c.skip()
					}
				})
				c.addCategory(cat)
			})
		case "zones":
			c.array(c.pretixZone)
		default:
			c.skip()
		}
	})
}

func (c *cursor) pretixZone() {
	zone := Section{at: c.here()}
	var origin Point
	var shapes []Shape
	c.object(func(key string) {
		switch key {
		case "name":
			zone.Name = c.text()
		case "position":
			origin = c.point()
		case "rows":
			c.array(func() {
				if r := c.pretixRow(); c.rowRoom() {
					zone.Rows = append(zone.Rows, r)
				}
			})
		case "areas":
			c.array(func() {
				if s := c.pretixShape(); len(shapes) <= maxShapes {
					shapes = append(shapes, s)
				}
			})
		default:
			c.skip()
		}
	})
	for _, r := range zone.Rows {
		shift(r.Seats, origin)
	}
	if len(zone.Rows) > 0 {
		c.addSection(zone)
	}
	for _, s := range shapes {
		s.Outline = moved(s.Outline, origin)
		c.addShape(s)
	}
}

func (c *cursor) pretixRow() Row {
	row := Row{at: c.here()}
	var origin Point
	c.object(func(key string) {
		switch key {
		case "row_number":
			row.Label = c.text()
		case "position":
			origin = c.point()
		case "seats":
			c.array(func() {
				if s := c.pretixSeat(); c.room(1) {
					row.Seats = append(row.Seats, s)
				}
			})
		default:
			c.skip()
		}
	})
	shift(row.Seats, origin)
	return row
}

func (c *cursor) pretixSeat() Seat {
	s := Seat{at: c.here()}
	c.object(func(key string) {
		switch key {
		case "seat_number":
			s.Number = c.text()
		case "seat_guid":
			s.ID = c.text()
		case "uuid":
			s.spareID = c.text()
		case "category":
			s.Category = c.text()
		case "position":
			s.Point = c.point()
		default:
			c.skip()
		}
	})
	return s
}

// pretixShape reads an area, which in this format is decoration. Its position is a corner of a rectangle and the centre of what is round.
func (c *cursor) pretixShape() Shape {
	s := Shape{Kind: "decoration", at: c.here()}
	var origin Point
	var rotation float64
	c.object(func(key string) {
		switch key {
		case "position":
			origin = c.point()
		case "rotation":
			rotation = c.number()
		case "rectangle":
			w, h := c.size()
			s.Outline = rectangle(w, h)
		case "circle":
			c.object(func(key string) {
				if key != "radius" {
					c.skip()
					return
				}
				r := c.number()
				s.Outline = ellipse(r, r)
			})
		case "ellipse":
			c.object(func(key string) {
				if key != "radius" {
					c.skip()
					return
				}
				r := c.point()
				s.Outline = ellipse(r.X, r.Y)
			})
		case "polygon":
			c.object(func(key string) {
				if key != "points" {
					c.skip()
					return
				}
				s.Outline = c.points()
			})
		case "text":
			c.object(func(key string) {
				if key != "text" {
					c.skip()
					return
				}
				s.Label = c.text()
			})
		default:
			c.skip()
		}
	})
	if isStage(s.Label) {
		s.Kind = Stage
	}
	if s.Outline == nil {
		s.Outline = []Point{{}}
	}
	s.Outline = moved(turned(s.Outline, rotation), origin)
	return s
}

func (c *cursor) size() (w, h float64) {
	c.object(func(key string) {
		switch key {
		case "width":
			w = c.drawnWhole()
		case "height":
			h = c.drawnWhole()
		default:
			c.skip()
		}
	})
	return w, h
}

func shift(list []Seat, by Point) {
	for i := range list {
		list[i].X += by.X
		list[i].Y += by.Y
	}
}

func rectangle(w, h float64) []Point { return []Point{{0, 0}, {w, 0}, {w, h}, {0, h}} }

// ellipse is a polygon of 32 corners around the origin.
func ellipse(rx, ry float64) []Point {
	list := make([]Point, 32)
	for i := range list {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(list)))
		list[i] = Point{rx * cos, ry * sin}
	}
	return list
}

// turned returns points turned around the origin, clockwise on a drawing whose y grows downwards.
func turned(points []Point, degrees float64) []Point {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	for i, p := range points {
		points[i] = Point{p.X*cos - p.Y*sin, p.X*sin + p.Y*cos}
	}
	return points
}
