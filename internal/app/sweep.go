package app

import (
	"context"
	"log/slog"
	"time"
)

const (
	sweepEvery = 250 * time.Millisecond // an expiry is to be seen within a second
	sweepRest  = 5 * time.Second        // at most, while the database fails
	sweepTime  = 30 * time.Second       // for one round
)

// sweep ends what has run out, until ctx ends.
func (a *App) sweep(ctx context.Context) {
	timer := time.NewTimer(sweepEvery)
	defer timer.Stop()
	rest := sweepEvery
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		ended, err := a.sweepOnce(ctx)
		rest = pause(rest, ended, err)
		if err != nil && ctx.Err() == nil {
			a.log.LogAttrs(ctx, slog.LevelError, "sweep failed", slog.Any("error", err), slog.Int("ended", ended), slog.Duration("next_in", rest))
		}
		timer.Reset(rest)
	}
}

// pause is how long to wait after a round, last being the wait before it. A round that ended something goes on at once, whatever failed in
// it: one broken hold must not keep the others from sight.
func pause(last time.Duration, ended int, err error) time.Duration {
	switch {
	case ended > 0:
		return 0
	case err != nil:
		return min(max(2*last, sweepEvery), sweepRest)
	}
	return sweepEvery
}

func (a *App) sweepOnce(ctx context.Context) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	return a.Booking.Sweep(ctx)
}
