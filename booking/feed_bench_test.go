package booking_test

import (
	"testing"

	"github.com/google/uuid"

	"seatfence/seats"
)

// BenchmarkNumber numbers what 1,000 seats of a large hall have gone through, and reads what is told of it.
func BenchmarkNumber(b *testing.B) {
	w := benchWorld(b)
	const batch = 1000
	if _, err := w.Pool.Exec(b.Context(), `
		INSERT INTO seat_ledger (event_id, seat_id, fence, action, ref, at, seq)
		SELECT $1, n, 1, 'sold', gen_random_uuid(), now() + n * interval '1 ms', 0 FROM generate_series(1, $2) n`, int64(w.Event), seats.MaxSeats); err != nil {
		b.Fatal(err)
	}
	node, fence := uuid.New(), 1
	for b.Loop() {
		b.StopTimer()
		fence++
		if _, err := w.Pool.Exec(b.Context(), `INSERT INTO seat_ledger (event_id, seat_id, fence, action, ref, at)
			SELECT $1, 1 + n * 7, $2, 'sold', gen_random_uuid(), now() FROM generate_series(1, $3) n`, int64(w.Event), fence, batch); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if got, err := w.Service.Number(b.Context(), node); err != nil || len(got) != 1 || len(got[0].Cells) != batch {
			b.Fatal(got, err)
		}
	}
}

// BenchmarkNumberNothing asks an idle database.
func BenchmarkNumberNothing(b *testing.B) {
	w := benchWorld(b)
	node := uuid.New()
	for b.Loop() {
		if _, err := w.Service.Number(b.Context(), node); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMapState reads the states of 60,000 seats, for one who has a view of their own and for everybody.
func BenchmarkMapState(b *testing.B) {
	w := benchWorld(b)
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.Service.MapState(b.Context(), w.Owner, w.Event); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			mapState(b, w)
		}
	})
}
