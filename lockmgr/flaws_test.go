package lockmgr_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/lockmgr"
)

// The numbers are those of TestTheUsualLocksLoseInTheseInterleavings; from 14 on
// there is no interleaving to lose in, there is nothing at all.

const briefLease = 250 * time.Millisecond

// brief has leases that a test can wait for. Its sessions must be renewed.
func brief(t testing.TB) office {
	o := newOffice(t)
	o.Shorten(briefLease, briefLease, time.Minute, time.Minute)
	return o
}

// keep renews a lock for so long. It begins anew where the machine stood still
// for a lease between two renewals.
func (o office) keep(res string, s lockmgr.Session, lease, long time.Duration) {
	o.t.Helper()
	refs := []lockmgr.SessionRef{{ID: s.ID, Gen: s.Gen}, {ID: "holds nothing", Gen: 1}}
	last := time.Now()
	l := o.take(res, s)
	waitFor(o.t, "renewals", func() bool {
		start := time.Now()
		lost, err := o.Renew(o.t.Context(), root, s.Node, refs)
		must(o.t, err)
		switch {
		case slices.Equal(lost, []string{"holds nothing"}):
		case time.Since(last) >= lease:
			start = time.Now()
			l = o.take(res, s)
		default:
			o.t.Fatalf("renewed after %v of a lease of %v: lost %v", time.Since(last), lease, lost)
		}
		last = start
		return time.Since(l.Since) > long
	})
}

// get waits until a session gets a lock.
func (o office) get(res string, s lockmgr.Session) lockmgr.Lock {
	o.t.Helper()
	var l lockmgr.Lock
	waitFor(o.t, s.ID+" to get "+res, func() (ok bool) {
		var err error
		l, err = o.Acquire(o.t.Context(), root, res, s, false)
		return err == nil
	})
	return l
}

func Test01ACloseFreesNoLockThatSomebodyElseGotAfterALapse(t *testing.T) {
	t.Parallel()
	o := brief(t)
	old := o.take("88/filters", lenaTab)
	o.get("88/filters", omarTab)
	o.Shorten(time.Minute, time.Minute, time.Minute, time.Minute)
	mine := o.get("88/filters", omarTab)
	o.release("88/filters", lenaTab, old.Token, false)
	o.end(lenaTab)
	o.refused("88/filters", lenaTwo, omarTab)
	o.release("88/filters", omarTab, mine.Token, true)
}

func Test02UnlockAndItsIndexAreOne(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.take("88/filters", lenaTab)
	o.release("88/filters", lenaTab, l.Token, true)
	o.wantEmpty(root)
	o.take("88/filters", omarTab)
	o.end(lenaTab)
	o.refused("88/filters", lenaTwo, omarTab)
}

func Test03AcquireThatComesAfterTheCloseIsRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.Shorten(lockmgr.EditLease, lockmgr.DetachGrace, 50*time.Millisecond, time.Minute)
	for _, leave := range []func(lockmgr.Session){o.end, o.detach} {
		leave(lenaTab)
		for _, s := range []lockmgr.Session{lenaTab, {ID: lenaTab.ID, Gen: 1, Node: "node-b"}} {
			if _, err := o.Acquire(t.Context(), root, "88/filters", s, false); !errors.Is(err, lockmgr.ErrSessionClosed) {
				t.Errorf("acquire after the close: %v", err)
			}
		}
		waitFor(t, "the record to go", func() bool { return o.sweep() == -1 })
		o.wantEmpty(root)
	}
	// A page that is back closes what its older generation still has under way.
	_, err := o.Attach(t.Context(), root, next(lenaTab, "node-b"))
	must(t, err)
	if _, err := o.Acquire(t.Context(), root, "88/filters", lenaTab, false); !errors.Is(err, lockmgr.ErrSessionClosed) {
		t.Errorf("acquire of the generation before: %v", err)
	}
	o.take("88/filters", next(lenaTab, "node-b"))
}

func Test04AcquireBesideTheCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 100 {
		s := lockmgr.Session{ID: fmt.Sprint("tab ", i), Gen: 1, Node: "n"}
		o.take("89/filters", s)
		var both sync.WaitGroup
		both.Go(func() { _, _ = o.Acquire(t.Context(), root, "88/filters", s, false) })
		both.Go(func() { _ = o.End(t.Context(), root, s, lockmgr.WhyLeft) })
		both.Wait()
		if locks, _, _, err := o.Locks(t.Context(), root); err != nil || len(locks) > 0 {
			t.Fatalf("round %d: left %+v %v", i, locks, err)
		}
	}
}

func Test05TheIndexLivesAsLongAsTheLock(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const ttl = 300 * time.Millisecond
	o.Shorten(briefLease, time.Minute, time.Minute, ttl)
	o.keep("88/filters", lenaTab, briefLease, 3*ttl)
	o.end(lenaTab)
	said := o.said(root)
	if last := said[len(said)-1]; last != "lock-released 88/filters lena-tab-1 left" {
		t.Errorf("the close said %q", last)
	}
	o.take("88/filters", omarTab)
}

