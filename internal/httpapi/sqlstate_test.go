package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/internal/httpapi"
	"seatfence/internal/staff"
)

// locked runs a statement in a transaction that stays open until free is called, or the test ends.
func (a *api) locked(statement string, args ...any) (free func()) {
	a.t.Helper()
	tx, err := a.pool.Begin(context.Background())
	if err != nil {
		a.t.Fatal(err)
	}
	free = func() { _ = tx.Rollback(context.Background()) }
	a.t.Cleanup(free)
	if _, err := tx.Exec(context.Background(), "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		a.t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), statement, args...); err != nil {
		a.t.Fatal(err)
	}
	return free
}

// TestRowThatStaysLockedIsBusy: 55P03 is an answer of its own on every path that waits for a row, and never a 5xx.
func TestRowThatStaysLockedIsBusy(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"seats": "SELECT FROM seats FOR UPDATE", "holds": "SELECT FROM holds FOR UPDATE", "event": "SELECT FROM events FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			targets := a.targets(a.requests())
			a.locked(lock)
			waited := 0
			for _, x := range targets {
				if x.name == "updateEvent" && name == "event" {
					continue // waits longer than others, on purpose
				}
				got := a.do(x.method, x.path(), x.body, append(x.edits(), key(fmt.Sprint("busy-", a.keys.Add(1))))...)
				if got.status == x.status {
					continue // does not need the row
				}
				waited++
				if got.status != 409 || !strings.HasSuffix(got.text("code"), "busy") || got.header.Get("Retry-After") != "1" {
					t.Errorf("%s: %d %v: %s", x.name, got.status, got.header, got.raw)
				}
			}
			if waited < 4 {
				t.Errorf("only %d operations waited", waited)
			}
		})
	}
}

// TestStatesOfPostgresHaveAnswers has Postgres fail a sale with each SQLSTATE that a sale can meet without a fault of ours.
func TestStatesOfPostgresHaveAnswers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if _, err := a.pool.Exec(t.Context(), `
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.payment_reference = 'slow' THEN PERFORM pg_sleep(60); END IF;
			RAISE EXCEPTION 'failed by %', NEW.buyer_email USING ERRCODE = NEW.payment_reference;
		END $$;
		CREATE TRIGGER fail BEFORE INSERT ON bookings FOR EACH ROW EXECUTE FUNCTION fail()`); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[string]string{
		"55P03": "409 seat_busy",
		"40001": "503 unavailable", // after it was tried again
		"40P01": "503 unavailable",
		"slow":  "503 unavailable", // 57014, by the time limit of a statement
		"57014": "503 unavailable",
		"25P03": "503 unavailable",
		"57P01": "503 unavailable",
		"57P02": "503 unavailable",
		"57P03": "503 unavailable",
		"08006": "503 unavailable",
		"53300": "503 unavailable",
		"53100": "503 unavailable",
		"22001": "422 invalid",
		"23514": "422 invalid",
		"54000": "422 invalid",
		"XX000": "500 internal",
	} {
		for _, what := range []string{`"seats":[1]`, `"seats":[1,2]`, `"ga":{"area":1,"quantity":1}`} {
			if state == "slow" && what != `"seats":[1]` {
				continue
			}
			a.unwritten(state, func() {
				body := strings.TrimSuffix(direct(a.event, what), "}") + `,"payment_reference":"` + state + `"}`
				s := &suite{api: a, tried: map[int]int{}}
				got := a.post("/v1/bookings", body, as(a.partner), key(state))
				if state == "55P03" && strings.Contains(what, "ga") {
					want = "409 busy|409 seat_busy"
				}
				s.problem(bad{name: state + " " + what, method: "POST", answers: want}, got)
				if retry := got.header.Get("Retry-After"); (retry == "1") != (got.status == 409 || got.status == 503) || strings.Contains(string(got.raw), "failed by") {
					t.Errorf("%s: %v: %s", state, got.header, got.raw)
				}
			})
		}
	}
}

// TestSecondGuardAnswersLikeTheFirst: a live ticket without a sold seat, which only a faulty writer can leave, is no 5xx for the next buyer,
// and it is counted.
func TestSecondGuardAnswersLikeTheFirst(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(d *httpapi.Deps) { d.Booking.Guarded = d.Metrics.Guarded })
	sold := a.post("/v1/bookings", a.booking(1, "Lena"), as(a.buyer()), key("sold")).want(201)
	if _, err := a.pool.Exec(t.Context(), `UPDATE seats SET buyer = NULL, booking_id = NULL WHERE id = $1`, 1); err != nil {
		t.Fatal(err)
	}
	a.unwritten("the second guard", func() {
		for _, body := range []string{a.booking(1, "Omar"), direct(a.event, `"seats":[1,2]`)} {
			got := a.post("/v1/bookings", body, as(a.buyer()), key("again")).want(409)
			if leak := leaks.Find(got.raw); leak != nil || strings.Contains(string(got.raw), sold.text("id")) {
				t.Errorf("tells %q: %s", leak, got.raw)
			}
		}
	})
	if !strings.Contains(scrape(t, a), "seatfence_guarded_writes_total 2") {
		t.Errorf("not counted: %s", scrape(t, a))
	}
}

// TestNoConnectionIsUnavailable: 53300 as Postgres gives it, to a role that may have no more connections.
func TestNoConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	targets := a.targets(a.requests())
	if _, err := a.pool.Exec(t.Context(), `CREATE ROLE crowded LOGIN PASSWORD 'crowded' CONNECTION LIMIT 0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.pool.Exec(context.Background(), "DROP ROLE crowded") })
	address, err := url.Parse(a.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("crowded", "crowded")
	crowded, err := db.Open(t.Context(), address.String(), db.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(crowded.Close)
	if err := crowded.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "53300") {
		t.Fatalf("the role can connect: %v", err)
	}
	deps := a.deps
	deps.Booking = booking.New(crowded, booking.DefaultLimits)
	if deps.Staff, err = staff.New(crowded, deps.PublicURL); err != nil {
		t.Fatal(err)
	}
	if a.handler, err = httpapi.New(deps); err != nil {
		t.Fatal(err)
	}
	a.url = a.serve(func(*http.Server) {}).URL
	refused := 0
	for _, x := range targets {
		got := a.do(x.method, x.path(), x.body, append(x.edits(), key("crowded"))...)
		if got.status == x.status {
			continue // needs no database
		}
		refused++
		(&suite{api: a, tried: map[int]int{}}).problem(bad{name: x.name, method: x.method, answers: "503 unavailable"}, got)
		if got.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %v", x.name, got.header)
		}
	}
	if refused != len(targets)-5 {
		t.Errorf("%d of %d operations needed the database", refused, len(targets))
	}
}
