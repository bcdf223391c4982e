package booking_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
)

// A panic while the hall is read must not end the choice of seats for everybody who comes later: the server goes on after it.
func TestPanicOfOneReaderKeepsNobodyElse(t *testing.T) {
	t.Parallel()
	service := booking.New(nil, booking.DefaultLimits) // there is nothing to read from
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		func() {
			defer func() { _ = recover() }()
			_, _, err := service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: 1, Best: &booking.BestWish{Quantity: 1}})
			if errors.Is(err, context.DeadlineExceeded) {
				t.Error("the next one waits for ever")
			}
		}()
		if ctx.Err() != nil {
			t.Error("the next one waits for ever")
		}
		cancel()
	}
}
