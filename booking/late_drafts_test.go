//go:build failpoint

package booking_test

import (
	"context"
	"testing"

	"seatfence/booking"
	"seatfence/internal/failpoint"
)

func TestEditorWhoWakesUpBeforeTheWriteIsRefused(t *testing.T) {
	w, lena, omar := editing(t)
	late := take(t, w, lena, 1, booking.PageSeats)
	finish := stopped(t, failpoint.BeforeWrite, func(ctx context.Context) error {
		_, err := w.Service.SaveDraftPage(ctx, lena, w.Event, late, 1, booking.PageSeats, row("A", 1))
		return err
	})
	take(t, w, omar, 1, booking.PageSeats)
	wantErr(t, finish(), booking.ErrLockLost)
}

// A save that has its row when somebody begins to edit is done before that: the new editor reads it.
func TestNewEditorReadsTheSaveThatWasUnderWay(t *testing.T) {
	w, lena, omar := editing(t)
	late := take(t, w, lena, 1, booking.PageSeats)
	finish := stopped(t, failpoint.BeforeCommit, func(ctx context.Context) error {
		_, err := w.Service.SaveDraftPage(ctx, lena, w.Event, late, 1, booking.PageSeats, row("A", 1))
		return err
	})
	taken := begun(t, w, 1, func() error {
		_, err := w.Service.TakeEdit(t.Context(), omar, w.Event, 0, "")
		return err
	})
	must(t, finish())
	must(t, <-taken)
	if page, err := w.Service.DraftPage(t.Context(), omar, w.Event, 1, booking.PageSeats); err != nil || page.Revision != 1 {
		t.Errorf("the new editor reads revision %d, %v", page.Revision, err)
	}
}

func TestPublisherWhoWakesUpAfterItsVersionIsRefused(t *testing.T) {
	w, lena, omar := editing(t)
	late := take(t, w, lena, 0, "")
	savePage(t, w, lena, late, 1, booking.PageSeats, row("A", 1))
	finish := stopped(t, failpoint.AfterCommit, func(ctx context.Context) error { // of the version
		_, err := w.Service.PublishDraft(ctx, lena, w.Event, late, false)
		return err
	})
	take(t, w, omar, 0, "")
	wantErr(t, finish(), booking.ErrLockLost)
	if event, err := w.Service.EventHead(t.Context(), lena, w.Event); err != nil || event.Plan.Version != 1 {
		t.Errorf("the event is on version %d, %v", event.Plan.Version, err)
	}
}
