package booking_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/seats"
)

const grace = time.Minute

func newPage() booking.Page {
	raw := make([]byte, 16)
	rand.Read(raw)
	return booking.Page{Session: base64.RawURLEncoding.EncodeToString(raw), Gen: 1, Node: uuid.New()}
}

// holdFrom holds seats for a new buyer whose page it returns.
func holdFrom(t *testing.T, w World, page booking.Page, ids ...seats.ID) (booking.Caller, booking.Hold) {
	t.Helper()
	lena := Buyer()
	hold, _, err := w.Service.Hold(t.Context(), lena, Key(), booking.HoldRequest{Event: w.Event, Seats: Wants(ids...), Page: &page})
	if err != nil {
		t.Fatal(err)
	}
	return lena, hold
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func run(t *testing.T, w World, statement string, args ...any) {
	t.Helper()
	if _, err := w.Pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// later is what the tables say when so much time has passed without a word from anybody.
func later(t *testing.T, w World, passed time.Duration) {
	t.Helper()
	run(t, w, "UPDATE hold_pages SET gone_at = gone_at - $1::interval", passed)
	run(t, w, "UPDATE nodes SET seen_at = seen_at - $1::interval, whole_since = whole_since - $1::interval", passed)
}

// beaten makes a node that has beaten for a minute.
func beaten(t *testing.T, w World) uuid.UUID {
	t.Helper()
	node := uuid.New()
	beat(t, w, node)
	run(t, w, "UPDATE nodes SET whole_since = whole_since - interval '1 minute' WHERE id = $1", node)
	return node
}

func beat(t *testing.T, w World, node uuid.UUID) (fresh bool) {
	t.Helper()
	fresh, err := w.Service.Beat(t.Context(), node)
	must(t, err)
	return fresh
}

func released(t *testing.T, w World, want int) {
	t.Helper()
	if n, err := w.Service.ReleaseGhosts(t.Context(), grace); n != want || err != nil {
		t.Fatalf("%d holds were released (%v), want %d", n, err, want)
	}
}

func statusOf(t *testing.T, w World, caller booking.Caller, id booking.HoldID) string {
	t.Helper()
	hold, err := w.Service.GetHold(t.Context(), caller, id)
	must(t, err)
	return hold.Status
}

func pageRows(t *testing.T, w World) (n int) {
	t.Helper()
	must(t, w.Pool.QueryRow(t.Context(), "SELECT count(*) FROM hold_pages").Scan(&n))
	return n
}

func TestHoldOfAPageThatLeftIsReleasedOnceAndNotBeforeItsGrace(t *testing.T) {
	ctx, w := setup(t)
	page := newPage()
	lena, hold := holdFrom(t, w, page, 1, 2)
	released(t, w, 0)
	must(t, w.Service.PagesGone(ctx, []booking.Page{page}))
	later(t, w, grace-2*time.Second)
	released(t, w, 0)
	later(t, w, 3*time.Second)
	var ended [4]int
	var crowd sync.WaitGroup
	for i := range ended {
		crowd.Go(func() { ended[i], _ = w.Service.ReleaseGhosts(ctx, grace) })
	}
	crowd.Wait()
	if n := ended[0] + ended[1] + ended[2] + ended[3]; n != 1 {
		t.Fatalf("the hold was released %d times", n)
	}
	if status := statusOf(t, w, lena, hold.ID); status != booking.HoldReleased {
		t.Errorf("the hold is %s", status)
	}
	if seat := stateOf(t, w, 2); seat.State != seats.Free || seat.Fence != hold.Seats[1].Fence+1 {
		t.Errorf("its seat is %+v", seat)
	}
	history, err := w.Service.History(ctx, w.Owner, w.Event, 2, 0, 10)
	if c := history.Changes; err != nil || len(c) != 2 || c[0].Action != booking.HoldReleased || c[0].Actor != nil {
		t.Errorf("ledger is %+v, %v", history, err)
	}
	if n := pageRows(t, w); n > 0 {
		t.Errorf("%d pages of the released hold are left", n)
	}
	if _, err := w.Hold(ctx, lena, 1, 2); err != nil {
		t.Errorf("its buyer cannot take the seats again: %v", err)
	}
}

func TestPageThatIsBackWithinItsGraceKeepsItsHold(t *testing.T) {
	ctx, w := setup(t)
	page := newPage()
	lena, hold := holdFrom(t, w, page, 1)
	must(t, w.Service.PagesGone(ctx, []booking.Page{page}))
	back := page
	back.Gen, back.Node = 2, uuid.New()
	must(t, w.Service.PagesBack(ctx, []booking.Page{back}))
	must(t, w.Service.PagesGone(ctx, []booking.Page{page})) // the old node says it late
	must(t, w.Service.PagesBack(ctx, []booking.Page{page})) // and this came later still
	later(t, w, 2*grace)
	released(t, w, 0)
	must(t, w.Service.PagesGone(ctx, []booking.Page{{Session: back.Session, Gen: back.Gen, Node: page.Node}})) // a pair that never was
	later(t, w, 2*grace)
	released(t, w, 0)
	must(t, w.Service.PagesGone(ctx, []booking.Page{back}))
	later(t, w, 2*grace)
	released(t, w, 1)
	if status := statusOf(t, w, lena, hold.ID); status != booking.HoldReleased {
		t.Errorf("the hold is %s", status)
	}
}

func TestNewestConnectionOfAPageCountsWhenManyAreToldAtOnce(t *testing.T) {
	ctx, w := setup(t)
	page := newPage()
	lena, hold := holdFrom(t, w, page, 1)
	var times []booking.Page
	for gen := range int64(50) {
		times = append(times, booking.Page{Session: page.Session, Gen: gen + 2, Node: uuid.New()})
	}
	newest := times[len(times)-1]
	mathrand.Shuffle(len(times), func(i, j int) { times[i], times[j] = times[j], times[i] })
	must(t, w.Service.PagesBack(ctx, times))
	for _, p := range times {
		if p != newest {
			must(t, w.Service.PagesGone(ctx, []booking.Page{p}))
		}
	}
	later(t, w, 2*grace)
	released(t, w, 0)
	if status := statusOf(t, w, lena, hold.ID); status != booking.HoldOpen {
		t.Errorf("the hold is %s", status)
	}
}

func TestHoldThatIsShownElsewhereStays(t *testing.T) {
	ctx, w := setup(t)
	first, second := newPage(), newPage()
	lena, hold := holdFrom(t, w, first, 1)
	must(t, w.Service.ShowHold(ctx, lena, hold.ID, second))
	must(t, w.Service.PagesGone(ctx, []booking.Page{first}))
	later(t, w, 2*grace)
	released(t, w, 0)
	must(t, w.Service.PagesGone(ctx, []booking.Page{second}))
	released(t, w, 0)
	later(t, w, 2*grace)
	released(t, w, 1)
	wantErr(t, w.Service.ShowHold(ctx, lena, hold.ID, second), booking.ErrHoldClosed)
}

func TestHoldsThatAreNeverReleasedAsLeft(t *testing.T) {
	ctx, w := setup(t)
	paying, over, stranger := newPage(), newPage(), newPage()
	lena, checkout := holdFrom(t, w, paying, 1)
	_, err := w.Service.Checkout(ctx, lena, checkout.ID)
	must(t, err)
	pageless := w.MustHold(t, lena, 2)
	omar, late := holdFrom(t, w, over, 3)
	w.Expire(t, late.ID)
	wantErr(t, w.Service.ShowHold(ctx, Buyer(), pageless.ID, stranger), booking.ErrNotFound)
	wantErr(t, w.Service.ShowHold(ctx, omar, late.ID, stranger), booking.ErrHoldExpired)
	must(t, w.Service.PagesGone(ctx, []booking.Page{paying, over, stranger}))
	later(t, w, 2*grace)
	released(t, w, 0)
	if status := statusOf(t, w, lena, checkout.ID); status != booking.HoldOpen {
		t.Errorf("a hold that is being paid for is %s", status)
	}
	if _, err := w.Confirm(ctx, lena, checkout.ID); err != nil {
		t.Errorf("it cannot be booked: %v", err)
	}
	if n, err := w.Service.Sweep(ctx); n != 1 || err != nil {
		t.Fatalf("sweep ended %d holds, %v", n, err)
	}
	if n := pageRows(t, w); n > 0 {
		t.Errorf("%d pages of ended holds are left", n)
	}
}

func TestDeathOfANodeStartsTheGraceOfItsPages(t *testing.T) {
	ctx, w := setup(t)
	me, other := beaten(t, w), beaten(t, w)
	page := newPage()
	page.Node = other
	lena, hold := holdFrom(t, w, page, 1)
	later(t, w, 9*time.Second)
	run(t, w, "UPDATE nodes SET seen_at = statement_timestamp() WHERE id = $1", me)
	if dead, err := w.Service.DeadNodes(ctx, me); len(dead) > 0 || err != nil {
		t.Fatalf("after 9 s %v are dead, %v", dead, err)
	}
	later(t, w, 2*time.Second)
	if beat(t, w, me) {
		t.Fatal("a node that beats was forgotten")
	}
	if dead, err := w.Service.DeadNodes(ctx, me); len(dead) != 1 || dead[0] != other || err != nil {
		t.Fatalf("dead are %v, %v", dead, err)
	}
	released(t, w, 0)
	if !beat(t, w, other) {
		t.Error("a node that was taken for dead is not told so")
	}
	must(t, w.Service.PagesBack(ctx, []booking.Page{page}))
	later(t, w, 2*grace)
	released(t, w, 0)
	beat(t, w, me)
	must(t, w.Service.Leave(ctx, other))
	later(t, w, grace-time.Second)
	released(t, w, 0)
	later(t, w, 2*time.Second)
	released(t, w, 1)
	if status := statusOf(t, w, lena, hold.ID); status != booking.HoldReleased {
		t.Errorf("the hold is %s", status)
	}
}

func TestNobodyDiesWhileTheDatabaseIsAway(t *testing.T) {
	ctx, w := setup(t)
	me, other := beaten(t, w), beaten(t, w)
	page := newPage()
	page.Node = other
	holdFrom(t, w, page, 1)
	later(t, w, 15*time.Second)
	for range 4 { // 8 s
		beat(t, w, me)
		if dead, err := w.Service.DeadNodes(ctx, me); len(dead) > 0 || err != nil {
			t.Fatalf("dead are %v, %v", dead, err)
		}
		later(t, w, booking.BeatEvery)
	}
	beat(t, w, other)
	for range 8 {
		beat(t, w, me)
		beat(t, w, other)
		if dead, err := w.Service.DeadNodes(ctx, me); len(dead) > 0 || err != nil {
			t.Fatalf("dead are %v, %v", dead, err)
		}
		later(t, w, booking.BeatEvery)
	}
	later(t, w, 2*grace)
	released(t, w, 0)
}

func TestLossOfMostPagesReleasesNothingUntilTheyAreBack(t *testing.T) {
	ctx, w := setup(t)
	var pages []booking.Page
	for i := range 40 {
		page := newPage()
		holdFrom(t, w, page, seats.ID(i+1))
		pages = append(pages, page)
	}
	must(t, w.Service.PagesGone(ctx, pages[:21]))
	later(t, w, 2*grace)
	if n, err := w.Service.ReleaseGhosts(ctx, grace); n > 0 || !isA[*booking.MassLossError](err) {
		t.Fatalf("%d holds were released, %v", n, err)
	}
	pages[0].Gen++
	must(t, w.Service.PagesBack(ctx, pages[:1]))
	released(t, w, 20)
	must(t, w.Service.PagesGone(ctx, pages[21:]))
	later(t, w, 2*grace)
	released(t, w, 19) // fewer than 20, however many of all
}

// A confirmation and an extension meet the release of their hold: either wins, wholly.
func TestReleaseOfALeftHoldRacesWithItsBuyer(t *testing.T) {
	const rounds = 200
	ctx, w := setup(t)
	var kept, lost int
	for i := range rounds {
		page := newPage()
		lena, hold := holdFrom(t, w, page, 1, 2, 3)
		must(t, w.Service.PagesGone(ctx, []booking.Page{page}))
		later(t, w, 2*grace)
		var crowd sync.WaitGroup
		var made booking.Booking
		var err error
		var n int
		crowd.Go(func() {
			if i%2 == 0 {
				made, err = w.Confirm(ctx, lena, hold.ID)
				return
			}
			_, err = w.Service.ChangeHold(ctx, lena, hold.ID, booking.HoldChange{Extend: true})
			err = errors.Join(err, w.Service.PagesBack(ctx, []booking.Page{{Session: page.Session, Gen: 2, Node: page.Node}}))
		})
		crowd.Go(func() {
			var released error
			if n, released = w.Service.ReleaseGhosts(ctx, grace); released != nil {
				t.Errorf("release: %v", released)
			}
		})
		crowd.Wait()
		switch {
		case n == 1 && i%2 == 0 && !errors.Is(err, booking.ErrHoldClosed), n == 0 && err != nil && !errors.Is(err, booking.ErrBusy):
			t.Fatalf("round %d: %d released, and its buyer was told %v", i, n, err)
		case n == 1:
			lost++
			if seat := stateOf(t, w, 2); seat.State != seats.Free {
				t.Fatalf("round %d: a released seat is %s", i, seat.State)
			}
		case made.ID.Event != 0:
			kept++
			if _, err := w.Service.Cancel(ctx, lena, made.ID); err != nil {
				t.Fatal(err)
			}
		default:
			kept++
			must(t, w.Service.Release(ctx, lena, hold.ID))
		}
	}
	t.Logf("%d kept, %d released", kept, lost)
	if n := deadlocks(t, w); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
	if n := pageRows(t, w); n > 0 {
		t.Errorf("%d pages of ended holds are left", n)
	}
}

// A page that says that it shows a hold, at the moment at which the hold ends, leaves nothing behind; 20 of one hold are enough.
func TestPagesEndWithTheirHold(t *testing.T) {
	ctx, w := setup(t)
	lena := Buyer()
	for range 50 {
		hold := w.MustHold(t, lena, 1)
		var crowd sync.WaitGroup
		crowd.Go(func() {
			err := w.Service.ShowHold(ctx, lena, hold.ID, newPage())
			if err != nil && !errors.Is(err, booking.ErrHoldClosed) && !errors.Is(err, booking.ErrBusy) {
				t.Errorf("show: %v", err)
			}
		})
		crowd.Go(func() {
			if err := w.Service.Release(ctx, lena, hold.ID); err != nil {
				t.Errorf("release: %v", err)
			}
		})
		crowd.Wait()
	}
	if n := pageRows(t, w); n > 0 {
		t.Errorf("%d pages of ended holds are left", n)
	}
	hold := w.MustHold(t, lena, 1)
	for range 30 {
		must(t, w.Service.ShowHold(ctx, lena, hold.ID, newPage()))
	}
	if n := pageRows(t, w); n != 20 {
		t.Errorf("one hold is shown on %d pages", n)
	}
}

// Nodes that lose each other's pages write the same rows in opposite orders.
func TestCrowdsOfPagesThatComeAndGoNeverDeadlock(t *testing.T) {
	ctx, w := setup(t)
	var pages, back []booking.Page
	for i := range 40 {
		page := newPage()
		holdFrom(t, w, page, seats.ID(i+1))
		pages = append(pages, page)
		back = append([]booking.Page{page}, back...)
	}
	var crowd sync.WaitGroup
	for _, say := range []func(context.Context) error{
		func(ctx context.Context) error { return w.Service.PagesGone(ctx, pages) },
		func(ctx context.Context) error { return w.Service.PagesBack(ctx, back) },
		func(ctx context.Context) error { return w.Service.Leave(ctx, pages[0].Node) },
	} {
		crowd.Go(func() {
			for range 50 {
				if err := say(ctx); err != nil && !errors.Is(err, booking.ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	crowd.Wait()
	if n := deadlocks(t, w); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func TestFormOfAPageIsExact(t *testing.T) {
	t.Parallel()
	page := newPage()
	if got, err := booking.ParsePage(page.String()); got != page || err != nil {
		t.Errorf("%s reads as %v, %v", page, got, err)
	}
	node := page.Node.String()
	for _, text := range []string{
		"", "..", page.Session, page.Session + ".0." + node, page.Session + ".-1." + node, page.Session + ".01." + node,
		page.Session + ".9223372036854775808." + node, page.Session + ".1." + strings.ToUpper(node[:35]) + "A", page.Session[1:] + ".1." + node,
		page.Session + "=.1." + node, page.String() + ".", page.Session + ".1.{" + node + "}", page.Session[:21] + "B.1." + node,
	} {
		if got, err := booking.ParsePage(text); !isA[*booking.InvalidError](err) {
			t.Errorf("%q reads as %v, %v", text, got, err)
		}
	}
}
