package realtime_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"seatfence/db/dbtest"
	"seatfence/realtime"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(crowdOf); order != "" {
		beCrowd(order)
		return
	}
	goleak.VerifyTestMain(withServers{m})
}

// withServers stops the servers of the tests before it is looked what is left.
type withServers struct{ m *testing.M }

func (w withServers) Run() int { return dbtest.Main(w.m) }

func TestOriginsAreExact(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	for _, c := range []struct {
		origin       string
		cookie, want bool
	}{
		{"https://seats.test", true, true},
		{"https://shop.test", true, false}, // may connect, but not with our cookie
		{"", true, false},
		{"https://shop.test", false, true},
		{"", false, true},
		{"http://seats.test", false, false},
		{"https://seats.test:444", false, false},
		{"https://seats.test.evil.test", false, false},
		{"null", false, false},
	} {
		s.as(realtime.Principal{Kind: "user", ID: "lena", Cookie: c.cookie})
		if _, err := s.dial(t, c.origin); (err == nil) != c.want {
			t.Errorf("origin %q, cookie %v: %v", c.origin, c.cookie, err)
		}
	}
	// Who is known on pages of one origin alone.
	s.as(realtime.Principal{Kind: "page", ID: "k", Origin: "https://page.test"})
	for _, origin := range []string{"https://page.test", "", "null", "https://seats.test", "https://shop.test", "http://page.test", "https://a.page.test"} {
		if _, err := s.dial(t, origin); (err == nil) != (origin == "https://page.test") {
			t.Errorf("a page's viewer from %q: %v", origin, err)
		}
	}
}

func TestBadFramesAreClosed(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *realtime.Config) { c.HelloWait = 200 * time.Millisecond }, nil)
	write := func(kind int, text string) func(*tab) {
		return func(c *tab) { _ = c.WriteMessage(kind, []byte(text)) }
	}
	raw := func(b ...byte) func(*tab) { return func(c *tab) { _, _ = c.NetConn().Write(b) } }
	for name, c := range map[string]struct {
		send func(*tab)
		want int
	}{
		"too big":             {write(websocket.TextMessage, `{"type":"`+strings.Repeat("x", realtime.MaxFrame)+`"}`), realtime.CloseTooBig},
		"garbage":             {write(websocket.TextMessage, `{"type":`), realtime.CloseBadFrame},
		"no object":           {write(websocket.TextMessage, `["type"]`), realtime.CloseBadFrame},
		"null":                {write(websocket.TextMessage, ` null`), realtime.CloseBadFrame},
		"empty":               {write(websocket.TextMessage, ``), realtime.CloseBadFrame},
		"binary":              {write(websocket.BinaryMessage, `{"type":"x"}`), realtime.CloseBadFrame},
		"not UTF-8":           {write(websocket.TextMessage, "{\"type\":\"\xff\"}"), realtime.CloseBadFrame},
		"reserved bits":       {raw(0xf1, 0x80, 0, 0, 0, 0), realtime.CloseBadFrame},
		"not masked":          {raw(0x81, 0x02, '{', '}'), realtime.CloseBadFrame},
		"a terabyte":          {raw(0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), realtime.CloseTooBig},
		"stray continuation":  {raw(0x80, 0x80, 0, 0, 0, 0), realtime.CloseBadFrame},
		"many frames":         {func(c *tab) { repeat(c, 60, `{"type":"x"}`) }, realtime.CloseTooMany},
		"flood of pings":      {func(c *tab) { flood(c, 0x89) }, realtime.CloseTooMany},
		"endless fragments":   {func(c *tab) { _, _ = c.NetConn().Write([]byte{0x01, 0x80, 0, 0, 0, 0}); flood(c, 0x00) }, realtime.CloseTooMany},
		"second hello is one": {write(websocket.TextMessage, `{"type":"hello"}`), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := s.connect(t, "")
			client.t = t
			c.send(client)
			if c.want == 0 {
				client.stays(t)
			} else if code := client.ended(); code != c.want && (c.want != realtime.CloseTooMany || code != websocket.CloseAbnormalClosure) {
				t.Errorf("closed with %d, want %d", code, c.want)
			}
		})
	}
	t.Run("before hello", func(t *testing.T) {
		t.Parallel()
		for _, first := range []string{`{"type":"view-resource"}`, `{"type":"hello","protocol":2}`, `{"type":"hello","protocol":"1"}`, ``} {
			c, err := s.dial(t, "")
			if err != nil {
				t.Fatal(err)
			}
			if first != `` { // else it says nothing
				c.say(first)
			}
			if code := c.ended(); code != realtime.CloseBadFrame {
				t.Errorf("%q: closed with %d", first, code)
			}
		}
	})
}

