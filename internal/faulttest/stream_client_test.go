package faulttest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatfence/seats"
)

// tab is a page that has the stream: who it belongs to, and what it was told.
type tab struct {
	*client

	mu      sync.Mutex
	conn    *websocket.Conn
	session string // names it to REST calls
	token   string // of its session; "" for none yet
	asked   int64
	answers map[int64]chan said
	rooms   map[string]*shown
	maps    map[string]*seatsShown
	news    []heard
	drained chan time.Duration // when the server asks it to go
	closed  chan struct{}
	ended   error           // why
	anew    map[string]bool // configurators that were shown again without being asked for
	fence   int64
}

// shown is a configurator as a tab knows it.
type shown struct {
	seq     int64
	viewers map[string]bool
	locks   map[string]string // item/page -> user
	canEdit bool
}

// seatsShown is a seat map as a tab knows it.
type seatsShown struct {
	epoch  string
	seq    int64
	states map[seats.ID]int
	count  int
}

// heard is an event of a configurator and when it came.
type heard struct {
	said
	at time.Time
}

// said is any frame of the server.
type said struct {
	Type, Resource, Item, Page, Why, Code, Detail, Epoch string

	ID      int64
	Seq     int64
	From    int64
	Fence   int64
	Count   int
	CanEdit bool
	Resumed bool
	Session string
	Token   string
	Retry   float64 `json:"retry_after"`
	By      struct{ User string }
	Viewer  struct{ User string }
	Viewers []struct{ User string }
	Locks   []struct {
		Item, Page string
		By         struct{ User string }
	}
	First  seats.ID
	States string
	Cells  [][]any
}

func (c *client) tab() *tab {
	return &tab{client: c, answers: map[int64]chan said{}, rooms: map[string]*shown{}, maps: map[string]*seatsShown{}, anew: map[string]bool{}}
}

