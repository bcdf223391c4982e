package realtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Why a session has ended, as Handler.Closed gets it.
const (
	Left      = "left"      // the tab has said bye
	Expired   = "expired"   // its connection was gone for longer than the grace
	Withdrawn = "withdrawn" // it was closed with CloseSignIn or CloseForbidden
)

// ErrTooMany is returned to a session that looks at as many boards or rooms as it may.
var ErrTooMany = errors.New("a session looks at 8 boards and 8 rooms at most")

// Principal is who a connection belongs to.
type Principal struct {
	Kind, ID string    // a session is bound to these two: a token of somebody else's is worth nothing
	Name     string    // for people to read
	Data     any       // the user's of this package
	Expires  time.Time // when the client has to sign in again; zero for never
	Cookie   bool      // known by a cookie: then the page must be our own
	Origin   string    // the only one whose pages may connect as this principal; empty for what Config says
}

// Handler is what frames mean. For one page session its calls come one at a time, whatever the generation, in this order: Open or Attached, any
// number of Frame, Detached, then Attached of the next generation or Closed. A call may wait for other systems, for up to 3 seconds: it delays
// only its own session, but the answers to pings too.
type Handler interface {
	// Open begins a new session.
	Open(s *Session)
	// Attached begins a generation of a session that goes on. before is the last generation if it was on this node, else nil.
	Attached(s, before *Session)
	// Frame gets a JSON object of the client's with its type, in UTF-8. It may keep nothing of the frame.
	Frame(s *Session, kind string, frame []byte)
	// Detached says that the connection of s is gone. Its tab may come back, here or on another node.
	Detached(s *Session)
	// Closed says that s is over: after Detached when the grace has passed, or in its stead when why is Left or Withdrawn.
	Closed(s *Session, why string)
}

// Session is one generation of a page session: a tab while it is connected, and the grace beyond. It is safe for concurrent use.
type Session struct {
	ID        string // of the page session, a secret
	Gen       int64  // grows with each connection of the tab
	Node      string
	Principal Principal
	Data      any // the handler's, guarded by its calls coming one at a time

	sock  *socket
	life  *life
	final atomic.Pointer[string] // why the session is over with its connection; nil if it may be resumed
}

// life is a page session on this node. mu is held through the calls of the handler.
type life struct {
	mu   sync.Mutex
	now  *Session // the newest generation
	over bool     // no longer in Hub.lives
}

// Name is how requests beside the connection name this generation: "id.gen.node".
func (s *Session) Name() string { return fmt.Sprintf("%s.%d.%s", s.ID, s.Gen, s.Node) }

// Send sends a message, in order with other calls of Send. It never waits. A client that leaves more than 256 messages or 128 KB unread is
// closed with CloseTooSlow. What is sent to a session without a connection is lost.
func (s *Session) Send(message []byte) { s.sock.send(encodeText(message)) }

// SendJSON is Send of what json.Marshal makes of v. It panics if v cannot be marshaled.
func (s *Session) SendJSON(v any) {
	message, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("realtime: message: %v", err))
	}
	s.Send(message)
}

// Close ends the connection and tells the client why. After CloseNormal, CloseSignIn and CloseForbidden the session is over at once; after any
// other code the tab may resume it.
func (s *Session) Close(code int, reason string) {
	switch code {
	case CloseNormal:
		s.finish(Left)
	case CloseSignIn, CloseForbidden:
		s.finish(Withdrawn)
	}
	s.sock.close(code, reason)
}

func (s *Session) finish(why string) { s.final.CompareAndSwap(nil, &why) }

// Watch makes the hub notice within 9 seconds that the client is gone, for a ping every 4 seconds; otherwise it takes 35.
func (s *Session) Watch(on bool) { s.sock.fast.Store(on) }

type hello struct {
	Type     string `json:"type"`
	Protocol int    `json:"protocol"`
	Token    string `json:"token"`
}

type welcome struct {
	Type    string    `json:"type"`
	Session string    `json:"session"`
	Token   string    `json:"token"`
	Resumed bool      `json:"resumed"`
	Time    time.Time `json:"server_time"`
	Ping    float64   `json:"ping_seconds"`
}

