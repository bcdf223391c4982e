// Package migrations holds the schema, one numbered file per step, and the one function that applies it.
// A file that has been released is never edited; sqlc reads the same files.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed *.sql
var files embed.FS

// lockPollSeconds × lockPolls bounds how long one process waits while another migrates.
const (
	lockPollSeconds = 1
	lockPolls       = 60
)

// Up brings the database to the newest version, the job queue's tables included. Several processes may call it at once: one works, the
// others wait for it.
func Up(ctx context.Context, pool *pgxpool.Pool) (err error) {
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer sqlDB.Close()
	unlock, err := exclude(ctx, sqlDB)
	if err != nil {
		return fmt.Errorf("wait for other migrations: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	steps, err := goose.NewProvider(goose.DialectPostgres, sqlDB, files)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := steps.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	jobs, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return fmt.Errorf("read job queue migrations: %w", err)
	}
	if _, err := jobs.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate job queue: %w", err)
	}
	return nil
}

// exclude keeps other processes from migrating until unlock. The lock is ours around both sets of steps, because the job queue's have none.
func exclude(ctx context.Context, sqlDB *sql.DB) (unlock func() error, err error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockPollSeconds, lockPolls))
	if err != nil {
		return nil, err
	}
	conn, err := sqlDB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := locker.SessionLock(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() error { return errors.Join(locker.SessionUnlock(context.WithoutCancel(ctx), conn), conn.Close()) }, nil
}

// Pending reports whether the database lacks a step that this binary brings.
func Pending(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer sqlDB.Close()
	steps, err := goose.NewProvider(goose.DialectPostgres, sqlDB, files)
	if err != nil {
		return false, fmt.Errorf("read migrations: %w", err)
	}
	return steps.HasPending(ctx)
}
