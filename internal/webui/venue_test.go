package webui_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// venue is a site whose event was changed before it was made.
func venue(t *testing.T, change func(*booking.NewEvent)) site {
	t.Helper()
	s := open(t, nil)
	spec := Spec()
	change(&spec)
	s.Event = s.NewEvent(t, spec)
	return s
}

// twoTypes sells the stalls to adults, dearer from the first of a year on, and reduced; standing places to adults alone.
func twoTypes(e *booking.NewEvent) {
	later := time.Date(time.Now().Year()+2, 2, 1, 0, 0, 0, 0, time.UTC).Add(-time.Hour) // midnight in Berlin
	e.Types = []string{"adult", "reduced"}
	e.Prices = []booking.Price{
		{Category: "Stalls", Type: "adult", Amount: 5000, From: &later},
		{Category: "Stalls", Type: "reduced", Amount: 2500},
	}
}

func strict(e *booking.NewEvent) { e.OrphanRule = true }

func TestPricesAreToldByCategoryTypeAndTier(t *testing.T) {
	s := venue(t, twoTypes)
	event := s.visitor(t).get(s.eventPath())
	event.says(200, "Category adult reduced", "Stalls 45.00 EUR from 1 February 20", ": 50.00 EUR 25.00 EUR", "Standing 30.00 EUR not sold")
	s.Event = s.NewEvent(t, Spec())
	s.visitor(t).get(s.eventPath()).says(200, "Stalls 45.00 EUR", "Number of seats")
}

func TestTheBestSeatsAreHeldAsTheTicketsAskedFor(t *testing.T) {
	s := venue(t, twoTypes)
	event := s.visitor(t).get(s.eventPath())
	hold := event.send("Find the best seats", url.Values{"number": {"1", "2"}, "category": {"Stalls"}})
	hold.says(200, "A9, A10 and A11 are yours until", "seat 9 adult 45.00 EUR", "seat 10 reduced 25.00 EUR", "Total 95.00 EUR")
	hold.send("Book A9", lena).says(200, "seat 10 reduced 25.00 EUR")
	event.send("Find the best seats", url.Values{"number": {"0", "0"}}).says(422, "How many do you want?", "Between 1 and 20")
	event.send("Find the best seats", url.Values{"number": {"x", "0"}}).says(422, "How many places do you want?")
	event.send("Find the best seats", url.Values{"number": {"2"}}).says(400)
	event.send("Find the best seats", url.Values{"type": {"adult", "child"}, "number": {"0", "1"}}).says(422, "There is no such ticket").
		follow("Back to the event").says(200)
	event.send("Find the best seats", url.Values{"number": {"0", "1"}, "category": {"Boxes"}}).says(422, "There is no such category")
}

func TestSeatsThatAreNotTogetherAreSaidToBeApart(t *testing.T) {
	s := open(t, nil, func(l *booking.Limits) { l.Seats, l.HeldByBuyer = 60, 60 })
	var taken []seats.ID
	for id := seats.ID(1); id <= 60; id++ {
		if id%2 == 0 {
			taken = append(taken, id)
		}
	}
	s.MustHold(t, Buyer(), taken...)
	b := s.visitor(t)
	hold := b.get(s.eventPath()).send("Find the best seats", url.Values{"number": {"2"}})
	hold.says(200, "are yours until", "They are not all side by side")
	if single := b.get(s.eventPath()).send("Find the best seats", url.Values{"number": {"1"}}); strings.Contains(single.words, "side by side") {
		t.Errorf("one seat is said to be apart: %s", single.words)
	}
	b.get(s.eventPath()).send("Find the best seats", url.Values{"number": {"40"}}).says(409, "There are not so many seats left that fit")
}

