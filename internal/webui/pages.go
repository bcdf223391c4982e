package webui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"seatfence/booking"
	"seatfence/internal/money"
	"seatfence/seats"
)

const (
	eventsPerPage = 10
	seatsPerPage  = 1500 // and the rest of the last row
	justStarted   = 6 * time.Hour
)

// eventEntry is an event in the list. What it costs and what is left of it, its own page counts: for a whole list that is too much.
type eventEntry struct {
	booking.Event
	Sale string
}

type eventsPage struct {
	Events []eventEntry
	More   string // address of the next page
}

// events lists what is to come.
func (u *UI) events(v *visit) error {
	page, err := u.eventList(v, v.caller, "/")
	if err != nil {
		return err
	}
	return u.render(v, http.StatusOK, "events", "Events", page)
}

// eventList is what a caller knows of what is to come, in pages at path.
func (u *UI) eventList(v *visit, caller booking.Caller, path string) (page eventsPage, err error) {
	after := booking.EventPage{AfterStart: time.Now().Add(-justStarted)}
	if from := v.query.Get("from"); from != "" {
		start, last, _ := strings.Cut(from, "_")
		nanos, err := strconv.ParseInt(start, 10, 64)
		id, idErr := seats.ParseEventID(last)
		if err != nil || idErr != nil || nanos < 0 {
			return page, booking.ErrNotFound
		}
		after = booking.EventPage{AfterStart: time.Unix(0, nanos), AfterID: int64(id)}
	}
	list, err := u.Booking.Events(v.Request().Context(), caller, after, eventsPerPage+1)
	if err != nil {
		return page, err
	}
	if len(list) > eventsPerPage {
		list = list[:eventsPerPage]
		last := list[eventsPerPage-1]
		page.More = fmt.Sprintf("%s?from=%d_%s", path, last.StartsAt.UnixNano(), last.ID)
	}
	for _, e := range list {
		_, sale := onSale(e)
		page.Events = append(page.Events, eventEntry{e, sale})
	}
	return page, nil
}

// part is a section or an area of an event; an area has Area set.
type part struct {
	Name  string
	Area  *int32
	URL   string
	Price string
	Free  int64
	Total int64
}

// legend is a category with its price: of the first ticket type, and in Lines of the others and of tiers to come.
type legend struct {
	Name, Price string
	Lines       []string
}

type eventPage struct {
	booking.Event
	Sale     string
	Open     bool
	Sections []part
	Areas    []part
	Legend   []legend
	Left     int64
	Types    []string // of tickets; none if there is only one
	Most     int      // seats of one wish for the best
}

// mostWished is how many seats the form for the best seats offers; the domain's limit is what counts.
const mostWished = 20

// event shows what an event is and what of it is left.
func (u *UI) event(v *visit) error {
	id, err := seats.ParseEventID(v.Param("event"))
	if err != nil {
		return err
	}
	detail, err := u.Booking.Event(v.Request().Context(), v.caller, id)
	if err != nil {
		return err
	}
	page := eventPage{Event: detail.Event, Legend: legendOf(detail), Types: typesOf(detail.PriceList), Most: mostWished}
	if detail.OrderLimit != nil {
		page.Most = min(page.Most, *detail.OrderLimit)
	}
	page.Open, page.Sale = onSale(detail.Event)
	for _, p := range partsOf(detail) {
		page.Left += p.Free
		if p.Area != nil {
			page.Areas = append(page.Areas, p)
		} else {
			page.Sections = append(page.Sections, p)
		}
	}
	return u.render(v, http.StatusOK, "event", detail.Name, page)
}

// partsOf joins the counts of a section's categories and prices, in the order of its seats.
func partsOf(detail booking.EventDetail) (parts []part) {
	byName := map[string][]booking.Section{}
	var names []string
	for _, s := range detail.Sections {
		if byName[s.Name] == nil {
			names = append(names, s.Name)
		}
		byName[s.Name] = append(byName[s.Name], s)
	}
	for _, name := range names {
		p := part{Name: name, Area: byName[name][0].Area, URL: sectionURL(detail.ID, name)}
		var all []int64
		for _, s := range byName[name] {
			p.Free, p.Total = p.Free+s.Free, p.Total+s.Total
			all = append(all, s.Price)
		}
		p.Price = prices(all, detail.Currency)
		parts = append(parts, p)
	}
	return parts
}

// legendOf are the categories with the range of what their seats cost, dearest first.
func legendOf(detail booking.EventDetail) (list []legend) {
	byName := map[string][]int64{}
	var names []string
	for _, s := range detail.Sections {
		if byName[s.Category] == nil {
			names = append(names, s.Category)
		}
		byName[s.Category] = append(byName[s.Category], s.Price)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(slices.Max(byName[b]), slices.Max(byName[a])) })
	for _, name := range names {
		list = append(list, legend{name, prices(byName[name], detail.Currency), priceLines(detail, name)})
	}
	return list
}

// typesOf are the ticket types of an event that has several.
func typesOf(list booking.PriceList) []string {
	if len(list.Types) < 2 {
		return nil
	}
	return list.Types
}

