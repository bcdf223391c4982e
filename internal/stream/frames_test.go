package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
)

func TestEveryBadFrameIsAnswered(t *testing.T) {
	t.Parallel()
	s := open(t)
	spec := Spec()
	spec.Status = booking.StatusDraft
	draft := s.NewEvent(t, spec)
	other := World{Pool: s.Pool, Service: s.Service, Owner: booking.Caller{Kind: booking.Organizer, ID: s.Owner.ID, Organizer: Organizer(t, s.Pool)}}
	foreign := other.NewEvent(t, Spec())
	s.buyer("Buyer")
	n := s.node(nil)
	lena, buyer := n.tab("Lena", ""), n.tab("Buyer", "")
	lena.view()
	for _, c := range []struct {
		by         *tab
		frame, why string
	}{
		{lena, `"type":"nonsense"`, "unknown_type"},
		{lena, `"type":""`, "unknown_type"},
		{lena, `"type":"hello","protocol":1`, "unknown_type"},
		{lena, `"type":"view-resource"`, "invalid"},
		{lena, `"type":"view-resource","resource":"seats:1"`, "invalid"},
		{lena, `"type":"view-resource","resource":7`, "bad_frame"},
		{lena, `"type":"view-resource","resource":"event:1","seq":1e400`, "bad_frame"},
		{lena, `"type":"view-resource","resource":"event:1","seq":"1"`, "bad_frame"},
		{lena, `"type":"view-resource","resource":"event:1","seq":0.5`, "bad_frame"},
		{lena, `"type":"view-resource","resource":"event:"`, "not_found"},
		{lena, `"type":"view-resource","resource":"event:-1"`, "not_found"},
		{lena, `"type":"view-resource","resource":"event:99999999999999999999999"`, "not_found"},
		{lena, fmt.Sprintf(`"type":"view-resource","resource":"event:%s"`, seats.EventID(4711)), "not_found"},
		{lena, fmt.Sprintf(`"type":"view-resource","resource":"configurator:%s"`, seats.EventID(4711)), "not_found"},
		{lena, fmt.Sprintf(`"type":"view-resource","resource":"event:%s"`, draft), "not_found"}, // its map is for everybody
		{lena, fmt.Sprintf(`"type":"view-resource","resource":"configurator:%s"`, foreign), "not_found"},
		{buyer, fmt.Sprintf(`"type":"view-resource","resource":%q`, s.room()), "forbidden"},
		{buyer, fmt.Sprintf(`"type":"lock-configurator","configurator":%q`, s.Event), "invalid"},
		{lena, `"type":"leave-resource","resource":""`, "invalid"},
		{lena, `"type":"lock-configurator","configurator":"x"`, "not_found"},
		{lena, fmt.Sprintf(`"type":"lock-configurator","configurator":%q`, foreign), "invalid"},
		{lena, fmt.Sprintf(`"type":"lock-configurator","configurator":%q,"take_over":"yes"`, s.Event), "bad_frame"},
		{lena, lena.about("lock", "x/seats"), "invalid"},
		{lena, lena.about("lock", "0/seats"), "invalid"},
		{lena, lena.about("lock", "01/seats"), "invalid"},
		{lena, lena.about("lock", "99999999999/seats"), "invalid"},
		{lena, lena.about("lock", "1/"), "invalid"},
		{lena, lena.about("lock", "1/"+strings.Repeat("x", 200)), "invalid"},
		{lena, lena.about("lock", "1/a b"), "invalid"},
		{lena, lena.about("lock", "1/nothing"), "not_found"},
		{lena, lena.about("lock", "999/seats"), "not_found"},
		{lena, lena.about("unlock", "1/seats"), "not_held"},
		{lena, lena.about("unlock", ""), "not_held"},
		{lena, `"type":"show-hold"`, "not_found"},
		{lena, `"type":"show-hold","hold":"h_nothing"`, "not_found"},
		{buyer, `"type":"show-hold","hold":{}`, "bad_frame"},
		{lena, `"type":"activity"`, "not_found"},
	} {
		if f := c.by.ask("%s", c.frame); f.Type != "error" || f.Code != c.why {
			t.Errorf("%s: %v, want %s", c.frame, f, c.why)
		}
		time.Sleep(20 * time.Millisecond) // not too many at once
	}
	if v := lena.view(); len(v.Locks) > 0 {
		t.Errorf("locks that were refused are held: %v", v)
	}
	if f := buyer.ask(`"type":"leave-resource","resource":%q`, s.seats()); f.Type != "ok" {
		t.Errorf("who leaves what they do not look at is answered %v", f)
	}
}

func TestFramesThatCannotBeAnsweredEndTheConnection(t *testing.T) {
	t.Parallel()
	n := open(t).node(nil)
	for text, code := range map[string]int{
		"": 4400, "garbage": 4400, "[1]": 4400, `"type"`: 4400, "null": 4400, `{"type":7}`: 4400, `{"type":"view-resource"`: 4400,
		`{"type":"\xff"}` + "\xff": 4400, `{"type":"x","y":"` + strings.Repeat("a", 5000) + `"}`: 4413,
	} {
		c := n.tab("Lena", "")
		c.say("%s", text)
		if got := c.ended(); got != code {
			t.Errorf("%.40q: closed with %d, want %d", text, got, code)
		}
	}
	for _, first := range []string{`{"type":"view-resource","resource":"event:1"}`, `{"type":"hello"}`, `{"type":"hello","protocol":2}`, `{"type":"hello","protocol":1,"token":7}`} {
		c, err := n.dial("Lena", "")
		must(t, err)
		c.say("%s", first)
		if got := c.ended(); got != 4400 {
			t.Errorf("%s as the first frame: closed with %d", first, got)
		}
	}
	c := n.tab("Lena", "")
	for range 100 {
		c.say(`{"type":"nonsense"}`)
	}
	if got := c.ended(); got != 4429 {
		t.Errorf("a hundred frames at once: closed with %d", got)
	}
	forged := n.tab("Omar", n.tab("Lena", "").token)
	if forged.resumed {
		t.Error("the token of somebody else is believed")
	}
}

func TestWhoLooksAtTooMuchIsRefusedTheRest(t *testing.T) {
	t.Parallel()
	s := open(t)
	lena := s.node(nil).tab("Lena", "")
	const most = 8
	var last string
	for i := range most + 1 {
		last = s.NewEvent(t, s.spec()).String()
		for _, kind := range []string{"event", "configurator"} {
			f := lena.ask(`"type":"view-resource","resource":"%s:%s"`, kind, last)
			if refused := f.Code == "too_many"; refused != (i == most) || !refused && f.Type == "error" {
				t.Errorf("%s %d: %v", kind, i+1, f)
			}
		}
	}
	if f := lena.ask(`"type":"lock-configurator","configurator":%q`, last); f.Code != "invalid" {
		t.Errorf("a lock in what is not looked at: %v", f)
	}
	omar := s.node(nil).tab("Omar", "")
	v := omar.ask(`"type":"view-resource","resource":"configurator:%s"`, last)
	if len(v.Viewers) != 1 {
		t.Errorf("Lena is shown where she was refused: %v", v)
	}
}

func TestWhatThereIsNotLeavesNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	lena := s.node(nil).tab("Lena", "")
	for i := range 30 {
		if f := lena.ask(`"type":"view-resource","resource":"event:%s"`, seats.EventID(1_000_000+i)); f.Code != "not_found" {
			t.Fatal(f)
		}
	}
	channels := s.channels()
	until(t, patience, "no subscription is left", func() bool { return len(channels()) == 0 })
}
