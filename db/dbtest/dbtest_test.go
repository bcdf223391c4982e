package dbtest_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

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

func count(t *testing.T, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPoolsShareNoRows(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	start := time.Now()
	first := dbtest.Pool(t)
	t.Log("first pool after", time.Since(start))
	start = time.Now()
	second := dbtest.Pool(t)
	t.Log("second pool after", time.Since(start))
	if n := count(t, second, "SELECT count(*) FROM seats"); n != 0 {
		t.Fatalf("a new database is not migrated and empty: %d seats", n)
	}
	if _, err := first.Exec(ctx, "CREATE TABLE mine ()"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, second, "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'"); n != 0 {
		t.Fatal("one test's table is visible to another")
	}
}

func TestURLOutlivesNoTest(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var url string
	t.Run("inner", func(t *testing.T) { url = dbtest.URL(t) })
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err == nil {
		t.Fatal("the database is still there after its test")
	}
}

func TestTxLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for range 2 {
		t.Run("inner", func(t *testing.T) {
			if _, err := dbtest.Tx(t).Exec(ctx, "CREATE TABLE rolled_back ()"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestSessionsHaveAnOddTimeZone(t *testing.T) {
	t.Parallel()
	var zone string
	if err := dbtest.Tx(t).QueryRow(context.Background(), "SHOW timezone").Scan(&zone); err != nil {
		t.Fatal(err)
	}
	if zone != "America/St_Johns" {
		t.Fatalf("time zone %s", zone)
	}
}

func TestRedisServersAreApart(t *testing.T) {
	t.Parallel()
	start := time.Now()
	a := dbtest.OwnRedis(t)
	t.Log("redis after", time.Since(start))
	if b := dbtest.Redis(t); a.RedisURL == b {
		t.Fatal("two tests share a Redis")
	}
}

func TestOwnPostgresKeepsCommittedRowsThroughAKill(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	start := time.Now()
	s := dbtest.OwnPostgres(t)
	t.Log("own cluster after", time.Since(start))
	pool, err := pgxpool.New(ctx, s.PostgresURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE TABLE kept AS SELECT 1"); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if err := errors.Join(s.Postgres.Kill(), s.Postgres.Restart(ctx)); err != nil {
		t.Fatal(err)
	}
	t.Log("killed and back after", time.Since(start))
	pool.Reset()
	if n := count(t, pool, "SELECT count(*) FROM kept"); n != 1 {
		t.Fatalf("%d rows of 1 after the crash", n)
	}
}
