package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"seatfence/booking"
	"seatfence/realtime"
	"seatfence/seats"
)

// mapKept is for how long a map is kept that nobody looks at.
const mapKept = 30 * time.Second

// anybody is who the live map is for: it shows what everybody may see.
var anybody = booking.Caller{Kind: booking.Buyer}

// seatMap is the live map of an event on this node. It is told of changes by the publishers, over the bus, and asks Postgres for what it has
// missed, once for all who look.
type seatMap struct {
	srv      *Server
	event    seats.EventID
	owner    int64  // the organizer
	topic    string // also what frames call it
	board    *realtime.Board[booking.Cell]
	count    int       // of viewers, as they were told
	used     time.Time // guarded by Server.mu
	mending  sync.Mutex
	behind   bool // at the last look; of compareTops alone
	suspects bool // something may be missing; guarded by mu
	mu       sync.Mutex
}

func topicOf(event seats.EventID) string { return "event:" + event.String() }

// mapOf returns the map of an event if there is one.
func (s *Server) mapOf(event seats.EventID) *seatMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maps[event]
}

// openMap returns the map of an event, which is loaded by the first who asks. Nothing is kept of an event that does not exist: a client may
// name thousands.
func (s *Server) openMap(ctx context.Context, event seats.EventID) (*seatMap, error) {
	var owner int64
	if m := s.mapOf(event); m != nil {
		owner = m.owner
	} else {
		head, err := s.Booking.EventHead(ctx, anybody, event)
		if err != nil {
			return nil, err
		}
		owner = head.Organizer
	}
	s.mu.Lock()
	m := s.maps[event]
	if m == nil {
		m = &seatMap{srv: s, event: event, owner: owner, topic: topicOf(event)}
		m.board = realtime.NewBoard(s.hub, realtime.Format[booking.Cell]{Delta: m.delta, Whole: m.whole})
		s.maps[event] = m
		s.bus.Listen(m.topic, false, m)
	}
	m.used = time.Now()
	s.mu.Unlock()
	if epoch, _ := m.board.Position(); epoch != "" {
		return m, nil
	}
	return m, m.mend(ctx)
}

// closeMaps forgets the maps that nobody has looked at for a while.
func (s *Server) closeMaps() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for event, m := range s.maps {
		switch {
		case m.board.Members() > 0:
			m.used = time.Now()
		case time.Since(m.used) > s.kept:
			delete(s.maps, event)
			s.bus.Mute(m.topic, m)
			m.board.Close()
		}
	}
}

func (s *Server) openMaps() []*seatMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*seatMap, 0, len(s.maps))
	for _, m := range s.maps {
		list = append(list, m)
	}
	return list
}

// viewMap answers view-resource of a seat map: with its state, or with what came after the client's position. What everybody may see needs no
// look at who asks, so that a crowd that comes back costs Postgres nothing.
func (s *Server) viewMap(ctx context.Context, x *realtime.Session, event seats.EventID, req request) error {
	m, err := s.openMap(ctx, event)
	if err != nil {
		return err
	}
	if page := whoOf(x).Page; page != nil && page.Organizer != m.owner {
		return booking.ErrNotFound
	}
	if err := m.board.Join(x, req.Epoch, req.Seq); err != nil {
		return err
	}
	x.SendJSON(okFrame{"ok", req.ID})
	return nil
}

// change is what travels over the bus.
type change struct {
	From  int64          `json:"from"`
	Cells []booking.Cell `json:"cells"`
}

