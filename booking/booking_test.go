package booking_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/seats"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

func setup(t *testing.T, change ...func(*booking.Limits)) (context.Context, World) {
	t.Helper()
	t.Parallel()
	limits := booking.DefaultLimits
	for _, c := range change {
		c(&limits)
	}
	w := New(t, dbtest.Pool(t), limits)
	t.Cleanup(func() { w.Verify(t) })
	return t.Context(), w
}

// refused returns the refusal of a write that lost its seats.
func refused(t *testing.T, err error, code string) *booking.SeatsError {
	t.Helper()
	refusal, ok := errors.AsType[*booking.SeatsError](err)
	if !ok || refusal.Code != code {
		t.Fatalf("got %v, want a refusal with code %s", err, code)
	}
	return refusal
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func stateOf(t *testing.T, w World, id seats.ID) seats.Seat {
	t.Helper()
	seat, err := w.Service.Seat(t.Context(), w.Owner, w.Event, id)
	if err != nil {
		t.Fatal(err)
	}
	return seat
}

func TestHoldThenConfirmSellsTheSeats(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1, 2)
	if hold.Total != 2*SeatPrice || len(hold.Seats) != 2 || hold.Seats[0].Fence != 1 || hold.Seats[0].Label() != "Stalls A1" {
		t.Fatalf("hold is %+v", hold)
	}
	if left := hold.ExpiresAt.Sub(hold.ServerTime); left != booking.DefaultLimits.HoldTTL {
		t.Errorf("hold lives %s", left)
	}
	made, err := w.Confirm(ctx, lena, hold.ID)
	if err != nil {
		t.Fatal(err)
	}
	if made.Status != booking.BookingConfirmed || made.Total != hold.Total || len(made.Seats) != 2 || made.Seats[1].Fence != 2 {
		t.Fatalf("booking is %+v", made)
	}
	if seat := stateOf(t, w, 1); seat.State != seats.Booked || seat.Fence != 2 {
		t.Errorf("seat is %+v", seat)
	}
	again, err := w.Confirm(ctx, lena, hold.ID)
	if err != nil || again.ID != made.ID {
		t.Errorf("confirming twice gave %v, %v; want the same booking", again.ID, err)
	}
	read, err := w.Service.GetBooking(ctx, lena, made.ID)
	if err != nil || read.Number != made.Number || !slices.Equal(read.Seats, made.Seats) {
		t.Errorf("read back %+v, %v; made %+v", read, err, made)
	}
	got, err := w.Service.GetHold(ctx, lena, hold.ID)
	if err != nil || got.Status != booking.HoldBooked || *got.Booking != made.ID {
		t.Errorf("hold reads %+v, %v", got, err)
	}
}

func TestTakenSeatsAreNamedWithFreeOnesNearby(t *testing.T) {
	ctx, w := setup(t)
	if _, err := w.Book(ctx, Buyer(), Seat14C); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"hold":          func() error { _, err := w.Hold(ctx, Buyer(), Seat14C, 3); return err },
		"book directly": func() error { _, err := w.Book(ctx, Buyer(), Seat14C); return err },
		"book several":  func() error { _, err := w.Book(ctx, Buyer(), 3, Seat14C); return err },
	} {
		refusal := refused(t, try(), booking.CodeSeatTaken)
		if len(refusal.Seats) != 1 || refusal.Seats[0].ID != Seat14C || refusal.Seats[0].Reason != booking.ReasonBooked || refusal.Seats[0].Label() != "Stalls C14" {
			t.Errorf("%s: lost seats are %+v", name, refusal.Seats)
		}
		if len(refusal.Alternatives) == 0 || refusal.Alternatives[0].Row != "C" || refusal.Alternatives[0].Price != SeatPrice {
			t.Errorf("%s: alternatives are %+v", name, refusal.Alternatives)
		}
	}
	if seat := stateOf(t, w, 3); seat.State != seats.Free || seat.Fence != 0 {
		t.Errorf("a seat of a refused request is %+v", seat)
	}
}

