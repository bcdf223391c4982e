package faulttest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatfence/seats"
)

// 1,000 seats, 64 buyers for each at once on two nodes: exactly one gets it, nobody gets a 5xx, whatever Redis is doing.
func TestOneWinnerForEachSeat(t *testing.T) {
	const crowd = 64
	for _, condition := range []struct {
		name  string
		races int
		redis func(ctx context.Context, s *site)
	}{
		{"Redis up", 334, nil},
		{"Redis down", 333, func(_ context.Context, s *site) { s.redis.Redis.Kill() }},
		{"Redis flushed", 333, func(ctx context.Context, s *site) {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				s.rdb.FlushAll(ctx)
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		}},
	} {
		t.Run(condition.name, func(t *testing.T) {
			s := newSite(t)
			s.event = s.bigHouse(t, condition.races)
			nodes := []*node{s.node(t), s.node(t)}
			buyers := make([]*client, crowd)
			for i := range buyers {
				buyers[i] = s.buyer(t, fmt.Sprintf("buyer%d", i))
			}
			ctx, cancel := context.WithCancel(t.Context())
			var trouble sync.WaitGroup
			if condition.redis != nil {
				trouble.Go(func() { condition.redis(ctx, s) })
			}
			for race := range condition.races {
				var won atomic.Int64
				var racers sync.WaitGroup
				for i, buyer := range buyers {
					racers.Go(func() {
						switch r := buyer.book(t, nodes[i%2], seats.ID(race+1)); {
						case r.status == http.StatusCreated:
							won.Add(1)
						case r.status != http.StatusConflict || r.Code != "seat_taken" && r.Code != "seat_busy":
							t.Errorf("race %d: status %d %s", race, r.status, r.body)
						}
					})
				}
				racers.Wait()
				if won.Load() != 1 {
					t.Fatalf("race %d has %d winners", race, won.Load())
				}
			}
			cancel()
			trouble.Wait()
			if n := s.deadlocks(t); n > 0 {
				t.Errorf("%d deadlocks", n)
			}
			s.world.Verify(t)
		})
	}
}

// A Redis that is paused in the middle of a sale costs the requests in flight their time limit and the rest nothing; it is used again
// when it is well.
func TestStalledRedisCostsLittle(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	n := s.node(t)
	lena := s.buyer(t, "lena")
	lena.book(t, n, 1).want(t, http.StatusCreated, "")
	s.redis.Redis.Pause()
	for i := range 23 {
		lena.book(t, n, seats.ID(2+i)).want(t, http.StatusCreated, "")
	}
	// The first few find out, and then one each second asks again; lockmgr's own tests hold the time that each of them may take.
	if asked, skipped := n.lockOutcome(t, "failed"), n.lockOutcome(t, "skipped"); asked == 0 || skipped < 10 {
		t.Errorf("%d requests asked a stalled Redis, %d did not", asked, skipped)
	}
	s.redis.Redis.Resume()
	deadline := time.Now().Add(10 * time.Second)
	for i := 0; ; i++ {
		held := s.buyer(t, "omar").post(t, n, "/v1/events/"+s.event+"/holds", newKey(), fmt.Sprintf(`{"seats":[%d]}`, 31+i%20))
		if held.status != http.StatusCreated && held.status != http.StatusConflict {
			t.Fatalf("hold: status %d %s", held.status, held.body)
		}
		if n.lockOutcome(t, "acquired") > 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("Redis is not used again")
		}
	}
}

// A server is told to stop while Postgres stands still and requests wait for it: the stop ends with its time.
func TestStopEndsThoughPostgresStandsStill(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownPostgres)
	n := s.node(t)
	s.postgres.Postgres.Pause()
	defer s.postgres.Postgres.Resume()
	var waiting sync.WaitGroup
	lena := s.buyer(t, "lena")
	for i := range 3 {
		waiting.Go(func() { _, _ = lena.tryPost(n.url, "/v1/bookings", newKey(), s.sale(lena, seats.ID(i+1))) })
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	err := n.app.Stop(ctx)
	if took := time.Since(start); took > 5*time.Second || err == nil {
		t.Errorf("stopped after %s with %v", took, err)
	}
	waiting.Wait()
}
