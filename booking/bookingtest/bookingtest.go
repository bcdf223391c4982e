// Package bookingtest makes what tests of a sale start from: an organizer with an event on sale, and callers with fresh keys.
package bookingtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// World is one organizer's event on sale in a database of its own.
type World struct {
	Pool    *pgxpool.Pool
	Service *booking.Service
	Owner   booking.Caller
	Event   seats.EventID
}

// The house of a World: rows A, B and C of the stalls with 20 seats each, ids 1 to 60, then a floor of 30 places, area 1.
const (
	RowSeats   = 20
	SeatPrice  = 4500
	FloorPrice = 3000
	Floor      = int32(1)
	FloorSize  = 30
	Seat14C    = seats.ID(2*RowSeats + 14)
)

var serial atomic.Int64

// New makes a World in the pool's database.
func New(t testing.TB, pool *pgxpool.Pool, limits booking.Limits) World {
	t.Helper()
	w := World{Pool: pool, Service: booking.New(pool, limits)}
	w.Owner = booking.Caller{Kind: booking.Organizer, ID: uuid.New(), Organizer: Organizer(t, pool)}
	w.Event = w.NewEvent(t, Spec())
	return w
}

// Organizer inserts another organizer.
func Organizer(t testing.TB, pool *pgxpool.Pool) int64 {
	t.Helper()
	id, err := db.New().OrganizerInsert(context.Background(), pool, fmt.Sprintf("Organizer %d", serial.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Spec is the event of a World, to be changed before NewEvent.
func Spec() booking.NewEvent {
	rows := make([]plan.HouseRow, 3)
	for i := range rows {
		rows[i] = plan.HouseRow{Label: string(rune('A' + i)), Category: "Stalls", Seats: RowSeats}
	}
	now := time.Now()
	return booking.NewEvent{
		Name: "An evening", Venue: "The small house", StartsAt: now.Add(30 * 24 * time.Hour), Timezone: "Europe/Berlin", Currency: "EUR",
		Payment: booking.PaymentNone, Status: booking.StatusOnSale, SaleStartsAt: now.Add(-time.Hour), SaleEndsAt: now.Add(24 * time.Hour),
		House: plan.House{
			Categories: []plan.HouseCategory{{Name: "Stalls", Price: SeatPrice}, {Name: "Standing", Price: FloorPrice}},
			Sections:   []plan.HouseSection{{Name: "Stalls", Rows: rows}},
			Areas:      []plan.HouseArea{{Name: "Floor", Category: "Standing", Capacity: FloorSize}},
		},
	}
}

// NewEvent makes an event of the World's owner.
func (w World) NewEvent(t testing.TB, spec booking.NewEvent) seats.EventID {
	t.Helper()
	event, _, err := w.Service.CreateEvent(context.Background(), w.Owner, Key(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return event.ID
}

// Buyer is a new anonymous buyer.
func Buyer() booking.Caller { return booking.Caller{Kind: booking.Buyer, ID: uuid.New()} }

// Key is a new idempotency key with its own fingerprint.
func Key() booking.Idempotency {
	key := fmt.Sprintf("key-%d", serial.Add(1))
	return booking.Idempotency{Key: key, Fingerprint: []byte(key)}
}

// Wants asks for seats at any fence.
func Wants(ids ...seats.ID) []seats.Want { return seats.Any(ids...) }

// Hold holds the seats for the caller.
func (w World) Hold(ctx context.Context, caller booking.Caller, ids ...seats.ID) (booking.Hold, error) {
	hold, _, err := w.Service.Hold(ctx, caller, Key(), booking.HoldRequest{Event: w.Event, Seats: Wants(ids...)})
	return hold, err
}

// MustHold is Hold where a refusal is a fault of the test.
func (w World) MustHold(t testing.TB, caller booking.Caller, ids ...seats.ID) booking.Hold {
	t.Helper()
	hold, err := w.Hold(context.Background(), caller, ids...)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// Book books the seats directly for the caller.
func (w World) Book(ctx context.Context, caller booking.Caller, ids ...seats.ID) (booking.Booking, error) {
	made, _, err := w.Service.Book(ctx, caller, Key(), w.Request(ids...))
	return made, err
}

// Request is a direct booking of the seats.
func (w World) Request(ids ...seats.ID) booking.BookRequest {
	return booking.BookRequest{Event: w.Event, Seats: Wants(ids...), Name: "Lena", Email: "lena@example.com"}
}

// Confirm books a hold.
func (w World) Confirm(ctx context.Context, caller booking.Caller, hold booking.HoldID) (booking.Booking, error) {
	made, _, err := w.Service.Book(ctx, caller, Key(), booking.BookRequest{Hold: &hold, Name: "Lena", Email: "lena@example.com"})
	return made, err
}

// Expire makes a hold run out now, as if its time had passed.
func (w World) Expire(t testing.TB, hold booking.HoldID) {
	t.Helper()
	_, err := w.Pool.Exec(context.Background(), `
		WITH h AS (UPDATE holds SET expires_at = statement_timestamp() - interval '1 ms' WHERE id = $1)
		UPDATE seats SET held_until = statement_timestamp() - interval '1 ms' WHERE hold_id = $1`, hold.Key)
	if err != nil {
		t.Fatal(err)
	}
}

// Verify fails the test if the database breaks an invariant of the sale.
func (w World) Verify(t testing.TB) {
	t.Helper()
	for name, check := range booking.Invariants() {
		broken, err := check(context.Background(), w.Pool)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if broken > 0 {
			t.Errorf("invariant %q is broken by %d rows", name, broken)
		}
	}
}
