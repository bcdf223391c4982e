package lockmgr_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/internal/devstack"
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

// A master that is away costs what a Redis that is away does.
func TestMasterThatIsAwayCostsSeatsLittleAndIsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		inflict, mend func(*testing.T, *devstack.Process)
	}{
		"process stopped": {
			func(t *testing.T, p *devstack.Process) { must(t, p.Pause()) },
			func(t *testing.T, p *devstack.Process) { must(t, p.Resume()) },
		},
		"killed, restarted empty": {
			func(t *testing.T, p *devstack.Process) { must(t, p.Kill()) },
			func(t *testing.T, p *devstack.Process) { must(t, p.Restart(t.Context())) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := dbtest.OwnCluster(t)
			locks := newLocks(t, srv.ClusterURL)
			home, node := masterOf(t, srv, "seat:{7}:0")
			fault.inflict(t, home)
			var took []time.Duration
			for range 10 {
				took = append(took, timed(func() { request(t, locks) }))
			}
			assertPromised(t, took)
			time.Sleep(2 * time.Second) // longer than the other masters wait for it
			took = nil
			for range 1000 {
				took = append(took, timed(func() { request(t, locks) }))
			}
			assertPromised(t, took)
			began := time.Now()
			fault.mend(t, home)
			waitFor(t, "the cluster to take writes", func() bool { // Redis keeps a restarted master from them for two seconds
				request(t, locks) // there is always somebody who asks
				return strings.Contains(node.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
			})
			t.Logf("Redis was ready after %v", time.Since(began))
			t.Logf("recovered in %v", untilAcquired(t, locks))
		})
	}
}

// masterOf is the process that has the slot of a key, and a client of it.
func masterOf(t *testing.T, srv *devstack.Stack, key string) (*devstack.Process, *redis.Client) {
	t.Helper()
	opt, err := redis.ParseClusterURL(srv.ClusterURL)
	must(t, err)
	rdb := redis.NewClusterClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	c, err := rdb.MasterForKey(t.Context(), key)
	must(t, err)
	var pid int
	info := c.Info(t.Context(), "server").Val()
	_, info, _ = strings.Cut(info, "process_id:")
	_, err = fmt.Sscan(info, &pid)
	must(t, err)
	i := slices.IndexFunc(srv.Cluster, func(p *devstack.Process) bool { return p.Pid() == pid })
	if i < 0 {
		t.Fatalf("no process %d", pid)
	}
	return srv.Cluster[i], c
}

// As with one server: a pool that has failed to dial often enough must not refuse without looking.
func TestClusterClientDialsAgainAfterManyFailures(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnCluster(t)
	const key = "seat:{7}:0"
	rdb := openClient(t, srv.ClusterURL+"&pool_size=1")
	waitFor(t, "a first answer", func() bool { return rdb.Exists(t.Context(), key).Err() == nil })
	home, _ := masterOf(t, srv, key)
	must(t, home.Kill())
	for range 5 {
		if err := rdb.Exists(t.Context(), key).Err(); err == nil {
			t.Fatal("a dead master answered")
		}
	}
	must(t, home.Restart(t.Context()))
	back := time.Now()
	for {
		err := rdb.Exists(t.Context(), key).Err()
		if err == nil || strings.HasPrefix(err.Error(), "CLUSTERDOWN") { // it is heard, and waits for the other masters
			break
		}
		if time.Since(back) > 500*time.Millisecond {
			t.Fatalf("%v after the restart: %v", time.Since(back), err)
		}
	}
	t.Logf("heard %v after the restart", time.Since(back))
}