func repeat(c *tab, n int, text string) {
	for range n {
		_ = c.WriteMessage(websocket.TextMessage, []byte(text))
	}
}

// flood sends empty frames of a kind until the server has had enough.
func flood(c *tab, first byte) {
	frames := bytes.Repeat([]byte{first, 0x80, 0, 0, 0, 0}, 1000)
	go func() { // it has to read too
		for {
			if _, err := c.NetConn().Write(frames); err != nil {
				return
			}
		}
	}()
}

// stays checks that a client is not closed.
func (c *tab) stays(t *testing.T) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, _, err := c.ReadMessage(); !isTimeout(err) {
		t.Errorf("closed: %v", err)
	}
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

func TestFragmentsAreOneFrame(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	c := s.connect(t, "")
	s.expect(t, "open")
	for _, part := range [][]byte{
		append([]byte{0x01, 0x80 | 8, 0, 0, 0, 0}, `{"type":`...),
		{0x89, 0x80, 0, 0, 0, 0}, // a ping between
		append([]byte{0x80, 0x80 | 4, 0, 0, 0, 0}, `"x"}`...),
	} {
		if _, err := c.NetConn().Write(part); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(t, "frame x")
}

// TestFramesArriveInAnyPieces sends the same frames cut at every place.
func TestFramesArriveInAnyPieces(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	var all []byte
	mask := []byte{1, 2, 3, 4}
	add := func(head byte, payload string) {
		all = append(all, head)
		if n := len(payload); n < 126 {
			all = append(all, 0x80|byte(n))
		} else {
			all = append(all, 0x80|126, byte(n>>8), byte(n))
		}
		all = append(all, mask...)
		for i := range len(payload) {
			all = append(all, payload[i]^mask[i%4])
		}
	}
	add(0x81, `{"type":"a"}`)
	add(0x01, `{"type":`)
	add(0x8a, "a pong")
	add(0x80, `"b"}`)
	add(0x81, `{"type":"c","pad":"`+strings.Repeat("x", realtime.MaxFrame-21)+`"}`)
	add(0x81, `{"type":"d"}`)
	for at := 1; at < len(all); at += 1 + at/40*at/40 {
		c := s.connect(t, "")
		s.expect(t, "open")
		for _, part := range [][]byte{all[:at], all[at:]} {
			if _, err := c.NetConn().Write(part); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // the pieces arrive one by one, mostly
		}
		s.expect(t, "frame a", "frame b", "frame c", "frame d")
		c.say(`{"type":"bye"}`)
		s.expect(t, "closed left")
	}
}

func TestNoMoreConnectionsThanAllowed(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *realtime.Config) { c.MaxSockets = 2 }, nil)
	first := s.connect(t, "")
	s.connect(t, "")
	if _, err := s.dial(t, ""); err == nil {
		t.Error("a third connection was accepted")
	}
	_ = first.Close()
	for s.Stats().Open == 2 {
		time.Sleep(time.Millisecond)
	}
	s.connect(t, "")
}

// TestNothingIsLeftOfConnectionsThatBreak is not parallel: it counts what the process has open.
func TestNothingIsLeftOfConnectionsThatBreak(t *testing.T) {
	const clients, together = 10_000, 500
	s := open(t, func(c *realtime.Config) { c.Grace = 50 * time.Millisecond }, nil)
	rounds := clients / together
	if testing.Short() {
		rounds = 2
	}
	addr := strings.TrimPrefix(s.url, "ws://")
	crash(t, s, addr, 10) // what is made once
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range rounds {
		crash(t, s, addr, together)
	}
	deadline := time.Now().Add(patience)
	for s.Stats().Sessions > 0 || runtime.NumGoroutine() > goroutines+2 || openFiles(t) > files+2 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, were %d; %d files, were %d; %+v", runtime.NumGoroutine(), goroutines, openFiles(t), files, s.Stats())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// crash connects many clients and has the system reset their connections.
func crash(t *testing.T, s *site, addr string, n int) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			conn, err := dialRaw(addr)
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		})
	}
	all.Wait()
	for s.Stats().Open > 0 {
		time.Sleep(time.Millisecond)
	}
	for len(s.tell) > 0 {
		<-s.tell
	}
	for len(s.last) > 0 {
		<-s.last
	}
}

// dialRaw connects, says hello and waits for the welcome, without gorilla.
func dialRaw(addr string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	hello := `{"type":"hello","protocol":1}`
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	r := bufio.NewReaderSize(conn, 1024)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	if _, err := conn.Write(append([]byte{0x81, 0x80 | byte(len(hello)), 0, 0, 0, 0}, hello...)); err != nil {
		return nil, err
	}
	head, err := r.Peek(4) // of the welcome, in the long form
	if err == nil {
		_, err = r.Discard(4 + int(head[2])<<8 + int(head[3]))
	}
	return conn, err
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}
