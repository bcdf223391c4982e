package webui

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/staff"
)

// The addresses of the pages for staff.
const (
	staffHome      = "/staff"
	staffSignIn    = "/staff/sign-in"
	staffForgotten = "/staff/forgotten"
	staffPassword  = "/staff/password"
	staffSignOut   = "/staff/sign-out"
)

// registerStaff adds the pages for staff. A user who has signed in is known by a cookie of its own, beside that of the buyer.
func (u *UI) registerStaff(e *echo.Echo) {
	for path, handlers := range map[string]struct{ get, post func(*visit) error }{
		staffHome:              {get: u.staffHome},
		staffSignIn:            {get: u.askSignIn, post: u.signIn},
		staffForgotten:         {get: u.askForgotten, post: u.forgotten},
		staffPassword:          {get: u.askPassword, post: u.setPassword},
		staffSignOut:           {get: func(v *visit) error { return v.goTo(staffHome) }, post: u.signOut},
		"/configurator/:event": {get: u.configurator},
	} {
		e.Match([]string{http.MethodGet, http.MethodHead}, path, u.page(fromStaff(handlers.get)))
		if handlers.post != nil {
			e.POST(path, u.page(fromStaff(handlers.post)))
		}
	}
}

func fromStaff(h func(*visit) error) func(*visit) error {
	return func(v *visit) error {
		v.back = staffHome
		return h(v)
	}
}

// signForm is the form to sign in, or to ask for a new password.
type signForm struct {
	Email string
	Fault string
	Sent  bool
}

// writeStaff writes a page for staff, without a buyer's reminders.
func (u *UI) writeStaff(v *visit, status int, name, title string, page any) error {
	return u.write(v, status, name, layout{Title: title, Page: page})
}

func (u *UI) askSignIn(v *visit) error {
	if _, err := u.user(v); err == nil {
		return v.goTo(staffHome)
	}
	return u.writeStaff(v, http.StatusOK, "sign-in", "Sign in", signForm{})
}

// user is the session of the user who has signed in; staff.ErrNoSession if nobody has.
func (u *UI) user(v *visit) (staff.Session, error) {
	return u.Staff.Lookup(v.Request().Context(), u.Staff.FromCookie(v.Request()))
}

// signIn starts a session and ends the one that the browser may have had.
func (u *UI) signIn(v *visit) error {
	ctx, email := v.Request().Context(), v.form.Get("email")
	secret, session, err := u.Staff.SignIn(ctx, email, v.form.Get("password"))
	u.Result("signIn", false, err)
	if status, fault := staffFault(v, err); fault != "" {
		return u.writeStaff(v, status, "sign-in", "Sign in", signForm{Email: email, Fault: fault})
	}
	if err != nil {
		return err
	}
	return u.welcome(v, secret, session)
}

func (u *UI) welcome(v *visit, secret string, session staff.Session) error {
	if old := u.Staff.FromCookie(v.Request()); old != "" {
		if err := u.Staff.SignOut(v.Request().Context(), old); err != nil {
			return err
		}
	}
	v.SetCookie(u.Staff.Cookie(secret, session.ExpiresAt))
	return v.goTo(staffHome)
}

// staffFault is what the form that was refused is told, with the status of its page; nothing for an error that is not about the form.
func staffFault(v *visit, err error) (status int, fault string) {
	if wait, ok := errors.AsType[*staff.WaitError](err); ok {
		seconds := int(math.Ceil(wait.Wait.Seconds()))
		v.Response().Header().Set("Retry-After", strconv.Itoa(seconds))
		if seconds == 1 {
			return http.StatusTooManyRequests, "There were too many attempts. Try again in a second."
		}
		return http.StatusTooManyRequests, fmt.Sprintf("There were too many attempts. Try again in %d seconds.", seconds)
	}
	if errors.Is(err, staff.ErrWrongPassword) {
		return http.StatusUnprocessableEntity, sentence(staff.ErrWrongPassword.Error())
	}
	return http.StatusUnprocessableEntity, faultOf(err)
}

