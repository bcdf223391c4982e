// Package shed is the door that holds and direct bookings of named seats pass on their way to Postgres. It asks the advice of the seat
// locks in Redis and turns away whoever would only queue for a row that somebody else is writing. It decides nothing: with every answer
// of Redis wrong, the same seats are sold to the same number of people.
package shed

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/lockmgr"
	"seatfence/seats"
)

const (
	// duplicateWait is how long a request waits for another of the same caller and key. A sale takes milliseconds, unless it is stuck.
	duplicateWait = 2 * time.Second
	duplicateStep = 25 * time.Millisecond
)

// Gate is the door. It is safe for concurrent use.
type Gate struct {
	locks   *lockmgr.Seats
	booking *booking.Service
}

// New returns a gate. With locks nil it lets everybody through.
func New(locks *lockmgr.Seats, service *booking.Service) *Gate {
	return &Gate{locks: locks, booking: service}
}

// Pass is a way through the gate. Leave ends it.
type Pass struct {
	lease     lockmgr.Lease
	duplicate bool
}

// Leave gives the locks back. It may be called on the zero Pass.
func (p Pass) Leave(ctx context.Context) { p.lease.Release(ctx) }

// Told turns the answer of the database into that of the request: who is a duplicate and finds the seats busy has met itself.
func (p Pass) Told(err error) error {
	if e, ok := errors.AsType[*booking.SeatsError](err); ok && p.duplicate && e.Code == booking.CodeSeatBusy {
		return booking.ErrKeyInProgress
	}
	return err
}

// Enter asks for a way to the given seats of an event; without any, as for places of an area, there is nothing to ask, because whoever
// wants one takes another. It returns seat_busy if another caller is writing one of the seats. A request whose key has succeeded before
// gets through, to be answered with that success; so does one that has waited in vain for an earlier one with its key, because the lock
// may be all that is left of that: the row and the key decide. Without a key (key.Key empty) a request is nobody's duplicate.
func (g *Gate) Enter(ctx context.Context, caller booking.Caller, event seats.EventID, ids []seats.ID, key booking.Idempotency) (Pass, error) {
	if len(ids) == 0 {
		return Pass{}, nil
	}
	owner := lockmgr.Owner{Caller: caller.ID.String(), Key: key.Key}
	if key.Key == "" {
		owner.Key = uuid.NewString()
	}
	deadline := time.Now().Add(duplicateWait)
	for {
		lease := g.locks.Acquire(ctx, int64(event), ids, owner)
		if lease.Verdict == lockmgr.Acquired || lease.Verdict == lockmgr.Skipped {
			return Pass{lease: lease}, nil
		}
		if known, err := g.known(ctx, event, caller, key); err != nil || known {
			return Pass{}, err
		}
		if lease.Verdict == lockmgr.Busy {
			return Pass{}, booking.Busy(lease.Busy)
		}
		if time.Now().After(deadline) {
			return Pass{duplicate: true}, nil
		}
		if err := sleep(ctx, duplicateStep); err != nil {
			return Pass{}, err
		}
	}
}

func (g *Gate) known(ctx context.Context, event seats.EventID, caller booking.Caller, key booking.Idempotency) (bool, error) {
	if key.Key == "" {
		return false, nil
	}
	return g.booking.Known(ctx, event, caller, key)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
