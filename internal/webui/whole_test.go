package webui_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/html"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/httpapi"
)

// locked runs a statement in a transaction that keeps its locks until the returned function is called.
func (s site) locked(t *testing.T, statement string, args ...any) (unlock func()) {
	t.Helper()
	tx, err := s.Pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), statement, args...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func (p page) isPage() page {
	p.t.Helper()
	if kind, policy := p.header.Get("Content-Type"), p.header.Get("Content-Security-Policy"); !strings.HasPrefix(kind, "text/html") || !strings.Contains(policy, "style-src 'self'") {
		p.t.Errorf("%s is %s under the policy %q: %s", p.path, kind, policy, p.words)
	}
	return p
}

func TestWhatThePagesNeverSeeIsAnsweredWithAPage(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	b.get("/no/such/page").says(404, "There is nothing here").isPage().follow("All events").says(200)
	b.get("/favicon.ico").says(404).isPage()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+s.eventPath(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b.do(r).says(405, "This is not how the page is used").isPage()
	b.post(s.eventPath()+"/holds", nil, "Sec-Fetch-Site", "cross-site").says(403, "This form came from another site").isPage()
	// The pages go by the cookie, whatever else a browser sends.
	b.post(s.eventPath()+"/holds", nil, "Sec-Fetch-Site", "cross-site", "Authorization", "Basic bGVuYTo=").says(403, "This form came from another site")
	if api := b.get("/v1/nothing"); api.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("the API answers %v", api.header)
	}
}

func TestACrowdIsTurnedAwayWithAPage(t *testing.T) {
	t.Parallel()
	inside, stay := make(chan struct{}), make(chan struct{})
	s := serve(t, New(t, dbtest.Pool(t), booking.DefaultLimits), nil, func(d *httpapi.Deps) {
		d.InFlight = 1
		d.Middleware = []echo.MiddlewareFunc{func(echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				close(inside)
				<-stay
				return c.NoContent(http.StatusNoContent)
			}
		}}
	})
	b := s.visitor(t)
	b.mayFail = true
	var first sync.WaitGroup
	first.Go(func() { b.get("/v1/events") })
	<-inside
	full := b.get("/").says(503, "Too many people are here at once").isPage()
	if full.header.Get("Retry-After") != "1" {
		t.Error("no Retry-After")
	}
	close(stay)
	first.Wait()
	b.get("/").says(200)
}

func TestAPageThatFailsIsLoggedOnceAndTold(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := serve(t, New(t, dbtest.Pool(t), booking.DefaultLimits), nil, func(d *httpapi.Deps) {
		d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	b := s.visitor(t)
	b.mayFail = true
	if _, err := s.Pool.Exec(t.Context(), "ALTER TABLE events RENAME TO gone"); err != nil {
		t.Fatal(err)
	}
	b.get(s.eventPath()).says(500, "Something went wrong on our side").isPage()
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

func TestWritesOfPagesAreCountedLikeThoseOfTheAPI(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	section := b.get(s.stalls())
	hold := section.send("Hold the ticked seats", url.Values{"seat": {seat14C, seat15C}})
	section.send("Hold the ticked seats", url.Values{"seat": {seat14C, seat15C}})
	hold.send("Give back Stalls, row C, seat 15", nil)
	s.visitor(t).pick(seat14C).says(409)
	hold.get(hold.path).send("Book C14", lena).follow("Cancel this booking").send("Cancel the booking", nil).says(200)
	b.pick(seat16C).send("Give all back", nil)

	recorder := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`seatfence_results_total{code="ok",operation="createHold"} 2`,
		`seatfence_results_total{code="replayed",operation="createHold"} 1`,
		`seatfence_results_total{code="seat_taken",operation="createHold"} 1`,
		`seatfence_results_total{code="ok",operation="changeHold"} 1`,
		`seatfence_results_total{code="ok",operation="createBooking"} 1`,
		`seatfence_results_total{code="ok",operation="cancelBooking"} 1`,
		`seatfence_results_total{code="ok",operation="releaseHold"} 1`,
		`seatfence_zero_row_writes_total{code="seat_taken"} 1`,
	} {
		if !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("not counted: %s", want)
		}
	}
}

func TestPlacesBehindALockAreBusyForAMoment(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	event := b.get(s.eventPath())
	unlock := s.locked(t, "SELECT 1 FROM events WHERE id = $1 FOR UPDATE", int64(s.Event))
	busy := event.send("Hold places in Floor", url.Values{"quantity": {"2"}}).says(409, "Someone is buying here right now", "Try again")
	unlock()
	if busy.header.Get("Retry-After") != "1" {
		t.Error("no Retry-After")
	}
	busy.send("Try again", nil).says(200, "2 places in Floor are yours until")
}

func TestACancelBehindALockLeadsBackToTheBooking(t *testing.T) {
	s := open(t, nil)
	made := s.visitor(t).pick(seat14C).send("Book C14", lena)
	ask := made.follow("Cancel this booking")
	unlock := s.locked(t, "SELECT 1 FROM seats WHERE event_id = $1 AND id = $2 FOR UPDATE", int64(s.Event), Seat14C)
	busy := ask.send("Cancel the booking", nil).says(409, "Someone is buying here right now")
	unlock()
	if busy.header.Get("Retry-After") != "1" {
		t.Error("no Retry-After")
	}
	busy.follow("Back to your booking").says(200, "C14 is yours")
}

func TestTwoClicksAtOnceAreOneExtension(t *testing.T) {
	s := open(t, nil)
	hold := s.visitor(t).pick(seat14C)
	var clicks sync.WaitGroup
	for range 8 {
		clicks.Go(func() { hold.send("More time", nil).says(200) })
	}
	clicks.Wait()
	var extensions int
	err := s.Pool.QueryRow(t.Context(), "SELECT extensions FROM holds WHERE id = $1", holdOf(t, hold).Key).Scan(&extensions)
	if err != nil || extensions != 1 {
		t.Errorf("%d extensions, %v", extensions, err)
	}
}

func TestTheListOfEventsCountsNoSeats(t *testing.T) {
	s := open(t, nil)
	unlock := s.locked(t, "LOCK TABLE seats IN ACCESS EXCLUSIVE MODE")
	defer unlock()
	s.visitor(t).get("/").says(200, "An evening")
}

func TestNoPageLinksToAnAddressThatIsNone(t *testing.T) {
	s := open(t, nil)
	for _, path := range []string{"/holds/1/release", "/bookings/1/cancel", "/events/1/holds"} {
		p := s.visitor(t).post(path, nil).says(404)
		for n := range p.doc.Descendants() {
			if n.Type == html.ElementNode && n.Data == "a" && !slices.Contains([]string{"/", "#main"}, attr(n, "href")) {
				t.Errorf("%s links to %s", path, attr(n, "href"))
			}
		}
	}
}
