//go:build failpoint

package faulttest

import (
	"net/http"
	"strings"
	"testing"

	"seatfence/booking/bookingtest"
	"seatfence/internal/mailsink"
)

// A server is killed between its commit and its answer. Another server, asked with the same key, knows the booking; the mail leaves when
// the killed one's outbox is taken over.
func TestKilledBetweenCommitAndAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	killed := s.serve(t, "FAILPOINTS=after_commit=kill").url
	lena, key := s.buyer(t, "lena"), newKey()
	if r, err := lena.tryPost(killed, "/v1/bookings", key, s.sale(lena, bookingtest.Seat14C)); err == nil {
		t.Fatalf("a killed server answered %d %s", r.status, r.body)
	}
	b := s.node(t)
	again := lena.bookKey(t, b, key, bookingtest.Seat14C)
	again.want(t, http.StatusCreated, "")
	if again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the answer is not the first request's")
	}
	s.wantOwner(t, bookingtest.Seat14C, again.ID)
	if _, err := s.mails.Wait(t.Context(), func(m mailsink.Message) bool { return strings.Contains(m.MessageID, again.ID) }); err != nil {
		t.Fatal(err)
	}
	s.wantMails(t, again.ID)
}

// A server is killed between the write and the commit: Postgres rolls back at once, and the seat is free for the next buyer.
func TestKilledBeforeCommit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	killed := s.serve(t, "FAILPOINTS=before_commit=kill").url
	lena, omar := s.buyer(t, "lena"), s.buyer(t, "omar")
	key, pair := newKey(), s.sale(lena, bookingtest.Seat14C, bookingtest.Seat14C+1)
	if r, err := lena.tryPost(killed, "/v1/bookings", key, pair); err == nil {
		t.Fatalf("a killed server answered %d %s", r.status, r.body)
	}
	s.waitUnlocked(t, bookingtest.Seat14C)
	b := s.node(t)
	won := omar.bookWhenFree(t, b, bookingtest.Seat14C)
	lena.post(t, b, "/v1/bookings", key, pair).want(t, http.StatusConflict, "seat_taken")
	s.wantOwner(t, bookingtest.Seat14C, won.ID)
	s.wantMails(t, won.ID)
}
