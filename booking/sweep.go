package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// sweepBatch is how many holds, bookings or events one round of Sweep looks up.
const sweepBatch = 100

// Sweep makes visible what time has decided already: holds that have run out, and what is left of cancelled events. It returns how many
// it ended; more than zero means that more may wait. One that fails does not keep the others. Nothing depends on Sweep to be correct: an
// expired hold is taken over in place.
func (s *Service) Sweep(ctx context.Context) (ended int, err error) {
	over, err := queries.HoldsOver(ctx, s.pool, sweepBatch)
	if err != nil {
		return 0, fmt.Errorf("find expired holds: %w", err)
	}
	var errs []error
	for _, h := range over {
		done, err := s.expire(ctx, HoldID{seats.EventID(h.EventID), h.ID})
		if err != nil && !db.LockTimedOut(err) {
			errs = append(errs, fmt.Errorf("expire hold: %w", err))
		}
		ended += done
	}
	cancelled, err := queries.EventsToUnwind(ctx, s.pool, sweepBatch)
	if err != nil {
		errs = append(errs, fmt.Errorf("find cancelled events: %w", err))
	}
	for _, event := range cancelled {
		n, err := s.unwind(ctx, seats.EventID(event))
		if err != nil && !db.LockTimedOut(err) {
			errs = append(errs, fmt.Errorf("unwind event: %w", err))
		}
		ended += n
	}
	return ended, errors.Join(errs...)
}

// expire ends one hold, if it is still over and nobody else is writing it.
func (s *Service) expire(ctx context.Context, id HoldID) (done int, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		_, err := queries.HoldLockOver(ctx, tx, db.HoldLockOverParams{EventID: int64(id.Event), ID: id.Key})
		if db.NotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		done = 1
		return endHold(ctx, tx, id, HoldExpired, nil)
	})
	if err != nil {
		return 0, err
	}
	return done, nil
}

// unwind releases the holds and cancels the bookings of a cancelled event, each in its own transaction: it can stop anywhere and go on
// later, on any node. No new ones come, because the event's status was committed first and every sale locks the event.
func (s *Service) unwind(ctx context.Context, event seats.EventID) (ended int, err error) {
	open, err := queries.HoldsOpen(ctx, s.pool, db.HoldsOpenParams{EventID: int64(event), MaxRows: sweepBatch})
	if err != nil {
		return 0, err
	}
	for _, id := range open {
		if err := s.releaseOf(ctx, HoldID{event, id}); err != nil {
			return ended, err
		}
		ended++
	}
	booked, err := queries.BookingsConfirmed(ctx, s.pool, db.BookingsConfirmedParams{EventID: int64(event), MaxRows: sweepBatch})
	if err != nil {
		return ended, err
	}
	for _, id := range booked {
		err := s.inTx(ctx, func(tx pgx.Tx) error { return cancel(ctx, tx, BookingID{event, id}, uuid.Nil) })
		if err != nil && !errors.Is(err, ErrBookingCancelled) {
			return ended, err
		}
		ended++
	}
	if ended > 0 {
		s.committed()
		return ended, nil
	}
	return 0, queries.EventUnwound(ctx, s.pool, int64(event))
}

func (s *Service) releaseOf(ctx context.Context, id HoldID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		row, err := queries.HoldLock(ctx, tx, db.HoldLockParams{EventID: int64(id.Event), ID: id.Key})
		if err != nil || row.Status != HoldOpen {
			return err
		}
		return endHold(ctx, tx, id, HoldReleased, nil)
	})
}

// Purge forgets idempotency keys that are older than they are kept.
func (s *Service) Purge(ctx context.Context) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := queries.LongStatements(ctx, tx); err != nil {
			return err
		}
		_, err := queries.KeyPurge(ctx, tx, s.limits.KeyRetention)
		return err
	})
}
