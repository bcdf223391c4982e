package webui_test

import (
	"net/url"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/seats"
)

// withRules is a site whose event has two ticket types, a tier to come, and the orphan rule.
func withRules(t *testing.T) site {
	t.Helper()
	w := New(t, dbtest.Pool(t), booking.DefaultLimits)
	later := time.Now().Add(48 * time.Hour)
	spec := Spec()
	spec.OrphanRule, spec.Types = true, []string{"adult", "child"}
	spec.Prices = []booking.Price{{Category: "Stalls", Type: "child", Amount: 2000}, {Category: "Stalls", From: &later, Amount: 5000}}
	w.Event = w.NewEvent(t, spec)
	if _, err := w.Pool.Exec(t.Context(), "UPDATE spots SET attributes = $2 WHERE event_id = $1 AND seat_id = 20", int64(w.Event), seats.Accessible|seats.RestrictedView); err != nil {
		t.Fatal(err)
	}
	return serve(t, w, nil)
}

func TestASeatThatWouldBeLeftAloneIsNamedWithABetterChoice(t *testing.T) {
	t.Parallel()
	s := withRules(t)
	section := s.visitor(t).get(s.stalls())
	refused := section.send("Hold the ticked seats", url.Values{"seat": {"42", "43"}, "type": {"child"}})
	refused.says(409, "C1 would be left alone.", "same price, are free")
	refused.send("Take these seats", nil).says(200, "are yours until", "Total 40.00 EUR")
}

func TestTheBestSeatsAreFoundAndHeld(t *testing.T) {
	t.Parallel()
	s := withRules(t)
	event := s.visitor(t).get(s.eventPath())
	event.says(200, "child 20.00 EUR", "adult 50.00 EUR from", "The best seats for you")
	event.send("Find and hold them", url.Values{"quantity": {"2", "1"}}).says(200, "A9, A10 and A11 are yours until", "adult", "child", "Total 110.00 EUR")
	event.send("Find and hold them", url.Values{"quantity": {"0", "0"}}).says(422, "How many do you want?")
	event.send("Find and hold them", url.Values{"quantity": {"x", "0"}}).says(422, "How many places do you want?")
	event.send("Find and hold them", url.Values{"quantity": {"20", "0"}, "category": {"Standing"}}).says(409, "There are no such seats left")
	var last page
	for range 3 {
		last = s.visitor(t).get(s.eventPath()).send("Find and hold them", url.Values{"quantity": {"16", "0"}, "together": nil})
	}
	last.says(200, "They are not all side by side")
}

func TestWhatIsSpecialAboutASeatIsSaid(t *testing.T) {
	t.Parallel()
	s := withRules(t)
	if _, there := s.visitor(t).get(s.stalls()).labels()["Stalls, row A, seat 20, 45.00 EUR, free, accessible, restricted view"]; !there {
		t.Error("the seat is shown like any other")
	}
}
