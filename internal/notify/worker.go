package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	netmail "net/mail"
	"net/url"
	"time"

	"github.com/riverqueue/river"
	"github.com/wneessen/go-mail"

	"seatfence/booking"
	"seatfence/internal/failpoint"
)

const (
	firstRetry   = time.Second
	longestRetry = 15 * time.Minute // a mail server that comes back is used soon, however long it was away
	maxDoubled   = 10               // 2^10 seconds are more than longestRetry
	// maxAttempts spans three days: ten attempts in the first 17 minutes, then four an hour.
	maxAttempts = 10 + 3*24*4
)

// mailArgs is the job of one mail. The same booking and kind is never queued twice.
type mailArgs struct {
	Booking booking.BookingID `json:"booking"`
	Mail    string            `json:"mail"` // booking.MailConfirmed or MailCancelled
}

// Kind names the job in the queue.
func (mailArgs) Kind() string { return "booking_mail" }

// InsertOpts makes the job unique by its arguments.
func (mailArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: maxAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

type mailWorker struct {
	river.WorkerDefaults[mailArgs]
	service *booking.Service
	server  *url.URL
	from    netmail.Address
}

// NextRetry doubles the wait from one second to a quarter of an hour.
func (w *mailWorker) NextRetry(job *river.Job[mailArgs]) time.Time {
	return time.Now().Add(retryAfter(len(job.Errors)))
}

// retryAfter spreads by a tenth, so that what failed together does not come back together.
func retryAfter(failedBefore int) time.Duration {
	wait := min(firstRetry<<min(failedBefore, maxDoubled), longestRetry)
	return wait - wait/10 + rand.N(wait/5)
}

// Work sends one mail. A booking that was cancelled before its confirmation went out gets only the mail that says so.
func (w *mailWorker) Work(ctx context.Context, job *river.Job[mailArgs]) error {
	args := job.Args
	b, event, err := w.service.BookingForMail(ctx, args.Booking)
	if errors.Is(err, booking.ErrNotFound) {
		return river.JobCancel(err)
	}
	if err != nil {
		return fmt.Errorf("read booking: %w", err)
	}
	if args.Mail == booking.MailConfirmed && b.Status == booking.BookingCancelled {
		return nil
	}
	msg, err := compose(b, event, args.Mail, w.from)
	if err != nil {
		return fmt.Errorf("write mail: %w", err)
	}
	if err := failpoint.Hit(ctx, failpoint.BeforeSend); err != nil {
		return err
	}
	if err := send(ctx, w.server, msg); err != nil {
		return failure(err)
	}
	return failpoint.Hit(ctx, failpoint.AfterSend)
}

// failure leaves out what the mail server said: it may quote the buyer's address, and jobs' errors are logged. A server that refuses
// the address itself would do so for three days.
func failure(err error) error {
	refused, ok := errors.AsType[*mail.SendError](err)
	if !ok {
		return fmt.Errorf("send mail: %w", err)
	}
	err = fmt.Errorf("send mail: %s (code %d)", refused.Reason, refused.ErrorCode())
	if refused.Reason == mail.ErrSMTPRcptTo && refused.ErrorCode() >= 500 {
		return river.JobCancel(err)
	}
	return err
}

type purgeArgs struct{}

// Kind names the job in the queue.
func (purgeArgs) Kind() string { return "purge" }

var purge = river.NewPeriodicJob(river.PeriodicInterval(purgeEvery),
	func() (river.JobArgs, *river.InsertOpts) { return purgeArgs{}, &river.InsertOpts{MaxAttempts: 1} },
	&river.PeriodicJobOpts{ID: purgeArgs{}.Kind(), RunOnStart: true})

// purgeWorker forgets what nobody can ask for any more.
type purgeWorker struct {
	river.WorkerDefaults[purgeArgs]
	service *booking.Service
}

// Timeout is longer than a mail's: an hour of a busy sale is many rows.
func (w *purgeWorker) Timeout(*river.Job[purgeArgs]) time.Duration { return rescueAfter - time.Second }

// Work deletes old idempotency keys and old rows of the outbox.
func (w *purgeWorker) Work(ctx context.Context, _ *river.Job[purgeArgs]) error {
	return w.service.Purge(ctx)
}
