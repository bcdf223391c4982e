package httpapi

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seatfence/internal/access"
	"seatfence/internal/staff"
	"seatfence/seats"
)

// SignIn answers POST /v1/sessions/staff.
func (s *server) SignIn(ctx context.Context, r SignInRequestObject) (SignInResponseObject, error) {
	secret, session, err := s.Staff.SignIn(ctx, r.Body.Email, r.Body.Password)
	if err != nil {
		return nil, err
	}
	return SignIn201JSONResponse{
		Body:    StaffSession{Token: secret, User: staffUserOf(session.User), Role: session.User.Role, ExpiresAt: session.ExpiresAt},
		Headers: SignIn201ResponseHeaders{SetCookie: s.Staff.Cookie(secret, session.ExpiresAt).String()},
	}, nil
}

// SignOut answers DELETE /v1/sessions/staff.
func (s *server) SignOut(ctx context.Context, _ SignOutRequestObject) (SignOutResponseObject, error) {
	err := s.Staff.SignOut(ctx, callOf(ctx).secret)
	return SignOut204Response{SignOut204ResponseHeaders{SetCookie: s.Staff.Cookie("", time.Time{}).String()}}, err
}

// ListStaff answers GET /v1/staff.
func (s *server) ListStaff(ctx context.Context, _ ListStaffRequestObject) (ListStaffResponseObject, error) {
	users, err := s.Staff.List(ctx, callOf(ctx).caller.Organizer)
	answer := StaffList{Users: make([]StaffUser, len(users))}
	for i, u := range users {
		answer.Users[i] = staffUserOf(u)
	}
	return ListStaff200JSONResponse(answer), err
}

// InviteStaff answers POST /v1/staff.
func (s *server) InviteStaff(ctx context.Context, r InviteStaffRequestObject) (InviteStaffResponseObject, error) {
	call, b := callOf(ctx), r.Body
	events, err := eventIDs(b.Events)
	if err != nil {
		return nil, err
	}
	user, replayed, err := s.Staff.Invite(ctx, call.caller, call.key, staff.NewUser{
		Email: b.Email, Name: b.Name, Role: b.Role, EveryEvent: b.EveryEvent, Events: events,
	})
	return InviteStaff201JSONResponse{Body: staffUserOf(user), Headers: InviteStaff201ResponseHeaders{replay(replayed)}}, err
}

// ChangeStaff answers PATCH /v1/staff/{user}.
func (s *server) ChangeStaff(ctx context.Context, r ChangeStaffRequestObject) (ChangeStaffResponseObject, error) {
	id, err := staff.ParseID(r.User)
	if err != nil {
		return nil, err
	}
	events, err := eventIDs(r.Body.Events)
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).caller
	user, err := s.Staff.Change(ctx, staff.ActorOf(caller), caller.Organizer, id, staff.Change{
		Role: r.Body.Role, EveryEvent: r.Body.EveryEvent, Events: events,
	})
	return ChangeStaff200JSONResponse(staffUserOf(user)), err
}

// RemoveStaff answers DELETE /v1/staff/{user}.
func (s *server) RemoveStaff(ctx context.Context, r RemoveStaffRequestObject) (RemoveStaffResponseObject, error) {
	id, err := staff.ParseID(r.User)
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).caller
	return RemoveStaff204Response{}, s.Staff.Remove(ctx, staff.ActorOf(caller), caller.Organizer, id)
}

func eventIDs(texts *[]string) (ids []seats.EventID, err error) {
	if texts == nil {
		return nil, nil
	}
	for i, text := range *texts {
		id, err := seats.ParseEventID(text)
		if err != nil {
			return nil, invalid(fmt.Sprintf("/events/%d", i), "unknown_event", "the event is unknown")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func staffUserOf(u staff.User) StaffUser {
	user := StaffUser{
		Id: staff.FormatID(u.ID), Email: u.Email, Name: u.Name, Role: u.Role, EveryEvent: u.EveryEvent, Active: u.Active, CreatedAt: u.CreatedAt,
	}
	if !u.EveryEvent {
		ids := make([]string, len(u.Events))
		for i, id := range u.Events {
			ids[i] = id.String()
		}
		user.Events = &ids
	}
	return user
}

// auditPage is where the log goes on.
type auditPage struct {
	Before uuid.UUID `json:"b"`
}

// ListAudit answers GET /v1/audit.
func (s *server) ListAudit(ctx context.Context, r ListAuditRequestObject) (ListAuditResponseObject, error) {
	page := auditPage{staff.Newest}
	var event *seats.EventID
	if r.Params.Event != nil {
		id, err := seats.ParseEventID(*r.Params.Event)
		if err != nil {
			return nil, err
		}
		event = &id
	}
	if r.Params.Cursor != nil {
		var err error
		if page, err = readCursor[auditPage](*r.Params.Cursor); err != nil {
			return nil, err
		}
	}
	n := pageSize(r.Params.Limit)
	found, err := s.Staff.Log(ctx, callOf(ctx).caller.Organizer, event, page.Before, n+1)
	if err != nil {
		return nil, err
	}
	answer := AuditList{Entries: make([]AuditEntry, 0, n)}
	for _, e := range found[:min(n, len(found))] {
		answer.Entries = append(answer.Entries, auditEntryOf(e))
	}
	if len(found) > n {
		answer.NextCursor, err = cursorOf(auditPage{found[n-1].ID})
	}
	return ListAudit200JSONResponse(answer), err
}

func auditEntryOf(e staff.Entry) AuditEntry {
	entry := AuditEntry{Id: e.ID.String(), At: e.At, ActorKind: e.Actor.Kind, Action: e.Action, Subject: e.Subject, Detail: e.Detail}
	if e.Actor.ID != nil {
		actor := staff.FormatID(*e.Actor.ID)
		if e.Actor.Kind == staff.ActorKey {
			actor = access.FormatID(*e.Actor.ID)
		}
		entry.Actor = &actor
	}
	if e.Event != nil {
		event := e.Event.String()
		entry.Event = &event
	}
	return entry
}
