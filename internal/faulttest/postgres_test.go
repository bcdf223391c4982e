//go:build failpoint

package faulttest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"seatfence/internal/failpoint"
	"seatfence/seats"
)

// The connection to Postgres is cut right before the commit, 50 times: nothing was sold, and the same request gets its true answer.
func TestCutBeforeCommit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.event = s.bigHouse(t, 200)
	n := s.node(t, throughProxy)
	lena := s.buyer(t, "lena")
	for i := range 50 {
		first := seats.ID(2*i + 1)
		n.points.Arm(failpoint.BeforeCommit, func(context.Context) error {
			n.database.cut()
			return nil
		})
		key := newKey()
		lena.untilAnswered(t, n, key, first, first+1)
		s.wantOneBooking(t, lena, n, key, first, first+1)
	}
	s.world.Verify(t)
}

// The connection is cut when the commit has reached Postgres and its answer has not reached the server, 50 times: what was committed is
// never reported as taken by somebody else, and never sold again.
func TestCutAfterCommit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.event = s.bigHouse(t, 200)
	n := s.node(t, throughProxy)
	lena := s.buyer(t, "lena")
	for i := range 50 {
		first := seats.ID(2*i + 1)
		n.points.Arm(failpoint.BeforeCommit, func(context.Context) error {
			n.database.mute.Store(true)
			go func() {
				s.waitBooked(first)
				n.database.cut()
				n.database.mute.Store(false)
			}()
			return nil
		})
		key := newKey()
		lena.untilAnswered(t, n, key, first, first+1)
		s.wantOneBooking(t, lena, n, key, first, first+1)
	}
	s.world.Verify(t)
}

// Postgres is restarted in the middle of a sale, twice: buyers are told to come again, and no acknowledged booking is lost.
func TestRestartedPostgresLosesNothing(t *testing.T) {
	s := newSite(t, ownPostgres)
	s.event = s.bigHouse(t, 5000)
	n := s.node(t)
	var next, sold atomic.Int64
	var acknowledged sync.Map
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			buyer := s.buyer(t, "buyer")
			for seat := next.Add(1); seat <= 5000; seat = next.Add(1) {
				select {
				case <-stop:
					return
				default:
				}
				if r, ok := buyer.tryUntilAnswered(t, n, newKey(), seats.ID(seat)); ok {
					acknowledged.Store(r.ID, true)
					sold.Add(1)
				}
			}
		})
	}
	for i := range 2 {
		waitFor(t, "sales before the restart", func() bool { return sold.Load() > int64(100*(i+1)) })
		if err := s.postgres.Postgres.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := sold.Load()
	waitFor(t, "sales after the restart", func() bool { return sold.Load() > before+50 })
	close(stop)
	crowd.Wait()
	s.pool.Reset() // the test's own connections ended with the restart, too
	s.wantAcknowledged(t, &acknowledged)
	s.world.Verify(t)
}
