package booking

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/internal/failpoint"
	"seatfence/seats"
)

// draftDetail is what the audit log keeps of a save.
type draftDetail struct {
	Item     *int32 `json:"item,omitempty"`
	Page     string `json:"page,omitempty"`
	Removed  bool   `json:"removed,omitempty"`
	Revision int64  `json:"revision"`
}

// SaveDraftPage replaces one page, for the caller who was given the fence, of the page or of the whole. ErrLockLost if another editor has
// been given one since that excludes it, or it was another's.
func (s *Service) SaveDraftPage(ctx context.Context, caller Caller, event seats.EventID, fence int64, item int32, page string, body []byte) (saved DraftSaved, err error) {
	if _, err := s.draftable(ctx, caller, event); err != nil {
		return saved, answer(err)
	}
	if !pageOf(item, page) {
		return saved, ErrNotFound
	}
	clean, err := cleanPage(ctx, page, body)
	if err != nil {
		return saved, err
	}
	one := Draft{Event: event}
	switch content := (DraftItem{Item: item}); page {
	case PageVariables:
		one.Variables = clean
	case PagePlan:
		one.Document = clean
	case PageDetails:
		content.Details = clean
		one.Items = []DraftItem{content}
	case PagePrices:
		content.Prices = clean
		one.Items = []DraftItem{content}
	case PageSeats:
		content.Seats = clean
		one.Items = []DraftItem{content}
	}
	err = s.savingDraft(ctx, caller, event, fence, func(tx pgx.Tx, _ db.Draft) error {
		if _, err := queries.DraftPageGet(ctx, tx, db.DraftPageGetParams{EventID: int64(event), Item: item, Page: page}); err != nil {
			if db.NotFound(err) {
				return ErrNotFound // its section was removed meanwhile
			}
			return err
		}
		saved.Revision, err = nextRevision(ctx, tx, caller, db.DraftSaveParams{EventID: int64(event), Fence: fence, Item: &item, Page: &page})
		if err != nil {
			return err
		}
		if err := one.write(ctx, tx, &caller); err != nil {
			return err
		}
		return audit(ctx, tx, caller, auditDraftSaved, &event, event, draftDetail{Item: &item, Page: page, Revision: saved.Revision})
	})
	return saved, answer(err)
}

// savingDraft runs a write of a draft with its row locked.
func (s *Service) savingDraft(ctx context.Context, caller Caller, event seats.EventID, fence int64, write func(pgx.Tx, db.Draft) error) error {
	if fence < 1 {
		return ErrLockLost
	}
	if err := failpoint.Hit(ctx, failpoint.BeforeWrite); err != nil {
		return err
	}
	return s.inTx(ctx, func(tx pgx.Tx) error {
		row, err := queries.DraftLock(ctx, tx, int64(event))
		if db.NotFound(err) {
			return ErrLockLost // which nobody can have without a draft
		}
		if err != nil {
			return fmt.Errorf("lock draft: %w", err)
		}
		return write(tx, row)
	})
}

// nextRevision is the one conditional statement of every save: no row is a fence that does not count any more.
func nextRevision(ctx context.Context, tx pgx.Tx, caller Caller, p db.DraftSaveParams) (int64, error) {
	p.Holder = caller.ID
	revision, err := queries.DraftSave(ctx, tx, p)
	if db.NotFound(err) {
		return 0, ErrLockLost
	}
	return revision, err
}

// SaveDraft replaces the whole draft, for the caller who was given the fence of the whole. Items without a number are new ones; those that
// are left out are removed. The draft is then one of the plan that the event has at this moment.
func (s *Service) SaveDraft(ctx context.Context, caller Caller, event seats.EventID, fence int64, draft Draft) (saved DraftSaved, err error) {
	if _, err := s.draftable(ctx, caller, event); err != nil {
		return saved, answer(err)
	}
	if err := draft.clean(ctx); err != nil {
		return saved, err
	}
	draft.Event = event
	err = s.savingDraft(ctx, caller, event, fence, func(tx pgx.Tx, row db.Draft) error {
		known, err := queries.DraftItems(ctx, tx, int64(event))
		if err != nil {
			return fmt.Errorf("read items of draft: %w", err)
		}
		next, gone := row.NextItem, slices.Clone(known)
		for i := range draft.Items {
			item := &draft.Items[i]
			switch {
			case item.Item == 0:
				item.Item = next
				next++
			case !slices.Contains(known, item.Item):
				return invalid(fmt.Sprintf("/items/%d/item", i), "unknown_item", "the draft has no item of this number")
			}
			gone = slices.DeleteFunc(gone, func(n int32) bool { return n == item.Item })
			saved.Items = append(saved.Items, item.Item)
		}
		saved.Revision, err = nextRevision(ctx, tx, caller, db.DraftSaveParams{EventID: int64(event), Fence: fence, NewItems: next - row.NextItem})
		if err != nil {
			return err
		}
		if _, err := queries.DraftItemsDelete(ctx, tx, db.DraftItemsDeleteParams{EventID: int64(event), Items: gone}); err != nil {
			return fmt.Errorf("remove items: %w", err)
		}
		if err := draft.write(ctx, tx, &caller); err != nil {
			return err
		}
		head, err := queries.EventGet(ctx, tx, int64(event))
		if err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		if err := queries.DraftRebase(ctx, tx, db.DraftRebaseParams{EventID: int64(event), PlanID: *head.PlanID, PlanVersion: *head.PlanVersion}); err != nil {
			return fmt.Errorf("set base of draft: %w", err)
		}
		return audit(ctx, tx, caller, auditDraftSaved, &event, event, draftDetail{Revision: saved.Revision})
	})
	return saved, answer(err)
}