// connect opens the stream of a server, with the session that the tab had before.
func (b *tab) connect(addr string) error {
	header := http.Header{"Authorization": {"Bearer " + b.client.token}}
	dialer := websocket.Dialer{HandshakeTimeout: patience, ReadBufferSize: 1024, WriteBufferSize: 1024}
	var conn *websocket.Conn
	var err error
	for deadline := time.Now().Add(patience); ; { // a crowd may be asked to come again
		var res *http.Response
		conn, res, err = dialer.Dial("ws://"+addr+"/v1/stream", header)
		if err == nil {
			break
		}
		if res == nil || res.StatusCode < 429 || time.Now().After(deadline) {
			return fmt.Errorf("connect to %s: %w", addr, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.mu.Lock()
	token := b.token
	b.mu.Unlock()
	var welcome said
	if err := errors.Join(conn.WriteJSON(map[string]any{"type": "hello", "protocol": 1, "token": token}), conn.SetReadDeadline(time.Now().Add(patience))); err != nil {
		return err
	}
	if err := conn.ReadJSON(&welcome); err != nil || welcome.Type != "welcome" {
		return fmt.Errorf("welcome of %s: %v %w", addr, welcome, err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if token != "" && !welcome.Resumed {
		return fmt.Errorf("%s: the session does not go on", addr)
	}
	b.conn, b.session, b.token = conn, welcome.Session, welcome.Token
	b.drained, b.closed = make(chan time.Duration, 1), make(chan struct{})
	go b.read(conn, b.closed)
	return nil
}

func (b *tab) read(conn *websocket.Conn, closed chan struct{}) {
	defer close(closed)
	for {
		var s said
		if err := conn.ReadJSON(&s); err != nil {
			_ = conn.Close()
			b.mu.Lock()
			b.ended = err
			b.mu.Unlock()
			return
		}
		b.hear(s)
	}
}

func (b *tab) hear(s said) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answer := b.answers[s.ID]; answer != nil {
		answer <- s
		delete(b.answers, s.ID)
	}
	switch s.Type {
	case "drain":
		b.drained <- time.Duration(s.Retry * float64(time.Second))
	case "seats", "viewers":
		b.seats(s)
	case "view":
		if s.States != "" {
			b.seats(s)
			return
		}
		r := &shown{s.Seq, map[string]bool{}, map[string]string{}, s.CanEdit}
		for _, v := range s.Viewers {
			r.viewers[v.User] = true
		}
		for _, l := range s.Locks {
			r.locks[l.Item+"/"+l.Page] = l.By.User
		}
		b.rooms[s.Resource], b.anew[s.Resource] = r, b.anew[s.Resource] || s.ID == 0
	case "viewer-joined", "viewer-left", "lock-acquired", "lock-released", "lock-detached", "lock-attached", "lock-lost", "saved":
		b.news = append(b.news, heard{s, time.Now()})
		if r := b.rooms[s.Resource]; r != nil && s.Seq > r.seq {
			r.change(s)
		}
	}
}

func (r *shown) change(s said) {
	r.seq = s.Seq
	switch s.Type {
	case "viewer-joined":
		r.viewers[s.Viewer.User] = true
	case "viewer-left":
		delete(r.viewers, s.Viewer.User)
	case "lock-acquired":
		r.locks[s.Item+"/"+s.Page] = s.By.User
	case "lock-released":
		delete(r.locks, s.Item+"/"+s.Page)
	}
}

// seats takes over what a frame says of a seat map.
func (b *tab) seats(s said) {
	m := b.maps[s.Resource]
	if m == nil {
		m = &seatsShown{states: map[seats.ID]int{}}
		b.maps[s.Resource] = m
	}
	switch {
	case s.Type == "viewers":
		m.count = s.Count
	case s.Type == "view":
		packed, _ := base64.StdEncoding.DecodeString(s.States)
		m.epoch, m.seq, m.states = s.Epoch, s.Seq, make(map[seats.ID]int, 4*len(packed))
		for i := range 4 * len(packed) {
			m.states[s.First+seats.ID(i)] = int(packed[i/4]>>(2*(i%4))) & 3
		}
	case s.Epoch == m.epoch && s.Seq > m.seq && s.From <= m.seq:
		m.seq = s.Seq
		for _, cell := range s.Cells {
			if id, ok := cell[0].(float64); ok {
				m.states[seats.ID(id)] = int(cell[1].(float64))
			}
		}
	}
}

// ask sends a frame and waits for its answer. An error frame is an error.
func (b *tab) ask(frame map[string]any) (said, error) {
	answer := make(chan said, 1)
	b.mu.Lock()
	b.asked++
	b.answers[b.asked] = answer
	frame["id"] = b.asked
	err := b.conn.WriteJSON(frame)
	closed := b.closed
	b.mu.Unlock()
	if err != nil {
		return said{}, err
	}
	select {
	case s := <-answer:
		if s.Type == "error" {
			return s, fmt.Errorf("%v is answered %s: %s", frame["type"], s.Code, s.Detail)
		}
		return s, nil
	case <-closed:
		return said{}, fmt.Errorf("%v: the connection ended", frame["type"])
	case <-time.After(patience):
		return said{}, fmt.Errorf("%v is not answered", frame["type"])
	}
}

func (b *tab) view(resources ...string) error {
	for _, r := range resources {
		if _, err := b.ask(map[string]any{"type": "view-resource", "resource": r}); err != nil {
			return err
		}
	}
	return nil
}

// lock takes the lock of a page in a configurator.
func (b *tab) lock(p page) error {
	s, err := b.ask(map[string]any{"type": "lock-item-subresource", "configurator": p.event, "item": p.item, "page": p.name})
	b.mu.Lock()
	b.fence = s.Fence
	b.mu.Unlock()
	return err
}

// save saves a page with the fence that the tab has, and returns how the server answers.
func (b *tab) save(t testing.TB, v *server, p page) int {
	t.Helper()
	b.mu.Lock()
	fence := b.fence
	b.mu.Unlock()
	get, err := http.NewRequest(http.MethodGet, v.url+p.path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var kept struct{ Body json.RawMessage }
	b.do(t, get, &kept)
	put, err := http.NewRequest(http.MethodPut, v.url+p.path(), bytes.NewReader(kept.Body))
	if err != nil {
		t.Fatal(err)
	}
	put.Header.Set("Edit-Fence", fmt.Sprint(fence))
	put.Header.Set("Content-Type", "application/json")
	return b.do(t, put, nil)
}

func (b *tab) do(t testing.TB, req *http.Request, into any) int {
	t.Helper()
	req.Header.Set("Authorization", "Bearer "+b.client.token)
	res, err := web.Do(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer res.Body.Close()
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Error(err)
		}
	}
	return res.StatusCode
}

// away ends the connection as the end of a process does: without a word.
func (b *tab) away() {
	b.mu.Lock()
	conn, closed := b.conn, b.closed
	b.mu.Unlock()
	if conn == nil {
		return
	}
	if tcp, ok := conn.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
	<-closed
}

// sees reports whether the tab is shown exactly these people and locks.
func (b *tab) sees(resource string, viewers []string, locks map[string]string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rooms[resource]
	return r != nil && slices.Equal(slices.Sorted(maps.Keys(r.viewers)), slices.Sorted(slices.Values(viewers))) && maps.Equal(r.locks, locks)
}

// room describes what the tab is shown, for the log of a test that fails.
func (b *tab) room(resource string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rooms[resource]
	if r == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d people and %d locks at %d, anew %v, connection %v", len(r.viewers), len(r.locks), r.seq, b.anew[resource], b.ended)
}

func (b *tab) seat(resource string, id seats.ID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.maps[resource]; m != nil {
		return m.states[id]
	}
	return -1
}

func (b *tab) count(resource string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.maps[resource]; m != nil {
		return m.count
	}
	return -1
}

// heard returns the events of a type and a reason that the tab has heard, by what they are about.
func (b *tab) heard(kind, why string) map[string]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string]time.Time{}
	for _, n := range b.news {
		switch {
		case n.Type != kind || n.Why != why:
		case n.Viewer.User != "":
			found[n.Resource+" "+n.Viewer.User] = n.at
		default:
			found[n.Resource+" "+n.Item+"/"+n.Page] = n.at
		}
	}
	return found
}

// again returns the configurators that the tab was shown without asking.
func (b *tab) again() (rooms []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for room, anew := range b.anew {
		if anew {
			rooms = append(rooms, room)
		}
	}
	return rooms
}
