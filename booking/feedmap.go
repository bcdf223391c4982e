package booking

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// Map is where an event's seats are: what is drawn under the states of a MapState. It changes with the event's layout alone, which is
// part of every epoch. Zipped is its JSON in gzip, an object as the API documents it. It is shared, and nobody changes it.
type Map struct {
	Layout int32
	Zipped []byte
}

type (
	mapDocument struct {
		Layout      int32         `json:"layout"`
		Focus       *plan.Point   `json:"focus,omitempty"`
		Categories  []mapCategory `json:"categories"`
		Sections    []mapSection  `json:"sections"`
		Areas       []mapArea     `json:"areas"`
		Decorations []plan.Shape  `json:"decorations"`
	}
	mapCategory struct {
		ID    int32  `json:"id"`
		Name  string `json:"name"`
		Color string `json:"color,omitempty"`
	}
	mapSection struct {
		Name string   `json:"name"`
		Rows []mapRow `json:"rows"`
	}
	mapRow struct {
		Label string    `json:"label"`
		Seats []mapSeat `json:"seats"`
	}
	mapSeat struct {
		ID             seats.ID `json:"id"`
		Label          string   `json:"label"`
		Number         string   `json:"number"`
		Category       int32    `json:"category"`
		X              float64  `json:"x"`
		Y              float64  `json:"y"`
		Accessible     bool     `json:"accessible,omitempty"`
		Companion      bool     `json:"companion,omitempty"`
		RestrictedView bool     `json:"restricted_view,omitempty"`
		WholeTable     bool     `json:"whole_table,omitempty"`
		Tags           []string `json:"tags,omitempty"`
	}
	mapArea struct {
		ID       int32        `json:"id"`
		Name     string       `json:"name"`
		Category int32        `json:"category"`
		Capacity int32        `json:"capacity"`
		Outline  []plan.Point `json:"outline,omitempty"`
	}
)

// MapLayout returns the version of the event's map, if the caller may see it.
func (s *Service) MapLayout(ctx context.Context, caller Caller, event seats.EventID) (int32, error) {
	if _, err := s.EventHead(ctx, caller, event); err != nil {
		return 0, err
	}
	version, err := queries.MapVersion(ctx, s.pool, int64(event))
	if err != nil {
		return 0, answer(fmt.Errorf("read layout: %w", err))
	}
	return version.Layout, nil
}

// Map returns the event's map at its newest layout.
func (s *Service) Map(ctx context.Context, caller Caller, event seats.EventID) (*Map, error) {
	layout, err := s.MapLayout(ctx, caller, event)
	if err != nil {
		return nil, err
	}
	return s.maps.of(event).show(ctx, func(kept *Map, _ time.Duration) bool { return kept.Layout == layout },
		func(ctx context.Context) (made *Map, err error) {
			var document mapDocument
			err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) (err error) {
				document, err = readMap(ctx, tx, event)
				return err
			})
			if err != nil {
				return nil, answer(err)
			}
			b, err := json.Marshal(document)
			if err != nil {
				return nil, fmt.Errorf("encode map: %w", err)
			}
			made = &Map{Layout: document.Layout}
			made.Zipped, err = zip(b)
			return made, err
		})
}

func readMap(ctx context.Context, tx pgx.Tx, event seats.EventID) (mapDocument, error) {
	version, err := queries.MapVersion(ctx, tx, int64(event))
	if err != nil {
		return mapDocument{}, fmt.Errorf("read layout: %w", err)
	}
	drawn, err := readDrawing(ctx, tx, version)
	if err != nil {
		return mapDocument{}, err
	}
	document := mapDocument{
		Layout: version.Layout, Focus: drawn.Focus, Categories: []mapCategory{}, Areas: []mapArea{}, Decorations: []plan.Shape{},
	}
	document.Decorations = append(document.Decorations, drawn.Decorations...)
	categories, err := queries.CategoryList(ctx, tx, int64(event))
	if err != nil {
		return mapDocument{}, fmt.Errorf("read categories: %w", err)
	}
	colors, outlines := map[string]string{}, map[string][]plan.Point{}
	for _, c := range drawn.Categories {
		colors[c.Name] = c.Color
	}
	for _, a := range drawn.Areas {
		outlines[a.Name] = a.Outline
	}
	for _, c := range categories {
		document.Categories = append(document.Categories, mapCategory{c.ID, c.Name, colors[c.Name]})
	}
	areas, err := queries.MapAreas(ctx, tx, int64(event))
	if err != nil {
		return mapDocument{}, fmt.Errorf("read areas: %w", err)
	}
	for _, a := range areas {
		document.Areas = append(document.Areas, mapArea{a.ID, a.Name, a.CategoryID, a.Capacity, outlines[a.Name]})
	}
	rows, err := queries.MapSeats(ctx, tx, int64(event))
	if err != nil {
		return mapDocument{}, fmt.Errorf("read seats: %w", err)
	}
	document.Sections = mapSections(rows)
	return document, nil
}

// drawing is what of a plan's document the seats of its events do not know.
type drawing struct {
	Focus       *plan.Point     `json:"focus"`
	Categories  []plan.Category `json:"categories"`
	Areas       []plan.Area     `json:"areas"`
	Decorations []plan.Shape    `json:"decorations"`
}

// readDrawing reads that of the event's plan. An event that was made without one has none.
func readDrawing(ctx context.Context, tx pgx.Tx, version db.MapVersionRow) (drawn drawing, err error) {
	if version.PlanID == nil {
		return drawn, nil
	}
	document, err := readDocument(ctx, tx, Caller{Organizer: version.OrganizerID}, PlanID(*version.PlanID), *version.PlanVersion)
	if err != nil {
		return drawn, err
	}
	if err := json.Unmarshal(document, &drawn); err != nil {
		return drawn, fmt.Errorf("decode plan: %w", err)
	}
	return drawn, nil
}

// mapSections puts seats, which come row by row, into rows and sections.
func mapSections(rows []db.MapSeatsRow) []mapSection {
	sections := []mapSection{}
	for i, r := range rows {
		fresh := i == 0 || rows[i-1].Section != r.Section
		if fresh {
			sections = append(sections, mapSection{Name: r.Section})
		}
		section := &sections[len(sections)-1]
		if fresh || rows[i-1].Line != r.Line {
			section.Rows = append(section.Rows, mapRow{Label: r.RowLabel})
		}
		row := &section.Rows[len(section.Rows)-1]
		has := seats.Attributes(r.Attributes).Has
		row.Seats = append(row.Seats, mapSeat{
			ID: r.ID, Label: seats.Place{Section: r.Section, Row: r.RowLabel, Number: r.Number}.Label(), Number: r.Number,
			Category: r.CategoryID, X: r.X, Y: r.Y, Accessible: has(seats.Accessible), Companion: has(seats.Companion),
			RestrictedView: has(seats.RestrictedView), WholeTable: has(seats.WholeTable), Tags: r.Tags,
		})
	}
	return sections
}
