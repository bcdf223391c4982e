package lockmgr_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/internal/devstack"
	"seatfence/lockmgr"
)

const (
	// promised is what a sick Redis may cost one request in flight.
	promised = 60 * time.Millisecond
	// recovery is how soon a healthy Redis is in use again.
	recovery = 2 * time.Second
)

// TestSickRedisCostsLittleAndIsUsedAgain breaks a warm Redis in every way that
// the design names, and mends it.
func TestSickRedisCostsLittleAndIsUsedAgain(t *testing.T) {
	t.Parallel()
	const pause = 1500 * time.Millisecond
	faults := map[string]struct {
		inflict, mend func(*testing.T, *devstack.Stack)
	}{
		"paused for all clients": {
			func(t *testing.T, s *devstack.Stack) { do(t, s, "CLIENT", "PAUSE", pause.Milliseconds(), "ALL") },
			func(t *testing.T, s *devstack.Stack) { do(t, s, "PING") }, // answered when the pause is over
		},
		"process stopped": {
			func(t *testing.T, s *devstack.Stack) { must(t, s.Redis.Pause()) },
			func(t *testing.T, s *devstack.Stack) { must(t, s.Redis.Resume()) },
		},
		"killed, restarted empty": {
			func(t *testing.T, s *devstack.Stack) { must(t, s.Redis.Kill()) },
			func(t *testing.T, s *devstack.Stack) { must(t, s.Redis.Restart(t.Context())) },
		},
		"read-only replica of nobody": {
			func(t *testing.T, s *devstack.Stack) { do(t, s, "REPLICAOF", "127.0.0.1", "1") },
			func(t *testing.T, s *devstack.Stack) { do(t, s, "REPLICAOF", "NO", "ONE") },
		},
		"full": {
			func(t *testing.T, s *devstack.Stack) { do(t, s, "CONFIG", "SET", "maxmemory", "1") },
			func(t *testing.T, s *devstack.Stack) { do(t, s, "CONFIG", "SET", "maxmemory", "0") },
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := dbtest.OwnRedis(t)
			var seen tally
			locks := lockmgr.NewSeats(openClient(t, srv.RedisURL), lockmgr.DefaultTTL, seen.add)
			warm(t, locks)
			held := mustAcquire(t, locks, lena, 1) // in flight when it happens
			fault.inflict(t, srv)
			seen.reset()

			inFlight := []time.Duration{timed(func() { held.Release(t.Context()) })}
			for range 3 {
				inFlight = append(inFlight, timed(func() { request(t, locks) }))
			}
			assertPromised(t, inFlight)

			const rest = 1000
			after := make([]time.Duration, rest)
			for i := range after {
				after[i] = timed(func() { request(t, locks) })
			}
			slices.Sort(after)
			if median := after[rest/2]; median > time.Millisecond {
				t.Errorf("the rest pay %v each, want nothing", median)
			}
			if n := seen.counts()["failed"]; n > 5 {
				t.Errorf("Redis was asked %d times, want 3 and a probe per second", n)
			}

			fault.mend(t, srv)
			took := untilAcquired(t, locks)
			t.Logf("in flight %v, rest %v (max %v), recovered in %v", inFlight, after[rest/2], after[rest-1], took)
		})
	}
}

func TestCrowdInFlightPaysOnce(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	locks := newLocks(t, srv.RedisURL+"?pool_size=4") // far fewer than waiting
	must(t, srv.Redis.Pause())
	t.Cleanup(func() { must(t, srv.Redis.Resume()) })

	took := make([]time.Duration, 64)
	var wg sync.WaitGroup
	for i := range took {
		wg.Go(func() { took[i] = timed(func() { request(t, locks) }) })
	}
	wg.Wait()
	assertPromised(t, took)
}

func TestExhaustedPoolCostsTheBudgetAndNoMore(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := openClient(t, srv.RedisURL+"?pool_size=1")
	locks := lockmgr.NewSeats(rdb, lockmgr.DefaultTTL, nil)
	warm(t, locks)

	conn := rdb.(*redis.Client).Conn()
	if err := conn.Ping(t.Context()).Err(); err != nil { // takes the only connection
		t.Fatal(err)
	}
	var took []time.Duration
	for range 3 {
		took = append(took, timed(func() { request(t, locks) }))
	}
	assertPromised(t, took)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	untilAcquired(t, locks)
}

