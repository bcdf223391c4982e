package booking

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatfence/db"
	"seatfence/internal/failpoint"
	"seatfence/seats"
)

var queries = db.New()

// Limits bound what one caller can take. All are inclusive.
type Limits struct {
	Seats        int           // in one request, one hold and one booking
	HeldByBuyer  int           // by one buyer session in one event at a time
	HeldByKey    int           // by one API key in one event at a time
	HoldTTL      time.Duration // from acquiring, and from each extension
	HoldLongest  time.Duration // from acquiring, whatever is extended
	Extensions   int
	KeyRetention time.Duration // of idempotency keys
}

// DefaultLimits are the limits of a server that is told nothing else.
var DefaultLimits = Limits{
	Seats: 20, HeldByBuyer: 20, HeldByKey: 1000,
	HoldTTL: 10 * time.Minute, HoldLongest: 30 * time.Minute, Extensions: 3,
	KeyRetention: 24 * time.Hour,
}

// Kind is what a caller is.
type Kind int

// The kinds of callers.
const (
	Buyer     Kind = iota // an anonymous session
	Partner               // an API key that sells for an organizer
	Organizer             // the organizer: one of its keys, or of its staff
)

// Caller is who asks. ID is the session's, the key's or the user's id: the opaque buyer that seats, holds and idempotency keys carry.
type Caller struct {
	Kind      Kind
	ID        uuid.UUID
	Organizer int64           // 0 for buyers
	Events    []seats.EventID // all that the caller may know of the organizer's; nil is every one
	Staff     bool            // a person who has signed in, and no key
}

// owns reports whether the caller may see and use what belongs to owner in an organizer's event.
func (c Caller) owns(event seats.EventID, owner uuid.UUID, organizer int64) bool {
	if c.Kind == Organizer {
		return c.knows(event, organizer)
	}
	return c.ID == owner
}

// sees reports whether the caller may know of an event.
func (c Caller) sees(event seats.EventID, organizer int64, status string) bool {
	if c.Kind == Buyer {
		return status != StatusDraft
	}
	return c.knows(event, organizer)
}

func (c Caller) knows(event seats.EventID, organizer int64) bool {
	return c.Organizer == organizer && (c.Events == nil || slices.Contains(c.Events, event))
}

// only is c.Events as queries take it: nil, and that alone, is every event.
func (c Caller) only() []int64 {
	if c.Events == nil {
		return nil
	}
	ids := make([]int64, len(c.Events))
	for i, id := range c.Events {
		ids[i] = int64(id)
	}
	return ids
}

// Idempotency is a caller's key for one request and a fingerprint of the request.
type Idempotency struct {
	Key         string
	Fingerprint []byte
}

// NewIdempotency returns a key with the fingerprint of a request's parts.
func NewIdempotency(key string, parts ...[]byte) Idempotency {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // so that no two lists of parts read the same
		sum.Write(part)
	}
	return Idempotency{Key: key, Fingerprint: sum.Sum(nil)}
}

// Service is the use cases over one database. It is safe for concurrent use.
type Service struct {
	pool   *pgxpool.Pool
	limits Limits

	// Committed, if set, is called after each commit that left something in the outbox. It must not block.
	Committed func()
	// Guarded, if set, is called when a unique index refused what a condition should have refused.
	Guarded func()

	halls   halls
	cursors sync.Map // areaKey → *cursor
	states  views[*MapState]
	maps    views[*Map]
}

// New returns the use cases over pool.
func New(pool *pgxpool.Pool, limits Limits) *Service { return &Service{pool: pool, limits: limits} }

const (
	maxReruns  = 2
	rerunPause = 20 * time.Millisecond
)

// once runs a write that creates something under the caller's key. Whatever refuses it, an earlier success under the same key answers
// first: the seat that "somebody" has may be its own. A write whose session was lost is run again, because the key tells whether it had
// been committed.
func once[T any](ctx context.Context, s *Service, event seats.EventID, caller Caller, key Idempotency,
	run func(context.Context) (T, error), recall func(context.Context, []byte) (T, error),
) (result T, replayed bool, err error) {
	for try := 0; ; try++ {
		if result, err = run(ctx); err == nil {
			return result, false, nil
		}
		stored, known, lookupErr := s.lookup(ctx, event, caller, key)
		switch {
		case lookupErr != nil:
			return result, false, fmt.Errorf("%w (after: %v)", lookupErr, err)
		case known:
			result, err = recall(ctx, stored)
			return result, err == nil, err
		}
		if try == maxReruns || !again(err) {
			return result, false, answer(err)
		}
		if err := pause(ctx, time.Duration(try+1)*rerunPause); err != nil {
			return result, false, err
		}
	}
}

