package lockmgr_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatfence/db/dbtest"
	"seatfence/lockmgr"
)

const event = 7

var (
	lena = lockmgr.Owner{Caller: "lena", Key: "lena-1"}
	omar = lockmgr.Owner{Caller: "omar", Key: "omar-1"}
)

func TestOneOfManyCallersGetsTheSeat(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, dbtest.Redis(t))

	leases := make([]lockmgr.Lease, 64)
	var ready, done sync.WaitGroup
	ready.Add(len(leases))
	for i := range leases {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			leases[i] = locks.Acquire(t.Context(), event, []int32{14}, lockmgr.Owner{Caller: fmt.Sprint("buyer ", i), Key: "k"})
		})
	}
	done.Wait()

	count := map[lockmgr.Verdict]int{}
	for _, l := range leases {
		count[l.Verdict]++
		if l.Verdict == lockmgr.Busy && !slices.Equal(l.Busy, []int32{14}) {
			t.Errorf("busy names %v, want seat 14", l.Busy)
		}
	}
	// A crowd's first connections may be slow enough to be skipped on a loaded
	// machine; nobody else may get the lock.
	if count[lockmgr.Acquired] > 1 || count[lockmgr.Duplicate] > 0 {
		t.Errorf("verdicts %v, want one acquired and the rest busy", count)
	}
	if count[lockmgr.Acquired]+count[lockmgr.Skipped] == 0 {
		t.Errorf("verdicts %v, nobody got through", count)
	}
}

func TestOneForeignLockLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	locks := newLocks(t, srv.RedisURL)

	mustAcquire(t, locks, omar, 3, 5)
	lease := locks.Acquire(t.Context(), event, []int32{1, 3, 4, 5}, lena)
	if lease.Verdict != lockmgr.Busy || !slices.Equal(lease.Busy, []int32{3, 5}) {
		t.Fatalf("got %v %v, want busy [3 5]", lease.Verdict, lease.Busy)
	}
	lease.Release(t.Context())
	if got := keys(t, plain(t, srv)); !slices.Equal(got, []string{"seat:{7}:3", "seat:{7}:5"}) {
		t.Errorf("locks left: %v, want Omar's alone", got)
	}
}

func TestSeatsInOppositeOrdersExcludeEachOther(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	locks := newLocks(t, srv.RedisURL)

	var holders [4]atomic.Int32
	var won atomic.Int32
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			seats := []int32{0, 1, 2, 3}
			if w%2 == 1 {
				slices.Reverse(seats)
			}
			seats = seats[:2+w%3]
			for i := range 200 {
				lease := locks.Acquire(t.Context(), event, seats, lockmgr.Owner{Caller: fmt.Sprint(w), Key: fmt.Sprint(i)})
				if lease.Verdict != lockmgr.Acquired {
					continue
				}
				won.Add(1)
				for _, s := range seats {
					if holders[s].Add(1) > 1 {
						t.Errorf("seat %d has two holders", s)
					}
				}
				for _, s := range seats {
					holders[s].Add(-1)
				}
				lease.Release(t.Context())
			}
		})
	}
	wg.Wait()
	if won.Load() == 0 {
		t.Error("nobody ever got the seats")
	}
}

func TestSeatNamedTwiceDoesNotBlockItself(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	lease := mustAcquire(t, newLocks(t, srv.RedisURL), lena, 5, 5)
	lease.Release(t.Context())
	if got := keys(t, plain(t, srv)); len(got) > 0 {
		t.Errorf("locks left: %v", got)
	}
}

func TestSameSeatOfAnotherEventIsFree(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, dbtest.Redis(t))
	mustAcquire(t, locks, omar, 14)
	if lease := locks.Acquire(t.Context(), event+1, []int32{14}, lena); lease.Verdict != lockmgr.Acquired {
		t.Errorf("got %v, want acquired", lease.Verdict)
	}
}

func TestLateReleaseLeavesTheNextHoldersLock(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := plain(t, srv)
	locks := lockmgr.NewSeats(openClient(t, srv.RedisURL), 200*time.Millisecond, nil)
	warm(t, locks)

	late := mustAcquire(t, locks, lena, 14)
	waitFor(t, "Lena's lock to expire", func() bool { return len(keys(t, rdb)) == 0 })
	next := mustAcquire(t, newLocks(t, srv.RedisURL), omar, 14)
	before := rdb.Get(t.Context(), "seat:{7}:14").Val()
	late.Release(t.Context())
	if after := rdb.Get(t.Context(), "seat:{7}:14").Val(); after != before || after == "" {
		t.Errorf("the late release turned Omar's lock %q into %q", before, after)
	}
	next.Release(t.Context())
	if got := keys(t, rdb); len(got) > 0 {
		t.Errorf("locks left: %v", got)
	}
}

func TestReleaseOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	lease := newLocks(t, srv.RedisURL).Acquire(ctx, event, []int32{14}, lena)
	cancel()
	lease.Release(ctx)
	lease.Release(ctx)
	if got := keys(t, plain(t, srv)); len(got) > 0 {
		t.Errorf("locks left: %v", got)
	}
}

func TestSameKeyIsADuplicateNotBusy(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	locks := newLocks(t, srv.RedisURL)

	first := mustAcquire(t, locks, lena, 1, 2)
	second := locks.Acquire(t.Context(), event, []int32{1, 2}, lena)
	if second.Verdict != lockmgr.Duplicate {
		t.Fatalf("got %v, want duplicate", second.Verdict)
	}
	second.Release(t.Context())
	if got := keys(t, plain(t, srv)); len(got) != 2 {
		t.Errorf("locks left: %v, want both of the first request", got)
	}
	if lease := locks.Acquire(t.Context(), event, []int32{1}, lockmgr.Owner{Caller: omar.Caller, Key: lena.Key}); lease.Verdict != lockmgr.Busy {
		t.Errorf("another caller with the same key: got %v, want busy", lease.Verdict)
	}
	first.Release(t.Context())
	mustAcquire(t, locks, lena, 1, 2)
}

func TestOwnLockWithAnotherKeyIsTakenOver(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	locks := newLocks(t, srv.RedisURL)

	old := mustAcquire(t, locks, lena, 14)
	mustAcquire(t, locks, lockmgr.Owner{Caller: lena.Caller, Key: "lena-2"}, 14)
	old.Release(t.Context())
	if lease := locks.Acquire(t.Context(), event, []int32{14}, omar); lease.Verdict != lockmgr.Busy {
		t.Errorf("Omar got %v, want busy: the old lease must not release the new lock", lease.Verdict)
	}
}

func TestLocksThatDoNotEndInTimeAreIgnored(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := plain(t, srv)
	now, err := rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	value := func(taken time.Time) string {
		return fmt.Sprintf("%016x:%016x:%032x:%d", 1, 2, 3, taken.UnixMilli())
	}
	tests := map[string]struct {
		value string
		ttl   time.Duration
		want  lockmgr.Verdict
	}{
		"in order":             {value(now), lockmgr.DefaultTTL, lockmgr.Busy},
		"without TTL":          {value(now), 0, lockmgr.Acquired},
		"older than its TTL":   {value(now.Add(-lockmgr.DefaultTTL - time.Second)), lockmgr.DefaultTTL, lockmgr.Acquired},
		"longer than it may":   {value(now), time.Hour, lockmgr.Acquired},
		"not written by us":    {"locked", lockmgr.DefaultTTL, lockmgr.Acquired},
		"cut after the random": {strings.TrimSuffix(value(now), fmt.Sprint(now.UnixMilli())), lockmgr.DefaultTTL, lockmgr.Acquired},
	}
	locks := newLocks(t, srv.RedisURL)
	seat := int32(0)
	for name, tt := range tests {
		seat++
		if err := rdb.Set(t.Context(), fmt.Sprintf("seat:{7}:%d", seat), tt.value, tt.ttl).Err(); err != nil {
			t.Fatal(err)
		}
		if lease := locks.Acquire(t.Context(), event, []int32{seat}, lena); lease.Verdict != tt.want {
			t.Errorf("lock %s: got %v, want %v", name, lease.Verdict, tt.want)
		}
	}
}

func TestLockExpiresAndTellsNobodysName(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := plain(t, srv)
	owner := lockmgr.Owner{Caller: "lena@example.org", Key: "order-of-lena"}
	mustAcquire(t, newLocks(t, srv.RedisURL), owner, 14)
	value := rdb.Get(t.Context(), "seat:{7}:14").Val()
	if strings.Contains(value, owner.Caller) || strings.Contains(value, owner.Key) {
		t.Errorf("lock value %q names its owner", value)
	}
	if ttl := rdb.PTTL(t.Context(), "seat:{7}:14").Val(); ttl <= 0 || ttl > lockmgr.DefaultTTL {
		t.Errorf("lock lives for %v, want up to %v", ttl, lockmgr.DefaultTTL)
	}
}

