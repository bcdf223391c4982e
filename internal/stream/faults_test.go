package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/stream"
	"seatfence/realtime"
	"seatfence/seats"
)

const soon = 10 * time.Second

// place is one node on a database and a Redis of its own, and the people who may connect to it.
type place struct {
	World
	srv *stream.Server
	rdb redis.UniversalClient
	url string

	mu     sync.Mutex
	people map[string]stream.Who
	looks  int // how often somebody was looked at again
}

func newPlace(t *testing.T, url string) *place {
	t.Helper()
	pool := dbtest.Pool(t)
	p := &place{World: New(t, pool, booking.Limits{}), people: map[string]stream.Who{}}
	var err error
	if p.rdb, err = realtime.OpenRedis(url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.rdb.Close() })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.srv.Connect(w, r, p.who(r.URL.Query().Get("who"))); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	p.srv, err = stream.New(stream.Deps{
		Booking: p.Service, Redis: p.rdb, Node: uuid.New(), Key: bytes.Repeat([]byte{'k'}, 32), Origins: []string{web.URL},
		HoldGrace: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		p.srv.Stop(ctx)
		web.Close()
	})
	p.url = "ws" + strings.TrimPrefix(web.URL, "http")
	return p
}

// who is somebody as they are now: an editor of the organizer's, unless it was said otherwise.
func (p *place) who(name string) stream.Who {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, known := p.people[name]
	if !known {
		who = stream.Who{Caller: p.Owner, Buyer: Buyer(), Kind: "user", ID: "u_" + name, Name: name, Editor: true}
		who.Caller.ID = uuid.New()
		p.people[name] = who
	}
	who.Again = func(context.Context) (stream.Who, error) {
		again := p.who(name)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.looks++
		return again, nil
	}
	return who
}

func (p *place) change(name string, change func(*stream.Who)) {
	who := p.who(name)
	change(&who)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.people[name] = who
}

// visitor is one open page.
type visitor struct {
	t    *testing.T
	conn *websocket.Conn
	ids  int
	said []map[string]any // what was not asked for yet
}

func (p *place) visit(t *testing.T, name string) *visitor {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(p.url+"?who="+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	v := &visitor{t: t, conn: conn}
	v.say(map[string]any{"type": "hello", "protocol": 1})
	v.hear("welcome")
	return v
}

func (v *visitor) say(frame map[string]any) {
	v.t.Helper()
	if err := v.conn.WriteJSON(frame); err != nil {
		v.t.Fatal(err)
	}
}

// hear returns the next frame of a type; others are kept.
func (v *visitor) hear(kind string) map[string]any {
	v.t.Helper()
	return v.find(kind, func(f map[string]any) bool { return f["type"] == kind })
}

// ask returns the answer to a frame.
func (v *visitor) ask(kind string, members ...string) map[string]any {
	v.t.Helper()
	v.ids++
	frame := map[string]any{"type": kind, "id": v.ids}
	for i := 0; i < len(members); i += 2 {
		frame[members[i]] = members[i+1]
		if members[i+1] == "true" {
			frame[members[i]] = true
		}
	}
	v.say(frame)
	return v.find("answer to "+kind, func(f map[string]any) bool { return f["id"] == float64(v.ids) })
}

func (v *visitor) find(what string, is func(map[string]any) bool) map[string]any {
	v.t.Helper()
	for i, f := range v.said {
		if is(f) {
			v.said = append(v.said[:i], v.said[i+1:]...)
			return f
		}
	}
	_ = v.conn.SetReadDeadline(time.Now().Add(soon))
	for {
		_, text, err := v.conn.ReadMessage()
		if err != nil {
			v.t.Fatalf("waiting for %s: %v; heard %v", what, err, v.said)
		}
		var f map[string]any
		if err := json.Unmarshal(text, &f); err != nil {
			v.t.Fatal(err)
		}
		if is(f) {
			return f
		}
		v.said = append(v.said, f)
	}
}

// ended returns the code with which the server closes.
func (v *visitor) ended() int {
	v.t.Helper()
	_ = v.conn.SetReadDeadline(time.Now().Add(soon))
	for {
		if _, _, err := v.conn.ReadMessage(); err != nil {
			if closed, ok := err.(*websocket.CloseError); ok { //nolint:errorlint // gorilla returns it bare
				return closed.Code
			}
			v.t.Fatal(err)
		}
	}
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func configurator(event seats.EventID) string { return "configurator:" + event.String() }

// channels is how many topics somebody listens to.
func (p *place) channels(t *testing.T) int {
	t.Helper()
	list, err := p.rdb.PubSubShardChannels(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestEventsThatDoNotExistLeaveNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, dbtest.Redis(t))
	v := p.visit(t, "stranger")
	for i := range 30 {
		if f := v.ask("view-resource", "resource", "event:"+seats.EventID(1_000_000+i).String()); f["code"] != "not_found" {
			t.Fatal(f)
		}
	}
	if f := v.ask("view-resource", "resource", "event:"+p.Event.String()); f["type"] != "ok" {
		t.Fatal(f)
	}
	within(t, "the map is heard of", func() bool { return p.channels(t) > 0 })
	if n := p.channels(t); n != 1 {
		t.Errorf("%d topics are listened to for one event", n)
	}
}
