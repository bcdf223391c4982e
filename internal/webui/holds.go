package webui

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"seatfence/booking"
	"seatfence/seats"
)

// maxChoice is how many seats of a form are looked at. What a buyer can hold is a limit of the domain, and lower.
const maxChoice = 100

// choice is a seat to tick in an offer, as one of the tickets if there are several. Type is the one that was asked for, or "".
type choice struct {
	seats.Seat
	Ticked  bool
	Type    string
	Tickets []ticket
}

// offer is a form that takes seats, or places of an area as one ticket type, of an event. Section is where its visitor came from, or "".
type offer struct {
	Event    booking.Event
	Section  string
	Choices  []choice
	Area     int32
	Quantity int
	Type     string
	Button   string
}

// seatIDs are the numbers of the seats that a form names, each once, in order.
func seatIDs(texts []string) ([]seats.ID, error) {
	var ids []seats.ID
	for _, text := range texts {
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil || len(ids) == maxChoice {
			return nil, errForm
		}
		ids = append(ids, seats.ID(id))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// places is the area and the quantity of the form; nil if it names no area.
func (v *visit) places() (*booking.AreaPlaces, error) {
	if !v.form.Has("area") {
		return nil, nil
	}
	area, err := strconv.ParseInt(v.form.Get("area"), 10, 32)
	if err != nil {
		return nil, errForm
	}
	quantity, err := strconv.Atoi(v.form.Get("quantity"))
	if err != nil {
		return nil, errQuantity
	}
	return &booking.AreaPlaces{Area: int32(area), Quantity: quantity, Type: v.form.Get("place-type")}, nil
}

var (
	errQuantity = &booking.InvalidError{Pointer: "/ga/quantity", Code: "no_quantity", Detail: "the form has no number of places"}
	errNoChoice = &booking.InvalidError{Pointer: "/seats", Code: "no_choice", Detail: "the form has no seat ticked"}
)

// request is what a form asks to hold: seats, places of an area, or the best seats.
func (v *visit) request(event seats.EventID) (req booking.HoldRequest, err error) {
	req.Event = event
	if req.Places, err = v.places(); err != nil {
		return req, err
	}
	if req.Best, err = v.best(); err != nil {
		return req, err
	}
	if req.Seats, err = v.wants(); err != nil {
		return req, err
	}
	if len(req.Seats) == 0 && req.Places == nil && req.Best == nil {
		return req, errNoChoice
	}
	if session := v.form.Get("session"); session != "" {
		page, err := booking.ParsePage(session)
		if err != nil {
			return req, err
		}
		req.Page = &page
	}
	return req, nil
}

// hold sets the ticked seats, a number of places, or the best seats aside.
func (u *UI) hold(v *visit) error {
	event, err := seats.ParseEventID(v.Param("event"))
	if err != nil {
		return err
	}
	v.back = eventURL(event)
	if section := v.form.Get("section"); section != "" {
		v.back = sectionURL(event, section)
	}
	req, err := v.request(event)
	if err != nil {
		return err
	}
	key, err := v.key()
	if err != nil {
		return err
	}
	hold, replayed, err := u.take(v, key, req)
	u.Result("createHold", replayed, err)
	refusal, lost := errors.AsType[*booking.SeatsError](err)
	switch {
	case lost && refusal.Code == booking.CodeSeatAlone:
		return u.alone(v, req, refusal)
	case lost:
		return u.lost(v, req, refusal)
	case errors.Is(err, booking.ErrBusy) && req.Places != nil:
		return u.busy(v, event, *req.Places)
	case err != nil:
		return err
	}
	u.remember(v, hold.ID)
	if hold.Together != nil && !*hold.Together {
		return v.goTo(holdURL(hold.ID) + "?" + apart)
	}
	return v.goTo(holdURL(hold.ID))
}

// apart, in the address of a hold, says that its seats were found but not together. Only the answer to the wish knows that.
const apart = "apart"

// take holds what is asked for. Named seats pass the gate first.
func (u *UI) take(v *visit, key booking.Idempotency, req booking.HoldRequest) (hold booking.Hold, replayed bool, err error) {
	ctx := v.Request().Context()
	pass, err := u.Gate.Enter(ctx, v.caller, req.Event, seats.IDs(req.Seats), key)
	if err != nil {
		return hold, false, err
	}
	defer pass.Leave(ctx)
	hold, replayed, err = u.Booking.Hold(ctx, v.caller, key, req)
	return hold, replayed, pass.Told(err)
}

func holdURL(id booking.HoldID) string { return "/holds/" + id.String() }

// holdPage is a hold and the form that books it, or what became of it. Again offers what of an ended one is still free.
type holdPage struct {
	booking.Hold
	EventHead  booking.Event
	Payable    bool
	Name       string
	NameFault  string
	Email      string
	EmailFault string
	Apart      bool
	Again      *offer
	Free       crowd
	Gone       crowd
}

// showHold shows a hold of the buyer.
func (u *UI) showHold(v *visit) error {
	id, err := booking.ParseHoldID(v.Param("hold"))
	if err != nil {
		return err
	}
	hold, err := u.Booking.GetHold(v.Request().Context(), v.caller, id)
	if err != nil {
		return err
	}
	if hold.Status == booking.HoldOpen {
		u.remember(v, hold.ID) // it may have been made by a script
	}
	return u.writeHold(v, http.StatusOK, holdPage{Hold: hold, Apart: v.query.Has(apart) && len(hold.Seats) > 1})
}

// writeHold completes a page about a hold and writes it. One that has run out is 410 whatever was asked of it.
func (u *UI) writeHold(v *visit, status int, page holdPage) (err error) {
	if page.Booking != nil {
		return v.goTo(bookingURL(*page.Booking))
	}
	v.back = eventURL(page.Event)
	name, title := "hold", "Your seats"
	if page.Status == booking.HoldOpen {
		if page.EventHead, err = u.Booking.EventHead(v.Request().Context(), v.caller, page.Event); err != nil {
			return err
		}
		page.Payable = page.EventHead.Payment == booking.PaymentNone || page.Total == 0
	} else {
		name, title = "ended", "Your time is up"
		if page.Status == booking.HoldReleased {
			title = "Seats given back"
		} else {
			status = http.StatusGone
		}
		if err = u.offerAgain(v, &page); err != nil {
			return err
		}
	}
	return u.write(v, status, name, layout{Title: title, Page: page})
}

// offerAgain finds out what of an ended hold can be taken again.
func (u *UI) offerAgain(v *visit, page *holdPage) error {
	ctx := v.Request().Context()
	var ids []seats.ID
	var places []seats.Place
	types := map[seats.ID]string{}
	for _, s := range page.Seats {
		if s.Number == "" {
			places = append(places, s.Place)
		} else {
			ids = append(ids, s.ID)
			types[s.ID] = s.Type
		}
	}
	house, err := u.Booking.SeatsByID(ctx, v.caller, page.Event, ids)
	if err != nil {
		return err
	}
	page.EventHead = house.Event
	again := &offer{Event: house.Event, Button: "Take them again"}
	var free, gone []seats.Place
	for _, s := range house.Seats {
		if s.State == seats.Free {
			again.Choices = append(again.Choices, choice{Seat: s, Ticked: true, Type: types[s.ID]})
			free = append(free, s.Place)
		} else {
			gone = append(gone, s.Place)
		}
	}
	if len(places) > 0 && len(ids) == 0 { // one form takes seats or places, and numbered seats are worth more of it
		detail, err := u.Booking.Event(ctx, v.caller, page.Event)
		if err != nil {
			return err
		}
		var most int64
		again.Area, most = areaNamed(detail, places[0].Section)
		again.Quantity, again.Type = min(len(places), int(most)), page.Seats[0].Type
		free, gone = places[:again.Quantity], places[again.Quantity:]
	}
	page.Free, page.Gone = crowdOf(free, ""), crowdOf(gone, "")
	if open, _ := onSale(house.Event); open && len(free) > 0 {
		page.Again = again
		if len(free) == 1 {
			again.Button = "Take it again"
		}
		return u.withTickets(v, again)
	}
	return nil
}

// areaNamed is the id of an area and how many places it has left.
func areaNamed(detail booking.EventDetail, name string) (id int32, free int64) {
	for _, s := range detail.Sections {
		if s.Area != nil && s.Name == name {
			id, free = *s.Area, free+s.Free
		}
	}
	return id, free
}

// changed ends a form of a hold's page with that page. What the form asked for may have been so already: it was sent twice, or the
// hold has ended; the page says how things are.
func (u *UI) changed(v *visit, id booking.HoldID, err error) error {
	if err == nil || errors.Is(err, booking.ErrHoldExpired) || errors.Is(err, booking.ErrHoldClosed) {
		return v.goTo(holdURL(id))
	}
	return err
}

// holdOf is the hold that a form is about.
func (v *visit) holdOf() (booking.HoldID, error) {
	id, err := booking.ParseHoldID(v.Param("hold"))
	if err == nil {
		v.back = holdURL(id)
	}
	return id, err
}

// drop gives one seat of a hold back.
func (u *UI) drop(v *visit) error {
	id, err := v.holdOf()
	if err != nil {
		return err
	}
	ids, err := seatIDs(v.form["seat"])
	if err != nil || len(ids) != 1 {
		return errForm
	}
	err = u.changeHold(v, id, booking.HoldChange{Drop: ids})
	if invalid, ok := errors.AsType[*booking.InvalidError](err); ok && invalid.Code == "not_in_hold" {
		err = nil // dropped by an earlier click
	}
	return u.changed(v, id, err)
}

func (u *UI) changeHold(v *visit, id booking.HoldID, change booking.HoldChange) error {
	_, err := u.Booking.ChangeHold(v.Request().Context(), v.caller, id, change)
	u.Result("changeHold", false, err)
	return err
}

// extend gives a hold more time. The form names the end that its visitor saw, so that two clicks are one extension.
func (u *UI) extend(v *visit) error {
	id, err := v.holdOf()
	if err != nil {
		return err
	}
	seen, err := time.Parse(time.RFC3339Nano, v.form.Get("until"))
	if err != nil {
		return errForm
	}
	return u.changed(v, id, u.changeHold(v, id, booking.HoldChange{Extend: true, SeenEnd: &seen}))
}

// release gives all seats of a hold back.
func (u *UI) release(v *visit) error {
	id, err := v.holdOf()
	if err != nil {
		return err
	}
	err = u.Booking.Release(v.Request().Context(), v.caller, id)
	u.Result("releaseHold", false, err)
	return u.changed(v, id, err)
}
