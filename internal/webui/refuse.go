package webui

import (
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
)

// notice is the page that says why something was not done, and what to do next. Text are paragraphs under the title.
type notice struct {
	Title string
	Text  []string
	Links []link
	Offer *offer
}

type link struct{ URL, Text string }

// phrase is an error in words. Without a text, the detail of the broken rule is one.
type phrase struct{ title, text string }

func (p phrase) notice() notice { return notice{Title: p.title, Text: []string{p.text}} }

// refusals are the errors that a visitor can meet, by the codes that the API answers them with and, for forms, by the rule that is broken.
// The statuses are the API's.
var refusals = map[string]phrase{
	"no_choice":   {"Choose at least one seat", "Tick the seats you want, then hold them."},
	"no_quantity": {"How many places do you want?", "Give their number in figures, for example 2."},

	"bad_quantity":     {"How many do you want?", ""},
	"too_many_seats":   {"These are too many seats for one order", ""},
	"order_limit":      {"These are too many seats for one order", ""},
	"whole_table":      {"This table is sold as a whole", "Nothing was done. Take all of its seats, or seats elsewhere."},
	"unknown_type":     {"There is no such ticket", "Nothing was done. Open the event's page again and choose once more."},
	"type_not_sold":    {"Not every seat is sold as that ticket", "Nothing was done. The event's page shows which tickets there are for each category."},
	"unknown_category": {"There is no such category", "Nothing was done. Open the event's page again and choose once more."},

	"bad_request":            {"We could not read this form", "Nothing was done. Open the page again and choose once more."},
	"unsupported_media_type": {"We could not read this form", "Nothing was done. Open the page again and send the form from it."},
	"body_too_large":         {"This form is too long", "Nothing was done. Open the page again and choose fewer seats."},
	"cross_origin":           {"This form came from another site", "Nothing was done. Open the page here and send the form from it."},
	"not_found": {
		"There is nothing here",
		"The address is unknown, or it is about seats of someone else. Seats and bookings are shown only in the browser that took them, and only while it keeps our cookie.",
	},
	"method_not_allowed":     {"This is not how the page is used", "Nothing was done. Open the page again and use its buttons."},
	"forbidden":              {"This is not for buyers", "Nothing was done."},
	"payment_required":       {"These seats have to be paid for", "This page cannot take a payment yet. Nothing was booked."},
	"event_paused":           {"The sale is paused", "Nothing was changed. Seats that you hold stay yours until their time is up."},
	"event_ended":            {"This event is over", "Nothing more is sold for it."},
	"event_cancelled":        {"This event is cancelled", "Nothing more is sold for it."},
	"sale_not_started":       {"The sale has not started yet", "The event's page says when it does."},
	"sale_ended":             {"The sale has ended", "Nothing more is sold for this event."},
	"hold_expired":           {"Your time is up", "The seats are free again."},
	"hold_closed":            {"These seats are no longer on hold", "They have been booked or given back."},
	"hold_limit":             {"You are holding as many seats as one buyer can", "Book or give back some of them first."},
	"extension_limit":        {"There is no more time to give", "The seats stay yours until the time that is shown with them."},
	"price_changed":          {"Your seats have changed", "They do not cost what the page showed. Nothing was booked: look at them again, then book."},
	"sold_out":               {"There are not that many places left", "The event's page shows how many there are now."},
	"no_block":               {"There are not so many seats left that fit", "Nothing is held. Try fewer seats, or another category."},
	"booking_cancelled":      {"This booking is cancelled already", "Its seats are on sale again."},
	"idempotency_key_reused": {"This form was sent before with another choice", "Open the page again and choose once more."},
	"key_in_progress":        {"We are still at it", "You have sent this form twice, and the first one is not done. Look again in a moment."},
	"busy":                   {"Someone is buying here right now", "Nothing was done. Try again in a moment."},
	booking.CodeSeatUnknown:  {"There is nothing here", "The event has no such seats."},
	booking.CodeSeatBusy:     {"Someone is buying here right now", "Nothing was done. Try again in a moment."},
	booking.CodeSeatTaken:    {"Not all of these seats are yours any more", "Nothing was booked. Choose again from those that are free."},
	booking.CodeSeatYours:    {"You have these seats already", "Nothing was done."},
	booking.CodeStaleFence:   {"Not all of these seats are yours any more", "Nothing was booked. Choose again from those that are free."},
	booking.CodeSeatAlone:    {"That would leave a single seat alone", "Nothing was changed. Give back another of your seats, or all of them."},
	"overloaded":             {"Too many people are here at once", "Nothing was done, and nothing of yours is lost. Try again in a moment."},
	"timeout":                {"This takes too long", "Too many people are here at once. Look at your seats before you try again."},
	"unavailable":            {"We cannot answer right now", "Nothing of yours is lost. Try again in a moment."},
	"internal":               {"Something went wrong on our side", "We have made a note of it. Look at your seats again before you try once more."},
}

const notPossible = "This is not possible"

// Refuse writes the page that says in words why a request was not done: the error of a page, or of a request that has reached none.
// status and code are what the API would answer.
func (u *UI) Refuse(c echo.Context, status int, code string, err error) error {
	v, admitted := c.Get(visitKey).(*visit)
	if !admitted {
		v = &visit{Context: c, back: "/"}
	}
	n := noticeOf(code, err)
	n.Links = []link{backTo(v.back)}
	if !admitted || status >= http.StatusInternalServerError { // what fails now would fail again in the reminder of open holds
		return u.write(v, status, "notice", layout{Title: n.Title, Page: n})
	}
	return u.render(v, status, "notice", n.Title, n)
}

func noticeOf(code string, err error) notice {
	invalid, ok := errors.AsType[*booking.InvalidError](err)
	if ok {
		code = invalid.Code
	}
	p, known := refusals[code]
	if !known {
		p.title = notPossible
	}
	switch {
	case p.text == "" && ok:
		p.text = sentence(invalid.Detail)
	case p.text == "":
		p.text = "Nothing was done."
	}
	return p.notice()
}

func backTo(path string) link {
	switch {
	case path == "/":
		return link{path, "All events"}
	case strings.HasPrefix(path, "/holds/"):
		return link{path, "Back to your seats"}
	case strings.HasPrefix(path, staffHome):
		return link{path, "Back to the pages for staff"}
	case strings.HasPrefix(path, "/bookings/"):
		return link{path, "Back to your booking"}
	}
	return link{path, "Back to the event"}
}

// sentence makes one of a detail of the domain.
func sentence(detail string) string {
	first, size := utf8.DecodeRuneInString(detail)
	return string(unicode.ToUpper(first)) + detail[size:] + "."
}
