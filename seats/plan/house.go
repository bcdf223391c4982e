package plan

import (
	"fmt"
	"strconv"

	"seatfence/seats"
)

// House is what an event has to sell: sections of rows of numbered seats, and general admission areas. Prices are in minor units.
type House struct {
	Categories []HouseCategory `json:"categories"`
	Sections   []HouseSection  `json:"sections"`
	Areas      []HouseArea     `json:"areas"`
}

// HouseCategory is a price level.
type HouseCategory struct {
	Name  string `json:"name"`
	Price int64  `json:"price"`
}

// HouseSection is a block of rows from the front to the back.
type HouseSection struct {
	Name string     `json:"name"`
	Rows []HouseRow `json:"rows"`
}

// HouseRow is a row of Seats seats that are numbered from First (1 if zero), side by side.
type HouseRow struct {
	Label    string `json:"label"`
	Category string `json:"category"`
	Seats    int    `json:"seats"`
	First    int    `json:"first"`
}

// HouseArea is a floor without numbers.
type HouseArea struct {
	Name     string `json:"name"`
	Category string `json:"category"`
	Capacity int    `json:"capacity"`
}

// Bounds of a house.
const (
	maxHouseRows = 5_000
	maxPrice     = 1_000_000_000
)

// HouseDefect is what is wrong with a house; Pointer is a JSON pointer to the place.
type HouseDefect struct{ Pointer, Code, Detail string }

// Check returns the first defect, or nil.
func (h House) Check() *HouseDefect {
	if len(h.Categories) > maxCategories || len(h.Sections)+len(h.Areas) > maxParts {
		return &HouseDefect{"", "house_too_large", fmt.Sprintf("at most %d categories and %d sections and areas", maxCategories, maxParts)}
	}
	prices := map[string]bool{}
	for i, c := range h.Categories {
		at := fmt.Sprintf("/categories/%d", i)
		switch {
		case !named(c.Name):
			return badName(at + "/name")
		case prices[c.Name]:
			return &HouseDefect{at + "/name", "duplicate_category", "a category of this name stands earlier"}
		case c.Price < 0 || c.Price > maxPrice:
			return &HouseDefect{at + "/price", "bad_price", fmt.Sprintf("a price is between 0 and %d minor units", maxPrice)}
		}
		prices[c.Name] = true
	}
	total, rows, names := 0, 0, map[string]bool{}
	for i, s := range h.Sections {
		at := fmt.Sprintf("/sections/%d", i)
		if !named(s.Name) {
			return badName(at + "/name")
		}
		if names[s.Name] {
			return &HouseDefect{at + "/name", "duplicate_section", "a section or area of this name stands earlier"}
		}
		names[s.Name] = true
		labels := map[string]bool{}
		for j, r := range s.Rows {
			at := fmt.Sprintf("%s/rows/%d", at, j)
			if !named(r.Label) {
				return badName(at + "/label")
			}
			if labels[r.Label] {
				return &HouseDefect{at + "/label", "duplicate_row", "a row of this label stands earlier in the section"}
			}
			labels[r.Label] = true
			if d := checkPart(at, "/seats", prices, r.Category, r.Seats); d != nil {
				return d
			}
			if r.First < 0 || r.First > seats.MaxSeats {
				return &HouseDefect{at + "/first", "bad_number", "the first seat's number is out of range"}
			}
			total, rows = total+r.Seats, rows+1
		}
	}
	for i, a := range h.Areas {
		at := fmt.Sprintf("/areas/%d", i)
		if !named(a.Name) {
			return badName(at + "/name")
		}
		if names[a.Name] {
			return &HouseDefect{at + "/name", "duplicate_section", "a section or area of this name stands earlier"}
		}
		names[a.Name] = true
		if d := checkPart(at, "/capacity", prices, a.Category, a.Capacity); d != nil {
			return d
		}
		total += a.Capacity
	}
	switch {
	case total == 0:
		return &HouseDefect{"/sections", "no_seats", "a house needs at least one seat or place"}
	case total > seats.MaxSeats || rows > maxHouseRows:
		return &HouseDefect{"/sections", "house_too_large", fmt.Sprintf("at most %d seats and places in %d rows", seats.MaxSeats, maxHouseRows)}
	}
	return nil
}

func named(s string) bool { return s != "" && len(s) <= maxName }

func badName(pointer string) *HouseDefect {
	return &HouseDefect{pointer, "bad_name", fmt.Sprintf("a name of 1 to %d bytes is needed", maxName)}
}

func checkPart(at, count string, prices map[string]bool, category string, n int) *HouseDefect {
	if !prices[category] {
		return &HouseDefect{at + "/category", "unknown_category", "no category has this name"}
	}
	if n < 1 || n > seats.MaxSeats {
		return &HouseDefect{at + count, "bad_count", fmt.Sprintf("a count between 1 and %d is needed", seats.MaxSeats)}
	}
	return nil
}

// Plan draws the house: straight rows one behind another, seats at a distance of one, a row left free between sections, and the focal
// point before the middle of the first row.
func (h House) Plan() Plan {
	p := Plan{Focus: &Point{0, -1}}
	for _, c := range h.Categories {
		p.Categories = append(p.Categories, Category{Name: c.Name})
	}
	y := 0.0
	for _, s := range h.Sections {
		section := Section{Name: s.Name}
		for _, r := range s.Rows {
			row := Row{Label: r.Label}
			for n := range r.Seats {
				at := Point{float64(n) - float64(r.Seats-1)/2, y}
				row.Seats = append(row.Seats, Seat{Number: strconv.Itoa(max(r.First, 1) + n), Category: r.Category, Point: at})
			}
			section.Rows = append(section.Rows, row)
			y++
		}
		p.Sections = append(p.Sections, section)
		y++
	}
	for _, a := range h.Areas {
		p.Areas = append(p.Areas, Area{Name: a.Name, Category: a.Category, Capacity: a.Capacity})
	}
	return p
}
