package booking_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/db/dbtest"
	"seatfence/seats"
)

// watcher is a client of a live map: a state, and what it was told since.
type watcher struct {
	top   booking.FeedTop
	seats map[seats.ID]booking.FeedState
	areas map[int32]int64
}

// blank knows an event at its beginning, when everything was free.
func blank(t *testing.T, w World) *watcher {
	t.Helper()
	state := mapState(t, w)
	v := watching(state)
	v.top.Seq = 0
	for id := range v.seats {
		v.seats[id] = booking.FeedFree
	}
	v.areas = map[int32]int64{Floor: FloorSize}
	return v
}

func mapState(t testing.TB, w World) *booking.MapState {
	t.Helper()
	state, err := w.Service.MapState(context.Background(), Buyer(), w.Event)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func watching(state *booking.MapState) *watcher {
	v := &watcher{state.FeedTop, map[seats.ID]booking.FeedState{}, map[int32]int64{}}
	for id := state.First; int(id-state.First) < 3*RowSeats; id++ {
		v.seats[id] = state.State(id)
	}
	for _, c := range state.Areas {
		v.areas[c.Area] = c.Free
	}
	return v
}

// apply fails the test if a batch was missed on the way.
func (v *watcher) apply(t *testing.T, batch booking.Batch) {
	t.Helper()
	if batch.Epoch != v.top.Epoch || batch.From > v.top.Seq {
		t.Fatalf("a batch of %s from %d follows %+v", batch.Epoch, batch.From, v.top)
	}
	if batch.Seq <= v.top.Seq {
		return
	}
	for _, c := range batch.Cells {
		if c.Area != 0 {
			v.areas[c.Area] = c.Free
			continue
		}
		v.seats[c.Seat] = c.State
	}
	v.top.Seq = batch.Seq
}

// catchUp asks for all that came after what the watcher knows.
func (v *watcher) catchUp(t *testing.T, w World, limit func() int) {
	t.Helper()
	for {
		changes, err := w.Service.Changes(context.Background(), Buyer(), w.Event, v.top.Epoch, v.top.Seq, limit())
		if err != nil {
			t.Fatal(err)
		}
		if changes.Reset {
			t.Fatalf("told to begin anew at %+v", v.top)
		}
		v.apply(t, changes.Batch)
		if changes.Seq == changes.Top {
			return
		}
	}
}

// compare fails the test if the watcher sees something else than whoever asks now.
func (v *watcher) compare(t *testing.T, w World) {
	t.Helper()
	house, err := w.Service.Seats(context.Background(), Buyer(), w.Event, nil)
	if err != nil {
		t.Fatal(err)
	}
	states := []seats.State{seats.Free, seats.Held, seats.Booked, seats.Blocked}
	for _, s := range house.Seats {
		if got := states[v.seats[s.ID]]; got != s.State {
			t.Errorf("seat %d (fence %d) is seen as %s, and is %s", s.ID, s.Fence, got, s.State)
		}
	}
	for _, a := range house.Areas {
		if got := v.areas[*a.Area]; got != a.Free {
			t.Errorf("area %d is seen with %d free, and has %d", *a.Area, got, a.Free)
		}
	}
}

// numberAll numbers until nothing waits.
func numberAll(t *testing.T, w World, node uuid.UUID) (batches []booking.Batch) {
	t.Helper()
	for {
		got, err := w.Service.Number(context.Background(), node)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			return batches
		}
		batches = append(batches, got...)
	}
}

func all() int { return 0 }

// stir does something to some seat, whatever is possible, and remembers what it may end later.
type stir struct {
	holds    []booking.Hold
	bookings []booking.BookingID
	blocks   []booking.BlockID
	caller   booking.Caller
}

func (s *stir) do(t *testing.T, w World, random *rand.Rand) {
	ctx := context.Background()
	seat := seats.ID(1 + random.IntN(3*RowSeats))
	places := &booking.AreaPlaces{Area: Floor, Quantity: 1 + random.IntN(3)}
	switch random.IntN(10) {
	case 0, 1:
		if hold, err := w.Hold(ctx, s.caller, seat, seat%(3*RowSeats)+1); err == nil {
			s.holds = append(s.holds, hold)
		}
	case 2:
		if hold, _, err := w.Service.Hold(ctx, s.caller, Key(), booking.HoldRequest{Event: w.Event, Places: places}); err == nil {
			s.holds = append(s.holds, hold)
		}
	case 3:
		if made, err := w.Book(ctx, s.caller, seat); err == nil {
			s.bookings = append(s.bookings, made.ID)
		}
	case 4:
		if hold, ok := pop(&s.holds, random); ok {
			if made, err := w.Confirm(ctx, s.caller, hold.ID); err == nil {
				s.bookings = append(s.bookings, made.ID)
			}
		}
	case 5:
		if hold, ok := pop(&s.holds, random); ok {
			_ = w.Service.Release(ctx, s.caller, hold.ID)
		}
	case 6:
		if hold, ok := pop(&s.holds, random); ok {
			w.Expire(t, hold.ID)
		}
	case 7:
		if id, ok := pop(&s.bookings, random); ok {
			_, _ = w.Service.Cancel(ctx, w.Owner, id)
		}
	case 8:
		if block, _, err := w.Service.Block(ctx, w.Owner, Key(), w.Event, []seats.ID{seat}, "a pillar"); err == nil {
			s.blocks = append(s.blocks, block.ID)
		}
	case 9:
		if id, ok := pop(&s.blocks, random); ok {
			_ = w.Service.Unblock(ctx, w.Owner, id)
		}
	}
}

