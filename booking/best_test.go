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

	"github.com/jackc/pgx/v5"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// hall is a World whose event has rows of the given width, without an area.
func hall(t testing.TB, rows, width int, change ...func(*booking.NewEvent)) World {
	t.Helper()
	w := New(t, dbtest.Pool(t), booking.DefaultLimits)
	spec := Spec()
	section := plan.HouseSection{Name: "Hall"}
	for i := range rows {
		section.Rows = append(section.Rows, plan.HouseRow{Label: fmt.Sprint(i + 1), Category: "Stalls", Seats: width})
	}
	spec.House.Sections, spec.House.Areas = []plan.HouseSection{section}, nil
	for _, f := range change {
		f(&spec)
	}
	w.Event = w.NewEvent(t, spec)
	return w
}

func best(ctx context.Context, w World, caller booking.Caller, wish booking.BestWish) (booking.Hold, error) {
	hold, _, err := w.Service.Hold(ctx, caller, Key(), booking.HoldRequest{Event: w.Event, Best: &wish})
	return hold, err
}

func idsOf(hold booking.Hold) (ids []seats.ID) {
	for _, s := range hold.Seats {
		ids = append(ids, s.ID)
	}
	return ids
}

// adjacent reports whether the seats of a hall of straight rows sit side by side.
func adjacent(ids []seats.ID, width int) bool {
	for i := 1; i < len(ids); i++ {
		if ids[i] != ids[i-1]+1 || int(ids[i]-1)/width != int(ids[0]-1)/width {
			return false
		}
	}
	return true
}

func TestBestSeatsAreTheMiddleOfTheFront(t *testing.T) {
	ctx := t.Context()
	w := hall(t, 3, 7)
	first, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 3})
	if err != nil || !slices.Equal(idsOf(first), []seats.ID{3, 4, 5}) || !*first.Together || first.LastResort {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 2})
	if err != nil || !slices.Equal(idsOf(second), []seats.ID{10, 11}) {
		t.Errorf("%+v, %v", idsOf(second), err)
	}
	third, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 6})
	if err != nil || len(third.Seats) != 6 || !*third.Together || !third.LastResort {
		t.Errorf("six of a row of seven: %v last resort %v, %v", idsOf(third), third.LastResort, err)
	}
}

func TestBestSeatsHaveTheTypesAskedForAndTheirPrices(t *testing.T) {
	ctx := t.Context()
	w := hall(t, 2, 6, func(e *booking.NewEvent) {
		e.Types = []string{"adult", "child", "member"}
		e.Prices = []booking.Price{{Category: "Stalls", Type: "child", Amount: 1500}, {Category: "Standing", Type: "member", Amount: 1}}
	})
	wish := booking.BestWish{Types: []booking.TypeCount{{Type: "adult", Quantity: 2}, {Type: "child", Quantity: 1}}}
	hold, err := best(ctx, w, Buyer(), wish)
	if err != nil || hold.Total != 2*SeatPrice+1500 || hold.Seats[0].Type != "adult" || hold.Seats[2].Type != "child" {
		t.Fatalf("%+v, %v", hold, err)
	}
	for typ, code := range map[string]string{"dog": "unknown_type", "member": "type_not_sold"} {
		_, err = best(ctx, w, Buyer(), booking.BestWish{Types: []booking.TypeCount{{Type: "adult", Quantity: 2}, {Type: typ, Quantity: 1}}})
		wantInvalid(t, err, "/best_available/types/1/type", code)
	}
}

// The best seats of a type are sought where that type is sold.
func TestBestSeatsOfATypeAreWhereItIsSold(t *testing.T) {
	t.Parallel()
	w := hall(t, 2, 6, func(e *booking.NewEvent) {
		e.Types = []string{"adult", "child"}
		e.House.Categories = []plan.HouseCategory{{Name: "Stalls", Price: SeatPrice}, {Name: "Back", Price: FloorPrice}}
		e.House.Sections[0].Rows[1].Category = "Back"
		e.Prices = []booking.Price{{Category: "Back", Type: "child", Amount: 1000}}
	})
	hold, err := best(t.Context(), w, Buyer(), booking.BestWish{Types: []booking.TypeCount{{Type: "child", Quantity: 2}}})
	if err != nil || hold.Total != 2000 {
		t.Errorf("two of row 2 are sold to children: %+v, %v", hold, err)
	}
}

func wantInvalid(t *testing.T, err error, pointer, code string) {
	t.Helper()
	e, ok := errors.AsType[*booking.InvalidError](err)
	if !ok || e.Pointer != pointer || e.Code != code {
		t.Errorf("got %v, want %s at %s", err, code, pointer)
	}
}

