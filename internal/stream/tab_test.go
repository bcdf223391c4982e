package stream_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatfence/booking"
	"seatfence/seats"
)

type someone struct {
	User, Name string
	Own        bool `json:"own_other_tab"`
	Editing    bool `json:"isEditing"`
}

// frame is one of the server's, of any type.
type frame struct {
	Type, Resource, Epoch, Code, Why, Item, Page, Session, Token string
	ID, Seq, From, Fence, Revision                               int64
	Resumed, CanEdit                                             bool
	By, LockedBy, Viewer                                         *someone
	Viewers                                                      []someone
	Locks                                                        []struct {
		Item, Page, State string
		By                someone
	}
	Cells   []booking.Cell
	First   seats.ID
	States  []byte
	Areas   [][2]int64
	Count   int
	Retry   float64 `json:"retry_after"`
	Seconds float64

	raw string
}

func (f frame) String() string { return f.raw }

// tab is a client that keeps the rules of the protocol: it knows the seat map and the last number of the configurator, and asks again if one
// is missing.
type tab struct {
	t    *testing.T
	conn *websocket.Conn
	node *node
	name string

	session, token string
	resumed        bool
	done           chan struct{} // the connection is over

	mu     sync.Mutex
	last   int64 // id of a request
	code   int   // of the close, once done
	frames []frame
	next   int // the first frame that wait has not seen
	seen   seatsSeen
	epoch  string // of the configurator
	seq    int64
	gaps   int
}

// seatsSeen is a seat map as a client knows it.
type seatsSeen struct {
	epoch        string
	seq          int64
	states       map[seats.ID]booking.FeedState
	areas        map[int32]int64
	views, asked int
}

// dial opens a socket and says nothing.
func (n *node) dial(name, origin string) (*tab, error) {
	n.site.t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(n.site.t.Context(), n.url+"?as="+name, header)
	if err != nil {
		if resp != nil {
			err = fmt.Errorf("%d: %w", resp.StatusCode, err)
		}
		return nil, err
	}
	c := &tab{t: n.site.t, conn: conn, node: n, name: name, done: make(chan struct{})}
	go c.read()
	c.t.Cleanup(c.drop)
	return c, nil
}

// tab opens a socket and says hello, with the token of an earlier one or "".
func (n *node) tab(name, token string) *tab {
	n.site.t.Helper()
	c, err := n.dial(name, "")
	must(n.site.t, err)
	c.say(`{"type":"hello","protocol":1,"token":%q}`, token)
	w := c.wait("welcome", func(f frame) bool { return f.Type == "welcome" })
	c.session, c.token, c.resumed = w.Session, w.Token, w.Resumed
	return c
}

// again is the same tab with a new socket, on any node.
func (c *tab) again(n *node) *tab {
	c.t.Helper()
	x := n.tab(c.name, c.token)
	if !x.resumed {
		c.t.Error("the session was not resumed")
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	x.seen = c.seen
	x.seen.states, x.seen.areas, x.seen.views = maps.Clone(c.seen.states), maps.Clone(c.seen.areas), 0
	return x
}

func (c *tab) read() {
	defer close(c.done)
	for {
		_, text, err := c.conn.ReadMessage()
		c.mu.Lock()
		if err != nil {
			c.code = websocket.CloseAbnormalClosure
			if closed, ok := err.(*websocket.CloseError); ok {
				c.code = closed.Code
			}
			c.mu.Unlock()
			return
		}
		f := frame{raw: string(text)}
		if err := json.Unmarshal(text, &f); err != nil {
			c.t.Errorf("%v: %s", err, text)
		}
		c.frames = append(c.frames, f)
		c.apply(f)
		c.mu.Unlock()
	}
}

// apply keeps what the client knows. mu is held.
func (c *tab) apply(f frame) {
	if strings.HasPrefix(f.Resource, "configurator:") {
		switch {
		case f.Type == "view":
			c.epoch, c.seq = f.Epoch, f.Seq
		case f.Seq == 0 || f.Type == "view":
		case f.Epoch == c.epoch && f.Seq == c.seq+1:
			c.seq = f.Seq
		default:
			c.gaps++
		}
		return
	}
	s := &c.seen
	switch {
	case f.Type == "view":
		s.epoch, s.seq, s.states, s.areas = f.Epoch, f.Seq, map[seats.ID]booking.FeedState{}, map[int32]int64{}
		s.views++
		m := booking.MapState{First: f.First, States: f.States}
		for i := range 4 * len(f.States) {
			s.states[f.First+seats.ID(i)] = m.State(f.First + seats.ID(i))
		}
		for _, a := range f.Areas {
			s.areas[int32(a[0])] = a[1]
		}
	case f.Type != "seats" || f.Epoch == s.epoch && f.Seq <= s.seq:
	case f.Epoch != s.epoch || f.From > s.seq:
		s.asked++
		go c.say(`{"type":"view-resource","resource":%q,"epoch":%q,"seq":%d}`, f.Resource, s.epoch, s.seq)
	default:
		s.seq = f.Seq
		for _, cell := range f.Cells {
			if cell.Area != 0 {
				s.areas[cell.Area] = cell.Free
			} else {
				s.states[cell.Seat] = cell.State
			}
		}
	}
}

// say sends a frame. That a connection is over is seen by whoever waits.
func (c *tab) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...))
}

