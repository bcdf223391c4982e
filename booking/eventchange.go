package booking

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// EventChange says what of an event to change; nil leaves a field as it is. An OrderLimit of 0 takes the limit away.
type EventChange struct {
	Name         *string    `json:"name,omitempty"`
	Venue        *string    `json:"venue,omitempty"`
	StartsAt     *time.Time `json:"starts_at,omitempty"`
	Status       *string    `json:"status,omitempty"`
	SaleStartsAt *time.Time `json:"sale_starts_at,omitempty"`
	SaleEndsAt   *time.Time `json:"sale_ends_at,omitempty"`
	OrphanRule   *bool      `json:"orphan_rule,omitempty"`
	OrderLimit   *int       `json:"order_limit,omitempty"`
}

// A change of an event waits for its turn for less than db.LockTimeout: the sales that queue behind it are not refused because of it.
const (
	changeTries     = 10
	changeWaitMS    = "300"
	changeRunMS     = "1000"
	changeRetryWait = 100 * time.Millisecond
)

// UpdateEvent changes an event of the organizer. A pause, an end or a cancel waits for the sales that are under way, and no sale commits
// after it; the holds and bookings of a cancelled event are undone by Sweep, in transactions of their own.
func (s *Service) UpdateEvent(ctx context.Context, caller Caller, id seats.EventID, change EventChange) (Event, error) {
	if caller.Kind != Organizer {
		return Event{}, ErrForbidden
	}
	if err := checkTimes(change.StartsAt, change.SaleStartsAt, change.SaleEndsAt); err != nil {
		return Event{}, err
	}
	if !caller.knows(id, caller.Organizer) {
		return Event{}, ErrNotFound
	}
	limit, err := orderLimit(change.OrderLimit)
	if err != nil {
		return Event{}, err
	}
	from := []string{StatusDraft, StatusOnSale, StatusPaused, StatusEnded}
	if change.Status != nil {
		from = reachableFrom[*change.Status]
	}
	if only := (EventChange{Status: change.Status}); change != only {
		from = slices.DeleteFunc(slices.Clone(from), func(status string) bool { return status == StatusCancelled })
	}
	var row db.EventUpdateRow
	err = s.writingEvent(ctx, id, nil, func(tx pgx.Tx) error {
		row, err = queries.EventUpdate(ctx, tx, db.EventUpdateParams{
			ID: int64(id), OrganizerID: caller.Organizer, FromStatus: from,
			Name: change.Name, Venue: change.Venue, StartsAt: change.StartsAt, Status: change.Status,
			SaleStartsAt: change.SaleStartsAt, SaleEndsAt: change.SaleEndsAt,
			OrphanRule: change.OrphanRule, SetOrderLimit: change.OrderLimit != nil, OrderLimit: limit,
		})
		if err != nil {
			return err
		}
		return audit(ctx, tx, caller, auditEventChanged, &id, id, change)
	})
	switch {
	case db.Violates(err, db.ConstraintSaleWindow):
		return Event{}, errWindow
	case db.NotFound(err):
		_, err := s.EventHead(ctx, caller, id)
		return Event{}, cmp.Or(err, ErrBadTransition)
	case err != nil:
		return Event{}, answer(fmt.Errorf("update event: %w", err))
	}
	return eventOf(db.EventGetRow(row)), nil
}

var errWindow = invalid("/sale_ends_at", "bad_window", "the sale must end after it starts")

// A time is written as JSON in UTC, which takes the years 0 to 9999; no event needs that many.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

func checkTimes(starts, saleStarts, saleEnds *time.Time) error {
	for _, given := range []struct {
		pointer string
		*time.Time
	}{{"/starts_at", starts}, {"/sale_starts_at", saleStarts}, {"/sale_ends_at", saleEnds}} {
		if t := given.Time; t != nil && (t.Before(earliest) || !t.Before(latest)) {
			return invalid(given.pointer, "bad_time", "a time lies in the years 2000 to 2199")
		}
	}
	return nil
}

// writingEvent runs a transaction whose write begins with the event's row: it waits for the event's sales that are under way, and until it
// ends none begins. What takes its time and touches no row that sells is for prepare, before that. Both are run again when a sale under
// way is too slow.
func (s *Service) writingEvent(ctx context.Context, id seats.EventID, prepare, write func(tx pgx.Tx) error) error {
	for try := 0; ; try++ {
		err := s.inTx(ctx, func(tx pgx.Tx) error {
			if prepare != nil {
				if err := prepare(tx); err != nil {
					return err
				}
			}
			limits := db.EventChangeLimitsParams{LockMs: changeWaitMS, StatementMs: changeRunMS}
			if err := queries.EventChangeLimits(ctx, tx, limits); err != nil {
				return err
			}
			if err := queries.EventTurn(ctx, tx, int64(id)); err != nil {
				return err
			}
			return write(tx)
		})
		if try == changeTries-1 || !db.LockTimedOut(err) && !db.Canceled(err) {
			return err
		}
		if err := pause(ctx, changeRetryWait); err != nil {
			return err
		}
	}
}

// lockOwnForChange takes the row of the organizer's own event for writing, in any status but cancelled.
func lockOwnForChange(ctx context.Context, tx pgx.Tx, caller Caller, id seats.EventID) (db.EventLockForChangeRow, error) {
	row, err := queries.EventLockForChange(ctx, tx, int64(id))
	switch {
	case db.NotFound(err), err == nil && !caller.knows(id, row.OrganizerID):
		return row, ErrNotFound
	case err != nil:
		return row, fmt.Errorf("lock event: %w", err)
	case row.Status == StatusCancelled:
		return row, ErrEventCancelled
	}
	return row, nil
}
