package demo_test

import (
	"bytes"
	"os"
	"slices"
	"sync"
	"testing"

	"seatfence/booking"
	"seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/demo"
	"seatfence/seats"
	"seatfence/seats/plan"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

func TestTheHousesAreAsLargeAsTheyShouldBe(t *testing.T) {
	t.Parallel()
	if n := demo.Theatre().Count(); n.Seats < 1200 || n.Accessible == 0 {
		t.Errorf("the theatre has %+v", n)
	}
	if n, floor := demo.Arena().Count(), demo.Arena().Areas[0].Capacity; n.Seats < 12_000 || floor < 2000 {
		t.Errorf("the arena has %+v and a floor of %d", n, floor)
	}
	for _, drawn := range []plan.Plan{demo.Theatre(), demo.Arena()} {
		var document bytes.Buffer
		if err := drawn.Export(&document); err != nil {
			t.Fatal(err)
		}
		if _, report, err := plan.Import(t.Context(), &document, plan.Options{}); err != nil || len(report.Defects) > 0 {
			t.Errorf("%s has defects: %v %+v", drawn.Name, err, report.Defects)
		}
	}
}

func TestTheTheatreShowsWhatAnEventCanBe(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	service := booking.New(pool, booking.DefaultLimits)
	list, err := demo.Load(t.Context(), service, bookingtest.Organizer(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	theatre, err := service.Event(t.Context(), bookingtest.Buyer(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if !theatre.OrphanRule || theatre.Plan == nil || len(theatre.Types) != 2 {
		t.Errorf("the theatre is %+v with types %v", theatre.Event, theatre.Types)
	}
	if !slices.ContainsFunc(theatre.Prices, func(p booking.Price) bool { return p.From != nil && p.From.After(theatre.ServerTime) }) {
		t.Error("no price is to come")
	}
	house, err := service.Seats(t.Context(), bookingtest.Buyer(), list[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all seats.Attributes
	for _, s := range house.Seats {
		all |= s.Attributes
	}
	if want := seats.Accessible | seats.Companion | seats.RestrictedView; all != want {
		t.Errorf("its seats have %b, want %b", all, want)
	}
}

func TestASecondStartUsesTheEventsAgain(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	service := booking.New(pool, booking.DefaultLimits)
	organizer := bookingtest.Organizer(t, pool)
	var starts [3][]booking.Event
	load := func(i int) {
		var err error
		if starts[i], err = demo.Load(t.Context(), service, organizer); err != nil {
			t.Error(err)
		}
	}
	var both sync.WaitGroup // two programs at once, then a later one whose idempotency keys are forgotten
	both.Go(func() { load(0) })
	both.Go(func() { load(1) })
	both.Wait()
	if _, err := pool.Exec(t.Context(), "DELETE FROM idempotency_keys"); err != nil {
		t.Fatal(err)
	}
	load(2)
	for _, s := range starts {
		if len(s) != 2 || s[0].ID != starts[0][0].ID || s[1].ID != starts[0][1].ID {
			t.Errorf("starts found events %v and %v", starts[0], s)
		}
	}
}

func TestAnEndedEventIsReplaced(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	service := booking.New(pool, booking.DefaultLimits)
	organizer := bookingtest.Organizer(t, pool)
	first, err := demo.Load(t.Context(), service, organizer)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pool.Exec(t.Context(), "UPDATE events SET starts_at = starts_at - interval '90 days', sale_starts_at = sale_starts_at - interval '90 days', sale_ends_at = sale_ends_at - interval '90 days'")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "DELETE FROM idempotency_keys"); err != nil {
		t.Fatal(err)
	}
	second, err := demo.Load(t.Context(), service, organizer)
	if err != nil || second[0].ID == first[0].ID {
		t.Errorf("after its sale the theatre's event is %v, was %v; %v", second, first, err)
	}
}

func TestSeat14CIsInTheStalls(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	service := booking.New(pool, booking.DefaultLimits)
	list, err := demo.Load(t.Context(), service, bookingtest.Organizer(t, pool))
	if err != nil {
		t.Fatal(err)
	}
	seat, err := service.Seat(t.Context(), bookingtest.Buyer(), list[0].ID, bookingtest.Seat14C)
	if err != nil || seat.Label() != "Stalls C14" || seat.State != seats.Free {
		t.Errorf("seat %d is %+v, %v", bookingtest.Seat14C, seat, err)
	}
}
