package booking_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

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

func TestOwnSeatIsNamedAsYoursAndItsClockGoesOn(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 5)
	_, err := w.Hold(ctx, lena, 5)
	refusal := refused(t, err, booking.CodeSeatYours)
	if l := refusal.Seats[0]; l.Reason != booking.ReasonYours || *l.Hold != hold.ID || !l.HeldUntil.Equal(hold.ExpiresAt) {
		t.Errorf("lost seat is %+v", l)
	}
	same, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(5)})
	if err != nil || !same.ExpiresAt.Equal(hold.ExpiresAt) {
		t.Errorf("adding it again moved the end from %v to %v (%v)", hold.ExpiresAt, same.ExpiresAt, err)
	}
}

func TestOlderFenceIsRefused(t *testing.T) {
	ctx, w := setup(t)
	hold := w.MustHold(t, Buyer(), 7)
	want := []seats.Want{{ID: 7, Fence: 0, Type: seats.Standard}}
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

func TestExpiredHoldIsTakenOverInPlaceWithoutASweeper(t *testing.T) {
	ctx, w := setup(t)
	lena, omar := Buyer(), Buyer()
	late := w.MustHold(t, lena, Seat14C, 55)
	w.Expire(t, late.ID)
	if seat := stateOf(t, w, Seat14C); seat.State != seats.Free {
		t.Fatalf("a seat whose hold ran out is %s", seat.State)
	}
	hold := w.MustHold(t, omar, Seat14C)
	if hold.Seats[0].Fence != late.Seats[0].Fence+1 {
		t.Errorf("take-over moved the fence from %d to %d", late.Seats[0].Fence, hold.Seats[0].Fence)
	}
	_, err := w.Confirm(ctx, lena, late.ID)
	wantErr(t, err, booking.ErrHoldExpired)
	_, err = w.Service.ChangeHold(ctx, lena, late.ID, booking.HoldChange{Extend: true})
	wantErr(t, err, booking.ErrHoldExpired)
	if err := w.Service.Release(ctx, lena, late.ID); err != nil {
		t.Fatal(err)
	}
	if seat := stateOf(t, w, Seat14C); seat.State != seats.Held || seat.Fence != hold.Seats[0].Fence {
		t.Errorf("after the late release the seat is %+v", seat)
	}
	if got, err := w.Service.GetHold(ctx, lena, late.ID); err != nil || got.Seats[0].Owned {
		t.Errorf("the lost seat still reads as owned: %+v, %v", got, err)
	}
	if _, err := w.Confirm(ctx, omar, hold.ID); err != nil {
		t.Error(err)
	}
}

func TestSweepMakesExpiryVisible(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1, 2, 3)
	w.Expire(t, hold.ID)
	if n, err := w.Service.Sweep(ctx); n != 1 || err != nil {
		t.Fatalf("sweep ended %d holds, %v", n, err)
	}
	if seat := stateOf(t, w, 2); seat.State != seats.Free || seat.Fence != 2 {
		t.Errorf("swept seat is %+v", seat)
	}
	got, err := w.Service.GetHold(ctx, lena, hold.ID)
	if err != nil || got.Status != booking.HoldExpired {
		t.Errorf("swept hold reads %+v, %v", got, err)
	}
	history, err := w.Service.History(ctx, w.Owner, w.Event, 2, 0, 10)
	if c := history.Changes; err != nil || len(c) != 2 || c[0].Action != "expired" || c[1].Action != "held" || c[0].Actor != nil {
		t.Errorf("ledger is %+v, %v", history, err)
	}
}

