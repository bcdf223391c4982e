package booking_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
)

func holdPlaces(ctx context.Context, w World, caller booking.Caller, n int) (booking.Hold, error) {
	hold, _, err := w.Service.Hold(ctx, caller, Key(), booking.HoldRequest{Event: w.Event, Places: &booking.AreaPlaces{Area: Floor, Quantity: n}})
	return hold, err
}

func changeChannel(t *testing.T, w World, id int32, change booking.ChannelChange) {
	t.Helper()
	if _, err := w.Service.UpdateChannel(t.Context(), w.Owner, w.Event, id, change); err != nil {
		t.Fatal(err)
	}
}

func startIn(t *testing.T, w World, d time.Duration) {
	t.Helper()
	at := time.Now().Add(d)
	if _, err := w.Service.UpdateEvent(t.Context(), w.Owner, w.Event, booking.EventChange{StartsAt: &at}); err != nil {
		t.Fatal(err)
	}
}

func TestHoldDoesNotGrowIntoAChannel(t *testing.T) {
	ctx, w := setup(t)
	agency := partner(t, w)
	channel(t, w, nil, agency.ID)
	for name, c := range map[string]struct {
		caller    booking.Caller
		has, adds seats.ID
	}{
		"buyer": {Buyer(), 30, 1}, "another partner": {partner(t, w), 40, 1}, "agency": {agency, 5, 41},
	} {
		hold := w.MustHold(t, c.caller, c.has)
		_, err := w.Service.ChangeHold(ctx, c.caller, hold.ID, booking.HoldChange{Add: Wants(c.adds)})
		if lost := refused(t, err, booking.CodeSeatTaken).Seats; len(lost) != 1 || lost[0].Reason != booking.ReasonBlocked {
			t.Errorf("%s is told %+v", name, lost)
		}
	}
}

func TestLostSeatIsNotReplacedFromAnotherChannel(t *testing.T) {
	ctx, w := setup(t)
	agency := partner(t, w)
	channel(t, w, nil, agency.ID)
	mine := func(s seats.Seat) bool { return s.ID <= 5 }
	if _, err := w.Book(ctx, w.Owner, 3, 6); err != nil {
		t.Fatal(err)
	}
	_, err := w.Hold(ctx, Buyer(), 6)
	if near := refused(t, err, booking.CodeSeatTaken).Alternatives; len(near) == 0 || slices.ContainsFunc(near, mine) {
		t.Errorf("a buyer is offered %+v", near)
	}
	_, err = w.Hold(ctx, agency, 3)
	if near := refused(t, err, booking.CodeSeatTaken).Alternatives; len(near) != 4 || slices.ContainsFunc(near, func(s seats.Seat) bool { return !mine(s) }) {
		t.Errorf("the agency is offered %+v", near)
	}
}

// A live hold is a promise: what its caller may sell from now on is another matter.
func TestHoldIsConfirmedWhateverBecomesOfItsChannel(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		released bool // and held by a buyer, instead of by the agency
		change   func(t *testing.T, w World, id int32)
	}{
		"seats dropped": {false, func(t *testing.T, w World, id int32) {
			changeChannel(t, w, id, booking.ChannelChange{Drop: []seats.ID{1, 2}})
		}},
		"key taken away": {false, func(t *testing.T, w World, id int32) {
			changeChannel(t, w, id, booking.ChannelChange{Keys: &[]uuid.UUID{}})
		}},
		"channel deleted": {false, func(t *testing.T, w World, id int32) {
			if err := w.Service.DeleteChannel(t.Context(), w.Owner, w.Event, id); err != nil {
				t.Fatal(err)
			}
		}},
		"release taken away": {true, func(t *testing.T, w World, id int32) {
			never := time.Duration(0)
			changeChannel(t, w, id, booking.ChannelChange{ReleaseBefore: &never})
		}},
		"event put off": {true, func(t *testing.T, w World, _ int32) { startIn(t, w, 30*day) }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := setup(t)
			agency, release := partner(t, w), day
			made := channel(t, w, &release, agency.ID)
			if _, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{
				Name: "second", Keys: []uuid.UUID{agency.ID}, Seats: []seats.ID{50},
			}); err != nil {
				t.Fatal(err)
			}
			caller := agency
			if c.released {
				caller = Buyer()
				startIn(t, w, day-time.Minute)
			}
			hold := w.MustHold(t, caller, 1, 2)
			c.change(t, w, made.ID)
			longer, err := w.Service.ChangeHold(ctx, caller, hold.ID, booking.HoldChange{Extend: true})
			if err != nil || !longer.ExpiresAt.After(hold.ExpiresAt) {
				t.Errorf("extended to %s: %v", longer.ExpiresAt, err)
			}
			if sold, err := w.Confirm(ctx, caller, hold.ID); err != nil || len(sold.Seats) != 2 {
				t.Errorf("confirmed %+v, %v", sold.Seats, err)
			}
		})
	}
}

