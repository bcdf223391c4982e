package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/db/dbtest"
	"seatfence/internal/access"
	"seatfence/internal/app"
	"seatfence/internal/config"
	"seatfence/internal/mailsink"
	"seatfence/seats"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const (
	patience = 10 * time.Second
	nobody   = "127.0.0.1:1" // refuses connections
)

// settings are those of a server on a database, with no Redis and no mail server behind its addresses.
func settings(t *testing.T, database string, changes ...string) config.Config {
	t.Helper()
	environ := map[string]string{
		"DATABASE_URL": database, "REDIS_URL": "redis://" + nobody, "SMTP_URL": "smtp://" + nobody, "SIGNING_KEY": strings.Repeat("5f", 32),
		"LISTEN": "127.0.0.1:0", "METRICS_LISTEN": "127.0.0.1:0", "ALLOW_UNSAFE_FSYNC": "true",
	}
	for i := 0; i < len(changes); i += 2 {
		environ[changes[i]] = changes[i+1]
	}
	cfg, err := config.Load(environ)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// site is a running server with an event on sale and a key that may sell it.
type site struct {
	*app.App
	World
	url, key string
}

func start(t *testing.T, changes ...string) site {
	t.Helper()
	t.Parallel()
	database := dbtest.URL(t)
	pool, err := db.Open(t.Context(), database, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	a, err := app.New(t.Context(), settings(t, database, changes...), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	s := site{App: a, World: World{Pool: pool, Service: a.Booking}}
	if s.key, s.Owner, err = a.Keys.Create(t.Context(), "Glass Harbour", "till", access.ScopeOrganizer); err != nil {
		t.Fatal(err)
	}
	s.Event = s.NewEvent(t, Spec())
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + a.Addr()
	return s
}

// stop stops twice, as a program that gets two signals does.
func stop(t *testing.T, a *app.App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	for range 2 {
		if err := a.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// buy books one seat over HTTP.
func (s site) buy(seat seats.ID) (status int, id string, err error) {
	body := fmt.Sprintf(`{"event":%q,"seats":[%d],"buyer":{"name":"Lena","email":"lena@example.com"}}`, s.World.Event, seat)
	req, err := http.NewRequest(http.MethodPost, s.url+"/v1/bookings", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Idempotency-Key", fmt.Sprintf("seat-%d", seat))
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	var made struct{ ID string }
	return res.StatusCode, made.ID, json.NewDecoder(res.Body).Decode(&made)
}

// until waits for a condition.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestAServerWithoutRedisIsReadyAndSells(t *testing.T) {
	s := start(t)
	if status, body := get(t, s.url+"/readyz"); status != http.StatusOK || !strings.Contains(body, "degraded") {
		t.Errorf("readyz is %d %s", status, body)
	}
	if status, _, err := s.buy(Seat14C); status != http.StatusCreated {
		t.Errorf("a booking is answered %d, %v", status, err)
	}
}

func TestSeatLocksCanBeSwitchedOff(t *testing.T) {
	s := start(t, "SEAT_LOCKS", "off", "REDIS_URL", "")
	if status, body := get(t, s.url+"/readyz"); status != http.StatusOK || !strings.Contains(body, `"off"`) {
		t.Errorf("readyz is %d %s", status, body)
	}
	if status, _, err := s.buy(Seat14C); status != http.StatusCreated {
		t.Errorf("a booking is answered %d, %v", status, err)
	}
}

func TestRedisIsUsedWhenItIsThere(t *testing.T) {
	t.Parallel()
	redis := dbtest.Redis(t)
	t.Run("server", func(t *testing.T) {
		s := start(t, "REDIS_URL", redis)
		if status, body := get(t, s.url+"/readyz"); status != http.StatusOK || !strings.Contains(body, `"redis":"ok"`) {
			t.Errorf("readyz is %d %s", status, body)
		}
		if status, _, err := s.buy(Seat14C); status != http.StatusCreated {
			t.Errorf("a booking is answered %d, %v", status, err)
		}
		_, metrics := get(t, "http://"+s.MetricsAddr()+"/metrics")
		if !strings.Contains(metrics, `seatfence_seat_lock_seconds_count{outcome="acquired"} 1`) {
			t.Error("the seat lock is not counted")
		}
	})
}

func TestThePagesArePartOfTheServer(t *testing.T) {
	s := start(t)
	if status, body := get(t, s.url+"/no/such/page"); status != http.StatusNotFound || !strings.HasPrefix(body, "<!doctype html>") {
		t.Errorf("an unknown page is %d %s", status, body)
	}
	res, err := http.PostForm(s.url+"/events/"+s.World.Event.String()+"/holds", url.Values{"seat": {fmt.Sprint(Seat14C)}, "key": {"AAAA"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if _, metrics := get(t, "http://"+s.MetricsAddr()+"/metrics"); !strings.Contains(metrics, `seatfence_results_total{code="ok",operation="createHold"} 1`) {
		t.Error("a hold of the pages is not counted")
	}
}

func TestMetricsHaveTheirOwnListener(t *testing.T) {
	s := start(t)
	if status, _ := get(t, s.url+"/metrics"); status != http.StatusNotFound {
		t.Errorf("/metrics on the public address is %d", status)
	}
	status, body := get(t, "http://"+s.MetricsAddr()+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics is %d", status)
	}
	for _, name := range []string{"seatfence_pool_max_connections 16", "seatfence_pool_empty_acquire_wait_seconds_total", "seatfence_http_requests_in_flight", "go_goroutines"} {
		if !strings.Contains(body, name) {
			t.Errorf("/metrics lacks %s", name)
		}
	}
}

func TestAnExpiryIsSeenInASecond(t *testing.T) {
	s := start(t)
	hold := s.MustHold(t, Buyer(), Seat14C)
	s.Expire(t, hold.ID)
	expired := time.Now()
	until(t, "the sweeper", func() bool {
		var status string
		if err := s.Pool.QueryRow(t.Context(), "SELECT status FROM holds").Scan(&status); err != nil {
			t.Fatal(err)
		}
		return status == booking.HoldExpired
	})
	if took := time.Since(expired); took > 2*time.Second {
		t.Errorf("an expiry was made visible after %v", took)
	}
}

func TestMailsLeaveTheServer(t *testing.T) {
	sink, err := mailsink.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	s := start(t, "SMTP_URL", sink.SMTPURL())
	_, id, err := s.buy(Seat14C)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := sink.Wait(ctx, func(m mailsink.Message) bool { return strings.HasPrefix(m.MessageID, id) }); err != nil {
		t.Error(err)
	}
}

func TestStopWaitsForARequestThatWritesASeat(t *testing.T) {
	s := start(t)
	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT 1 FROM seats WHERE id = $1 FOR UPDATE", Seat14C); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	go func() {
		status, _, _ := s.buy(Seat14C)
		answered <- status
	}()
	until(t, "the request to wait for the row", func() bool {
		var n int
		if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	stopped := make(chan struct{})
	go func() { stop(t, s.App); close(stopped) }()
	until(t, "the server to take no more connections", func() bool {
		_, err := http.Get(s.url + "/healthz")
		return err != nil
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != http.StatusCreated {
		t.Errorf("a request under way was answered %d", status)
	}
	<-stopped
}

func TestAnUnsafeDatabaseIsRefusedByName(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct{ statement, unsafe string }{
		"synchronous_commit is off":   {"SET synchronous_commit = off", "true"},
		"synchronous_commit is local": {"SET synchronous_commit = local", "true"},
		"fsync is off":                {"SET work_mem = '4MB'", "false"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			database := dbtest.URL(t)
			conn, err := pgx.Connect(t.Context(), database)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+conn.Config().Database+" "+c.statement); err != nil {
				t.Fatal(err)
			}
			_, err = app.New(t.Context(), settings(t, database, "ALLOW_UNSAFE_FSYNC", c.unsafe), slog.New(slog.DiscardHandler))
			if err == nil || !strings.HasPrefix(err.Error(), reason) {
				t.Errorf("the server starts with %v", err)
			}
		})
	}
}

func TestAnOldSchemaIsRefused(t *testing.T) {
	t.Parallel()
	database := dbtest.URL(t)
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "DELETE FROM goose_db_version WHERE version_id > 0"); err != nil {
		t.Fatal(err)
	}
	_, err = app.New(t.Context(), settings(t, database), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "seatfence migrate") {
		t.Errorf("the server starts with %v", err)
	}
}

func TestAnAddressInUseIsNamed(t *testing.T) {
	s := start(t)
	second, err := app.New(t.Context(), settings(t, s.Pool.Config().ConnString(), "LISTEN", s.Addr()), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, second)
	if err := second.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "LISTEN: ") {
		t.Errorf("a second server on the same address: %v", err)
	}
}

func TestVerifyCountsWhatIsBroken(t *testing.T) {
	s := start(t)
	if _, err := s.Book(t.Context(), Buyer(), Seat14C); err != nil {
		t.Fatal(err)
	}
	cfg := settings(t, s.Pool.Config().ConnString()).Database
	broken := func() (n int64) {
		if err := app.Verify(t.Context(), cfg, func(_ string, rows int64) { n += rows }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := broken(); n != 0 {
		t.Errorf("a sound database has %d broken rows", n)
	}
	if _, err := s.Pool.Exec(t.Context(), "UPDATE tickets SET status = 'cancelled'"); err != nil {
		t.Fatal(err)
	}
	if broken() == 0 {
		t.Error("a sold seat without a ticket is not counted")
	}
}
