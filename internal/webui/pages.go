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
	usualParty    = 2
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
	// Of an area: what its places are sold as, if there are several ticket types, and how many one order can have.
	Tickets []ticket
	Most    int64
}

type eventPage struct {
	booking.Event
	Sale     string
	Open     bool
	Sections []part
	Areas    []part
	Types    []string // if there are several
	Legend   []legend
	Best     *bestForm
	Left     int64
}

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
	page := eventPage{Event: detail.Event, Legend: legendOf(detail.PriceList, detail.Event)}
	if len(detail.Types) > 1 {
		page.Types = detail.Types
	}
	most := u.Booking.MostSeats(detail.Event)
	page.Open, page.Sale = onSale(detail.Event)
	for _, p := range partsOf(detail) {
		page.Left += p.Free
		if p.Area != nil {
			p.Most = min(p.Free, int64(most))
			page.Areas = append(page.Areas, p)
		} else {
			page.Sections = append(page.Sections, p)
		}
	}
	if page.Open && len(page.Sections) > 0 {
		page.Best = bestOf(detail, most)
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
		if p.Area != nil {
			p.Tickets = ticketsOf(detail.PriceList, byName[name][0].Category, "")
		}
		parts = append(parts, p)
	}
	return parts
}

// dearestFirst are the categories of a price list by what the first ticket type costs now.
func dearestFirst(list booking.PriceList) (names []string) {
	now := map[string]int64{}
	for _, p := range list.Prices {
		if !slices.Contains(names, p.Category) {
			names = append(names, p.Category)
		}
		if p.Current && p.Type == list.Types[0] {
			now[p.Category] = p.Amount
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(now[b], now[a]) })
	return names
}

// bestForm asks for the best seats: up to Most of the types, in one of the categories.
type bestForm struct {
	Types      []string
	Categories []string
	Most       int
}

// First is how many of the first type the form begins with.
func (f bestForm) First() int { return min(usualParty, f.Most) }

// bestOf is the form of an event with numbered seats.
func bestOf(detail booking.EventDetail, most int) *bestForm {
	form := &bestForm{Types: detail.Types, Most: most}
	for _, name := range dearestFirst(detail.PriceList) {
		if slices.ContainsFunc(detail.Sections, func(s booking.Section) bool { return s.Area == nil && s.Category == name }) {
			form.Categories = append(form.Categories, name)
		}
	}
	return form
}

func eventURL(id seats.EventID) string { return "/events/" + id.String() }

func sectionURL(id seats.EventID, section string) string {
	return eventURL(id) + "/seats?" + url.Values{"section": {section}}.Encode()
}

// chip is a seat to tick. Word is its state, or its price where its row has several; Offer is that price, for when it turns free.
type chip struct {
	seats.Seat
	Word  string
	Offer string
	Free  bool
}

type rowOfSeats struct {
	Label string
	Price string
	Whole bool // it is a table that is sold as a whole
	Chips []chip
}

type sectionPage struct {
	booking.Event
	Section string
	Sale    string
	Open    bool
	Types   []string
	Signs   []sign // that are on this page
	Rows    []rowOfSeats
	More    string // address of the rows behind
}

// Several reports whether a seat can be sold as more than one ticket type.
func (p sectionPage) Several() bool { return len(p.Types) > 1 }

// words of a seat's state; "yours" is one that this buyer holds.
var words = map[seats.State]string{seats.Free: "free", seats.Held: "held", seats.Booked: "sold", seats.Blocked: "closed"}

// Spoken is the state in full.
func (c chip) Spoken() string {
	switch {
	case c.Free:
		return words[seats.Free]
	case c.State == seats.Blocked:
		return "not for sale"
	}
	return c.Word
}

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
	prices, err := u.Booking.Prices(v.Request().Context(), v.caller, id)
	if err != nil {
		return err
	}
	page := sectionPage{Event: house.Event, Section: name, Types: prices.Types, Signs: signsIn(rows), Rows: rows}
	page.Open, page.Sale = onSale(house.Event)
	lastRow := rows[len(rows)-1].Chips
	if last := lastRow[len(lastRow)-1].ID; last < house.Seats[len(house.Seats)-1].ID {
		page.More = sectionURL(id, name) + "&from=" + strconv.Itoa(int(last)+1)
	}
	return u.write(v, http.StatusOK, "section", layout{name + ", " + house.Event.Name, open, page})
}

// signsIn are the signs that seats of the rows have.
func signsIn(rows []rowOfSeats) []sign {
	var all seats.Attributes
	for _, row := range rows {
		for _, c := range row.Chips {
			all |= c.Attributes
		}
	}
	return signsOf(all)
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
	r := rowOfSeats{Label: row[0].Row, Price: prices(all, currency), Whole: row[0].Attributes.Has(seats.WholeTable)}
	several := slices.Min(all) != slices.Max(all)
	for _, s := range row {
		c := chip{Seat: s, Word: words[s.State], Free: s.State == seats.Free}
		if several {
			c.Offer = money.Format(s.Price, currency)
		}
		switch {
		case s.State == seats.Held && mine[s.ID]:
			c.State, c.Word = yours, string(yours)
		case c.Free && several:
			c.Word = c.Offer
		}
		r.Chips = append(r.Chips, c)
	}
	return r
}
