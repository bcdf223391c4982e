// Package lockmgr holds the leases kept in Redis. They shed load and make
// nothing correct: a seat gets its owner in Postgres, and every answer here may
// be wrong, late or missing without a seat being sold twice.
//
// Nothing in this package may return an error to a sale or make it wait longer
// than requestBudget. It is a leaf: it knows Redis and nothing of the project.
package lockmgr

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// DefaultTTL is how long a seat lock lives when nobody releases it.
	DefaultTTL = 10 * time.Second

	// acquireBudget limits what an acquire waits for Redis: pool, dial,
	// handshake, script and a script load together.
	acquireBudget = 45 * time.Millisecond
	// requestBudget limits an acquire and its release together. What a request
	// pays for a stalled Redis stays under 60 ms with some room for scheduling.
	requestBudget = 55 * time.Millisecond
	// releaseFloor is what a release gets after an acquire that used up its own
	// budget: a lost reply says nothing about the next round trip.
	releaseFloor = requestBudget - acquireBudget
)

var (
	//go:embed seats_acquire.lua
	seatsAcquireSrc string
	//go:embed seats_release.lua
	seatsReleaseSrc string

	seatsAcquire = redis.NewScript(seatsAcquireSrc)
	seatsRelease = redis.NewScript(seatsReleaseSrc)
)

// Owner says who asks for a lock. Caller is the buyer session or API key that
// the request came with, Key its idempotency key. Redis sees hashes of both.
type Owner struct {
	Caller string
	Key    string
}

// Verdict is what Redis advises about a request.
type Verdict int

const (
	// Skipped: Redis was not asked or gave no usable answer. Go on to Postgres.
	Skipped Verdict = iota
	// Acquired: the request holds all its seats. Go on to Postgres.
	Acquired
	// Busy: another caller holds at least one of the seats.
	Busy
	// Duplicate: the same caller is running a request with the same key.
	Duplicate
)

// String returns the verdict in lower case, as metrics name it.
func (v Verdict) String() string {
	switch v {
	case Skipped:
		return "skipped"
	case Acquired:
		return "acquired"
	case Busy:
		return "busy"
	case Duplicate:
		return "duplicate"
	}
	return fmt.Sprintf("Verdict(%d)", int(v))
}

// Seats takes and releases seat locks. Its methods may be called by many
// goroutines at once. A nil *Seats is locks switched off: every verdict is
// Skipped.
type Seats struct {
	rdb     redis.Scripter
	ttl     time.Duration
	observe func(outcome string, d time.Duration)
	breaker breaker
}

// NewSeats returns seat locks on rdb that live for ttl, at least a millisecond.
// The client should be one of Open: a client that retries breaks lost replies.
//
// After each acquire and release observe is called with its outcome and the
// time spent on Redis. Outcomes are "acquired", "busy", "duplicate", "skipped"
// (breaker open, not asked), "failed" (asked in vain), "released" and
// "unreleased" (left to expire). It must not block and may be nil.
func NewSeats(rdb redis.Scripter, ttl time.Duration, observe func(outcome string, d time.Duration)) *Seats {
	if observe == nil {
		observe = func(string, time.Duration) {}
	}
	return &Seats{rdb: rdb, ttl: ttl, observe: observe}
}

// Lease is the answer to an acquire. Release it when the request is done,
// whatever the verdict.
type Lease struct {
	Verdict Verdict
	// Busy names the seats that other callers hold; set for a Busy verdict only.
	Busy []int32

	locks *Seats
	keys  []string // what Release may find in Redis; nil if surely nothing
	token string   // how the value of our own locks begins
	spent time.Duration
}

// Acquire locks all the given seats of an event, or none, in one round trip.
// It does not end early with ctx: a call cut short would look like a sick Redis
// and leave a lock nobody knows of. It ends within acquireBudget instead.
func (s *Seats) Acquire(ctx context.Context, event int64, seats []int32, owner Owner) Lease {
	if s == nil {
		return Lease{Verdict: Skipped}
	}
	if !s.breaker.allow() {
		s.observe("skipped", 0)
		return Lease{Verdict: Skipped}
	}
	caller, key, random := hash(owner.Caller), hash(owner.Key), newRandom()
	lease := Lease{
		locks: s,
		keys:  seatKeys(event, seats),
		token: caller + ":" + key + ":" + random + ":",
	}

	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acquireBudget)
	defer cancel()
	reply, err := ask(func() ([]int64, error) {
		return seatsAcquire.Run(ctx, s.rdb, lease.keys, caller, key, random, s.ttl.Milliseconds()).Int64Slice()
	})
	lease.spent = time.Since(start)
	verdict, busy := read(reply, seats)
	if err != nil || verdict == Skipped {
		// The script may have run all the same, so the lease keeps its keys.
		s.breaker.fail()
		s.observe("failed", lease.spent)
		return lease
	}
	s.breaker.succeed()
	lease.Verdict, lease.Busy = verdict, busy
	if verdict != Acquired {
		lease.keys = nil
	}
	s.observe(lease.Verdict.String(), lease.spent)
	return lease
}

// ask makes an error of a reply that go-redis panics on, such as one of an
// impossible length: whatever answers in Redis's place must not end a sale.
func ask(run func() ([]int64, error)) (reply []int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reply of Redis: %v", p)
		}
	}()
	return run()
}

// read turns the script's reply into a verdict; Skipped if the script cannot
// have given it.
func read(reply []int64, seats []int32) (verdict Verdict, busy []int32) {
	if len(reply) == 0 {
		return Skipped, nil
	}
	for _, i := range reply[1:] {
		if i < 1 || i > int64(len(seats)) {
			return Skipped, nil
		}
		busy = append(busy, seats[i-1])
	}
	switch {
	case reply[0] == 0 && busy == nil:
		return Acquired, nil
	case reply[0] == 1 && busy != nil:
		return Busy, busy
	case reply[0] == 2 && busy == nil:
		return Duplicate, nil
	}
	return Skipped, nil
}

// Release deletes the lease's own locks and leaves everybody else's, in one
// round trip and even after ctx has ended. What it cannot delete expires. It
// may be called twice.
func (l Lease) Release(ctx context.Context) {
	if len(l.keys) == 0 {
		return
	}
	s := l.locks
	// A release never probes and never closes the breaker: deleting works on a
	// full Redis, and finding nothing to delete works on a read-only one.
	if s.breaker.open() {
		s.observe("unreleased", 0)
		return
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(requestBudget-l.spent, releaseFloor))
	defer cancel()
	_, err := ask(func() ([]int64, error) { return nil, seatsRelease.Run(ctx, s.rdb, l.keys, l.token).Err() })
	if err != nil {
		s.breaker.fail()
		s.observe("unreleased", time.Since(start))
		return
	}
	s.observe("released", time.Since(start))
}

// seatKeys names the locks of an event's seats. The braces make Redis Cluster
// keep all of one event in one slot, where one script can see them. Nothing of
// the caller may be part of a key: two buyers must meet on the same one.
func seatKeys(event int64, seats []int32) []string {
	prefix := "seat:{" + strconv.FormatInt(event, 10) + "}:"
	keys := make([]string, len(seats))
	for i, seat := range seats {
		keys[i] = prefix + strconv.FormatInt(int64(seat), 10)
	}
	return keys
}

// hash shortens an identity to 64 bits, so that Redis holds nothing personal.
// Two callers who collide pass each other's locks and meet in Postgres.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

func newRandom() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return hex.EncodeToString(b[:])
}
