package webui

import (
	"errors"
	"net/http"

	"seatfence/booking"
	"seatfence/internal/staff"
	"seatfence/seats"
)

// configuratorPage is the frame of the page on which staff edit an event together. What is in it, and who is there, its script asks for.
type configuratorPage struct {
	Event booking.Event
	User  string // the id
}

func (u *UI) configurator(v *visit) error {
	session, err := u.user(v)
	if errors.Is(err, staff.ErrNoSession) {
		return v.goTo(staffSignIn)
	}
	if err != nil {
		return err
	}
	id, err := seats.ParseEventID(v.Param("event"))
	if err != nil {
		return err
	}
	event, err := u.Booking.EventHead(v.Request().Context(), session.User.Caller(), id)
	if err != nil {
		return err
	}
	return u.writeStaff(v, http.StatusOK, "configurator", "Edit "+event.Name, configuratorPage{event, staff.FormatID(session.User.ID)})
}
