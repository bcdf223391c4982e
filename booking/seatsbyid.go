package booking

import (
	"context"
	"fmt"

	"seatfence/seats"
)

// SeatsByID returns those of an event's seats that have the given ids, in id order, without areas. Unlike Event and Seats it counts
// nothing, so that a page that names a few seats to a crowd stays cheap; without ids it is the event alone.
func (s *Service) SeatsByID(ctx context.Context, caller Caller, event seats.EventID, ids []seats.ID) (House, error) {
	head, err := s.visible(ctx, caller, event)
	if err != nil || len(ids) == 0 {
		return House{Event: head}, err
	}
	rows, err := seats.ByID(ctx, s.pool, event, ids)
	if err != nil {
		return House{}, answer(fmt.Errorf("read seats: %w", err))
	}
	house := House{Event: head, Seats: make([]seats.Seat, len(rows))}
	for i, r := range rows {
		house.Seats[i] = r.Seat
	}
	return house, nil
}
