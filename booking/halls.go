package booking

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatfence/db"
	"seatfence/seats"
)

const (
	maxHalls    = 32 // drawings that a node keeps in memory; one of 50,000 seats takes about 10 MB
	readTimeout = 5 * time.Second
	roundsKept  = 32 // in which a seat that was won is remembered, for requests that still choose by one of them
)

// halls are the drawings that this node knows. They are a hint: what one says is free, the write may find taken.
type halls struct {
	mu      sync.Mutex
	byEvent map[seats.EventID]*hall
}

// of returns the event's hall, which knows nothing before it is read.
func (h *halls) of(event seats.EventID) *hall {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.byEvent[event]; known != nil {
		return known
	}
	if h.byEvent == nil {
		h.byEvent = map[seats.EventID]*hall{}
	}
	made := &hall{
		event: event, turn: make(chan struct{}, 1), queue: make(chan struct{}, 1), next: newRound(), claims: map[seats.ID]int64{}, settled: make(chan struct{}),
	}
	h.byEvent[event] = made
	return made
}

// drawn makes room for a hall that has been drawn: only those count, so that whoever names events that do not exist pushes none out.
func (h *halls) drawn(event seats.EventID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	others := 0
	for other, known := range h.byEvent {
		if drawing, _ := known.known(); other == event || drawing == nil {
			continue
		}
		if others++; others >= maxHalls {
			delete(h.byEvent, other) // whoever is using it goes on with it
		}
	}
}

// forget drops a hall that was never drawn.
func (h *halls) forget(event seats.EventID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.byEvent[event]; known != nil {
		if drawing, _ := known.known(); drawing == nil {
			delete(h.byEvent, event)
		}
	}
}

// read is hall.read of the event's hall, and keeps the number of drawings within bounds.
func (h *halls) read(ctx context.Context, pool *pgxpool.Pool, event seats.EventID) (*hall, vacancy, error) {
	of := h.of(event)
	before, _ := of.known()
	v, err := of.read(ctx, pool)
	switch {
	case err != nil:
		h.forget(event)
	case before == nil:
		h.drawn(event)
	}
	return of, v, err
}

// hall is what this node knows of one event's numbered seats, and which of them its own requests are about to take, so that they do not
// all run for the same best ones.
type hall struct {
	event seats.EventID
	turn  chan struct{} // whoever has put something in reads
	queue chan struct{} // whoever has put something in stands in the queue of all nodes

	mu       sync.Mutex
	drawing  *seats.Hall // nil until read
	layout   int32
	begun    int64              // rounds
	next     *round             // that has not begun
	claims   map[seats.ID]int64 // seats that requests take, and up to which round they may still look free
	settled  chan struct{}      // closed when a claim has been settled
	names    map[string]int32   // ids of categories
	seated   map[string]int32   // of those that have numbered seats
	sections map[string]bool
}

// round is one reading of what is free, for all who came before it began: a crowd costs one reading, and nobody gets an old one.
type round struct {
	done   chan struct{}
	number int64
	vacancy
	err error
}

func newRound() *round { return &round{done: make(chan struct{})} }

// vacancy is what was free in a round. now belongs to the hall's mutex.
type vacancy struct {
	seats.Availability
	drawing *seats.Hall
	now     seats.Vacancy
	round   int64
}

// underWay is the round of a claim whose transaction has not ended.
const underWay = math.MaxInt64

// read returns what is free at a moment after it was called.
func (h *hall) read(ctx context.Context, pool *pgxpool.Pool) (vacancy, error) {
	h.mu.Lock()
	mine := h.next
	h.mu.Unlock()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }() // also after a panic: nobody else could ever read again
		h.serve(ctx, pool, mine)
	case <-mine.done:
	case <-ctx.Done():
		return vacancy{}, ctx.Err()
	}
	return mine.vacancy, mine.err
}

