package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	rollbackTimeout = 2 * time.Second
	commitTimeout   = 5 * time.Second
)

// InTx runs fn in one transaction: commit if it returns nil, roll back otherwise. fn gets the transaction alone: a pool used inside
// one starves it.
//
// Both ends outlive ctx. The rollback, because a caller who hangs up must not cost a connection; the commit, because a sale that has
// been decided must not become unknown when its buyer closes the tab. An error of the commit itself may still mean either outcome.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
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
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer rollback(ctx, tx)
	return fn(tx)
}

func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx) // pgx.ErrTxClosed after a commit
}
