package booking

import (
	"errors"
	"fmt"
	"time"

	"seatfence/seats"
)

// What a use case can answer instead of success. internal/httpapi maps each to a status in one table.
var (
	ErrNotFound         = errors.New("unknown, or not the caller's")
	ErrForbidden        = errors.New("the caller may not do this")
	ErrEventDraft       = errors.New("the event is not on sale yet")
	ErrEventPaused      = errors.New("the sale is paused")
	ErrEventEnded       = errors.New("the event has ended")
	ErrEventCancelled   = errors.New("the event is cancelled")
	ErrSaleNotStarted   = errors.New("the sale has not started")
	ErrSaleEnded        = errors.New("the sale has ended")
	ErrBadTransition    = errors.New("the event cannot go from its status to that one")
	ErrPaymentRequired  = errors.New("the event is sold against a payment, which this caller cannot give")
	ErrHoldExpired      = errors.New("the hold has run out")
	ErrHoldClosed       = errors.New("the hold has been booked or released")
	ErrHoldLimit        = errors.New("the caller would hold more seats of this event than allowed")
	ErrExtensionLimit   = errors.New("the hold cannot be extended any more")
	ErrPriceChanged     = errors.New("the seats do not cost what the caller expects")
	ErrSoldOut          = errors.New("the area has fewer places left than asked for")
	ErrNoBlock          = errors.New("there are not so many seats left that fit the wish")
	ErrBookingCancelled = errors.New("the booking is cancelled already")
	ErrBlockRemoved     = errors.New("the block has been removed already")
	ErrPlanHasErrors    = errors.New("the version of the plan has errors")
	ErrNoPlan           = errors.New("the event was not made of a plan, so it has no draft")
	ErrLockLost         = errors.New("somebody else has begun to edit this since, so it was not saved")
	ErrDraftOutdated    = errors.New("the event is on another plan than the one that the draft was made of")
	ErrKeyReused        = errors.New("the idempotency key was used for another request")
	ErrKeyInProgress    = errors.New("a request with this idempotency key is still running")
	ErrBusy             = errors.New("another request is writing the same thing at this moment")
	ErrUnavailable      = errors.New("the database cannot take the request now")
)

// InvalidError says that a well-formed request asks for something that no one could have. Pointer is a JSON pointer into its body.
type InvalidError struct {
	Pointer string
	Code    string
	Detail  string
}

func (e *InvalidError) Error() string {
	if e.Pointer == "" {
		return e.Detail
	}
	return fmt.Sprintf("%s: %s", e.Pointer, e.Detail)
}

func invalid(pointer, code, format string, args ...any) error {
	return &InvalidError{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Why a seat was not given.
const (
	ReasonBooked   = "booked"
	ReasonHeld     = "held"
	ReasonBlocked  = "blocked"
	ReasonYours    = "yours"       // the caller holds or has booked it already
	ReasonStale    = "stale_fence" // the seat has changed since the fence that the caller named
	ReasonUnknown  = "unknown"     // no seat of this event
	ReasonBusy     = "busy"        // another request is writing it at this moment
	ReasonAllotted = "allotted"    // it is in a channel
	ReasonAlone    = "alone"       // the choice would leave it alone between seats that are gone
)

// LostSeat is one seat that a request did not get. HeldUntil is set for a held one; Hold for one that the caller holds.
type LostSeat struct {
	ID seats.ID
	seats.Place
	Reason    string
	Fence     int64
	HeldUntil *time.Time
	Hold      *HoldID
	Change    string       // of a plan_conflict: dropped or renamed
	Becomes   *seats.Place // what a renamed seat would be
}

// What a new plan would do to a seat that somebody has.
const (
	ChangeDropped = "dropped"
	ChangeRenamed = "renamed"
)

// SeatsError says that a request got none of its seats, and why for each that stood in the way. Alternatives are free seats nearby at the
// same price, or the whole of a better choice; they are not held. Instead is set if an equally good choice is held for the caller.
type SeatsError struct {
	Code         string
	Seats        []LostSeat
	Alternatives []seats.Seat
	Instead      *Hold
}

// Codes of a SeatsError.
const (
	CodeSeatTaken   = "seat_taken"
	CodeSeatBusy    = "seat_busy"
	CodeSeatYours   = "seat_yours"
	CodeStaleFence  = "stale_fence"
	CodeSeatUnknown = "seat_unknown"
	CodeSeatAlone   = "seat_alone"
	CodePlan        = "plan_conflict"
)

func (e *SeatsError) Error() string { return fmt.Sprintf("%s (%d seats)", e.Code, len(e.Seats)) }

// Busy is the answer for seats that another request is writing at this moment.
func Busy(ids []seats.ID) error {
	e := &SeatsError{Code: CodeSeatBusy}
	for _, id := range ids {
		e.Seats = append(e.Seats, LostSeat{ID: id, Reason: ReasonBusy})
	}
	return e
}
