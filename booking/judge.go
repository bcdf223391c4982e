package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"seatfence/db"
	"seatfence/seats"
)

// errUndrawn says that this node does not know the event's drawing. It never leaves the package: judging reads it.
var errUndrawn = errors.New("the event's drawing is not known here")

// strandedError says that a choice would leave seats alone. It never leaves the package: judging finds out whether there is a better one.
type strandedError struct {
	choice choiceOf
	seats  []seats.ID
}

func (e *strandedError) Error() string { return fmt.Sprintf("seats %v would be left alone", e.seats) }

// judges reports whether a choice of named seats has to keep to rules. The organizer is trusted to know what it does.
func judges(event db.EventLockForSaleRow, caller Caller) bool {
	return (event.OrphanRule || event.WholeTables) && caller.Kind != Organizer
}

// choiceOf is seats that are chosen by name: all of a hold, of which some may be its own already. LastResort lets it leave seats alone.
type choiceOf struct {
	ids        []seats.ID
	own        []seats.ID
	lastResort bool
}

// judge locks the chosen seats, and their neighbours, so that two who choose side by side cannot both be right, and refuses a choice that
// breaks a table or leaves a seat alone. It is for the write to find out that a seat is taken: of such a choice judge says nothing. alone
// says that the choice leaves a seat alone as a last resort.
func (s *Service) judge(ctx context.Context, tx pgx.Tx, event db.EventLockForSaleRow, choice choiceOf) (alone bool, err error) {
	drawing, layout := s.halls.of(seats.EventID(event.ID)).known()
	if drawing == nil || layout != event.Layout {
		return false, errUndrawn
	}
	near := slices.Concat(choice.ids, choice.own)
	if event.OrphanRule {
		near = drawing.Nearby(slices.Concat(choice.ids, choice.own))
	}
	var missing []seats.ID
	if event.WholeTables {
		before := drawing.Missing(choice.own) // since before its tables were sold whole
		missing = slices.DeleteFunc(drawing.Missing(choice.ids), func(id seats.ID) bool { return slices.Contains(before, id) })
		near = append(near, missing...)
	}
	free, err := seats.LockStates(ctx, tx, seats.EventID(event.ID), near)
	if err != nil {
		return false, fmt.Errorf("lock seats: %w", err)
	}
	for _, id := range choice.own {
		free[id] = true
	}
	for _, id := range choice.ids {
		if isFree, exists := free[id]; !exists {
			return false, errLost
		} else if !isFree {
			return false, nil
		}
	}
	// What somebody has of a table, or the organizer has blocked, does not keep the rest of it from being sold.
	missing = slices.DeleteFunc(missing, func(id seats.ID) bool { return !free[id] })
	if len(missing) > 0 {
		return false, invalid("/seats", "whole_table", "a table is sold as a whole: seats %v are missing", missing)
	}
	if !event.OrphanRule {
		return false, nil
	}
	vacancy := seats.Vacancy{Free: make([]bool, len(drawing.Spots())), Released: map[int32]bool{}}
	for _, id := range near {
		if i, ok := drawing.Index(id); ok {
			vacancy.Free[i] = free[id]
		}
	}
	for _, channel := range event.Channels {
		vacancy.Released[channel] = true
	}
	stranded := drawing.Strands(vacancy, choice.ids)
	if len(stranded) > 0 && !choice.lastResort {
		return false, &strandedError{choice, stranded}
	}
	return len(stranded) > 0, nil
}

// judging runs a write that judges a choice of named seats. A choice that leaves a seat alone is refused if there is a better one, and
// otherwise written as a last resort.
func (s *Service) judging(ctx context.Context, caller Caller, event seats.EventID, write func(lastResort bool) error) error {
	for lastResort := false; ; {
		err := write(lastResort)
		stranded, alone := errors.AsType[*strandedError](err)
		switch {
		case errors.Is(err, errUndrawn):
			if _, _, err := s.halls.read(ctx, s.pool, event); err != nil {
				return err
			}
		case alone:
			better, err := s.better(ctx, caller, event, stranded.choice)
			if err != nil {
				return err
			}
			if len(better) > 0 {
				return s.strandedRefusal(ctx, caller, event, stranded.seats, better)
			}
			lastResort = true
		default:
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// better looks for as many seats in one piece, of the same category if the chosen ones have only one, that leave nobody alone: those
// nearest to the choice.
func (s *Service) better(ctx context.Context, caller Caller, event seats.EventID, choice choiceOf) ([]seats.ID, error) {
	h, v, err := s.halls.read(ctx, s.pool, event)
	if err != nil {
		return nil, err
	}
	reach, err := reachOf(ctx, s.pool, caller, event)
	if err != nil {
		return nil, err
	}
	wish := likeness(v.drawing, choice.ids)
	wish.Strict, wish.Channels = true, reach.Channels
	return h.chooseInstead(v, wish, choice.own).Seats, nil
}

// likeness is the wish for seats that are as good as the given ones: as many, as accessible, of the same category if they have only one,
// together if they are, and near them.
func likeness(drawing *seats.Hall, ids []seats.ID) seats.Wish {
	wish := seats.Wish{Quantity: len(ids), Around: ids, Together: drawing.Together(ids)}
	for n, id := range ids {
		i, ok := drawing.Index(id)
		if !ok {
			continue
		}
		spot := drawing.Spots()[i]
		if spot.Attributes.Has(seats.Accessible) {
			wish.Accessible++
		}
		if n == 0 {
			wish.Category = spot.Category
		} else if wish.Category != spot.Category {
			wish.Category = 0
		}
	}
	return wish
}

// strandedRefusal names the seats that would be left alone, and a choice that leaves none.
func (s *Service) strandedRefusal(ctx context.Context, caller Caller, event seats.EventID, stranded, better []seats.ID) error {
	house, err := s.SeatsByID(ctx, caller, event, slices.Concat(stranded, better))
	if err != nil {
		return err
	}
	refusal := &SeatsError{Code: CodeSeatAlone}
	for _, seat := range house.Seats {
		if slices.Contains(better, seat.ID) { // it may be one that would have been left alone
			refusal.Alternatives = append(refusal.Alternatives, seat)
		}
		if slices.Contains(stranded, seat.ID) {
			refusal.Seats = append(refusal.Seats, LostSeat{ID: seat.ID, Place: seat.Place, Reason: ReasonAlone, Fence: seat.Fence})
		}
	}
	return refusal
}
