//go:build failpoint

package booking_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/db/dbtest"
	"seatfence/internal/failpoint"
	"seatfence/internal/shed"
	"seatfence/lockmgr"
	"seatfence/seats"
)

// patience bounds every wait of these tests for something that is certain to come.
const patience = 10 * time.Second

// stopped starts a write that stops at the point, and returns when it stands there. finish lets it go on and returns its error.
func stopped(t *testing.T, point string, write func(context.Context) error) (finish func() error) {
	t.Helper()
	var set failpoint.Set
	reached, resume := set.Pause(point)
	ctx := failpoint.With(t.Context(), &set)
	done := make(chan error, 1)
	go func() { done <- write(ctx) }()
	t.Cleanup(resume)
	select {
	case <-reached:
	case err := <-done:
		t.Fatalf("the write ended with %v before it came to %s", err, point)
	}
	return func() error {
		resume()
		return <-done
	}
}

// begun starts a write that may have to wait, and returns when n sessions of the database wait for a lock, or when it has ended.
func begun(t *testing.T, w World, n int, write func() error) (ended <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- write() }()
	until(t, "somebody waits for a lock", func() bool { return len(done) > 0 || waiting(t, w) == n })
	return done
}

func waiting(t *testing.T, w World) (n int) {
	t.Helper()
	err := w.Pool.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !met(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain until %s", patience, what)
		}
	}
}