func TestWishThatNobodyCanHaveIsRefused(t *testing.T) {
	ctx := t.Context()
	w := hall(t, 2, 3)
	for _, c := range []struct {
		wish          booking.BestWish
		pointer, code string
	}{
		{booking.BestWish{}, "/best_available/quantity", "bad_quantity"},
		{booking.BestWish{Quantity: 21}, "/best_available/quantity", "bad_quantity"},
		{booking.BestWish{Quantity: 2, Accessible: 3}, "/best_available/accessible", "bad_quantity"},
		{booking.BestWish{Quantity: 2, Category: "Moon"}, "/best_available/category", "unknown_category"},
		{booking.BestWish{Quantity: 2, Section: "Moon"}, "/best_available/section", "unknown_section"},
		{booking.BestWish{Quantity: 2, Types: []booking.TypeCount{{Type: "standard", Quantity: 1}}}, "/best_available", "quantity_or_types"},
		{booking.BestWish{Types: []booking.TypeCount{{Type: "standard"}}}, "/best_available/quantity", "bad_quantity"},
	} {
		_, err := best(ctx, w, Buyer(), c.wish)
		wantInvalid(t, err, c.pointer, c.code)
	}
	_, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 4, Together: true})
	wantErr(t, err, booking.ErrNoBlock)
	apart, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 4})
	if err != nil || *apart.Together {
		t.Errorf("four in rows of three: %+v, %v", apart, err)
	}
	_, err = best(ctx, w, Buyer(), booking.BestWish{Quantity: 3})
	wantErr(t, err, booking.ErrNoBlock)
}

// A panic while the hall is read must not end the choice of seats for everybody who comes later: the server goes on after it.
func TestPanicOfOneReaderKeepsNobodyElse(t *testing.T) {
	t.Parallel()
	service := booking.New(nil, booking.DefaultLimits) // there is nothing to read from
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		func() {
			defer func() { _ = recover() }()
			_, _, _ = service.Hold(ctx, Buyer(), Key(), booking.HoldRequest{Event: 1, Best: &booking.BestWish{Quantity: 1}})
		}()
		if ctx.Err() != nil {
			t.Error("the next one waits for ever")
		}
		cancel()
	}
}

func TestCrowdFillsTheHouseInGroupsWithoutAFalseRefusal(t *testing.T) {
	w := hall(t, 200, 40)
	crowdFills(t, w, 200, 40, 160, w)
}

// TestCrowdOnThreeNodesFillsTheHouse: nodes know nothing of what the others are about to take, and meet in the database.
func TestCrowdOnThreeNodesFillsTheHouse(t *testing.T) {
	w := hall(t, 50, 40)
	nodes := []World{w, w, w}
	for i := range nodes {
		nodes[i].Service = booking.New(w.Pool, booking.DefaultLimits)
	}
	crowdFills(t, w, 50, 40, 96, nodes...)
}

// crowdFills has buyers take groups of two to six, each on one of the nodes, until nothing fits any more.
func crowdFills(t *testing.T, w World, rows, width, buyers int, nodes ...World) {
	t.Helper()
	ctx := t.Context()
	var (
		mu   sync.Mutex
		took []time.Duration
		sold = map[seats.ID]bool{}
		all  sync.WaitGroup
	)
	for n := range buyers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for size := 2 + random.IntN(5); ; {
				start := time.Now()
				hold, err := best(ctx, nodes[n%len(nodes)], Buyer(), booking.BestWish{Quantity: size, Together: true})
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
				if err != nil {
					if !errors.Is(err, booking.ErrNoBlock) {
						t.Errorf("group of %d: %v", size, err)
						return
					}
					// Seats are only taken here and never freed: a block that is there now was there when it was refused.
					if first := freeBlock(t, w, width, size); first > 0 {
						t.Errorf("a group of %d was refused, and there is room at %d", size, first)
					}
					if size--; size < 2 {
						return
					}
					continue
				}
				ids := idsOf(hold)
				mu.Lock()
				for _, id := range ids {
					if sold[id] {
						t.Errorf("seat %d was given twice", id)
					}
					sold[id] = true
				}
				mu.Unlock()
				if len(ids) != size || !*hold.Together || !adjacent(ids, width) {
					t.Errorf("a group of %d got %v", size, ids)
				}
				size = 2 + random.IntN(5)
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	t.Logf("%d requests; p50 %v, p95 %v, worst %v; %d of %d seats in groups", len(took), took[len(took)/2], took[len(took)*95/100], took[len(took)-1], len(sold), rows*width)
	w.Verify(t)
}

// freeBlock is the first of n free seats side by side, or 0.
func freeBlock(t *testing.T, w World, width, n int) seats.ID {
	t.Helper()
	rows, err := w.Pool.Query(t.Context(), "SELECT id FROM seats WHERE event_id = $1 AND buyer IS NULL AND hold_id IS NULL ORDER BY id", int64(w.Event))
	if err != nil {
		t.Error(err)
		return 0
	}
	free, err := pgx.CollectRows(rows, pgx.RowTo[seats.ID])
	if err != nil {
		t.Error(err)
	}
	for i := range len(free) - n + 1 {
		if adjacent(free[i:i+n], width) {
			return free[i]
		}
	}
	return 0
}

func TestThirtyTwoWhoWantTwoOfTwentySeats(t *testing.T) {
	ctx := t.Context()
	w := hall(t, 1, 20)
	var won atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			hold, err := best(ctx, w, Buyer(), booking.BestWish{Quantity: 2, Together: true})
			switch {
			case err == nil && adjacent(idsOf(hold), 20):
				won.Add(1)
			case !errors.Is(err, booking.ErrNoBlock):
				t.Errorf("%v, %v", idsOf(hold), err)
			}
		})
	}
	all.Wait()
	if won.Load() < 9 || won.Load() > 10 { // two on the aisles may be left
		t.Errorf("%d pairs of 20 seats", won.Load())
	}
	if first := freeBlock(t, w, 20, 2); first > 0 {
		t.Errorf("two were refused, and there is room at %d", first)
	}
	w.Verify(t)
}
