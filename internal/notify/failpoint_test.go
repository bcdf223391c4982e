//go:build failpoint

package notify_test

import (
	"context"
	"errors"
	"testing"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/failpoint"
)

func TestAWorkerThatEndsBeforeOrAfterItSentSendsAgain(t *testing.T) {
	t.Parallel()
	for point, mails := range map[string]int{failpoint.BeforeSend: 1, failpoint.AfterSend: 2} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := bundle{World: New(t, dbtest.Pool(t), booking.DefaultLimits), sink: newSink(t)}
			set := &failpoint.Set{}
			set.Arm(point, func(context.Context) error { return errors.New("the worker ends here") })
			start(failpoint.With(t.Context(), set), t, b.Pool, b.Service, b.sink)
			made := b.mustBook(t, Seat14C)
			b.nth(t, mails, made.ID, booking.MailConfirmed)
			b.until(t, 1, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND state = 'completed' AND cardinality(errors) = 1")
			if n := len(b.sink.Messages()); n != mails {
				t.Errorf("%d mails, want %d", n, mails)
			}
		})
	}
}
