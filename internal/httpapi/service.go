package httpapi

import (
	"context"
	"time"
)

// CreateSession answers POST /v1/sessions.
func (s *server) CreateSession(context.Context, CreateSessionRequestObject) (CreateSessionResponseObject, error) {
	token, session := s.Sessions.New()
	return CreateSession201JSONResponse{
		Body:    Session{Id: session.Buyer.String(), Token: token, ExpiresAt: session.ExpiresAt, ServerTime: time.Now().UTC()},
		Headers: CreateSession201ResponseHeaders{SetCookie: s.Sessions.Cookie(token, session).String()},
	}, nil
}

// Health answers GET /healthz.
func (s *server) Health(context.Context, HealthRequestObject) (HealthResponseObject, error) {
	return Health200JSONResponse{Status: "ok"}, nil
}

// Ready answers GET /readyz.
func (s *server) Ready(ctx context.Context, _ ReadyRequestObject) (ReadyResponseObject, error) {
	state := s.State(ctx)
	answer := Readiness{Status: "ready", Postgres: "ok", Redis: state.Redis}
	if state.Postgres != nil {
		answer.Status, answer.Postgres = "unavailable", "down"
		return Ready503JSONResponse(answer), nil
	}
	return Ready200JSONResponse(answer), nil
}
