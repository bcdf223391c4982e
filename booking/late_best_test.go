//go:build failpoint

package booking_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/internal/failpoint"
)

// TestSeatsThatOthersAreAboutToTakeAreNotGone: whoever asks for the best while the last ones are being written waits for the outcome. Here
// the write fails, so they are there to be had.
func TestSeatsThatOthersAreAboutToTakeAreNotGone(t *testing.T) {
	t.Parallel()
	w := hall(t, 1, 2)
	var set failpoint.Set
	reached, resume := make(chan struct{}), make(chan struct{})
	set.Arm(failpoint.BeforeCommit, func(context.Context) error {
		close(reached)
		<-resume
		return errors.New("the transaction fails")
	})
	first := make(chan error, 1)
	go func() {
		_, err := best(failpoint.With(t.Context(), &set), w, Buyer(), booking.BestWish{Quantity: 2})
		first <- err
	}()
	<-reached
	read := w.Pool.Stat().AcquireCount()
	second := make(chan error, 1)
	go func() {
		_, err := best(t.Context(), w, Buyer(), booking.BestWish{Quantity: 2})
		second <- err
	}()
	until(t, "the second has read what is free", func() bool { return w.Pool.Stat().AcquireCount() > read })
	select {
	case err := <-second:
		t.Errorf("answered before the first has ended: %v", err)
		second <- err
	case <-time.After(100 * time.Millisecond): // it waits, or a fault would have shown by now
	}
	close(resume)
	if err := <-first; err == nil {
		t.Error("the first has seats")
	}
	if err := <-second; err != nil {
		t.Errorf("the second: %v", err)
	}
}

// TestQueueKnowsADrawingThatIsNew: whoever lost to others so often that they stand in the queue is not refused because the event was drawn
// anew at that moment.
func TestQueueKnowsADrawingThatIsNew(t *testing.T) {
	t.Parallel()
	const losses = 4 // after which the queue is used
	w := hall(t, 1, 6)
	var set failpoint.Set
	lost, drawn := 0, make(chan error, 1)
	var lose func(context.Context) error
	lose = func(context.Context) error {
		if lost++; lost < losses {
			set.Arm(failpoint.BeforeCommit, lose)
		} else {
			go func() {
				_, err := w.Pool.Exec(context.Background(), "UPDATE events SET layout = layout + 1 WHERE id = $1", int64(w.Event))
				drawn <- err
			}()
			until(t, "the new drawing waits for the event", func() bool { return waiting(t, w) == 1 })
		}
		return &pgconn.PgError{Code: "55P03"} // as after a wait for a lock
	}
	set.Arm(failpoint.BeforeCommit, lose)
	hold, err := best(failpoint.With(t.Context(), &set), w, Buyer(), booking.BestWish{Quantity: 2})
	if err != nil || len(hold.Seats) != 2 || lost != losses {
		t.Fatalf("after %d losses six seats are free: %+v, %v", lost, hold, err)
	}
	if err := <-drawn; err != nil {
		t.Error(err)
	}
}

// TestSaleUnderWayIsFinishedBeforeANewPlan: a plan that drops a seat waits for its sale, and then names it.
func TestSaleUnderWayIsFinishedBeforeANewPlan(t *testing.T) {
	w, p, _ := planned(t)
	finish := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error {
		_, err := w.Book(ctx, Buyer(), 5, 6)
		return err
	})
	p.Sections[0].Rows[0].Seats = p.Sections[0].Rows[0].Seats[:4]
	p.Sections[0].Rows[0].Seats = append(p.Sections[0].Rows[0].Seats[:0:0], p.Sections[0].Rows[0].Seats...)
	ref := published(t, w, p)
	var refusal error
	ended := begun(t, w, 1, func() error {
		_, refusal = w.Service.ChangePlan(context.Background(), w.Owner, w.Event, booking.PlanChange{Plan: ref.Plan, Version: ref.Version})
		return refusal
	})
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	if lost := refused(t, <-ended, booking.CodePlan).Seats; len(lost) != 2 || lost[0].Reason != booking.ReasonBooked {
		t.Errorf("refused with %+v", lost)
	}
}

// TestChoiceWaitsForTheOneBesideIt: alone, each of the two leaves two seats side by side; the second is judged by what the first has left.
func TestChoiceWaitsForTheOneBesideIt(t *testing.T) {
	t.Parallel()
	w := hall(t, 3, 4, strict)
	w.MustHold(t, Buyer(), 4)
	finish := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error {
		_, err := w.Hold(ctx, Buyer(), 1)
		return err
	})
	second := begun(t, w, 1, func() error {
		_, err := w.Hold(context.Background(), Buyer(), 3)
		return err
	})
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	if lost := refused(t, <-second, booking.CodeSeatAlone).Seats; len(lost) != 1 || lost[0].ID != 2 {
		t.Errorf("refused with %+v", lost)
	}
}
