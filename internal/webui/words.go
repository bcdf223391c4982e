package webui

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"seatfence/booking"
	"seatfence/internal/money"
	"seatfence/seats"
)

// crowd is places that a sentence is about. Its words agree in number.
type crowd struct {
	Names  string
	Plural bool
}

// Is, Was and Has are verbs for the crowd.
func (c crowd) Is() string  { return c.choose("is", "are") }
func (c crowd) Was() string { return c.choose("was", "were") }
func (c crowd) Has() string { return c.choose("has", "have") }

// Comes is "it comes" or "they come".
func (c crowd) Comes() string { return c.choose("it comes", "they come") }

func (c crowd) choose(one, many string) string {
	if c.Plural {
		return many
	}
	return one
}

// crowdOf names places: "C14 and C15" where all are in one section or in here, "Stalls C14 and Circle A2" where not, and "2 places in
// Floor" for those without a number.
func crowdOf(places []seats.Place, here string) crowd {
	if here == "" && !slices.ContainsFunc(places, func(p seats.Place) bool { return p.Section != places[0].Section }) && len(places) > 0 {
		here = places[0].Section
	}
	var names []string
	unnumbered := map[string]int{}
	for _, p := range places {
		switch {
		case p.Number == "":
			unnumbered[p.Section]++
		case p.Section == here:
			names = append(names, strings.TrimPrefix(p.Label(), p.Section+" "))
		default:
			names = append(names, p.Label())
		}
	}
	for _, p := range places {
		switch n := unnumbered[p.Section]; {
		case p.Number != "" || n == 0:
			continue
		case n == 1:
			names = append(names, "1 place in "+p.Section)
		default:
			names = append(names, fmt.Sprintf("%d places in %s", n, p.Section))
		}
		delete(unnumbered, p.Section)
	}
	return crowd{and(names), len(places) != 1}
}

// and joins names as a sentence does.
func and(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// placesOf are the places of seats of any kind.
func placesOf[T any](list []T, place func(T) seats.Place) []seats.Place {
	places := make([]seats.Place, len(list))
	for i, s := range list {
		places[i] = place(s)
	}
	return places
}

func placeOfHeld(s booking.HeldSeat) seats.Place { return s.Place }
func placeOfTicket(t seats.Ticket) seats.Place   { return t.Place }

// position is where a seat is, in full: "Stalls, row C, seat 14".
func position(p seats.Place) string {
	if p.Number == "" {
		return p.Section + ", a place without number"
	}
	return fmt.Sprintf("%s, row %s, seat %s", p.Section, p.Row, p.Number)
}

// zone is the event's; the offset that is shown with every date stays true even where the zone is unknown.
func zone(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return loc
}

// when is a date with its time, offset and zone: "Friday 1 May 2026, 19:30 (UTC+02:00, Europe/Berlin)".
func when(t time.Time, timezone string) string {
	return t.In(zone(timezone)).Format("Monday 2 January 2006, 15:04 (UTC-07:00, ") + timezone + ")"
}

// offset is how far the zone is from UTC then: "+02:00".
func offset(timezone string, t time.Time) string { return t.In(zone(timezone)).Format("-07:00") }

// clock is a time of today's: "19:42".
func clock(t time.Time, timezone string) string { return t.In(zone(timezone)).Format("15:04") }

// left is how long a hold lives from the server's point of view.
func left(hold booking.Hold) string {
	minutes := int(math.Round(hold.ExpiresAt.Sub(hold.ServerTime).Minutes()))
	if minutes < 2 {
		return "less than 2 minutes"
	}
	return fmt.Sprintf("about %d minutes", minutes)
}

// masked shows an e-mail address to whoever looks over the buyer's shoulder: "l…@example.com".
func masked(email string) string {
	at := strings.LastIndexByte(email, '@')
	_, first := utf8.DecodeRuneInString(email)
	if at < first {
		return "…"
	}
	return email[:first] + "…" + email[at:]
}

// prices is one price or the range of several.
func prices(list []int64, currency string) string {
	if len(list) == 0 {
		return ""
	}
	low, high := slices.Min(list), slices.Max(list)
	if low == high {
		return money.Format(low, currency)
	}
	return money.Format(low, currency) + " to " + money.Format(high, currency)
}

// onSale says whether the event takes new buyers, and what to tell them of it.
func onSale(e booking.Event) (open bool, text string) {
	switch {
	case e.Status == booking.StatusPaused:
		return false, "The sale is paused for the moment."
	case e.Status == booking.StatusEnded:
		return false, "This event is over."
	case e.Status == booking.StatusCancelled:
		return false, "This event is cancelled."
	case e.ServerTime.Before(e.SaleStartsAt):
		return false, "The sale starts on " + when(e.SaleStartsAt, e.Timezone) + "."
	case !e.ServerTime.Before(e.SaleEndsAt):
		return false, "The sale has ended."
	}
	return true, "On sale until " + when(e.SaleEndsAt, e.Timezone) + "."
}
