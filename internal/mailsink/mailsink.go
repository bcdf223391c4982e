// Package mailsink is a mail server that delivers nothing: it keeps what it is
// given in memory and shows it on a page, for `seatfence dev` and for tests.
// It can also fail in the ways that mail servers do. It is no part of a
// production server and must never pass a message on.
package mailsink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

const (
	maxMessages     = 1000     // kept; the oldest go first
	maxKeptBytes    = 64 << 20 // of all messages together
	maxMessageBytes = 1 << 20
	maxRecipients   = 100
	maxConns        = 64
	ioTime          = 30 * time.Second // a client's silence before it is cut off
	hangTime        = time.Minute
	closeTime       = 5 * time.Second
)

// Fault is a way to fail at the end of a message.
type Fault int

const (
	None Fault = iota
	Busy       // 451, try again later; the message is not kept
	Hang       // no answer until the fault changes, for a minute at most; then it works
	Drop       // the message is kept and the connection cut before the answer
)

// Sink is a running mail server. Its methods may be called from any goroutine.
type Sink struct {
	addr string
	mux  *http.ServeMux

	mu      sync.Mutex
	kept    []Message // oldest first
	bytes   int       // of kept
	lastID  int64
	fault   Fault
	changed chan struct{} // closed and replaced when kept or fault changes

	life sync.Mutex // one Up, Down or Close at a time
	srv  *smtp.Server
	l    *listener
	done chan struct{} // closed when srv takes no more connections
}

// Start listens on addr, "127.0.0.1:0" for any free port.
func Start(addr string) (*Sink, error) {
	s := &Sink{addr: addr, changed: make(chan struct{})}
	s.routes()
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, nil
}

// SMTPURL is smtp://host:port, the same through Down and Up.
func (s *Sink) SMTPURL() string { return "smtp://" + s.addr }

// Up accepts connections again after Down, on the same address.
func (s *Sink) Up() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.srv != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("mail sink: %w", err)
	}
	s.addr = l.Addr().String()
	tracked := &listener{Listener: l, open: map[*conn]struct{}{}, gone: make(chan struct{})}
	s.l = tracked
	s.srv = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{sink: s, conn: c.Conn(), gone: tracked.gone}, nil
	}))
	s.srv.Domain = "localhost"
	s.srv.MaxMessageBytes = maxMessageBytes
	s.srv.MaxRecipients = maxRecipients
	s.srv.ReadTimeout, s.srv.WriteTimeout = ioTime, ioTime
	s.srv.EnableSMTPUTF8 = true
	s.srv.ErrorLog = log.New(io.Discard, "", 0) // clients that hang up are the purpose here
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		_ = s.srv.Serve(s.l) // returns when the listener is closed
	}()
	return nil
}

// Down cuts all connections and refuses new ones. What was kept stays.
func (s *Sink) Down() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.srv == nil {
		return nil
	}
	s.l.cut()
	<-s.done
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.srv.Shutdown(ctx)
	s.srv = nil
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("mail sink: %w", err)
	}
	return nil
}

// Close ends the server and waits for it; the messages stay readable. It may
// be called twice.
func (s *Sink) Close() error { return s.Down() }

// Fail makes the messages from now on end in f, and lets go of those that hang.
func (s *Sink) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	s.wake()
}

// Messages are those kept, newest first.
func (s *Sink) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Message, 0, len(s.kept))
	for i := len(s.kept) - 1; i >= 0; i-- {
		list = append(list, s.kept[i])
	}
	return list
}

// Wait returns the oldest message that matches, now or as soon as it comes.
func (s *Sink) Wait(ctx context.Context, match func(Message) bool) (Message, error) {
	for {
		s.mu.Lock()
		kept, changed := s.kept, s.changed
		s.mu.Unlock()
		for _, m := range kept {
			if match(m) {
				return m, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Message{}, fmt.Errorf("wait for mail (%d other messages): %w", len(kept), ctx.Err())
		}
	}
}

func (s *Sink) keep(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	m.ID = s.lastID
	s.kept = append(s.kept, m)
	s.bytes += len(m.Raw)
	for len(s.kept) > maxMessages || s.bytes > maxKeptBytes {
		s.bytes -= len(s.kept[0].Raw)
		s.kept = s.kept[1:] // a reader's slice keeps its view
	}
	s.wake()
}

// wake is called with mu held.
func (s *Sink) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// session is one client's connection.
type session struct {
	sink *Sink
	conn net.Conn
	gone <-chan struct{} // closed when the server goes down
	from string
	to   []string
}

func (c *session) Mail(from string, _ *smtp.MailOptions) error { c.from = from; return nil }
func (c *session) Rcpt(to string, _ *smtp.RcptOptions) error   { c.to = append(c.to, to); return nil }
func (c *session) Reset()                                      { c.from, c.to = "", nil }
func (c *session) Logout() error                               { return nil }

func (c *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	switch c.sink.settle(c.gone) {
	case Busy:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "Try again later"}
	case Drop:
		defer c.conn.Close()
	}
	c.sink.keep(parse(c.from, c.to, raw))
	return nil
}

// settle returns the fault of a message, after it has hung if it must.
func (s *Sink) settle(gone <-chan struct{}) Fault {
	limit := time.NewTimer(hangTime)
	defer limit.Stop()
	for {
		s.mu.Lock()
		fault, changed := s.fault, s.changed
		s.mu.Unlock()
		if fault != Hang {
			return fault
		}
		select {
		case <-changed:
		case <-gone:
			return Busy
		case <-limit.C:
			return None
		}
	}
}

// listener bounds the open connections and can cut them all.
type listener struct {
	net.Listener
	mu   sync.Mutex
	open map[*conn]struct{}
	gone chan struct{} // closed by cut
	down bool
}

type conn struct {
	net.Conn
	l *listener
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		if l.down || len(l.open) >= maxConns {
			l.mu.Unlock()
			_ = c.Close()
			continue
		}
		tracked := &conn{c, l}
		l.open[tracked] = struct{}{}
		l.mu.Unlock()
		return tracked, nil
	}
}

func (c *conn) Close() error {
	c.l.mu.Lock()
	delete(c.l.open, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

func (l *listener) cut() {
	_ = l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	close(l.gone)
	for c := range l.open {
		_ = c.Conn.Close()
	}
}
