package access

import (
	"context"
	"errors"
	"fmt"

	"seatfence/booking"
	"seatfence/db"
)

// ErrNoOrganizer says that no organizer has the name.
var ErrNoOrganizer = errors.New("no organizer has this name; its first API key makes it")

// Operator is who works for the organizer of that name from the command line, with no key and so without an id.
func (k *Keys) Operator(ctx context.Context, organizer string) (booking.Caller, error) {
	id, err := queries.OrganizerByName(ctx, k.pool, organizer)
	if db.NotFound(err) {
		return booking.Caller{}, ErrNoOrganizer
	}
	if err != nil {
		return booking.Caller{}, fmt.Errorf("look up organizer: %w", err)
	}
	return booking.Caller{Kind: booking.Organizer, Organizer: id}, nil
}
