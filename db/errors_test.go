package db_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatfence/db"
)

// Each row provokes what it names on a real server, so that a change of driver or server that renames an error is seen here.
func TestErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(error) bool{
		"not found": db.NotFound, "lock timed out": db.LockTimedOut, "conflicted": db.Conflicted, "canceled": db.Canceled,
		"lost": db.Lost, "unavailable": db.Unavailable,
		"key violated":    func(err error) bool { return db.Violates(err, db.ConstraintKey) },
		"ticket violated": func(err error) bool { return db.Violates(err, db.ConstraintLiveTicket) },
	}
	for name, tt := range map[string]struct {
		provoke func(*testing.T, *pgxpool.Pool) error
		want    []string
	}{
		"nothing":                 {func(*testing.T, *pgxpool.Pool) error { return nil }, nil},
		"no row":                  {noRow, []string{"not found"}},
		"second row of a key":     {usedKey, []string{"key violated"}},
		"row locked by another":   {lockedRow, []string{"lock timed out"}},
		"deadlock":                {deadlock, []string{"conflicted"}},
		"older snapshot":          {staleSnapshot, []string{"conflicted"}},
		"statement took too long": {slowStatement, []string{"canceled", "unavailable"}},
		"stood still too long":    {stoodStill, []string{"lost", "unavailable"}},
		"session was ended":       {terminated, []string{"lost", "unavailable"}},
		"no connection left":      {raised("53300"), []string{"unavailable"}},
		"disk full":               {raised("53100"), []string{"unavailable"}},
		"nobody listens":          {nobodyListens, []string{"lost", "unavailable"}},
		"division by zero":        {raised("22012"), nil},
		"check violated":          {raised("23514"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.provoke(t, open(t, db.Options{MaxConns: 4, IdleInTransaction: 100 * time.Millisecond}))
			if (err == nil) != (name == "nothing") {
				t.Fatalf("got error %v", err)
			}
			want := map[string]bool{}
			for _, kind := range tt.want {
				want[kind] = true
			}
			for kind, is := range kinds {
				if is(err) != want[kind] {
					t.Errorf("%v (%T) is %q: %v, want %v", err, errors.Unwrap(err), kind, is(err), want[kind])
				}
			}
		})
	}
}

func begin(t *testing.T, pool *pgxpool.Pool, opts pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	exec(t, tx, "SET idle_in_transaction_session_timeout = '10s'")
	return tx
}

func noRow(t *testing.T, pool *pgxpool.Pool) error {
	return pool.QueryRow(t.Context(), "SELECT 1 FROM events").Scan(new(int))
}

func usedKey(t *testing.T, pool *pgxpool.Pool) error {
	const insert = "INSERT INTO idempotency_keys SELECT 1, '9bd6a6e9-2a43-4f57-8b8f-4d6a4b0f2a11', 'key', '', '{}', now()"
	exec(t, pool, insert)
	_, err := pool.Exec(t.Context(), insert)
	return err
}

// twoRows makes the organizers 1 and 2.
func twoRows(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, "INSERT INTO organizers (name) VALUES ('first'), ('second')")
}

const touch = "UPDATE organizers SET name = 'touched' WHERE id = $1"

func lockedRow(t *testing.T, pool *pgxpool.Pool) error {
	twoRows(t, pool)
	exec(t, begin(t, pool, pgx.TxOptions{}), touch, 1)
	_, err := pool.Exec(t.Context(), touch, 1)
	return err
}

func deadlock(t *testing.T, pool *pgxpool.Pool) error {
	twoRows(t, pool)
	first, other := begin(t, pool, pgx.TxOptions{}), begin(t, pool, pgx.TxOptions{})
	for i, tx := range []pgx.Tx{first, other} {
		exec(t, tx, "SET lock_timeout = 0")
		exec(t, tx, "SET deadlock_timeout = '50ms'")
		exec(t, tx, touch, i+1)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := other.Exec(context.Background(), touch, 1)
		ended <- errors.Join(err, other.Rollback(context.Background()))
	}()
	_, err := first.Exec(t.Context(), touch, 2)
	return errors.Join(err, first.Rollback(t.Context()), <-ended) // one of the two
}

func staleSnapshot(t *testing.T, pool *pgxpool.Pool) error {
	twoRows(t, pool)
	tx := begin(t, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	value[int](t, tx, "SELECT count(*) FROM organizers") // the first statement takes the snapshot
	exec(t, pool, touch, 1)
	_, err := tx.Exec(t.Context(), touch, 1)
	return err
}

func slowStatement(t *testing.T, pool *pgxpool.Pool) error {
	tx := begin(t, pool, pgx.TxOptions{})
	exec(t, tx, "SET LOCAL statement_timeout = '20ms'")
	_, err := tx.Exec(t.Context(), "SELECT pg_sleep(5)")
	return err
}

// endedBy returns what a session meets that had a transaction open when stop ended it.
func endedBy(t *testing.T, pool *pgxpool.Pool, stop func(pid int)) error {
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	pid := value[int](t, tx, "SELECT pg_backend_pid()")
	stop(pid)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); ; <-tick.C {
		var alive bool
		if err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1)", pid).Scan(&alive); err != nil {
			t.Fatal(err)
		}
		if !alive {
			_, err := tx.Exec(t.Context(), "SELECT 1")
			return err
		}
		if time.Now().After(end) {
			t.Fatal("the session is still there")
		}
	}
}

func stoodStill(t *testing.T, pool *pgxpool.Pool) error { return endedBy(t, pool, func(int) {}) }

func terminated(t *testing.T, pool *pgxpool.Pool) error {
	return endedBy(t, pool, func(pid int) { exec(t, pool, "SELECT pg_terminate_backend($1)", pid) })
}

// raised has Postgres answer with a SQLSTATE that would cost a server to provoke.
func raised(code string) func(*testing.T, *pgxpool.Pool) error {
	return func(t *testing.T, pool *pgxpool.Pool) error {
		_, err := pool.Exec(t.Context(), "DO $$ BEGIN RAISE 'provoked' USING ERRCODE = '"+code+"'; END $$")
		return err
	}
}

func nobodyListens(t *testing.T, _ *pgxpool.Pool) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	pool, err := db.Open(t.Context(), "postgres://seatfence@"+address+"/seatfence", db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	return pool.Ping(t.Context())
}