func Test06NoKeyIsEverWithoutAnEnd(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.take("88/filters", lenaTab)
	for _, step := range []func(){
		func() {},
		func() { o.seize("", omarTab) },
		func() { o.detach(omarTab) },
		func() { _, _ = o.Attach(t.Context(), root, next(omarTab, "node-a")) },
		func() { o.release("88/filters", lenaTab, l.Token, false) },
		func() { _, _ = o.Renew(t.Context(), root, "node-a", []lockmgr.SessionRef{{ID: omarTab.ID, Gen: 2}}) },
		func() { _ = o.Touch(t.Context(), root, omarTab.ID) },
		func() { o.end(next(omarTab, "node-a")) },
		func() { _, _, _, _ = o.Locks(t.Context(), "another root") },
		func() { o.sweep() },
	} {
		step()
		o.wantEnds()
	}
}

// wantEnds wants a TTL of at most a minute on every key.
func (o office) wantEnds() {
	o.t.Helper()
	for _, key := range o.keys() {
		if ttl := o.rdb.PTTL(o.t.Context(), key).Val(); ttl < 0 || ttl > lockmgr.EditTTL {
			o.t.Errorf("%s lives for %v", key, ttl)
		}
	}
}

func Test07OneOfGroupAndMemberWins(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for i := range 100 {
		a := lockmgr.Session{ID: fmt.Sprint("a", i), Gen: 1, Node: "n"}
		b := lockmgr.Session{ID: fmt.Sprint("b", i), Gen: 1, Node: "n"}
		var won atomic.Int32
		var both sync.WaitGroup
		try := func(res string, s lockmgr.Session) {
			if _, err := o.Acquire(t.Context(), root, res, s, false); err == nil {
				won.Add(1)
			}
		}
		both.Go(func() { try("", a) })
		both.Go(func() { try("88/filters", b) })
		both.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d of group and member won", i, won.Load())
		}
		o.end(a)
		o.end(b)
	}
}

func Test08AGroupsReleaseLeavesTheOtherGroup(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for who, r := range map[*lockmgr.Session]string{&lenaTab: "12", &omarTab: "13"} {
		_, err := o.Acquire(t.Context(), r, "", *who, false)
		must(t, err)
	}
	must(t, o.End(t.Context(), "12", lenaTab, lockmgr.WhyLeft))
	if _, err := o.Acquire(t.Context(), "13", "89/filters", lenaTwo, false); err == nil {
		t.Error("a page of Omar's group was given away")
	}
}

func Test09TheLateEndOfAnOlderSocketChangesNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.take("88/filters", lenaTab)
	back := lenaTab
	for i := range 5 { // its old socket is still half open each time
		old := back
		back = next(back, fmt.Sprint("node-", i))
		locks, err := o.Attach(t.Context(), root, back)
		if err != nil || len(locks) != 1 || locks[0].Token != l.Token || locks[0].Resource != "88/filters" {
			t.Fatalf("attached to %+v %v, want token %d", locks, err, l.Token)
		}
		o.detach(old)
		o.end(old)
		o.end(lockmgr.Session{ID: back.ID, Gen: back.Gen, Node: "another"})
		if _, err := o.Attach(t.Context(), root, old); !errors.Is(err, lockmgr.ErrSessionClosed) {
			t.Errorf("the old socket attaches: %v", err)
		}
		lost, err := o.Renew(t.Context(), root, old.Node, []lockmgr.SessionRef{{ID: old.ID, Gen: old.Gen}})
		if err != nil || len(lost) != 1 {
			t.Errorf("the old socket renews: %v %v", lost, err)
		}
		o.refused("88/filters", omarTab, lenaTab)
	}
	o.release("88/filters", lenaTab, l.Token, true)
	o.wantSaid("lock-acquired 88/filters lena-tab-1", "lock-released 88/filters lena-tab-1 unlocked")
}

func Test10TheOtherTabIsToldAndMayTakeOver(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.take("88/filters", lenaTab)
	if held := o.refused("88/filters", lenaTwo, lenaTab); !held.OwnOtherTab || held.By.Detached || held.By.Token != 0 {
		t.Errorf("the second tab is told %+v, want her own other tab", held)
	}
	o.seize("88/filters", lenaTwo)
	o.release("88/filters", lenaTab, l.Token, false)
	o.end(lenaTab)
	o.refused("88/filters", omarTab, lenaTwo)
}

func Test11LocksOfAKilledProcessEndWithTheirLease(t *testing.T) {
	t.Parallel()
	o := brief(t)
	o.take("88/filters", lenaTab)
	o.take("/variables", lenaTab)
	waitFor(t, "the lease to end", func() bool {
		next := o.sweep()
		if next > briefLease {
			t.Fatalf("next sweep in %v, after the lease", next)
		}
		return next == -1
	})
	o.wantSaid("lock-acquired 88/filters lena-tab-1", "lock-acquired /variables lena-tab-1",
		"lock-released /variables lena-tab-1 expired", "lock-released 88/filters lena-tab-1 expired")
	o.wantEmpty(root)
}