func TestAChoiceThatLeavesASeatAloneIsAnsweredWithABetterOne(t *testing.T) {
	s := venue(t, func(e *booking.NewEvent) { strict(e); twoTypes(e) })
	section := s.visitor(t).get(s.stalls())
	tickets := section.send("Choose tickets", url.Values{"seat": {"2", "3"}}).says(200, "Which tickets?", "Nothing is held yet")
	alone := tickets.send("Hold these seats", url.Values{"type-3": {"reduced"}})
	alone.says(409, "That would leave A1 alone", "leave none alone", "Back to Stalls")
	if _, form := alone.form("Take"); len(form["seat"]) != 2 {
		t.Errorf("offered are %v", form)
	}
	hold := alone.send("Take", nil).says(200, "are yours until", "Total 70.00 EUR")
	hold.follow("Look again").says(200)
}

func TestGivingASeatBackMayNotLeaveItAlone(t *testing.T) {
	s := venue(t, strict)
	hold := s.visitor(t).pick("1", "2", "3")
	hold.send("Give back Stalls, row A, seat 2", nil).says(409, "That would leave a single seat alone").
		follow("Back to your seats").says(200, "A1, A2 and A3 are yours")
	hold.send("Give back Stalls, row A, seat 3", nil).says(200, "A1 and A2 are yours")
}

func TestTheTicketIsChosenForEachSeat(t *testing.T) {
	s := venue(t, twoTypes)
	b := s.visitor(t)
	section := b.get(s.stalls()).says(200, "The prices here are for adult")
	section.send("Choose tickets", nil).says(422, "Choose at least one seat").follow("Back to the event").says(200)
	tickets := section.send("Choose tickets", url.Values{"seat": {seat14C, seat15C, seat16C}})
	tickets.says(200, "adult, 45.00 EUR", "reduced, 25.00 EUR").follow("Back to Stalls").says(200)
	if _, err := s.Book(t.Context(), Buyer(), 56); err != nil {
		t.Fatal(err)
	}
	lost := tickets.send("Hold these seats", url.Values{"type-54": {"reduced"}, "type-56": {"reduced"}})
	lost.says(409, "C16 was just bought by someone else", "C14 and C15 are still free")
	hold := lost.send("Take these seats", nil).says(200, "C14, C15 and", "Total 95.00 EUR")
	again := hold.send("Give all back", nil)
	again.send("Take them again", nil).says(200, "Total 95.00 EUR")
	b.get(tickets.path).says(200, "C14, C15 and C16 are not free any more.")
	tickets.send("Hold these seats", url.Values{"seat": {"1"}, "type-1": {"child"}}).says(422, "There is no such ticket")
	tickets.send("Hold these seats", url.Values{"seat": {"1"}, "type-1": {"a\x00"}}).says(422)
	for query, status := range map[string]int{
		"": 404, "?section=Stalls": 422, "?section=Stalls&seat=x": 400, "?section=Stalls&seat=9999": 404, "?seat=1": 404, "?section=%ff&seat=1": 200,
	} {
		b.get(s.eventPath() + "/tickets" + query).says(status)
	}
	b.get("/events/evt_/tickets?section=Stalls&seat=1").says(404)
}

func TestPlacesOfAnAreaAreSoldAsATicketType(t *testing.T) {
	s := venue(t, func(e *booking.NewEvent) {
		twoTypes(e)
		e.Prices = append(e.Prices, booking.Price{Category: "Standing", Type: "reduced", Amount: 1000})
	})
	event := s.visitor(t).get(s.eventPath())
	hold := event.send("Hold places in Floor", url.Values{"place-type": {"reduced"}, "quantity": {"2"}}).says(200, "Total 20.00 EUR")
	hold.send("Give all back", nil).send("Take them again", nil).says(200, "Total 20.00 EUR")
	event.send("Hold places in Floor", nil).says(200, "Total 30.00 EUR")
}

func TestAnOrderHasTheEventsLimit(t *testing.T) {
	s := venue(t, func(e *booking.NewEvent) { e.OrderLimit = new(2) })
	b := s.visitor(t)
	event := b.get(s.eventPath()).says(200, "Up to 2 seats")
	for n := range event.doc.Descendants() {
		if most, ok := attribute(n, "max"); ok && most != "2" {
			t.Errorf("%s goes up to %s", attr(n, "name"), most)
		}
	}
	b.pick(seat14C, seat15C, seat16C).says(422, "These are too many seats for one order", "The event sells at most 2 seats at once.")
}

