package booking_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/seats"
)

const (
	historyClients = 16
	historySeats   = 40
	historyOps     = 12_000 // of which some are told "busy", which says nothing
	historyTTL     = 40 * time.Millisecond
	historyCheck   = time.Minute
	hangUpEvery    = 40 // operations, on average
)

var errWithoutSeat = errors.New("a success that gave no seat")

// client is one buyer of the history with what it believes to own.
type client struct {
	World
	id      int
	caller  booking.Caller
	start   time.Time
	rand    *rand.Rand
	holds   map[seats.ID]booking.HoldID
	booked  map[seats.ID]booking.BookingID
	history []porcupine.Operation
}

// TestHistoryOfACrowdIsLinearizable lets a crowd hold, confirm, release, book, cancel and read some seats, with holds that run out
// after milliseconds, a sweeper and callers who hang up, and looks for an order of all this that one seat after the other can explain.
func TestHistoryOfACrowdIsLinearizable(t *testing.T) {
	ctx, w := setup(t, func(l *booking.Limits) {
		l.HoldTTL, l.HoldLongest, l.HeldByBuyer = historyTTL, time.Second, historySeats
	})
	seed := rand.Uint64()
	t.Logf("seed=%d", seed)
	start := time.Now()
	run, stop := context.WithCancel(ctx)
	var sweeper, crowd sync.WaitGroup
	sweeper.Go(func() {
		for run.Err() == nil {
			// The statement of a caller who hangs up may be over when it is cancelled, and another one run on its connection.
			if _, err := w.Service.Sweep(run); run.Err() == nil && !expected(err) && !db.Canceled(err) {
				t.Errorf("sweep: %v", err)
			}
		}
	})
	clients := make([]*client, historyClients)
	for i := range clients {
		c := &client{
			World: w, id: i, caller: Buyer(), start: start, rand: rand.New(rand.NewPCG(seed, uint64(i))),
			holds: map[seats.ID]booking.HoldID{}, booked: map[seats.ID]booking.BookingID{},
		}
		clients[i] = c
		crowd.Go(func() {
			for range historyOps / historyClients {
				if err := c.act(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	crowd.Wait()
	stop()
	sweeper.Wait()
	var history []porcupine.Operation
	for _, c := range clients {
		history = append(history, c.history...)
	}
	last := client{World: w, caller: Buyer(), start: start}
	for id := range historySeats {
		if err := last.read(ctx, seats.ID(id+1)); err != nil {
			t.Fatal(err)
		}
	}
	history = append(history, last.history...)
	t.Logf("%d operations in %s: %v", len(history), time.Since(start).Round(time.Millisecond), tally(history))
	if len(history) < 10_000 {
		t.Errorf("only %d operations have an answer", len(history))
	}
	check(t, history, porcupine.Ok)
	check(t, soldTwice(t, history), porcupine.Illegal)
}

func check(t *testing.T, history []porcupine.Operation, want porcupine.CheckResult) {
	t.Helper()
	start := time.Now()
	got, info := porcupine.CheckOperationsVerbose(saleModel, history, historyCheck)
	t.Logf("checked in %s: %s", time.Since(start).Round(time.Millisecond), got)
	if got == want {
		return
	}
	t.Errorf("the history is %s, want %s", got, want)
	picture, err := os.CreateTemp("", "seatfence-history-*.html") // stays behind, to be looked at
	if err != nil {
		t.Fatal(err)
	}
	t.Log("see", picture.Name(), errors.Join(porcupine.Visualize(saleModel, info, picture), picture.Close()))
}

// soldTwice is the history as a double sale would have left it: one more buyer was told that a sold seat is theirs.
func soldTwice(t *testing.T, history []porcupine.Operation) []porcupine.Operation {
	t.Helper()
	i := slices.IndexFunc(history, func(op porcupine.Operation) bool {
		return op.Input.(input).action == actBook && op.Output.(output).verdict == done
	})
	if i < 0 {
		t.Fatal("nothing was sold")
	}
	second, sold := history[i], history[i].Output.(output)
	sold.ref = uuid.New()
	second.Output = sold
	return append(slices.Clone(history), second)
}

func tally(history []porcupine.Operation) map[string]int {
	n := map[string]int{}
	for _, op := range history {
		n[actions[op.Input.(input).action]+[...]string{"", " refused", " unknown"}[op.Output.(output).verdict]]++
	}
	return n
}

// act does one thing to one seat: mostly what its owner would do next.
func (c *client) act(ctx context.Context) error {
	seat := seats.ID(c.rand.IntN(historySeats) + 1)
	for id := range c.booked {
		seat = id
	}
	for id := range c.holds {
		seat = id
	}
	if id, ok := c.booked[seat]; ok {
		return c.write(ctx, input{action: actCancel, seat: seat, ref: id.Key}, func(ctx context.Context, _ booking.Idempotency) (output, error) {
			_, err := c.Service.Cancel(ctx, c.caller, id)
			return output{}, err
		})
	}
	hold, held := c.holds[seat]
	switch dice := c.rand.IntN(10); {
	case dice < 2:
		return c.read(ctx, seats.ID(c.rand.IntN(historySeats)+1))
	case held && dice < 6:
		return c.write(ctx, input{action: actConfirm, seat: seat, ref: hold.Key}, c.book(seat, booking.BookRequest{Hold: &hold, Name: "Lena", Email: "lena@example.com"}))
	case held && dice < 8:
		return c.write(ctx, input{action: actRelease, seat: seat, ref: hold.Key}, func(ctx context.Context, _ booking.Idempotency) (output, error) {
			return output{}, c.Service.Release(ctx, c.caller, hold)
		})
	case held:
		delete(c.holds, seat) // left to run out
		return c.read(ctx, seat)
	case dice < 5:
		return c.write(ctx, input{action: actBook, seat: seat}, c.book(seat, c.Request(seat)))
	}
	return c.write(ctx, input{action: actHold, seat: seat}, func(ctx context.Context, key booking.Idempotency) (output, error) {
		made, _, err := c.Service.Hold(ctx, c.caller, key, booking.HoldRequest{Event: c.Event, Seats: Wants(seat)})
		if err != nil || len(made.Seats) != 1 {
			return output{}, cmp.Or(err, errWithoutSeat)
		}
		c.holds[seat] = made.ID
		return output{ref: made.ID.Key, fence: made.Seats[0].Fence, until: made.ExpiresAt.Sub(c.start).Nanoseconds()}, nil
	})
}

func (c *client) book(seat seats.ID, req booking.BookRequest) func(context.Context, booking.Idempotency) (output, error) {
	return func(ctx context.Context, key booking.Idempotency) (output, error) {
		made, _, err := c.Service.Book(ctx, c.caller, key, req)
		if err != nil || len(made.Seats) != 1 {
			return output{}, cmp.Or(err, errWithoutSeat)
		}
		c.booked[seat] = made.ID
		return output{ref: made.ID.Key, fence: made.Seats[0].Fence}, nil
	}
}

// write runs an operation and records what came of it. Some callers hang up in the middle; whoever did that while buying asks again
// with the same key, which must not buy twice, to know what there is to cancel.
func (c *client) write(ctx context.Context, in input, do func(context.Context, booking.Idempotency) (output, error)) error {
	key := Key()
	attempt, hangUp := context.WithCancel(ctx)
	defer hangUp()
	if c.rand.IntN(hangUpEvery) == 0 {
		defer time.AfterFunc(time.Duration(c.rand.IntN(3000))*time.Microsecond, hangUp).Stop()
	}
	in.call = c.now()
	out, err := do(attempt, key)
	in.ret = c.now()
	switch {
	case err == nil:
	case attempt.Err() != nil:
		out.verdict, in.ret = unknown, never
	case saysNothing(err):
		return nil
	case expected(err):
		out.verdict = refusedIt
	default:
		return err
	}
	c.forget(in)
	c.record(in, out)
	if out.verdict == unknown && (in.action == actBook || in.action == actConfirm) {
		if _, err := do(ctx, key); !expected(err) && !saysNothing(err) {
			return err
		}
	}
	return nil
}

// forget drops what an operation has used up, whatever came of it.
func (c *client) forget(in input) {
	switch in.action {
	case actConfirm, actRelease:
		delete(c.holds, in.seat)
	case actCancel:
		delete(c.booked, in.seat)
	}
}

// saysNothing reports whether an answer says nothing about the seat: "busy", as whoever was writing it may have rolled back, and a statement
// that was cancelled. Another caller's it may have been: a request to cancel that comes too late meets the session's next statement.
func saysNothing(err error) bool {
	refusal, ok := errors.AsType[*booking.SeatsError](err)
	return ok && refusal.Code == booking.CodeSeatBusy || db.Canceled(err)
}

func (c *client) read(ctx context.Context, id seats.ID) error {
	in := input{action: actRead, seat: id, call: c.now()}
	seat, err := c.Service.Seat(ctx, c.caller, c.Event, id)
	switch {
	case saysNothing(err):
		return nil
	case err != nil:
		return err
	}
	in.ret = c.now()
	c.record(in, output{state: seat.State, fence: seat.Fence})
	return nil
}

func (c *client) now() int64 { return time.Since(c.start).Nanoseconds() }

func (c *client) record(in input, out output) {
	c.history = append(c.history, porcupine.Operation{ClientId: c.id, Input: in, Call: in.call, Output: out, Return: in.ret})
}