// priceLines say what a category costs as the other ticket types, and from when on it costs something else.
func priceLines(detail booking.EventDetail, category string) (lines []string) {
	for _, p := range detail.Prices {
		later := p.From != nil && p.From.After(detail.ServerTime)
		if p.Category != category || !p.Current && !later || p.Current && p.Type == detail.Types[0] {
			continue
		}
		line := money.Format(p.Amount, detail.Currency)
		if len(detail.Types) > 1 {
			line = p.Type + " " + line
		}
		if later {
			line += " from " + when(*p.From, detail.Timezone)
		}
		lines = append(lines, line)
	}
	return lines
}

func eventURL(id seats.EventID) string { return "/events/" + id.String() }

func sectionURL(id seats.EventID, section string) string {
	return eventURL(id) + "/seats?" + url.Values{"section": {section}}.Encode()
}

// chip is a seat to tick. Word is its state, or its price where its row has several; Notes are what else there is to know of it.
type chip struct {
	seats.Seat
	Word  string
	Notes []string
	Free  bool
}

// notes of a seat, in words.
func notes(a seats.Attributes) (list []string) {
	for _, n := range []struct {
		has  seats.Attributes
		word string
	}{
		{seats.Accessible, "accessible"},
		{seats.Companion, "companion"},
		{seats.RestrictedView, "restricted view"},
		{seats.WholeTable, "whole table"},
	} {
		if a.Has(n.has) {
			list = append(list, n.word)
		}
	}
	return list
}

type rowOfSeats struct {
	Label string
	Price string
	Chips []chip
}

type sectionPage struct {
	booking.Event
	Section string
	Sale    string
	Open    bool
	Types   []string // of tickets; none if there is only one
	Rows    []rowOfSeats
	More    string // address of the rows behind
}

// words of a seat's state; "yours" is one that this buyer holds.
var words = map[seats.State]string{seats.Free: "free", seats.Held: "held", seats.Booked: "sold", seats.Blocked: "closed"}

const yours seats.State = "yours"

// section shows the seats of a section by row, from the seat "from" on.
func (u *UI) section(v *visit) error {
	id, err := seats.ParseEventID(v.Param("event"))
	if err != nil {
		return err
	}
	name := v.query.Get("section")
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return booking.ErrNotFound
	}
	var from int
	if text := v.query.Get("from"); text != "" {
		if from, err = strconv.Atoi(text); err != nil {
			return booking.ErrNotFound
		}
	}
	v.back = eventURL(id)
	house, err := u.Booking.Seats(v.Request().Context(), v.caller, id, &name)
	if err != nil {
		return err
	}
	open := u.openHolds(v)
	rows := rowsOf(house, from, heldIn(open, id))
	if len(rows) == 0 {
		return booking.ErrNotFound
	}
	detail, err := u.Booking.Prices(v.Request().Context(), v.caller, id)
	if err != nil {
		return err
	}
	page := sectionPage{Event: house.Event, Section: name, Rows: rows, Types: typesOf(detail)}
	page.Open, page.Sale = onSale(house.Event)
	lastRow := rows[len(rows)-1].Chips
	if last := lastRow[len(lastRow)-1].ID; last < house.Seats[len(house.Seats)-1].ID {
		page.More = sectionURL(id, name) + "&from=" + strconv.Itoa(int(last)+1)
	}
	return u.write(v, http.StatusOK, "section", layout{name + ", " + house.Event.Name, open, page})
}

// heldIn are the seats of an event in the given holds.
func heldIn(holds []booking.Hold, event seats.EventID) map[seats.ID]bool {
	held := map[seats.ID]bool{}
	for _, hold := range holds {
		for _, s := range hold.Seats {
			held[s.ID] = held[s.ID] || hold.Event == event
		}
	}
	return held
}

// rowsOf groups seats by row until a page is full.
func rowsOf(house booking.House, from int, mine map[seats.ID]bool) (rows []rowOfSeats) {
	count := 0
	for row := range chunks(house.Seats) {
		if int(row[0].ID) < from {
			continue
		}
		if count >= seatsPerPage {
			break
		}
		count += len(row)
		rows = append(rows, rowOf(row, house.Event.Currency, mine))
	}
	return rows
}

// chunks yields the rows of a section, which are runs of seats with one label.
func chunks(list []seats.Seat) func(yield func([]seats.Seat) bool) {
	return func(yield func([]seats.Seat) bool) {
		for len(list) > 0 {
			end := slices.IndexFunc(list, func(s seats.Seat) bool { return s.Row != list[0].Row })
			if end < 0 {
				end = len(list)
			}
			if !yield(list[:end]) {
				return
			}
			list = list[end:]
		}
	}
}

func rowOf(row []seats.Seat, currency string, mine map[seats.ID]bool) rowOfSeats {
	var all []int64
	for _, s := range row {
		all = append(all, s.Price)
	}
	r := rowOfSeats{Label: row[0].Row, Price: prices(all, currency)}
	several := slices.Min(all) != slices.Max(all)
	for _, s := range row {
		c := chip{Seat: s, Word: words[s.State], Notes: notes(s.Attributes), Free: s.State == seats.Free}
		switch {
		case s.State == seats.Held && mine[s.ID]:
			c.State, c.Word = yours, string(yours)
		case c.Free && several:
			c.Word = money.Format(s.Price, currency)
		}
		r.Chips = append(r.Chips, c)
	}
	return r
}
