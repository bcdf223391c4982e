package booking_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

func strict(e *booking.NewEvent) { e.OrphanRule = true }

// alone is the refusal of a choice that would leave the given seat alone.
func alone(t *testing.T, err error, seat seats.ID) *booking.SeatsError {
	t.Helper()
	refusal := refused(t, err, booking.CodeSeatAlone)
	if len(refusal.Seats) != 1 || refusal.Seats[0].ID != seat || refusal.Seats[0].Reason != booking.ReasonAlone {
		t.Errorf("alone are %+v, want %d", refusal.Seats, seat)
	}
	return refusal
}

func TestChoiceThatLeavesASeatAloneIsRefusedWithABetterOne(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 2, 6, strict)
	_, err := w.Hold(ctx, Buyer(), 2, 3)
	refusal := alone(t, err, 1)
	better := make([]seats.ID, len(refusal.Alternatives))
	for i, s := range refusal.Alternatives {
		better[i] = s.ID
	}
	if !slices.Equal(better, []seats.ID{1, 2}) && !slices.Equal(better, []seats.ID{3, 4}) {
		t.Errorf("better is %v", better)
	}
	if hold, err := w.Hold(ctx, Buyer(), better...); err != nil || hold.LastResort {
		t.Errorf("the better choice: %+v, %v", hold, err)
	}
	_, err = w.Book(ctx, Buyer(), 8) // one seat is one statement, where no rule is
	alone(t, err, 7)
	if _, err := w.Book(ctx, w.Owner, 8); err != nil {
		t.Errorf("the organizer may: %v", err)
	}
	w.Verify(t)
}

func TestWholeRequestIsJudged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 1, 8, strict)
	w.MustHold(t, Buyer(), 8)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1, 2, 3)
	_, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(5)})
	alone(t, err, 4)
	if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(4, 5)}); err != nil {
		t.Errorf("adding both: %v", err)
	}
	_, err = w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Drop: []seats.ID{2}})
	alone(t, err, 2)
	if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Drop: []seats.ID{4, 5}}); err != nil {
		t.Errorf("dropping what was added: %v", err)
	}
}

func TestLastSeatsMayLeaveOneAlone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 1, 4, strict)
	w.MustHold(t, Buyer(), 1, 2)
	hold, err := w.Hold(ctx, Buyer(), 3)
	if err != nil || !hold.LastResort {
		t.Errorf("one of the last two: %+v, %v", hold, err)
	}
}

// TestTwoChoicesSideBySideAreJudgedInTurn: each alone leaves two seats, both together one.
func TestTwoChoicesSideBySideAreJudgedInTurn(t *testing.T) {
	t.Parallel()
	for range 20 {
		w := hall(t, 3, 4, strict)
		w.MustHold(t, Buyer(), 4)
		var all sync.WaitGroup
		results := make([]error, 2)
		for i, id := range []seats.ID{1, 3} {
			all.Go(func() { _, results[i] = w.Hold(context.Background(), Buyer(), id) })
		}
		all.Wait()
		if (results[0] == nil) == (results[1] == nil) {
			t.Fatalf("seat 2 is alone: %v, %v", results[0], results[1])
		}
	}
}

func TestSeatsOfAnotherPriceAreWalls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 1, 2, strict, func(e *booking.NewEvent) {
		e.House.Sections[0].Rows = append(e.House.Sections[0].Rows, plan.HouseRow{Label: "B", Category: "Standing", Seats: 2})
	})
	_, err := w.Hold(ctx, Buyer(), 1)
	if err != nil {
		t.Errorf("the last two of their price: %v", err)
	}
}

func TestAnEquallyGoodChoiceIsHeldInstead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 3, 6)
	w.MustHold(t, Buyer(), 3)
	lena, key := Buyer(), Key()
	req := booking.HoldRequest{Event: w.Event, Seats: Wants(3, 4)}
	_, _, refusal := w.Service.Hold(ctx, lena, key, req)
	for range 2 { // the answer may be lost, and be asked for again
		lost := refused(t, w.Service.Instead(ctx, lena, key, req, refusal), booking.CodeSeatTaken)
		if lost.Instead == nil || len(lost.Instead.Seats) != 2 || !*lost.Instead.Together {
			t.Fatalf("instead: %+v", lost.Instead)
		}
		if ids := idsOf(*lost.Instead); !slices.Equal(ids, []seats.ID{5, 6}) && !slices.Equal(ids, []seats.ID{1, 2}) && !slices.Equal(ids, []seats.ID{9, 10}) {
			t.Errorf("instead of 3 and 4: %v", ids)
		}
	}
	var held int
	if err := w.Pool.QueryRow(ctx, "SELECT count(*) FROM seats WHERE hold_id IS NOT NULL").Scan(&held); err != nil || held != 3 {
		t.Errorf("%d seats are held, %v", held, err)
	}
	if err := w.Service.Instead(ctx, lena, key, req, booking.ErrEventPaused); !errors.Is(err, booking.ErrEventPaused) {
		t.Errorf("what other seats do not help: %v", err)
	}
	w.Verify(t)
}

// The same request once more: the seat has come free, but the caller holds another instead.
func TestRetryOfAnAlternativeHoldsOneNotTwo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 2, 6)
	first := w.MustHold(t, w.Owner, 2)
	lena, key := Buyer(), Key()
	req := booking.HoldRequest{Event: w.Event, Seats: Wants(2)}
	ask := func() error {
		if err := w.Service.HeldInstead(ctx, lena, key, req); err != nil {
			return err
		}
		_, _, err := w.Service.Hold(ctx, lena, key, req)
		if err != nil {
			err = w.Service.Instead(ctx, lena, key, req, err)
		}
		return err
	}
	refusal := refused(t, ask(), booking.CodeSeatTaken)
	if refusal.Instead == nil {
		t.Fatal("nothing instead")
	}
	if err := w.Service.Release(ctx, w.Owner, first.ID); err != nil {
		t.Fatal(err)
	}
	if again := refused(t, ask(), booking.CodeSeatTaken); again.Instead == nil || again.Instead.ID != refusal.Instead.ID {
		t.Errorf("the second answer is %+v", again)
	}
	var held int
	if err := w.Pool.QueryRow(ctx, "SELECT count(*) FROM seats s JOIN holds h ON h.event_id = s.event_id AND h.id = s.hold_id WHERE h.buyer = $1", lena.ID).Scan(&held); err != nil || held != 1 {
		t.Errorf("one request for one seat, sent twice under one key, holds %d seats, %v", held, err)
	}
}