// Handshake, script lookup and script load each stay below their own limit here;
// together they are 90 ms.
func TestSlowStepsShareOneBudget(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	proxy := newProxy(t, plain(t, srv).Options().Addr)
	proxy.delay.Store(int64(30 * time.Millisecond))
	var took []time.Duration
	for range 5 {
		locks := lockmgr.NewSeats(openClient(t, "redis://"+proxy.addr()), lockmgr.DefaultTTL, nil)
		took = append(took, timed(func() { request(t, locks) }))
	}
	assertPromised(t, took)
}

func TestSlowRedisWithinTheBudgetIsUsed(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	proxy := newProxy(t, plain(t, srv).Options().Addr)
	locks := newLocks(t, "redis://"+proxy.addr())
	proxy.delay.Store(int64(20 * time.Millisecond))
	mustAcquire(t, locks, lena, 14).Release(t.Context())
}

func TestStartsWithoutRedisAndFindsItLater(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	must(t, srv.Redis.Kill())
	locks := lockmgr.NewSeats(openClient(t, srv.RedisURL), lockmgr.DefaultTTL, nil)
	var took []time.Duration
	for range 5 {
		took = append(took, timed(func() { request(t, locks) }))
	}
	assertPromised(t, took)
	must(t, srv.Redis.Restart(t.Context()))
	untilAcquired(t, locks)
}

// A pool that failed to dial PoolSize times used to refuse without looking, for
// up to a second after Redis was back.
func TestClientDialsAgainAfterManyFailures(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	must(t, srv.Redis.Kill())
	rdb := openClient(t, srv.RedisURL+"?pool_size=1")
	for range 5 {
		if err := rdb.Ping(t.Context()).Err(); err == nil {
			t.Fatal("a dead Redis answered")
		}
	}
	must(t, srv.Redis.Restart(t.Context()))
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("first call after the restart: %v", err)
	}
}

func TestFlushedRedisStaysInUse(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	locks := newLocks(t, srv.RedisURL)
	for range 20 {
		lease := mustAcquire(t, locks, lena, 14)
		do(t, srv, "FLUSHALL")
		next := mustAcquire(t, locks, omar, 14)
		lease.Release(t.Context())
		if got := locks.Acquire(t.Context(), event, []int32{14}, lena); got.Verdict != lockmgr.Busy {
			t.Fatalf("got %v, want busy: Lena's release must leave Omar's lock", got.Verdict)
		}
		next.Release(t.Context())
	}
}

func TestBadURLIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := lockmgr.Open("http://127.0.0.1"); err == nil {
		t.Error("want an error")
	}
}

// request is what a sale does with the locks.
func request(t *testing.T, locks *lockmgr.Seats) {
	t.Helper()
	lease := locks.Acquire(t.Context(), event, []int32{14, 15}, lena)
	if lease.Verdict == lockmgr.Busy {
		t.Error("busy on a seat nobody else wants")
	}
	lease.Release(t.Context())
}

// assertPromised allows single outliers for the scheduler of a loaded machine;
// a limit that does not hold shows in the median.
func assertPromised(t *testing.T, took []time.Duration) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(took))
	if median, most := sorted[len(sorted)/2], sorted[len(sorted)-1]; median > promised || most > 4*promised {
		t.Errorf("requests in flight paid %v, want at most %v each", took, promised)
	}
}

// untilAcquired reports how long it takes until Redis is in use again.
func untilAcquired(t *testing.T, locks *lockmgr.Seats) time.Duration {
	t.Helper()
	// The owner is new, so that a lock left over from the fault counts as use too.
	owner := lockmgr.Owner{Caller: "after", Key: "after"}
	took := timed(func() {
		waitFor(t, "Redis to be in use again", func() bool {
			lease := locks.Acquire(t.Context(), event, []int32{99}, owner)
			lease.Release(t.Context())
			return lease.Verdict == lockmgr.Acquired
		})
	})
	if took > recovery {
		t.Errorf("back in use after %v, want at most %v", took, recovery)
	}
	return took
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