func TestOlderFenceIsRefused(t *testing.T) {
	ctx, w := setup(t)
	hold := w.MustHold(t, Buyer(), 7)
	want := []seats.Want{{ID: 7, Fence: 0}}
	_, _, err := w.Service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: w.Event, Seats: want})
	refused(t, err, booking.CodeSeatTaken)
	w.Expire(t, hold.ID)
	_, _, err = w.Service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: w.Event, Seats: want})
	refused(t, err, booking.CodeStaleFence)
	_, _, err = w.Service.Book(ctx, Buyer(), Key(), booking.BookRequest{Event: w.Event, Seats: want, Name: "x", Email: "x@example.com"})
	refused(t, err, booking.CodeStaleFence)
	want[0].Fence = 1
	if _, _, err = w.Service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: w.Event, Seats: want}); err != nil {
		t.Error(err)
	}
}

func TestCancelFreesTheSeatAtOnce(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	made, err := w.Book(ctx, lena, 11, 12)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Service.Cancel(ctx, Buyer(), made.ID); !errors.Is(err, booking.ErrNotFound) {
		t.Fatalf("a stranger cancels: %v", err)
	}
	gone, err := w.Service.Cancel(ctx, lena, made.ID)
	if err != nil || gone.Status != booking.BookingCancelled || gone.CancelledAt == nil {
		t.Fatalf("cancelled booking is %+v, %v", gone, err)
	}
	_, err = w.Service.Cancel(ctx, lena, made.ID)
	wantErr(t, err, booking.ErrBookingCancelled)
	if _, err := w.Book(ctx, Buyer(), 11); err != nil {
		t.Error(err)
	}
}

func TestSameKeyGivesTheSameAnswer(t *testing.T) {
	ctx, w := setup(t)
	lena, key := Buyer(), Key()
	var wg sync.WaitGroup
	type result struct {
		made     booking.Booking
		replayed bool
		err      error
	}
	results := make([]result, 64)
	for i := range results {
		wg.Go(func() {
			r := &results[i]
			r.made, r.replayed, r.err = w.Service.Book(ctx, lena, key, w.Request(Seat14C))
		})
	}
	wg.Wait()
	fresh := 0
	for _, r := range results {
		if r.err != nil {
			t.Fatal(r.err)
		}
		if !r.replayed {
			fresh++
		}
		if r.made.ID != results[0].made.ID || r.made.CreatedAt != results[0].made.CreatedAt || !slices.Equal(r.made.Seats, results[0].made.Seats) {
			t.Fatalf("answers differ: %+v and %+v", r.made, results[0].made)
		}
	}
	if fresh != 1 {
		t.Errorf("%d effects, want 1", fresh)
	}
	other := booking.Idempotency{Key: key.Key, Fingerprint: []byte("another body")}
	_, _, err := w.Service.Book(ctx, lena, other, w.Request(2))
	wantErr(t, err, booking.ErrKeyReused)
	if seat := stateOf(t, w, 2); seat.State != seats.Free {
		t.Errorf("a request under a used key left seat 2 %s", seat.State)
	}
	_, _, err = w.Service.Book(ctx, lena, other, w.Request(Seat14C))
	wantErr(t, err, booking.ErrKeyReused)
	if _, lost := errors.AsType[*booking.SeatsError](err); lost {
		t.Errorf("a reused key is told of seats too: %v", err)
	}
	if _, _, err := w.Service.Book(ctx, Buyer(), key, w.Request(2)); err != nil {
		t.Errorf("another caller's key is not independent: %v", err)
	}
}

func TestDirectBookingRefusesAChangedPrice(t *testing.T) {
	ctx, w := setup(t)
	expected := int64(SeatPrice)
	req := w.Request(1)
	req.ExpectedTotal = &expected
	if _, err := w.Pool.Exec(ctx, "UPDATE prices SET amount = amount + 100"); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.Service.Book(ctx, Buyer(), Key(), req)
	wantErr(t, err, booking.ErrPriceChanged)
	if seat := stateOf(t, w, 1); seat.State != seats.Free {
		t.Errorf("seat is %s", seat.State)
	}
}
