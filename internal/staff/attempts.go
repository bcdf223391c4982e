package staff

import (
	"context"
	"time"

	"seatfence/db"
)

const (
	// FreeAttempts is how many wrong passwords in a row cost no wait.
	FreeAttempts = 3
	longestWait  = time.Minute
	// attemptsKept is for how long an address is remembered that nobody tries any more. Who guesses only then is slower than one who waits.
	attemptsKept = time.Hour
)

// attempt counts an attempt to sign in with an address, or refuses it with a WaitError. Whether it is somebody's makes no difference on any
// node, or the wait would tell.
func (s *Staff) attempt(ctx context.Context, email string) error {
	if err := queries.AttemptsSweep(ctx, s.pool, attemptsKept); err != nil {
		return answer("forget attempts", err)
	}
	n, err := queries.AttemptCount(ctx, s.pool, db.AttemptCountParams{Email: email, Free: FreeAttempts, Longest: longestWait.Seconds()})
	if err != nil {
		return answer("count attempt", err)
	}
	if n > 0 {
		return nil
	}
	wait, err := queries.AttemptWait(ctx, s.pool, email)
	if err != nil && !db.NotFound(err) { // it has just been forgiven
		return answer("read wait", err)
	}
	return &WaitError{min(max(time.Second, time.Duration(wait*float64(time.Second))), longestWait)}
}
