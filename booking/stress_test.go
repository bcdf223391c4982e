package booking_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// expected reports whether a crowd may meet the error: a lost race, never a fault.
func expected(err error) bool {
	if _, lost := errors.AsType[*booking.SeatsError](err); lost || err == nil {
		return true
	}
	return slices.ContainsFunc([]error{
		booking.ErrHoldExpired, booking.ErrHoldClosed, booking.ErrHoldLimit, booking.ErrExtensionLimit, booking.ErrBookingCancelled,
		booking.ErrBlockRemoved, booking.ErrSoldOut, booking.ErrBusy, context.Canceled,
	}, func(known error) bool { return errors.Is(err, known) })
}

func deadlocks(t *testing.T, w World) (n int) {
	t.Helper()
	if _, err := w.Pool.Exec(context.Background(), "SELECT pg_stat_force_next_flush()"); err != nil {
		t.Fatal(err)
	}
	if err := w.Pool.QueryRow(context.Background(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Everything that writes seats runs at once on twelve of them, several at a time and in opposite orders: holds, changes, extensions,
// confirmations, direct sales, take-overs of holds that run out after some milliseconds, cancels, blocks and two sweepers.
func TestWritersOfSeveralSeatsNeverDeadlock(t *testing.T) {
	const attempts, workers, house = 2000, 16, 12
	ctx, w := setup(t, func(l *booking.Limits) { l.HoldTTL, l.HoldLongest, l.Extensions = 15*time.Millisecond, time.Second, 50 })
	run, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	for range 2 {
		background.Go(func() {
			for run.Err() == nil {
				if _, err := w.Service.Sweep(run); run.Err() == nil && !expected(err) {
					t.Errorf("sweep: %v", err)
				}
			}
		})
	}
	background.Go(func() {
		for run.Err() == nil {
			block, _, err := w.Service.Block(run, w.Owner, Key(), w.Event, pickSeats(house, 2), "camera")
			if err == nil {
				err = w.Service.Unblock(ctx, w.Owner, block.ID)
			}
			if !expected(err) && run.Err() == nil {
				t.Errorf("block: %v", err)
			}
		}
	})
	var left atomic.Int64
	left.Store(attempts)
	var crowd sync.WaitGroup
	for range workers {
		crowd.Go(func() {
			for left.Add(-1) >= 0 {
				if err := attempt(ctx, w, pickSeats(house, 4)); !expected(err) {
					t.Errorf("attempt: %v", err)
				}
			}
		})
	}
	crowd.Wait()
	stop()
	background.Wait()
	if n := deadlocks(t, w); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// pickSeats returns n different seats of the house in random order.
func pickSeats(house, n int) []seats.ID {
	ids := make([]seats.ID, n)
	for i, p := range rand.Perm(house)[:n] {
		ids[i] = seats.ID(p + 1)
	}
	return ids
}

func attempt(ctx context.Context, w World, ids []seats.ID) error {
	lena := Buyer()
	if rand.IntN(3) == 0 {
		made, err := w.Book(ctx, lena, ids...)
		if err != nil {
			return err
		}
		_, err = w.Service.Cancel(ctx, lena, made.ID)
		return err
	}
	hold, err := w.Hold(ctx, lena, ids[:3]...)
	if err != nil {
		return err
	}
	if _, err := w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Add: Wants(ids[3]), Drop: ids[:1], Extend: true}); !expected(err) {
		return err
	}
	switch rand.IntN(3) {
	case 0:
		return w.Service.Release(ctx, lena, hold.ID)
	case 1:
		made, err := w.Confirm(ctx, lena, hold.ID)
		if err != nil {
			return err
		}
		_, err = w.Service.Cancel(ctx, lena, made.ID)
		return err
	}
	return nil // left to run out
}

// A crowd that buys without a pause would keep the event's row shared for ever; the organizer's pause still comes through, and no sale
// commits after it.
func TestPauseComesThroughACrowdAndNothingIsSoldAfterIt(t *testing.T) {
	ctx, w := setup(t)
	spec := Spec()
	spec.House.Sections[0].Rows[2].Seats = 20_000
	w.Event = w.NewEvent(t, spec)
	var crowd sync.WaitGroup
	var next, sold atomic.Int64
	next.Store(2 * RowSeats)
	started := make(chan struct{}, 1)
	for range 16 {
		crowd.Go(func() {
			for {
				_, err := w.Book(ctx, Buyer(), seats.ID(next.Add(1)))
				if errors.Is(err, booking.ErrEventPaused) {
					return
				}
				if !expected(err) {
					t.Error(err)
					return
				}
				if sold.Add(1) == 100 {
					started <- struct{}{}
				}
			}
		})
	}
	<-started
	paused := booking.StatusPaused
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Status: &paused}); err != nil {
		t.Error(err)
	}
	var before, after int
	count := func(n *int) {
		if err := w.Pool.QueryRow(ctx, "SELECT count(*) FROM seats WHERE event_id = $1 AND buyer IS NOT NULL", int64(w.Event)).Scan(n); err != nil {
			t.Fatal(err)
		}
	}
	count(&before)
	crowd.Wait()
	count(&after)
	if before != after || before < 100 {
		t.Errorf("%d seats sold when the pause returned, %d when the crowd had gone", before, after)
	}
}

