package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// PlanChange puts an event on another published version of a plan. Prices are for categories that the event does not have yet. DryRun
// only says what would become of its seats.
type PlanChange struct {
	Plan    PlanID
	Version int32
	Prices  []Price
	DryRun  bool

	drawn  *plan.Plan                                 // what the version is, if the caller has it, or if it is none yet
	within func(ctx context.Context, tx pgx.Tx) error // comes with the change, behind the event's lock
}

// Redrawn counts what a new plan did to the seats and places of an event. Renamed ones are among the dropped and the added.
type Redrawn struct {
	Kept          int
	Added         int
	Dropped       int
	Renamed       int
	Recategorised int
}

// errRedrawn says that somebody else has changed what the event has to sell in between. It never leaves the package.
var errRedrawn = errors.New("the event has been redrawn")

// maxRedraws is how often a change of the plan begins again because another one was quicker.
const maxRedraws = 3

// ChangePlan applies what is safe of a plan to the organizer's event while it sells: seats move, come, change their category, and go where
// nobody has them. If it would drop or rename one that is held, sold or allotted, nothing is changed and the refusal names each.
func (s *Service) ChangePlan(ctx context.Context, caller Caller, id seats.EventID, change PlanChange) (done Redrawn, err error) {
	if caller.Kind != Organizer {
		return done, ErrForbidden
	}
	for range maxRedraws {
		if done, err = s.changePlan(ctx, caller, id, change); !errors.Is(err, errRedrawn) {
			return done, answer(err)
		}
	}
	return done, ErrBusy
}

// redrawing is a change of an event's plan as far as it can be worked out before anything is locked.
type redrawing struct {
	seats.Redrawing
	event   db.EventGetRow
	layout  seats.Layout
	renamed map[seats.Place]seats.Place
	prices  PriceList // with those of new categories
	known   int       // categories that the event has
}

func (s *Service) changePlan(ctx context.Context, caller Caller, id seats.EventID, change PlanChange) (Redrawn, error) {
	r, err := s.plans(ctx, caller, id, change)
	if err != nil {
		return Redrawn{}, err
	}
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) (err error) {
		return r.compare(ctx, tx, id, change)
	})
	if err != nil {
		return Redrawn{}, err
	}
	done := r.summary()
	if change.DryRun {
		return done, db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
			_, err := r.leaving(ctx, tx, id)
			return err
		})
	}
	err = s.writingEvent(ctx, id, func(tx pgx.Tx) error {
		return r.prepare(ctx, tx, id)
	}, func(tx pgx.Tx) error {
		return r.apply(ctx, tx, caller, id, change)
	})
	return done, err
}

// plans reads the event and both plans, outside of any transaction: they are large, and published ones do not change.
func (s *Service) plans(ctx context.Context, caller Caller, id seats.EventID, change PlanChange) (r redrawing, err error) {
	event, err := s.EventHead(ctx, caller, id)
	if err != nil {
		return r, err
	}
	if event.Status == StatusCancelled {
		return r, ErrEventCancelled
	}
	if r.event, err = queries.EventGet(ctx, s.pool, int64(id)); err != nil {
		return r, fmt.Errorf("read event: %w", err)
	}
	next := change.drawn
	if next == nil {
		read, err := publishedPlan(ctx, s.pool, caller, "/version", change.Plan, change.Version)
		if err != nil {
			return r, err
		}
		next = &read
	}
	r.layout = next.Layout()
	if r.event.PlanID != nil {
		old, err := readPlan(ctx, s.pool, caller, PlanID(*r.event.PlanID), *r.event.PlanVersion)
		if err != nil {
			return r, err
		}
		r.renamed = plan.Renamed(old, *next)
	}
	return r, nil
}

