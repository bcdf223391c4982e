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
		switch {
		case err != nil && ctx.Err() == nil:
			rest = min(2*rest, sweepRest)
			a.log.LogAttrs(ctx, slog.LevelError, "sweep failed", slog.Any("error", err), slog.Duration("next_in", rest))
			timer.Reset(rest)
		case ended > 0:
			timer.Reset(0)
		default:
			rest = sweepEvery
			timer.Reset(rest)
		}
	}
}

func (a *App) sweepOnce(ctx context.Context) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	return a.Booking.Sweep(ctx)
}
