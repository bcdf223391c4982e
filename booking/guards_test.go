//go:build failpoint

package booking_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/db/dbtest"
	"seatfence/internal/failpoint"
	"seatfence/seats"
)

// other opens a transaction of somebody else that has run the statement and stands still.
func other(t *testing.T, w World, statement string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := w.Pool.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(context.Background(), statement, args...); err != nil {
		t.Fatal(err)
	}
	return tx
}

func end(t *testing.T, end func(context.Context) error) {
	t.Helper()
	if err := end(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestSeatThatAnotherHoldsIsNotSoldDirectly(t *testing.T) {
	ctx, w := setup(t)
	hold := w.MustHold(t, Buyer(), Seat14C)
	for _, ids := range [][]seats.ID{{Seat14C}, {1, Seat14C}} {
		lost := refused(t, second(w.Book(ctx, Buyer(), ids...)), booking.CodeSeatTaken)
		if len(lost.Seats) != 1 || lost.Seats[0].Reason != booking.ReasonHeld || !lost.Seats[0].HeldUntil.Equal(hold.ExpiresAt) {
			t.Errorf("a buyer is told %+v of seats %v", lost.Seats, ids)
		}
	}
	w.Expire(t, hold.ID)
	mustBook(t, w, Buyer(), Seat14C)
}

// now() stands still from BEGIN on: a condition on it would confirm this hold.
func TestHoldThatRunsOutInsideItsConfirmationIsNotSold(t *testing.T) {
	_, w := setup(t, func(l *booking.Limits) { l.HoldTTL = time.Second })
	lena := Buyer()
	hold := w.MustHold(t, lena, Seat14C, Seat14C+1)
	late := stopped(t, failpoint.BeforeWrite, func(ctx context.Context) error { return second(w.Confirm(ctx, lena, hold.ID)) })
	until(t, "the hold has run out", func() (over bool) {
		if err := w.Pool.QueryRow(t.Context(), "SELECT clock_timestamp() > $1", hold.ExpiresAt).Scan(&over); err != nil {
			t.Fatal(err)
		}
		return over
	})
	wantErr(t, late(), booking.ErrHoldExpired)
	if n := count(t, w, "bookings") + count(t, w, "outbox"); n != 0 {
		t.Errorf("the refused confirmation left %d rows", n)
	}
	mustBook(t, w, Buyer(), Seat14C)
}

// Whoever waits for the seat with the lowest id must hold none of the others: two who ask in opposite orders would wait for each other.
func TestSeveralSeatsAreTakenInTheOrderOfTheirIDs(t *testing.T) {
	const low, high = 3, 9
	for name, write := range map[string]func(context.Context, World, booking.Caller, booking.HoldID) error{
		"book": func(ctx context.Context, w World, c booking.Caller, _ booking.HoldID) error {
			return second(w.Book(ctx, c, high, low))
		},
		"hold": func(ctx context.Context, w World, c booking.Caller, _ booking.HoldID) error {
			return second(w.Hold(ctx, c, high, low))
		},
		"add": func(ctx context.Context, w World, c booking.Caller, hold booking.HoldID) error {
			return second(w.Service.ChangeHold(ctx, c, hold, booking.HoldChange{Add: Wants(high, low)}))
		},
		"block": func(ctx context.Context, w World, _ booking.Caller, _ booking.HoldID) error {
			return second2(w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{high, low}, "camera"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			spec := Spec()
			spec.House.Sections[0].Rows[0].Seats = 5000 // so many that Postgres goes by the request, seat for seat
			w.Event = w.NewEvent(t, spec)
			lena := Buyer()
			hold := w.MustHold(t, lena, 1)
			front := other(t, w, "SELECT id FROM seats WHERE event_id = $1 AND id = $2 FOR UPDATE", int64(w.Event), low)
			ended := begun(t, w, 1, func() error { return write(ctx, w, lena, hold.ID) })
			rows := other(t, w, "SELECT 1")
			var free int
			if err := rows.QueryRow(ctx, `SELECT count(*) FROM (SELECT id FROM seats WHERE event_id = $1 AND id = $2
				FOR UPDATE SKIP LOCKED) s`, int64(w.Event), high).Scan(&free); err != nil {
				t.Fatal(err)
			}
			if free == 0 {
				t.Errorf("seat %d is locked by a writer that still waits for seat %d", high, low)
			}
			end(t, rows.Rollback)
			end(t, front.Rollback)
			if err := <-ended; !expected(err) {
				t.Error(err)
			}
		})
	}
}

func pauseEvent(ctx context.Context, w World) error {
	paused := booking.StatusPaused
	return second(w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &paused}))
}