// useCases are those that attempt leaves out, each with what undoes it.
func useCases(agency booking.Caller, plans []booking.PlanRef) []func(context.Context, World, seats.ID) error {
	return []func(context.Context, World, seats.ID) error{
		func(ctx context.Context, w World, _ seats.ID) error {
			hold, err := best(ctx, w, agency, booking.BestWish{Quantity: 1 + rand.N(3)})
			if err != nil {
				return err
			}
			made, err := w.Confirm(ctx, agency, hold.ID)
			if err != nil {
				return err
			}
			return second(w.Service.Cancel(ctx, agency, made.ID))
		},
		func(ctx context.Context, w World, _ seats.ID) error {
			hold, err := holdPlaces(ctx, w, agency, 1+rand.N(3))
			if err != nil {
				return err
			}
			return w.Service.Release(ctx, agency, hold.ID)
		},
		func(ctx context.Context, w World, id seats.ID) error {
			lena, key := Buyer(), Key()
			req := booking.HoldRequest{Event: w.Event, Seats: Wants(id)}
			_, _, err := w.Service.Hold(ctx, lena, key, req)
			if err != nil {
				err = w.Service.Instead(ctx, lena, key, req, err)
			}
			return err
		},
		func(ctx context.Context, w World, id seats.ID) error {
			block, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{id}, "camera")
			if err != nil {
				return err
			}
			return w.Service.Unblock(ctx, w.Owner, block.ID)
		},
		func(ctx context.Context, w World, id seats.ID) error {
			made, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{
				Name: Key().Key, Keys: []uuid.UUID{agency.ID}, Seats: []seats.ID{id}, Places: &booking.AreaPlaces{Area: Floor, Quantity: 1},
			})
			if err != nil {
				return err
			}
			_, err = w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Drop: []seats.ID{id}})
			if err != nil {
				return err
			}
			return w.Service.DeleteChannel(ctx, w.Owner, w.Event, made.ID)
		},
		func(ctx context.Context, w World, _ seats.ID) error {
			to := plans[rand.N(len(plans))]
			return second(w.Service.ChangePlan(ctx, w.Owner, w.Event, booking.PlanChange{Plan: to.Plan, Version: to.Version}))
		},
		func(ctx context.Context, w World, _ seats.ID) error {
			prices := []booking.Price{{Category: "A", Amount: rand.N[int64](1000)}, {Category: "B", Amount: FloorPrice}}
			return second(w.Service.SetPrices(ctx, w.Owner, w.Event, booking.PriceList{Prices: prices}))
		},
		func(ctx context.Context, w World, id seats.ID) error {
			name := fmt.Sprint("Evening ", id)
			return second(w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{Name: &name}))
		},
	}
}

// TestUseCasesOfEveryKindAtOnce has two nodes sell an event while its organizer changes all of it that can be changed: every answer is one
// of the domain's, and no two orders of locks meet.
func TestUseCasesOfEveryKindAtOnce(t *testing.T) {
	const attempts, workers, house = 400, 12, 10
	w, p, full := planned(t)
	ctx := t.Context()
	p.Areas = []plan.Area{{Name: "Floor", Category: "B", Capacity: 14}}
	others := useCases(partner(t, w), []booking.PlanRef{full, published(t, w, p)})
	orphans := true
	if _, err := w.Service.UpdateEvent(ctx, w.Owner, w.Event, booking.EventChange{OrphanRule: &orphans}); err != nil {
		t.Fatal(err)
	}
	limits := booking.DefaultLimits
	limits.HoldTTL = 50 * time.Millisecond // nobody gives back what they only hold
	nodes := [2]World{w, w}
	for i := range nodes {
		nodes[i].Service = booking.New(w.Pool, limits)
	}
	var left atomic.Int64
	left.Store(attempts)
	var crowd sync.WaitGroup
	for n := range workers {
		crowd.Go(func() {
			for left.Add(-1) >= 0 {
				ids := pickSeats(house, 4)
				node, err := nodes[n%2], error(nil)
				if which := rand.N(len(others) + 2); which < len(others) {
					err = others[which](ctx, node, ids[0])
				} else {
					err = attempt(ctx, node, ids)
				}
				_, invalid := errors.AsType[*booking.InvalidError](err) // of what another worker has just taken away
				if !expected(err) && !invalid && !errors.Is(err, booking.ErrNoBlock) {
					t.Errorf("attempt: %v", err)
				}
			}
		})
	}
	crowd.Wait()
	if n := deadlocks(t, w); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}
