package httpapi

import (
	"context"

	"seatfence/booking"
	"seatfence/seats"
)

// GetSeat answers GET /v1/events/{event}/seats/{seat}.
func (s *server) GetSeat(ctx context.Context, r GetSeatRequestObject) (GetSeatResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	seat, err := s.Booking.Seat(ctx, callOf(ctx).caller, event, r.Seat)
	return GetSeat200JSONResponse(seatOf(seat)), err
}

// GetSeatHistory answers GET /v1/events/{event}/seats/{seat}/history.
func (s *server) GetSeatHistory(ctx context.Context, r GetSeatHistoryRequestObject) (GetSeatHistoryResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	var before int64
	if r.Params.Before != nil {
		before = *r.Params.Before
	}
	history, err := s.Booking.History(ctx, callOf(ctx).caller, event, r.Seat, before, pageSize(r.Params.Limit))
	answer := GetSeatHistory200JSONResponse{Timezone: history.Timezone, Changes: make([]SeatChange, len(history.Changes))}
	for i, c := range history.Changes {
		answer.Changes[i] = SeatChange{Fence: c.Fence, Action: c.Action, Ref: refOf(event, c), At: c.At}
		if c.Actor != nil {
			actor := c.Actor.String()
			answer.Changes[i].Actor = &actor
		}
	}
	return answer, err
}

// refOf is the public id of what a change was made for.
func refOf(event seats.EventID, c seats.Change) string {
	switch c.Action {
	case "sold", "cancelled":
		return booking.BookingID{Event: event, Key: c.Ref}.String()
	case "blocked", "unblocked":
		return booking.BlockID{Event: event, Key: c.Ref}.String()
	}
	return booking.HoldID{Event: event, Key: c.Ref}.String()
}

func seatOf(s seats.Seat) Seat {
	seat := Seat{
		Id: s.ID, Label: s.Label(), Section: s.Section, Row: s.Row, Number: s.Number, Category: s.Category, Price: s.Price,
		State: SeatState(s.State), Fence: s.Fence, Accessible: has(s, seats.Accessible), Companion: has(s, seats.Companion),
		RestrictedView: has(s, seats.RestrictedView), WholeTable: has(s, seats.WholeTable),
	}
	if len(s.Tags) > 0 {
		seat.Tags = &s.Tags
	}
	return seat
}

// has is true, or nil, which a list of 50,000 seats leaves out.
func has(s seats.Seat, attribute seats.Attributes) *bool {
	if !s.Attributes.Has(attribute) {
		return nil
	}
	yes := true
	return &yes
}

// CreateBlock answers POST /v1/events/{event}/blocks.
func (s *server) CreateBlock(ctx context.Context, r CreateBlockRequestObject) (CreateBlockResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	if err := clean(text{"/reason", &r.Body.Reason}); err != nil {
		return nil, err
	}
	call := callOf(ctx)
	block, replayed, err := s.Booking.Block(ctx, call.caller, call.key, event, r.Body.Seats, r.Body.Reason)
	return CreateBlock201JSONResponse{
		Body: Block{
			Id: block.ID.String(), Event: block.Event.String(), Seats: block.Seats, Reason: block.Reason, CreatedAt: block.CreatedAt,
			Timezone: block.Timezone,
		},
		Headers: CreateBlock201ResponseHeaders{replay(replayed)},
	}, err
}

// DeleteBlock answers DELETE /v1/events/{event}/blocks/{block}.
func (s *server) DeleteBlock(ctx context.Context, r DeleteBlockRequestObject) (DeleteBlockResponseObject, error) {
	event, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	block, err := booking.ParseBlockID(r.Block)
	if err != nil {
		return nil, err
	}
	if block.Event != event {
		return nil, booking.ErrNotFound
	}
	return DeleteBlock204Response{}, s.Booking.Unblock(ctx, callOf(ctx).caller, block)
}
