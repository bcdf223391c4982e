package booking

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// DraftPublished says which version of the plan a draft has become, and what that did to the event. Of a dry run Plan is the version that
// the event has.
type DraftPublished struct {
	Plan PlanRef
	Redrawn
}

// publication is a draft on its way to its event.
type publication struct {
	draft  Draft
	fence  int64
	caller Caller
	prices []draftPrice // of categories that the event has
	change PlanChange
}

// PublishDraft makes the draft the next version of its plan, publishes that and puts the event on it, as ChangePlan does, with the prices
// and settings that were saved, all at once. The caller has the fence of the whole. A dry run only says what would become of the seats.
// Once more it changes nothing.
func (s *Service) PublishDraft(ctx context.Context, caller Caller, id seats.EventID, fence int64, dryRun bool) (done DraftPublished, err error) {
	p := publication{fence: fence, caller: caller}
	if p.draft, err = s.Draft(ctx, caller, id); err != nil {
		return done, err
	}
	row, err := queries.DraftGet(ctx, s.pool, int64(id))
	if err != nil {
		return done, answer(fmt.Errorf("read draft: %w", err))
	}
	if err := p.check(row); err != nil {
		return done, err
	}
	event, err := s.EventHead(ctx, caller, id)
	if err != nil {
		return done, err
	}
	if *event.Plan != p.draft.Base {
		return done, ErrDraftOutdated
	}
	drawn, report, err := p.draft.drawing(ctx)
	if err != nil {
		return done, err
	}
	if err := p.priced(ctx, s, drawn.Layout().Categories); err != nil {
		return done, answer(err)
	}
	done.Plan = p.draft.Base
	p.change.drawn, p.change.DryRun = &drawn, true
	if done.Redrawn, err = s.ChangePlan(ctx, caller, id, p.change); err != nil || dryRun { // what is refused leaves no version behind
		return done, err
	}
	if err := s.savingDraft(ctx, caller, id, fence, func(tx pgx.Tx, row db.Draft) error {
		if err := p.check(row); err != nil {
			return err
		}
		done.Plan, err = p.version(ctx, tx, drawn, report)
		return err
	}); err != nil {
		return done, answer(err)
	}
	p.change.DryRun, p.change.Plan, p.change.Version = false, done.Plan.Plan, done.Plan.Version
	p.change.within = p.finish
	done.Redrawn, err = s.ChangePlan(ctx, caller, id, p.change)
	return done, err
}

// check refuses a fence that does not count any more, and a draft that has changed since it was read.
func (p publication) check(row db.Draft) error {
	switch {
	case row.GroupFence != p.fence || row.GroupHolder == nil || *row.GroupHolder != p.caller.ID || row.MemberFence > p.fence:
		return ErrLockLost
	case row.Revision != p.draft.Revision:
		return ErrBusy
	}
	return nil
}

// priced sorts the prices of the draft: those of new categories come with the plan.
func (p *publication) priced(ctx context.Context, s *Service, categories []string) error {
	list, err := readPrices(ctx, s.pool, p.draft.Event)
	if err != nil {
		return err
	}
	known, err := categoryNames(ctx, s.pool, p.draft.Event)
	if err != nil {
		return err
	}
	prices, err := p.draft.prices(categories, list.Types)
	for _, price := range prices {
		if slices.Contains(known, price.Category) {
			p.prices = append(p.prices, price)
		} else {
			p.change.Prices = append(p.change.Prices, Price{Category: price.Category, Type: price.Type, Amount: price.Amount})
		}
	}
	return err
}

func categoryNames(ctx context.Context, conn db.DBTX, event seats.EventID) ([]string, error) {
	rows, err := queries.CategoryList(ctx, conn, int64(event))
	if err != nil {
		return nil, fmt.Errorf("read categories: %w", err)
	}
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
	}
	return names, nil
}

// version makes the draft a published version of its plan, or finds that it is the newest already.
func (p publication) version(ctx context.Context, tx pgx.Tx, drawn plan.Plan, report plan.Report) (PlanRef, error) {
	in := PlanImport{Plan: &p.draft.Base.Plan, Document: drawn, Report: report}
	next, document, err := in.version()
	if err != nil {
		return PlanRef{}, err
	}
	if next.Plan, err = ensurePlan(ctx, tx, p.caller.Organizer, in); err != nil {
		return PlanRef{}, err
	}
	made, err := addVersion(ctx, tx, p.caller, next, document)
	if err != nil || made.Status == PlanPublished {
		return PlanRef{made.Plan, made.Number}, err
	}
	if _, err := queries.PlanVersionPublish(ctx, tx, db.PlanVersionPublishParams{
		PlanID: int64(made.Plan), Number: made.Number, OrganizerID: p.caller.Organizer,
	}); err != nil {
		return PlanRef{}, fmt.Errorf("publish version: %w", err)
	}
	return PlanRef{made.Plan, made.Number}, audit(ctx, tx, p.caller, auditPlanPublished, nil, made.Plan, versionDetail{made.Number, PlanPublished})
}

