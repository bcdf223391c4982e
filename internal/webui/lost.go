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
func (u *UI) lost(v *visit, event seats.EventID, asked []seats.ID, refusal *booking.SeatsError) error {
	if refusal.Code == booking.CodeSeatUnknown {
		return refusal
	}
	if refusal.Code == booking.CodeSeatAlone {
		return u.alone(v, event, refusal)
	}
	house, err := u.Booking.SeatsByID(v.Request().Context(), v.caller, event, asked)
	if err != nil {
		return err
	}
	gone := lostOf(house.Seats, refusal.Seats)
	if len(gone) == 0 {
		return refusal
	}
	n := notice{Text: story(gone, house.Event.Timezone)}
	here := gone[0].Section
	o := &offer{Event: house.Event, Type: v.form.Get("type")}
	if refusal.Code == booking.CodeSeatBusy {
		v.Response().Header().Set(echo.HeaderRetryAfter, "1")
		o.Choices, o.Button = stillFree(house.Seats, nil), "Try again"
	} else {
		o.Choices, o.Button = stillFree(house.Seats, gone), "Take these seats"
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
	}
	for _, g := range gone {
		if g.Hold != nil && !slices.ContainsFunc(n.Links, func(l link) bool { return l.URL == holdURL(*g.Hold) }) {
			n.Links = append(n.Links, link{holdURL(*g.Hold), "Go to your seats"})
		}
	}
	n.Links = append(n.Links, link{sectionURL(event, here), "Back to " + here})
	return u.render(v, http.StatusConflict, "notice", n.Title, n)
}

// alone says which seats a choice would leave alone, and offers the better one.
func (u *UI) alone(v *visit, event seats.EventID, refusal *booking.SeatsError) error {
	head, err := u.Booking.EventHead(v.Request().Context(), v.caller, event)
	if err != nil {
		return err
	}
	here := refusal.Seats[0].Section
	left := crowdOf(placesOf(refusal.Seats, func(l booking.LostSeat) seats.Place { return l.Place }), here)
	o := &offer{Event: head, Button: "Take these seats", Type: v.form.Get("type")}
	for _, s := range refusal.Alternatives {
		o.Choices = append(o.Choices, choice{s, true})
	}
	n := notice{Title: left.Names + " would be left alone.", Offer: o, Links: []link{backTo(v.back)}}
	n.Text = []string{"Hardly anybody comes for a single seat between others, so this event asks to leave none."}
	if better := crowdOf(placesOf(o.Choices, placeOfChoice), here); better.Names != "" {
		n.Text = append(n.Text, fmt.Sprintf("%s, same price, %s free.", better.Names, better.Is()))
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

// lostSeat is a seat that stood in the way, with its price.
type lostSeat struct {
	booking.LostSeat
	Price int64
}

// lostOf joins what the refusal says of seats with what they are. A refusal that was made without looking at them has no places.
func lostOf(asked []seats.Seat, refused []booking.LostSeat) (lost []lostSeat) {
	for _, l := range refused {
		i := slices.IndexFunc(asked, func(s seats.Seat) bool { return s.ID == l.ID })
		if i < 0 {
			continue
		}
		l.Place = asked[i].Place
		lost = append(lost, lostSeat{l, asked[i].Price})
	}
	return lost
}

func stillFree(asked []seats.Seat, gone []lostSeat) (list []choice) {
	for _, s := range asked {
		if s.State == seats.Free && !slices.ContainsFunc(gone, func(g lostSeat) bool { return g.ID == s.ID }) {
			list = append(list, choice{s, true})
		}
	}
	return list
}

// leastInstead is how many seats are offered for a single lost one, so that there is a choice.
const leastInstead = 2

// instead picks free seats at the prices of the lost ones, nearest first, and ticks one for each. A seat that is the buyer's already
// needs none.
func instead(gone []lostSeat, free []seats.Seat) (list []choice) {
	var wanted []int64
	for _, g := range gone {
		if g.Reason != booking.ReasonYours {
			wanted = append(wanted, g.Price)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	most := max(leastInstead, len(wanted))
	costs := slices.Clone(wanted)
	for _, s := range free {
		if len(list) == most || !slices.Contains(costs, s.Price) {
			continue
		}
		i := slices.Index(wanted, s.Price)
		if i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
		}
		list = append(list, choice{s, i >= 0})
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

func placeOfChoice(c choice) seats.Place { return c.Place }
