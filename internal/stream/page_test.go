package stream_test

import (
	"strings"
	"testing"

	"seatfence/booking"
	"seatfence/internal/stream"
)

// TestViewersOfAPageSeeSeatsAndNobody lets somebody watch on a partner's page while others hold and buy.
func TestViewersOfAPageSeeSeatsAndNobody(t *testing.T) {
	t.Parallel()
	s := open(t)
	n := s.node(nil)
	viewer := stream.Who{Caller: booking.Caller{Kind: booking.Buyer}, Kind: "page", ID: "k " + partner, Page: &stream.Page{Organizer: s.Owner.Organizer, Origin: partner}}
	s.set("viewer", viewer)
	viewer.Page = &stream.Page{Organizer: s.Owner.Organizer + 1, Origin: partner}
	s.set("stranger", viewer)
	for _, origin := range []string{"", own, "https://shop.test.evil.test", "null"} {
		if x, err := n.dial("viewer", origin); err == nil {
			x.drop()
			t.Errorf("a viewer connects from %q", origin)
		}
	}
	tabOf := func(name string) *tab {
		c, err := n.dial(name, partner)
		must(t, err)
		c.say(`{"type":"hello","protocol":1}`)
		c.wait("welcome", func(f frame) bool { return f.Type == "welcome" })
		return c
	}
	if f := tabOf("stranger").ask(`"type":"view-resource","resource":%q`, s.seats()); f.Code != "not_found" {
		t.Errorf("another organizer's key shows the map: %v", f)
	}
	c := tabOf("viewer")
	c.watch()
	if f := c.ask(`"type":"view-resource","resource":%q`, s.room()); f.Code != "forbidden" && f.Code != "not_found" {
		t.Errorf("a viewer looks at the configurator: %v", f)
	}
	if f := c.ask(`"type":"show-hold","hold":"hld_1"`); f.Code != "forbidden" {
		t.Errorf("a viewer shows a hold: %v", f)
	}
	lena := s.buyer("buyer")
	hold := s.MustHold(t, lena, 1)
	c.turns(1, booking.FeedHeld)
	made, err := s.Confirm(t.Context(), lena, hold.ID)
	must(t, err)
	c.turns(1, booking.FeedBooked)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		for _, secret := range []string{"Lena", "lena@example.com", lena.ID.String(), hold.ID.String(), hold.ID.Key.String(), made.ID.String(), made.ID.Key.String()} {
			if strings.Contains(f.raw, secret) {
				t.Errorf("a frame tells %s: %s", secret, f.raw)
			}
		}
	}
}
