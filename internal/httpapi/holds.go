package httpapi

import (
	"context"

	"seatfence/booking"
	"seatfence/seats"
)

// CreateHold answers POST /v1/events/{event}/holds.
func (s *server) CreateHold(ctx context.Context, r CreateHoldRequestObject) (CreateHoldResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	call := callOf(ctx)
	req, err := r.Body.toHold(event)
	if err != nil {
		return nil, err
	}
	if r.Body.Alternative {
		if err := s.Booking.HeldInstead(ctx, call.caller, call.key, req); err != nil {
			return nil, err
		}
	}
	hold, replayed, err := s.hold(ctx, call, req)
	if r.Body.Alternative && err != nil {
		err = s.Booking.Instead(ctx, call.caller, call.key, req, err)
	}
	return CreateHold201JSONResponse{Body: holdOf(hold), Headers: CreateHold201ResponseHeaders{replay(replayed)}}, err
}

func (s *server) hold(ctx context.Context, call *call, req booking.HoldRequest) (booking.Hold, bool, error) {
	pass, err := s.Gate.Enter(ctx, call.caller, req.Event, seats.IDs(req.Seats), call.key)
	if err != nil {
		return booking.Hold{}, false, err
	}
	defer pass.Leave(ctx)
	hold, replayed, err := s.Booking.Hold(ctx, call.caller, call.key, req)
	return hold, replayed, pass.Told(err)
}

// GetHold answers GET /v1/holds/{hold}.
func (s *server) GetHold(ctx context.Context, r GetHoldRequestObject) (GetHoldResponseObject, error) {
	id, err := booking.ParseHoldID(r.Hold)
	if err != nil {
		return nil, err
	}
	hold, err := s.Booking.GetHold(ctx, callOf(ctx).caller, id)
	return GetHold200JSONResponse(holdOf(hold)), err
}

// ChangeHold answers PATCH /v1/holds/{hold}.
func (s *server) ChangeHold(ctx context.Context, r ChangeHoldRequestObject) (ChangeHoldResponseObject, error) {
	id, err := booking.ParseHoldID(r.Hold)
	if err != nil {
		return nil, err
	}
	var change booking.HoldChange
	if r.Body.Add != nil {
		change.Add = wants(*r.Body.Add)
	}
	if r.Body.Drop != nil {
		change.Drop = *r.Body.Drop
	}
	change.Extend = r.Body.Extend != nil && *r.Body.Extend
	change.SeenEnd, change.ExpectedTotal = r.Body.SeenExpiresAt, r.Body.ExpectedTotal
	if change.SeenEnd != nil && !change.Extend {
		return nil, invalid("/seen_expires_at", "without_extend", "only an extension depends on when the hold was seen to end")
	}
	caller := callOf(ctx).caller
	pass, err := s.Gate.Enter(ctx, caller, id.Event, seats.IDs(change.Add), booking.Idempotency{})
	if err != nil {
		return nil, err
	}
	defer pass.Leave(ctx)
	hold, err := s.Booking.ChangeHold(ctx, caller, id, change)
	return ChangeHold200JSONResponse(holdOf(hold)), err
}

// ReleaseHold answers DELETE /v1/holds/{hold}.
func (s *server) ReleaseHold(ctx context.Context, r ReleaseHoldRequestObject) (ReleaseHoldResponseObject, error) {
	id, err := booking.ParseHoldID(r.Hold)
	if err != nil {
		return nil, err
	}
	return ReleaseHold204Response{}, s.Booking.Release(ctx, callOf(ctx).caller, id)
}

// CheckoutHold answers POST /v1/holds/{hold}/checkout.
func (s *server) CheckoutHold(ctx context.Context, r CheckoutHoldRequestObject) (CheckoutHoldResponseObject, error) {
	id, err := booking.ParseHoldID(r.Hold)
	if err != nil {
		return nil, err
	}
	hold, err := s.Booking.Checkout(ctx, callOf(ctx).caller, id)
	return CheckoutHold200JSONResponse(holdOf(hold)), err
}

func holdOf(h booking.Hold) Hold {
	hold := Hold{
		Id: h.ID.String(), Event: h.Event.String(), Status: HoldStatus(h.Status), Checkout: h.Checkout, Seats: make([]HoldSeat, len(h.Seats)),
		Total: h.Total, Currency: h.Currency, Timezone: h.Timezone, AcquiredAt: h.AcquiredAt, ExpiresAt: h.ExpiresAt, EndsAt: h.EndsAt,
		ServerTime: h.ServerTime, ExtensionsLeft: h.ExtensionsLeft, Together: h.Together,
	}
	for i, s := range h.Seats {
		hold.Seats[i] = HoldSeat{
			Id: s.ID, Label: s.Label(), Section: s.Section, Row: s.Row, Number: s.Number, Type: s.Type, Price: s.Price, Fence: s.Fence, Owned: s.Owned,
		}
	}
	if h.LastResort {
		hold.LastResort = &h.LastResort
	}
	if h.Booking != nil {
		id := h.Booking.String()
		hold.Booking = &id
	}
	return hold
}
