package httpapi

import (
	"context"

	"seatfence/booking"
	"seatfence/seats"
)

// CreateBooking answers POST /v1/bookings.
func (s *server) CreateBooking(ctx context.Context, r CreateBookingRequestObject) (CreateBookingResponseObject, error) {
	req, err := r.Body.toBook()
	if err != nil {
		return nil, err
	}
	call := callOf(ctx)
	pass, err := s.Gate.Enter(ctx, call.caller, req.Event, seats.IDs(req.Seats), call.key)
	if err != nil {
		return nil, err
	}
	defer pass.Leave(ctx)
	made, replayed, err := s.Booking.Book(ctx, call.caller, call.key, req)
	return CreateBooking201JSONResponse{Body: bookingOf(made), Headers: CreateBooking201ResponseHeaders{replay(replayed)}}, pass.Told(err)
}

// GetBooking answers GET /v1/bookings/{booking}.
func (s *server) GetBooking(ctx context.Context, r GetBookingRequestObject) (GetBookingResponseObject, error) {
	id, err := booking.ParseBookingID(r.Booking)
	if err != nil {
		return nil, err
	}
	b, err := s.Booking.GetBooking(ctx, callOf(ctx).caller, id)
	return GetBooking200JSONResponse(bookingOf(b)), err
}

// CancelBooking answers POST /v1/bookings/{booking}/cancel.
func (s *server) CancelBooking(ctx context.Context, r CancelBookingRequestObject) (CancelBookingResponseObject, error) {
	id, err := booking.ParseBookingID(r.Booking)
	if err != nil {
		return nil, err
	}
	b, err := s.Booking.Cancel(ctx, callOf(ctx).caller, id)
	return CancelBooking200JSONResponse(bookingOf(b)), err
}

// ListBookings answers GET /v1/bookings.
func (s *server) ListBookings(ctx context.Context, r ListBookingsRequestObject) (ListBookingsResponseObject, error) {
	p := r.Params
	composed(p.Reference)
	filter := booking.BookingFilter{Email: p.Email, Reference: p.Reference, Status: (*string)(p.Status)}
	if p.Event != nil {
		event, err := seats.ParseEventID(*p.Event)
		if err != nil {
			return nil, err
		}
		filter.Event = &event
	}
	var page *booking.BookingPage
	if p.Cursor != nil {
		after, err := readCursor[booking.BookingPage](*p.Cursor)
		if err != nil {
			return nil, err
		}
		page = &after
	}
	n := pageSize(p.Limit)
	found, err := s.Booking.Bookings(ctx, callOf(ctx).caller, filter, page, n+1)
	if err != nil {
		return nil, err
	}
	answer := BookingList{Bookings: make([]BookingSummary, 0, n)}
	for _, b := range found[:min(n, len(found))] {
		answer.Bookings = append(answer.Bookings, summaryOf(b))
	}
	if len(found) > n {
		last := found[n-1]
		answer.NextCursor, err = cursorOf(booking.BookingPage{BeforeTime: last.CreatedAt, BeforeEvent: int64(last.Event), BeforeID: last.ID.Key})
	}
	return ListBookings200JSONResponse(answer), err
}

func summaryOf(b booking.Booking) BookingSummary {
	return BookingSummary{
		Id: b.ID.String(), Number: b.Number, Event: b.Event.String(), Status: BookingStatus(b.Status),
		Buyer: BuyerContact{Name: b.Name, Email: b.Email}, PaymentReference: b.Reference, Total: b.Total, Currency: b.Currency,
		Timezone: b.Timezone, CreatedAt: b.CreatedAt, CancelledAt: b.CancelledAt,
	}
}

func bookingOf(b booking.Booking) Booking {
	answer := Booking{
		Id: b.ID.String(), Number: b.Number, Event: b.Event.String(), Status: BookingStatus(b.Status),
		Buyer: BuyerContact{Name: b.Name, Email: b.Email}, PaymentReference: b.Reference, Total: b.Total, Currency: b.Currency,
		Timezone: b.Timezone, CreatedAt: b.CreatedAt, CancelledAt: b.CancelledAt, Seats: make([]Ticket, len(b.Seats)),
	}
	for i, t := range b.Seats {
		answer.Seats[i] = Ticket{
			Id: t.ID, Label: t.Label(), Section: t.Section, Row: t.Row, Number: t.Number, Type: t.Type, Price: t.Price, Fence: t.Fence, Code: t.Code,
		}
	}
	return answer
}