func TestExtendIsBoundedByCountAndByTheHoldsEnd(t *testing.T) {
	ctx, w := setup(t, func(l *booking.Limits) { l.HoldTTL, l.HoldLongest, l.Extensions = time.Minute, 90*time.Second, 3 })
	lena := Buyer()
	hold := w.MustHold(t, lena, 1, 2)
	_, err := w.Pool.Exec(ctx, "WITH h AS (UPDATE holds SET expires_at = expires_at - interval '45 s') UPDATE seats SET held_until = held_until - interval '45 s' WHERE hold_id IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	longer, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Extend: true})
	if err != nil || !longer.ExpiresAt.After(hold.ExpiresAt.Add(-45*time.Second)) || longer.ExpiresAt.After(longer.EndsAt) {
		t.Fatalf("extended from %v to %v of %v: %v", hold.ExpiresAt, longer.ExpiresAt, longer.EndsAt, err)
	}
	if _, err := w.Pool.Exec(ctx, "WITH h AS (UPDATE holds SET ends_at = expires_at) SELECT 1"); err != nil {
		t.Fatal(err)
	}
	_, err = w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Extend: true})
	wantErr(t, err, booking.ErrExtensionLimit)
}

func TestAddAndDropAreOneChange(t *testing.T) {
	ctx, w := setup(t)
	lena, omar := Buyer(), Buyer()
	hold := w.MustHold(t, lena, 1, 2, 3)
	w.MustHold(t, omar, 9)
	_, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(4, 9), Drop: []seats.ID{1}})
	refused(t, err, booking.CodeSeatTaken)
	if a, b := stateOf(t, w, 1), stateOf(t, w, 4); a.State != seats.Held || b.State != seats.Free {
		t.Fatalf("a refused change left seats %s and %s", a.State, b.State)
	}
	changed, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(4), Drop: []seats.ID{1}})
	if err != nil || len(changed.Seats) != 3 || changed.Seats[2].ID != 4 || !changed.ExpiresAt.Equal(hold.ExpiresAt) {
		t.Fatalf("changed hold is %+v, %v", changed, err)
	}
	if seat := stateOf(t, w, 1); seat.State != seats.Free {
		t.Errorf("dropped seat is %s", seat.State)
	}
	price := int64(1)
	_, err = w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(10), ExpectedTotal: &price})
	wantErr(t, err, booking.ErrPriceChanged)
	made, err := w.Confirm(ctx, lena, hold.ID)
	if err != nil || len(made.Seats) != 3 {
		t.Fatalf("confirmed %+v, %v", made, err)
	}
}

func TestCapHoldsUnder64ParallelRequests(t *testing.T) {
	ctx, w := setup(t, func(l *booking.Limits) { l.HeldByBuyer = 8 })
	lena := Buyer()
	var wg sync.WaitGroup
	errs := make([]error, 60)
	for i := range errs {
		wg.Go(func() { _, errs[i] = w.Hold(ctx, lena, seats.ID(i+1)) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, booking.ErrHoldLimit):
			if refusal, ok := errors.AsType[*booking.SeatsError](err); !ok || refusal.Code != booking.CodeSeatBusy {
				t.Errorf("refused with %v", err)
			}
		}
	}
	var held int
	if err := w.Pool.QueryRow(ctx, "SELECT count(*) FROM seats WHERE hold_id IS NOT NULL").Scan(&held); err != nil {
		t.Fatal(err)
	}
	if held != won || held > 8 || held == 0 {
		t.Errorf("%d seats held by %d winning requests, cap 8", held, won)
	}
}

