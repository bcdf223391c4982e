package seats

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
)

// Stock is a seat or a place that an event has to sell, and what keeps it from being taken off the plan: booked, held, allotted, or free
// for nothing. Withdrawn says that an earlier plan has taken it off.
type Stock struct {
	ID ID
	Place
	Category  int32
	Area      *int32
	Withdrawn bool
	State     string
}

// NamedArea is an area of an event.
type NamedArea struct {
	ID   int32
	Name string
}

// ReadAreas reads the areas of an event, by id.
func ReadAreas(ctx context.Context, conn db.DBTX, event EventID) ([]NamedArea, error) {
	rows, err := queries.RedrawAreas(ctx, conn, int64(event))
	if err != nil {
		return nil, fmt.Errorf("read areas: %w", err)
	}
	list := make([]NamedArea, len(rows))
	for i, r := range rows {
		list[i] = NamedArea{r.ID, r.Name}
	}
	return list, nil
}

// ReadStock reads what an event has to sell, or that of it with the given ids, by id.
func ReadStock(ctx context.Context, conn db.DBTX, event EventID, ids []ID) ([]Stock, error) {
	rows, err := queries.RedrawSeats(ctx, conn, db.RedrawSeatsParams{EventID: int64(event), Ids: ids})
	if err != nil {
		return nil, fmt.Errorf("read stock: %w", err)
	}
	list := make([]Stock, len(rows))
	for i, r := range rows {
		list[i] = Stock{r.ID, Place{r.Section, r.RowLabel, r.Number}, r.CategoryID, r.AreaID, r.Withdrawn, r.State}
	}
	return list, nil
}

// Redrawing is what of an event's stock another layout changes. The key of a seat is its section, row and number, that of an area its
// name; a category is known by its name. Moved seats are in no list: where all of them are is written anew.
type Redrawing struct {
	IDs           []ID // of the layout's seats, in its order; new ones have ids that the event did not have
	First         ID   // of the new ids
	Added         []LayoutSeat
	Dropped       []Stock // numbered seats that the layout does not have
	Returned      []ID
	Recategorised []Stock // with the category they get
	Areas         []AreaRedrawing
	Categories    []string // that the event does not have yet: their ids follow those it has
}

// AreaRedrawing is what becomes of an area: Grow new places, when those that were withdrawn have come back, or Shrink fewer of those in
// Units, which are on the plan now. ID is 0 for a new area, Capacity for one that is gone.
type AreaRedrawing struct {
	ID       int32
	Name     string
	Category int32
	Capacity int32
	Units    []ID
	Grow     int32
	Shrink   int32
}

// Redraw compares an event's stock, areas and categories with another layout, whose categories it numbers as the event does.
func Redraw(stock []Stock, areas []NamedArea, categories []string, layout *Layout) Redrawing {
	var r Redrawing
	renumber(layout, categories, &r)
	byPlace, units := map[Place]Stock{}, map[int32][]Stock{}
	for _, s := range stock {
		r.First = max(r.First, s.ID+1)
		if s.Area != nil {
			units[*s.Area] = append(units[*s.Area], s)
		} else {
			byPlace[s.Place] = s
		}
	}
	r.First = max(r.First, 1)
	next := r.First
	for _, seat := range layout.Seats {
		old, known := byPlace[seat.Place]
		delete(byPlace, seat.Place)
		switch {
		case !known:
			r.IDs, r.Added = append(r.IDs, next), append(r.Added, seat)
			next++
			continue
		case old.Withdrawn:
			r.Returned = append(r.Returned, old.ID)
		}
		r.IDs = append(r.IDs, old.ID)
		if old.Category != seat.Category {
			old.Category = seat.Category
			r.Recategorised = append(r.Recategorised, old)
		}
	}
	for _, s := range stock {
		if _, gone := byPlace[s.Place]; gone && s.Area == nil && !s.Withdrawn {
			r.Dropped = append(r.Dropped, s)
		}
	}
	r.redrawAreas(areas, units, layout)
	return r
}

func renumber(layout *Layout, categories []string, r *Redrawing) {
	numbers := make([]int32, len(layout.Categories)+1)
	for i, name := range layout.Categories {
		at := slices.Index(categories, name)
		if at < 0 {
			at = len(categories)
			categories = append(slices.Clip(categories), name)
			r.Categories = append(r.Categories, name)
		}
		numbers[i+1] = int32(at + 1)
	}
	layout.Categories = categories
	for i := range layout.Seats {
		layout.Seats[i].Category = numbers[layout.Seats[i].Category]
	}
	for i := range layout.Areas {
		layout.Areas[i].Category = numbers[layout.Areas[i].Category]
	}
}