// compare finds out what the next plan would change of the event's stock.
func (r *redrawing) compare(ctx context.Context, tx pgx.Tx, id seats.EventID, change PlanChange) error {
	event, err := queries.EventGet(ctx, tx, int64(id))
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	if event.Layout != r.event.Layout {
		return errRedrawn
	}
	stock, err := seats.ReadStock(ctx, tx, id, nil)
	if err != nil {
		return err
	}
	areas, err := seats.ReadAreas(ctx, tx, id)
	if err != nil {
		return err
	}
	rows, err := queries.CategoryList(ctx, tx, int64(id))
	if err != nil {
		return fmt.Errorf("read categories: %w", err)
	}
	var categories []string
	for _, row := range rows {
		categories = append(categories, row.Name)
	}
	r.known = len(categories)
	r.Redrawing = seats.Redraw(stock, areas, categories, &r.layout)
	if len(stock)+len(r.Added) > 2*seats.MaxSeats {
		return invalid("", "too_many_seats", "the event has had too many seats that are no longer on its plan; make a new event")
	}
	if r.prices, err = readPrices(ctx, tx, id); err != nil {
		return err
	}
	known := len(r.prices.Prices)
	r.prices.Prices = append(r.prices.Prices, PriceList{r.prices.Types, change.Prices}.named().Prices...)
	if err := r.prices.check(r.layout.Categories, known); err != nil {
		return err
	}
	r.prices.Prices = r.prices.Prices[known:]
	return nil
}

func (r redrawing) summary() Redrawn {
	done := Redrawn{Added: len(r.Added), Dropped: len(r.Dropped), Recategorised: len(r.Recategorised)}
	done.Kept = len(r.IDs) - len(r.Added)
	for _, s := range r.Dropped {
		if _, renamed := r.renamed[s.Place]; renamed {
			done.Renamed++
		}
	}
	for _, a := range r.Areas {
		done.Added += int(a.Grow)
		done.Dropped += int(a.Shrink)
		done.Kept += len(a.Units) - int(a.Shrink)
	}
	return done
}

// prepare writes what no sale looks at: where seats are, new seats, new categories and their prices.
func (r redrawing) prepare(ctx context.Context, tx pgx.Tx, id seats.EventID) error {
	if err := queries.LongStatements(ctx, tx); err != nil {
		return err
	}
	if err := queries.PriceListLock(ctx, tx, int64(id)); err != nil { // changes of one event take turns
		return fmt.Errorf("lock price list: %w", err)
	}
	layout, err := queries.HallLayout(ctx, tx, int64(id))
	if err != nil {
		return fmt.Errorf("read layout: %w", err)
	}
	if layout != r.event.Layout {
		return errRedrawn // by whoever had the turn before: the numbers of what is new are taken
	}
	for i, name := range r.Categories {
		if err := queries.CategoryAdd(ctx, tx, db.CategoryAddParams{EventID: int64(id), ID: int32(r.known + i + 1), Name: name}); err != nil {
			return fmt.Errorf("insert category: %w", err)
		}
	}
	if err := writePrices(ctx, tx, id, len(r.prices.Types), r.prices, r.layout.Categories); err != nil {
		return err
	}
	if err := r.DrawSpots(ctx, tx, id, r.layout); err != nil {
		return err
	}
	return r.DrawAreas(ctx, tx, id)
}

