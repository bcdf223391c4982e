//go:build failpoint

package booking_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/internal/failpoint"
	"seatfence/seats"
)

// takings are the ways in which a buyer can take seat 10.
var takings = map[string]struct {
	take   func(context.Context, World, booking.Caller) error
	reason string // why the seat is not allotted afterwards
}{
	"hold":        {func(ctx context.Context, w World, c booking.Caller) error { return second(w.Hold(ctx, c, 10)) }, booking.ReasonHeld},
	"hold of two": {func(ctx context.Context, w World, c booking.Caller) error { return second(w.Hold(ctx, c, 11, 10)) }, booking.ReasonHeld},
	"sale of two": {func(ctx context.Context, w World, c booking.Caller) error { return second(w.Book(ctx, c, 11, 10)) }, booking.ReasonBooked},
	"sale":        {func(ctx context.Context, w World, c booking.Caller) error { return second(w.Book(ctx, c, 10)) }, booking.ReasonBooked},
}

func TestAllotmentWaitsForTheSaleUnderWayAndNamesItsSeat(t *testing.T) {
	for name, way := range takings {
		if name == "sale" {
			continue // one statement, which has no place to stop at between its write and its commit
		}
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			made := channel(t, w, nil)
			finish := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error { return way.take(ctx, w, Buyer()) })
			ended := begun(t, w, 1, func() error {
				return second(w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Add: []seats.ID{9, 10}}))
			})
			wantWaiting(t, ended, "the allotment")
			if err := finish(); err != nil {
				t.Fatal(err)
			}
			lost := refused(t, <-ended, booking.CodeSeatTaken).Seats
			if len(lost) != 1 || lost[0].ID != 10 || lost[0].Reason != way.reason {
				t.Errorf("the allotment is told %+v", lost)
			}
			w.MustHold(t, Buyer(), 9)
		})
	}
}

// Whoever has waited for an allotment has read the event before it: the seat's own row has to say whose it is.
func TestSaleThatWaitedForAnAllotmentDoesNotGetItsSeat(t *testing.T) {
	for name, way := range takings {
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			agency, lena := partner(t, w), Buyer()
			made := channel(t, w, nil, agency.ID)
			finish := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error {
				return second(w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Add: []seats.ID{10, 11}}))
			})
			ended := begun(t, w, 1, func() error { return way.take(ctx, w, lena) })
			wantWaiting(t, ended, "the "+name)
			if err := finish(); err != nil {
				t.Fatal(err)
			}
			for _, lost := range refused(t, <-ended, booking.CodeSeatTaken).Seats {
				if lost.Reason != booking.ReasonBlocked {
					t.Errorf("the buyer is told %+v", lost)
				}
			}
			if err := way.take(ctx, w, agency); err != nil {
				t.Errorf("the agency: %v", err)
			}
		})
	}
}

// An exchange gives a channel to another key together with a seat that the first one never had.
func TestSaleThatWaitedForAnExchangeOfKeysDoesNotGetItsSeat(t *testing.T) {
	for name, way := range takings {
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			before, after := partner(t, w), partner(t, w)
			made := channel(t, w, nil, before.ID)
			finish := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error {
				return second(w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{
					Keys: &[]uuid.UUID{after.ID}, Add: []seats.ID{10, 11},
				}))
			})
			ended := begun(t, w, 1, func() error { return way.take(ctx, w, before) })
			if name != "sale" { // whose one statement finds no seat for the key, and so waits for nothing
				wantWaiting(t, ended, "the "+name)
			}
			if err := finish(); err != nil {
				t.Fatal(err)
			}
			refused(t, <-ended, booking.CodeSeatTaken)
		})
	}
}
