package migrations_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"seatfence/db/dbtest"
	"seatfence/migrations"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

var serial atomic.Int64

// empty is the address of a database of the test's own without any schema.
func empty(t *testing.T) string {
	t.Helper()
	server := dbtest.URL(t)
	pool := connect(t, server)
	name := fmt.Sprintf("empty_%d", serial.Add(1))
	run := func(statement string) {
		if _, err := pool.Exec(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE DATABASE " + name + " TEMPLATE template0")
	t.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = name
	return u.String()
}

func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// schema lists what the migrations have made, in words that can be compared.
func schema(t *testing.T, pool *pgxpool.Pool) (list []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		SELECT format('%s.%s %s null=%s default=%s', table_name, column_name, udt_name, is_nullable, column_default)
		FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
		UNION ALL SELECT format('%s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
		UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
		UNION ALL SELECT 'type ' || typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd')
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		list = append(list, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEveryStepCanBeTakenBackAndAgain(t *testing.T) {
	t.Parallel()
	pool := connect(t, empty(t))
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer sqlDB.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, sqlDB, os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	move := func(move func(context.Context) ([]*goose.MigrationResult, error)) []string {
		t.Helper()
		if _, err := move(t.Context()); err != nil {
			t.Fatal(err)
		}
		return schema(t, pool)
	}
	down := func(ctx context.Context) ([]*goose.MigrationResult, error) { return steps.DownTo(ctx, 0) }
	bare := move(down)
	first := move(steps.Up)
	if after := move(down); !slices.Equal(after, bare) {
		t.Errorf("the way back leaves %v, want %v", after, bare)
	}
	if again := move(steps.Up); !slices.Equal(again, first) || len(first) < 100 {
		t.Errorf("the second way up makes %v, the first made %v", again, first)
	}
}

// Changes from before the feed have no number, and an event that has some does not begin at 0.
func TestHistoryFromBeforeTheFeedIsNotNumbered(t *testing.T) {
	t.Parallel()
	pool := connect(t, empty(t))
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer sqlDB.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, sqlDB, os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.UpTo(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO organizers (name) VALUES ('Mill');
		INSERT INTO events (id, organizer_id, name, venue, starts_at, timezone, currency, payment, status, sale_starts_at, sale_ends_at)
		SELECT n, 1, 'An evening', 'Mill', now(), 'UTC', 'EUR', 'none', 'on_sale', now(), now() + interval '1 day' FROM generate_series(7, 8) n;
		INSERT INTO seat_ledger (event_id, seat_id, fence, action, ref, at) VALUES (7, 1, 1, 'sold', gen_random_uuid(), now())`); err != nil {
		t.Fatal(err)
	}
	if _, err := steps.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO seat_ledger (event_id, seat_id, fence, action, ref, at) VALUES (7, 1, 2, 'cancelled', gen_random_uuid(), now())`); err != nil {
		t.Fatal(err)
	}
	var numbered, tops []int64
	var epochs int
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT array_agg(coalesce(seq, -1) ORDER BY fence) FROM seat_ledger),
		array_agg(seq ORDER BY event_id), count(DISTINCT epoch) FROM feeds`).Scan(&numbered, &tops, &epochs); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(numbered, []int64{0, -1}) || !slices.Equal(tops, []int64{1, 0}) || epochs != 2 {
		t.Errorf("numbers %v, feeds at %v, %d epochs", numbered, tops, epochs)
	}
}

func TestProcessesThatStartTogetherMigrateOnce(t *testing.T) {
	t.Parallel()
	url := empty(t)
	var all sync.WaitGroup
	for range 8 {
		pool := connect(t, url)
		all.Go(func() {
			if err := migrations.Up(t.Context(), pool); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	pool := connect(t, url)
	if pending, err := migrations.Pending(t.Context(), pool); pending || err != nil {
		t.Errorf("steps are left: %v, %v", pending, err)
	}
	if migrated := schema(t, connect(t, dbtest.URL(t))); !slices.Equal(schema(t, pool), migrated) {
		t.Error("eight processes together make another schema than one alone")
	}
}