func (r *Redrawing) redrawAreas(areas []NamedArea, units map[int32][]Stock, layout *Layout) {
	left := slices.Clone(layout.Areas)
	for _, area := range areas {
		change, withdrawn := AreaRedrawing{ID: area.ID, Name: area.Name}, []ID{}
		for _, u := range units[area.ID] {
			change.Category = u.Category
			if u.Withdrawn {
				withdrawn = append(withdrawn, u.ID)
			} else {
				change.Units = append(change.Units, u.ID)
			}
		}
		if i := slices.IndexFunc(left, func(a LayoutArea) bool { return a.Name == change.Name }); i >= 0 {
			change.Capacity, change.Category = left[i].Capacity, left[i].Category
			left = slices.Delete(left, i, i+1)
		}
		for _, u := range units[area.ID] {
			if u.Category != change.Category {
				u.Category = change.Category
				r.Recategorised = append(r.Recategorised, u)
			}
		}
		change.Grow = max(0, change.Capacity-int32(len(change.Units)))
		change.Shrink = max(0, int32(len(change.Units))-change.Capacity)
		back := min(int(change.Grow), len(withdrawn))
		r.Returned = append(r.Returned, withdrawn[:back]...)
		change.Grow -= int32(back)
		r.Areas = append(r.Areas, change)
	}
	for _, a := range left {
		r.Areas = append(r.Areas, AreaRedrawing{Name: a.Name, Category: a.Category, Capacity: a.Capacity, Grow: a.Capacity})
	}
}

// DrawSpots writes where the seats of a layout are, instead of all that was known of it, and adds the new seats. It touches no row that
// sells.
func (r Redrawing) DrawSpots(ctx context.Context, tx pgx.Tx, event EventID, layout Layout) error {
	if err := queries.SpotDelete(ctx, tx, int64(event)); err != nil {
		return fmt.Errorf("delete spots: %w", err)
	}
	spots := make([]db.SpotInsertParams, len(layout.Seats))
	for i, s := range layout.Seats {
		spots[i] = spotOf(event, r.IDs[i], s)
	}
	if _, err := queries.SpotInsert(ctx, tx, spots); err != nil {
		return fmt.Errorf("insert spots: %w", err)
	}
	rows := make([]db.SeatInsertParams, len(r.Added))
	for i, s := range r.Added {
		rows[i] = seatOf(event, r.First+ID(i), s)
	}
	if _, err := queries.SeatInsert(ctx, tx, rows); err != nil {
		return fmt.Errorf("insert seats: %w", err)
	}
	return nil
}

// Withdraw takes seats off the plan and returns those it got; block is what they are blocked by from now on.
func Withdraw(ctx context.Context, tx pgx.Tx, event EventID, block, actor uuid.UUID, ids []ID) ([]ID, error) {
	return queries.SeatWithdraw(ctx, tx, db.SeatWithdrawParams{EventID: int64(event), BlockID: block, Actor: actor, Ids: ids})
}

// Return puts withdrawn seats back on sale.
func Return(ctx context.Context, tx pgx.Tx, event EventID, block, actor uuid.UUID, ids []ID) ([]ID, error) {
	return queries.SeatReturn(ctx, tx, db.SeatReturnParams{EventID: int64(event), BlockID: block, Actor: actor, Ids: ids})
}

// Recategorise gives seats the category that the list says.
func Recategorise(ctx context.Context, tx pgx.Tx, event EventID, list []Stock) error {
	p := db.SeatRecategoriseParams{EventID: int64(event)}
	for _, s := range list {
		p.Ids, p.CategoryIds = append(p.Ids, s.ID), append(p.CategoryIds, s.Category)
	}
	return queries.SeatRecategorise(ctx, tx, p)
}

// DrawAreas writes what becomes of the areas but for the places that they lose: new places get the ids after those of the new seats.
func (r Redrawing) DrawAreas(ctx context.Context, tx pgx.Tx, event EventID) error {
	next, last := r.First+ID(len(r.Added)), int32(0)
	for _, a := range r.Areas {
		area := db.AreaInsertParams{
			EventID: int64(event), ID: a.ID, Name: a.Name, CategoryID: a.Category, FirstSeat: next, Beyond: next + a.Grow, Capacity: a.Capacity,
		}
		last = max(last, a.ID)
		var err error
		switch {
		case a.ID == 0:
			last++
			area.ID = last
			err = queries.AreaInsert(ctx, tx, area)
		case a.Capacity > 0:
			err = queries.AreaRedraw(ctx, tx, db.AreaRedrawParams{
				EventID: int64(event), ID: a.ID, CategoryID: a.Category, Capacity: a.Capacity, Beyond: a.Beyond(next),
			})
		}
		if err != nil {
			return fmt.Errorf("redraw area: %w", err)
		}
		if err := addPlaces(ctx, tx, area, next, a.Grow); err != nil {
			return err
		}
		next += a.Grow
	}
	return nil
}

// Beyond is where the area's places end if new ones begin at next.
func (a AreaRedrawing) Beyond(next ID) ID {
	if a.Grow == 0 {
		return 0
	}
	return next + a.Grow
}
