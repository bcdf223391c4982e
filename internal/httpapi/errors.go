package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/staff"
	"seatfence/seats"
)

// kind is what a code stands for. retryAfter is in seconds; 0 says that asking again does not help by itself.
type kind struct {
	status     int
	title      string
	retryAfter int
}

const (
	codeOverloaded     = "overloaded"
	codePlanUnreadable = "plan_unreadable"
)

// kinds is the one table of everything that is answered instead of success. A code without a row is 500.
var kinds = map[string]kind{
	"bad_request":             {400, "Request cannot be read", 0},
	"malformed_json":          {400, "Body cannot be read", 0},
	"body_required":           {400, "Body is missing", 0},
	"body_not_allowed":        {400, "Body is not expected", 0},
	"unknown_field":           {400, "Body has an unknown member", 0},
	"duplicate_field":         {400, "Body has a member twice", 0},
	"wrong_type":              {400, "Body has a value of a wrong type", 0},
	"malformed_query":         {400, "Query cannot be read", 0},
	"unknown_parameter":       {400, "Query has an unknown parameter", 0},
	"repeated_parameter":      {400, "Query has a parameter twice", 0},
	"idempotency_key_missing": {400, "Idempotency key is missing", 0},
	"idempotency_key_invalid": {400, "Idempotency key is malformed", 0},
	"unauthorized":            {401, "Credential is missing or not valid", 0},
	"wrong_password":          {401, "Not signed in", 0},
	"forbidden":               {403, "Not allowed", 0},
	"payment_required":        {403, "Payment is required", 0},
	"cross_origin":            {403, "Cross-origin request is refused", 0},
	"not_found":               {404, "Not found", 0},
	"method_not_allowed":      {405, "Method is not allowed", 0},
	"request_timeout":         {408, "Body came too slowly", 0},
	"event_draft":             {409, "Event is not on sale yet", 0},
	"event_paused":            {409, "Sale is paused", 0},
	"event_ended":             {409, "Event has ended", 0},
	"event_cancelled":         {409, "Event is cancelled", 0},
	"sale_not_started":        {409, "Sale has not started", 0},
	"sale_ended":              {409, "Sale has ended", 0},
	"bad_transition":          {409, "Event cannot change to this status", 0},
	"hold_closed":             {409, "Hold is closed", 0},
	"hold_limit":              {409, "Too many seats held", 0},
	"extension_limit":         {409, "Hold cannot be extended", 0},
	"price_changed":           {409, "Price has changed", 0},
	"sold_out":                {409, "Sold out", 0},
	"no_block":                {409, "No seats fit the wish", 0},
	"booking_cancelled":       {409, "Booking is cancelled", 0},
	"email_taken":             {409, "E-mail address is taken", 0},
	"last_owner":              {409, "Last owner", 0},
	"block_removed":           {409, "Block is removed", 0},
	"plan_has_errors":         {409, "Plan has errors", 0},
	"event_without_plan":      {409, "Event has no plan", 0},
	"lock_lost":               {409, "Somebody else is editing", 0},
	"draft_outdated":          {409, "Draft is of another plan", 0},
	"key_in_progress":         {409, "Same request is running", 1},
	"busy":                    {409, "Busy", 1},
	booking.CodeSeatTaken:     {409, "Seats are taken", 0},
	booking.CodeSeatBusy:      {409, "Seats are busy", 1},
	booking.CodeSeatYours:     {409, "Seats are yours already", 0},
	booking.CodeStaleFence:    {409, "Seats have changed", 0},
	booking.CodeSeatAlone:     {409, "A seat would be left alone", 0},
	booking.CodePlan:          {409, "Somebody has seats that would go", 0},
	booking.CodeSeatUnknown:   {404, "Seats are unknown", 0},
	"hold_expired":            {410, "Hold has run out", 0},
	"body_too_large":          {413, "Body is too large", 0},
	"unsupported_media_type":  {415, "Body is of a wrong type", 0},
	"invalid":                 {422, "Request breaks the rules", 0},
	"invalid_parameter":       {422, "Parameter breaks the rules", 0},
	codePlanUnreadable:        {422, "File is no plan that can be read", 0},
	"idempotency_key_reused":  {422, "Idempotency key was used for another request", 0},
	"too_many_attempts":       {429, "Too many attempts", 1},
	"internal":                {500, "Internal error", 0},
	codeOverloaded:            {503, "Too much to do", 1},
	"unavailable":             {503, "Not available now", 1},
	"timeout":                 {503, "Took too long", 1},
}