func TestLostReplyLocksNobodyOut(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := plain(t, srv)
	proxy := newProxy(t, rdb.Options().Addr)
	locks := newLocks(t, "redis://"+proxy.addr())

	proxy.swallow.Store(true)
	lost := locks.Acquire(t.Context(), event, []int32{14, 15}, lena)
	if lost.Verdict != lockmgr.Skipped {
		t.Fatalf("got %v, want skipped", lost.Verdict)
	}
	if got := keys(t, rdb); len(got) != 2 {
		t.Fatalf("locks in Redis: %v, want two whose reply was lost", got)
	}
	lost.Release(t.Context())
	if got := keys(t, rdb); len(got) > 0 {
		t.Errorf("locks left after release: %v", got)
	}

	proxy.swallow.Store(true)
	locks.Acquire(t.Context(), event, []int32{14}, lena)
	if again := locks.Acquire(t.Context(), event, []int32{14}, lockmgr.Owner{Caller: lena.Caller, Key: "lena-2"}); again.Verdict != lockmgr.Acquired {
		t.Errorf("next click of the same caller: got %v, want acquired", again.Verdict)
	}
}

// A connection that breaks leaves time for a retry, which would meet the lock of
// its own first attempt.
func TestCutConnectionIsNotADuplicateOfItself(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := plain(t, srv)
	proxy := newProxy(t, rdb.Options().Addr)
	locks := newLocks(t, "redis://"+proxy.addr())

	proxy.cut.Store(true)
	lost := locks.Acquire(t.Context(), event, []int32{14}, lena)
	if lost.Verdict != lockmgr.Skipped {
		t.Errorf("got %v, want skipped", lost.Verdict)
	}
	lost.Release(t.Context())
	if got := keys(t, rdb); len(got) > 0 {
		t.Errorf("locks left after release: %v", got)
	}
}

func TestScriptFlushInMidFlightGoesUnnoticed(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := plain(t, srv)
	locks := newLocks(t, srv.RedisURL)
	for range 50 {
		lease := mustAcquire(t, locks, lena, 14)
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		lease.Release(t.Context())
		if got := keys(t, rdb); len(got) > 0 {
			t.Fatalf("locks left: %v", got)
		}
		rdb.ScriptFlush(t.Context())
	}
}

func TestLocksSwitchedOffSkip(t *testing.T) {
	t.Parallel()
	var off *lockmgr.Seats
	lease := off.Acquire(t.Context(), event, []int32{14}, lena)
	if lease.Verdict != lockmgr.Skipped {
		t.Errorf("got %v, want skipped", lease.Verdict)
	}
	lease.Release(t.Context())
}

func TestOutcomesAreCounted(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	var seen tally
	locks := lockmgr.NewSeats(openClient(t, srv.RedisURL), lockmgr.DefaultTTL, seen.add)
	warm(t, locks)
	seen.reset()

	lease := mustAcquire(t, locks, lena, 1)
	locks.Acquire(t.Context(), event, []int32{1}, omar)
	locks.Acquire(t.Context(), event, []int32{1}, lena)
	lease.Release(t.Context())
	must(t, srv.Redis.Kill())
	for range 5 {
		locks.Acquire(t.Context(), event, []int32{1}, lena)
	}
	lease.Release(t.Context())
	want := map[string]int{"acquired": 1, "busy": 1, "duplicate": 1, "released": 1, "failed": 3, "skipped": 2, "unreleased": 1}
	if got := seen.counts(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	locks := newLocks(b, dbtest.Redis(b))
	for _, n := range []int32{1, 8} {
		b.Run(fmt.Sprintf("seats=%d", n), func(b *testing.B) {
			var caller atomic.Int32
			b.RunParallel(func(pb *testing.PB) {
				me := caller.Add(1)
				owner := lockmgr.Owner{Caller: fmt.Sprint(me), Key: "k"}
				seats := make([]int32, n)
				for i := range seats {
					seats[i] = me*n + int32(i)
				}
				for pb.Next() {
					lease := locks.Acquire(b.Context(), event, seats, owner)
					if lease.Verdict != lockmgr.Acquired {
						b.Fatalf("got %v", lease.Verdict)
					}
					lease.Release(b.Context())
				}
			})
		})
	}
}