func TestReleasedChannelIsEverybodysUntilTheEventIsPutOff(t *testing.T) {
	ctx, w := setup(t)
	agency, day := partner(t, w), 24*time.Hour
	made := channel(t, w, &day, agency.ID)
	takes := func(caller booking.Caller, want bool) {
		t.Helper()
		if got := mayTake(t, w, caller, 2); got != want {
			t.Errorf("takes a seat of the channel: %v, want %v", got, want)
		}
		hold, err := holdPlaces(ctx, w, caller, FloorSize)
		if err == nil {
			err = w.Service.Release(ctx, caller, hold.ID)
		} else if !want && errors.Is(err, booking.ErrSoldOut) {
			err = nil
		}
		if err != nil || (len(hold.Seats) > 0) != want {
			t.Errorf("takes the whole floor: %d places, %v, want %v", len(hold.Seats), err, want)
		}
	}
	w.Service = booking.New(w.Pool, booking.Limits{
		Seats: FloorSize, HeldByBuyer: FloorSize, HeldByKey: FloorSize, HoldTTL: time.Minute, HoldLongest: time.Hour, KeyRetention: time.Hour,
	})
	for _, released := range []bool{false, true, false} {
		startIn(t, w, map[bool]time.Duration{false: day + time.Hour, true: day - time.Minute}[released])
		takes(Buyer(), released)
		takes(partner(t, w), released)
		if !mayTake(t, w, agency, 2) || mayTake(t, w, agency, 30) {
			t.Errorf("released %v: the agency does not sell its own seats alone", released)
		}
		now, _, err := w.Service.Channel(ctx, w.Owner, w.Event, made.ID)
		if err != nil || now.Released != released {
			t.Errorf("%+v, %v, want released %v", now, err, released)
		}
	}
}

// A node learns of channels from the event's layout alone: here another one makes every change.
func TestBestSeatsOfANodeFollowTheChannelsThatAnotherChanges(t *testing.T) {
	ctx, w := setup(t)
	node := w
	node.Service = booking.New(w.Pool, booking.DefaultLimits)
	agency := partner(t, w)
	take := func(caller booking.Caller, n int) []seats.ID {
		t.Helper()
		hold, err := best(ctx, node, caller, booking.BestWish{Quantity: n})
		if err == nil {
			err = node.Service.Release(ctx, caller, hold.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		return idsOf(hold)
	}
	chosen := take(Buyer(), 4) // the node has drawn the hall
	made, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: "agency", Keys: []uuid.UUID{agency.ID}, Seats: chosen})
	if err != nil {
		t.Fatal(err)
	}
	among := func(id seats.ID) bool { return slices.Contains(chosen, id) }
	if got := take(Buyer(), 4); slices.ContainsFunc(got, among) {
		t.Errorf("a buyer got %v, of which %v are the agency's", got, chosen)
	}
	if got := take(agency, 4); !slices.Equal(got, chosen) {
		t.Errorf("the agency got %v, want its own %v", got, chosen)
	}
	changeChannel(t, w, made.ID, booking.ChannelChange{Drop: chosen[:2], Add: []seats.ID{59}})
	if got := take(agency, 1); len(got) != 1 || got[0] != 59 && !slices.Contains(chosen[2:], got[0]) {
		t.Errorf("the agency got %v", got)
	}
	if got := take(Buyer(), 2); slices.ContainsFunc(got, func(id seats.ID) bool { return slices.Contains(chosen[2:], id) }) {
		t.Errorf("a buyer got %v, of which the agency has %v", got, chosen[2:])
	}
	if err := w.Service.DeleteChannel(ctx, w.Owner, w.Event, made.ID); err != nil {
		t.Fatal(err)
	}
	if got := take(Buyer(), 4); !slices.Equal(got, chosen) {
		t.Errorf("a buyer got %v after the channel was deleted, want %v", got, chosen)
	}
}