func TestPlacesOfAnAreaSellOutExactly(t *testing.T) {
	ctx, w := setup(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	sold := 0
	for range 40 {
		wg.Go(func() {
			lena := Buyer()
			hold, _, err := w.Service.Hold(ctx, lena, Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: Floor, Quantity: 2}})
			if errors.Is(err, booking.ErrSoldOut) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			made, err := w.Confirm(ctx, lena, hold.ID)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			sold += len(made.Seats)
			mu.Unlock()
		})
	}
	wg.Wait()
	if sold != FloorSize {
		t.Errorf("sold %d of %d places", sold, FloorSize)
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

func TestBlockedSeatsAreNotSold(t *testing.T) {
	ctx, w := setup(t)
	held := w.MustHold(t, Buyer(), 20)
	_, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{19, 20}, "camera")
	refused(t, err, booking.CodeSeatTaken)
	w.Expire(t, held.ID)
	block, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{19, 20}, "camera")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Book(ctx, Buyer(), 19)
	if refusal := refused(t, err, booking.CodeSeatTaken); refusal.Seats[0].Reason != booking.ReasonBlocked {
		t.Errorf("refused as %+v", refusal.Seats)
	}
	if err := w.Service.Unblock(ctx, w.Owner, block.ID); err != nil {
		t.Fatal(err)
	}
	wantErr(t, w.Service.Unblock(ctx, w.Owner, block.ID), booking.ErrBlockRemoved)
	if _, err := w.Book(ctx, Buyer(), 19, 20); err != nil {
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

func TestReplayedHoldIsTheHoldAsItWasMade(t *testing.T) {
	ctx, w := setup(t)
	lena, key := Buyer(), Key()
	req := booking.HoldRequest{Event: w.Event, Seats: Wants(1, 2)}
	first, _, err := w.Service.Hold(ctx, lena, key, req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Service.ChangeHold(ctx, lena, first.ID, booking.HoldChange{Drop: []seats.ID{1}}); err != nil {
		t.Fatal(err)
	}
	again, replayed, err := w.Service.Hold(ctx, lena, key, req)
	if err != nil || !replayed || !slices.Equal(again.Seats, first.Seats) || !again.ServerTime.Equal(first.ServerTime) {
		t.Errorf("replayed %v %+v, %v; made %+v", replayed, again, err, first)
	}
}

func TestPausedAndCancelledEventsSellNothing(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	made, err := w.Book(ctx, lena, 2)
	if err != nil {
		t.Fatal(err)
	}
	set := func(status string) {
		t.Helper()
		if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &status}); err != nil {
			t.Fatal(err)
		}
	}
	tries := map[string]func() error{
		"hold": func() error { _, err := w.Hold(ctx, Buyer(), 3); return err },
		"extend": func() error {
			_, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Extend: true})
			return err
		},
		"add": func() error {
			_, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(4)})
			return err
		},
		"confirm": func() error { _, err := w.Confirm(ctx, lena, hold.ID); return err },
		"direct":  func() error { _, err := w.Book(ctx, Buyer(), 5); return err },
		"several": func() error { _, err := w.Book(ctx, Buyer(), 5, 6); return err },
	}
	set(booking.StatusPaused)
	for name, try := range tries {
		if err := try(); !errors.Is(err, booking.ErrEventPaused) {
			t.Errorf("%s in a paused event: %v", name, err)
		}
	}
	set(booking.StatusOnSale)
	set(booking.StatusCancelled)
	for name, try := range tries {
		if err := try(); !errors.Is(err, booking.ErrEventCancelled) {
			t.Errorf("%s in a cancelled event: %v", name, err)
		}
	}
	for {
		n, err := w.Service.Sweep(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	gone, err := w.Service.GetBooking(ctx, lena, made.ID)
	if err != nil || gone.Status != booking.BookingCancelled {
		t.Errorf("booking of a cancelled event is %s, %v", gone.Status, err)
	}
	back := booking.StatusOnSale
	_, err = w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &back})
	wantErr(t, err, booking.ErrBadTransition)
}

func TestLiveHoldKeepsItsPriceAndItsWindow(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	if _, err := w.Pool.Exec(ctx, "UPDATE seats SET price = price * 2"); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(-time.Second)
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{SaleEndsAt: &end}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Hold(ctx, Buyer(), 2)
	wantErr(t, err, booking.ErrSaleEnded)
	_, err = w.Book(ctx, Buyer(), 2)
	wantErr(t, err, booking.ErrSaleEnded)
	made, err := w.Confirm(ctx, lena, hold.ID)
	if err != nil || made.Total != SeatPrice {
		t.Errorf("the hold was sold for %d, %v; promised %d", made.Total, err, SeatPrice)
	}
}