// clean brings all pages of a draft into the form in which they are kept.
func (d *Draft) clean(ctx context.Context) (err error) {
	if len(d.Items) > maxItems {
		return invalid("/items", "bad_count", "at most %d items", maxItems)
	}
	if d.Variables, err = cleanPage(ctx, PageVariables, d.Variables); err != nil {
		return at(err, "/variables")
	}
	if d.Document, err = cleanPage(ctx, PagePlan, d.Document); err != nil {
		return at(err, "/plan")
	}
	numbers := map[int32]bool{}
	for i := range d.Items {
		item, pointer := &d.Items[i], fmt.Sprintf("/items/%d", i)
		if item.Item < 0 || item.Item > 0 && numbers[item.Item] {
			return invalid(pointer+"/item", "duplicate_item", "an item stands once")
		}
		numbers[item.Item] = true
		if err := item.clean(ctx); err != nil {
			return at(err, pointer)
		}
	}
	return nil
}

func (i *DraftItem) clean(ctx context.Context) (err error) {
	for _, page := range []struct {
		name string
		body *json.RawMessage
	}{{PageDetails, &i.Details}, {PagePrices, &i.Prices}, {PageSeats, &i.Seats}} {
		if *page.body, err = cleanPage(ctx, page.name, *page.body); err != nil {
			return at(err, "/"+page.name)
		}
	}
	return nil
}

// AddDraftItem adds an empty section, for the caller who was given the fence of the whole.
func (s *Service) AddDraftItem(ctx context.Context, caller Caller, key Idempotency, event seats.EventID, fence int64, name string) (DraftSaved, bool, error) {
	if _, err := s.draftable(ctx, caller, event); err != nil {
		return DraftSaved{}, false, answer(err)
	}
	name, err := cleanTitle(name)
	if err != nil {
		return DraftSaved{}, false, at(err, "/name")
	}
	item := DraftItem{Prices: json.RawMessage(`{"prices":[]}`), Seats: json.RawMessage(`{"rows":[]}`)}
	if item.Details, err = encodePage(map[string]string{"name": name}); err != nil {
		return DraftSaved{}, false, err
	}
	if err := item.clean(ctx); err != nil {
		return DraftSaved{}, false, err
	}
	return once(ctx, s, event, caller, key, func(ctx context.Context) (saved DraftSaved, err error) {
		err = s.savingDraft(ctx, caller, event, fence, func(tx pgx.Tx, row db.Draft) error {
			known, err := queries.DraftItems(ctx, tx, int64(event))
			if err != nil {
				return fmt.Errorf("read items of draft: %w", err)
			}
			if len(known) >= maxItems {
				return invalid("", "bad_count", "at most %d items", maxItems)
			}
			saved.Revision, err = nextRevision(ctx, tx, caller, db.DraftSaveParams{EventID: int64(event), Fence: fence, NewItems: 1})
			if err != nil {
				return err
			}
			item.Item = row.NextItem
			saved.Items = []int32{item.Item}
			if err := (Draft{Event: event, Items: []DraftItem{item}}).write(ctx, tx, &caller); err != nil {
				return err
			}
			if err := audit(ctx, tx, caller, auditDraftSaved, &event, event, draftDetail{Item: &item.Item, Revision: saved.Revision}); err != nil {
				return err
			}
			return remember(ctx, tx, event, caller, key, saved)
		})
		return saved, err
	}, recalled[DraftSaved])
}

// RemoveDraftItem removes a section, for the caller who was given the fence of the whole.
func (s *Service) RemoveDraftItem(ctx context.Context, caller Caller, event seats.EventID, fence int64, item int32) error {
	if _, err := s.draftable(ctx, caller, event); err != nil {
		return answer(err)
	}
	return answer(s.savingDraft(ctx, caller, event, fence, func(tx pgx.Tx, _ db.Draft) error {
		known, err := queries.DraftItems(ctx, tx, int64(event))
		if err != nil {
			return fmt.Errorf("read items of draft: %w", err)
		}
		if !slices.Contains(known, item) {
			return ErrNotFound
		}
		revision, err := nextRevision(ctx, tx, caller, db.DraftSaveParams{EventID: int64(event), Fence: fence})
		if err != nil {
			return err
		}
		if _, err := queries.DraftItemsDelete(ctx, tx, db.DraftItemsDeleteParams{EventID: int64(event), Items: []int32{item}}); err != nil {
			return fmt.Errorf("remove item: %w", err)
		}
		return audit(ctx, tx, caller, auditDraftSaved, &event, event, draftDetail{Item: &item, Removed: true, Revision: revision})
	}))
}
