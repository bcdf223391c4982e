package booking

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// MapState is the state of all seats of an event at a number of its feed. Changes with greater numbers may be in it already: their cells
// are absolute, and applying them again does no harm. It is shared, and nobody changes it.
type MapState struct {
	FeedTop
	First      seats.ID    `json:"first"`  // of States
	States     []byte      `json:"states"` // two bits for each seat id from First on, low bits first; no seat, and no number: FeedBlocked
	Held       []HeldSeats `json:"held"`   // the held seats, by time; one whose hold has just ended may be missing
	Areas      []AreaFree  `json:"areas"`
	ServerTime time.Time   `json:"server_time"`

	// JSON is all of this as one object, in the compact form of the API, and Zipped that in gzip.
	JSON   []byte `json:"-"`
	Zipped []byte `json:"-"`
}

// HeldSeats are seats whose holds end in the same second, by id. Until is in milliseconds since 1970; see Cell.HeldUntil. In JSON it is
// [until, seat, seat, …].
type HeldSeats struct {
	Until int64
	Seats []seats.ID
}

// MarshalJSON writes a list of numbers.
func (h HeldSeats) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt([]byte{'['}, h.Until, 10)
	for _, id := range h.Seats {
		b = strconv.AppendInt(append(b, ','), int64(id), 10)
	}
	return append(b, ']'), nil
}

// AreaFree is how many places of an area are free. In JSON it is [area, free].
type AreaFree struct {
	Area int32
	Free int64
}

// MarshalJSON writes the pair.
func (a AreaFree) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d]", a.Area, a.Free), nil
}

// mapKept is how long a state may be shown again. What changes without a number, the end of an extended hold, is no older.
const mapKept = time.Second

// MapState reads what the caller may see of an event's seats, and the number of the last change that is surely in it, in one snapshot.
// What everybody sees is read once for all who ask while nothing changes; nobody gets less than what was committed before they asked.
func (s *Service) MapState(ctx context.Context, caller Caller, event seats.EventID) (*MapState, error) {
	if _, err := s.EventHead(ctx, caller, event); err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (state *MapState, err error) {
		err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
			state, err = readMapState(ctx, tx, caller, event)
			return err
		})
		if err != nil {
			return nil, answer(err)
		}
		return state, state.encode()
	}
	if caller.Kind != Buyer {
		return read(ctx) // it may depend on who they are
	}
	head, err := feedHead(ctx, s.pool, event)
	if err != nil {
		return nil, answer(err)
	}
	return s.states.of(event).show(ctx, func(kept *MapState, age time.Duration) bool {
		return !head.Waiting && age < mapKept && kept.FeedTop == topOf(head)
	}, read)
}

func (m *MapState) encode() (err error) {
	if m.JSON, err = json.Marshal(m); err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	m.Zipped, err = zip(m.JSON)
	return err
}

func zip(b []byte) ([]byte, error) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(b); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return zipped.Bytes(), nil
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
	cells, err := queries.FeedStates(ctx, tx, db.FeedStatesParams{EventID: int64(event), AnyChannel: reach.All, Channels: reach.Channels})
	if err != nil {
		return nil, fmt.Errorf("read states: %w", err)
	}
	held, err := queries.FeedHeld(ctx, tx, int64(event))
	if err != nil {
		return nil, fmt.Errorf("read held seats: %w", err)
	}
	state := &MapState{FeedTop: topOf(head), Held: make([]HeldSeats, len(held)), ServerTime: head.ServerTime.UTC()}
	state.First, state.States = packed(cells)
	for i, r := range held {
		state.Held[i] = HeldSeats{r.UntilMs, r.Ids}
	}
	state.Areas, err = feedAreas(ctx, tx, event, reach, nil)
	return state, err
}

// packed writes states, which come as four times the seat's id and the state, as two bits each, and returns the first seat's id.
func packed(cells []int32) (first seats.ID, states []byte) {
	if len(cells) == 0 {
		return 1, []byte{}
	}
	first = slices.Min(cells) / 4
	states = slices.Repeat([]byte{0xff}, int(slices.Max(cells)/4-first)/4+1)
	for _, cell := range cells {
		at := cell/4 - first
		states[at/4] &^= byte(^cell&3) << (at % 4 * 2)
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
