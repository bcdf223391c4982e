package webui

import (
	"errors"
	"net/http"
	"strconv"

	"seatfence/booking"
)

// book confirms a hold for a name and an address. The form names the total that its visitor saw: another page may have changed the hold.
func (u *UI) book(v *visit) error {
	id, err := v.holdOf()
	if err != nil {
		return err
	}
	key, err := v.key()
	if err != nil {
		return err
	}
	ctx := v.Request().Context()
	page := holdPage{Name: v.form.Get("name"), Email: v.form.Get("email")}
	name, nameErr := booking.CleanName(page.Name)
	email, emailErr := booking.CleanEmail(page.Email)
	if nameErr != nil || emailErr != nil {
		page.NameFault, page.EmailFault = faultOf(nameErr), faultOf(emailErr)
		if page.Hold, err = u.Booking.GetHold(ctx, v.caller, id); err != nil {
			return err
		}
		return u.writeHold(v, http.StatusUnprocessableEntity, page)
	}
	total, err := strconv.ParseInt(v.form.Get("total"), 10, 64)
	if err != nil {
		return errForm
	}
	made, replayed, err := u.Booking.Book(ctx, v.caller, key, booking.BookRequest{Hold: &id, Name: name, Email: email, ExpectedTotal: &total})
	u.Result("createBooking", replayed, err)
	if err != nil {
		return u.changed(v, id, err)
	}
	return v.goTo(bookingURL(made.ID))
}

// faultOf is what a refused field is told.
func faultOf(err error) string {
	if invalid, ok := errors.AsType[*booking.InvalidError](err); ok {
		return sentence(invalid.Detail)
	}
	return ""
}

func bookingURL(id booking.BookingID) string { return "/bookings/" + id.String() }

type bookingPage struct {
	booking.Booking
	EventHead booking.Event
	Cancelled bool
}

func (u *UI) readBooking(v *visit) (page bookingPage, err error) {
	id, err := booking.ParseBookingID(v.Param("booking"))
	if err != nil {
		return page, err
	}
	ctx := v.Request().Context()
	if page.Booking, err = u.Booking.GetBooking(ctx, v.caller, id); err != nil {
		return page, err
	}
	page.Cancelled = page.Status == booking.BookingCancelled
	page.EventHead, err = u.Booking.EventHead(ctx, v.caller, id.Event)
	return page, err
}

// showBooking shows a booking of the buyer.
func (u *UI) showBooking(v *visit) error {
	page, err := u.readBooking(v)
	if err != nil {
		return err
	}
	return u.render(v, http.StatusOK, "booking", "Booking "+page.Number, page)
}

// askCancel asks before a booking is cancelled.
func (u *UI) askCancel(v *visit) error {
	page, err := u.readBooking(v)
	if err != nil {
		return err
	}
	if page.Cancelled {
		return v.goTo(bookingURL(page.ID))
	}
	return u.render(v, http.StatusOK, "cancel", "Cancel booking "+page.Number, page)
}

// cancel cancels a booking; one that is cancelled already is shown as that.
func (u *UI) cancel(v *visit) error {
	id, err := booking.ParseBookingID(v.Param("booking"))
	if err != nil {
		return err
	}
	v.back = bookingURL(id)
	_, err = u.Booking.Cancel(v.Request().Context(), v.caller, id)
	u.Result("cancelBooking", false, err)
	if err != nil && !errors.Is(err, booking.ErrBookingCancelled) {
		return err
	}
	return v.goTo(bookingURL(id))
}
