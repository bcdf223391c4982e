package webui

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/seats"
)

// lost says who was quicker, and offers what of the choice is still free with the nearest seats at the same price instead of the rest.
func (u *UI) lost(v *visit, req booking.HoldRequest, refusal *booking.SeatsError) error {
	if refusal.Code == booking.CodeSeatUnknown {
		return refusal
	}
	house, err := u.Booking.SeatsByID(v.Request().Context(), v.caller, req.Event, seats.IDs(req.Seats))
	if err != nil {
		return err
	}
	types := typesOf(req.Seats)
	gone := lostOf(house.Seats, refusal.Seats, types)
	if len(gone) == 0 {
		return refusal
	}
	n := notice{Text: story(gone, house.Event.Timezone)}
	here := gone[0].Section
	o := &offer{Event: house.Event}
	if refusal.Code == booking.CodeSeatBusy {
		v.Response().Header().Set(echo.HeaderRetryAfter, "1")
		o.Choices, o.Button = stillFree(house.Seats, nil, types), "Try again"
	} else {
		o.Choices, o.Button = stillFree(house.Seats, gone, types), "Take these seats"
		kept := crowdOf(placesOf(o.Choices, placeOfChoice), here)
		if len(o.Choices) > 0 {
			n.Text = append(n.Text, fmt.Sprintf("%s %s still free.", kept.Names, kept.Is()))
		}
		if other := instead(gone, refusal.Alternatives); len(other) > 0 {
			o.Choices = append(o.Choices, other...)
			more := crowdOf(placesOf(other, placeOfChoice), here)
			n.Text = append(n.Text, fmt.Sprintf("%s, same price, %s free.", more.Names, more.Is()))
		}
	}
	n.Title, n.Text = n.Text[0], n.Text[1:]
	if len(o.Choices) > 0 {
		n.Offer = o
		if err := u.withTickets(v, o); err != nil {
			return err
		}
	}
	for _, g := range gone {
		if g.Hold != nil && !slices.ContainsFunc(n.Links, func(l link) bool { return l.URL == holdURL(*g.Hold) }) {
			n.Links = append(n.Links, link{holdURL(*g.Hold), "Go to your seats"})
		}
	}
	n.Links = append(n.Links, link{sectionURL(req.Event, here), "Back to " + here})
	return u.render(v, http.StatusConflict, "notice", n.Title, n)
}

// alone says which seats a choice would leave alone, and offers the better choice, as the same tickets.
func (u *UI) alone(v *visit, req booking.HoldRequest, refusal *booking.SeatsError) error {
	head, err := u.Booking.EventHead(v.Request().Context(), v.caller, req.Event)
	if err != nil {
		return err
	}
	o := &offer{Event: head}
	for i, s := range refusal.Alternatives {
		o.Choices = append(o.Choices, choice{Seat: s, Ticked: true, Type: req.Seats[i].Type})
	}
	if err := u.withTickets(v, o); err != nil {
		return err
	}
	left := crowdOf(placesOf(refusal.Seats, placeOfLost), "")
	better := crowdOf(placesOf(o.Choices, placeOfChoice), refusal.Seats[0].Section)
	o.Button = "Take " + better.Names
	n := notice{
		Title: fmt.Sprintf("That would leave %s alone", left.Names),
		Text: []string{
			"Hardly anybody buys a single seat between others, so here none is left over. Nothing is held yet.",
			fmt.Sprintf("%s %s free and %s none alone.", better.Names, better.Is(), better.choose("leaves", "leave")),
		},
		Offer: o,
		Links: []link{{sectionURL(req.Event, refusal.Seats[0].Section), "Back to " + refusal.Seats[0].Section}},
	}
	return u.render(v, http.StatusConflict, "notice", n.Title, n)
}

// busy offers to ask once more for places of an area that somebody is in front of: there are no seats to name.
func (u *UI) busy(v *visit, event seats.EventID, places booking.AreaPlaces) error {
	head, err := u.Booking.EventHead(v.Request().Context(), v.caller, event)
	if err != nil {
		return err
	}
	n := refusals["busy"].notice()
	n.Offer = &offer{Event: head, Area: places.Area, Quantity: places.Quantity, Type: places.Type, Button: "Try again"}
	n.Links = []link{backTo(v.back)}
	v.Response().Header().Set(echo.HeaderRetryAfter, "1")
	return u.render(v, http.StatusConflict, "notice", n.Title, n)
}

