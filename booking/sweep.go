package booking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// How much one round of Sweep takes on. Holds come first in each: what is left of a cancelled event must not keep an expiry from sight.
const (
	sweepBatch  = 100 // holds
	unwindBatch = 20  // holds and bookings of one cancelled event
)

// Sweep makes visible what time has decided already: holds that have run out, and what is left of a cancelled event. It returns how many
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
	event, err := queries.EventToUnwind(ctx, s.pool)
	switch {
	case db.NotFound(err):
		return ended, errors.Join(errs...)
	case err == nil:
		var n int
		n, err = s.unwind(ctx, seats.EventID(event))
		ended += n
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("unwind a cancelled event: %w", err))
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
// later, on any node, and one that fails does not keep the others. No new ones come, because the event's status was committed first and
// every sale locks the event.
func (s *Service) unwind(ctx context.Context, event seats.EventID) (ended int, err error) {
	open, err := queries.HoldsOpen(ctx, s.pool, db.HoldsOpenParams{EventID: int64(event), MaxRows: unwindBatch})
	if err != nil {
		return 0, err
	}
	booked, err := queries.BookingsConfirmed(ctx, s.pool, db.BookingsConfirmedParams{EventID: int64(event), MaxRows: unwindBatch})
	if err != nil {
		return 0, err
	}
	if len(open)+len(booked) == 0 {
		return 0, queries.EventUnwound(ctx, s.pool, int64(event))
	}
	var errs []error
	end := func(err error) {
		if err != nil && !errors.Is(err, ErrBookingCancelled) {
			errs = append(errs, err)
			return
		}
		ended++
	}
	for _, id := range open {
		end(s.releaseOf(ctx, HoldID{event, id}))
	}
	for _, id := range booked {
		end(s.inTx(ctx, func(tx pgx.Tx) error { return cancel(ctx, tx, BookingID{event, id}, uuid.Nil) }))
	}
	s.committed()
	return ended, errors.Join(errs...)
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

// outboxKept is how long a row of the outbox that was handed on still shows that it was.
const outboxKept = 7 * 24 * time.Hour

// Purge forgets idempotency keys, and rows of the outbox that were handed on, when they are older than they are kept.
func (s *Service) Purge(ctx context.Context) error {
	return errors.Join(
		inBatches(func() (int64, error) {
			return queries.KeyPurge(ctx, s.pool, db.KeyPurgeParams{Age: s.limits.KeyRetention, MaxRows: purgeBatch})
		}),
		inBatches(func() (int64, error) {
			return queries.OutboxPurge(ctx, s.pool, db.OutboxPurgeParams{Age: outboxKept, MaxRows: purgeBatch})
		}))
}

func inBatches(purge func() (int64, error)) error {
	for {
		if n, err := purge(); err != nil || n < purgeBatch {
			return err
		}
	}
}

// purgeBatch is small enough for the time limit of a statement, however much has gathered.
const purgeBatch = 5000
