package booking_test

import (
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/internal/money"
	"seatfence/seats"
)

func TestPricesInCurrenciesOfNoneTwoAndThreeDigits(t *testing.T) {
	t.Parallel()
	for currency, want := range map[string]struct {
		adult, child int64
		total        string
	}{
		"JPY": {1000, 500, "2500 JPY"}, "EUR": {4500, 2050, "110.50 EUR"}, "KWD": {1234, 617, "3.085 KWD"},
	} {
		w := hall(t, 1, 4, func(e *booking.NewEvent) {
			e.Currency, e.Types = currency, []string{"adult", "child"}
			e.House.Categories[0].Price = want.adult
			e.Prices = []booking.Price{{Category: "Stalls", Type: "child", Amount: want.child}}
		})
		wants := []seats.Want{{ID: 1, Fence: seats.AnyFence}, {ID: 2, Fence: seats.AnyFence, Type: "adult"}, {ID: 3, Fence: seats.AnyFence, Type: "child"}}
		lena := Buyer()
		hold, _, err := w.Service.Hold(t.Context(), lena, Key(), booking.HoldRequest{Event: w.Event, Seats: wants})
		if err != nil || hold.Total != 2*want.adult+want.child || hold.Currency != currency {
			t.Fatalf("%s: %+v, %v", currency, hold, err)
		}
		made, err := w.Confirm(t.Context(), lena, hold.ID)
		if err != nil || made.Total != hold.Total || made.Seats[0].Type != "adult" || made.Seats[2].Price != want.child {
			t.Errorf("%s: %+v, %v", currency, made, err)
		}
		if text := money.Format(made.Total, currency); text != want.total {
			t.Errorf("%s: the mail says %s, want %s", currency, text, want.total)
		}
		w.Verify(t)
	}
}

// begin lets the tier that has not begun yet begin now.
func begin(t *testing.T, w World) {
	t.Helper()
	tag, err := w.Pool.Exec(t.Context(), "UPDATE prices SET starts_at = statement_timestamp() WHERE starts_at > statement_timestamp()")
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%v, %v", tag, err)
	}
}

func TestTierThatEndsBetweenHoldAndConfirm(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	later := time.Now().Add(24 * time.Hour)
	w := hall(t, 1, 6, func(e *booking.NewEvent) {
		e.Prices = []booking.Price{{Category: "Stalls", From: &later, Amount: 6000}}
	})
	lena, expected := Buyer(), int64(SeatPrice)
	hold := w.MustHold(t, lena, 1)
	begin(t, w)
	made, _, err := w.Service.Book(ctx, lena, Key(), booking.BookRequest{Hold: &hold.ID, Name: "Lena", Email: "lena@example.com", ExpectedTotal: &expected})
	if err != nil || made.Total != SeatPrice {
		t.Errorf("what the hold promised: %+v, %v", made, err)
	}
	req := w.Request(2)
	req.ExpectedTotal = &expected
	_, _, err = w.Service.Book(ctx, Buyer(), Key(), req)
	wantErr(t, err, booking.ErrPriceChanged)
	if hold := w.MustHold(t, Buyer(), 2); hold.Total != 6000 {
		t.Errorf("a later hold costs %d", hold.Total)
	}
	detail, err := w.Service.Event(ctx, Buyer(), w.Event)
	if err != nil || detail.Sections[0].Price != 6000 || !detail.Prices[1].Current || detail.Prices[0].Current || detail.Prices[0].From != nil {
		t.Errorf("%+v, %v", detail, err)
	}
}

func TestTypeIsSoldFromItsTimeOn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	later := time.Now().Add(24 * time.Hour)
	w := hall(t, 1, 6, func(e *booking.NewEvent) {
		e.Types = []string{"adult", "student"}
		e.Prices = []booking.Price{{Category: "Stalls", Type: "student", From: &later, Amount: 1000}}
	})
	want := []seats.Want{{ID: 1, Fence: seats.AnyFence, Type: "student"}}
	hold := func() (booking.Hold, error) {
		hold, _, err := w.Service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: w.Event, Seats: want})
		return hold, err
	}
	sale := w.Request()
	sale.Seats = want
	_, err := hold()
	wantInvalid(t, err, "/seats/0/type", "type_not_sold")
	_, _, err = w.Service.Book(ctx, Buyer(), Key(), sale)
	wantInvalid(t, err, "/seats/0/type", "type_not_sold")
	want[0].Type = "dog"
	_, err = hold()
	wantInvalid(t, err, "/seats/0/type", "unknown_type")
	want[0].Type = "student"
	begin(t, w)
	if held, err := hold(); err != nil || held.Total != 1000 {
		t.Errorf("%+v, %v", held, err)
	}
}

func TestPriceListIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 1, 6)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	base := booking.Price{Category: "Stalls", Amount: 5000}
	standing := booking.Price{Category: "Standing", Amount: 1}
	early := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name          string
		list          booking.PriceList
		pointer, code string
	}{
		{"no price for a category", booking.PriceList{Types: []string{"standard"}, Prices: []booking.Price{base}}, "/prices", "price_missing"},
		{"a type gone", booking.PriceList{Types: []string{"adult"}, Prices: []booking.Price{base, standing}}, "/types", "types_changed"},
		{"a type twice", booking.PriceList{Types: []string{"standard", "standard"}, Prices: []booking.Price{base, standing}}, "/types/1", "duplicate_type"},
		{"a price twice", booking.PriceList{Prices: []booking.Price{base, standing, base}}, "/prices/2", "duplicate_price"},
		{"unknown category", booking.PriceList{Prices: []booking.Price{base, standing, {Category: "Moon"}}}, "/prices/2/category", "unknown_category"},
		{"unknown type", booking.PriceList{Prices: []booking.Price{base, standing, {Category: "Stalls", Type: "dog"}}}, "/prices/2/type", "unknown_type"},
		{"less than nothing", booking.PriceList{Prices: []booking.Price{{Category: "Stalls", Amount: -1}, standing}}, "/prices/0/price", "bad_price"},
		{"before all events", booking.PriceList{Prices: []booking.Price{base, standing, {Category: "Stalls", From: &early}}}, "/prices/2/from", "bad_time"},
	} {
		_, err := w.Service.SetPrices(ctx, w.Owner, w.Event, c.list)
		t.Log(c.name)
		wantInvalid(t, err, c.pointer, c.code)
	}
	list, err := w.Service.SetPrices(ctx, w.Owner, w.Event, booking.PriceList{
		Types: []string{"standard", "child"}, Prices: []booking.Price{base, standing, {Category: "Stalls", Type: "child", Amount: 100}},
	})
	if err != nil || len(list.Prices) != 3 || !list.Prices[0].Current {
		t.Fatalf("%+v, %v", list, err)
	}
	if made, err := w.Confirm(ctx, lena, hold.ID); err != nil || made.Total != SeatPrice {
		t.Errorf("what the hold promised: %+v, %v", made, err)
	}
	if hold := w.MustHold(t, Buyer(), 2); hold.Total != 5000 {
		t.Errorf("a later hold costs %d", hold.Total)
	}
	_, err = w.Service.SetPrices(ctx, booking.Caller{Kind: booking.Organizer, ID: Buyer().ID, Organizer: Organizer(t, w.Pool)}, w.Event, list)
	wantErr(t, err, booking.ErrNotFound)
	_, err = w.Service.SetPrices(ctx, Buyer(), w.Event, list)
	wantErr(t, err, booking.ErrForbidden)
}

func TestTypeOfAHeldSeatIsChanged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := hall(t, 1, 6, func(e *booking.NewEvent) {
		e.Types = []string{"adult", "child"}
		e.Prices = []booking.Price{{Category: "Stalls", Type: "child", Amount: 1000}}
	})
	lena := Buyer()
	hold := w.MustHold(t, lena, 1, 2)
	child := []seats.Want{{ID: 2, Fence: seats.AnyFence, Type: "child"}, {ID: 3, Fence: seats.AnyFence, Type: "child"}}
	for range 2 { // the same once more changes nothing
		changed, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: child})
		if err != nil || changed.Total != SeatPrice+2000 || changed.Seats[1].Type != "child" || changed.Seats[1].Fence != hold.Seats[1].Fence {
			t.Fatalf("%+v, %v", changed, err)
		}
	}
	child[0].Type = "dog"
	_, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: child})
	wantInvalid(t, err, "/add/0/type", "unknown_type")
	if made, err := w.Confirm(ctx, lena, hold.ID); err != nil || made.Total != SeatPrice+2000 {
		t.Errorf("%+v, %v", made, err)
	}
	w.Verify(t)
}

// Places that are not sold as a type are refused as such: the caller would try again for ever.
func TestPlacesThatAreNotSoldAsATypeSayWhy(t *testing.T) {
	ctx, w := setup(t)
	spec := Spec()
	spec.Types = []string{"adult", "child"}
	w.Event = w.NewEvent(t, spec)
	for typ, code := range map[string]string{"dog": "unknown_type", "child": "type_not_sold"} {
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

func TestUnsoldTypeOfAnAddedSeatHasItsPlace(t *testing.T) {
	t.Parallel()
	w := hall(t, 1, 6)
	lena := Buyer()
	hold := w.MustHold(t, lena, 1)
	_, err := w.Service.ChangeHold(t.Context(), lena, hold.ID, booking.HoldChange{Add: []seats.Want{{ID: 2, Fence: seats.AnyFence, Type: "dog"}}})
	wantInvalid(t, err, "/add/0/type", "unknown_type")
}

func TestEightOfTheDearestSeatsHaveATotal(t *testing.T) {
	const dearest = 1_000_000_000
	w, _, _ := planned(t)
	list := booking.PriceList{Prices: []booking.Price{{Category: "A", Amount: dearest}, {Category: "B", Amount: dearest}}}
	if _, err := w.Service.SetPrices(t.Context(), w.Owner, w.Event, list); err != nil {
		t.Fatal(err)
	}
	if made, err := w.Book(t.Context(), Buyer(), 1, 2, 3, 4, 5, 6, 7, 8); err != nil || made.Total != 8*dearest {
		t.Errorf("%d, %v", made.Total, err)
	}
}