func TestDirectBookingRefusesAChangedPrice(t *testing.T) {
	ctx, w := setup(t)
	expected := int64(SeatPrice)
	req := w.Request(1)
	req.ExpectedTotal = &expected
	if _, err := w.Pool.Exec(ctx, "UPDATE seats SET price = price + 100"); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.Service.Book(ctx, Buyer(), Key(), req)
	wantErr(t, err, booking.ErrPriceChanged)
	if seat := stateOf(t, w, 1); seat.State != seats.Free {
		t.Errorf("seat is %s", seat.State)
	}
}

func TestPaidEventsAreNotConfirmedByBuyers(t *testing.T) {
	ctx, w := setup(t)
	spec := Spec()
	spec.Payment = booking.PaymentRequired
	spec.House.Categories[1].Price = 0
	spec.House.Sections[0].Rows[2].Category = "Standing" // row C is free of charge
	w.Event = w.NewEvent(t, spec)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	for name, try := range map[string]func() error{
		"checkout": func() error { _, err := w.Service.Checkout(ctx, lena, hold.ID); return err },
		"confirm":  func() error { _, err := w.Confirm(ctx, lena, hold.ID); return err },
		"direct":   func() error { _, err := w.Book(ctx, lena, 2); return err },
		"several":  func() error { _, err := w.Book(ctx, lena, 2, 3); return err },
	} {
		if err := try(); !errors.Is(err, booking.ErrPaymentRequired) {
			t.Errorf("%s: %v", name, err)
		}
	}
	free, _, err := w.Service.Book(ctx, lena, Key(), booking.BookRequest{
		Event: w.Event, Places: &booking.AreaPlaces{Area: Floor, Quantity: 2}, Name: "Lena", Email: "lena@example.com",
	})
	if err != nil || free.Total != 0 {
		t.Errorf("free places: %+v, %v", free, err)
	}
	if _, err := w.Book(ctx, lena, Seat14C); err != nil {
		t.Errorf("a seat that costs nothing: %v", err)
	}
	partner := booking.Caller{Kind: booking.Partner, ID: Buyer().ID, Organizer: w.Owner.Organizer}
	if _, err := w.Book(ctx, partner, 2); err != nil {
		t.Errorf("a partner with a payment of its own: %v", err)
	}
}

