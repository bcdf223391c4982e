package stream_test

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/internal/stream"
)

// holds has a page hold seats, as the REST call of a page does.
func (c *tab) holds(caller booking.Caller, req booking.HoldRequest) booking.Hold {
	c.t.Helper()
	page, err := booking.ParsePage(c.session)
	must(c.t, err)
	req.Event, req.Page = c.node.site.Event, &page
	hold, _, err := c.node.site.Service.Hold(c.t.Context(), caller, Key(), req)
	must(c.t, err)
	return hold
}

func (s *site) status(caller booking.Caller, hold booking.Hold) string {
	s.t.Helper()
	now, err := s.Service.GetHold(s.t.Context(), caller, hold.ID)
	must(s.t, err)
	return now.Status
}

// ever reports whether a client has heard of something at any time.
func (c *tab) ever(kind, page string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.frames, func(f frame) bool { return f.Type == kind && f.where() == page })
}

// awayFor is longer than the bus waits for a sign of life, and than two renewals; 20 s is longer than a lease.
var awayFor = flag.Duration("away", 6*time.Second, "for how long Redis is a black hole")

func TestAllIsRightFiveSecondsAfterRedisIsBack(t *testing.T) {
	t.Parallel()
	for what, away := range map[string]func(*site) error{
		"black hole": func(s *site) error {
			if err := s.redis.Redis.Pause(); err != nil {
				return err
			}
			s.selling(*awayFor)
			return s.redis.Redis.Resume()
		},
		"restarted": func(s *site) error {
			if err := s.redis.Redis.Kill(); err != nil {
				return err
			}
			s.selling(3 * time.Second)
			return s.redis.Redis.Restart(context.WithoutCancel(s.t.Context()))
		},
		"flushed": func(s *site) error { return s.client().FlushAll(s.t.Context()).Err() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			patient := func(d *stream.Deps) { d.HoldGrace = 2 * time.Second }
			a, b := s.node(patient), s.node(patient)
			lena, omar, ida := a.tab("Lena", ""), b.tab("Omar", ""), b.tab("Ida", "")
			caller := s.buyer("Buyer")
			buyer := a.tab("Buyer", "")
			for _, c := range []*tab{lena, omar, ida, buyer} {
				c.watch()
			}
			for _, c := range []*tab{lena, omar, ida} {
				c.view()
			}
			lena.mustLock("1/seats", false)
			lena.mustLock("1/prices", false)
			omar.hears("lock-acquired", "1/prices")
			hold := buyer.holds(caller, booking.HoldRequest{Seats: Wants(60)})
			s.converge(5*time.Second, lena, omar, ida, buyer)
			must(t, away(s))
			back := time.Now()
			s.selling(time.Second)
			s.converge(time.Until(back.Add(5*time.Second)), lena, omar, ida, buyer)

			// Who edits still has both locks or is told; then whoever comes first gets them. Everybody hears of it.
			answered := func(page string) (f frame) {
				until(t, time.Until(back.Add(5*time.Second)), "locks are given again", func() bool {
					f = omar.lock(page, false)
					return f.Code != "unavailable"
				})
				return f
			}
			for _, page := range []string{"1/seats", "1/prices"} {
				switch f := answered(page); {
				case f.Code == "locked" && f.By.Name == "Lena":
					t.Logf("%v after: Lena has kept %s", time.Since(back), page)
				case f.Type == "locked":
					until(t, time.Until(back.Add(5*time.Second)), "Lena is told that she lost "+page, func() bool { return lena.ever("lock-lost", page) })
				default:
					t.Errorf("Omar is answered %v", f)
				}
			}
			if f := answered("1/details"); f.Type != "locked" {
				t.Errorf("Omar is answered %v", f)
			}
			ida.hears("lock-acquired", "1/details")
			if took := time.Since(back); took > 5*time.Second {
				t.Errorf("the room works %v after", took)
			}
			if v := ida.view(); len(v.Viewers) != 3 || len(v.Locks) != 3 {
				t.Errorf("the room is %v", v)
			}
			if status := s.status(caller, hold); status != booking.HoldOpen {
				t.Errorf("the hold of a page that was there all the time is %s", status)
			}
			for _, c := range []*tab{lena, omar, ida, buyer} {
				select {
				case <-c.done:
					t.Errorf("%s was closed with %d", c.name, c.ended())
				default:
				}
			}
		})
	}
}

// selling sells for so long.
func (s *site) selling(long time.Duration) {
	stop := make(chan struct{})
	wait := s.storm(2, stop)
	time.Sleep(long)
	close(stop)
	wait()
}
