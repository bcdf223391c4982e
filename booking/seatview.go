package booking

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// House is the numbered seats of an event, or of one section of it, and the counts of its areas. Feed is the last change of the event's
// feed that is surely in it; SeatsByID does not read it.
type House struct {
	Feed  FeedTop
	Event Event
	Seats []seats.Seat
	Areas []Section
}

// Seats returns the state of an event's seats as of Event.ServerTime. Section, if not nil, limits the numbered seats to that section.
func (s *Service) Seats(ctx context.Context, caller Caller, id seats.EventID, section *string) (house House, err error) {
	err = db.Snapshot(ctx, s.pool, func(tx pgx.Tx) error {
		if house.Event, err = readEvent(ctx, tx, caller, id); err != nil {
			return err
		}
		head, err := feedHead(ctx, tx, id)
		if err != nil {
			return err
		}
		house.Feed = topOf(head)
		reach, err := reachOf(ctx, tx, caller, id)
		if err != nil {
			return err
		}
		if house.Seats, err = seats.List(ctx, tx, id, reach, section); err != nil {
			return fmt.Errorf("list seats: %w", err)
		}
		parts, err := sections(ctx, tx, id, reach)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if part.Area != nil {
				house.Areas = append(house.Areas, part)
			}
		}
		return nil
	})
	return house, answer(err)
}

// SeatsByID returns an event and those of its seats, places of areas among them, that have the given ids, in id order. It counts
// nothing, so that a page that names a few seats to a crowd stays cheap.
func (s *Service) SeatsByID(ctx context.Context, caller Caller, id seats.EventID, ids []seats.ID) (House, error) {
	event, err := s.EventHead(ctx, caller, id)
	if err != nil {
		return House{}, err
	}
	reach, err := reachOf(ctx, s.pool, caller, id)
	if err != nil {
		return House{}, answer(err)
	}
	rows, err := seats.ByID(ctx, s.pool, id, reach, ids)
	if err != nil {
		return House{}, answer(fmt.Errorf("read seats: %w", err))
	}
	house := House{Event: event, Seats: make([]seats.Seat, len(rows))}
	for i, r := range rows {
		house.Seats[i] = r.Seat
	}
	return house, nil
}

// Seat returns one seat.
func (s *Service) Seat(ctx context.Context, caller Caller, event seats.EventID, id seats.ID) (seats.Seat, error) {
	house, err := s.SeatsByID(ctx, caller, event, []seats.ID{id})
	switch {
	case err != nil:
		return seats.Seat{}, err
	case len(house.Seats) == 0:
		return seats.Seat{}, ErrNotFound
	}
	return house.Seats[0], nil
}

// SeatHistory is changes of a seat, newest first, and the event's zone.
type SeatHistory struct {
	Timezone string
	Changes  []seats.Change
}

// History returns up to n changes of a seat of an organizer's own event; before limits them to older fences, if not 0.
func (s *Service) History(ctx context.Context, caller Caller, id seats.EventID, seat seats.ID, before int64, n int) (SeatHistory, error) {
	if caller.Kind != Organizer {
		return SeatHistory{}, ErrForbidden
	}
	event, err := s.EventHead(ctx, caller, id)
	if err != nil {
		return SeatHistory{}, err
	}
	if before == 0 {
		before = math.MaxInt64
	}
	changes, err := seats.History(ctx, s.pool, id, seat, before, n)
	if err == nil && len(changes) == 0 {
		_, err = s.Seat(ctx, caller, id, seat) // unknown, or never touched
	}
	return SeatHistory{event.Timezone, changes}, answer(err)
}