func TestForeignThingsAreUnknown(t *testing.T) {
	ctx, w := setup(t)
	stranger := booking.Caller{Kind: booking.Organizer, ID: Buyer().ID, Organizer: Organizer(t, w.Pool)}
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	made, err := w.Book(ctx, lena, 2)
	if err != nil {
		t.Fatal(err)
	}
	block, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{3}, "camera")
	if err != nil {
		t.Fatal(err)
	}
	status := booking.StatusPaused
	for name, try := range map[string]func(booking.Caller) error{
		"read hold": func(c booking.Caller) error { _, err := w.Service.GetHold(ctx, c, hold.ID); return err },
		"change hold": func(c booking.Caller) error {
			_, err := w.Service.ChangeHold(ctx, c, hold.ID, booking.HoldChange{Drop: []seats.ID{1}, Add: Wants(9)})
			return err
		},
		"checkout": func(c booking.Caller) error { _, err := w.Service.Checkout(ctx, c, hold.ID); return err },
		"release":  func(c booking.Caller) error { return w.Service.Release(ctx, c, hold.ID) },
		"confirm":  func(c booking.Caller) error { _, err := w.Confirm(ctx, c, hold.ID); return err },
		"booking":  func(c booking.Caller) error { _, err := w.Service.GetBooking(ctx, c, made.ID); return err },
		"cancel":   func(c booking.Caller) error { _, err := w.Service.Cancel(ctx, c, made.ID); return err },
	} {
		for who, c := range map[string]booking.Caller{"buyer": Buyer(), "organizer": stranger} {
			if err := try(c); !errors.Is(err, booking.ErrNotFound) {
				t.Errorf("%s by a strange %s: %v", name, who, err)
			}
		}
	}
	for name, err := range map[string]error{
		"event":   second(w.Service.Event(ctx, stranger, w.Event)),
		"update":  second(w.Service.UpdateEvent(ctx, stranger, w.Event, booking.EventChange{Status: &status})),
		"hold":    second(w.Hold(ctx, stranger, 5)),
		"book":    second(w.Book(ctx, stranger, 5)),
		"unblock": w.Service.Unblock(ctx, stranger, block.ID),
		"history": second(w.Service.History(ctx, stranger, w.Event, 1, 0, 5)),
	} {
		if !errors.Is(err, booking.ErrNotFound) {
			t.Errorf("%s of a foreign event: %v", name, err)
		}
	}
	list, err := w.Service.Bookings(ctx, Buyer(), booking.BookingFilter{}, nil, 10)
	if err != nil || len(list) != 0 {
		t.Errorf("a strange buyer lists %d bookings, %v", len(list), err)
	}
	list, err = w.Service.Bookings(ctx, w.Owner, booking.BookingFilter{Reference: &made.Number}, nil, 10)
	if err != nil || len(list) != 1 || list[0].ID != made.ID {
		t.Errorf("the organizer finds %+v, %v", list, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestUnknownSeatsAreToldApart(t *testing.T) {
	ctx, w := setup(t)
	for name, try := range map[string]func() error{
		"hold one": func() error { _, err := w.Hold(ctx, Buyer(), 999); return err },
		"hold two": func() error { _, err := w.Hold(ctx, Buyer(), 1, 999); return err },
		"book one": func() error { _, err := w.Book(ctx, Buyer(), 999); return err },
		"book two": func() error { _, err := w.Book(ctx, Buyer(), 1, 999); return err },
		"block": func() error {
			_, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{999}, "x")
			return err
		},
		"block two": func() error {
			_, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{1, 999}, "x")
			return err
		},
	} {
		if refusal := refused(t, try(), booking.CodeSeatUnknown); refusal.Seats[0].ID != 999 {
			t.Errorf("%s names %+v", name, refusal.Seats)
		}
	}
}

func TestPlacesOfAnAreaHaveNoNames(t *testing.T) {
	ctx, w := setup(t)
	place := seats.ID(3*RowSeats + 1)
	for name, try := range map[string]func() error{
		"hold":    func() error { _, err := w.Hold(ctx, Buyer(), place); return err },
		"book":    func() error { _, err := w.Book(ctx, Buyer(), place); return err },
		"several": func() error { _, err := w.Book(ctx, Buyer(), 1, place); return err },
	} {
		if refusal := refused(t, try(), booking.CodeSeatUnknown); refusal.Seats[0].ID != place {
			t.Errorf("%s names %+v", name, refusal.Seats)
		}
	}
}

func TestHoldIsNotBookedForAnotherTotalThanItsBuyerSaw(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1, 2)
	seen := hold.Total
	if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(3)}); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.Service.Book(ctx, lena, Key(), booking.BookRequest{Hold: &hold.ID, ExpectedTotal: &seen, Name: "Lena", Email: "lena@example.com"})
	wantErr(t, err, booking.ErrPriceChanged)
}

func TestRepeatedExtensionIsOne(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Extend: true, SeenEnd: &hold.ExpiresAt}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := w.Service.GetHold(ctx, lena, hold.ID); err != nil || got.ExtensionsLeft != booking.DefaultLimits.Extensions-1 {
		t.Errorf("%d extensions are left, %v", got.ExtensionsLeft, err)
	}
}

