package staff

import (
	"context"
	"strings"
	"time"

	"seatfence/db"
)

const (
	// FreeAttempts is how many wrong passwords in a row cost no wait.
	FreeAttempts = 3 // wrong passwords in a row that cost no wait
	longestWait  = time.Minute
	maxStrangers = 4096
)

// attempts are those at an address that is nobody's.
type attempts struct {
	failures int
	until    time.Time
}

// waitAfter is how long the next attempt has to wait after one that came on top of this many failures. UserAttempt says the same in SQL.
func waitAfter(failures int) time.Duration {
	if failures < FreeAttempts {
		return 0
	}
	return min(time.Second<<min(failures-FreeAttempts, 10), longestWait)
}

// attempt counts an attempt to sign in, or refuses it. An address that is nobody's is slowed like any other, or the wait would tell which
// ones are somebody's.
func (s *Staff) attempt(ctx context.Context, p db.Person, email string, unknown bool) error {
	if unknown {
		return s.strange(strings.ToLower(email))
	}
	n, err := queries.UserAttempt(ctx, s.pool, db.UserAttemptParams{ID: p.ID, Free: FreeAttempts, Longest: longestWait.Seconds()})
	if err != nil {
		return answer("count attempt", err)
	}
	if n > 0 {
		return nil
	}
	now, err := queries.PersonGet(ctx, s.pool, p.ID)
	switch {
	case db.NotFound(err):
		return ErrWrongPassword
	case err != nil:
		return answer("read user", err)
	}
	wait := time.Second
	if now.WaitUntil != nil {
		wait = max(wait, time.Until(*now.WaitUntil))
	}
	return &WaitError{min(wait, longestWait)}
}

func (s *Staff) strange(email string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.strangers[email]
	if wait := time.Until(a.until); wait > 0 {
		return &WaitError{max(wait, time.Second)}
	}
	if len(s.strangers) >= maxStrangers {
		clear(s.strangers)
	}
	s.strangers[email] = attempts{a.failures + 1, time.Now().Add(waitAfter(a.failures))}
	return nil
}
