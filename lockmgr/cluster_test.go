package lockmgr_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/lockmgr"
)

func TestSeatsOfACluster(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, dbtest.OwnCluster(t).ClusterURL)
	for event := range int64(30) { // on all masters
		waitFor(t, "a lock", func() bool { // the first of each master connects
			lease := locks.Acquire(t.Context(), event, []int32{1, 2, 3}, lockmgr.Owner{Caller: "lena", Key: "1"})
			defer lease.Release(t.Context())
			if lease.Verdict != lockmgr.Acquired {
				return false
			}
			other := locks.Acquire(t.Context(), event, []int32{3, 4}, lockmgr.Owner{Caller: "omar", Key: "1"})
			if other.Verdict != lockmgr.Busy {
				t.Errorf("event %d: the second is %v", event, other.Verdict)
			}
			return true
		})
	}
}

func TestRandomInterleavingsLoseNothingOnACluster(t *testing.T) {
	opt, err := redis.ParseClusterURL(dbtest.OwnCluster(t).ClusterURL)
	must(t, err)
	opt.ClusterStateReloadInterval = time.Second
	rdb := redis.NewClusterClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	first := rand.Uint64()
	t.Logf("seed %d", first)
	interleave(t, rdb, first, 100)
}