func pop[T any](list *[]T, random *rand.Rand) (one T, ok bool) {
	if len(*list) == 0 {
		return one, false
	}
	i := random.IntN(len(*list))
	one = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return one, true
}

func sweep(t *testing.T, w World) {
	t.Helper()
	if _, err := w.Service.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestFeedFromItsBeginningGivesTheList(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			_, w := setup(t, func(l *booking.Limits) { l.HeldByBuyer = 100 })
			random, s, node := rand.New(rand.NewPCG(seed, 5)), &stir{caller: Buyer()}, uuid.New()
			told, pulled := blank(t, w), blank(t, w)
			for range 300 {
				s.do(t, w, random)
				switch random.IntN(12) {
				case 0:
					for _, b := range numberAll(t, w, node) {
						told.apply(t, b)
					}
				case 1:
					sweep(t, w)
				case 2:
					pulled.catchUp(t, w, func() int { return 1 + random.IntN(5) })
				}
			}
			sweep(t, w)
			for _, b := range numberAll(t, w, node) {
				told.apply(t, b)
			}
			pulled.catchUp(t, w, func() int { return 1 + random.IntN(5) })
			fresh := blank(t, w)
			fresh.catchUp(t, w, all)
			for _, v := range []*watcher{told, pulled, fresh, watching(mapState(t, w))} {
				v.compare(t, w)
			}
			if fresh.top.Seq < 100 {
				t.Errorf("only %d changes", fresh.top.Seq)
			}
		})
	}
}

