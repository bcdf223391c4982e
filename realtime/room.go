package realtime

import "sync"

// maxHeld is how many messages wait for a member until it has got the state that they change.
const maxHeld = 256

// Room tells a few sessions everything that happens, in order. Messages have numbers, so that none is missed or told twice between the state
// that a newcomer gets and what comes after: it joins, then its user reads the state, then it is shown. It is safe for concurrent use.
type Room struct {
	mu      sync.Mutex
	members map[*socket]*member
}

// member is a connection in a room.
type member struct {
	session *Session
	shown   bool
	seq     int64      // of the state that it was shown
	held    []numbered // until it is shown
}

type numbered struct {
	seq     int64
	message []byte
}

// NewRoom returns an empty room.
func NewRoom() *Room { return &Room{members: map[*socket]*member{}} }

// Join has messages kept for a session, from now on, until Show. To join again is to begin again. It returns ErrTooMany for a session that is in
// too many rooms.
func (r *Room) Join(s *Session) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[s.sock]; m != nil {
		*m = member{session: s}
		return nil
	}
	s.sock.mu.Lock()
	defer s.sock.mu.Unlock()
	switch {
	case s.sock.ended || s.sock.closeAt != 0: // it leaves, and would never be taken out
		return nil
	case len(s.sock.rooms) == MaxRooms:
		return ErrTooMany
	}
	s.sock.rooms = append(s.sock.rooms, r)
	r.members[s.sock] = &member{session: s}
	return nil
}

// Show sends the state at a number, read after Join, and then whatever came after it.
func (r *Room) Show(s *Session, seq int64, state []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[s.sock]
	if m == nil {
		return
	}
	s.Send(state)
	for _, h := range m.held {
		if h.seq > seq {
			s.Send(h.message)
		}
	}
	m.shown, m.seq, m.held = true, seq, nil
}

// Send sends everybody what message makes for them; nil is nothing. It is called with the room locked.
func (r *Room) Send(seq int64, message func(*Session) []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		text := message(m.session)
		switch {
		case text == nil, m.shown && seq <= m.seq: // it is in the state already
		case m.shown:
			m.session.Send(text)
		case len(m.held) == maxHeld:
			m.session.Close(CloseTooSlow, tooBehind)
		default:
			m.held = append(m.held, numbered{seq, text})
		}
	}
}

// Leave undoes Join.
func (r *Room) Leave(s *Session) {
	r.remove(s.sock)
	s.sock.mu.Lock()
	defer s.sock.mu.Unlock()
	for i, other := range s.sock.rooms {
		if other == r {
			s.sock.rooms = append(s.sock.rooms[:i], s.sock.rooms[i+1:]...)
			return
		}
	}
}

// Members returns the sessions in the room.
func (r *Room) Members() (list []*Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		list = append(list, m.session)
	}
	return list
}

func (r *Room) remove(s *socket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, s)
}
