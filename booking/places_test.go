package booking_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

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