// signOut ends the session here and in the browser.
func (u *UI) signOut(v *visit) error {
	err := u.Staff.SignOut(v.Request().Context(), u.Staff.FromCookie(v.Request()))
	u.Result("signOut", false, err)
	if err != nil {
		return err
	}
	v.SetCookie(u.Staff.Cookie("", time.Time{}))
	return v.goTo(staffSignIn)
}

func (u *UI) askForgotten(v *visit) error {
	return u.writeStaff(v, http.StatusOK, "forgotten", "New password", signForm{Sent: v.query.Has("sent")})
}

// forgotten answers the same whoever's the address is.
func (u *UI) forgotten(v *visit) error {
	email := v.form.Get("email")
	err := u.Staff.Forgot(v.Request().Context(), email)
	if status, fault := staffFault(v, err); fault != "" {
		return u.writeStaff(v, status, "forgotten", "New password", signForm{Email: email, Fault: fault})
	}
	if err != nil {
		return err
	}
	return v.goTo(staffForgotten + "?sent=yes")
}

// passwordForm is the form to choose a password. Token is that of the link, and a secret.
type passwordForm struct {
	Token string
	User  staff.User
	Fault string
	Least int
}

func (u *UI) askPassword(v *visit) error {
	return u.writePassword(v, v.query.Get("token"), http.StatusOK, "")
}

func (u *UI) writePassword(v *visit, token string, status int, fault string) error {
	user, err := u.Staff.Linked(v.Request().Context(), token)
	if errors.Is(err, staff.ErrBadToken) {
		return u.linkOver(v)
	}
	if err != nil {
		return err
	}
	return u.writeStaff(v, status, "password", "Choose a password", passwordForm{token, user, fault, staff.MinPassword})
}

// linkOver says that a link does not work, and how to get one that does.
func (u *UI) linkOver(v *visit) error {
	const title = "This link is over"
	return u.writeStaff(v, http.StatusGone, "notice", title, notice{
		Title: title, Text: []string{"It was used already, a newer mail has replaced it, or it is too old."},
		Links: []link{{staffForgotten, "Get a new link"}, {staffSignIn, "Sign in"}},
	})
}

func (u *UI) setPassword(v *visit) error {
	token := v.form.Get("token")
	if v.form.Get("password") != v.form.Get("again") {
		return u.writePassword(v, token, http.StatusUnprocessableEntity, "The two passwords are not the same.")
	}
	secret, session, err := u.Staff.SetPassword(v.Request().Context(), token, v.form.Get("password"))
	if errors.Is(err, staff.ErrBadToken) {
		return u.linkOver(v)
	}
	if status, fault := staffFault(v, err); fault != "" {
		return u.writePassword(v, token, status, fault)
	}
	if err != nil {
		return err
	}
	return u.welcome(v, secret, session)
}

var roleWords = map[string]string{
	staff.Owner: "Owner", staff.Editor: "Editor", staff.BoxOffice: "Box office", staff.Door: "Door",
}

type staffPage struct {
	User   staff.User
	Role   string
	Scope  string
	Events eventsPage
}

// Edits reports whether the user may change events.
func (p staffPage) Edits() bool { return p.User.Role == staff.Owner || p.User.Role == staff.Editor }

// staffHome says who has signed in, and leads to their events.
func (u *UI) staffHome(v *visit) error {
	session, err := u.user(v)
	if errors.Is(err, staff.ErrNoSession) {
		return v.goTo(staffSignIn)
	}
	if err != nil {
		return err
	}
	page := staffPage{User: session.User, Role: roleWords[session.User.Role], Scope: "All events"}
	if n := len(session.User.Events); n == 1 {
		page.Scope = "1 event"
	} else if !session.User.EveryEvent {
		page.Scope = fmt.Sprintf("%d events", n)
	}
	if page.Events, err = u.eventList(v, session.User.Caller(), staffHome); err != nil {
		return err
	}
	return u.writeStaff(v, http.StatusOK, "staff", "Staff", page)
}

// Draft reports whether buyers cannot see the event.
func (e eventEntry) Draft() bool { return e.Status == booking.StatusDraft }