// fromPlan makes the event of a drawing.
func fromPlan(t *testing.T, s site, drawn plan.Plan) site {
	t.Helper()
	var document bytes.Buffer
	if err := drawn.Export(&document); err != nil {
		t.Fatal(err)
	}
	drawn, report, err := plan.Import(t.Context(), &document, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := s.Service.ImportPlan(t.Context(), s.Owner, Key(), booking.PlanImport{Name: "Small", Document: drawn, Report: report})
	if err == nil {
		_, err = s.Service.PublishPlan(t.Context(), s.Owner, made.Plan, made.Number)
	}
	if err != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	spec := Spec()
	spec.House, spec.Plan = plan.House{}, &booking.PlanRef{Plan: made.Plan, Version: made.Number}
	spec.Prices = []booking.Price{{Category: "Stalls", Amount: SeatPrice}, {Category: "Standing", Amount: FloorPrice}}
	s.Event = s.NewEvent(t, spec)
	return s
}

func TestWhatIsSpecialOfASeatIsSaidInWords(t *testing.T) {
	s := open(t, nil)
	drawn := Spec().House.Plan()
	rows := drawn.Sections[0].Rows
	rows[0].Seats[0].Accessible, rows[0].Seats[1].Companion, rows[0].Seats[2].RestrictedView = true, true, true
	rows[1].Table = plan.TableWhole
	s = fromPlan(t, s, drawn)
	if _, _, err := s.Service.CreateChannel(t.Context(), s.Owner, Key(), s.Event, booking.NewChannel{Name: "Partner", Seats: []seats.ID{Seat14C}}); err != nil {
		t.Fatal(err)
	}
	b := s.visitor(t)
	section := b.get(s.stalls()).says(200, "accessible", "companion seat", "restricted view", "Row B 45.00 EUR, sold as a whole")
	labels := section.labels()
	for label, usable := range map[string]bool{
		"Stalls, row A, seat 1, accessible, 45.00 EUR, free":      true,
		"Stalls, row A, seat 2, companion seat, 45.00 EUR, free":  true,
		"Stalls, row A, seat 3, restricted view, 45.00 EUR, free": true,
		"Stalls, row C, seat 14, 45.00 EUR, not for sale":         false,
	} {
		if got, there := labels[label]; !there || got != usable {
			t.Errorf("%q: %v, %v", label, got, there)
		}
	}
	for n := range section.doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "svg" && attr(n, "aria-hidden") != "true" {
			t.Error("a drawing is read out beside its word")
		}
	}
	section.send("Hold the ticked seats", url.Values{"seat": {seat14C}}).says(409, "C14 is not for sale.")
	section.send("Hold the ticked seats", url.Values{"seat": {"21"}}).says(422, "This table is sold as a whole")
	section.send("Hold the ticked seats", url.Values{"seat": {"1"}}).says(200, "A1 is yours until")
}

func TestAPageIsReachedByTheKeyboardInItsOrder(t *testing.T) {
	s := venue(t, twoTypes)
	var order []string
	for n := range s.visitor(t).get(s.eventPath()).doc.Descendants() {
		if _, moved := attribute(n, "tabindex"); moved {
			t.Errorf("%s is out of order", n.Data)
		}
		kind := attr(n, "type")
		if n.Data == "select" || n.Data == "button" || n.Data == "input" && kind != "hidden" {
			order = append(order, attr(n, "name"))
		}
	}
	if got := strings.Join(order, " "); got != "number number  quantity " {
		t.Errorf("the order is %q", got)
	}
	for _, path := range []string{s.eventPath(), s.eventPath() + "/tickets?section=Stalls&seat=54"} {
		p := s.visitor(t).get(path)
		labelled := map[string]bool{}
		for n := range p.doc.Descendants() {
			if n.Data == "label" {
				labelled[attr(n, "for")] = true
			}
		}
		for n := range p.doc.Descendants() {
			if n.Data == "select" && !labelled[attr(n, "id")] && attr(n, "aria-label") == "" {
				t.Errorf("%s: a list has no label", path)
			}
		}
	}
}