// ask sends a request, {"type":…,"id":%d,…} without the braces and the id, and returns its answer.
func (c *tab) ask(format string, args ...any) frame {
	c.t.Helper()
	c.mu.Lock()
	c.last++
	id := c.last
	c.mu.Unlock()
	c.say(`{"id":%d,%s}`, id, fmt.Sprintf(format, args...))
	return c.wait("answer to "+fmt.Sprintf(format, args...), func(f frame) bool { return f.ID == id })
}

// wait returns the next frame that is meant, and passes over others.
func (c *tab) wait(what string, meant func(frame) bool) (found frame) {
	c.t.Helper()
	if !c.within(patience, meant, &found) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.t.Fatalf("%s never got its %s; code %d, after\n%v", c.name, what, c.code, c.frames[max(0, len(c.frames)-20):])
	}
	return found
}

func (c *tab) within(long time.Duration, meant func(frame) bool, found *frame) bool {
	for deadline := time.Now().Add(long); ; time.Sleep(2 * time.Millisecond) {
		over := false
		select {
		case <-c.done:
			over = true
		default:
		}
		c.mu.Lock()
		for c.next < len(c.frames) {
			c.next++
			if meant(c.frames[c.next-1]) {
				*found = c.frames[c.next-1]
				c.mu.Unlock()
				return true
			}
		}
		c.mu.Unlock()
		if over || time.Now().After(deadline) {
			return false
		}
	}
}

// hears waits for a frame of a type about a page, "3/seats" or "".
func (c *tab) hears(kind, page string) frame {
	c.t.Helper()
	return c.wait(kind+" of "+page, func(f frame) bool { return f.Type == kind && f.where() == page })
}

// where is what of a configurator a frame is about.
func (f frame) where() string {
	if f.Page == "" {
		return ""
	}
	return f.Item + "/" + f.Page
}

// view looks at the site's configurator.
func (c *tab) view() frame {
	c.t.Helper()
	f := c.ask(`"type":"view-resource","resource":%q`, c.node.site.room())
	if f.Type != "view" {
		c.t.Fatalf("%s may not view: %v", c.name, f)
	}
	return f
}

// watch looks at the site's seat map.
func (c *tab) watch() {
	c.t.Helper()
	c.mu.Lock()
	epoch, seq := c.seen.epoch, c.seen.seq
	c.mu.Unlock()
	if f := c.ask(`"type":"view-resource","resource":%q,"epoch":%q,"seq":%d`, c.node.site.seats(), epoch, seq); f.Type != "ok" {
		c.t.Fatalf("%s may not watch: %v", c.name, f)
	}
}

// lock asks for a lock of "item/page" or "".
func (c *tab) lock(page string, takeOver bool) frame {
	c.t.Helper()
	return c.ask(`"take_over":%v,%s`, takeOver, c.about("lock", page))
}

func (c *tab) unlock(page string) frame {
	c.t.Helper()
	return c.ask("%s", c.about("unlock", page))
}

func (c *tab) about(what, page string) string {
	item, name, ok := strings.Cut(page, "/")
	if !ok {
		return fmt.Sprintf(`"type":"%s-configurator","configurator":%q`, what, c.node.site.Event)
	}
	return fmt.Sprintf(`"type":"%s-item-subresource","configurator":%q,"item":%q,"page":%q`, what, c.node.site.Event, item, name)
}

// mustLock is lock where a refusal is a fault. It returns the fence.
func (c *tab) mustLock(page string, takeOver bool) int64 {
	c.t.Helper()
	f := c.lock(page, takeOver)
	if f.Type != "locked" || f.Fence < 1 || f.where() != page {
		c.t.Fatalf("%s does not get %q: %v", c.name, page, f)
	}
	return f.Fence
}

// drop ends the connection as a lost one does, without a word.
func (c *tab) drop() {
	_ = c.conn.NetConn().Close()
	<-c.done
}

// ended waits for the close and returns its code.
func (c *tab) ended() int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatalf("the connection of %s never ended", c.name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code
}

// turns waits until the client sees a seat in a state.
func (c *tab) turns(id seats.ID, state booking.FeedState) {
	c.t.Helper()
	until(c.t, patience, fmt.Sprintf("seat %d is %d", id, state), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		now, known := c.seen.states[id]
		return known && now == state
	})
}
