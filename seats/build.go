package seats

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
)

// Build writes the categories, seats and areas of a new event. Prices are none of its business.
func Build(ctx context.Context, tx pgx.Tx, event EventID, layout Layout) error {
	categories := db.CategoryInsertParams{EventID: int64(event)}
	for i, name := range layout.Categories {
		categories.Ids, categories.Names = append(categories.Ids, int32(i+1)), append(categories.Names, name)
	}
	if err := queries.CategoryInsert(ctx, tx, categories); err != nil {
		return fmt.Errorf("insert categories: %w", err)
	}
	if err := addSeats(ctx, tx, event, 1, layout.Seats); err != nil {
		return err
	}
	next := ID(len(layout.Seats) + 1)
	for i, a := range layout.Areas {
		area := db.AreaInsertParams{
			EventID: int64(event), ID: int32(i + 1), Name: a.Name, CategoryID: a.Category, FirstSeat: next, Beyond: next + a.Capacity, Capacity: a.Capacity,
		}
		if err := queries.AreaInsert(ctx, tx, area); err != nil {
			return fmt.Errorf("insert area: %w", err)
		}
		if err := addPlaces(ctx, tx, area, next, a.Capacity); err != nil {
			return err
		}
		next += a.Capacity
	}
	return nil
}

// addSeats inserts numbered seats under the ids from first up.
func addSeats(ctx context.Context, tx pgx.Tx, event EventID, first ID, list []LayoutSeat) error {
	rows, spots := make([]db.SeatInsertParams, len(list)), make([]db.SpotInsertParams, len(list))
	for i, s := range list {
		id := first + ID(i)
		rows[i] = seatOf(event, id, s)
		spots[i] = spotOf(event, id, s)
	}
	if _, err := queries.SeatInsert(ctx, tx, rows); err != nil {
		return fmt.Errorf("insert seats: %w", err)
	}
	if _, err := queries.SpotInsert(ctx, tx, spots); err != nil {
		return fmt.Errorf("insert spots: %w", err)
	}
	return nil
}

func seatOf(event EventID, id ID, s LayoutSeat) db.SeatInsertParams {
	return db.SeatInsertParams{EventID: int64(event), ID: id, Section: s.Section, RowLabel: s.Row, Number: s.Number, CategoryID: s.Category}
}

func spotOf(event EventID, id ID, s LayoutSeat) db.SpotInsertParams {
	tags := s.Tags
	if tags == nil {
		tags = []string{}
	}
	return db.SpotInsertParams{
		EventID: int64(event), SeatID: id, Line: s.Line, Run: s.Run, Pos: s.Pos, Distance: s.Distance, X: s.X, Y: s.Y,
		Attributes: int16(s.Attributes), Tags: tags,
	}
}

// addPlaces inserts n places of an area under the ids from first up.
func addPlaces(ctx context.Context, tx pgx.Tx, area db.AreaInsertParams, first ID, n int32) error {
	rows := make([]db.SeatInsertParams, n)
	for i := range rows {
		rows[i] = db.SeatInsertParams{EventID: area.EventID, ID: first + ID(i), Section: area.Name, CategoryID: area.CategoryID, AreaID: &area.ID}
	}
	if _, err := queries.SeatInsert(ctx, tx, rows); err != nil {
		return fmt.Errorf("insert places: %w", err)
	}
	return nil
}
