//go:build failpoint

package faulttest

import (
	"net/http"
	"testing"
	"time"

	"seatfence/booking/bookingtest"
	"seatfence/internal/failpoint"
)

// The story: Lena's request is stopped for longer than its lock lives, Omar buys the seat, Lena's request goes on.
func TestLateRequestIsRefusedByTheWrite(t *testing.T) {
	for name, wait := range map[string]func(*testing.T, *site){
		"stopped until its lock is gone": func(t *testing.T, s *site) { s.waitUnlocked(t, bookingtest.Seat14C) },
		"stopped after Redis said it is still its own": func(t *testing.T, s *site) {
			if !s.locked(t, bookingtest.Seat14C) {
				t.Fatal("Redis does not say that the lock is Lena's")
			}
			s.waitUnlocked(t, bookingtest.Seat14C)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			a, b := s.node(t), s.node(t)
			lena, omar := s.buyer(t, "lena"), s.buyer(t, "omar")
			reached, resume := a.points.Pause(failpoint.BeforeWrite)
			late := lena.startBook(t, a, bookingtest.Seat14C)
			<-reached
			wait(t, s)
			won := omar.book(t, b, bookingtest.Seat14C)
			won.want(t, http.StatusCreated, "")
			resume()
			lost := <-late
			lost.want(t, http.StatusConflict, "seat_taken")
			if len(lost.Seats) != 1 || lost.Seats[0].Label != "Stalls C14" || len(lost.Alternatives) == 0 {
				t.Errorf("the refusal names %+v and offers %+v", lost.Seats, lost.Alternatives)
			}
			s.wantOwner(t, bookingtest.Seat14C, won.ID)
			s.wantMails(t, won.ID)
		})
	}
}

// Stopped between the write and the commit for less than Postgres allows: the others are told that the seat is busy, and the first one
// gets it.
func TestShortStopBeforeCommitKeepsTheSeat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.node(t), s.node(t)
	lena, omar := s.buyer(t, "lena"), s.buyer(t, "omar")
	reached, resume := a.points.Pause(failpoint.BeforeCommit)
	first := lena.startBook(t, a, bookingtest.Seat14C, bookingtest.Seat14C+1)
	<-reached
	s.waitUnlocked(t, bookingtest.Seat14C)
	asked := time.Now()
	second := omar.book(t, b, bookingtest.Seat14C)
	second.want(t, http.StatusConflict, "seat_busy")
	if second.header.Get("Retry-After") == "" {
		t.Error("seat_busy came without Retry-After")
	}
	if took := time.Since(asked); took > 3*time.Second {
		t.Errorf("busy was answered after %s", took)
	}
	resume()
	won := <-first
	won.want(t, http.StatusCreated, "")
	s.wantOwner(t, bookingtest.Seat14C, won.ID)
	s.wantMails(t, won.ID)
}

// Stopped there for longer: Postgres ends the transaction, the next buyer gets the seat, and the first one is told.
func TestLongStopBeforeCommitLosesTheSeat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.node(t, idleInTransaction(700*time.Millisecond)), s.node(t)
	lena, omar := s.buyer(t, "lena"), s.buyer(t, "omar")
	reached, resume := a.points.Pause(failpoint.BeforeCommit)
	first := lena.startBook(t, a, bookingtest.Seat14C, bookingtest.Seat14C+1)
	<-reached
	s.waitUnlocked(t, bookingtest.Seat14C)
	won := omar.bookWhenFree(t, b, bookingtest.Seat14C)
	resume()
	lost := <-first
	lost.want(t, http.StatusConflict, "seat_taken")
	s.wantOwner(t, bookingtest.Seat14C, won.ID)
	s.wantFree(t, bookingtest.Seat14C+1)
	s.wantMails(t, won.ID)
}

// Stopped after the commit: the answer is lost, the same key brings the booking.
func TestLostAnswerIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.node(t), s.node(t)
	lena := s.buyer(t, "lena")
	reached, resume := a.points.Pause(failpoint.AfterCommit)
	defer resume()
	key := newKey()
	first := lena.startBookKey(t, a, key, bookingtest.Seat14C)
	<-reached
	again := lena.bookKey(t, b, key, bookingtest.Seat14C)
	again.want(t, http.StatusCreated, "")
	if again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the second answer does not say that it is a replay")
	}
	s.wantOwner(t, bookingtest.Seat14C, again.ID)
	resume()
	if late := <-first; string(late.body) != string(again.body) {
		t.Errorf("the late answer was %s, the replay %s", late.body, again.body)
	}
	s.wantMails(t, again.ID)
}

// 64 identical requests on two nodes: one effect, 63 replays, the same bytes.
func TestIdenticalRequestsHaveOneEffect(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"booking", "hold", "places"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			nodes := []*node{s.node(t), s.node(t)}
			lena, key := s.buyer(t, "lena"), newKey()
			path, body := "/v1/bookings", s.sale(lena, bookingtest.Seat14C)
			switch what {
			case "hold":
				path, body = "/v1/events/"+s.event+"/holds", `{"seats":[54]}`
			case "places":
				path, body = "/v1/events/"+s.event+"/holds", `{"ga":{"area":1,"quantity":2}}`
			}
			answers := make(chan reply, 64)
			for i := range 64 {
				go func() { answers <- lena.post(t, nodes[i%2], path, key, body) }()
			}
			fresh := 0
			var first reply
			for range 64 {
				r := <-answers
				r.want(t, http.StatusCreated, "")
				if r.header.Get("Idempotent-Replayed") == "" {
					fresh++
				}
				if first.body == nil {
					first = r
				}
				if string(r.body) != string(first.body) {
					t.Errorf("answers differ: %s and %s", r.body, first.body)
				}
			}
			if fresh != 1 {
				t.Errorf("%d effects", fresh)
			}
			lena.post(t, nodes[0], path, key, body[:len(body)-1]+` }`).want(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
		})
	}
}
