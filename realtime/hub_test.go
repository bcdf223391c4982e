package realtime_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatfence/realtime"
)

const patience = 15 * time.Second

// site is a server with a hub, whose handler writes down what it is told.
type site struct {
	*realtime.Hub
	url    string
	tell   chan string // "open", "attached", "frame …", "detached", "closed why"
	last   chan *realtime.Session
	do     func(s *realtime.Session, kind string, frame []byte)
	mu     sync.Mutex
	who    realtime.Principal
	secret bool // over TLS
}

// secretNode is the node of a site that speaks TLS.
const secretNode = "tls"

func (s *site) Open(x *realtime.Session) {
	s.last <- x
	s.tell <- "open"
}

func (s *site) Attached(x, _ *realtime.Session) {
	s.last <- x
	s.tell <- "attached"
}

func (s *site) Frame(x *realtime.Session, kind string, frame []byte) {
	if s.do != nil {
		s.do(x, kind, frame)
		return
	}
	s.tell <- "frame " + kind
}

func (s *site) Detached(*realtime.Session)             { s.tell <- "detached" }
func (s *site) Closed(_ *realtime.Session, why string) { s.tell <- "closed " + why }

func (s *site) as(p realtime.Principal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.who = p
}

// open starts a site; change may be nil.
func open(t testing.TB, change func(*realtime.Config), do func(*realtime.Session, string, []byte)) *site {
	t.Helper()
	s := &site{tell: make(chan string, 30_000), last: make(chan *realtime.Session, 30_000), do: do, who: realtime.Principal{Kind: "user", ID: "lena"}}
	cfg := realtime.Config{
		Node: "n1", Key: []byte("a key of the test"), Origins: []string{"https://seats.test", "https://shop.test"},
		Log: slog.New(slog.DiscardHandler), Grace: 300 * time.Millisecond, Flush: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	hub, err := realtime.New(cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	s.Hub = hub
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if s.secret = cfg.Node == secretNode; s.secret {
		server.StartTLS()
	} else {
		server.Start()
	}
	s.url = "ws" + strings.TrimPrefix(server.URL, "http")
	t.Cleanup(func() {
		server.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		hub.Stop(ctx)
		hub.Stop(ctx)
	})
	return s
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	who := s.who
	s.mu.Unlock()
	if err := s.Serve(w, r, who); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
	}
}

// expect waits for what the handler is told next.
func (s *site) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-s.tell:
			if got != w {
				t.Fatalf("handler was told %q, want %q", got, w)
			}
		case <-time.After(patience):
			t.Fatalf("handler was never told %q", w)
		}
	}
}

// tab is a client.
type tab struct {
	*websocket.Conn
	t       *testing.T
	welcome struct {
		Session, Token string
		Resumed        bool
	}
}

func (s *site) dial(t *testing.T, origin string) (*tab, error) {
	t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	conn, resp, err := anyDialer.DialContext(t.Context(), s.url, header)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &tab{Conn: conn, t: t}, nil
}

// connect dials and says hello.
func (s *site) connect(t *testing.T, token string) *tab {
	t.Helper()
	c, err := s.dial(t, "")
	if err != nil {
		t.Fatal(err)
	}
	c.hello(token)
	return c
}

func (c *tab) hello(token string) {
	c.t.Helper()
	c.say(fmt.Sprintf(`{"type":"hello","protocol":1,"token":%q}`, token))
	if err := json.Unmarshal(c.hear(), &c.welcome); err != nil {
		c.t.Fatal(err)
	}
}

func (c *tab) say(text string) {
	c.t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *tab) hear() []byte {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, message, err := c.ReadMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	return message
}

// ended waits for the close and returns its code, 1006 for none.
func (c *tab) ended() int {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, _, err := c.ReadMessage(); err != nil {
			if closed, ok := err.(*websocket.CloseError); ok {
				return closed.Code
			}
			if n, ok := err.(net.Error); ok && n.Timeout() {
				c.t.Fatal("never closed")
			}
			return websocket.CloseAbnormalClosure
		}
	}
}

func TestSessionGoesThroughItsLife(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	c := s.connect(t, "")
	s.expect(t, "open")
	c.say(`{"type":"view-resource"}`)
	s.expect(t, "frame view-resource")
	_ = c.Close()
	s.expect(t, "detached")
	again := s.connect(t, c.welcome.Token)
	s.expect(t, "attached")
	if !again.welcome.Resumed || c.welcome.Resumed {
		t.Errorf("resumed: %v, then %v", c.welcome.Resumed, again.welcome.Resumed)
	}
	again.say(`{"type":"bye"}`)
	if code := again.ended(); code != websocket.CloseNormalClosure {
		t.Errorf("bye ended with %d", code)
	}
	s.expect(t, "closed left")
	third := s.connect(t, "")
	s.expect(t, "open")
	_ = third.Close()
	s.expect(t, "detached", "closed expired")
	if st := s.Stats(); st.Open != 0 || st.Sessions != 0 || st.Detached != 0 {
		t.Errorf("left over: %+v", st)
	}
}

// anyDialer knows no certificates.
var anyDialer = websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