// answers gives the errors of the domain their codes. What is told of them is their own fixed text.
var answers = []struct {
	err  error
	code string
}{
	{booking.ErrNotFound, "not_found"},
	{seats.ErrBadID, "not_found"},
	{booking.ErrForbidden, "forbidden"},
	{booking.ErrEventDraft, "event_draft"},
	{booking.ErrEventPaused, "event_paused"},
	{booking.ErrEventEnded, "event_ended"},
	{booking.ErrEventCancelled, "event_cancelled"},
	{booking.ErrSaleNotStarted, "sale_not_started"},
	{booking.ErrSaleEnded, "sale_ended"},
	{booking.ErrBadTransition, "bad_transition"},
	{booking.ErrPaymentRequired, "payment_required"},
	{booking.ErrHoldExpired, "hold_expired"},
	{booking.ErrHoldClosed, "hold_closed"},
	{booking.ErrHoldLimit, "hold_limit"},
	{booking.ErrExtensionLimit, "extension_limit"},
	{booking.ErrPriceChanged, "price_changed"},
	{booking.ErrSoldOut, "sold_out"},
	{booking.ErrNoBlock, "no_block"},
	{booking.ErrBookingCancelled, "booking_cancelled"},
	{booking.ErrBlockRemoved, "block_removed"},
	{booking.ErrPlanHasErrors, "plan_has_errors"},
	{booking.ErrNoPlan, "event_without_plan"},
	{booking.ErrLockLost, "lock_lost"},
	{booking.ErrDraftOutdated, "draft_outdated"},
	{booking.ErrKeyReused, "idempotency_key_reused"},
	{booking.ErrKeyInProgress, "key_in_progress"},
	{booking.ErrBusy, "busy"},
	{booking.ErrUnavailable, "unavailable"},
	{staff.ErrWrongPassword, "wrong_password"},
	{staff.ErrEmailTaken, "email_taken"},
	{staff.ErrLastOwner, "last_owner"},
	{context.DeadlineExceeded, "timeout"},
}

// seatDetails say in words what happened to seats that were not given.
var seatDetails = map[string]string{
	booking.CodeSeatTaken:   "Somebody else has seats that you asked for. You have none of them.",
	booking.CodeSeatBusy:    "Somebody is taking seats that you asked for at this moment. You have none of them yet.",
	booking.CodeSeatYours:   "You have seats that you asked for already.",
	booking.CodeStaleFence:  "Seats have changed since you saw them.",
	booking.CodeSeatAlone:   "Your choice would leave single seats alone that nobody can buy together. There is a better one.",
	booking.CodePlan:        "The plan drops or renames seats that are held, sold or allotted. Nothing has been changed.",
	booking.CodeSeatUnknown: "The event has no such seats.",
}

// requestError is a request that was refused before it reached the domain. code is a row of kinds; the rest is for the caller to read.
type requestError struct {
	code   string
	detail string
	faults []fault
}

func (e *requestError) Error() string { return fmt.Sprintf("%s: %s", e.code, e.detail) }

func refuse(code, detail string) error { return &requestError{code: code, detail: detail} }

const internalDetail = "Something went wrong on our side. The request id helps us to find out what."