// again reports whether a failed write may succeed when it is run once more.
func again(err error) bool {
	return db.Lost(err) || db.Conflicted(err) || db.Violates(err, db.ConstraintBookingNumber) || db.Violates(err, db.ConstraintKey)
}

// answer turns what Postgres said into what the caller is told.
func answer(err error) error {
	switch {
	case db.BadValue(err):
		return fmt.Errorf("%w (%w)", invalid("", "bad_value", "a value is not of the kind that is stored"), err)
	case db.LockTimedOut(err):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case db.Unavailable(err), db.Conflicted(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func pause(ctx context.Context, about time.Duration) error {
	timer := time.NewTimer(about/2 + rand.N(about))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// lookup returns the stored result of an earlier success under the key; ErrKeyReused if that was another request.
func (s *Service) lookup(ctx context.Context, event seats.EventID, caller Caller, key Idempotency) ([]byte, bool, error) {
	row, err := queries.KeyGet(ctx, s.pool, db.KeyGetParams{EventID: int64(event), Caller: caller.ID, Key: key.Key})
	switch {
	case db.NotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, answer(fmt.Errorf("look up idempotency key: %w", err))
	case string(row.Fingerprint) != string(key.Fingerprint):
		return nil, false, ErrKeyReused
	}
	return row.Result, true, nil
}

// Known reports whether a request has succeeded under the key.
func (s *Service) Known(ctx context.Context, event seats.EventID, caller Caller, key Idempotency) (bool, error) {
	_, known, err := s.lookup(ctx, event, caller, key)
	return known, err
}

// remember stores the result under the key, as the last row of its transaction.
func remember(ctx context.Context, tx pgx.Tx, event seats.EventID, caller Caller, key Idempotency, result any) error {
	stored, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	return queries.KeyInsert(ctx, tx, db.KeyInsertParams{
		EventID: int64(event), Caller: caller.ID, Key: key.Key, Fingerprint: key.Fingerprint, Result: stored,
	})
}

// recalled decodes a result that remember stored.
func recalled[T any](_ context.Context, stored []byte) (result T, err error) {
	if err := json.Unmarshal(stored, &result); err != nil {
		return result, fmt.Errorf("decode stored result: %w", err)
	}
	return result, nil
}

// inTx runs fn in one transaction and passes the named points around its end.
func (s *Service) inTx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	err := db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return failpoint.Hit(ctx, failpoint.BeforeCommit)
	})
	if err != nil {
		return err
	}
	return failpoint.Hit(ctx, failpoint.AfterCommit)
}

func (s *Service) committed() {
	if s.Committed != nil {
		s.Committed()
	}
}

type areaKey struct {
	event seats.EventID
	area  int32
}

// cursor is where a node looks first for free places of an area. It is a hint: a wrong one costs time, not places.
type cursor struct{ next atomic.Int32 }

// cursor returns that of an area, or a new one, which is kept only once places are found: areas that do not exist cost nothing.
func (s *Service) cursor(event seats.EventID, area int32) *cursor {
	if c, known := s.cursors.Load(areaKey{event, area}); known {
		return c.(*cursor)
	}
	return new(cursor)
}

// found moves an area's cursor behind places that were free.
func (s *Service) found(event seats.EventID, area int32, last seats.ID) {
	kept, _ := s.cursors.LoadOrStore(areaKey{event, area}, new(cursor))
	c := kept.(*cursor)
	for at := c.next.Load(); at <= last && !c.next.CompareAndSwap(at, last+1); at = c.next.Load() {
	}
}

// ahead is where a request for n places begins: behind those that other requests of this node are about to take.
func (c *cursor) ahead(n int) seats.ID { return c.next.Add(int32(n)) - int32(n) }

// reset goes back to the beginning, when none was found from the cursor on.
func (c *cursor) reset() { c.next.Store(0) }
