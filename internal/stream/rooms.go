package stream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"seatfence/booking"
	"seatfence/lockmgr"
	"seatfence/realtime"
	"seatfence/seats"
)

const (
	idleLimit = 10 * time.Minute // without an edit
	sweepMost = time.Second      // between sweeps of a room, whatever they promise
	againWait = 500 * time.Millisecond
	roomKept  = 10 * time.Second // is for how long a room is kept that nobody is in
)

// room is a configurator on this node: the sessions that look at it here, and what of its locks this node has heard.
//
// Its events come over the bus in order. A newcomer joins the room, then its state is read, and then it is shown, with the events after it.
type room struct {
	srv   *Server
	event seats.EventID
	topic string // also what frames call it, and the root of its locks
	hub   *realtime.Room

	mu         sync.Mutex
	members    map[string]*member // by session
	locks      map[string]holder  // by resource, as of the last event
	viewers    map[string]bool    // users, as of the last event
	ousted     []ousted           // whose locks were taken over by the next lock-acquired
	following  bool
	refreshing bool
	due        time.Time // the next sweep
	empty      time.Time // since when nobody is here
}

// member is a session in a room, detached or not.
type member struct {
	session *realtime.Session
	hash    string // how events name it
	held    map[string]*held
	gone    bool // its connection is
}

// held is a lock that a session has, as far as this node knows.
type held struct {
	token  int64
	fence  int64 // 0: to be taken when it is asked for again
	active time.Time
	warned bool
}

// holder is whose lock it is.
type holder struct {
	session  string // hashed
	by       person
	detached bool
}

type ousted struct {
	member         *member
	resource, item string
	page           string
}

func rootOf(event seats.EventID) string { return "configurator:" + event.String() }

// openRoom returns the room of an event, with the session in it.
func (s *Server) openRoom(event seats.EventID, x *realtime.Session) (*room, *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[event]
	if r == nil {
		r = &room{srv: s, event: event, topic: rootOf(event), hub: realtime.NewRoom(), members: map[string]*member{}, locks: map[string]holder{}}
		s.rooms[event] = r
		s.bus.Listen(r.topic, true, r)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[x.ID]
	if m == nil {
		m = &member{hash: lockmgr.SessionHash(x.ID), held: map[string]*held{}}
		r.members[x.ID] = m
	}
	if m.session != nil && m.session.Gen != x.Gen {
		for _, h := range m.held {
			h.fence = 0 // in between the session may have been on another node, and have got a newer one
		}
	}
	m.session, m.gone = x, false
	return r, m
}

func (s *Server) openRooms() []*room {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*room, 0, len(s.rooms))
	for _, r := range s.rooms {
		list = append(list, r)
	}
	return list
}

// closeRooms forgets the rooms in which nobody has been for a while.
func (s *Server) closeRooms() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for event, r := range s.rooms {
		r.mu.Lock()
		switch {
		case len(r.members) > 0:
			r.empty = time.Time{}
		case r.empty.IsZero():
			r.empty = time.Now()
		case time.Since(r.empty) > roomKept:
			delete(s.rooms, event)
			s.bus.Mute(r.topic, r)
		}
		r.mu.Unlock()
	}
}

func sessionOf(x *realtime.Session, who *Who) lockmgr.Session {
	return lockmgr.Session{ID: x.ID, Gen: x.Gen, Node: x.Node, User: who.ID, Name: who.Name}
}

func visitOf(x *realtime.Session, who *Who) realtime.Visit {
	return realtime.Visit{ID: x.ID, Gen: x.Gen, Node: x.Node, Viewer: realtime.Viewer{User: who.ID, Name: who.Name}}
}

// viewRoom answers view-resource of a configurator.
func (s *Server) viewRoom(ctx context.Context, x *realtime.Session, c *client, event seats.EventID, req request) error {
	who := whoOf(x)
	if who.Caller.Kind != booking.Organizer {
		return booking.ErrForbidden
	}
	if _, err := s.Booking.EventHead(ctx, who.Caller, event); err != nil {
		return err
	}
	if c.rooms[event] == nil && len(c.rooms) == realtime.MaxRooms { // before it is a member: one that no view reaches would be shown to the others
		return realtime.ErrTooMany
	}
	r, m := s.openRoom(event, x)
	if err := r.hub.Join(x); err != nil {
		r.left(x)
		delete(c.rooms, event)
		return err
	}
	c.rooms[event] = r
	x.Watch(true)
	own, err := s.edits.Attach(ctx, r.topic, sessionOf(x, who))
	if errors.Is(err, lockmgr.ErrSessionClosed) {
		x.Close(realtime.CloseReplaced, "this session is connected anew")
		return nil
	}
	if err != nil {
		return err
	}
	r.keep(m, own)
	present, err := s.roster.View(ctx, r.topic, visitOf(x, who))
	if errors.Is(err, realtime.ErrEnded) {
		x.Close(realtime.CloseReplaced, "this session is connected anew")
		return nil
	}
	if err != nil {
		return err
	}
	locks, _, _, err := s.edits.Locks(ctx, r.topic)
	if err != nil {
		return err
	}
	r.follow(present, locks)
	r.show(x, m, req.ID, present, locks)
	return nil
}

