package realtime_test

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatfence/realtime"
)

// proxy is a connection's way to a site that can be made to swallow what goes over it, as a network does that has broken down.
type proxy struct {
	addr    string
	swallow atomic.Bool
}

func (s *site) behind(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: "ws://" + l.Addr().String()}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(s.url, "ws://"))
			if err != nil {
				_ = in.Close()
				return
			}
			t.Cleanup(func() { _, _ = in.Close(), out.Close() })
			go p.carry(in, out)
			go p.carry(out, in)
		}
	}()
	return p
}

func (p *proxy) carry(to, from net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if p.swallow.Load() {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// through connects by way of a proxy.
func (s *site) through(t *testing.T, p *proxy, token string) *tab {
	t.Helper()
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), p.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	c := &tab{Conn: conn, t: t}
	c.hello(token)
	return c
}

func TestFiveResumesWhileOldConnectionsHang(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	token := ""
	var last *realtime.Session
	for i := range 6 {
		p := s.behind(t)
		c := s.through(t, p, token)
		now := <-s.last
		if i == 0 {
			s.expect(t, "open")
		} else {
			s.expect(t, "attached")
			if now.ID != last.ID || now.Gen <= last.Gen || !c.welcome.Resumed {
				t.Fatalf("resume %d: %s %d after %s %d", i, now.ID, now.Gen, last.ID, last.Gen)
			}
		}
		p.swallow.Store(true) // the old socket hangs half open from here
		token, last = c.welcome.Token, now
	}
	for s.Stats().Open > 1 { // the old ones end, and nobody is told
		time.Sleep(5 * time.Millisecond)
	}
	s.nothing(t)
}

// nothing fails if the handler has been told anything.
func (s *site) nothing(t *testing.T) {
	t.Helper()
	select {
	case got := <-s.tell:
		t.Fatalf("handler was told %q", got)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestLateCloseOfAnOlderConnectionChangesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	old := s.connect(t, "")
	before := <-s.last
	s.expect(t, "open")
	young := s.connect(t, old.welcome.Token)
	s.expect(t, "attached")
	if code := old.ended(); code != realtime.CloseReplaced {
		t.Errorf("old socket ended with %d", code)
	}
	before.Close(realtime.CloseForbidden, "late")
	before.Send([]byte(`{"type":"lost"}`))
	s.nothing(t)
	young.say(`{"type":"still-there"}`)
	s.expect(t, "frame still-there")
}

func TestSessionGoesOnAtAnotherNode(t *testing.T) {
	t.Parallel()
	one := open(t, nil, nil)
	two := open(t, func(c *realtime.Config) { c.Node = "n2" }, nil)
	c := one.connect(t, "")
	a := <-one.last
	moved := two.connect(t, c.welcome.Token)
	b := <-two.last
	two.expect(t, "attached")
	if !moved.welcome.Resumed || a.ID != b.ID || b.Gen <= a.Gen || b.Node != "n2" {
		t.Errorf("%s %d %s after %s %d %s", b.ID, b.Gen, b.Node, a.ID, a.Gen, a.Node)
	}
	// Its tab never heard of that: it comes back with the old token, and is still the newest.
	back := one.connect(t, c.welcome.Token)
	if again := <-one.last; again.Gen <= b.Gen || !back.welcome.Resumed {
		t.Errorf("generation %d after %d", again.Gen, b.Gen)
	}
}

func TestTokenOfSomebodyElseBeginsAnew(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	other := open(t, func(c *realtime.Config) { c.Key = []byte("another key") }, nil)
	mine := s.connect(t, "").welcome.Token
	first := <-s.last
	foreign := other.connect(t, "").welcome.Token
	flipped := []byte(mine)
	flipped[3] ^= 1
	check := func(name, token string) {
		c := s.connect(t, token)
		if x := <-s.last; c.welcome.Resumed || x.ID == first.ID {
			t.Errorf("%s token is resumed", name)
		}
	}
	check("a foreign", foreign)
	check("a garbled", string(flipped))
	check("a short", mine[:20])
	check("no", "!!!")
	s.as(realtime.Principal{Kind: "user", ID: "omar"})
	check("another user's", mine)
	s.as(realtime.Principal{Kind: "userl", ID: "ena"})
	check("a user's with the same letters", mine)
}

func TestHalfOpenConnectionOfAnEditorIsNoticed(t *testing.T) {
	t.Parallel()
	const limit = 9 * time.Second // with the real times
	s := open(t, nil, func(x *realtime.Session, _ string, _ []byte) {
		x.Watch(true)
		x.Send([]byte(`{"type":"ok"}`))
	})
	p := s.behind(t)
	c := s.through(t, p, "")
	s.expect(t, "open")
	c.say(`{"type":"edit"}`)
	c.hear()
	p.swallow.Store(true)
	gone := time.Now()
	s.expect(t, "detached")
	if took := time.Since(gone); took > limit {
		t.Errorf("noticed after %s", took)
	}
	s.expect(t, "closed expired")
}

func TestSilentClientThatAnswersPingsStays(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *realtime.Config) { c.Ping, c.Pong = 50*time.Millisecond, 100*time.Millisecond }, nil)
	c := s.connect(t, "")
	s.expect(t, "open")
	pings := make(chan struct{}, 100)
	answer := c.PingHandler()
	c.SetPingHandler(func(data string) error {
		pings <- struct{}{}
		return answer(data)
	})
	go func() { _, _, _ = c.ReadMessage() }()
	for range 10 {
		select {
		case <-pings:
		case what := <-s.tell:
			t.Fatalf("handler was told %q", what)
		}
	}
}

