package notify

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/seats"
)

const (
	relayBatch = 500
	relayPoll  = time.Second // for rows whose node died before its relay saw them
	// relayGather is how long a woken relay waits for more: under load one round takes the rows of many sales.
	relayGather  = 20 * time.Millisecond
	relayTimeout = 10 * time.Second
	maxDoublings = 3 // of relayPoll, while the database fails
)

// relay hands the outbox to the job queue until ctx ends.
func (n *Notifier) relay(ctx context.Context) {
	wait, failures := time.Duration(0), 0
	for n.rest(ctx, wait, failures == 0) {
		handed, err := n.hand(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			n.log.LogAttrs(ctx, slog.LevelError, "outbox not handed on", slog.Any("error", err))
			wait = relayPoll << min(failures, maxDoublings)
			failures++
		case handed == relayBatch:
			wait, failures = 0, 0
		default:
			wait, failures = relayPoll, 0
		}
	}
}

// rest waits, less if something was committed and wakeable. It reports whether to go on.
func (n *Notifier) rest(ctx context.Context, wait time.Duration, wakeable bool) bool {
	var nudge <-chan struct{}
	if wakeable {
		nudge = n.nudge
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-nudge:
		timer.Reset(relayGather)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// hand makes jobs of a batch of rows. Rows, jobs and marks are one transaction: a crash anywhere leaves a row that is handed on later.
func (n *Notifier) hand(ctx context.Context) (handed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	err = db.InTx(ctx, n.pool, func(tx pgx.Tx) error {
		rows, err := queries.OutboxTake(ctx, tx, relayBatch)
		if err != nil || len(rows) == 0 {
			return err
		}
		handed = len(rows)
		jobs := make([]river.InsertManyParams, len(rows))
		var done db.OutboxHandedParams
		for i, r := range rows {
			jobs[i] = river.InsertManyParams{Args: mailArgs{booking.BookingID{Event: seats.EventID(r.EventID), Key: r.BookingID}, r.Kind}}
			done.EventIds, done.BookingIds, done.Kinds = append(done.EventIds, r.EventID), append(done.BookingIds, r.BookingID), append(done.Kinds, r.Kind)
		}
		if _, err := n.jobs.InsertManyTx(ctx, tx, jobs); err != nil {
			return fmt.Errorf("insert jobs: %w", err)
		}
		return queries.OutboxHanded(ctx, tx, done)
	})
	return handed, err
}