func Test12AFullRedisLeavesNoHalfLock(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.take("88/filters", lenaTab)
	must(t, o.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if _, err := o.Acquire(t.Context(), root, "", lenaTab, false); err == nil {
		t.Fatal("a full Redis gave a lock")
	}
	o.release("88/filters", lenaTab, l.Token, true)
	o.wantEmpty(root)
	o.wantSaid("lock-acquired 88/filters lena-tab-1", "lock-released 88/filters lena-tab-1 unlocked")
}

func Test13AllKeysOfARootAreInOneSlot(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.take("88/filters", lenaTab)
	o.take("", lenaTab)
	for _, key := range o.keys() {
		if slot(key) != slot(topicOf(root).Channel) {
			t.Errorf("%s is in slot %d, the channel in %d", key, slot(key), slot(topicOf(root).Channel))
		}
	}
}

func Test14RenewalKeepsALockAndItsLossIsTold(t *testing.T) {
	t.Parallel()
	o := brief(t)
	o.keep("88/filters", lenaTab, briefLease, 3*briefLease)
	o.get("88/filters", omarTab)
	lost, err := o.Renew(t.Context(), root, lenaTab.Node, []lockmgr.SessionRef{{ID: lenaTab.ID, Gen: 1}})
	if err != nil || len(lost) != 1 || lost[0] != lenaTab.ID {
		t.Errorf("renewal after the end: lost %v %v", lost, err)
	}
}

func Test15WhoSleptThroughTheLeaseIsRefused(t *testing.T) {
	t.Parallel()
	o := brief(t)
	old := o.take("88/filters", lenaTab)
	taken := o.get("88/filters", omarTab)
	if taken.Token <= old.Token {
		t.Errorf("token %d after %d", taken.Token, old.Token)
	}
	o.release("88/filters", lenaTab, old.Token, false)
	// A Redis that forgot everything repeats no token either.
	must(t, o.rdb.FlushAll(t.Context()).Err())
	if again := o.take("88/filters", lenaTab); again.Token <= taken.Token {
		t.Errorf("token %d after %d and a flush", again.Token, taken.Token)
	}
	o.release("88/filters", lenaTab, old.Token, false)
}

func Test18AnEndNobodyRanIsSaidByTheNextCall(t *testing.T) {
	t.Parallel()
	o := brief(t)
	o.take("88/filters", lenaTab)
	o.get("88/filters", omarTab)
	o.wantSaid("lock-acquired 88/filters lena-tab-1", "lock-released 88/filters lena-tab-1 expired", "lock-acquired 88/filters omar-tab-1")
}

func Test20UnlockNeedsTheHoldersSessionAndToken(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.take("88/filters", lenaTab)
	o.release("88/filters", omarTab, l.Token, false)
	o.release("88/filters", lenaTab, 0, false)
	o.refused("88/filters", omarTab, lenaTab)
}

// failing loses the next calls before they reach Redis.
type failing struct{ left atomic.Int32 }

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.left.Add(-1) >= 0 {
			cmd.SetErr(errCrash)
			return errCrash
		}
		return next(ctx, cmd)
	}
}

func Test21AReleaseGoesOnWhenItsRequestIsGoneOrRedisFails(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var f failing
	o.rdb.AddHook(&f)
	gone, cancel := context.WithCancel(t.Context())
	cancel()

	l := o.take("88/filters", lenaTab)
	if ok, err := o.Release(gone, root, "88/filters", lenaTab.ID, l.Token); !ok || err != nil {
		t.Errorf("release: %v %v", ok, err)
	}
	o.take("88/filters", lenaTab)
	f.left.Store(3)
	must(t, o.Detach(gone, root, lenaTab))
	f.left.Store(3)
	must(t, o.End(gone, root, lenaTab, lockmgr.WhyLeft))
	o.take("88/filters", omarTab)
}

func Test23AReloadKeepsTheLock(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.take("88/filters", lenaTab)
	o.detach(lenaTab)
	o.detach(lenaTab)
	if held := o.refused("88/filters", omarTab, lenaTab); !held.By.Detached {
		t.Error("nobody sees that her page is gone")
	}
	if _, err := o.Acquire(t.Context(), root, "89/filters", lenaTab, false); !errors.Is(err, lockmgr.ErrSessionClosed) {
		t.Errorf("a page that is gone takes a lock: %v", err)
	}
	back := next(lenaTab, "node-b")
	locks, err := o.Attach(t.Context(), root, back)
	if err != nil || len(locks) != 1 || locks[0].Token != l.Token {
		t.Fatalf("back with %+v %v, want token %d", locks, err, l.Token)
	}
	o.Shorten(time.Minute, 30*time.Millisecond, time.Minute, time.Minute)
	o.detach(back)
	o.get("88/filters", omarTab)
	o.wantSaid("lock-acquired 88/filters lena-tab-1", "lock-detached 88/filters lena-tab-1", "lock-attached 88/filters lena-tab-1",
		"lock-detached 88/filters lena-tab-1", "lock-released 88/filters lena-tab-1 left", "lock-acquired 88/filters omar-tab-1")
}