// problemOf is the answer to an error. Nothing of an unknown error's text is in it.
func problemOf(err error) problem {
	p := problem{Code: "internal", Detail: internalDetail}
	if e, ok := errors.AsType[*requestError](err); ok {
		p.Code, p.Detail, p.Errors = e.code, e.detail, e.faults
	} else if e, ok := errors.AsType[*booking.InvalidError](err); ok {
		p.Code, p.Detail = "invalid", e.Detail
		p.Errors = []fault{{Pointer: &e.Pointer, Code: e.Code, Detail: e.Detail}}
	} else if e, ok := errors.AsType[*booking.SeatsError](err); ok {
		p.Code, p.Detail = e.Code, seatDetails[e.Code]
		p.addSeats(e)
	} else if _, ok := errors.AsType[*staff.WaitError](err); ok {
		p.Code, p.Detail = "too_many_attempts", "There were too many wrong passwords. Retry-After says how long to wait."
	} else if e, ok := errors.AsType[*booking.PlanError](err); ok {
		p.Code, p.Detail, p.Report = codePlanUnreadable, e.Error(), &e.Report
	} else if e, ok := errors.AsType[*echo.HTTPError](err); ok {
		p.Code, p.Detail = routingCode(e.Code)
	} else {
		for _, a := range answers {
			if errors.Is(err, a.err) {
				p.Code, p.Detail = a.code, a.err.Error()
				break
			}
		}
	}
	kind, ok := kinds[p.Code]
	if !ok {
		p.Code, kind = "internal", kinds["internal"]
	}
	p.Type, p.Title, p.Status = "urn:problem-type:seatfence:"+p.Code, kind.title, kind.status
	return p
}

// routingCode names what Echo, the generated code and the pages refuse by themselves. Their texts may quote the request, and so are not
// told.
func routingCode(status int) (code, detail string) {
	switch {
	case status == http.StatusNotFound:
		return "not_found", "there is nothing at this address"
	case status == http.StatusMethodNotAllowed:
		return "method_not_allowed", "the Allow header names the methods of this address"
	case status == http.StatusRequestEntityTooLarge:
		return "body_too_large", "the body is over its limit"
	case status == http.StatusUnsupportedMediaType:
		return "unsupported_media_type", "the body is of a type that is not read here"
	case status < http.StatusInternalServerError:
		return "bad_request", "the request is malformed"
	}
	return "internal", internalDetail
}

// astray reports an address that Echo has taken for one of a route with parameters: it gives the last one all that is left of the path,
// be it nothing or further segments.
func astray(c echo.Context) bool {
	path, route := c.Request().URL.EscapedPath(), c.Path()
	return strings.Count(path, "/") != strings.Count(route, "/") || strings.HasSuffix(path, "/") != strings.HasSuffix(route, "/")
}

// retryAfter is in seconds.
func retryAfter(code string, err error) int {
	if e, ok := errors.AsType[*staff.WaitError](err); ok {
		return int(math.Ceil(e.Wait.Seconds()))
	}
	return kinds[code].retryAfter
}

// handleError answers an error, of the API with a problem and of a page with a page, and is the only place that does. It logs what is our
// own fault, once; not that a crowd was turned away, or the crowd would fill the log.
func (s *server) handleError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	ctx := c.Request().Context()
	p := problemOf(err)
	if p.Code == "method_not_allowed" && astray(c) {
		c.Response().Header().Del(echo.HeaderAllow)
		p = problemOf(echo.ErrNotFound)
	}
	if p.Status >= http.StatusInternalServerError && ctx.Err() != nil {
		p = problemOf(context.DeadlineExceeded)
	}
	p.RequestID = callOf(ctx).id
	if p.Status >= http.StatusInternalServerError && p.Code != codeOverloaded {
		s.Log.LogAttrs(ctx, slog.LevelError, "request failed", slog.String("request_id", p.RequestID), slog.Any("error", err))
	}
	h := c.Response().Header()
	if p.Status == http.StatusUnauthorized {
		h.Set(echo.HeaderWWWAuthenticate, `Bearer realm="seatfence"`)
	}
	if after := retryAfter(p.Code, err); after > 0 {
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(after))
	}
	if s.RefusePage != nil && forPage(c.Request()) {
		if err = s.RefusePage(c, p.Status, p.Code, err); err == nil || c.Response().Committed {
			return
		}
		s.Log.LogAttrs(ctx, slog.LevelError, "page failed", slog.String("request_id", p.RequestID), slog.Any("error", err))
	}
	h.Set(echo.HeaderContentType, "application/problem+json")
	c.Response().WriteHeader(p.Status)
	_ = json.NewEncoder(c.Response()).Encode(p) // fails only if the reader is gone, and then there is nobody to tell
}
