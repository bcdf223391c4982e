package booking_test

import (
	"errors"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/seats"
)

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

func TestCancelledEventStaysAsItIs(t *testing.T) {
	ctx, w := setup(t)
	cancelled, name := booking.StatusCancelled, "Another evening"
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &cancelled}); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(60 * 24 * time.Hour)
	change := booking.EventChange{Status: &cancelled, Name: &name, StartsAt: &later}
	wantErr(t, second(w.Service.UpdateEvent(ctx, w.Owner, w.Event, change)), booking.ErrBadTransition)
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
