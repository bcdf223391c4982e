package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/access"
	"seatfence/internal/session"
	"seatfence/internal/staff"
)

// Role is a set of who callers can be.
type Role int

// The roles.
const (
	Anonymous Role = 1 << iota // no credential
	Buyer                      // a session
	Partner                    // a partner's key
	Organizer                  // an organizer's key
	Owner                      // a user of the organizer, from here on
	Editor
	BoxOffice
	Door
	Viewer // nobody in particular, on a partner's page: known by a ticket of the stream alone

	owners    = Organizer | Owner
	editors   = owners | Editor
	sellers   = owners | BoxOffice
	people    = Owner | Editor | BoxOffice | Door
	buying    = Buyer | Partner | sellers
	known     = Buyer | Partner | Organizer | people
	everybody = Anonymous | known
)

var roleNames = map[Role]string{
	Anonymous: "anonymous", Buyer: "buyer", Partner: "partner", Organizer: "organizer",
	Owner: staff.Owner, Editor: staff.Editor, BoxOffice: staff.BoxOffice, Door: staff.Door, Viewer: "viewer",
}

func (r Role) String() string { return roleNames[r] }

// roleOf is the role of a user.
var roleOf = map[string]Role{staff.Owner: Owner, staff.Editor: Editor, staff.BoxOffice: BoxOffice, staff.Door: Door}

// Access says who may use each operation of the contract, by its operationId. What is not here cannot be served. Whose event, hold or
// booking it is, the use case checks.
var Access = map[string]Role{
	"createSession":      everybody,
	"createStreamTicket": known | Anonymous, // who is on a page that a key lists
	"connectStream":      known | Viewer,
	"listEvents":         everybody,
	"createEvent":        editors,
	"getEvent":           everybody,
	"updateEvent":        editors,
	"setPrices":          editors,
	"changePlan":         editors,
	"listSeats":          everybody,
	"listChanges":        everybody,
	"getMap":             everybody,
	"getSeat":            everybody,
	"getSeatHistory":     editors | BoxOffice,
	"createBlock":        editors | BoxOffice,
	"deleteBlock":        editors | BoxOffice,
	"listChannels":       editors,
	"createChannel":      editors,
	"getChannel":         editors,
	"updateChannel":      editors,
	"deleteChannel":      editors,
	"createHold":         buying,
	"getHold":            buying,
	"changeHold":         buying,
	"releaseHold":        buying,
	"checkoutHold":       buying,
	"listBookings":       known,
	"createBooking":      buying,
	"getBooking":         known,
	"cancelBooking":      buying,
	"listVenues":         editors,
	"listPlans":          editors,
	"importPlan":         editors,
	"getPlan":            editors,
	"getPlanVersion":     editors,
	"publishPlan":        editors,
	"signIn":             everybody,
	"signOut":            people,
	"listStaff":          owners,
	"inviteStaff":        owners,
	"changeStaff":        owners,
	"removeStaff":        owners,
	"listAudit":          owners,
	"health":             everybody,
	"ready":              everybody,
	"getDraft":           editors,
	"saveDraft":          editors,
	"takeEdit":           editors,
	"addDraftItem":       editors,
	"removeDraftItem":    editors,
	"getDraftPage":       editors,
	"saveDraftPage":      editors,
	"publishDraft":       editors,
}

const maxToken = 512

var errUnauthorized = refuse("unauthorized", "a valid API key or session is needed")

// authenticate finds out who asks. A wrong Authorization header is refused even where none is needed, so that a client with a bad key
// learns of it; a cookie that has ended is as good as none, because the browser cannot help it. Of two cookies that of staff wins: it says
// more of who asks.
func (s *server) authenticate(r *http.Request, call *call) error {
	if ticket := r.URL.Query().Get("ticket"); call.upgrade != nil && ticket != "" {
		return s.fromTicket(r.Context(), call, ticket)
	}
	headers := r.Header.Values(echo.HeaderAuthorization)
	if len(headers) == 0 {
		return s.fromCookies(r, call)
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if len(headers) > 1 || len(token) > maxToken || !strings.EqualFold(scheme, "Bearer") {
		return errUnauthorized
	}
	return s.identify(r.Context(), call, token)
}

// identify finds out whose a token is.
func (s *server) identify(ctx context.Context, call *call, token string) error {
	call.token = token
	switch {
	case strings.HasPrefix(token, session.Prefix):
		session, err := s.Sessions.Parse(token)
		if err != nil {
			return errUnauthorized
		}
		call.caller, call.role = booking.Caller{Kind: booking.Buyer, ID: session.Buyer}, Buyer
		return nil
	case strings.HasPrefix(token, staff.Prefix):
		err := s.asStaff(ctx, call, token)
		if errors.Is(err, staff.ErrNoSession) {
			err = errUnauthorized
		}
		return err
	case strings.HasPrefix(token, access.Prefix):
		caller, err := s.Keys.Lookup(ctx, token)
		if errors.Is(err, access.ErrUnknownKey) {
			err = errUnauthorized
		}
		call.caller, call.role = caller, Partner
		if caller.Kind == booking.Organizer {
			call.role = Organizer
		}
		return err
	}
	return errUnauthorized
}

func (s *server) fromCookies(r *http.Request, call *call) error {
	if secret := s.Staff.FromCookie(r); secret != "" {
		if err := s.asStaff(r.Context(), call, secret); !errors.Is(err, staff.ErrNoSession) {
			return err
		}
	}
	call.caller.Kind = booking.Buyer
	if session, err := s.Sessions.FromCookie(r); err == nil {
		call.caller.ID, call.role = session.Buyer, Buyer
	}
	return nil
}

// asStaff makes the user of a session the caller.
func (s *server) asStaff(ctx context.Context, call *call, secret string) error {
	session, err := s.Staff.Lookup(ctx, secret)
	if err != nil {
		return err
	}
	call.caller, call.role, call.secret, call.name = session.User.Caller(), roleOf[session.User.Role], secret, session.User.Name
	return nil
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
