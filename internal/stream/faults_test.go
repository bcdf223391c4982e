package stream_test

import (
	"bytes"
	"context"
	"errors"
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

// visitor is one open page.
type visitor struct {
	t     *testing.T
	conn  *websocket.Conn
	ids   int
	come  chan map[string]any // closed with the connection
	said  []map[string]any    // what was not asked for yet
	ended int                 // the code of the server's close, once come is closed
}

func (p *place) visit(t *testing.T, name string) *visitor {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(p.url+"?who="+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, conn: conn, come: make(chan map[string]any, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(v.come)
		for {
			var f map[string]any
			if err := conn.ReadJSON(&f); err != nil {
				if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
					v.ended = closed.Code
				}
				return
			}
			v.come <- f
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
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
	late := time.After(soon)
	for {
		select {
		case f, open := <-v.come:
			if !open {
				v.t.Fatalf("waiting for %s: closed with %d; heard %v", what, v.ended, v.said)
			}
			if is(f) {
				return f
			}
			v.said = append(v.said, f)
		case <-late:
			v.t.Fatalf("waiting for %s; heard %v", what, v.said)
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

// others makes events of the organizer beside the first.
func (p *place) others(t *testing.T, n int) (list []seats.EventID) {
	t.Helper()
	for range n {
		list = append(list, p.NewEvent(t, Spec()))
	}
	return list
}

func TestNinthConfiguratorIsRefusedAndSpoilsNobodysView(t *testing.T) {
	t.Parallel()
	p := newPlace(t, dbtest.Redis(t))
	greedy, other := p.visit(t, "greedy"), p.visit(t, "other")
	events := p.others(t, 8)
	for _, event := range events {
		if f := greedy.ask("view-resource", "resource", configurator(event)); f["type"] != "view" {
			t.Fatal(f)
		}
	}
	ninth := configurator(p.Event)
	for range 2 {
		if f := greedy.ask("view-resource", "resource", ninth); f["code"] != "too_many" {
			t.Fatal(f)
		}
	}
	if f := greedy.ask("lock-configurator", "configurator", p.Event.String()); f["code"] != "invalid" {
		t.Errorf("a lock without a view: %v", f)
	}
	if f := greedy.ask("lock-configurator", "configurator", events[0].String()); f["code"] != "invalid" {
		t.Errorf("a lock where there is no plan to edit: %v", f)
	}
	if f := greedy.ask("view-resource", "resource", configurator(events[0])); f["type"] != "view" {
		t.Errorf("one of the eight again: %v", f)
	}
	if f := other.ask("view-resource", "resource", ninth); len(f["viewers"].([]any)) != 1 {
		t.Errorf("who was refused is there: %v", f)
	}
	if err := p.rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	other.find("the view after all was lost", func(f map[string]any) bool { return f["type"] == "view" && f["resource"] == ninth })
	if f := greedy.ask("leave-resource", "resource", configurator(events[0])); f["type"] != "ok" {
		t.Fatal(f)
	}
	if f := greedy.ask("view-resource", "resource", ninth); f["type"] != "view" {
		t.Errorf("after one was left: %v", f)
	}
}