func wantWaiting(t *testing.T, ended <-chan error, who string) {
	t.Helper()
	if len(ended) > 0 {
		t.Errorf("%s did not wait", who)
	}
}

// A pause that returns has to mean that nothing is sold or held after it.
func TestPauseWaitsForTheWriteUnderWay(t *testing.T) {
	for name, tt := range map[string]struct {
		point string
		write func(context.Context, World) error
	}{
		"decided sale":   {failpoint.BeforeWrite, func(ctx context.Context, w World) error { return second(w.Book(ctx, Buyer(), 1, 2)) }},
		"written sale":   {failpoint.BeforeCommit, func(ctx context.Context, w World) error { return second(w.Book(ctx, Buyer(), 1, 2)) }},
		"written hold":   {failpoint.BeforeCommit, func(ctx context.Context, w World) error { return second(w.Hold(ctx, Buyer(), 1)) }},
		"sale of a seat": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			var finish func() error
			waiters := 1
			if tt.write != nil {
				finish = stopped(t, tt.point, func(ctx context.Context) error { return tt.write(ctx, w) })
			} else {
				// One statement has no place to stop at but the seat itself, which it takes after the event.
				seat := other(t, w, "SELECT id FROM seats WHERE event_id = $1 AND id = 1 FOR UPDATE", int64(w.Event))
				sale := begun(t, w, 1, func() error { return second(w.Book(ctx, Buyer(), 1)) })
				finish = func() error { end(t, seat.Rollback); return <-sale }
				waiters = 2
			}
			pause := begun(t, w, waiters, func() error { return pauseEvent(ctx, w) })
			wantWaiting(t, pause, "the pause")
			if err := finish(); !expected(err) {
				t.Error(err)
			}
			if err := <-pause; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWriteWaitsForThePauseUnderWay(t *testing.T) {
	for name, write := range map[string]func(context.Context, World) error{
		"sale of a seat": func(ctx context.Context, w World) error { return second(w.Book(ctx, Buyer(), 1)) },
		"sale of two":    func(ctx context.Context, w World) error { return second(w.Book(ctx, Buyer(), 1, 2)) },
		"hold":           func(ctx context.Context, w World) error { return second(w.Hold(ctx, Buyer(), 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			pause := other(t, w, "UPDATE events SET status = 'paused' WHERE id = $1", int64(w.Event))
			ended := begun(t, w, 1, func() error { return write(ctx, w) })
			wantWaiting(t, ended, "the "+name)
			end(t, pause.Commit)
			wantErr(t, <-ended, booking.ErrEventPaused)
			wantSales(t, w, 0)
		})
	}
}

// Seats would hide a key that is read first and written last: the second sale finds them taken. Places are free for both.
func TestSameKeyAtOnceTakesPlacesOnce(t *testing.T) {
	places := &booking.AreaPlaces{Area: Floor, Quantity: 2}
	for name, write := range map[string]func(context.Context, World, booking.Caller, booking.Idempotency) (string, bool, error){
		"book": func(ctx context.Context, w World, c booking.Caller, key booking.Idempotency) (string, bool, error) {
			made, replayed, err := w.Service.Book(ctx, c, key, booking.BookRequest{Event: w.Event, Places: places, Name: "Lena", Email: "lena@example.com"})
			return made.ID.String(), replayed, err
		},
		"hold": func(ctx context.Context, w World, c booking.Caller, key booking.Idempotency) (string, bool, error) {
			hold, replayed, err := w.Service.Hold(ctx, c, key, booking.HoldRequest{Event: w.Event, Places: places})
			return hold.ID.String(), replayed, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			lena, key := Buyer(), Key()
			var ids [2]string
			first := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) (err error) {
				ids[0], _, err = write(ctx, w, lena, key)
				return err
			})
			again := begun(t, w, 1, func() (err error) {
				var replayed bool
				ids[1], replayed, err = write(ctx, w, lena, key)
				if err == nil && !replayed {
					t.Error("the same request had two effects")
				}
				return err
			})
			if err := first(); err != nil {
				t.Fatal(err)
			}
			if err := <-again; err != nil || ids[0] != ids[1] {
				t.Errorf("two answers under one key: %v, %v", ids, err)
			}
			if n := count(t, w, "idempotency_keys"); n != 1 {
				t.Errorf("%d rows for one key", n)
			}
		})
	}
}

