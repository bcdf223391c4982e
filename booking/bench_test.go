package booking_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// BenchmarkBestAvailable is one caller's hold of the four best seats together, with everything around it.
func BenchmarkBestAvailable(b *testing.B) {
	for _, size := range []int{1_000, 5_000, 10_000, 50_000} {
		for _, state := range []string{"empty", "half"} {
			b.Run(fmt.Sprintf("%d-%s", size, state), func(b *testing.B) {
				w := hall(b, size/50, 50)
				if state == "half" {
					if _, err := w.Pool.Exec(b.Context(), `UPDATE seats SET block_id = gen_random_uuid(), fence = 1
						WHERE event_id = $1 AND (hashint4(id / 3) & 1) = 0`, int64(w.Event)); err != nil {
						b.Fatal(err)
					}
				}
				for b.Loop() {
					caller := Buyer()
					hold, err := best(b.Context(), w, caller, booking.BestWish{Quantity: 4, Together: true})
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					if err := w.Service.Release(b.Context(), caller, hold.ID); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkFloor sells 12,000 places of a floor, and as many numbered seats, to 64 buyers who book one or two each, and reports the rates
// of both, and of their last quarters.
func BenchmarkFloor(b *testing.B) {
	const places, buyers = 12_000, 64
	for _, piece := range []int{1, 2} {
		b.Run(fmt.Sprint(piece), func(b *testing.B) {
			for b.Loop() {
				sell := func(request func(w World, n int) booking.BookRequest) (rate, last float64) {
					// A database of its own: the second of two sales in one would find larger tables.
					w := hall(b, places/50, 50, func(e *booking.NewEvent) {
						e.House.Areas = []plan.HouseArea{{Name: "Floor", Category: "Standing", Capacity: places}}
					})
					var next, sold atomic.Int64
					start := time.Now()
					var quarter atomic.Pointer[time.Time]
					var all sync.WaitGroup
					for range buyers {
						all.Go(func() {
							for {
								n := int(next.Add(1)) - 1
								if n*piece >= places {
									return
								}
								_, _, err := w.Service.Book(context.Background(), Buyer(), Key(), request(w, n))
								if err != nil && !errors.Is(err, booking.ErrSoldOut) {
									b.Error(err)
									return
								}
								if got := sold.Add(int64(piece)); got >= places*3/4 {
									now := time.Now()
									quarter.CompareAndSwap(nil, &now)
								}
							}
						})
					}
					all.Wait()
					end := time.Now()
					return places / end.Sub(start).Seconds(), places / 4 / end.Sub(*quarter.Load()).Seconds()
				}
				seatRate, seatLast := sell(func(w World, n int) booking.BookRequest {
					req := w.Request()
					for i := range piece {
						req.Seats = append(req.Seats, Wants(seats.ID(n*piece+i+1))...)
					}
					return req
				})
				floorRate, last := sell(func(w World, _ int) booking.BookRequest {
					req := w.Request()
					req.Seats, req.Places = nil, &booking.AreaPlaces{Area: 1, Quantity: piece}
					return req
				})
				b.ReportMetric(seatRate, "seats/s")
				b.ReportMetric(floorRate, "places/s")
				b.ReportMetric(floorRate/seatRate, "places/seats")
				b.ReportMetric(last/floorRate, "places-last-quarter/all")
				b.ReportMetric(seatLast/seatRate, "seats-last-quarter/all")
			}
		})
	}
}
