package db

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Names of the constraints that a writer can meet. A test compares them with the migrated schema.
const (
	ConstraintKey           = "idempotency_keys_pkey"
	ConstraintLiveTicket    = "tickets_live_seat"
	ConstraintLedger        = "seat_ledger_pkey"
	ConstraintBookingNumber = "bookings_number"
	ConstraintSaleWindow    = "events_sale_window"
	ConstraintUserEmail     = "users_email"
	ConstraintChannelName   = "channels_name"
)

// SQLSTATEs that the service tells apart.
const (
	stateCheckViolation        = "23514"
	stateForeignKeyViolation   = "23503"
	stateTooComplex            = "54000"
	classData                  = "22"
	stateLockNotAvailable      = "55P03"
	stateSerialization         = "40001"
	stateDeadlock              = "40P01"
	stateQueryCanceled         = "57014"
	stateIdleInTransaction     = "25P03"
	classConnection            = "08"
	classInsufficientResources = "53"
	classOperatorIntervened    = "57P"
)

// ErrNoConnection says that no connection of the pool came free in time.
var ErrNoConnection = errors.New("no connection to the database in time")

// NotFound reports whether a query that wants one row had none.
func NotFound(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// Violates reports whether the constraint of that name refused a row.
func Violates(err error, constraint string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.ConstraintName == constraint
}

// LockTimedOut reports that a row stayed locked by another transaction for LockTimeout.
func LockTimedOut(err error) bool { return state(err) == stateLockNotAvailable }

// Conflicted reports a deadlock or a serialization failure: the transaction is rolled back and may be run again.
func Conflicted(err error) bool {
	s := state(err)
	return s == stateSerialization || s == stateDeadlock
}

// BadValue reports that a value does not fit where it was to go, although nothing before Postgres had said so.
func BadValue(err error) bool {
	s := state(err)
	return strings.HasPrefix(s, classData) || s == stateTooComplex || s == stateCheckViolation || s == stateForeignKeyViolation
}

// Canceled reports a statement that was ended by its time limit or because its caller is gone.
func Canceled(err error) bool { return state(err) == stateQueryCanceled }

// Lost reports that the session ended before its answer came: the server restarted, the network cut, or Postgres ended a transaction
// that stood still. What had been sent may have been committed or not.
func Lost(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == stateIdleInTransaction || strings.HasPrefix(pg.Code, classOperatorIntervened) || strings.HasPrefix(pg.Code, classConnection)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // a caller out of time, although it is a net.Error too
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err)
}

// Unavailable reports that Postgres cannot take the work now: no connection, no room, or too slow.
func Unavailable(err error) bool {
	s := state(err)
	return errors.Is(err, ErrNoConnection) || Lost(err) || strings.HasPrefix(s, classInsufficientResources) || s == stateQueryCanceled
}

func state(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}
