package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/access"
	"seatfence/internal/staff"
	"seatfence/internal/stream"
	"seatfence/realtime"
)

var errNoStream = refuse("unavailable", "this server has no stream at the moment")

// CreateStreamTicket answers POST /v1/stream/tickets.
func (s *server) CreateStreamTicket(ctx context.Context, r CreateStreamTicketRequestObject) (CreateStreamTicketResponseObject, error) {
	if s.Stream == nil {
		return nil, errNoStream
	}
	token := callOf(ctx).token
	switch {
	case r.Params.Key != nil && token != "":
		return nil, refuse("bad_request", "a ticket is for a token or for a page, not for both")
	case r.Params.Key != nil:
		token = pagePrefix + *r.Params.Key + " " + callOf(ctx).origin
		if err := s.onPage(ctx, &call{}, token); err != nil {
			return nil, err
		}
	case token == "":
		return nil, refuse("unauthorized", "a ticket is for who has a token; our own pages connect with their cookie")
	}
	ticket, expires := s.Stream.Tickets.Make(token)
	return CreateStreamTicket201JSONResponse{Ticket: ticket, ExpiresAt: expires}, nil
}

// ConnectStream answers GET /v1/stream.
func (s *server) ConnectStream(ctx context.Context, _ ConnectStreamRequestObject) (ConnectStreamResponseObject, error) {
	if s.Stream == nil {
		return nil, errNoStream
	}
	call := callOf(ctx)
	who := s.who(call)
	if session, err := s.Sessions.FromCookie(call.upgrade); who.Cookie && err == nil {
		who.Buyer = booking.Caller{Kind: booking.Buyer, ID: session.Buyer} // the browser of a user of the organizer buys as well
	}
	return connection{s.Stream, call.upgrade, who}, nil
}

// connection is the answer that takes its request's connection over.
type connection struct {
	stream *stream.Server
	r      *http.Request
	who    stream.Who
}

// VisitConnectStreamResponse upgrades the connection.
func (c connection) VisitConnectStreamResponse(w http.ResponseWriter) error {
	switch err := c.stream.Connect(w, c.r, c.who); {
	case errors.Is(err, realtime.ErrOrigin):
		return refuse("cross_origin", "pages of this origin may not connect")
	case errors.Is(err, realtime.ErrHandshake):
		return refuse("bad_request", "this is not the handshake of a WebSocket")
	case errors.Is(err, realtime.ErrFull):
		return refuse(codeOverloaded, "the server has as many connections as it may")
	case errors.Is(err, realtime.ErrDraining):
		return refuse("unavailable", "the server stops")
	case err != nil:
		return err
	}
	if answer, ok := w.(*echo.Response); ok {
		answer.Status, answer.Committed = http.StatusSwitchingProtocols, true
	}
	return nil
}

func (s *server) fromTicket(ctx context.Context, call *call, ticket string) error {
	if s.Stream == nil {
		return errNoStream
	}
	credential, err := s.Stream.Tickets.Take(ctx, ticket)
	switch {
	case errors.Is(err, stream.ErrTicket):
		return refuse("unauthorized", "no such ticket, or it has been used")
	case err != nil:
		return errNoStream // Redis cannot say whether it was used
	}
	if strings.HasPrefix(credential, pagePrefix) {
		return s.onPage(ctx, call, credential)
	}
	return s.identify(ctx, call, credential)
}

// pagePrefix begins what a ticket carries for a page of a partner's: a key's public id and the page's origin. It proves nothing, so it is no
// token that a request could be signed with: only what a ticket has sealed is believed.
const pagePrefix = "page "

// onPage makes a viewer on a partner's page the caller, if the key still lists the page's origin.
func (s *server) onPage(ctx context.Context, call *call, credential string) error {
	id, origin, _ := strings.Cut(strings.TrimPrefix(credential, pagePrefix), " ")
	organizer, err := s.Keys.Page(ctx, id, origin)
	if errors.Is(err, access.ErrOrigin) {
		return refuse("cross_origin", "there is no such key, or it does not list the page's origin")
	}
	if err != nil {
		return err
	}
	call.token, call.role = credential, Viewer
	call.caller.Kind = booking.Buyer
	call.page = &stream.Page{Organizer: organizer, Origin: origin}
	return nil
}

// who is a caller as the stream has to know them. It keeps nothing of the request, because it lives as long as the connection.
func (s *server) who(by *call) stream.Who {
	who := stream.Who{Caller: by.caller, Buyer: by.caller, Editor: by.role&editors != 0, Cookie: by.token == "", Page: by.page}
	switch {
	case by.page != nil:
		who.Kind, who.ID = "page", strings.TrimPrefix(by.token, pagePrefix)
	case by.secret != "":
		who.Kind, who.ID, who.Name = "user", staff.FormatID(by.caller.ID), by.name
	case by.role == Buyer:
		who.Kind, who.ID = "buyer", by.caller.ID.String()
	default:
		who.Kind, who.ID = "key", access.FormatID(by.caller.ID)
		who.Name = who.ID
	}
	token, secret := by.token, by.secret
	who.Again = func(ctx context.Context) (again stream.Who, err error) {
		now := &call{}
		if token != "" {
			err = s.identify(ctx, now, token)
		} else {
			err = s.asStaff(ctx, now, secret)
		}
		switch {
		case errors.Is(err, errUnauthorized), errors.Is(err, staff.ErrNoSession):
			return stream.Who{}, stream.ErrSignIn
		case err != nil:
			return stream.Who{}, err
		}
		return s.who(now), nil
	}
	return who
}