// lostSeat is a seat that stood in the way, with its price, and the ticket type that it was asked for as.
type lostSeat struct {
	booking.LostSeat
	Price int64
	Type  string
}

// typesOf are the ticket types that seats were asked for as.
func typesOf(asked []seats.Want) map[seats.ID]string {
	types := map[seats.ID]string{}
	for _, w := range asked {
		types[w.ID] = w.Type
	}
	return types
}

// lostOf joins what the refusal says of seats with what they are. A refusal that was made without looking at them has no places.
func lostOf(asked []seats.Seat, refused []booking.LostSeat, types map[seats.ID]string) (lost []lostSeat) {
	for _, l := range refused {
		i := slices.IndexFunc(asked, func(s seats.Seat) bool { return s.ID == l.ID })
		if i < 0 {
			continue
		}
		l.Place = asked[i].Place
		lost = append(lost, lostSeat{l, asked[i].Price, types[l.ID]})
	}
	return lost
}

func stillFree(asked []seats.Seat, gone []lostSeat, types map[seats.ID]string) (list []choice) {
	for _, s := range asked {
		if s.State == seats.Free && !slices.ContainsFunc(gone, func(g lostSeat) bool { return g.ID == s.ID }) {
			list = append(list, choice{Seat: s, Ticked: true, Type: types[s.ID]})
		}
	}
	return list
}

// leastInstead is how many seats are offered for a single lost one, so that there is a choice.
const leastInstead = 2

// instead picks free seats at the prices of the lost ones, nearest first, and ticks one for each. A seat that is the buyer's already
// needs none.
func instead(gone []lostSeat, free []seats.Seat) (list []choice) {
	wanted := slices.DeleteFunc(slices.Clone(gone), func(g lostSeat) bool { return g.Reason == booking.ReasonYours })
	if len(wanted) == 0 {
		return nil
	}
	most := max(leastInstead, len(wanted))
	costs := slices.Clone(wanted)
	for _, s := range free {
		same := func(g lostSeat) bool { return g.Price == s.Price }
		if len(list) == most || !slices.ContainsFunc(costs, same) {
			continue
		}
		c := choice{Seat: s}
		if i := slices.IndexFunc(wanted, same); i >= 0 {
			c.Ticked, c.Type = true, wanted[i].Type
			wanted = slices.Delete(wanted, i, i+1)
		}
		list = append(list, c)
	}
	return list
}

// reasons are told in this order.
var reasons = []string{
	booking.ReasonBooked, booking.ReasonHeld, booking.ReasonBusy, booking.ReasonBlocked, booking.ReasonStale, booking.ReasonYours,
}

// story is one sentence for each reason, about all seats it holds for.
func story(gone []lostSeat, timezone string) (sentences []string) {
	here := gone[0].Section
	for _, reason := range reasons {
		var places []seats.Place
		var until time.Time
		for _, g := range gone {
			if g.Reason != reason {
				continue
			}
			places = append(places, g.Place)
			if g.HeldUntil != nil && g.HeldUntil.After(until) {
				until = *g.HeldUntil
			}
		}
		if len(places) > 0 {
			sentences = append(sentences, told(crowdOf(places, here), reason, until, timezone))
		}
	}
	return sentences
}

func told(c crowd, reason string, until time.Time, timezone string) string {
	switch reason {
	case booking.ReasonBooked:
		return fmt.Sprintf("%s %s just bought by someone else.", c.Names, c.Was())
	case booking.ReasonHeld:
		return fmt.Sprintf("Someone is buying %s right now. If they don't finish, %s back at %s.", c.Names, c.Comes(), clock(until, timezone))
	case booking.ReasonBusy:
		return fmt.Sprintf("Someone is buying %s right now. Try again in a moment.", c.Names)
	case booking.ReasonBlocked:
		return fmt.Sprintf("%s %s not for sale.", c.Names, c.Is())
	case booking.ReasonYours:
		return fmt.Sprintf("%s %s yours already.", c.Names, c.Is())
	}
	return fmt.Sprintf("%s %s changed since you looked.", c.Names, c.Has())
}

func placeOfLost(l booking.LostSeat) seats.Place { return l.Place }

func placeOfChoice(c choice) seats.Place { return c.Place }
