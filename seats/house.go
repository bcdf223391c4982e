package seats

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
)

// House is what an event has to sell: sections of rows of numbered seats, and general admission areas. Prices are in minor units.
type House struct {
	Categories []Category     `json:"categories"`
	Sections   []HouseSection `json:"sections"`
	Areas      []HouseArea    `json:"areas"`
}

// Category is a price level.
type Category struct {
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
	MaxSeats      = 60_000
	maxCategories = 50
	maxParts      = 1_000
	maxRows       = 5_000
	maxPrice      = 1_000_000_000
	maxName       = 80
)

// Defect is what is wrong with a house; Pointer is a JSON pointer to the place.
type Defect struct{ Pointer, Code, Detail string }

// Check returns the first defect, or nil.
func (h House) Check() *Defect {
	if len(h.Categories) > maxCategories || len(h.Sections)+len(h.Areas) > maxParts {
		return &Defect{"", "house_too_large", fmt.Sprintf("at most %d categories and %d sections and areas", maxCategories, maxParts)}
	}
	prices := map[string]bool{}
	for i, c := range h.Categories {
		at := fmt.Sprintf("/categories/%d", i)
		switch {
		case !named(c.Name):
			return badName(at + "/name")
		case prices[c.Name]:
			return &Defect{at + "/name", "duplicate_category", "a category of this name stands earlier"}
		case c.Price < 0 || c.Price > maxPrice:
			return &Defect{at + "/price", "bad_price", fmt.Sprintf("a price is between 0 and %d minor units", maxPrice)}
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
			return &Defect{at + "/name", "duplicate_section", "a section or area of this name stands earlier"}
		}
		names[s.Name] = true
		labels := map[string]bool{}
		for j, r := range s.Rows {
			at := fmt.Sprintf("%s/rows/%d", at, j)
			if !named(r.Label) {
				return badName(at + "/label")
			}
			if labels[r.Label] {
				return &Defect{at + "/label", "duplicate_row", "a row of this label stands earlier in the section"}
			}
			labels[r.Label] = true
			if d := checkPart(at, "/seats", prices, r.Category, r.Seats); d != nil {
				return d
			}
			if r.First < 0 || r.First > MaxSeats {
				return &Defect{at + "/first", "bad_number", "the first seat's number is out of range"}
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
			return &Defect{at + "/name", "duplicate_section", "a section or area of this name stands earlier"}
		}
		names[a.Name] = true
		if d := checkPart(at, "/capacity", prices, a.Category, a.Capacity); d != nil {
			return d
		}
		total += a.Capacity
	}
	switch {
	case total == 0:
		return &Defect{"/sections", "no_seats", "a house needs at least one seat or place"}
	case total > MaxSeats || rows > maxRows:
		return &Defect{"/sections", "house_too_large", fmt.Sprintf("at most %d seats and places in %d rows", MaxSeats, maxRows)}
	}
	return nil
}

func named(s string) bool { return s != "" && len(s) <= maxName }

func badName(pointer string) *Defect {
	return &Defect{pointer, "bad_name", fmt.Sprintf("a name of 1 to %d bytes is needed", maxName)}
}

func checkPart(at, count string, prices map[string]bool, category string, n int) *Defect {
	if !prices[category] {
		return &Defect{at + "/category", "unknown_category", "no category has this name"}
	}
	if n < 1 || n > MaxSeats {
		return &Defect{at + count, "bad_count", fmt.Sprintf("a count between 1 and %d is needed", MaxSeats)}
	}
	return nil
}

// Build writes the categories, areas and seats of a checked house. Ids run along rows, so that neighbours have neighbouring ids.
func Build(ctx context.Context, tx pgx.Tx, event EventID, house House) error {
	categories := db.CategoryInsertParams{EventID: int64(event)}
	byName := map[string]int32{}
	for i, c := range house.Categories {
		byName[c.Name] = int32(i + 1)
		categories.Ids, categories.Names = append(categories.Ids, int32(i+1)), append(categories.Names, c.Name)
	}
	if err := queries.CategoryInsert(ctx, tx, categories); err != nil {
		return fmt.Errorf("insert categories: %w", err)
	}
	var rows []db.SeatInsertParams
	add := func(section, row, number, category string, area *int32) {
		id := byName[category]
		rows = append(rows, db.SeatInsertParams{
			EventID: int64(event), ID: int32(len(rows) + 1), Section: section, RowLabel: row, Number: number,
			CategoryID: id, AreaID: area, Price: house.Categories[id-1].Price,
		})
	}
	for _, s := range house.Sections {
		for _, r := range s.Rows {
			for n := range r.Seats {
				add(s.Name, r.Label, strconv.Itoa(max(r.First, 1)+n), r.Category, nil)
			}
		}
	}
	for i, a := range house.Areas {
		id := int32(i + 1)
		if err := queries.AreaInsert(ctx, tx, db.AreaInsertParams{
			EventID: int64(event), ID: id, Name: a.Name, CategoryID: byName[a.Category], FirstSeat: int32(len(rows) + 1), Capacity: int32(a.Capacity),
		}); err != nil {
			return fmt.Errorf("insert area: %w", err)
		}
		for range a.Capacity {
			add(a.Name, "", "", a.Category, &id)
		}
	}
	if _, err := queries.SeatInsert(ctx, tx, rows); err != nil {
		return fmt.Errorf("insert seats: %w", err)
	}
	return nil
}
