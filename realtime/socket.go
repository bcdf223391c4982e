package realtime

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// queueFrames and queueBytes are what waits for a client that reads slowly, beside what boards keep for everybody.
	queueFrames = 256
	queueBytes  = 128 << 10
	// sendBuffer bounds what the system keeps for a client that reads nothing: 4 MB if one lets it.
	sendBuffer = 64 << 10
	// slowPiece is how many bytes are progress where the system does not say.
	slowPiece = 4 << 10
	// closeWait is for how long a client may take to answer a close.
	closeWait = time.Second
	// stuckAWhile is when a client that takes nothing counts as a slow one, whose answers to pings take their time too.
	stuckAWhile = time.Second
	// A client may send this many bytes, whatever they are: frames of no length and pings count too.
	bytesASecond = 96 << 10
	bytesAtOnce  = 256 << 10
	maxBoards    = 8 // that a session looks at
)

// MaxRooms is in how many rooms a session may be.
const MaxRooms = 8

const tooBehind = "the client reads too slowly"

// socket is a connection and its one writer. A write takes what the system takes at once and leaves the rest to the next turn of the shard, so
// nobody waits for a client. What boards have to tell is not queued at all: a slow client is merely behind, and later hears once what it has
// missed.
type socket struct {
	net.Conn
	hub     *Hub
	shard   *shard
	place   int             // in shard.sockets, guarded by shard.mu
	raw     syscall.RawConn // nil for a connection that only a goroutine can write to
	wake    chan struct{}   // that goroutine's
	opened  int64           // unix ns, like all times here
	session atomic.Pointer[Session]
	heard   atomic.Int64 // when the last frame or pong came
	fast    atomic.Bool

	mu      sync.Mutex
	rest    []byte   // of a frame that the system has taken a part of
	queue   [][]byte // what comes next, in order
	queued  int      // bytes of it
	subs    []subscription
	rooms   []*Room
	stuck   int64 // since when the system takes nothing; 0 if it does
	closeAt int64 // when the connection is cut; 0 if it is not being closed
	pinged  int64 // when a ping was sent that is not answered; 0 if there is none
	behind  bool  // it has been stuck for a while since the last answer
	greeted bool  // a hello has come, though its session may still wait for the handler
	ended   bool
}

// subscription is what a socket has of a board.
type subscription struct {
	board topic
	epoch string
	seq   int64
	note  *[]byte
}

// topic is a board of any type of cells.
type topic interface {
	// after returns what leads from a position to the present, and the present. There is no frame for who is there already.
	after(epoch string, seq int64) (frame []byte, nowEpoch string, nowSeq int64)
	noted() *[]byte
	count(int64)
}

func newSocket(conn net.Conn, h *Hub, now time.Time) *socket {
	s := &socket{Conn: conn, hub: h, opened: now.UnixNano()}
	s.heard.Store(s.opened)
	if tcp, ok := under(conn).(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // a hint
	}
	if sys, ok := conn.(syscall.Conn); ok {
		if raw, err := sys.SyscallConn(); err == nil {
			s.raw = raw
			return s
		}
	}
	s.wake = make(chan struct{}, 1)
	return s
}

// under returns the connection that lies under TLS, if there is any.
func under(conn net.Conn) net.Conn {
	if secret, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return secret.NetConn()
	}
	return conn
}

// send queues an encoded frame and writes what can be written.
func (s *socket) send(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.closeAt != 0 {
		return
	}
	if len(s.queue) == queueFrames || s.queued+len(frame) > queueBytes && s.queued > 0 {
		s.closeLocked(CloseTooSlow, tooBehind)
		return
	}
	s.queue, s.queued = append(s.queue, frame), s.queued+len(frame)
	s.flush()
}

// waiting is how much of the queue is taken, from 0 to 1.
func (s *socket) waiting() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(float64(len(s.queue))/queueFrames, float64(s.queued)/queueBytes)
}

// close tells the client why, as the last thing, and gives it a moment to answer.
func (s *socket) close(code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(code, reason)
}

func (s *socket) closeLocked(code int, reason string) {
	if s.ended || s.closeAt != 0 {
		return
	}
	s.hub.closed(code)
	if code == CloseTooSlow {
		s.queue, s.queued = nil, 0 // it would not be read
	}
	s.queue = append(s.queue, encodeClose(code, reason))
	s.closeAt = time.Now().Add(closeWait).UnixNano()
	s.flush()
}

func (s *socket) closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closeAt != 0
}

// cut ends the connection. The reader notices.
func (s *socket) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
}

func (s *socket) cutLocked() {
	if s.ended {
		return
	}
	s.ended, s.rest, s.queue = true, nil, nil
	conn := under(s.Conn) // TLS would wait for up to 5 seconds to say goodbye
	if tcp, ok := conn.(*net.TCPConn); ok && s.stuck != 0 {
		_ = tcp.SetLinger(0) // the system would keep trying for minutes
	}
	_ = conn.Close()
	s.rouse()
}

func (s *socket) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // nobody writes, or it knows
	}
}

