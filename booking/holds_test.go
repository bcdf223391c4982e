package booking_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
)

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
		wg.Go(func() {
			for {
				_, errs[i] = w.Hold(ctx, lena, seats.ID(i+1))
				if !errors.Is(errs[i], booking.ErrUnavailable) { // a slow machine, which is not what this is about
					return
				}
			}
		})
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

func TestLiveHoldKeepsItsPriceAndItsWindow(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	if _, err := w.Pool.Exec(ctx, "UPDATE prices SET amount = amount * 2"); err != nil {
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
