package webui

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"seatfence/booking"
	"seatfence/internal/money"
	"seatfence/seats"
)

// ticket is a ticket type that something is sold as now, and what it costs then, in minor units.
type ticket struct {
	Type   string
	Price  int64
	Chosen bool
}

// ticketList is tickets to choose from, in a template.
type ticketList struct {
	Currency string
	Tickets  []ticket
}

// ticketsOf are the types that a category is sold as now, in the event's order; none if there is nothing to choose.
func ticketsOf(list booking.PriceList, category, chosen string) (tickets []ticket) {
	for _, p := range list.Prices {
		if p.Current && p.Category == category {
			tickets = append(tickets, ticket{p.Type, p.Amount, p.Type == chosen})
		}
	}
	if len(tickets) < 2 {
		return nil
	}
	return tickets
}

// withTickets lets the offer's visitor say for each seat which ticket it is for, if the event has several.
func (u *UI) withTickets(v *visit, o *offer) error {
	prices, err := u.Booking.Prices(v.Request().Context(), v.caller, o.Event.ID)
	if err != nil {
		return err
	}
	for i, c := range o.Choices {
		o.Choices[i].Tickets = ticketsOf(prices, c.Category, c.Type)
	}
	return nil
}

// tickets asks which ticket each ticked seat is for. It holds nothing, so that its address can be opened again.
func (u *UI) tickets(v *visit) error {
	event, err := seats.ParseEventID(v.Param("event"))
	if err != nil {
		return err
	}
	section := v.query.Get("section")
	if section == "" {
		return booking.ErrNotFound
	}
	v.back = sectionURL(event, section)
	ids, err := seatIDs(v.query["seat"])
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return errNoChoice
	}
	house, err := u.Booking.SeatsByID(v.Request().Context(), v.caller, event, ids)
	if err != nil {
		return err
	}
	if len(house.Seats) < len(ids) {
		return booking.ErrNotFound
	}
	n := notice{Title: "Which tickets?", Links: []link{{v.back, "Back to " + section}}}
	o := &offer{Event: house.Event, Section: section, Choices: stillFree(house.Seats, nil, nil), Button: "Hold these seats"}
	var gone []seats.Place
	for _, s := range house.Seats {
		if s.State != seats.Free {
			gone = append(gone, s.Place)
		}
	}
	if len(gone) > 0 {
		c := crowdOf(gone, "")
		n.Text = append(n.Text, fmt.Sprintf("%s %s not free any more.", c.Names, c.Is()))
	}
	if len(o.Choices) > 0 {
		n.Text = append(n.Text, "Nothing is held yet. Choose a ticket for each seat, then hold them.")
		n.Offer = o
	}
	if err := u.withTickets(v, o); err != nil {
		return err
	}
	return u.render(v, http.StatusOK, "notice", n.Title, n)
}

// typeField is the field of a form that names the ticket type of a seat.
func typeField(id seats.ID) string { return "type-" + strconv.Itoa(int(id)) }

// wants are the ticked seats, each once, in order, as the ticket types that the form names.
func (v *visit) wants() ([]seats.Want, error) {
	ids, err := seatIDs(v.form["seat"])
	wants := seats.Any(ids...)
	for i, id := range ids {
		wants[i].Type = v.form.Get(typeField(id))
	}
	return wants, err
}

// best is the wish for the best seats, a number of each ticket type; nil if the form is another.
func (v *visit) best() (*booking.BestWish, error) {
	types, numbers := v.form["type"], v.form["number"]
	if len(types) != len(numbers) {
		return nil, errForm
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	wish := &booking.BestWish{Category: v.form.Get("category")}
	for i, text := range numbers {
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 16)
		if err != nil {
			return nil, errQuantity
		}
		if n != 0 {
			wish.Types = append(wish.Types, booking.TypeCount{Type: types[i], Quantity: int(n)})
		}
	}
	return wish, nil
}

// legend is what a category costs: a cell of tiers for each ticket type of the event.
type legend struct {
	Category string
	Cells    [][]tier
}

// tier is an amount in words, and the day that it counts from if that is to come.
type tier struct{ From, Amount string }

// legendOf are the categories that the event sells, those first that cost most now, each with its prices now and to come.
func legendOf(list booking.PriceList, event booking.Event) (rows []legend) {
	for _, category := range dearestFirst(list) {
		row := legend{Category: category, Cells: make([][]tier, len(list.Types))}
		for i, name := range list.Types {
			for _, p := range list.Prices {
				if p.Category == category && p.Type == name {
					row.Cells[i] = append(row.Cells[i], tiersOf(p, event)...)
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// tiersOf is the tier of a price, or none if it is over.
func tiersOf(p booking.Price, event booking.Event) []tier {
	amount := money.Format(p.Amount, event.Currency)
	switch {
	case p.Current:
		return []tier{{"", amount}}
	case p.From == nil || !p.From.After(event.ServerTime):
		return nil
	}
	return []tier{{day(*p.From, event.ServerTime, event.Timezone), amount}}
}

// day is a day to come, with what of its year and time is not plain: "1 February", "1 February 2027, 12:00".
func day(t, now time.Time, timezone string) string {
	t, now = t.In(zone(timezone)), now.In(zone(timezone))
	layout := "2 January"
	if t.Year() != now.Year() {
		layout += " 2006"
	}
	if t.Hour() != 0 || t.Minute() != 0 {
		layout += ", 15:04"
	}
	return t.Format(layout)
}

// sign is what there is to know of a seat beside its place: a drawing, and the word for it.
type sign struct{ ID, Word string }

var signs = []struct {
	of seats.Attributes
	sign
}{
	{seats.Accessible, sign{"accessible", "accessible"}},
	{seats.Companion, sign{"companion", "companion seat"}},
	{seats.RestrictedView, sign{"restricted", "restricted view"}},
}

// signsOf are the signs of one seat, or of all that have any of the attributes.
func signsOf(attributes seats.Attributes) (list []sign) {
	for _, s := range signs {
		if attributes.Has(s.of) {
			list = append(list, s.sign)
		}
	}
	return list
}

// described is where a seat is and what there is to know of it: "Stalls, row C, seat 14, restricted view".
func described(s seats.Seat) string {
	var text strings.Builder
	text.WriteString(position(s.Place))
	for _, sign := range signsOf(s.Attributes) {
		text.WriteString(", " + sign.Word)
	}
	return text.String()
}