// flush writes until there is nothing to write or the system takes no more. mu is held.
func (s *socket) flush() {
	if s.raw == nil {
		s.rouse()
		return
	}
	for !s.ended {
		if len(s.rest) == 0 {
			if s.rest = s.next(); s.rest == nil {
				s.stuck = 0
				return
			}
		}
		n, err := writeNow(s.raw, s.rest)
		switch {
		case err != nil:
			s.cutLocked()
		case n > 0:
			s.rest, s.stuck = s.rest[n:], 0
		default:
			if s.stuck == 0 {
				s.stuck = time.Now().UnixNano()
				s.hub.stats.lagged.Add(1)
			}
			return
		}
	}
}

// writeNow writes what the system takes at once, and nothing is no error.
func writeNow(raw syscall.RawConn, p []byte) (n int, err error) {
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for {
			if n, failed = syscall.Write(int(fd), p); failed != syscall.EINTR {
				return true // whatever it said: nobody waits here
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case failed == syscall.EAGAIN:
		return 0, nil
	case failed != nil:
		return 0, failed
	}
	return n, nil
}

// next takes the frame that is written next, or nil. mu is held.
func (s *socket) next() []byte {
	if len(s.queue) > 0 {
		frame := s.queue[0]
		s.queue, s.queued = s.queue[1:], s.queued-len(frame)
		if len(s.queue) == 0 {
			s.queue, s.queued = nil, 0
		}
		return frame
	}
	if s.closeAt != 0 {
		return nil
	}
	for i := range s.subs {
		sub := &s.subs[i]
		frame, epoch, seq := sub.board.after(sub.epoch, sub.seq)
		if frame != nil {
			sub.epoch, sub.seq = epoch, seq
			return frame
		}
		if note := sub.board.noted(); note != nil && note != sub.note {
			sub.note = note
			return *note
		}
	}
	return nil
}

// writer writes for a connection that cannot be written to without waiting, until it is cut.
func (s *socket) writer() {
	for range s.wake {
		for {
			s.mu.Lock()
			frame := s.next()
			if ended := s.ended; ended || frame == nil {
				s.mu.Unlock()
				if ended {
					return
				}
				break
			}
			s.mu.Unlock()
			if err := s.writeSlowly(frame); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					s.hub.closed(CloseTooSlow)
				}
				s.cut()
				return
			}
		}
	}
}

// writeSlowly writes a frame in pieces, each of which has the time that a client may take without progress.
func (s *socket) writeSlowly(frame []byte) error {
	for piece := range slices.Chunk(frame, slowPiece) {
		now := time.Now()
		s.stall(now.UnixNano())
		_ = s.Conn.SetWriteDeadline(now.Add(s.hub.cfg.SlowLimit))
		if _, err := s.Conn.Write(piece); err != nil {
			return err
		}
	}
	s.stall(0)
	return nil
}

func (s *socket) stall(since int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = since
}

// turn is what a shard does for a socket once in each window: end what has had its time, ping, and write what is new.
func (s *socket) turn(now int64) {
	cfg := &s.hub.cfg
	session := s.session.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return
	case s.closeAt != 0 && now > s.closeAt:
		s.cutLocked()
		return
	case s.raw != nil && s.stuck != 0 && now-s.stuck > int64(cfg.SlowLimit):
		s.hub.closed(CloseTooSlow)
		s.cutLocked() // it cannot even be told
		return
	case !s.greeted && now-s.opened > int64(cfg.HelloWait):
		s.closeLocked(CloseBadFrame, "no hello")
	case session != nil && !session.Principal.Expires.IsZero() && now > session.Principal.Expires.UnixNano():
		session.finish(Withdrawn)
		s.closeLocked(CloseSignIn, "sign in again")
	}
	s.ping(now)
	s.flush()
}

// ping pings a client that has been silent, and cuts it off when it stays so. mu is held.
func (s *socket) ping(now int64) {
	every, wait := s.hub.cfg.Ping, s.hub.cfg.Pong
	if s.fast.Load() {
		every, wait = s.hub.cfg.FastPing, s.hub.cfg.FastPing
	}
	if heard := s.heard.Load(); s.pinged != 0 && heard >= s.pinged {
		s.pinged, s.behind = 0, false
	} else if s.pinged == 0 && now-heard >= int64(every) && s.closeAt == 0 {
		s.pinged = now
		s.queue, s.queued = append(s.queue, pingFrame), s.queued+len(pingFrame)
	}
	if s.stuck != 0 && now-s.stuck > int64(stuckAWhile) && !s.fast.Load() {
		s.behind = true
	}
	if s.behind {
		wait = s.hub.cfg.SlowLimit // the ping waits behind what the client has not read yet
	}
	if s.pinged != 0 && now-s.pinged > int64(wait) {
		s.cutLocked()
	}
}

// bucket lets through so much a second, and so much at once.
type bucket struct {
	rate, size, left float64
	at               time.Time
}

func (b *bucket) take(now time.Time, n float64) bool {
	b.left = min(b.size, b.left+now.Sub(b.at).Seconds()*b.rate)
	b.at = now
	if b.left < n {
		return false
	}
	b.left -= n
	return true
}
