// Package webui is the pages, rendered on the server and whole without a script (with one they are live): for buyers events, seats, a hold with its time and the
// booking, for staff a sign-in. A handler reads a form or an address, calls one use case of package booking, and answers with a page or, after a write, with a
// redirect to one. Nothing here decides about a seat or knows SQL, and a visitor never sees an error that is not in words.
package webui

import (
	"encoding/base64"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/session"
	"seatfence/internal/shed"
	"seatfence/internal/staff"
)

const (
	maxForm      = 16 << 10 // bytes
	maxKey       = 64       // characters of a form's key
	maxOpenHolds = 5        // that a browser is reminded of
)

// Deps are what the pages stand on. All are needed.
type Deps struct {
	Booking  *booking.Service
	Gate     *shed.Gate
	Sessions *session.Signer
	Staff    *staff.Staff
	// Result counts the outcome of a write, under the name that the API has for it.
	Result func(operation string, replayed bool, err error)
}

// UI is the pages.
type UI struct{ Deps }

// New returns the pages.
func New(deps Deps) *UI { return &UI{deps} }

// Register adds the pages to e, at "/", "/events", "/holds", "/bookings", "/staff", "/assets" and "/static". The middleware of e turns away forms of other
// sites and sets the headers of every answer; its error handler has Refuse write what a page returns as an error.
func (u *UI) Register(e *echo.Echo) {
	get := func(path string, h func(*visit) error) {
		e.Match([]string{http.MethodGet, http.MethodHead}, path, u.page(h))
	}
	post := func(path string, h func(*visit) error) {
		e.POST(path, u.page(h))
		get(path, leadBack) // the address of a refusal, asked for again
	}
	get("/", u.events)
	get("/events/:event", u.event)
	get("/events/:event/seats", u.section)
	get("/events/:event/tickets", u.tickets)
	post("/events/:event/holds", u.hold)
	get("/holds/:hold", u.showHold)
	post("/holds/:hold/drop", u.drop)
	post("/holds/:hold/extend", u.extend)
	post("/holds/:hold/release", u.release)
	post("/holds/:hold/book", u.book)
	get("/bookings/:booking", u.showBooking)
	get("/bookings/:booking/cancel", u.askCancel)
	e.POST("/bookings/:booking/cancel", u.page(u.cancel))
	u.registerStaff(e)
	registerScripts(e)
	e.Match([]string{http.MethodGet, http.MethodHead}, stylePath, serveStyle)
}

// leadBack goes to the page whose form was sent to this address.
func leadBack(v *visit) error {
	path := v.Request().URL.EscapedPath()
	return v.goTo(path[:strings.LastIndexByte(path, '/')])
}

// visitKey is where the context of a request keeps its visit.
const visitKey = "visit"

// visit is one request of a buyer.
type visit struct {
	echo.Context
	session session.Session
	caller  booking.Caller
	form    url.Values // of a POST
	query   url.Values
	back    string // where a refusal leads to: the page the visitor came from, as far as that is known
}

// page puts around a handler what all pages share: limits and the session.
func (u *UI) page(h func(*visit) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		v := &visit{Context: c, back: "/"}
		c.Set(visitKey, v)
		if err := u.admit(v); err != nil {
			return err
		}
		return h(v)
	}
}

// What of a request is refused before it reaches a use case.
var (
	errMediaType = echo.ErrUnsupportedMediaType
	errForm      = echo.ErrBadRequest // or the address is malformed
	errFormSize  = echo.ErrStatusRequestEntityTooLarge
)

// admit reads a request up to its handler. A session begins with the first page, not with the first form, so that two clicks on that
// form come from one buyer.
func (u *UI) admit(v *visit) (err error) {
	r := v.Request()
	if v.session, err = u.Sessions.FromCookie(r); err != nil {
		var token string
		token, v.session = u.Sessions.New()
		v.SetCookie(u.Sessions.Cookie(token, v.session))
	}
	v.caller = booking.Caller{Kind: booking.Buyer, ID: v.session.Buyer}
	if v.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return errForm
	}
	if r.Method != http.MethodPost {
		return nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if err != nil || media != echo.MIMEApplicationForm {
		return errMediaType
	}
	r.Body = http.MaxBytesReader(v.Response().Writer, r.Body, maxForm)
	err = r.ParseForm()
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errFormSize
	}
	if err != nil {
		return errForm
	}
	v.form = r.PostForm
	return nil
}

// key is the idempotency key of a form that creates something. The random part was rendered into the form; what the visitor chose is
// part of the key too, because a browser that goes back may show the same form again for another choice.
func (v *visit) key() (booking.Idempotency, error) {
	nonce := v.form.Get("key")
	if nonce == "" || len(nonce) > maxKey || strings.Trim(nonce, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return booking.Idempotency{}, errForm
	}
	key := booking.NewIdempotency(nonce, []byte(v.Request().Method), []byte(v.Request().URL.Path), []byte(v.choices()))
	key.Key += "." + base64.RawURLEncoding.EncodeToString(key.Fingerprint)
	return key, nil
}

// choices is the form without its key, in one order. The session of the page is no choice: it is another after each reconnect.
func (v *visit) choices() string {
	rest := url.Values{}
	for name, values := range v.form {
		if name != "key" && name != "session" {
			rest[name] = values
		}
	}
	return rest.Encode()
}

// goTo ends a write: a reload of the page it leads to does not send the form again.
func (v *visit) goTo(path string) error { return v.Redirect(http.StatusSeeOther, path) }

const (
	holdsCookie   = "seatfence_holds"
	holdsRemember = time.Hour // longer than any hold lives
)

// remember notes a hold in the browser, so that other pages can lead back to it. It is a reminder only: whose hold it is, Postgres knows.
func (u *UI) remember(v *visit, id booking.HoldID) {
	ids := []string{id.String()}
	for _, known := range v.noted() {
		if known != id && len(ids) < maxOpenHolds {
			ids = append(ids, known.String())
		}
	}
	cookie := u.Sessions.Cookie(strings.Join(ids, "."), v.session) // travels as the session does
	cookie.Name, cookie.Expires, cookie.MaxAge = holdsCookie, time.Time{}, int(holdsRemember.Seconds())
	v.SetCookie(cookie)
}

func (v *visit) noted() (ids []booking.HoldID) {
	cookie, err := v.Cookie(holdsCookie)
	if err != nil {
		return nil
	}
	for text := range strings.SplitSeq(cookie.Value, ".") {
		if id, err := booking.ParseHoldID(text); err == nil && len(ids) < maxOpenHolds {
			ids = append(ids, id)
		}
	}
	return ids
}

// openHolds are the buyer's live holds that the browser remembers. A hold that cannot be read is left out: the page is about something else.
func (u *UI) openHolds(v *visit) (open []booking.Hold) {
	for _, id := range v.noted() {
		hold, err := u.Booking.GetHold(v.Request().Context(), v.caller, id)
		if err == nil && hold.Status == booking.HoldOpen {
			open = append(open, hold)
		}
	}
	return open
}
