package shed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seatfence/booking"
	"seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/shed"
	"seatfence/lockmgr"
	"seatfence/seats"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func setup(t *testing.T) (*shed.Gate, bookingtest.World) {
	t.Helper()
	w := bookingtest.New(t, dbtest.Pool(t), booking.DefaultLimits)
	rdb, err := lockmgr.Open(dbtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return shed.New(lockmgr.NewSeats(rdb, lockmgr.DefaultTTL, nil), w.Service), w
}

func enter(t *testing.T, g *shed.Gate, w bookingtest.World, caller booking.Caller, key booking.Idempotency, ids ...seats.ID) func() {
	t.Helper()
	pass, err := g.Enter(t.Context(), caller, w.Event, ids, key)
	if err != nil {
		t.Fatal(err)
	}
	return func() { pass.Leave(context.Background()) }
}

func TestSeatBeingWrittenIsBusyForOthersUntilItsWriterLeaves(t *testing.T) {
	t.Parallel()
	g, w := setup(t)
	lena, omar := bookingtest.Buyer(), bookingtest.Buyer()
	leave := enter(t, g, w, lena, bookingtest.Key(), 1, 2)
	_, err := g.Enter(t.Context(), omar, w.Event, []seats.ID{3, 2}, bookingtest.Key())
	busy, ok := errors.AsType[*booking.SeatsError](err)
	if !ok || busy.Code != booking.CodeSeatBusy || len(busy.Seats) != 1 || busy.Seats[0].ID != 2 {
		t.Fatalf("seat 2 is being written: %v", err)
	}
	enter(t, g, w, omar, bookingtest.Key(), 3)()
	leave()
	enter(t, g, w, omar, bookingtest.Key(), 2)()
}

func TestDuplicateWaitsForItsTwinAndGoesOn(t *testing.T) {
	t.Parallel()
	g, w := setup(t)
	lena, key := bookingtest.Buyer(), bookingtest.Key()
	leave := enter(t, g, w, lena, key, 1)
	entered := make(chan error, 1)
	go func() {
		pass, err := g.Enter(t.Context(), lena, w.Event, []seats.ID{1}, key)
		pass.Leave(t.Context())
		entered <- err
	}()
	select {
	case err := <-entered:
		t.Fatalf("the duplicate did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	leave()
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
}

// The lock of an earlier request may be all that is left of it. Its retry goes on to the database, where a request that really runs has
// the row, and is then told so.
func TestDuplicateOfAStuckRequestIsDecidedByTheRow(t *testing.T) {
	t.Parallel()
	g, w := setup(t)
	lena, key := bookingtest.Buyer(), bookingtest.Key()
	defer enter(t, g, w, lena, key, 1)()
	start := time.Now()
	pass, err := g.Enter(t.Context(), lena, w.Event, []seats.ID{1}, key)
	if took := time.Since(start); err != nil || took > 4*time.Second {
		t.Fatalf("%v after %v", err, took)
	}
	defer pass.Leave(t.Context())
	if err := pass.Told(booking.Busy([]seats.ID{1})); !errors.Is(err, booking.ErrKeyInProgress) {
		t.Errorf("a duplicate that finds the row locked is told %v", err)
	}
	if err := (shed.Pass{}).Told(booking.Busy([]seats.ID{1})); errors.Is(err, booking.ErrKeyInProgress) {
		t.Error("others are told that the seats are busy")
	}
	if _, _, err := w.Service.Book(t.Context(), lena, key, w.Request(1)); pass.Told(err) != nil {
		t.Errorf("a lock without a request kept its own caller out: %v", err)
	}
}

func TestRetryOfASuccessGetsThroughWhileAnotherWritesTheSeat(t *testing.T) {
	t.Parallel()
	g, w := setup(t)
	lena, omar, key := bookingtest.Buyer(), bookingtest.Buyer(), bookingtest.Key()
	if _, _, err := w.Service.Book(t.Context(), lena, key, w.Request(1)); err != nil {
		t.Fatal(err)
	}
	defer enter(t, g, w, omar, bookingtest.Key(), 1)()
	enter(t, g, w, lena, key, 1)()
	other := key
	other.Fingerprint = []byte("another request")
	if _, err := g.Enter(t.Context(), lena, w.Event, []seats.ID{1}, other); !errors.Is(err, booking.ErrKeyReused) {
		t.Errorf("another request under the same key: %v", err)
	}
}

func TestRequestsWithoutAKeyDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	g, w := setup(t)
	lena := bookingtest.Buyer()
	defer enter(t, g, w, lena, booking.Idempotency{}, 1)()
	start := time.Now()
	defer enter(t, g, w, lena, booking.Idempotency{}, 1)()
	if took := time.Since(start); took > time.Second {
		t.Errorf("the second one waited %v", took)
	}
}

func TestPlacesWithoutNumbersNeedNoLock(t *testing.T) {
	t.Parallel()
	w := bookingtest.New(t, dbtest.Pool(t), booking.DefaultLimits)
	rdb, err := lockmgr.Open(dbtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	asked := func(outcome string, _ time.Duration) { t.Errorf("Redis was asked: %s", outcome) }
	enter(t, shed.New(lockmgr.NewSeats(rdb, lockmgr.DefaultTTL, asked), w.Service), w, bookingtest.Buyer(), bookingtest.Key())()
}

func TestWithoutLocksEverybodyGetsThrough(t *testing.T) {
	t.Parallel()
	w := bookingtest.New(t, dbtest.Pool(t), booking.DefaultLimits)
	g := shed.New(nil, w.Service)
	for range 3 {
		defer enter(t, g, w, bookingtest.Buyer(), bookingtest.Key(), 1)()
	}
}