// A second key for a hold that is booked already belongs to that booking from then on.
func TestSecondKeyOfABookedHoldIsKept(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	made, err := w.Confirm(ctx, lena, hold.ID)
	if err != nil {
		t.Fatal(err)
	}
	key, req := Key(), booking.BookRequest{Hold: &hold.ID, Name: "Lena", Email: "lena@example.com"}
	first, _, err := w.Service.Book(ctx, lena, key, req)
	if err != nil || first.ID != made.ID || first.Status != booking.BookingConfirmed {
		t.Fatalf("booked again: %+v, %v", first, err)
	}
	if _, err := w.Service.Cancel(ctx, lena, made.ID); err != nil {
		t.Fatal(err)
	}
	again, replayed, err := w.Service.Book(ctx, lena, key, req)
	if err != nil || !replayed || again.Status != first.Status {
		t.Errorf("the second key gave %+v, replayed %v, %v", again, replayed, err)
	}
	_, err = w.Confirm(ctx, lena, hold.ID)
	wantErr(t, err, booking.ErrBookingCancelled)
	_, _, err = w.Service.Book(ctx, lena, booking.Idempotency{Key: key.Key, Fingerprint: []byte("other")}, req)
	wantErr(t, err, booking.ErrKeyReused)
}

func TestTimesThatNobodyCanReadAreRefused(t *testing.T) {
	ctx, w := setup(t)
	far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -12*3600))
	spec := Spec()
	spec.StartsAt = far
	_, _, err := w.Service.CreateEvent(ctx, w.Owner, Key(), spec)
	if bad, ok := errors.AsType[*booking.InvalidError](err); !ok || bad.Pointer != "/starts_at" {
		t.Errorf("a new event: %v", err)
	}
	_, err = w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{SaleEndsAt: &far})
	if bad, ok := errors.AsType[*booking.InvalidError](err); !ok || bad.Pointer != "/sale_ends_at" {
		t.Errorf("a change: %v", err)
	}
	early := time.Now().Add(-100 * time.Hour)
	_, err = w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{SaleEndsAt: &early})
	if bad, ok := errors.AsType[*booking.InvalidError](err); !ok || bad.Code != "bad_window" {
		t.Errorf("a window that ends before it starts: %v", err)
	}
}

// Two writers wait for each other's rows only in the order of ids; a row that stays locked is "busy", also where no seat was named.
func TestLockedEventIsBusyNotAFault(t *testing.T) {
	ctx, w := setup(t)
	tx, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "SELECT 1 FROM events FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	_, _, err = w.Service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: Floor, Quantity: 1}})
	wantErr(t, err, booking.ErrBusy)
	_, err = w.Hold(ctx, Buyer(), 1)
	refused(t, err, booking.CodeSeatBusy)
}

// One booking that cannot be undone keeps neither the rest of its event nor holds of other events.
func TestOneBrokenBookingKeepsNothingElse(t *testing.T) {
	t.Parallel()
	ctx, w := t.Context(), New(t, dbtest.Pool(t), booking.DefaultLimits)
	broken, err := w.Book(ctx, Buyer(), 1)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := w.Book(ctx, Buyer(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pool.Exec(ctx, "UPDATE seats SET booking_id = $1 WHERE id = 1", whole.ID.Key); err != nil {
		t.Fatal(err)
	}
	cancelled := booking.StatusCancelled
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &cancelled}); err != nil {
		t.Fatal(err)
	}
	w.Event = w.NewEvent(t, Spec())
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	w.Expire(t, hold.ID)
	if _, err := w.Service.Sweep(ctx); err == nil {
		t.Error("the sweep does not tell of the broken booking")
	}
	for id, want := range map[booking.BookingID]string{broken.ID: booking.BookingConfirmed, whole.ID: booking.BookingCancelled} {
		if got, err := w.Service.GetBooking(ctx, w.Owner, id); err != nil || got.Status != want {
			t.Errorf("booking is %s, %v; want %s", got.Status, err, want)
		}
	}
	if got, err := w.Service.GetHold(ctx, lena, hold.ID); err != nil || got.Status != booking.HoldExpired {
		t.Errorf("hold is %s, %v", got.Status, err)
	}
}
