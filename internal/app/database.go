package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/internal/access"
	"seatfence/internal/config"
	"seatfence/internal/staff"
	"seatfence/migrations"
)

const (
	connectTime = 10 * time.Second // with all checks
	oldest      = 14               // major version of PostgreSQL
)

var queries = db.New()

func connect(ctx context.Context, cfg config.Database) (*pgxpool.Pool, error) {
	return db.Open(ctx, cfg.DatabaseURL.URL.String(), db.Options{MaxConns: cfg.DatabaseMaxConns, IdleInTransaction: cfg.IdleInTransaction})
}

// checkServer refuses a database that could lose an acknowledged booking or cannot take one, with every reason at once.
func checkServer(ctx context.Context, cfg config.Database, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	// As an ordinary session sees the server: ours set what they need for themselves.
	ordinary, err := pgxpool.ParseConfig(cfg.DatabaseURL.URL.String())
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	plain, err := pgx.ConnectConfig(ctx, ordinary.ConnConfig)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	defer plain.Close(ctx)
	server, err := queries.ServerSettings(ctx, plain)
	if err != nil {
		return fmt.Errorf("read server settings: %w", err)
	}
	ours, err := queries.ServerSettings(ctx, pool)
	if err != nil {
		return fmt.Errorf("read session settings: %w", err)
	}
	if err := errors.Join(refusals(cfg, server, ours)...); err != nil {
		return err
	}
	pending, err := migrations.Pending(ctx, pool)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if pending {
		return errors.New("the database's schema is older than this program: run seatfence migrate")
	}
	return nil
}

func refusals(cfg config.Database, server, ours db.ServerSettingsRow) (reasons []error) {
	refuse := func(format string, args ...any) { reasons = append(reasons, fmt.Errorf(format, args...)) }
	if slices.Contains([]string{"off", "local"}, server.SynchronousCommit) {
		refuse("synchronous_commit is %s on the server, for this role or database: acknowledged bookings could be lost", server.SynchronousCommit)
	}
	if ours.SynchronousCommit != "on" {
		refuse("synchronous_commit is %s in this program's sessions, whose own setting something overrides", ours.SynchronousCommit)
	}
	if server.Fsync != "on" && !cfg.AllowUnsafeFsync {
		refuse("fsync is %s: bookings are lost when the machine fails", server.Fsync)
	}
	if server.Standby {
		refuse("the database is a standby: DATABASE_URL must name the primary")
	}
	if server.Version < oldest*10000 {
		refuse("PostgreSQL %d is too old: %d or newer is needed", server.Version/10000, oldest)
	}
	return reasons
}

// Migrate brings the database to the schema of this program. It waits for other sessions longer than a request would.
func Migrate(ctx context.Context, cfg config.Database) error {
	pool, err := pgxpool.New(ctx, cfg.DatabaseURL.URL.String())
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	defer pool.Close()
	return migrations.Up(ctx, pool)
}

// Verify counts, for each invariant of the sale, the rows that break it, all in one snapshot of a live database, and reports them by name.
func Verify(ctx context.Context, cfg config.Database, report func(invariant string, broken int64)) error {
	pool, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	return db.Snapshot(ctx, pool, func(tx pgx.Tx) error {
		if err := queries.LongStatements(ctx, tx); err != nil {
			return err
		}
		for name, check := range booking.Invariants() {
			broken, err := check(ctx, tx)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			report(name, broken)
		}
		return nil
	})
}

// WithKeys calls fn with the API keys of the database.
func WithKeys(ctx context.Context, cfg config.Database, fn func(*access.Keys) error) error {
	pool, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	return fn(access.New(pool))
}

// WithStaff calls fn with the users of the database, whose links lead to the site at public.
func WithStaff(ctx context.Context, cfg config.Database, public *url.URL, fn func(*staff.Staff) error) error {
	pool, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	people, err := staff.New(pool, public)
	if err != nil {
		return err
	}
	return fn(people)
}

// WithOrganizer calls fn with the use cases on the database, and with who works for the organizer of that name.
func WithOrganizer(ctx context.Context, cfg config.Database, name string, fn func(*booking.Service, booking.Caller) error) error {
	pool, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	caller, err := access.New(pool).Operator(ctx, name)
	if err != nil {
		return err
	}
	return fn(booking.New(pool, booking.DefaultLimits), caller)
}
