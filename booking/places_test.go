package booking_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats/plan"
)

// floor is a World whose event has a floor of n places, area 1, and one row of seats.
func floor(t *testing.T, n int) World {
	t.Helper()
	return hall(t, 1, 2, func(e *booking.NewEvent) {
		e.House.Areas = []plan.HouseArea{{Name: "Floor", Category: "Standing", Capacity: n}}
	})
}

func bookPlaces(t *testing.T, w World, n int) (booking.Booking, error) {
	t.Helper()
	req := w.Request()
	req.Seats, req.Places = nil, &booking.AreaPlaces{Area: 1, Quantity: n}
	made, _, err := w.Service.Book(t.Context(), Buyer(), Key(), req)
	return made, err
}

func TestLastPlaceHasOneBuyerOfFifty(t *testing.T) {
	t.Parallel()
	for range 10 {
		w := floor(t, 1)
		var won atomic.Int32
		var all sync.WaitGroup
		for n := range 50 {
			all.Go(func() {
				var err error
				if n%2 == 0 {
					_, err = bookPlaces(t, w, 1)
				} else {
					_, _, err = w.Service.Hold(t.Context(), Buyer(), Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: 1, Quantity: 1}})
				}
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, booking.ErrSoldOut):
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d have the only place", won.Load())
		}
		w.Verify(t)
	}
}

func TestFloorOf12000IsSoldToTheLastPlace(t *testing.T) {
	const places, buyers = 12_000, 64
	w := floor(t, places)
	var sold atomic.Int64
	var all sync.WaitGroup
	for n := range buyers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 2))
			for {
				piece := 1 + random.IntN(4)
				made, err := bookPlaces(t, w, piece)
				if errors.Is(err, booking.ErrSoldOut) && piece > 1 {
					continue
				}
				if errors.Is(err, booking.ErrSoldOut) {
					return
				}
				if err != nil || len(made.Seats) != piece {
					t.Errorf("%d places: %d, %v", piece, len(made.Seats), err)
					return
				}
				sold.Add(int64(piece))
			}
		})
	}
	all.Wait()
	if sold.Load() != places {
		t.Errorf("%d of %d places were sold", sold.Load(), places)
	}
	w.Verify(t)
}

// TestFloorIsNotReadForEachPlace: with statistics, which the tables of other tests do not have, the planner once took free places for few
// and read all that was left of the floor for each that was sold.
func TestFloorIsNotReadForEachPlace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := floor(t, 12_000)
	other := Spec()
	other.House.Sections[0].Rows = []plan.HouseRow{{Label: "A", Category: "Stalls", Seats: 4_000}}
	for range 12 { // whose ids are in no order: in a table sorted by them the index would look good to the planner
		w.NewEvent(t, other)
	}
	one := w.Pool.Config()
	one.MaxConns, one.MinConns = 1, 0 // a session reports what it has read when it is told to
	pool, err := pgxpool.NewWithConfig(ctx, one)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	w.Service = booking.New(pool, booking.DefaultLimits)
	for _, table := range []string{"seats", "areas", "events"} {
		if _, err := w.Pool.Exec(ctx, "ANALYZE "+table); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (rows int) {
		t.Helper()
		if _, err := pool.Exec(ctx, "SELECT pg_stat_force_next_flush()"); err != nil {
			t.Fatal(err)
		}
		if err := pool.QueryRow(ctx, "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'seats'").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	for _, piece := range []int{1, 2} {
		const sales = 20
		before := read()
		for range sales {
			if _, err := bookPlaces(t, w, piece); err != nil {
				t.Fatal(err)
			}
		}
		if rows := (read() - before) / sales; rows < 1 || rows > 40 {
			t.Errorf("a sale of %d places reads %d seats", piece, rows)
		}
	}
}

func TestPlacesThatAreFreeAgainAreFound(t *testing.T) {
	t.Parallel()
	w := floor(t, 20)
	var made []booking.Booking
	for range 20 {
		b, err := bookPlaces(t, w, 1)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, b)
	}
	_, err := bookPlaces(t, w, 1)
	wantErr(t, err, booking.ErrSoldOut)
	for _, b := range made[3:6] {
		if _, err := w.Service.Cancel(t.Context(), w.Owner, b.ID); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{1, 2} {
		if _, err := bookPlaces(t, w, n); err != nil {
			t.Errorf("%d places that are free again: %v", n, err)
		}
	}
	_, _, err = w.Service.Book(t.Context(), Buyer(), Key(), booking.BookRequest{
		Event: w.Event, Places: &booking.AreaPlaces{Area: 9, Quantity: 1}, Name: "Lena", Email: "lena@example.com",
	})
	wantErr(t, err, booking.ErrNotFound)
}
