// Package notify brings what a committed sale left in the outbox to its buyer. A relay hands the rows to a job queue in the same database,
// and the queue's workers send the mails, again and again while the mail server is away; links for staff are jobs from the start. It reads
// bookings and writes none; nothing here runs inside the transaction of a sale.
package notify

import (
	"context"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/internal/staff"
)

var queries = db.New()

const (
	maxWorkers   = 10 // mails under way at once, on one node
	fetchRest    = 20 * time.Millisecond
	fetchPoll    = 200 * time.Millisecond
	completeKept = time.Hour // a finished job also keeps a second one for the same mail away
	failedKept   = 7 * 24 * time.Hour
	jobTimeout   = 30 * time.Second
	// rescueAfter is when the job of a node that was killed is given to another. Longer than any job runs.
	rescueAfter = time.Minute
	softStop    = 5 * time.Second // until Stop cuts mails that are being sent
	purgeEvery  = time.Hour
)

// Notifier is the relay and the workers of one node.
type Notifier struct {
	pool  *pgxpool.Pool
	jobs  *river.Client[pgx.Tx]
	log   *slog.Logger
	nudge chan struct{}

	cancel context.CancelFunc // nil until Start
	relays sync.WaitGroup
}

// New returns a Notifier that sends through server, an smtp:// or smtps:// URL, as from.
func New(pool *pgxpool.Pool, service *booking.Service, people *staff.Staff, server *url.URL, from netmail.Address, log *slog.Logger) (*Notifier, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &mailWorker{service: service, server: server, from: from})
	river.AddWorker(workers, &staffWorker{people: people, server: server, from: from})
	river.AddWorker(workers, &purgeWorker{service: service})
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers}},
		Workers:                     workers,
		PeriodicJobs:                []*river.PeriodicJob{purge},
		FetchCooldown:               fetchRest,
		FetchPollInterval:           fetchPoll,
		PollOnly:                    true, // LISTEN cannot be interrupted on a connection of db.Open, and would cost one for good
		JobTimeout:                  jobTimeout,
		RescueStuckJobsAfter:        rescueAfter,
		SoftStopTimeout:             softStop,
		CompletedJobRetentionPeriod: completeKept,
		CancelledJobRetentionPeriod: failedKept,
		DiscardedJobRetentionPeriod: failedKept,
		ReindexerIndexNames:         []string{}, // the pool's statement timeout would cut it and leave an invalid index behind
		Logger:                      slog.New(quiet{log.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("set up job queue: %w", err)
	}
	return &Notifier{pool: pool, jobs: jobs, log: log, nudge: make(chan struct{}, 1)}, nil
}

// Start runs the relay and the workers until Stop. Their contexts carry ctx's values and end with it.
func (n *Notifier) Start(ctx context.Context) error {
	if err := n.jobs.Start(ctx); err != nil {
		return fmt.Errorf("start job queue: %w", err)
	}
	ctx, n.cancel = context.WithCancel(ctx)
	n.relays.Go(func() { n.relay(ctx) })
	return nil
}

// Stop ends the relay, lets mails that are being sent finish for some seconds, at most until ctx ends, and waits for both. It may be
// called twice, or without Start.
func (n *Notifier) Stop(ctx context.Context) error {
	if n.cancel == nil {
		return nil
	}
	n.cancel()
	n.relays.Wait()
	if err := n.jobs.Stop(ctx); err != nil {
		return fmt.Errorf("stop job queue: %w", err)
	}
	return nil
}

// Committed tells the relay that the outbox has something. It never blocks.
func (n *Notifier) Committed() {
	select {
	case n.nudge <- struct{}{}:
	default: // it will look anyway
	}
}

// quiet drops the job queue's own everyday messages.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