// A transaction that commits last is numbered last, whatever its ledger rows say.
func TestFeedMissesNoChangeThatCommitsLate(t *testing.T) {
	ctx, w := setup(t)
	node, v := uuid.New(), blank(t, w)
	tx, err := w.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	block := uuid.Must(uuid.NewV7())
	if _, err := seats.Block(ctx, tx, w.Event, block, w.Owner.ID, []seats.ID{7}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.New().BlockInsert(ctx, tx, db.BlockInsertParams{EventID: int64(w.Event), ID: block, CreatedBy: w.Owner.ID}); err != nil {
		t.Fatal(err)
	}
	w.MustHold(t, Buyer(), 8)
	for _, b := range numberAll(t, w, node) {
		v.apply(t, b)
	}
	if v.top.Seq != 1 || v.seats[7] != booking.FeedFree || v.seats[8] != booking.FeedHeld {
		t.Errorf("before the commit %+v is seen, 7 as %d and 8 as %d", v.top, v.seats[7], v.seats[8])
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, b := range numberAll(t, w, node) {
		v.apply(t, b)
	}
	if v.top.Seq != 2 || v.seats[7] != booking.FeedBlocked {
		t.Errorf("after the commit %+v is seen, 7 as %d", v.top, v.seats[7])
	}
	v.compare(t, w)
}

// A statement that waited for a seat has an older time than what it waited for.
func TestFeedNumbersASeatInTheOrderOfItsFences(t *testing.T) {
	ctx, w := setup(t)
	hold := w.MustHold(t, Buyer(), 3)
	w.MustHold(t, Buyer(), 4)
	w.Expire(t, hold.ID)
	w.MustHold(t, Buyer(), 3)
	if _, err := w.Pool.Exec(ctx, `UPDATE seat_ledger SET at = at - interval '1 minute' WHERE seat_id = 3 AND fence = 2`); err != nil {
		t.Fatal(err)
	}
	numberAll(t, w, uuid.New())
	var order []int64
	if err := w.Pool.QueryRow(ctx, `SELECT array_agg(seq ORDER BY seat_id, fence) FROM seat_ledger`).Scan(&order); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []int64{1, 2, 3}) { // seat 3, seat 3 again, seat 4
		t.Errorf("numbers %v", order)
	}
	sweep(t, w)
}

func TestManyPublishersGiveEachNumberOnce(t *testing.T) {
	ctx, w := setup(t, func(l *booking.Limits) { l.HeldByBuyer = 100 })
	var mu sync.Mutex
	var batches []booking.Batch
	var selling, publishing sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		node := uuid.New()
		publishing.Go(func() {
			for over := false; ; {
				got, err := w.Service.Number(ctx, node)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				batches = append(batches, got...)
				mu.Unlock()
				if _, err := w.Pool.Exec(ctx, `UPDATE feeds SET leased_until = '2000-01-01Z'`); err != nil { // nobody is kept out
					t.Error(err)
					return
				}
				if over {
					return
				}
				select {
				case <-stop:
					over = true
				default:
				}
			}
		})
	}
	for seed := range uint64(4) {
		selling.Go(func() {
			random, s := rand.New(rand.NewPCG(seed, 6)), &stir{caller: Buyer()}
			for range 100 {
				s.do(t, w, random)
			}
		})
	}
	selling.Wait()
	sweep(t, w)
	close(stop)
	publishing.Wait()
	batches = append(batches, numberAll(t, w, uuid.New())...)
	slices.SortFunc(batches, func(a, b booking.Batch) int { return int(a.From - b.From) })
	v := blank(t, w)
	for _, b := range batches {
		if b.From != v.top.Seq {
			t.Fatalf("after %d comes a batch from %d to %d", v.top.Seq, b.From, b.Seq)
		}
		v.apply(t, b)
	}
	tops, err := w.Service.FeedTops(ctx, []seats.EventID{w.Event, 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(tops) != 1 || tops[w.Event] != v.top {
		t.Errorf("the top is %+v, and the batches end at %+v", tops, v.top)
	}
	v.compare(t, w)
}

func TestChangesThatWereNumberedAndNeverToldAreFound(t *testing.T) {
	ctx, w := setup(t)
	v, dead := blank(t, w), uuid.New()
	w.MustHold(t, Buyer(), 1)
	numberAll(t, w, dead) // and the node dies
	v.catchUp(t, w, all)
	v.compare(t, w)

	w.MustHold(t, Buyer(), 2)
	if got := numberAll(t, w, uuid.New()); len(got) > 0 {
		t.Errorf("another node numbers %+v under a lease", got)
	}
	if _, err := w.Pool.Exec(ctx, `UPDATE feeds SET leased_until = statement_timestamp()`); err != nil {
		t.Fatal(err)
	}
	for _, b := range numberAll(t, w, uuid.New()) {
		v.apply(t, b)
	}
	v.compare(t, w)
}

// Plans are made while the ledger is empty and kept: what waits must not be compared with what is numbered, row by row.
func TestFeedCatchesUpWithALargeBacklog(t *testing.T) {
	t.Parallel()
	w := New(t, dbtest.Pool(t), booking.DefaultLimits) // whose ledger is made up, and verified by nobody
	const waiting = 20_000
	numberAll(t, w, uuid.New())
	if _, err := w.Pool.Exec(t.Context(), `INSERT INTO seat_ledger (event_id, seat_id, fence, action, ref, at)
		SELECT $1, n % 60 + 1, n / 60 + 1, 'blocked', $2, now() + (n + n * 7919 % 3000) * interval '1 ms' FROM generate_series(0, $3) n`, int64(w.Event), uuid.New(), waiting-1); err != nil {
		t.Fatal(err)
	}
	batches := numberAll(t, w, uuid.New())
	if last := batches[len(batches)-1]; last.Seq != waiting || len(batches) != waiting/1000 {
		t.Errorf("%d batches end at %d", len(batches), last.Seq)
	}
	broken, err := db.New().VerifyFeeds(t.Context(), w.Pool)
	if broken > 0 || err != nil {
		t.Errorf("%d numbers are wrong, %v", broken, err)
	}
}

// Whatever commits while a state is read is in it or comes after it.
func TestMapStateInAStormOfSales(t *testing.T) {
	ctx, w := setup(t, func(l *booking.Limits) { l.HeldByBuyer = 100 })
	ctx, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	for seed := range uint64(3) {
		busy.Go(func() {
			random, s := rand.New(rand.NewPCG(seed, 7)), &stir{caller: Buyer()}
			for ctx.Err() == nil {
				s.do(t, w, random)
			}
		})
	}
	node := uuid.New()
	busy.Go(func() {
		for ctx.Err() == nil {
			if _, err := w.Service.Number(context.Background(), node); err != nil {
				t.Error(err)
			}
		}
	})
	var watchers []*watcher
	for range 25 {
		watchers = append(watchers, watching(mapState(t, w)))
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	busy.Wait()
	sweep(t, w)
	numberAll(t, w, node)
	for _, v := range watchers {
		v.catchUp(t, w, all)
		v.compare(t, w)
	}
	if watchers[len(watchers)-1].top.Seq < 50 {
		t.Error("hardly anything was sold")
	}
}

func TestFeedOfChannelsIsWhatBuyersSee(t *testing.T) {
	ctx, w := setup(t)
	agency := partner(t, w)
	before := mapState(t, w)
	hour := time.Hour
	channel(t, w, &hour, agency.ID)
	allotted := mapState(t, w)
	if allotted.Epoch == before.Epoch || allotted.State(1) != booking.FeedBlocked || allotted.State(6) != booking.FeedFree {
		t.Errorf("with a channel the epoch is %s, seat 1 is %d", allotted.Epoch, allotted.State(1))
	}
	changes, err := w.Service.Changes(ctx, Buyer(), w.Event, before.Epoch, before.Seq, 0)
	if err != nil || !changes.Reset || changes.Epoch != allotted.Epoch {
		t.Errorf("who knows the epoch before is told %+v, %v", changes, err)
	}

	v := watching(allotted)
	hold := w.MustHold(t, agency, 1)
	v.catchUpNumbered(t, w)
	if v.seats[1] != booking.FeedHeld {
		t.Errorf("a seat of the channel that is held is seen as %d", v.seats[1])
	}
	if err := w.Service.Release(ctx, agency, hold.ID); err != nil {
		t.Fatal(err)
	}
	v.catchUpNumbered(t, w)
	if v.seats[1] != booking.FeedBlocked {
		t.Errorf("a seat of the channel that nobody has is seen as %d", v.seats[1])
	}
	mine, err := w.Service.Changes(ctx, agency, w.Event, "", allotted.Seq, 0)
	if err != nil || len(mine.Cells) != 1 || mine.Cells[0].State != booking.FeedFree {
		t.Errorf("the agency is told %+v, %v", mine, err)
	}

	startIn(t, w, time.Minute) // the channel releases itself, and nothing was written to say so
	if tops, err := w.Service.FeedTops(ctx, []seats.EventID{w.Event}); err != nil || tops[w.Event].Epoch == allotted.Epoch {
		t.Errorf("a release goes unnoticed: %v, %v", tops, err)
	}
	watching(mapState(t, w)).compare(t, w)
}

func (v *watcher) catchUpNumbered(t *testing.T, w World) {
	t.Helper()
	numberAll(t, w, uuid.MustParse("00000000-0000-4000-8000-000000000001"))
	v.catchUp(t, w, all)
	v.compare(t, w)
}

func TestChangesOutOfReachAskForANewState(t *testing.T) {
	ctx, w := setup(t)
	w.MustHold(t, Buyer(), 1, 2, 3)
	numberAll(t, w, uuid.New())
	for name, c := range map[string]struct {
		epoch string
		after int64
	}{"ahead": {"", 4}, "negative": {"", -1}, "another epoch": {"x-1", 0}} {
		if changes, err := w.Service.Changes(ctx, Buyer(), w.Event, c.epoch, c.after, 0); err != nil || !changes.Reset || changes.Seq != 3 {
			t.Errorf("%s: %+v, %v", name, changes, err)
		}
	}
	if _, err := w.Pool.Exec(ctx, `UPDATE seat_ledger SET seq = 0 WHERE seq < 3`); err != nil { // as if older than the feed
		t.Fatal(err)
	}
	for after, reset := range map[int64]bool{0: true, 1: true, 2: false, 3: false} {
		if changes, err := w.Service.Changes(ctx, Buyer(), w.Event, "", after, 0); err != nil || changes.Reset != reset {
			t.Errorf("after %d: %+v, %v", after, changes, err)
		}
	}
}

func TestCellsInJSON(t *testing.T) {
	t.Parallel()
	for text, cell := range map[string]booking.Cell{
		`[14,2,8]`:               {Seat: 14, State: booking.FeedBooked, Fence: 8},
		`[15,1,9,1764579600000]`: {Seat: 15, State: booking.FeedHeld, Fence: 9, HeldUntil: 1764579600000},
		`["a",1,478]`:            {Area: 1, Free: 478},
	} {
		var got booking.Cell
		if b, err := json.Marshal(cell); err != nil || string(b) != text {
			t.Errorf("%+v is written %s, %v", cell, b, err)
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != cell {
			t.Errorf("%s is read %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`[]`, `[1,2]`, `["a",1]`, `["b",1,2]`, `{}`, `[1,2,3,4,5]`, `["a",1,2,3]`, `[1,-1,3]`} {
		if err := json.Unmarshal([]byte(text), new(booking.Cell)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
