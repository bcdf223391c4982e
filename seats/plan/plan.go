package plan

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"

	"seatfence/seats"
)

// Format names our own format and its version.
const Format = "seatfence-plan/1"

// Schema is the JSON schema of our own format.
//
//go:embed schema.json
var Schema []byte

// Plan is a venue as drawn. Coordinates are absolute, in a unit of the drawing's own, with y growing downwards. The key of a seat is its
// section, row and number; neither a label nor an id alone.
type Plan struct {
	Name        string     `json:"name"`
	Focus       *Point     `json:"focus,omitempty"` // where everybody looks; nil if the drawing does not say
	Categories  []Category `json:"categories"`
	Sections    []Section  `json:"sections"`
	Areas       []Area     `json:"areas,omitempty"`
	Decorations []Shape    `json:"decorations,omitempty"`
	Extra       Extra      `json:"-"`
}

// Point is a place in the drawing.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Category is a price level. Color is as the drawing has it, for CSS.
type Category struct {
	Name  string `json:"name"`
	Color string `json:"color,omitempty"`

	at place
}

// Section is a block of rows, from the front to the back.
type Section struct {
	Name  string `json:"name"`
	Rows  []Row  `json:"rows"`
	Extra Extra  `json:"-"`

	at place
}

// Table says that a row is a table, and how it is sold.
type Table string

// The ways of selling a table. A row that is none has "".
const (
	TableBySeat Table = "seat"
	TableWhole  Table = "whole"
)

// Row is a row of seats, or a table with the seats around it.
type Row struct {
	Label string `json:"label"`
	Table Table  `json:"table,omitempty"`
	Seats []Seat `json:"seats"`
	Extra Extra  `json:"-"`

	at place
}

// Seat is one seat. ID is what the file it came from calls it; it may be empty, and nothing here relies on it.
type Seat struct {
	Number   string `json:"number"`
	ID       string `json:"id,omitempty"`
	Category string `json:"category"`
	Point
	Accessible     bool     `json:"accessible,omitempty"`
	Companion      bool     `json:"companion,omitempty"`
	RestrictedView bool     `json:"restricted_view,omitempty"`
	Inactive       bool     `json:"inactive,omitempty"` // it exists, and is not for sale
	Tags           []string `json:"tags,omitempty"`
	Extra          Extra    `json:"-"`

	at      place
	spareID string // a second id of the file, for repairs
}

// Area is general admission: Capacity places without numbers. Outline may be empty.
type Area struct {
	Name     string  `json:"name"`
	Category string  `json:"category"`
	Capacity int     `json:"capacity"`
	Outline  []Point `json:"outline,omitempty"`
	Extra    Extra   `json:"-"`

	at place
}

// Stage is the kind of the shape that is the stage. Other kinds are free words.
const Stage = "stage"

// Shape is drawn and not sold: a polygon, or a text at one point.
type Shape struct {
	Kind    string  `json:"kind"`
	Label   string  `json:"label,omitempty"`
	Outline []Point `json:"outline"`

	at place
}

// Counts is how much of everything a plan has. Seats includes the inactive and the accessible ones and excludes Capacity, the sum of the
// areas; a table is also a row.
type Counts struct {
	Categories int `json:"categories"`
	Sections   int `json:"sections"`
	Rows       int `json:"rows"`
	Tables     int `json:"tables"`
	Seats      int `json:"seats"`
	Inactive   int `json:"inactive"`
	Accessible int `json:"accessible"`
	Areas      int `json:"areas"`
	Capacity   int `json:"capacity"`
}

// Count counts.
func (p Plan) Count() Counts {
	c := Counts{Categories: len(p.Categories), Sections: len(p.Sections), Areas: len(p.Areas)}
	for _, a := range p.Areas {
		c.Capacity += a.Capacity
	}
	for _, s := range p.Sections {
		c.Rows += len(s.Rows)
		for _, r := range s.Rows {
			if r.Table != "" {
				c.Tables++
			}
			c.Seats += len(r.Seats)
			for _, seat := range r.Seats {
				if seat.Inactive {
					c.Inactive++
				}
				if seat.Accessible {
					c.Accessible++
				}
			}
		}
	}
	return c
}

// Export writes the plan in our own format: the same plan gives the same bytes, and reading them back gives the same plan.
func (p Plan) Export(w io.Writer) error {
	type bare Plan
	document, err := p.Extra.with(struct {
		Format string `json:"format"`
		bare
	}{Format, bare(p.withLists())})
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, document, "", " "); err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// withLists is the plan with empty lists where the format requires one and the plan has nil, which JSON would call null.
func (p Plan) withLists() Plan {
	p.Categories, p.Sections, p.Decorations = list(p.Categories), list(p.Sections), list(p.Decorations)
	for i := range p.Sections {
		p.Sections[i].Rows = list(p.Sections[i].Rows)
		for j, r := range p.Sections[i].Rows {
			if r.Seats == nil {
				p.Sections[i].Rows[j].Seats = []Seat{}
			}
		}
	}
	for i, d := range p.Decorations {
		if d.Outline == nil {
			p.Decorations[i].Outline = []Point{}
		}
	}
	return p
}

// list is a copy, and never nil.
func list[T any](from []T) []T { return append([]T{}, from...) }

// each calls fn with every seat and the key it has.
func (p *Plan) each(fn func(seats.Place, *Seat)) {
	for i := range p.Sections {
		s := &p.Sections[i]
		for j := range s.Rows {
			r := &s.Rows[j]
			for k := range r.Seats {
				fn(seats.Place{Section: s.Name, Row: r.Label, Number: r.Seats[k].Number}, &r.Seats[k])
			}
		}
	}
}
