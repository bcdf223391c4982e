package db_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"seatfence/db"
	"seatfence/db/dbtest"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	if err := goleak.Find(); err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// open is a pool of the test's own settings on a migrated database of its own.
func open(t *testing.T, opts db.Options) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(t.Context(), dbtest.URL(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func exec(t *testing.T, conn db.DBTX, statement string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func value[T any](t *testing.T, conn db.DBTX, query string) (v T) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func TestSessionsHaveTheServicesSettings(t *testing.T) {
	t.Parallel()
	pool := open(t, db.Options{IdleInTransaction: 1500 * time.Millisecond})
	for setting, want := range map[string]string{
		"transaction_isolation": "read committed", "synchronous_commit": "on", "TimeZone": "UTC", "lock_timeout": "500ms",
		"statement_timeout": "2s", "idle_in_transaction_session_timeout": "1500ms",
	} {
		if got := value[string](t, pool, "SHOW "+setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}

func TestConstraintsHaveTheNamesThatErrorsAreToldBy(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	for _, name := range []string{db.ConstraintKey, db.ConstraintLiveTicket, db.ConstraintLedger, db.ConstraintBookingNumber} {
		var n int
		err := tx.QueryRow(t.Context(), "SELECT count(*) FROM pg_indexes WHERE schemaname = 'public' AND indexname = $1 AND indexdef LIKE 'CREATE UNIQUE %'", name).Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("%d unique indexes are called %s, %v", n, name, err)
		}
	}
}

// A writer that has got its condition wrong still cannot sell a seat twice.
func TestSecondLiveTicketOfASeatIsRefused(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	exec(t, tx, `INSERT INTO bookings (event_id, id, number, buyer, buyer_name, buyer_email, total, currency, created_at)
		SELECT 1, gen_random_uuid(), n, gen_random_uuid(), 'Lena', 'lena@example.com', 0, 'EUR', now() FROM unnest('{A,B}'::text[]) n`)
	sell := func(number, status string) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO tickets (event_id, booking_id, seat_id, fence, type, price, code, status)
			SELECT 1, id, 54, 1, 'standard', 0, number, $2 FROM bookings WHERE number = $1`, number, status)
		return err
	}
	if err := errors.Join(sell("A", "cancelled"), sell("B", "valid")); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE tickets SET status = 'valid'"); !db.Violates(err, db.ConstraintLiveTicket) {
		t.Errorf("two live tickets of one seat: %v", err)
	}
}

func TestSwallowedErrorFailsTheCommit(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	err := db.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		exec(t, tx, "INSERT INTO organizers (name) VALUES ('kept')")
		_, _ = tx.Exec(t.Context(), "SELECT 1/0")
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("a transaction that Postgres rolled back ended with %v", err)
	}
	if n := value[int](t, pool, "SELECT count(*) FROM organizers"); n != 0 {
		t.Errorf("%d rows were committed", n)
	}
}

func TestCallerWhoHangsUpCostsNoConnection(t *testing.T) {
	t.Parallel()
	pool := open(t, db.Options{MaxConns: 1})
	pid := value[int](t, pool, "SELECT pg_backend_pid()")
	for name, hangUp := range map[string]func(ctx context.Context, cancel func(), tx pgx.Tx) error{
		"between statements": func(ctx context.Context, cancel func(), _ pgx.Tx) error {
			cancel()
			return ctx.Err()
		},
		"in a statement": func(ctx context.Context, cancel func(), tx pgx.Tx) error {
			time.AfterFunc(20*time.Millisecond, cancel)
			_, err := tx.Exec(ctx, "SELECT pg_sleep(1)")
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.InTx(ctx, pool, func(tx pgx.Tx) error {
			exec(t, tx, "INSERT INTO organizers (name) VALUES ('gone')")
			return hangUp(ctx, cancel, tx)
		})
		if !errors.Is(err, context.Canceled) && !db.Canceled(err) {
			t.Errorf("%s: %v", name, err)
		}
		if now := value[int](t, pool, "SELECT pg_backend_pid()"); now != pid {
			t.Errorf("%s: the session %d was replaced by %d", name, pid, now)
			pid = now
		}
	}
	if n := value[int](t, pool, "SELECT count(*) FROM organizers"); n != 0 {
		t.Errorf("%d rows were committed", n)
	}
}

func TestCommitOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.InTx(ctx, pool, func(tx pgx.Tx) error {
		exec(t, tx, "INSERT INTO organizers (name) VALUES ('decided')")
		cancel()
		return nil
	})
	if n := value[int](t, pool, "SELECT count(*) FROM organizers"); err != nil || n != 1 {
		t.Errorf("a decided transaction ended with %v and %d rows", err, n)
	}
}

func TestSnapshotSeesOneStateAndWritesNothing(t *testing.T) {
	t.Parallel()
	pool := dbtest.Pool(t)
	const count = "SELECT count(*) FROM organizers"
	err := db.Snapshot(t.Context(), pool, func(tx pgx.Tx) error {
		before := value[int](t, tx, count)
		exec(t, pool, "INSERT INTO organizers (name) VALUES ('meanwhile')")
		if after := value[int](t, tx, count); after != before {
			t.Errorf("one snapshot counts %d and then %d", before, after)
		}
		if _, err := tx.Exec(t.Context(), "INSERT INTO organizers (name) VALUES ('by a reader')"); err == nil {
			t.Error("a reader wrote")
		}
		return nil
	})
	if n := value[int](t, pool, count); err != nil || n != 1 {
		t.Errorf("%v; %d rows", err, n)
	}
}
