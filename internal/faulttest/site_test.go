package faulttest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"seatfence/booking"
	"seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/db/dbtest"
	"seatfence/internal/devstack"
	"seatfence/internal/mailsink"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// cleanUp removes what tests of a build with named points have made for all of them.
var cleanUp = func() {}

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	cleanUp()
	os.Exit(code)
}

const (
	lockTTL  = 200 * time.Millisecond
	patience = 20 * time.Second
)

// signingKey is the key of every node of every site.
var signingKey = []byte("a signing key of 32 bytes or more")

// site is what the nodes of a test share: a database with one event on sale, a Redis and a mail server of its own.
type site struct {
	world       bookingtest.World
	event       string
	databaseURL string
	postgres    *devstack.Stack // set by ownPostgres
	redis       *devstack.Stack
	rdb         *redis.Client
	mails       *mailsink.Sink
	pool        *pgxpool.Pool // the test's own view
}

// ownPostgres gives the site a cluster that the test may restart.
func ownPostgres(t *testing.T, s *site) {
	s.postgres = dbtest.OwnPostgres(t)
	s.databaseURL = s.postgres.PostgresURL
}

func newSite(t *testing.T, options ...func(*testing.T, *site)) *site {
	t.Helper()
	s := &site{redis: dbtest.OwnRedis(t)}
	for _, o := range options {
		o(t, s)
	}
	if s.databaseURL == "" {
		s.databaseURL = dbtest.URL(t)
	}
	var err error
	if s.pool, err = db.Open(t.Context(), s.databaseURL, db.Options{MaxConns: 8}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	if s.mails, err = mailsink.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.mails.Close() })
	at, err := redis.ParseURL(s.redis.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	s.rdb = redis.NewClient(at)
	t.Cleanup(func() { _ = s.rdb.Close() })
	s.world = bookingtest.New(t, s.pool, booking.DefaultLimits)
	s.event = s.world.Event.String()
	return s
}

// bigHouse makes another event with so many numbered seats and returns its id.
func (s *site) bigHouse(t *testing.T, n int) string {
	t.Helper()
	spec := bookingtest.Spec()
	spec.House.Areas = nil
	spec.House.Sections = []plan.HouseSection{{Name: "Hall", Rows: []plan.HouseRow{{Label: "A", Category: "Stalls", Seats: n}}}}
	s.world.Event = s.world.NewEvent(t, spec)
	return s.world.Event.String()
}

func (s *site) lockKey(id seats.ID) string {
	return fmt.Sprintf("seat:{%d}:%d", int64(s.world.Event), id)
}

// locked reports whether Redis has a lock on the seat now.
func (s *site) locked(t *testing.T, id seats.ID) bool {
	t.Helper()
	n, err := s.rdb.Exists(t.Context(), s.lockKey(id)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

func (s *site) waitUnlocked(t *testing.T, id seats.ID) {
	t.Helper()
	waitFor(t, "the seat's lock to expire", func() bool { return !s.locked(t, id) })
}

// waitBooked is for goroutines beside the test: it gives up in silence, and the test then fails for what it waits for.
func (s *site) waitBooked(id seats.ID) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for s.booked(ctx, id) == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

func (s *site) booked(ctx context.Context, id seats.ID) (n int) {
	_ = s.pool.QueryRow(ctx, "SELECT count(*) FROM seats WHERE event_id = $1 AND id = $2 AND buyer IS NOT NULL", int64(s.world.Event), id).Scan(&n)
	return n
}

// wantOwner fails unless the seat belongs to the booking, and every invariant of the sale holds.
func (s *site) wantOwner(t *testing.T, id seats.ID, bookingID string) {
	t.Helper()
	want, err := booking.ParseBookingID(bookingID)
	if err != nil {
		t.Fatal(err)
	}
	var owner string
	if err := s.pool.QueryRow(t.Context(), "SELECT coalesce(booking_id::text, '') FROM seats WHERE event_id = $1 AND id = $2", int64(s.world.Event), id).Scan(&owner); err != nil {
		t.Fatal(err)
	}
	if owner != want.Key.String() {
		t.Errorf("seat %d belongs to booking %q, not to %s", id, owner, want.Key)
	}
	s.world.Verify(t)
}

func (s *site) wantFree(t *testing.T, id seats.ID) {
	t.Helper()
	if s.booked(t.Context(), id) != 0 {
		t.Errorf("seat %d is sold", id)
	}
}

// wantMails fails unless each of the bookings, and nothing else, has left exactly one confirmation. It waits until the outbox and the
// job queue are empty, so that a mail too many would be there.
func (s *site) wantMails(t *testing.T, bookingIDs ...string) {
	t.Helper()
	waitFor(t, "the outbox and the job queue to be empty", func() bool {
		var waiting int
		err := s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM outbox WHERE handed_at IS NULL)
			+ (SELECT count(*) FROM river_job WHERE kind <> 'purge' AND finalized_at IS NULL)`).Scan(&waiting)
		return err == nil && waiting == 0
	})
	var got []string
	for _, m := range s.mails.Messages() {
		i := slices.IndexFunc(bookingIDs, func(id string) bool { return strings.Contains(m.MessageID, id) })
		if i < 0 {
			t.Errorf("mail %q to %v is of no booking that was made", m.Subject, m.To)
			continue
		}
		got = append(got, bookingIDs[i])
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(bookingIDs))
	if !slices.Equal(got, want) {
		t.Errorf("mails are of %v, want %v", got, want)
	}
}

func (s *site) wantOneBooking(t *testing.T, c *client, n *node, key string, ids ...seats.ID) {
	t.Helper()
	r := c.bookKey(t, n, key, ids...)
	r.want(t, 201, "")
	s.wantOwner(t, ids[0], r.ID)
}

// wantAcknowledged fails unless every booking whose id was answered is in the database.
func (s *site) wantAcknowledged(t *testing.T, ids *sync.Map) {
	t.Helper()
	ids.Range(func(id, _ any) bool {
		ref, err := booking.ParseBookingID(id.(string))
		if err != nil {
			t.Error(err)
			return false
		}
		var n int
		if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM bookings WHERE event_id = $1 AND id = $2", int64(ref.Event), ref.Key).Scan(&n); err != nil || n != 1 {
			t.Errorf("acknowledged booking %s is lost (%v)", id, err)
		}
		return true
	})
}

func (s *site) deadlocks(t *testing.T) (n int) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
		t.Fatal(err)
	}
	if err := s.pool.QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitFor polls until the condition holds and fails the test if it does not in time.
func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain for %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func mustURL(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// logTo sends a node's log to the test's.
func logTo(t testing.TB) *slog.Logger {
	w := &testLog{out: t.Output()}
	t.Cleanup(w.end)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// testLog writes to a test's output until the test ends. A node that was given up on, because its database stands still, may have
// something to say after that.
type testLog struct {
	mu  sync.Mutex
	out io.Writer // nil after the end
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return len(p), nil
	}
	return l.out.Write(p)
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = nil
}
