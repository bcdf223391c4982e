package booking_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// A large hall in the middle of its on-sale, states at random, is the worst that a client has to load.
func TestMapStateOfALargeHallIsSmall(t *testing.T) {
	ctx, w := setup(t)
	spec := Spec()
	spec.House.Sections[0].Rows = nil
	for i := range 500 {
		spec.House.Sections[0].Rows = append(spec.House.Sections[0].Rows, plan.HouseRow{Label: rowLabel(i), Category: "Stalls", Seats: 100})
	}
	w.Event = w.NewEvent(t, spec)
	if _, err := w.Pool.Exec(ctx, `
		WITH h AS (
			INSERT INTO holds (event_id, id, buyer, acquired_at, expires_at, ends_at)
			SELECT $1, gen_random_uuid(), gen_random_uuid(), now(), now() + interval '5 min' + n * interval '600 ms', now() + interval '30 min' FROM generate_series(1, 1000) n
			RETURNING id, expires_at
		), n AS (SELECT id, expires_at, row_number() OVER () AS n FROM h)
		, taken AS (
			UPDATE seats s SET hold_id = n.id, held_until = n.expires_at, fence = 1
			FROM (SELECT id, row_number() OVER (ORDER BY id / 3 * 7919 % 49999, id) AS at FROM seats WHERE event_id = $1 AND area_id IS NULL) p, n
			WHERE s.event_id = $1 AND s.id = p.id AND p.at <= 3000 AND n.n = (p.at + 2) / 3
			RETURNING s.id, s.hold_id
		), logged AS (
			INSERT INTO seat_ledger (event_id, seat_id, fence, action, ref, at) SELECT $1, id, 1, 'held', hold_id, now() FROM taken
		)
		INSERT INTO hold_seats (event_id, hold_id, seat_id, fence, type, price) SELECT $1, hold_id, id, 1, 'standard', 0 FROM taken`, int64(w.Event)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		booked func(id int) bool
		most   int
	}{
		{"hardly sold", func(int) bool { return false }, 20_000},
		{"half sold, in groups of four", func(id int) bool { return id/4*7919%101 < 50 }, 20_000},
	} {
		block := uuid.New() // a block looks as a booking does, and needs no tickets
		var ids []seats.ID
		for id := 1; id <= 50_000; id++ {
			if c.booked(id) {
				ids = append(ids, seats.ID(id))
			}
		}
		if _, err := w.Pool.Exec(ctx, `
			WITH b AS (UPDATE seats SET block_id = $2, fence = 1 WHERE event_id = $1 AND id = ANY($3) AND hold_id IS NULL AND block_id IS NULL RETURNING id)
			INSERT INTO seat_ledger (event_id, seat_id, fence, action, ref, at) SELECT $1, id, 1, 'blocked', $2, now() FROM b`,
			int64(w.Event), block, ids); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		state := mapState(t, w)
		t.Logf("%s: %d bytes, %d gzipped, %d groups of held seats, read in %v", c.name, len(state.JSON), len(state.Zipped), len(state.Held), time.Since(began))
		if len(state.Zipped) > c.most {
			t.Errorf("%s: %d bytes", c.name, len(state.Zipped))
		}
		held := 0
		for _, h := range state.Held {
			for _, id := range h.Seats {
				if held++; state.State(id) != booking.FeedHeld {
					t.Fatalf("seat %d is listed as held and is %d", id, state.State(id))
				}
			}
		}
		if held != 3000 || len(state.States) != 12_500 {
			t.Errorf("%d seats are held, and there are %d bytes of states", held, len(state.States))
		}
	}
}

func rowLabel(i int) string { return string([]rune{'A' + rune(i/26), 'A' + rune(i%26)}) }

func TestMapStateInJSON(t *testing.T) {
	_, w := setup(t)
	hold := w.MustHold(t, Buyer(), 2, 7)
	if _, err := w.Book(context.Background(), Buyer(), 5); err != nil {
		t.Fatal(err)
	}
	numberAll(t, w, uuid.New())
	state := mapState(t, w)
	unzip, err := gzip.NewReader(bytes.NewReader(state.Zipped))
	if err != nil {
		t.Fatal(err)
	}
	if unzipped, err := io.ReadAll(unzip); err != nil || !bytes.Equal(unzipped, state.JSON) {
		t.Errorf("zipped is %s, %v", unzipped, err)
	}
	var got struct {
		Epoch      string
		Seq        int64
		First      seats.ID
		States     []byte
		Held       [][]int64
		Areas      [][]int64
		ServerTime time.Time `json:"server_time"`
	}
	if err := json.Unmarshal(state.JSON, &got); err != nil {
		t.Fatal(err)
	}
	if got.Epoch != state.Epoch || got.Seq != 3 || got.First != 1 || len(got.States) != 15 || !got.ServerTime.Equal(state.ServerTime) {
		t.Errorf("%s", state.JSON)
	}
	if len(got.Held) != 1 || len(got.Held[0]) != 3 || got.Held[0][0] != hold.ExpiresAt.Unix()*1000 || got.Held[0][1] != 2 || got.Held[0][2] != 7 {
		t.Errorf("held %v", got.Held)
	}
	if len(got.Areas) != 1 || got.Areas[0][0] != int64(Floor) || got.Areas[0][1] != FloorSize {
		t.Errorf("areas %v", got.Areas)
	}
	if got.States[0] != 0b00_00_01_00 || got.States[1] != 0b00_01_00_10 || state.State(0) != booking.FeedBlocked || state.State(61) != booking.FeedBlocked {
		t.Errorf("states %08b", got.States)
	}
}

// A crowd that asks shares readings, and still nobody misses what they have done themselves.
func TestMapStateIsNeverOlderThanItsQuestion(t *testing.T) {
	ctx, w := setup(t, func(l *booking.Limits) { l.HeldByBuyer = 100 })
	node := uuid.New()
	var crowd sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		crowd.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.Service.MapState(ctx, Buyer(), w.Event); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 60 {
		id := seats.ID(1 + rand.IntN(3*RowSeats))
		_, err := w.Book(ctx, Buyer(), id)
		if err == nil && rand.IntN(2) == 0 {
			numberAll(t, w, node)
		}
		if err == nil && mapState(t, w).State(id) != booking.FeedBooked {
			t.Errorf("seat %d is booked, and is shown otherwise afterwards", id)
		}
	}
	close(stop)
	crowd.Wait()
	numberAll(t, w, node)
	if one, two := mapState(t, w), mapState(t, w); one != two {
		t.Error("nothing changes, and the state is read twice")
	}
}

func TestMapStateOfDraftsIsTheirOrganizers(t *testing.T) {
	ctx, w := setup(t)
	spec := Spec()
	spec.Status = booking.StatusDraft
	event := w.NewEvent(t, spec)
	stranger := booking.Caller{Kind: booking.Organizer, ID: uuid.New(), Organizer: Organizer(t, w.Pool)}
	for name, c := range map[string]struct {
		caller booking.Caller
		want   error
	}{"buyer": {Buyer(), booking.ErrNotFound}, "owner": {w.Owner, nil}, "another organizer": {stranger, booking.ErrNotFound}} {
		if _, err := w.Service.MapState(ctx, c.caller, event); err != c.want {
			t.Errorf("%s gets the state: %v", name, err)
		}
		if _, err := w.Service.Changes(ctx, c.caller, event, "", 0, 0); err != c.want {
			t.Errorf("%s gets the changes: %v", name, err)
		}
	}
}
