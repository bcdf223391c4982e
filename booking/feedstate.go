package booking

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// MapState is the state of all seats of an event at a number of its feed. Changes with greater numbers may be in it already: their cells
// are absolute, and applying them again does no harm. It is shared, and nobody changes it.
type MapState struct {
	FeedTop
	First      seats.ID    // of States
	States     []byte      // two bits for each seat id from First on, low bits first; what does not exist or has no number is FeedBlocked
	Held       []HeldSeats // every seat that States says is held, by time
	Areas      []Cell      // how many places of each area are free
	ServerTime time.Time
}

// HeldSeats are seats whose holds end in the same second, by id. Until is in milliseconds since 1970; see Cell.HeldUntil.
type HeldSeats struct {
	Until int64
	Seats []seats.ID
}

// MapState reads what the caller may see of an event's seats, and the number of the last change that is surely in it, in one snapshot.
func (s *Service) MapState(ctx context.Context, caller Caller, event seats.EventID) (state *MapState, err error) {
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := readEvent(ctx, tx, caller, event); err != nil {
			return err
		}
		state, err = readMapState(ctx, tx, caller, event)
		return err
	})
	if err != nil {
		return nil, answer(err)
	}
	return state, nil
}

func readMapState(ctx context.Context, tx pgx.Tx, caller Caller, event seats.EventID) (*MapState, error) {
	head, err := feedHead(ctx, tx, event)
	if err != nil {
		return nil, err
	}
	reach, err := reachOf(ctx, tx, caller, event)
	if err != nil {
		return nil, err
	}
	rows, err := queries.FeedStates(ctx, tx, db.FeedStatesParams{EventID: int64(event), AnyChannel: reach.All, Channels: reach.Channels})
	if err != nil {
		return nil, fmt.Errorf("read states: %w", err)
	}
	state := &MapState{FeedTop: FeedTop{epochOf(head), head.Seq}, ServerTime: head.ServerTime.UTC()}
	state.First, state.States = packed(rows)
	for _, r := range rows {
		if FeedState(r.State) == FeedHeld {
			slices.Sort(r.Ids)
			state.Held = append(state.Held, HeldSeats{r.UntilMs, r.Ids})
		}
	}
	state.Areas, err = feedAreas(ctx, tx, event, reach, nil)
	return state, err
}

// packed writes the states of seats as two bits each, and returns the first seat's id.
func packed(rows []db.FeedStatesRow) (first seats.ID, states []byte) {
	var last seats.ID
	for _, r := range rows {
		if low := slices.Min(r.Ids); first == 0 || low < first {
			first = low
		}
		last = max(last, slices.Max(r.Ids))
	}
	if first == 0 {
		return 1, nil
	}
	states = slices.Repeat([]byte{0xff}, int(last-first)/4+1)
	for _, r := range rows {
		for _, id := range r.Ids {
			at := id - first
			states[at/4] &^= (^byte(r.State) & 3) << (at % 4 * 2)
		}
	}
	return first, states
}

// State is what a seat is in States.
func (m *MapState) State(id seats.ID) FeedState {
	at := int(id) - int(m.First)
	if at < 0 || at/4 >= len(m.States) {
		return FeedBlocked
	}
	return FeedState(m.States[at/4] >> (at % 4 * 2) & 3)
}
