package booking_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// Places that are not sold as a type are refused as such: the caller would try again for ever.
func TestPlacesThatAreNotSoldAsATypeSayWhy(t *testing.T) {
	ctx, w := setup(t)
	for typ, code := range map[string]string{"dog": "unknown_type", "child": "type_not_sold"} {
		spec := Spec()
		spec.Types = []string{"adult", "child"}
		w.Event = w.NewEvent(t, spec)
		for _, n := range []int{1, 2} {
			places := &booking.AreaPlaces{Area: Floor, Quantity: n, Type: typ}
			_, _, err := w.Service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: w.Event, Places: places})
			wantInvalid(t, err, "/ga/type", code)
			req := w.Request()
			req.Places = places
			_, _, err = w.Service.Book(ctx, Buyer(), Key(), req)
			wantInvalid(t, err, "/ga/type", code)
		}
	}
}

// The best seats of a type are sought where that type is sold.
func TestBestSeatsOfATypeAreWhereItIsSold(t *testing.T) {
	t.Parallel()
	w := hall(t, 2, 6, func(e *booking.NewEvent) {
		e.Types = []string{"adult", "child"}
		e.House.Categories = []plan.HouseCategory{{Name: "Stalls", Price: SeatPrice}, {Name: "Back", Price: FloorPrice}}
		e.House.Sections[0].Rows[1].Category = "Back"
		e.Prices = []booking.Price{{Category: "Back", Type: "child", Amount: 1000}}
	})
	hold, err := best(t.Context(), w, Buyer(), booking.BestWish{Types: []booking.TypeCount{{Type: "child", Quantity: 2}}})
	if err != nil || hold.Total != 2000 {
		t.Errorf("two of row 2 are sold to children: %+v, %v", hold, err)
	}
}

// The limit counts the channels that there are.
func TestChannelsAreCountedNotNumbered(t *testing.T) {
	ctx, w := setup(t)
	for i := range 100 {
		if _, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: fmt.Sprint("c", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for id := range int32(99) {
		if err := w.Service.DeleteChannel(ctx, w.Owner, w.Event, id+1); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: "second"}); err != nil {
		t.Errorf("the event has one channel, and a second is refused: %v", err)
	}
}

// A caller who is for no event at all sees none.
func TestCallerOfNoEventSeesNone(t *testing.T) {
	ctx, w := setup(t)
	nobody := w.Owner
	nobody.Events = []seats.EventID{}
	if _, err := w.Book(ctx, Buyer(), 1); err != nil {
		t.Fatal(err)
	}
	events, err := w.Service.Events(ctx, nobody, booking.EventPage{}, 10)
	if err != nil || len(events) > 0 {
		t.Errorf("events: %d, %v", len(events), err)
	}
	list, err := w.Service.Bookings(ctx, nobody, booking.BookingFilter{}, nil, 10)
	if err != nil || len(list) > 0 {
		t.Errorf("bookings: %d, %v", len(list), err)
	}
}

// A seat that the organizer has blocked stays so when a plan drops it and the next one brings it back.
func TestBlockedSeatComesBackBlocked(t *testing.T) {
	ctx := t.Context()
	w, p, _ := planned(t)
	block, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{5}, "camera")
	if err != nil {
		t.Fatal(err)
	}
	whole := p.Sections[0].Rows[0].Seats
	without := p
	without.Sections = []plan.Section{{Name: "Stalls", Rows: []plan.Row{{Label: "A", Seats: slices.Delete(slices.Clone(whole), 4, 5)}}}}
	if _, err := redraw(t, w, without); err != nil {
		t.Fatal(err)
	}
	if _, err := redraw(t, w, p); err != nil {
		t.Fatal(err)
	}
	if seat := stateOf(t, w, 5); seat.State != seats.Blocked {
		t.Errorf("the camera's seat is %s, and its block %s has not been removed", seat.State, block.ID)
	}
}

func TestUnsoldTypeOfAnAddedSeatHasItsPlace(t *testing.T) {
	t.Parallel()
	w := hall(t, 1, 6)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	_, err := w.Service.ChangeHold(t.Context(), lena, hold.ID, booking.HoldChange{Add: []seats.Want{{ID: 2, Fence: seats.AnyFence, Type: "dog"}}})
	wantInvalid(t, err, "/add/0/type", "unknown_type")
}

func TestPriceOfANewPlanHasItsPlace(t *testing.T) {
	w, p, _ := planned(t)
	_, err := redraw(t, w, p, booking.Price{Category: "Moon", Amount: 1})
	wantInvalid(t, err, "/prices/0/category", "unknown_category")
}

// Autovacuum and a second new event take the same lock.
func TestEventIsMadeWhileItsTablesAreVacuumed(t *testing.T) {
	ctx, w := setup(t)
	tx, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, "LOCK TABLE seats IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Service.CreateEvent(ctx, w.Owner, Key(), Spec()); err != nil {
		t.Errorf("%v", err)
	}
}

func TestCancelledEventStaysAsItIs(t *testing.T) {
	ctx, w := setup(t)
	cancelled, name := booking.StatusCancelled, "Another evening"
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &cancelled}); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(60 * 24 * time.Hour)
	event, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &cancelled, Name: &name, StartsAt: &later})
	if err == nil && event.Name == name {
		t.Errorf("a cancelled event was renamed to %q", event.Name)
	}
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
