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

// Draft is an event's plan and settings as its editors have them. Fence is the newest that was given to an editor, Revision grows with
// each save, and Base is the version of the plan that it was made of. Pages are JSON.
type Draft struct {
	Event     seats.EventID   `json:"event"`
	Base      PlanRef         `json:"base"`
	Fence     int64           `json:"fence"`
	Revision  int64           `json:"revision"`
	Variables json.RawMessage `json:"variables"`
	Document  json.RawMessage `json:"plan"`
	Items     []DraftItem     `json:"items"`

	varied bool // the variables were saved since the draft was made or published
}

// DraftItem is a section of a draft. Item is its number, which it keeps; 0 in what is to be saved is a new one.
type DraftItem struct {
	Item    int32           `json:"item"`
	Details json.RawMessage `json:"details"`
	Prices  json.RawMessage `json:"prices"`
	Seats   json.RawMessage `json:"seats"`

	priced bool // as Draft.varied, of the prices
}

// DraftPage is one page of a draft. SavedAt is nil until somebody has saved it.
type DraftPage struct {
	Item     int32           `json:"item"`
	Page     string          `json:"page"`
	Revision int64           `json:"revision"`
	SavedAt  *time.Time      `json:"saved_at,omitempty"`
	Body     json.RawMessage `json:"body"`
}

// DraftSaved tells what a save has made: the draft's revision, and the numbers of its items in their order.
type DraftSaved struct {
	Revision int64   `json:"revision"`
	Items    []int32 `json:"items,omitempty"`
}

// maxItems is how many sections a draft can have; a plan has no more.
const maxItems = 1000

// Draft returns the draft of an event of the organizer, which is made of the event's plan if there is none. ErrNoPlan for an event that
// was not made of a plan.
func (s *Service) Draft(ctx context.Context, caller Caller, event seats.EventID) (draft Draft, err error) {
	if err := s.ensureDraft(ctx, caller, event); err != nil {
		return Draft{}, answer(err)
	}
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		draft, err = readDraft(ctx, tx, event)
		return err
	})
	return draft, answer(err)
}

func readDraft(ctx context.Context, tx pgx.Tx, event seats.EventID) (Draft, error) {
	row, err := queries.DraftGet(ctx, tx, int64(event))
	if err != nil {
		return Draft{}, fmt.Errorf("read draft: %w", err)
	}
	pages, err := queries.DraftPages(ctx, tx, int64(event))
	if err != nil {
		return Draft{}, fmt.Errorf("read pages of draft: %w", err)
	}
	draft := Draft{Event: event, Base: PlanRef{PlanID(row.PlanID), row.PlanVersion}, Fence: row.Fence, Revision: row.Revision, Items: []DraftItem{}}
	for _, p := range pages {
		since := p.SavedAt != nil && (row.PublishedAt == nil || p.SavedAt.After(*row.PublishedAt))
		switch {
		case p.Page == PageVariables:
			draft.Variables, draft.varied = p.Body, since
			continue
		case p.Page == PagePlan:
			draft.Document = p.Body
			continue
		case len(draft.Items) == 0 || draft.Items[len(draft.Items)-1].Item != p.Item:
			draft.Items = append(draft.Items, DraftItem{Item: p.Item})
		}
		switch item := &draft.Items[len(draft.Items)-1]; p.Page {
		case PageDetails:
			item.Details = p.Body
		case PagePrices:
			item.Prices, item.priced = p.Body, since
		case PageSeats:
			item.Seats = p.Body
		}
	}
	return draft, nil
}

// draftable returns an event that the caller may edit, if it can have a draft.
func (s *Service) draftable(ctx context.Context, caller Caller, id seats.EventID) (Event, error) {
	if caller.Kind != Organizer {
		return Event{}, ErrForbidden
	}
	event, err := s.EventHead(ctx, caller, id)
	if err == nil && event.Plan == nil {
		err = ErrNoPlan
	}
	return event, err
}

