package staff

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/seats"
)

// Who can have done something.
const (
	ActorUser     = "user"
	ActorKey      = "key"
	ActorOperator = "operator" // whoever has the database, by a command
)

// Actor is who does something. An operator has no id.
type Actor struct {
	Kind string
	ID   *uuid.UUID
}

// Operator is the actor of a command.
var Operator = Actor{Kind: ActorOperator}

func userActor(id uuid.UUID) Actor { return Actor{ActorUser, &id} }

// ActorOf is the user or the key behind a caller.
func ActorOf(c booking.Caller) Actor {
	if c.Staff {
		return userActor(c.ID)
	}
	return Actor{ActorKey, &c.ID}
}

// Entry is one row of the log. Subject is the public id of what was changed, Detail a JSON object with the change.
type Entry struct {
	ID      uuid.UUID
	At      time.Time
	Actor   Actor
	Action  string
	Event   *seats.EventID
	Subject string
	Detail  json.RawMessage
}

// record writes a row about a user, in the transaction of what it tells of.
func record(ctx context.Context, tx pgx.Tx, organizer int64, by Actor, action string, user uuid.UUID, detail any) error {
	if detail == nil {
		detail = struct{}{}
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("encode detail: %w", err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	return queries.AuditInsert(ctx, tx, db.AuditInsertParams{
		OrganizerID: organizer, ID: id, Actor: by.ID, ActorKind: by.Kind, Action: action, Subject: FormatID(user), Detail: raw,
	})
}

// Newest is where the log begins.
var Newest = uuid.Max

// Log returns up to n rows of an organizer's log that are older than the one of the id before, newest first; with an event only those
// about it.
func (s *Staff) Log(ctx context.Context, organizer int64, event *seats.EventID, before uuid.UUID, n int) (list []Entry, err error) {
	var rows []db.AuditLog
	if event == nil {
		rows, err = queries.AuditList(ctx, s.pool, db.AuditListParams{OrganizerID: organizer, Before: before, MaxRows: int32(n)})
	} else {
		rows, err = queries.AuditListEvent(ctx, s.pool, db.AuditListEventParams{
			OrganizerID: organizer, EventID: int64(*event), Before: before, MaxRows: int32(n),
		})
	}
	if err != nil {
		return nil, answer("read log", err)
	}
	for _, r := range rows {
		list = append(list, Entry{
			ID: r.ID, At: r.At.UTC(), Actor: Actor{r.ActorKind, r.Actor}, Action: r.Action, Event: (*seats.EventID)(r.EventID),
			Subject: r.Subject, Detail: r.Detail,
		})
	}
	return list, nil
}