func TestCapCountsAHoldThatIsNotCommittedYet(t *testing.T) {
	ctx, w := setup(t, func(l *booking.Limits) { l.HeldByBuyer = 1 })
	lena := Buyer()
	first := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error { return second(w.Hold(ctx, lena, 1)) })
	other := begun(t, w, 1, func() error { return second(w.Hold(ctx, lena, 2)) })
	if err := first(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, <-other, booking.ErrHoldLimit)
}

// The planner may run a LIMIT below an UPDATE once for each row of the area, and then two places are all places.
// A statement that picks and writes at once depends on how often the planner runs its inner part. Here it may not keep what that found.
func TestPlacesAreNoMoreThanAskedFor(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	at, err := url.Parse(dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	set := at.Query()
	for _, method := range []string{"hashjoin", "mergejoin", "material", "hashagg", "sort", "memoize"} {
		set.Set("enable_"+method, "off")
	}
	at.RawQuery = set.Encode()
	pool, err := db.Open(ctx, at.String(), db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := New(t, pool, booking.DefaultLimits)
	spec := Spec()
	spec.House.Areas[0].Capacity = 1000
	w.Event = w.NewEvent(t, spec)
	for range 3 {
		hold, _, err := w.Service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: Floor, Quantity: 2}})
		if err != nil || len(hold.Seats) != 2 {
			t.Errorf("a hold of 2 places has %d, %v", len(hold.Seats), err)
		}
	}
}

// A fault that clears the owner of a sold seat fools every condition; the index on live tickets still refuses, and says so.
func TestSeatWhoseOwnerWasLostIsNotSoldTwice(t *testing.T) {
	ctx, w := setup(t)
	alarms := 0
	w.Service.Guarded = func() { alarms++ }
	made := mustBook(t, w, Buyer(), Seat14C)
	var buyer, sale any
	err := w.Pool.QueryRow(ctx, "SELECT buyer, booking_id FROM seats WHERE event_id = $1 AND id = $2", int64(w.Event), Seat14C).Scan(&buyer, &sale)
	if err != nil {
		t.Fatal(err)
	}
	const set = "UPDATE seats SET buyer = $3, booking_id = $4 WHERE event_id = $1 AND id = $2"
	if _, err := w.Pool.Exec(ctx, set, int64(w.Event), Seat14C, nil, nil); err != nil {
		t.Fatal(err)
	}
	refused(t, second(w.Book(ctx, Buyer(), Seat14C)), booking.CodeSeatBusy)
	refused(t, second(w.Book(ctx, Buyer(), Seat14C, 1)), booking.CodeSeatBusy)
	if alarms != 2 {
		t.Errorf("%d alarms for two sales that only the index refused", alarms)
	}
	if _, err := w.Pool.Exec(ctx, set, int64(w.Event), Seat14C, buyer, sale); err != nil {
		t.Fatal(err)
	}
	if read, err := w.Service.GetBooking(ctx, w.Owner, made.ID); err != nil || len(read.Seats) != 1 {
		t.Errorf("the first booking reads %+v, %v", read, err)
	}
	wantSales(t, w, 1)
}

// A large plan is written for seconds. Meanwhile the sales of its event wait, and nobody else's.
func TestNewPlanKeepsNoOtherEvent(t *testing.T) {
	w, p, _ := planned(t)
	ctx := t.Context()
	others := w.NewEvent(t, Spec())
	p.Sections[0].Rows[0].Seats[0].Category = "B"
	next := published(t, w, p)
	seat := other(t, w, "SELECT id FROM seats WHERE event_id = $1 AND id = 1 FOR UPDATE", int64(w.Event))
	change := begun(t, w, 1, func() error {
		return second(w.Service.ChangePlan(ctx, w.Owner, w.Event, booking.PlanChange{Plan: next.Plan, Version: next.Version}))
	})
	sale := other(t, w, "LOCK TABLE events IN ROW SHARE MODE NOWAIT")
	end(t, sale.Rollback)
	req := booking.BookRequest{Event: others, Seats: Wants(1), Name: "Lena", Email: "lena@example.com"}
	if _, _, err := w.Service.Book(ctx, w.Owner, Key(), req); err != nil {
		t.Error(err)
	}
	wantWaiting(t, change, "the change")
	end(t, seat.Rollback)
	if err := <-change; err != nil {
		t.Error(err)
	}
}
