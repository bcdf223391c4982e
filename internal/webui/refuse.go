package webui

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/seats"
)

// notice is the page that says why something was not done, and what to do next. Text are paragraphs under the title.
type notice struct {
	status     int
	retryAfter int // in seconds; 0 says that asking again does not help by itself
	Title      string
	Text       []string
	Links      []link
	Offer      *offer
}

type link struct{ URL, Text string }

// answers are the errors that a visitor can meet, in words. What is not here is our own fault.
var answers = []struct {
	err         error
	status      int
	retryAfter  int
	title, text string
}{
	{errForeign, 403, 0, "This form came from another site", "Nothing was done. Open the page here and send the form from it."},
	{errMediaType, 415, 0, "We could not read this form", "Nothing was done. Open the page again and send the form from it."},
	{errForm, 400, 0, "We could not read this form", "Nothing was done. Open the page again and choose once more."},
	{errFormSize, 413, 0, "This form is too long", "Nothing was done. Open the page again and choose fewer seats."},
	{errNoChoice, 422, 0, "Choose at least one seat", "Tick the seats you want, then hold them."},
	{errQuantity, 422, 0, "How many places do you want?", "Give their number in figures, for example 2."},
	{errChanged, 409, 0, "Your seats have changed", "They are not what the page showed. Nothing was booked: look at them again, then book."},
	{
		booking.ErrNotFound, 404, 0, "There is nothing here",
		"The address is unknown, or it is about seats of someone else. Seats and bookings are shown only in the browser that took them, and only while it keeps our cookie.",
	},
	{seats.ErrBadID, 404, 0, "There is nothing here", "The address is not complete, or it was never one of ours."},
	{booking.ErrForbidden, 403, 0, "This is not for buyers", "Nothing was done."},
	{booking.ErrEventPaused, 409, 0, "The sale is paused", "Nothing was changed. Seats that you hold stay yours until their time is up."},
	{booking.ErrEventEnded, 409, 0, "This event is over", "Nothing more is sold for it."},
	{booking.ErrEventCancelled, 409, 0, "This event is cancelled", "Nothing more is sold for it."},
	{booking.ErrSaleNotStarted, 409, 0, "The sale has not started yet", "The event's page says when it does."},
	{booking.ErrSaleEnded, 409, 0, "The sale has ended", "Nothing more is sold for this event."},
	{booking.ErrPaymentRequired, 403, 0, "These seats have to be paid for", "This page cannot take a payment yet. Nothing was booked."},
	{booking.ErrHoldExpired, 410, 0, "Your time is up", "The seats are free again."},
	{booking.ErrHoldClosed, 409, 0, "These seats are no longer on hold", "They have been booked or given back."},
	{booking.ErrHoldLimit, 409, 0, "You are holding as many seats as one buyer can", "Book or give back some of them first."},
	{booking.ErrExtensionLimit, 409, 0, "There is no more time to give", "The seats stay yours until the time that is shown with them."},
	{booking.ErrPriceChanged, 409, 0, "The price has changed", "Nothing was booked. Look at the new price first."},
	{booking.ErrSoldOut, 409, 0, "There are not that many places left", "The event's page shows how many there are now."},
	{booking.ErrBookingCancelled, 409, 0, "This booking is cancelled already", ""},
	{booking.ErrKeyReused, 422, 0, "This form was sent before with another choice", "Open the page again and choose once more."},
	{booking.ErrKeyInProgress, 409, 1, "We are still at it", "You have sent this form twice, and the first one is not done. Look again in a moment."},
	{booking.ErrUnavailable, 503, 1, "We cannot answer right now", "Nothing of yours is lost. Try again in a moment."},
	{context.DeadlineExceeded, 503, 1, "This takes too long", "Too many people are here at once. Try again in a moment."},
}

// statusClientGone is for the log alone: nobody is there to read the page.
const statusClientGone = 499

// refuse writes the page for an error, and logs what is our own fault.
func (u *ui) refuse(v *visit, err error) error {
	ctx := v.Request().Context()
	n := noticeOf(err)
	if n.status >= http.StatusInternalServerError {
		if errors.Is(ctx.Err(), context.Canceled) {
			return v.NoContent(statusClientGone)
		}
		u.Log.LogAttrs(ctx, slog.LevelError, "page failed",
			slog.String("request_id", v.Response().Header().Get(echo.HeaderXRequestID)), slog.Any("error", err))
	}
	n.Links = append(n.Links, backTo(v.back))
	return u.notify(v, n)
}

func backTo(path string) link {
	switch {
	case path == "/":
		return link{path, "All events"}
	case strings.HasPrefix(path, "/holds/"):
		return link{path, "Back to your seats"}
	case strings.HasPrefix(path, "/bookings/"):
		return link{path, "Back to your booking"}
	}
	return link{path, "Back to the event"}
}

func (u *ui) notify(v *visit, n notice) error {
	if n.retryAfter > 0 {
		v.Response().Header().Set("Retry-After", strconv.Itoa(n.retryAfter))
	}
	l := layout{Title: n.Title, Page: n}
	if n.status < http.StatusInternalServerError { // what fails now would fail again in the reminder
		l.Open = u.openHolds(v)
	}
	return u.write(v, n.status, "notice", l)
}

func noticeOf(err error) notice {
	if invalid, ok := errors.AsType[*booking.InvalidError](err); ok {
		return notice{status: http.StatusUnprocessableEntity, Title: "This is not possible", Text: []string{sentence(invalid.Detail)}}
	}
	if refusal, ok := errors.AsType[*booking.SeatsError](err); ok {
		return noticeOfSeats(refusal)
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return notice{status: a.status, retryAfter: a.retryAfter, Title: a.title, Text: []string{a.text}}
		}
	}
	return notice{
		status: http.StatusInternalServerError, Title: "Something went wrong on our side",
		Text: []string{"We have made a note of it. Look at your seats again before you try once more."},
	}
}

// noticeOfSeats is for refusals where there is nothing to offer instead: a hold's own seats are in the way.
func noticeOfSeats(refusal *booking.SeatsError) notice {
	if refusal.Code == booking.CodeSeatBusy {
		return notice{
			status: http.StatusConflict, retryAfter: 1, Title: "These seats are being changed right now",
			Text: []string{"Nothing was done. Try again in a moment."},
		}
	}
	return notice{
		status: http.StatusConflict, Title: "Not all of these seats are yours any more",
		Text: []string{"Nothing was booked. Choose again from those that are free."},
	}
}

// sentence makes one of a detail of the domain.
func sentence(detail string) string {
	first, size := utf8.DecodeRuneInString(detail)
	return string(unicode.ToUpper(first)) + detail[size:] + "."
}