func TestDeletedChannelGivesBackWhatIsFreeAndNothingElse(t *testing.T) {
	ctx, w := setup(t)
	agency := partner(t, w)
	made := channel(t, w, nil, agency.ID)
	sold, err := w.Book(ctx, agency, 1)
	if err != nil {
		t.Fatal(err)
	}
	kept := w.MustHold(t, agency, 2)
	if now, _, err := w.Service.Channel(ctx, w.Owner, w.Event, made.ID); err != nil || now.Total != 7 || now.Booked != 1 || now.Held != 1 || now.Free != 5 {
		t.Errorf("%+v, %v", now, err)
	}
	if err := w.Service.DeleteChannel(ctx, w.Owner, w.Event, made.ID); err != nil {
		t.Fatal(err)
	}
	for id, reason := range map[seats.ID]string{1: booking.ReasonBooked, 2: booking.ReasonHeld} {
		_, err := w.Hold(ctx, Buyer(), id)
		if lost := refused(t, err, booking.CodeSeatTaken).Seats[0]; lost.Reason != reason {
			t.Errorf("seat %d is %s, want %s", id, lost.Reason, reason)
		}
	}
	w.MustHold(t, Buyer(), 3, 4, 5)
	if read, err := w.Service.GetBooking(ctx, agency, sold.ID); err != nil || read.Status != booking.BookingConfirmed {
		t.Errorf("%+v, %v", read, err)
	}
	if err := w.Service.Release(ctx, agency, kept.ID); err != nil {
		t.Fatal(err)
	}
	w.MustHold(t, Buyer(), 2)
}

func TestAllottingIsNoChangeOfOwnership(t *testing.T) {
	ctx, w := setup(t)
	ownership := func() (fences, rows int64) {
		t.Helper()
		if err := w.Pool.QueryRow(ctx, `SELECT (SELECT sum(fence) FROM seats WHERE event_id = $1), (SELECT count(*) FROM seat_ledger WHERE event_id = $1)`,
			int64(w.Event)).Scan(&fences, &rows); err != nil {
			t.Fatal(err)
		}
		return fences, rows
	}
	lena := Buyer()
	gone := w.MustHold(t, lena, 10)
	w.Expire(t, gone.ID)
	fences, rows := ownership()
	made := channel(t, w, nil)
	changeChannel(t, w, made.ID, booking.ChannelChange{Add: []seats.ID{10, 11}, Drop: []seats.ID{1}}) // 10: its hold has run out
	if f, r := ownership(); f != fences || r != rows {
		t.Errorf("fences %d and %d rows in the ledger, before %d and %d", f, r, fences, rows)
	}
	_, err := w.Confirm(ctx, lena, gone.ID)
	wantErr(t, err, booking.ErrHoldExpired)
	_, err = w.Hold(ctx, lena, 10)
	refused(t, err, booking.CodeSeatTaken)
	if err := w.Service.DeleteChannel(ctx, w.Owner, w.Event, made.ID); err != nil {
		t.Fatal(err)
	}
	if f, r := ownership(); f != fences || r != rows {
		t.Errorf("after the channel was deleted: fences %d and %d rows, before %d and %d", f, r, fences, rows)
	}
}

// TestAllotmentsAndHoldsNeverDeadlock: 200 of each on the same twelve seats, several at a time and in any order. A seat is a buyer's or a
// channel's, and nobody waits for anybody in a circle.
func TestAllotmentsAndHoldsNeverDeadlock(t *testing.T) {
	const workers, rounds, house = 4, 50, 12
	ctx, w := setup(t)
	var all sync.WaitGroup
	var won, allotted [workers]int
	for n := range workers {
		made, _, err := w.Service.CreateChannel(ctx, w.Owner, Key(), w.Event, booking.NewChannel{Name: fmt.Sprint(n)})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for range rounds {
				ids := pickSeats(house, 3)
				_, err := w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Add: ids})
				if err == nil {
					allotted[n]++
					slices.Reverse(ids)
					_, err = w.Service.UpdateChannel(ctx, w.Owner, w.Event, made.ID, booking.ChannelChange{Drop: ids})
				}
				if !expected(err) {
					t.Errorf("allot: %v", err)
				}
			}
		})
		all.Go(func() {
			for range rounds {
				took, err := holdOutsideChannels(ctx, w, pickSeats(house, 3))
				if took {
					won[n]++
				}
				if !expected(err) {
					t.Errorf("hold: %v", err)
				}
			}
		})
	}
	all.Wait()
	if n := deadlocks(t, w); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
	t.Logf("holds won %v, allotments %v, of %d each", won, allotted, rounds)
	if won == [workers]int{} || allotted == [workers]int{} {
		t.Error("one side never won: they did not meet")
	}
}

// holdOutsideChannels holds seats for a buyer, looks whether one of them is in a channel meanwhile, and gives them back.
func holdOutsideChannels(ctx context.Context, w World, ids []seats.ID) (took bool, err error) {
	lena := Buyer()
	hold, err := w.Hold(ctx, lena, ids...)
	if err != nil {
		return false, err
	}
	var both int
	if err := w.Pool.QueryRow(ctx, "SELECT count(*) FROM seats WHERE event_id = $1 AND hold_id = $2 AND channel_id IS NOT NULL",
		int64(w.Event), hold.ID.Key).Scan(&both); err != nil {
		return true, err
	}
	if both > 0 {
		return true, fmt.Errorf("%d seats are a buyer's and a channel's", both)
	}
	return true, w.Service.Release(ctx, lena, hold.ID)
}
