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
	"github.com/redis/go-redis/v9"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/devstack"
	"seatfence/internal/stream"
	"seatfence/realtime"
	"seatfence/seats/plan"
)

const (
	own      = "https://seats.test"
	partner  = "https://shop.test"
	patience = 15 * time.Second
)

// site is an organizer's event, made of a plan, on several nodes with one database and one Redis.
type site struct {
	World
	t     *testing.T
	redis *devstack.Stack
	kept  time.Duration // these two as in Shorten
	idle  time.Duration

	mu     sync.Mutex
	people map[string]stream.Who
}

// open makes a site with a user Lena, a user Omar, both editors, and Ida, who may only look.
func open(t *testing.T) *site {
	t.Helper()
	s := &site{World: New(t, dbtest.Pool(t), booking.DefaultLimits), t: t, redis: dbtest.OwnRedis(t), kept: time.Minute, idle: time.Minute, people: map[string]stream.Who{}}
	s.Event = s.NewEvent(t, s.spec())
	for name, editor := range map[string]bool{"Lena": true, "Omar": true, "Ida": false} {
		id := uuid.New()
		s.set(name, stream.Who{
			Caller: booking.Caller{Kind: booking.Organizer, ID: id, Organizer: s.Owner.Organizer, Staff: true},
			Kind:   "user", ID: "u_" + id.String(), Name: name, Editor: editor,
		})
	}
	return s
}

// spec is an event that is made of a plan, so that it has a draft.
func (s *site) spec() booking.NewEvent {
	s.t.Helper()
	ref := s.published(Spec().House)
	spec := Spec()
	spec.House, spec.Plan = plan.House{}, &ref
	spec.Prices = []booking.Price{{Category: "Stalls", Amount: SeatPrice}, {Category: "Standing", Amount: FloorPrice}}
	return spec
}

// published makes a version of the site's plan.
func (s *site) published(house plan.House) booking.PlanRef {
	s.t.Helper()
	var document bytes.Buffer
	must(s.t, house.Plan().Export(&document))
	drawn, report, err := plan.Import(s.t.Context(), &document, plan.Options{})
	must(s.t, err)
	made, _, err := s.Service.ImportPlan(s.t.Context(), s.Owner, Key(), booking.PlanImport{Name: "Small", Document: drawn, Report: report})
	must(s.t, err)
	_, err = s.Service.PublishPlan(s.t.Context(), s.Owner, made.Plan, made.Number)
	must(s.t, err)
	return booking.PlanRef{Plan: made.Plan, Version: made.Number}
}

// set says who somebody is from now on. Who has no kind has to sign in again.
func (s *site) set(name string, who stream.Who) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who.Again = func(context.Context) (stream.Who, error) {
		again := s.who(name)
		if again.Kind == "" {
			return stream.Who{}, stream.ErrSignIn
		}
		return again, nil
	}
	s.people[name] = who
}

func (s *site) who(name string) stream.Who {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.people[name]
}

// buyer adds an anonymous buyer under a name.
func (s *site) buyer(name string) booking.Caller {
	caller := Buyer()
	s.set(name, stream.Who{Caller: caller, Buyer: caller, Kind: "buyer", ID: caller.ID.String()})
	return caller
}

// node is a server of a site.
type node struct {
	*stream.Server
	site *site
	url  string
}

// node starts another server; change may be nil.
func (s *site) node(change func(*stream.Deps)) *node {
	s.t.Helper()
	rdb, err := realtime.OpenRedis(s.redis.RedisURL)
	must(s.t, err)
	deps := stream.Deps{
		Booking: s.Service, Redis: rdb, Node: uuid.New(), Key: []byte("the key of all nodes of this test"), Origins: []string{own, partner},
		HoldGrace: time.Minute, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&deps)
	}
	srv, err := stream.New(deps)
	must(s.t, err)
	srv.Shorten(s.kept, s.idle)
	srv.Start()
	n := &node{Server: srv, site: s}
	server := httptest.NewServer(http.HandlerFunc(n.serve))
	n.url = "ws" + strings.TrimPrefix(server.URL, "http")
	s.t.Cleanup(func() {
		server.Close()
		n.stop()
		n.stop()
		_ = rdb.Close()
	})
	return n
}

func (n *node) stop() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.site.t.Context()), patience)
	defer cancel()
	n.Stop(ctx)
}

func (n *node) serve(w http.ResponseWriter, r *http.Request) {
	switch err := n.Connect(w, r, n.site.who(r.URL.Query().Get("as"))); {
	case errors.Is(err, realtime.ErrOrigin):
		http.Error(w, err.Error(), http.StatusForbidden)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (s *site) room() string  { return "configurator:" + s.Event.String() }
func (s *site) seats() string { return "event:" + s.Event.String() }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// channels returns what asks Redis for the channels that nodes listen to.
func (s *site) channels() func() []string {
	s.t.Helper()
	rdb := s.client()
	return func() []string { return rdb.PubSubShardChannels(s.t.Context(), "*").Val() }
}

func (s *site) client() redis.UniversalClient {
	s.t.Helper()
	rdb, err := realtime.OpenRedis(s.redis.RedisURL)
	must(s.t, err)
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