// apply finds out, with the event's row locked against every sale, whether anybody has what is to go, and writes the rest.
func (r redrawing) apply(ctx context.Context, tx pgx.Tx, caller Caller, id seats.EventID, change PlanChange) error {
	event, err := lockOwnForChange(ctx, tx, caller, id)
	if err != nil {
		return err
	}
	if event.Layout != r.event.Layout {
		return errRedrawn
	}
	if change.within != nil {
		if err := change.within(ctx, tx); err != nil {
			return err
		}
	}
	if err := queries.LongStatements(ctx, tx); err != nil {
		return err
	}
	touched := slices.Clone(r.Returned)
	for _, list := range [][]seats.Stock{r.Dropped, r.Recategorised} {
		for _, s := range list {
			touched = append(touched, s.ID)
		}
	}
	for _, a := range r.Areas {
		if a.Shrink > 0 {
			touched = append(touched, a.Units...)
		}
	}
	if _, err := seats.Lock(ctx, tx, id, touched); err != nil { // a release or a cancellation does not ask for the event
		return fmt.Errorf("lock seats: %w", err)
	}
	leaving, err := r.leaving(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := r.takeOff(ctx, tx, caller, id, leaving, change.Version); err != nil {
		return err
	}
	if err := seats.Recategorise(ctx, tx, id, r.Recategorised); err != nil {
		return fmt.Errorf("recategorise seats: %w", err)
	}
	planID := int64(change.Plan)
	if err := queries.EventSetPlan(ctx, tx, db.EventSetPlanParams{
		ID: int64(id), PlanID: &planID, PlanVersion: &change.Version, WholeTables: r.layout.WholeTables(),
	}); err != nil {
		return fmt.Errorf("set plan: %w", err)
	}
	return audit(ctx, tx, caller, auditPlanChanged, &id, id, planDetail{PlanRef{change.Plan, change.Version}, r.prices.Prices})
}

// planDetail is what the audit log keeps of a new plan: which, and the prices that came with it.
type planDetail struct {
	PlanRef
	Prices []Price `json:"prices,omitempty"`
}

// takeOff takes seats and places off the plan, and brings back those that an earlier plan had taken off.
func (r redrawing) takeOff(ctx context.Context, tx pgx.Tx, caller Caller, id seats.EventID, leaving []seats.ID, version int32) error {
	if len(leaving)+len(r.Returned) == 0 {
		return nil
	}
	block := uuid.Must(uuid.NewV7())
	if err := queries.PlanBlockInsert(ctx, tx, db.PlanBlockInsertParams{
		EventID: int64(id), ID: block, Reason: "not on the plan", CreatedBy: caller.ID, PlanVersion: version,
	}); err != nil {
		return fmt.Errorf("insert block: %w", err)
	}
	gone, err := seats.Withdraw(ctx, tx, id, block, caller.ID, leaving)
	if err != nil {
		return fmt.Errorf("withdraw seats: %w", err)
	}
	if len(gone) < len(leaving) {
		return fmt.Errorf("withdrew %d of %d seats that are locked and free", len(gone), len(leaving))
	}
	if _, err := seats.Return(ctx, tx, id, block, caller.ID, r.Returned); err != nil {
		return fmt.Errorf("return seats: %w", err)
	}
	return nil
}

// leaving are the seats and places that go, or a refusal that names each that somebody has.
func (r redrawing) leaving(ctx context.Context, tx pgx.Tx, id seats.EventID) (ids []seats.ID, err error) {
	ask := []seats.ID{}
	for _, s := range r.Dropped {
		ask = append(ask, s.ID)
	}
	for _, a := range r.Areas {
		if a.Shrink > 0 {
			ask = append(ask, a.Units...)
		}
	}
	stock, err := seats.ReadStock(ctx, tx, id, ask)
	if err != nil {
		return nil, err
	}
	refusal := &SeatsError{Code: CodePlan}
	free, taken := map[int32][]seats.ID{}, map[int32][]seats.Stock{}
	for _, s := range stock {
		switch {
		case s.Area != nil && s.State == string(seats.Free):
			free[*s.Area] = append(free[*s.Area], s.ID)
		case s.Area != nil:
			taken[*s.Area] = append(taken[*s.Area], s)
		case s.State == string(seats.Free):
			ids = append(ids, s.ID)
		default:
			refusal.Seats = append(refusal.Seats, r.lost(s))
		}
	}
	for _, a := range r.Areas {
		n, has := int(a.Shrink), free[a.ID]
		if missing := n - len(has); missing > 0 {
			for _, s := range taken[a.ID][:missing] {
				refusal.Seats = append(refusal.Seats, r.lost(s))
			}
			continue
		}
		ids = append(ids, has[len(has)-n:]...)
	}
	if len(refusal.Seats) > 0 {
		return nil, refusal
	}
	return ids, nil
}

// lost says of a seat or place that somebody has what the plan would do to it.
func (r redrawing) lost(s seats.Stock) LostSeat {
	l := LostSeat{ID: s.ID, Place: s.Place, Reason: s.State, Change: ChangeDropped}
	if to, ok := r.renamed[s.Place]; ok && s.Area == nil {
		l.Change, l.Becomes = ChangeRenamed, &to
	}
	return l
}