// attach begins the generation of a session that a hello asks for.
func (h *Hub) attach(sock *socket, p Principal, said hello) {
	now := time.Now()
	id, last, resumed := h.signer.parse(said.Token, p, now)
	if !resumed {
		id = newID()
	}
	l := h.lifeOf(id)
	defer l.mu.Unlock()
	before := l.now
	if before != nil {
		last = max(last, before.Gen)
	}
	// By the clock it grows also where neither this node nor the client has heard of the last generation.
	s := &Session{ID: id, Gen: max(last+1, now.UnixMicro()), Node: h.cfg.Node, Principal: p, sock: sock, life: l}
	l.now = s
	if before != nil {
		before.sock.close(CloseReplaced, "this session is connected anew")
		h.release(before.sock)
		s.Data = before.Data
	}
	sock.heard.Store(now.UnixNano() - rand.Int64N(int64(h.cfg.Ping)/2)) // pings of those who come together are spread
	s.SendJSON(welcome{"welcome", s.Name(), h.signer.token(id, s.Gen, p, now), resumed, now.UTC(), h.cfg.Ping.Seconds()})
	sock.session.Store(s)
	h.stats.opened.Add(1)
	if resumed {
		h.stats.resumed.Add(1)
		h.call(s, func() { h.handler.Attached(s, before) })
	} else {
		h.call(s, func() { h.handler.Open(s) })
	}
}

// lifeOf returns the life of a page session, locked.
func (h *Hub) lifeOf(id string) *life {
	for {
		h.mu.Lock()
		l := h.lives[id]
		if l == nil {
			l = &life{}
			h.lives[id] = l
		}
		h.mu.Unlock()
		l.mu.Lock()
		if !l.over {
			return l
		}
		l.mu.Unlock() // it ended meanwhile
	}
}

// frame hands a message of the client's on.
func (h *Hub) frame(s *Session, kind string, message []byte) {
	if kind == "bye" {
		s.Close(CloseNormal, "")
		h.release(s.sock)
		h.detach(s) // whatever time the client takes to answer the close
		return
	}
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if s.life.now == s && !s.life.over {
		h.call(s, func() { h.handler.Frame(s, kind, message) })
	}
}

// call calls the handler. What it panics with costs one connection, not the process.
func (h *Hub) call(s *Session, f func()) {
	defer func() {
		if failed := recover(); failed != nil {
			h.cfg.Log.Error("frame of a stream", "panic", failed, "principal", s.Principal.Kind+":"+s.Principal.ID)
			s.sock.close(CloseInternal, "our fault")
		}
	}()
	f()
}

// detach ends a generation whose connection is gone. It does nothing if a newer one has taken over, or if the session is over.
func (h *Hub) detach(s *Session) {
	l := s.life
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != s || l.over {
		return
	}
	if why := s.final.Load(); why != nil {
		h.over(s, *why)
		return
	}
	h.mu.Lock()
	h.detached = append(h.detached, departure{s, time.Now()})
	h.mu.Unlock()
	h.call(s, func() { h.handler.Detached(s) })
}

// over ends a session. Its life is locked.
func (h *Hub) over(s *Session, why string) {
	s.life.over = true
	h.mu.Lock()
	delete(h.lives, s.ID)
	h.mu.Unlock()
	h.call(s, func() { h.handler.Closed(s, why) })
}

// departure is a session without a connection.
type departure struct {
	session *Session
	at      time.Time
}

// reap closes sessions that have been without a connection for longer than the grace, until the hub stops.
func (h *Hub) reap() {
	tick := time.NewTicker(h.cfg.Flush)
	defer tick.Stop()
	var ending sync.WaitGroup
	defer ending.Wait()
	turns := make(chan struct{}, reapers)
	for {
		select {
		case <-h.stop:
			return
		case now := <-tick.C:
			for _, d := range h.due(now) {
				turns <- struct{}{}
				ending.Go(func() {
					defer func() { <-turns }()
					h.expire(d.session)
				})
			}
		}
	}
}

// due takes the sessions whose grace has passed, unless they go on elsewhere because this node stops.
func (h *Hub) due(now time.Time) []departure {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for n < len(h.detached) && now.Sub(h.detached[n].at) >= h.cfg.Grace {
		n++
	}
	due := h.detached[:n:n]
	h.detached = h.detached[n:]
	if len(h.detached) == 0 {
		h.detached = nil
	}
	if h.draining {
		return nil
	}
	return due
}

func (h *Hub) expire(s *Session) {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if s.life.now == s && !s.life.over {
		h.over(s, Expired)
	}
}
