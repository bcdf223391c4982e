package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	acquireTimeout  = 2 * time.Second // for a connection of the pool
	rollbackTimeout = 2 * time.Second
	commitTimeout   = 5 * time.Second
)

// InTx runs fn in one transaction: commit if it returns nil, roll back otherwise. fn gets the transaction alone: a pool used inside
// one starves it.
//
// Both ends outlive ctx. The rollback, because a caller who hangs up must not cost a connection; the commit, because a sale that has
// been decided must not become unknown when its buyer closes the tab. An error of the commit itself may still mean either outcome.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	conn, err := Acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer rollback(ctx, tx)
	if err := fn(tx); err != nil {
		return err
	}
	commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := tx.Commit(commit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Snapshot runs fn in a read-only transaction whose statements all see the same state.
func Snapshot(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	conn, err := Acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer rollback(ctx, tx)
	return fn(tx)
}

// Acquire takes a connection of the pool for a caller who releases it. One who waits too long gets ErrNoConnection: a pool whose
// connections are all waiting for Postgres must not keep everybody for the time of a whole request.
func Acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := pool.Acquire(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, ErrNoConnection
	}
	if err != nil {
		return nil, fmt.Errorf("acquire connection: %w", err)
	}
	return conn, nil
}

func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // pgx.ErrTxClosed after a commit
}