// keep takes over the locks that a session has, and no others.
func (r *room) keep(m *member, locks []lockmgr.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := m.held
	m.held = map[string]*held{}
	for _, l := range locks {
		if h := had[l.Resource]; h != nil && h.token == l.Token {
			m.held[l.Resource] = h
		} else {
			m.held[l.Resource] = &held{token: l.Token, active: time.Now()}
		}
	}
}

// follow begins to hear the room's events, after a state, unless it does already.
func (r *room) follow(present realtime.Present, locks []lockmgr.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.following {
		return
	}
	r.following, r.locks, r.viewers = true, holders(locks), users(present)
	r.srv.bus.Follow(r.topic, present.Epoch, present.Seq)
}

func holders(locks []lockmgr.Lock) map[string]holder {
	by := make(map[string]holder, len(locks))
	for _, l := range locks {
		by[l.Resource] = holder{l.SessionHash, person{User: l.User, Name: l.Name}, l.Detached}
	}
	return by
}

func users(present realtime.Present) map[string]bool {
	all := make(map[string]bool, len(present.Viewers))
	for _, v := range present.Viewers {
		all[v.User] = true
	}
	return all
}

type viewerShown struct {
	User    string `json:"user"`
	Name    string `json:"name"`
	Editing bool   `json:"isEditing"`
}

type lockShown struct {
	Item  string `json:"item"`
	Page  string `json:"page"`
	By    person `json:"by"`
	State string `json:"state"`
}

// show sends a session the state of the room.
func (r *room) show(x *realtime.Session, m *member, id *int64, present realtime.Present, locks []lockmgr.Lock) {
	by := holders(locks)
	view := struct {
		Type     string        `json:"type"`
		ID       *int64        `json:"id,omitempty"`
		Resource string        `json:"resource"`
		Epoch    string        `json:"epoch"`
		Seq      int64         `json:"seq"`
		Viewers  []viewerShown `json:"viewers"`
		LockedBy *person       `json:"lockedBy"`
		CanEdit  bool          `json:"canEdit"`
		Locks    []lockShown   `json:"locks"`
	}{"view", id, r.topic, present.Epoch, present.Seq, []viewerShown{}, nil, m.mayEdit(x, by), []lockShown{}}
	for _, v := range present.Viewers {
		view.Viewers = append(view.Viewers, viewerShown{v.User, v.Name, editing(by, v.User)})
	}
	for resource, h := range by {
		item, page := split(resource)
		state := "held"
		if h.detached {
			state = "detached"
		}
		view.Locks = append(view.Locks, lockShown{item, page, h.by, state})
		if resource == "" {
			view.LockedBy = &h.by
		}
	}
	r.hub.Show(x, present.Seq, encode(view))
}

func split(resource string) (item, page string) {
	item, page, _ = strings.Cut(resource, "/")
	return item, page
}

func editing(locks map[string]holder, user string) bool {
	for _, h := range locks {
		if h.by.User == user {
			return true
		}
	}
	return false
}

// mayEdit is canEdit: the session's user may, and nobody else has the whole configurator.
func (m *member) mayEdit(x *realtime.Session, locks map[string]holder) bool {
	h, taken := locks[""]
	return whoOf(x).Editor && (!taken || h.session == m.hash)
}

// detached says that a session's connection is gone. It keeps its locks for the grace.
func (r *room) detached(x *realtime.Session) {
	who := r.depart(x, false)
	if who == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.srv.ctx), callTime)
	defer cancel()
	r.srv.failed(errors.Join(r.srv.edits.Detach(ctx, r.topic, sessionOf(x, who)), r.srv.roster.Detach(ctx, r.topic, visitOf(x, who))))
}

// ended says that a session is over.
func (r *room) ended(x *realtime.Session, why string) {
	who := r.depart(x, true)
	if who == nil {
		return
	}
	if why == realtime.Expired {
		why = lockmgr.WhyLeft
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.srv.ctx), callTime)
	defer cancel()
	r.srv.failed(errors.Join(r.srv.edits.End(ctx, r.topic, sessionOf(x, who), why), r.srv.roster.End(ctx, r.topic, visitOf(x, who))))
}

// depart notes that a session has gone, for good or not. It returns nil if a later generation has taken over.
func (r *room) depart(x *realtime.Session, over bool) *Who {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[x.ID]
	if m == nil || m.session.Gen > x.Gen {
		return nil
	}
	m.gone = true
	if over {
		delete(r.members, x.ID)
	}
	return whoOf(m.session)
}

// left says that a session looks elsewhere. Its locks go with that.
func (r *room) left(x *realtime.Session) {
	r.mu.Lock()
	m := r.members[x.ID]
	if m == nil {
		r.mu.Unlock()
		return
	}
	delete(r.members, x.ID)
	who, locks := whoOf(m.session), m.held
	m.held = map[string]*held{} // an event that is heard meanwhile has nothing to take
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.srv.ctx, callTime)
	defer cancel()
	for resource, h := range locks {
		_, err := r.srv.edits.Release(ctx, r.topic, resource, x.ID, h.token)
		r.srv.failed(err)
	}
	r.srv.failed(r.srv.roster.Leave(ctx, r.topic, visitOf(x, who)))
}
