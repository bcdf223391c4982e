package booking

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// What the audit log says of an organizer's changes. Sales are no part of it: the ledger of each seat has them.
const (
	auditEventCreated   = "event.created"
	auditEventChanged   = "event.changed"
	auditPricesChanged  = "event.prices_changed"
	auditPlanChanged    = "event.plan_changed"
	auditBlocked        = "block.created"
	auditUnblocked      = "block.removed"
	auditChannelCreated = "channel.created"
	auditChannelChanged = "channel.changed"
	auditChannelRemoved = "channel.removed"
	auditPlanImported   = "plan.imported"
	auditPlanPublished  = "plan.published"
	auditDraftSaved     = "draft.saved"
	auditDraftPublished = "draft.published"
)

// Who the audit log says it was. A command has no caller's id.
const (
	actorUser     = "user"
	actorKey      = "key"
	actorOperator = "operator"
)

// audit writes down what the caller has changed, in the transaction that changes it. subject is the public id of what was changed, event
// nil for what is no event's, and detail becomes JSON.
func audit(ctx context.Context, tx pgx.Tx, caller Caller, action string, event *seats.EventID, subject fmt.Stringer, detail any) error {
	raw, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("encode audit detail: %w", err)
	}
	row := db.AuditInsertParams{
		OrganizerID: caller.Organizer, ID: uuid.Must(uuid.NewV7()), Actor: &caller.ID, ActorKind: actorKey,
		Action: action, EventID: (*int64)(event), Subject: subject.String(), Detail: raw,
	}
	switch {
	case caller.ID == uuid.Nil:
		row.Actor, row.ActorKind = nil, actorOperator
	case caller.Staff:
		row.ActorKind = actorUser
	}
	if err := queries.AuditInsert(ctx, tx, row); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}
