package booking

import (
	"context"
	"sync"
	"time"

	"seatfence/seats"
)

// shared is a reading that many ask for at once: all who came before it began share one, so that a crowd costs one and nobody gets what is
// older than their question.
type shared[T any] struct {
	turn chan struct{} // whoever has put something in reads
	mu   sync.Mutex
	next *reading[T] // that has not begun
}

type reading[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func newShared[T any]() *shared[T] {
	return &shared[T]{turn: make(chan struct{}, 1), next: &reading[T]{done: make(chan struct{})}}
}

// get returns what read finds at a moment after get was called. read is done for others too, so it does not end with its caller.
func (s *shared[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	mine := s.next
	s.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		s.serve(ctx, mine, read)
	case <-mine.done:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	return mine.value, mine.err
}

// serve reads, unless somebody has.
func (s *shared[T]) serve(ctx context.Context, mine *reading[T], read func(context.Context) (T, error)) {
	select {
	case <-mine.done:
		return
	default:
	}
	s.mu.Lock()
	s.next = &reading[T]{done: make(chan struct{})}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	defer close(mine.done)
	mine.err = ErrUnavailable // what those who wait are told after a panic
	mine.value, mine.err = read(ctx)
}

// maxViews is how many events a node keeps what it has last shown of.
const maxViews = 64

// views are what this node shows to everybody, by event.
type views[V any] struct {
	mu      sync.Mutex
	byEvent map[seats.EventID]*view[V]
}

// view is the last reading of one event. It may be shown while it is as new as what is asked for.
type view[V any] struct {
	*shared[V]
	mu   sync.Mutex
	kept V
	at   time.Time // zero: nothing is kept
}

// of returns the event's view. One of too many is dropped: whoever is using it goes on with it.
func (v *views[V]) of(event seats.EventID) *view[V] {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.byEvent[event]; known != nil {
		return known
	}
	if v.byEvent == nil {
		v.byEvent = map[seats.EventID]*view[V]{}
	}
	for other := range v.byEvent {
		if len(v.byEvent) < maxViews {
			break
		}
		delete(v.byEvent, other)
	}
	made := &view[V]{shared: newShared[V]()}
	v.byEvent[event] = made
	return made
}

// show returns what is kept, if it is fresh, and otherwise reads and keeps that.
func (v *view[V]) show(ctx context.Context, fresh func(kept V, age time.Duration) bool, read func(context.Context) (V, error)) (V, error) {
	v.mu.Lock()
	kept, at := v.kept, v.at
	v.mu.Unlock()
	if !at.IsZero() && fresh(kept, time.Since(at)) {
		return kept, nil
	}
	return v.get(ctx, func(ctx context.Context) (V, error) {
		began := time.Now()
		value, err := read(ctx)
		if err == nil {
			v.mu.Lock()
			v.kept, v.at = value, began
			v.mu.Unlock()
		}
		return value, err
	})
}
