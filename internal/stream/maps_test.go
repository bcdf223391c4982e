package stream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/stream"
	"seatfence/realtime"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// differs tells how a client's map is not what REST says; "" if it is.
func (c *tab) differs(want *booking.MapState) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen.epoch != want.Epoch {
		return fmt.Sprintf("epoch %q, not %q", c.seen.epoch, want.Epoch)
	}
	for i := range 4 * len(want.States) {
		id := want.First + seats.ID(i)
		state, known := c.seen.states[id]
		if !known {
			state = booking.FeedBlocked
		}
		if state != want.State(id) {
			return fmt.Sprintf("seat %d is %d, not %d", id, state, want.State(id))
		}
	}
	for _, a := range want.Areas {
		if c.seen.areas[a.Area] != a.Free {
			return fmt.Sprintf("area %d has %d free, not %d", a.Area, c.seen.areas[a.Area], a.Free)
		}
	}
	return ""
}

// converge waits until the maps of all are what REST says, after which nothing may happen.
func (s *site) converge(within time.Duration, tabs ...*tab) {
	s.t.Helper()
	why := ""
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		want, err := s.Service.MapState(s.t.Context(), booking.Caller{Kind: booking.Buyer}, s.Event)
		must(s.t, err)
		why = ""
		for _, c := range tabs {
			if d := c.differs(want); d != "" {
				why = fmt.Sprintf("%s on %s: %s", c.name, c.node.url, d)
			}
		}
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("not right within %v: %s", within, why)
		}
	}
}

// storm holds, extends, sells, releases and blocks at random until stop is closed, and waits for the end of that.
func (s *site) storm(workers int, stop <-chan struct{}) (done func()) {
	var all sync.WaitGroup
	ctx := context.WithoutCancel(s.t.Context())
	for i := range workers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			buyer := Buyer()
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rng.IntN(20)) * time.Millisecond):
				}
				s.something(ctx, rng, buyer)
			}
		})
	}
	return all.Wait
}

// something is one step of a storm. What is refused, because somebody was quicker, is not its affair.
func (s *site) something(ctx context.Context, rng *rand.Rand, buyer booking.Caller) {
	id := seats.ID(1 + rng.IntN(3*RowSeats))
	req := booking.HoldRequest{Event: s.Event, Seats: Wants(id)}
	switch rng.IntN(4) {
	case 0:
		if b, _, err := s.Service.Block(ctx, s.Owner, Key(), s.Event, []seats.ID{id}, "rain"); err == nil && rng.IntN(4) > 0 {
			_ = s.Service.Unblock(ctx, s.Owner, b.ID)
		}
		return
	case 1:
		req = booking.HoldRequest{Event: s.Event, Places: &booking.AreaPlaces{Area: Floor, Quantity: 1 + rng.IntN(2)}}
	}
	hold, _, err := s.Service.Hold(ctx, buyer, Key(), req)
	if err != nil {
		return
	}
	if rng.IntN(5) > 0 {
		_ = s.Service.Release(ctx, buyer, hold.ID)
		return
	}
	if made, err := s.Confirm(ctx, buyer, hold.ID); err == nil && rng.IntN(2) > 0 {
		_, _ = s.Service.Cancel(ctx, s.Owner, made.ID)
	}
}

// deaf is a node that no message of others ever reaches: its Redis is another one.
func (s *site) deaf() *node {
	return s.node(func(d *stream.Deps) {
		other, err := realtime.OpenRedis(dbtest.Redis(s.t))
		must(s.t, err)
		s.t.Cleanup(func() { _ = other.Close() })
		d.Redis = other
	})
}

func TestEveryMapIsWhatRESTSaysAfterAStorm(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b, deaf := s.node(nil), s.node(nil), s.deaf()
	stop := make(chan struct{})
	wait := s.storm(6, stop)
	_, _, channel, _ := realtime.TopicKeys(s.seats())
	rdb := s.client()
	var tabs []*tab
	for i := range 12 { // each comes into the middle of it, and some are cut off and come back
		name := fmt.Sprint("buyer-", i)
		s.buyer(name)
		c := []*node{a, b, deaf}[i%3].tab(name, "")
		c.watch()
		tabs = append(tabs, c)
		if i%4 == 3 {
			tabs[i-1].drop()
			tabs[i-1] = tabs[i-1].again([]*node{b, deaf, a}[i%3])
			tabs[i-1].watch()
		}
		// Messages that nobody sent, double, of the past and of the future.
		_, seq := tabs[0].position()
		for _, said := range []string{
			fmt.Sprintf(`{"e":%q,"s":%d,"d":{"from":%d,"cells":[]}}`, tabs[0].epochOfMap(), seq, seq-1),
			fmt.Sprintf(`{"e":%q,"s":%d,"d":{"from":%d,"cells":[]}}`, tabs[0].epochOfMap(), seq+1000, seq+999),
			`{"e":"old","s":1,"d":{"from":0,"cells":[]}}`, `{"e":1}`, "not a message",
		} {
			must(t, rdb.SPublish(t.Context(), channel, said).Err())
		}
	}
	time.Sleep(time.Second) // of storm
	close(stop)
	wait()
	s.converge(5*time.Second, tabs...)
	for i, c := range tabs {
		select {
		case <-c.done:
			t.Errorf("tab %d was closed with %d", i, c.ended())
		default:
		}
	}
	s.Verify(t)
}

