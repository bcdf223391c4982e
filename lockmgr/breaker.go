package lockmgr

import (
	"sync"
	"time"
)

const (
	// maxFailures in a row open the breaker. One would do for a stall, but then
	// a single slow reply would switch locks off for a second.
	maxFailures = 3
	// probeInterval is how often one acquire may try Redis while the breaker is
	// open. It bounds both what a sick Redis costs and how long a healthy one
	// goes unused.
	probeInterval = time.Second
)

// breaker keeps requests away from a Redis that does not answer. The probe is
// an acquire like any other, so it also finds out that Redis answers but
// refuses writes. The zero value is closed: Redis is in use.
type breaker struct {
	mu       sync.Mutex
	failures int
	probeAt  time.Time // zero while closed
}

// allow reports whether the caller may try Redis. Open, it says yes to one
// caller per probeInterval.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.probeAt.IsZero() {
		return true
	}
	now := time.Now()
	if now.Before(b.probeAt) {
		return false
	}
	b.probeAt = now.Add(probeInterval)
	return true
}

// open reports whether Redis is being left alone.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.probeAt.IsZero()
}

func (b *breaker) succeed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
	b.probeAt = time.Time{}
}

func (b *breaker) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if b.failures >= maxFailures && b.probeAt.IsZero() {
		b.probeAt = time.Now().Add(probeInterval)
	}
}
