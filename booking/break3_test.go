package booking_test

import (
	"context"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
)

// Whoever lost to others so often that they stand in the queue is not refused because the event was drawn anew at that moment.
func TestQueueKnowsADrawingThatIsNew(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 1, 6)
	if _, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 1}); err != nil { // the hall is known
		t.Fatal(err)
	}
	tx, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, "SELECT 1 FROM seats WHERE event_id = $1 FOR UPDATE", int64(w.Event)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 2, Category: "Stalls"})
		done <- err
	}()
	time.Sleep(1700 * time.Millisecond) // the fourth of its tries waits for a seat
	if _, err := w.Pool.Exec(ctx, "UPDATE events SET layout = layout + 1 WHERE id = $1", int64(w.Event)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("four seats are free: %v", err)
	}
}