func (c *tab) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = seatsSeen{}
}

func (c *tab) position() (epoch string, seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen.epoch, c.seen.seq
}

func (c *tab) epochOfMap() string {
	epoch, _ := c.position()
	return epoch
}

func TestWhoComesBackHearsOnlyWhatTheyMissed(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(nil), s.node(nil)
	s.buyer("Buyer")
	c, other := a.tab("Buyer", ""), b.tab("Lena", "")
	c.watch()
	other.watch()
	lena := Buyer()
	s.MustHold(t, lena, 1)
	s.converge(5*time.Second, c, other)
	for i, to := range []*node{a, b} {
		c.drop()
		hold := s.MustHold(t, lena, 2, 3)
		must(t, s.Service.Release(t.Context(), lena, hold.ID))
		s.MustHold(t, lena, seats.ID(10+i))
		s.converge(5*time.Second, other)
		c = c.again(to)
		c.watch()
		s.converge(5*time.Second, c)
		if c.seen.views != 0 {
			t.Error("a client that came back got the whole map")
		}
	}
	c.mu.Lock()
	views := c.seen.views
	c.mu.Unlock()
	if f := c.ask(`"type":"view-resource","resource":%q,"epoch":"of another time","seq":5`, s.seats()); f.Type != "ok" {
		t.Error(f)
	}
	until(t, patience, "the whole map", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.seen.views == views+1 })
}

func TestCommitBesideTheFirstLookIsInEveryMap(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(nil), s.node(nil)
	tabs := []*tab{a.tab("Lena", ""), b.tab("Omar", "")}
	for range 15 { // each time the maps of both nodes are loaded anew
		s.Event = s.NewEvent(t, Spec())
		var both sync.WaitGroup
		both.Go(func() {
			for id := range seats.ID(10) {
				if _, err := s.Hold(t.Context(), Buyer(), id+1); err != nil {
					t.Error(err)
				}
			}
		})
		for _, c := range tabs {
			c.forget()
			c.watch()
		}
		both.Wait()
		s.converge(5*time.Second, tabs...)
		for _, c := range tabs {
			if f := c.ask(`"type":"leave-resource","resource":%q`, s.seats()); f.Type != "ok" {
				t.Error(f)
			}
		}
	}
}

func TestAnotherPlanIsAnotherEpoch(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(nil), s.node(nil)
	tabs := []*tab{a.tab("Lena", ""), b.tab("Omar", "")}
	for _, c := range tabs {
		c.watch()
	}
	s.converge(5*time.Second, tabs...)
	epoch := tabs[0].epochOfMap()
	house := Spec().House
	house.Sections[0].Rows = append(house.Sections[0].Rows, plan.HouseRow{Label: "D", Category: "Stalls", Seats: RowSeats})
	ref := s.published(house)
	_, err := s.Service.ChangePlan(t.Context(), s.Owner, s.Event, booking.PlanChange{Plan: ref.Plan, Version: ref.Version})
	must(t, err)
	s.MustHold(t, Buyer(), 1)
	s.converge(5*time.Second, tabs...)
	if now := tabs[1].epochOfMap(); now == epoch {
		t.Errorf("the epoch is still %s", now)
	}
}

func TestMapThatNobodyLooksAtIsForgotten(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.kept = 2 * time.Second
	a := s.node(nil)
	c, omar := a.tab("Lena", ""), a.tab("Omar", "")
	c.watch()
	omar.watch()
	c.wait("viewers", func(f frame) bool { return f.Type == "viewers" && f.Count == 2 })
	channels := s.channels()
	until(t, patience, "the map's channel", func() bool { return len(channels()) == 1 })
	omar.drop()
	c.wait("viewers", func(f frame) bool { return f.Type == "viewers" && f.Count == 1 })
	if f := c.ask(`"type":"leave-resource","resource":%q`, s.seats()); f.Type != "ok" {
		t.Error(f)
	}
	s.MustHold(t, Buyer(), 1)
	until(t, patience, "no subscription is left", func() bool { return len(channels()) == 0 })
	c.watch()
	s.converge(5*time.Second, c)
}