// count is the number of rows of the event in a table.
func count(t *testing.T, w World, table string) (n int) {
	t.Helper()
	if err := w.Pool.QueryRow(context.Background(), "SELECT count(*) FROM "+table+" WHERE event_id = $1", int64(w.Event)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// wantSales fails the test unless exactly so many sales have left their rows, and a refused one none.
func wantSales(t *testing.T, w World, n int) {
	t.Helper()
	for _, table := range []string{"bookings", "outbox", "idempotency_keys"} {
		if got := count(t, w, table); got != n {
			t.Errorf("%d rows in %s after %d sales", got, table, n)
		}
	}
}

// guarded counts refusals that the condition of a write should have made and the unique index had to.
func guarded(t *testing.T, w World) {
	w.Service.Guarded = func() { t.Error("only the unique index stood between two buyers and one seat") }
}

func mustBook(t *testing.T, w World, caller booking.Caller, ids ...seats.ID) booking.Booking {
	t.Helper()
	made, err := w.Book(t.Context(), caller, ids...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func wantOwner(t *testing.T, w World, buyer booking.Caller, id seats.ID) {
	t.Helper()
	rows, err := seats.ByID(t.Context(), w.Pool, w.Event, seats.Reach{All: true}, []seats.ID{id})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Buyer == nil || *rows[0].Buyer != buyer.ID {
		t.Errorf("seat %d belongs to %v, want %v", id, rows[0].Buyer, buyer.ID)
	}
}

func TestLateSaleOfOneSeatFindsItTaken(t *testing.T) {
	_, w := setup(t)
	guarded(t, w)
	lena, omar := Buyer(), Buyer()
	late := stopped(t, failpoint.BeforeWrite, func(ctx context.Context) error { return second(w.Book(ctx, lena, Seat14C)) })
	mustBook(t, w, omar, Seat14C)
	lost := refused(t, late(), booking.CodeSeatTaken)
	if lost.Seats[0].Reason != booking.ReasonBooked || len(lost.Alternatives) == 0 {
		t.Errorf("the late one is told %+v", lost)
	}
	wantOwner(t, w, omar, Seat14C)
	wantSales(t, w, 1)
}

func TestLateHoldOfOneSeatFindsItTaken(t *testing.T) {
	_, w := setup(t)
	lena, omar := Buyer(), Buyer()
	late := stopped(t, failpoint.BeforeWrite, func(ctx context.Context) error { return second(w.Hold(ctx, lena, Seat14C)) })
	mustBook(t, w, omar, Seat14C)
	refused(t, late(), booking.CodeSeatTaken)
	wantOwner(t, w, omar, Seat14C)
	wantSales(t, w, 1)
	if n := count(t, w, "holds"); n != 0 {
		t.Errorf("the refused hold left %d rows", n)
	}
}

// The story itself: Redis said yes, the request stood still until its lock was gone, and somebody else came by.
func TestSeatLockThatSaidYesDecidesNothing(t *testing.T) {
	_, w := setup(t)
	guarded(t, w)
	const ttl = 200 * time.Millisecond
	rdb, err := lockmgr.Open(dbtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	outcomes := make(chan string, 16)
	gate := shed.New(lockmgr.NewSeats(rdb, ttl, func(outcome string, _ time.Duration) { outcomes <- outcome }), w.Service)
	buy := func(ctx context.Context, caller booking.Caller) error {
		key := Key()
		pass, err := gate.Enter(ctx, caller, w.Event, []seats.ID{Seat14C}, key)
		if err != nil {
			return err
		}
		defer pass.Leave(ctx)
		return second2(w.Service.Book(ctx, caller, key, w.Request(Seat14C)))
	}
	lena, omar := Buyer(), Buyer()
	until(t, "Redis answers in time", func() bool { return rdb.Ping(t.Context()).Err() == nil })
	late := stopped(t, failpoint.BeforeWrite, func(ctx context.Context) error { return buy(ctx, lena) })
	if got := <-outcomes; got != "acquired" {
		t.Fatalf("Redis said %q to the first", got)
	}
	refused(t, buy(t.Context(), omar), booking.CodeSeatBusy)
	until(t, "the first one's lock is gone", func() bool { return len(rdb.Keys(t.Context(), "*").Val()) == 0 })
	if err := buy(t.Context(), omar); err != nil {
		t.Fatal(err)
	}
	refused(t, late(), booking.CodeSeatTaken)
	wantOwner(t, w, omar, Seat14C)
	wantSales(t, w, 1)
}

func second2[T, U any](_ T, _ U, err error) error { return err }

func TestSaleStoppedBeforeItsCommitShortly(t *testing.T) {
	ctx, w := setup(t)
	lena, omar := Buyer(), Buyer()
	first := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error { return second(w.Book(ctx, lena, Seat14C, Seat14C+1)) })
	for _, table := range []string{"bookings", "outbox"} {
		if n := count(t, w, table); n != 0 {
			t.Errorf("%d rows in %s before the commit", n, table)
		}
	}
	start := time.Now()
	refused(t, second(w.Book(ctx, omar, Seat14C)), booking.CodeSeatBusy)
	if took := time.Since(start); took > 2*db.LockTimeout {
		t.Errorf("the second buyer waited %s for a busy seat", took)
	}
	refused(t, second(w.Book(ctx, omar, Seat14C-1, Seat14C)), booking.CodeSeatBusy)
	if err := first(); err != nil {
		t.Fatal(err)
	}
	wantOwner(t, w, lena, Seat14C)
	refused(t, second(w.Book(ctx, omar, Seat14C)), booking.CodeSeatTaken)
	wantSales(t, w, 1)
}

func TestSaleStoppedBeforeItsCommitForLongLosesItsTransaction(t *testing.T) {
	t.Parallel()
	pool, err := db.Open(t.Context(), dbtest.URL(t), db.Options{MaxConns: 8, IdleInTransaction: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := New(t, pool, booking.DefaultLimits)
	t.Cleanup(func() { w.Verify(t) })
	lena, omar := Buyer(), Buyer()
	late := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error { return second(w.Book(ctx, lena, Seat14C, Seat14C+1)) })
	until(t, "Postgres gives the second buyer a turn", func() bool {
		_, err := w.Book(t.Context(), omar, Seat14C)
		if err != nil {
			refused(t, err, booking.CodeSeatBusy)
		}
		return err == nil
	})
	lost := refused(t, late(), booking.CodeSeatTaken)
	if len(lost.Seats) != 1 || lost.Seats[0].ID != Seat14C {
		t.Errorf("the late one is told of %+v", lost.Seats)
	}
	wantOwner(t, w, omar, Seat14C)
	if seat := stateOf(t, w, Seat14C+1); seat.State != seats.Free || seat.Fence != 0 {
		t.Errorf("the rolled-back half of the sale is %+v", seat)
	}
	wantSales(t, w, 1)
}

func TestRetryOfAnAnswerThatNeverCameGetsTheTrueBooking(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][]seats.ID{"one seat": {Seat14C}, "two seats": {Seat14C, Seat14C + 1}} {
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			lena, key := Buyer(), Key()
			var made booking.Booking
			first := stopped(t, failpoint.AfterCommit, func(ctx context.Context) (err error) {
				made, _, err = w.Service.Book(ctx, lena, key, w.Request(ids...))
				return err
			})
			again, replayed, err := w.Service.Book(ctx, lena, key, w.Request(ids...))
			if err != nil || !replayed || len(again.Seats) != len(ids) {
				t.Fatalf("the retry got %+v, replayed %v, %v", again, replayed, err)
			}
			if err := first(); err != nil || made.ID != again.ID {
				t.Errorf("the first request got %v, %v; its retry %v", made.ID, err, again.ID)
			}
			wantSales(t, w, 1)
		})
	}
}

func TestLostAnswerIsLookedUpBeforeAnythingIsRefused(t *testing.T) {
	_, w := setup(t)
	var set failpoint.Set
	set.Arm(failpoint.AfterCommit, func(context.Context) error { return errors.New("the answer is lost") })
	lena := Buyer()
	made, replayed, err := w.Service.Book(failpoint.With(t.Context(), &set), lena, Key(), w.Request(Seat14C))
	if err != nil || !replayed || len(made.Seats) != 1 {
		t.Errorf("got %+v, replayed %v, %v; want the booking that was committed", made, replayed, err)
	}
	wantOwner(t, w, lena, Seat14C)
	wantSales(t, w, 1)
}