// serve reads for a round, unless somebody has. It is done for others too, so it does not end with its caller.
func (h *hall) serve(ctx context.Context, pool *pgxpool.Pool, r *round) {
	select {
	case <-r.done:
		return
	default:
	}
	h.mu.Lock()
	h.begun++
	r.number, h.next = h.begun, newRound()
	for id, until := range h.claims {
		if until < r.number-roundsKept {
			delete(h.claims, id)
		}
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	defer close(r.done)
	r.err = ErrUnavailable // what those who wait are told after a panic
	r.vacancy, r.err = h.look(ctx, pool)
	r.round = r.number
}

// look reads what is free, and the drawing before if the event has another one by now.
func (h *hall) look(ctx context.Context, pool *pgxpool.Pool) (vacancy, error) {
	known, layout := h.known()
	read, err := seats.ReadAvailability(ctx, pool, h.event)
	if err == nil && (known == nil || read.Layout != layout) {
		if read, err = h.redraw(ctx, pool); err == nil {
			known, _ = h.known()
		}
	}
	switch {
	case db.NotFound(err):
		return vacancy{}, ErrNotFound
	case err != nil:
		return vacancy{}, answer(err)
	}
	return vacancy{Availability: read, drawing: known, now: read.In(known)}, nil
}

func (h *hall) known() (*seats.Hall, int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.drawing, h.layout
}

// redraw reads the drawing and what is free in one snapshot.
func (h *hall) redraw(ctx context.Context, pool *pgxpool.Pool) (read seats.Availability, err error) {
	err = db.Snapshot(ctx, pool, func(tx pgx.Tx) error {
		if read, err = seats.ReadAvailability(ctx, tx, h.event); err != nil {
			return err
		}
		drawing, err := seats.ReadHall(ctx, tx, h.event)
		if err != nil {
			return err
		}
		rows, err := queries.CategoryList(ctx, tx, int64(h.event))
		if err != nil {
			return fmt.Errorf("read categories: %w", err)
		}
		names, seated, sections, categories := map[string]int32{}, map[string]int32{}, map[string]bool{}, map[int32]bool{}
		for _, s := range drawing.Spots() {
			sections[s.Section], categories[s.Category] = true, true
		}
		for _, r := range rows {
			names[r.Name] = r.ID
			if categories[r.ID] {
				seated[r.Name] = r.ID
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drawing, h.layout, h.names, h.seated, h.sections = drawing, read.Layout, names, seated, sections
		return nil
	})
	return read, err
}

// claim chooses the best free seats that no other request of this node is taking, and claims them until settle. taken says that there
// would have been some but for the claims of others.
func (h *hall) claim(v vacancy, wish seats.Wish) (choice seats.Choice, ok, taken bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var hidden []int
	for id, until := range h.claims {
		if i, known := v.drawing.Index(id); known && until >= v.round && v.now.Free[i] {
			hidden = append(hidden, i)
			v.now.Free[i] = false
		}
	}
	choice, ok = v.drawing.Best(v.now, wish)
	for _, i := range hidden {
		v.now.Free[i] = true
	}
	if !ok && len(hidden) > 0 {
		_, taken = v.drawing.Best(v.now, wish)
	}
	for _, id := range choice.Seats {
		h.claims[id] = underWay
	}
	return choice, ok, taken
}

// claimIn is claim among what a transaction has just read. If others are taking all that would do, it chooses what they take, without
// a claim: the write waits for them.
func (h *hall) claimIn(drawing *seats.Hall, now seats.Vacancy, wish seats.Wish) (choice seats.Choice, ok, claimed bool) {
	h.mu.Lock()
	v := vacancy{drawing: drawing, now: now, round: h.begun + 1}
	h.mu.Unlock()
	choice, ok, taken := h.claim(v, wish)
	if taken {
		choice, ok = drawing.Best(now, wish)
		return choice, ok, false
	}
	return choice, ok, ok
}

// chooseInstead is what a choice could be instead of one whose own seats, as far as it has some already, would be free for it.
func (h *hall) chooseInstead(v vacancy, wish seats.Wish, own []seats.ID) seats.Choice {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range own {
		if i, ok := v.drawing.Index(id); ok && !v.now.Free[i] {
			v.now.Free[i] = true
			defer func() { v.now.Free[i] = false }() // others see the same round
		}
	}
	choice, _ := v.drawing.Best(v.now, wish)
	return choice
}

// settle ends a claim. Seats that were won look free in the rounds that have begun by now, and in no later one.
func (h *hall) settle(ids []seats.ID, won bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if won {
			h.claims[id] = h.begun
		} else {
			delete(h.claims, id)
		}
	}
	close(h.settled)
	h.settled = make(chan struct{})
}

// nextSettled is closed when the next claim is settled.
func (h *hall) nextSettled() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.settled
}