// ensureDraft makes the draft of an event that the caller may edit.
func (s *Service) ensureDraft(ctx context.Context, caller Caller, id seats.EventID) error {
	event, err := s.draftable(ctx, caller, id)
	if err != nil {
		return err
	}
	if _, err := queries.DraftGet(ctx, s.pool, int64(id)); !db.NotFound(err) {
		return err
	}
	drawn, err := readPlan(ctx, s.pool, caller, event.Plan.Plan, event.Plan.Version)
	if err != nil {
		return err
	}
	prices, err := readPrices(ctx, s.pool, id)
	if err != nil {
		return err
	}
	draft, err := draftOf(event, drawn, prices)
	if err != nil {
		return err
	}
	return s.inTx(ctx, func(tx pgx.Tx) error {
		n, err := queries.DraftInsert(ctx, tx, db.DraftInsertParams{
			EventID: int64(id), PlanID: int64(event.Plan.Plan), PlanVersion: event.Plan.Version, NextItem: int32(len(draft.Items) + 1),
		})
		if err != nil || n == 0 {
			return err
		}
		return draft.write(ctx, tx, nil)
	})
}

func draftOf(event Event, drawn plan.Plan, prices PriceList) (draft Draft, err error) {
	draft = Draft{Event: event.ID}
	limit := 0
	if event.OrderLimit != nil {
		limit = *event.OrderLimit
	}
	if draft.Variables, err = encodePage(draftVariables{
		Name: &event.Name, SaleStartsAt: &event.SaleStartsAt, SaleEndsAt: &event.SaleEndsAt, OrderLimit: &limit, OrphanRule: &event.OrphanRule,
	}); err != nil {
		return draft, err
	}
	draft.Document, draft.Items, err = splitPlan(drawn, prices)
	for i := range draft.Items {
		draft.Items[i].Item = int32(i + 1)
	}
	return draft, err
}

// write inserts the pages of the draft or replaces them. by is nil for the draft that nobody has saved yet.
func (d Draft) write(ctx context.Context, tx pgx.Tx, by *Caller) error {
	p := db.DraftPagesWriteParams{EventID: int64(d.Event)}
	if by != nil {
		p.SavedBy = &by.ID
	}
	add := func(item int32, page string, body json.RawMessage) {
		if body != nil {
			p.Items, p.Pages, p.Bodies = append(p.Items, item), append(p.Pages, page), append(p.Bodies, string(body))
		}
	}
	add(0, PageVariables, d.Variables)
	add(0, PagePlan, d.Document)
	for _, item := range d.Items {
		add(item.Item, PageDetails, item.Details)
		add(item.Item, PagePrices, item.Prices)
		add(item.Item, PageSeats, item.Seats)
	}
	if err := queries.DraftPagesWrite(ctx, tx, p); err != nil {
		return fmt.Errorf("write pages of draft: %w", err)
	}
	return nil
}

// TakeEdit gives the caller the right to save a page, or with page "" (of item 0) the whole draft, and returns the fence that their saves
// must name: whoever had it before, at either level, is refused from now on. It is called before the editor reads what to edit. That it
// may be taken, the lease says; ErrNotFound for a page that the draft does not have.
func (s *Service) TakeEdit(ctx context.Context, caller Caller, event seats.EventID, item int32, page string) (fence int64, err error) {
	if err := s.ensureDraft(ctx, caller, event); err != nil {
		return 0, answer(err)
	}
	whole := item == 0 && page == ""
	if !whole && !pageOf(item, page) {
		return 0, ErrNotFound
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		fence, err = queries.DraftTake(ctx, tx, db.DraftTakeParams{EventID: int64(event), Whole: whole, Holder: caller.ID})
		if err != nil || whole {
			return err
		}
		n, err := queries.DraftPageTake(ctx, tx, db.DraftPageTakeParams{EventID: int64(event), Item: item, Page: page, Fence: fence, Holder: &caller.ID})
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return err
	})
	return fence, answer(err)
}

// DraftPage returns one page of a draft.
func (s *Service) DraftPage(ctx context.Context, caller Caller, event seats.EventID, item int32, page string) (found DraftPage, err error) {
	if err := s.ensureDraft(ctx, caller, event); err != nil {
		return DraftPage{}, answer(err)
	}
	if !pageOf(item, page) {
		return DraftPage{}, ErrNotFound
	}
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		draft, err := queries.DraftGet(ctx, tx, int64(event))
		if err != nil {
			return fmt.Errorf("read draft: %w", err)
		}
		row, err := queries.DraftPageGet(ctx, tx, db.DraftPageGetParams{EventID: int64(event), Item: item, Page: page})
		if db.NotFound(err) {
			return ErrNotFound
		}
		found = DraftPage{Item: item, Page: page, Revision: draft.Revision, Body: row.Body, SavedAt: row.SavedAt}
		return err
	})
	return found, answer(err)
}
