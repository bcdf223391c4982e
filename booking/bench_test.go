package booking_test

import (
	"sync/atomic"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

func benchWorld(b *testing.B) World {
	w := New(b, dbtest.Pool(b), booking.DefaultLimits)
	spec := Spec()
	spec.House = plan.House{
		Categories: []plan.HouseCategory{{Name: "All", Price: SeatPrice}},
		Sections:   []plan.HouseSection{{Name: "Hall", Rows: []plan.HouseRow{{Label: "A", Category: "All", Seats: seats.MaxSeats}}}},
	}
	w.Event = w.NewEvent(b, spec)
	return w
}

// Sales of different seats by 16 clients, the database without fsync: what the service itself costs.
func BenchmarkBookOneSeat(b *testing.B) {
	w := benchWorld(b)
	var next atomic.Int64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		lena := Buyer()
		for pb.Next() {
			n := next.Add(1)
			if n > seats.MaxSeats {
				b.Error("the house is sold out: use a smaller -benchtime")
				return
			}
			if _, err := w.Book(b.Context(), lena, seats.ID(n)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkHoldOneSeat(b *testing.B) {
	w := benchWorld(b)
	var next atomic.Int64
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := w.Hold(b.Context(), Buyer(), seats.ID(next.Add(1)%seats.MaxSeats+1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
