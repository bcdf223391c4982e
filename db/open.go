package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Limits of every session that the service opens. A request that waits longer for a row is answered "busy", and a process that stops
// in the middle of a transaction loses it, so that the next buyer gets a turn.
const (
	LockTimeout        = 500 * time.Millisecond
	StatementTimeout   = 2 * time.Second
	IdleInTransaction  = 3 * time.Second
	connectTimeout     = 2 * time.Second
	cancelRequestDelay = 0
	deadlineDelay      = time.Second
)

// Options are the settings of a pool that differ between a server, a command and a test. Zero values take the defaults above.
type Options struct {
	MaxConns          int32         // 0: pgx's default, the larger of 4 and the number of cores
	IdleInTransaction time.Duration // how long a transaction may stand still before Postgres ends it
}

// Open connects a pool whose sessions are READ COMMITTED with durable commits, whatever the server's defaults are.
func Open(ctx context.Context, url string, opts Options) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if opts.MaxConns > 0 {
		cfg.MaxConns = opts.MaxConns
	}
	idle := opts.IdleInTransaction
	if idle == 0 {
		idle = IdleInTransaction
	}
	conn := cfg.ConnConfig
	conn.ConnectTimeout = connectTimeout
	for name, value := range map[string]string{
		// Planning the sale anew for each call costs a third of it: it has eight tables, and always the same plan.
		"plan_cache_mode": "force_generic_plan",
		// Such a plan may be made while a table is empty, and kept while an on-sale fills it: reading all of it looked cheap then.
		"enable_seqscan":                      "off",
		"application_name":                    "seatfence",
		"timezone":                            "UTC",
		"search_path":                         "public",
		"default_transaction_isolation":       "read committed",
		"synchronous_commit":                  "on",
		"lock_timeout":                        millis(LockTimeout),
		"statement_timeout":                   millis(StatementTimeout),
		"idle_in_transaction_session_timeout": millis(idle),
	} {
		conn.RuntimeParams[name] = value
	}
	// A caller who hangs up costs a cancelled statement, not a connection: by default pgx closes the socket.
	conn.BuildContextWatcherHandler = func(pg *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: pg, CancelRequestDelay: cancelRequestDelay, DeadlineDelay: deadlineDelay}
	}
	conn.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return pool, nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%d", d.Milliseconds()) }
