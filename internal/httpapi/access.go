package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/access"
	"seatfence/internal/session"
)

// Role is a set of who callers can be.
type Role int

// The roles.
const (
	Anonymous Role = 1 << iota // no credential
	Buyer                      // a session
	Partner                    // a partner's key
	Organizer                  // an organizer's key

	everybody = Anonymous | Buyer | Partner | Organizer
	known     = Buyer | Partner | Organizer
)

var roleNames = map[Role]string{Anonymous: "anonymous", Buyer: "buyer", Partner: "partner", Organizer: "organizer"}

func (r Role) String() string { return roleNames[r] }

// Access says who may use each operation of the contract, by its operationId. What is not here cannot be served. Whose event, hold or
// booking it is, the use case checks.
var Access = map[string]Role{
	"createSession":  everybody,
	"listEvents":     everybody,
	"createEvent":    Organizer,
	"getEvent":       everybody,
	"updateEvent":    Organizer,
	"setPrices":      Organizer,
	"changePlan":     Organizer,
	"listSeats":      everybody,
	"getSeat":        everybody,
	"getSeatHistory": Organizer,
	"createBlock":    Organizer,
	"deleteBlock":    Organizer,
	"createHold":     known,
	"getHold":        known,
	"changeHold":     known,
	"releaseHold":    known,
	"checkoutHold":   known,
	"listBookings":   known,
	"createBooking":  known,
	"getBooking":     known,
	"cancelBooking":  known,
	"health":         everybody,
	"ready":          everybody,

	"listVenues":     Organizer,
	"listPlans":      Organizer,
	"importPlan":     Organizer,
	"getPlan":        Organizer,
	"getPlanVersion": Organizer,
	"publishPlan":    Organizer,
}

const maxToken = 512

var errUnauthorized = refuse("unauthorized", "a valid API key or session token is needed")

// authenticate finds out who asks. A wrong Authorization header is refused even where none is needed, so that a client with a bad key
// learns of it; a cookie that has ended is as good as none, because the browser cannot help it.
func (s *server) authenticate(r *http.Request) (booking.Caller, Role, error) {
	headers := r.Header.Values(echo.HeaderAuthorization)
	if len(headers) == 0 {
		session, err := s.Sessions.FromCookie(r)
		if err != nil {
			return booking.Caller{Kind: booking.Buyer}, Anonymous, nil
		}
		return booking.Caller{Kind: booking.Buyer, ID: session.Buyer}, Buyer, nil
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if len(headers) > 1 || len(token) > maxToken || !strings.EqualFold(scheme, "Bearer") {
		return booking.Caller{}, Anonymous, errUnauthorized
	}
	switch {
	case strings.HasPrefix(token, session.Prefix):
		session, err := s.Sessions.Parse(token)
		if err != nil {
			return booking.Caller{}, Anonymous, errUnauthorized
		}
		return booking.Caller{Kind: booking.Buyer, ID: session.Buyer}, Buyer, nil
	case strings.HasPrefix(token, access.Prefix):
		caller, err := s.Keys.Lookup(r.Context(), token)
		if errors.Is(err, access.ErrUnknownKey) {
			err = errUnauthorized
		}
		if caller.Kind == booking.Organizer {
			return caller, Organizer, err
		}
		return caller, Partner, err
	}
	return booking.Caller{}, Anonymous, errUnauthorized
}

// allow refuses a role that is not in the set: 401 for those who may be somebody else, 403 for those who cannot.
func (r Role) allow(role Role) error {
	switch {
	case r&role != 0:
		return nil
	case role == Anonymous:
		return errUnauthorized
	}
	return booking.ErrForbidden
}

var sameOrigin = http.NewCrossOriginProtection()

// crossOrigin refuses writes that another site's page has its visitor's browser send. A request of the API with an Authorization header is
// not one, because it is not done for its cookie.
func crossOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if (forPage(r) || r.Header.Get(echo.HeaderAuthorization) == "") && sameOrigin.Check(r) != nil {
			return refuse("cross_origin", "another site's page sent this")
		}
		return next(c)
	}
}