// publishedDetail is what the audit log keeps of a published draft.
type publishedDetail struct {
	PlanRef
	Revision  int64           `json:"revision"`
	Variables *draftVariables `json:"variables,omitempty"`
	Prices    []draftPrice    `json:"prices,omitempty"`
}

// finish writes the rest of the draft in the transaction that puts the event on its plan, with the event's row and its price list locked:
// an editor who was thought to be gone, and wakes up here, is refused with all of it.
func (p publication) finish(ctx context.Context, tx pgx.Tx) error {
	row, err := queries.DraftLock(ctx, tx, int64(p.draft.Event))
	if err != nil {
		return fmt.Errorf("lock draft: %w", err)
	}
	if err := p.check(row); err != nil {
		return err
	}
	event, err := queries.EventGet(ctx, tx, int64(p.draft.Event))
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	if *event.PlanID != int64(p.draft.Base.Plan) || *event.PlanVersion != p.draft.Base.Version {
		return ErrDraftOutdated
	}
	detail := publishedDetail{PlanRef: PlanRef{p.change.Plan, p.change.Version}, Revision: p.draft.Revision, Prices: p.prices}
	if p.draft.varied {
		v, err := readVariables(p.draft.Variables)
		if err != nil {
			return at(err, "/variables")
		}
		if err := v.apply(ctx, tx, p.caller, p.draft.Event); err != nil {
			return err
		}
		detail.Variables = &v
	}
	if err := p.reprice(ctx, tx); err != nil {
		return err
	}
	if err := queries.DraftPublished(ctx, tx, db.DraftPublishedParams{
		EventID: int64(p.draft.Event), PlanID: int64(p.change.Plan), PlanVersion: p.change.Version,
	}); err != nil {
		return fmt.Errorf("mark draft: %w", err)
	}
	return audit(ctx, tx, p.caller, auditDraftPublished, &p.draft.Event, p.draft.Event, detail)
}

func (v draftVariables) apply(ctx context.Context, tx pgx.Tx, caller Caller, event seats.EventID) error {
	limit, err := orderLimit(v.OrderLimit)
	if err != nil {
		return err
	}
	if _, err := queries.EventUpdate(ctx, tx, db.EventUpdateParams{
		ID: int64(event), OrganizerID: caller.Organizer, FromStatus: []string{StatusDraft, StatusOnSale, StatusPaused, StatusEnded},
		Name: v.Name, SaleStartsAt: v.SaleStartsAt, SaleEndsAt: v.SaleEndsAt, OrphanRule: v.OrphanRule, SetOrderLimit: true, OrderLimit: limit,
	}); err != nil {
		return fmt.Errorf("update event: %w", err)
	}
	return nil
}

// reprice gives categories that the event has the first prices of the draft. Later tiers stay.
func (p publication) reprice(ctx context.Context, tx pgx.Tx) error {
	list, err := readPrices(ctx, tx, p.draft.Event)
	if err != nil {
		return err
	}
	changed := false
	for _, price := range p.prices {
		i := slices.IndexFunc(list.Prices, func(have Price) bool {
			return have.From == nil && have.Category == price.Category && have.Type == price.Type
		})
		switch {
		case i < 0:
			list.Prices, changed = append(list.Prices, Price{Category: price.Category, Type: price.Type, Amount: price.Amount}), true
		case list.Prices[i].Amount != price.Amount:
			list.Prices[i].Amount, changed = price.Amount, true
		}
	}
	if !changed {
		return nil
	}
	names, err := categoryNames(ctx, tx, p.draft.Event)
	if err != nil {
		return err
	}
	if err := list.check(names, 0); err != nil {
		return at(err, "/items")
	}
	if err := queries.PriceDelete(ctx, tx, int64(p.draft.Event)); err != nil {
		return fmt.Errorf("delete prices: %w", err)
	}
	return writePrices(ctx, tx, p.draft.Event, len(list.Types), list, names)
}
