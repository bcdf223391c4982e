package stream_test

import (
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/internal/stream"
)

const holdGrace = 3 * time.Second

func quick(d *stream.Deps) { d.HoldGrace = holdGrace }

func TestSeatsOfAPageThatIsClosedAreFreeOnEveryMap(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(quick), s.node(quick)
	lena, omar := s.buyer("lena"), s.buyer("omar")
	page, shown, other := a.tab("lena", ""), b.tab("lena", ""), b.tab("omar", "")
	for _, c := range []*tab{page, other} {
		c.watch()
	}
	hold := page.holds(lena, booking.HoldRequest{Seats: Wants(1)})
	other.turns(1, booking.FeedHeld)
	if f := other.ask(`"type":"show-hold","hold":%q`, hold.ID); f.Code != "not_found" {
		t.Errorf("somebody else's hold: %v", f)
	}
	if f := shown.ask(`"type":"show-hold","hold":%q`, hold.ID); f.Type != "ok" {
		t.Errorf("the hold in another tab: %v", f)
	}
	page.drop()
	kept := other.holds(omar, booking.HoldRequest{Seats: Wants(2)})
	time.Sleep(holdGrace + 2*time.Second) // nothing to wait for: nothing happens
	if status := s.status(lena, hold); status != booking.HoldOpen {
		t.Fatalf("a hold that another tab shows is %s", status)
	}
	shown.drop()
	gone := time.Now()
	other.turns(1, booking.FeedFree)
	if took := time.Since(gone); took < holdGrace || took > holdGrace+3*time.Second {
		t.Errorf("free after %v", took)
	}
	if f := other.ask(`"type":"show-hold","hold":%q`, hold.ID); f.Code != "not_found" {
		t.Errorf("a hold that was released: %v", f)
	}
	if status := s.status(omar, kept); status != booking.HoldOpen {
		t.Errorf("the hold of a page that is there is %s", status)
	}
	s.MustHold(t, omar, 1)
	s.Verify(t)
}

func TestPageThatIsBackInTimeKeepsItsHold(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(quick), s.node(quick)
	lena := s.buyer("lena")
	page := a.tab("lena", "")
	hold := page.holds(lena, booking.HoldRequest{Seats: Wants(1)})
	for _, to := range []*node{a, b, a} {
		page.drop()
		page = page.again(to)
	}
	a.stop() // its pages go on elsewhere
	page.ended()
	page = page.again(b)
	page.watch()
	time.Sleep(holdGrace + 2*time.Second) // nothing to wait for: nothing happens
	if status := s.status(lena, hold); status != booking.HoldOpen {
		t.Fatalf("the hold of a page that is back is %s", status)
	}
	page.say(`{"type":"bye"}`)
	page.ended()
	other := b.tab("Omar", "")
	other.watch()
	other.turns(1, booking.FeedFree)
	if status := s.status(lena, hold); status != booking.HoldReleased {
		t.Errorf("the hold of a page that has left is %s", status)
	}
	s.Verify(t)
}