func TestSignInThatEndsEndsTheSession(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	s.as(realtime.Principal{Kind: "user", ID: "lena", Expires: time.Now().Add(200 * time.Millisecond)})
	c := s.connect(t, "")
	s.expect(t, "open")
	if code := c.ended(); code != realtime.CloseSignIn {
		t.Errorf("ended with %d", code)
	}
	s.expect(t, "closed withdrawn")
}

func TestHandlerThatPanicsCostsOneConnection(t *testing.T) {
	t.Parallel()
	s := open(t, nil, func(*realtime.Session, string, []byte) { panic("broken") })
	c, other := s.connect(t, ""), s.connect(t, "")
	c.say(`{"type":"x"}`)
	if code := c.ended(); code != realtime.CloseInternal {
		t.Errorf("ended with %d", code)
	}
	if err := other.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(time.Second)); err != nil {
		t.Error(err)
	}
}

func TestHelloThatWaitsForTheHandlerIsNoSilence(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	s := open(t, func(c *realtime.Config) { c.HelloWait = 50 * time.Millisecond }, func(*realtime.Session, string, []byte) { <-free })
	c := s.connect(t, "")
	s.expect(t, "open")
	c.say(`{"type":"slow"}`)
	time.AfterFunc(300*time.Millisecond, func() { close(free) })
	again := s.connect(t, c.welcome.Token) // its generation begins when the call of the older one is done
	s.expect(t, "attached")
	again.stays(t)
}

func TestDrainSpreadsWhoComesBack(t *testing.T) {
	t.Parallel()
	const clients, spread = 40, 4.0
	s := open(t, nil, nil)
	tabs := make([]*tab, clients)
	for i := range tabs {
		tabs[i] = s.connect(t, "")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Drain(t.Context(), spread*time.Second)
	}()
	var quarters [4]int
	for i, c := range tabs {
		var said struct {
			After float64 `json:"retry_after"`
		}
		if err := json.Unmarshal(c.hear(), &said); err != nil {
			t.Fatal(err)
		}
		if after := said.After; after >= 0 && after <= spread {
			quarters[min(3, int(after/spread*4))]++
		}
		if i%2 == 0 { // half of them go by themselves
			_ = c.Close()
		} else if code := c.ended(); code != realtime.CloseRestart {
			t.Fatalf("closed with %d", code)
		}
	}
	<-done
	for _, n := range quarters {
		if n < clients/4-2 || n > clients/4+2 {
			t.Errorf("they come back in quarters of %v", quarters)
			break
		}
	}
	if c, err := s.dial(t, ""); err == nil {
		t.Errorf("%v connected to a server that stops", c.RemoteAddr())
	}
	time.Sleep(2 * 300 * time.Millisecond) // the grace, twice
	for len(s.tell) > 0 {
		if what := <-s.tell; strings.HasPrefix(what, "closed") {
			t.Errorf("handler was told %q of a session that goes on elsewhere", what)
		}
	}
}