// publish numbers what has been committed, and tells all nodes.
func (s *Server) publish(ctx context.Context) error {
	batches, err := s.Booking.Number(ctx, s.Node)
	errs := []error{err}
	for _, b := range batches {
		if m := s.mapOf(b.Event); m != nil {
			m.apply(b)
		}
		data, err := json.Marshal(change{b.From, b.Cells})
		if err == nil {
			err = s.bus.Publish(ctx, topicOf(b.Event), b.Epoch, b.Seq, data)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Message gets what a publisher has told.
func (m *seatMap) Message(epoch string, seq int64, data json.RawMessage) {
	var said change
	if json.Unmarshal(data, &said) == nil {
		m.apply(booking.Batch{Event: m.event, Epoch: epoch, From: said.From, Seq: seq, Cells: said.Cells})
	}
}

// Lost says that messages may be missing.
func (m *seatMap) Lost() { m.suspect() }

func (m *seatMap) suspect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspects = true
}

// suspected reports whether something may be missing, and forgets it.
func (m *seatMap) suspected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.suspects
	m.suspects = false
	return was
}

func (m *seatMap) apply(b booking.Batch) {
	cells := make([]realtime.Cell[booking.Cell], len(b.Cells))
	for i, c := range b.Cells {
		cells[i] = cell(c)
	}
	if m.board.Apply(realtime.Batch[booking.Cell]{Epoch: b.Epoch, From: b.From, Seq: b.Seq, Cells: cells}) != nil {
		m.suspect() // the next look at the tops mends it
	}
}

// cell gives seats positive numbers and areas negative ones.
func cell(c booking.Cell) realtime.Cell[booking.Cell] {
	if c.Area != 0 {
		return realtime.Cell[booking.Cell]{ID: -int64(c.Area), Value: c}
	}
	return realtime.Cell[booking.Cell]{ID: int64(c.Seat), Value: c}
}

// compareTops looks where the feeds are, in one statement, and mends the maps that are behind: at once if they know that something is
// missing, otherwise when they were behind at the last look too, because what is on its way is not lost.
func (s *Server) compareTops(ctx context.Context) error {
	list := s.openMaps()
	if len(list) == 0 {
		return nil
	}
	events := make([]seats.EventID, len(list))
	for i, m := range list {
		events[i] = m.event
	}
	tops, err := s.Booking.FeedTops(ctx, events)
	if err != nil {
		return fmt.Errorf("compare feeds: %w", err)
	}
	var errs []error
	for _, m := range list {
		top, known := tops[m.event]
		epoch, seq := m.board.Position()
		was := m.behind
		m.behind = known && (epoch != top.Epoch || seq < top.Seq)
		if sure := m.suspected() || was || epoch != top.Epoch; m.behind && sure {
			errs = append(errs, m.mend(ctx))
		}
	}
	return errors.Join(errs...)
}

// mend brings the map up to date from Postgres. Those who come meanwhile wait for it.
func (m *seatMap) mend(ctx context.Context) error {
	m.mending.Lock()
	defer m.mending.Unlock()
	for epoch, seq := m.board.Position(); epoch != ""; epoch, seq = m.board.Position() {
		changes, err := m.srv.Booking.Changes(ctx, anybody, m.event, epoch, seq, 0)
		if err != nil {
			return err
		}
		if changes.Reset {
			break
		}
		m.apply(changes.Batch)
		if changes.Seq >= changes.Top {
			return nil
		}
	}
	state, err := m.srv.Booking.MapState(ctx, anybody, m.event)
	if err != nil {
		return err
	}
	if epoch, seq := m.board.Position(); epoch != state.Epoch || seq < state.Seq {
		m.board.Reset(state.Epoch, state.Seq, cellsOf(state))
	}
	return nil
}

func cellsOf(state *booking.MapState) []realtime.Cell[booking.Cell] {
	until := map[seats.ID]int64{}
	for _, h := range state.Held {
		for _, id := range h.Seats {
			until[id] = h.Until
		}
	}
	cells := make([]realtime.Cell[booking.Cell], 0, 4*len(state.States)+len(state.Areas))
	for i := range 4 * len(state.States) {
		id := state.First + seats.ID(i)
		cells = append(cells, cell(booking.Cell{Seat: id, State: state.State(id), HeldUntil: until[id]}))
	}
	for _, a := range state.Areas {
		cells = append(cells, cell(booking.Cell{Area: a.Area, Free: a.Free}))
	}
	return cells
}

// delta is the message of changed cells.
func (m *seatMap) delta(epoch string, from, seq int64, cells []realtime.Cell[booking.Cell]) []byte {
	values := make([]booking.Cell, len(cells))
	for i, c := range cells {
		values[i] = c.Value
	}
	return encode(struct {
		Type     string         `json:"type"`
		Resource string         `json:"resource"`
		Epoch    string         `json:"epoch"`
		From     int64          `json:"from"`
		Seq      int64          `json:"seq"`
		Cells    []booking.Cell `json:"cells"`
	}{"seats", m.topic, epoch, from, seq, values})
}

// whole is the message of all cells.
func (m *seatMap) whole(epoch string, seq int64, cells []realtime.Cell[booking.Cell]) []byte {
	state := booking.MapState{FeedTop: booking.FeedTop{Epoch: epoch, Seq: seq}, ServerTime: time.Now().UTC(), Held: []booking.HeldSeats{}, Areas: []booking.AreaFree{}}
	last := seats.ID(0)
	for _, c := range cells {
		if id := c.Value.Seat; c.Value.Area == 0 {
			if state.First == 0 || id < state.First {
				state.First = id
			}
			last = max(last, id)
		}
	}
	held := map[int64][]seats.ID{}
	if last > 0 {
		state.States = make([]byte, (last-state.First)/4+1)
		for i := range state.States {
			state.States[i] = 0xff // no seat is blocked
		}
	}
	for _, c := range cells {
		if v := c.Value; v.Area != 0 {
			state.Areas = append(state.Areas, booking.AreaFree{Area: v.Area, Free: v.Free})
		} else {
			at := v.Seat - state.First
			shift := 2 * (at % 4)
			state.States[at/4] = state.States[at/4]&^(3<<shift) | byte(v.State)<<shift
			if v.HeldUntil != 0 {
				held[v.HeldUntil] = append(held[v.HeldUntil], v.Seat)
			}
		}
	}
	for until, ids := range held {
		state.Held = append(state.Held, booking.HeldSeats{Until: until, Seats: ids})
	}
	slices.SortFunc(state.Held, func(a, b booking.HeldSeats) int { return int(a.Until - b.Until) })
	return encode(struct {
		Type     string `json:"type"`
		Resource string `json:"resource"`
		booking.MapState
	}{"view", m.topic, state})
}

// count tells each map how many look at it, on all nodes.
func (s *Server) count(ctx context.Context) error {
	s.closeMaps()
	var errs []error
	for _, m := range s.openMaps() {
		n, err := s.roster.Count(ctx, m.topic, m.board.Members())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if n != m.count {
			m.count = n
			m.board.Note(encode(struct {
				Type     string `json:"type"`
				Resource string `json:"resource"`
				Count    int    `json:"count"`
			}{"viewers", m.topic, n}))
		}
	}
	return errors.Join(errs...)
}

// encode is json.Marshal of a message of ours.
func encode(v any) []byte {
	message, err := json.Marshal(v)
	if err != nil {
		panic("stream: " + err.Error())
	}
	return message
}
