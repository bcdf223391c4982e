package realtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/realtime"
)

// cluster is a client of a cluster of three.
func cluster(t *testing.T, url string) *redis.ClusterClient {
	t.Helper()
	rdb, err := realtime.OpenRedis(url)
	must(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb.(*redis.ClusterClient)
}

// moveSlot moves the slot of a key, and what is in it, to another master, as an operator does.
func moveSlot(t *testing.T, rdb *redis.ClusterClient, key string) {
	t.Helper()
	ctx := t.Context()
	slot := int(rdb.ClusterKeySlot(ctx, key).Val())
	from, err := rdb.MasterForKey(ctx, key)
	must(t, err)
	var to *redis.Client
	must(t, rdb.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		if c.Options().Addr != from.Options().Addr {
			to = c // any other
		}
		return nil
	}))
	id := func(c *redis.Client) string { return c.Do(ctx, "CLUSTER", "MYID").Val().(string) }
	must(t, to.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from)).Err())
	must(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to)).Err())
	host, port := to.Options().Addr[:len("127.0.0.1")], to.Options().Addr[len("127.0.0.1:"):]
	for {
		keys := from.ClusterGetKeysInSlot(ctx, slot, 100).Val()
		if len(keys) == 0 {
			break
		}
		args := []any{"MIGRATE", host, port, "", 0, 1000, "KEYS"}
		for _, k := range keys {
			args = append(args, k)
		}
		must(t, from.Do(ctx, args...).Err())
	}
	must(t, to.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", id(to)).Err())
	must(t, from.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", id(to)).Err())
}

func TestTopicsOfAClusterAreHeardAndCounted(t *testing.T) {
	t.Parallel()
	rdb := cluster(t, dbtest.OwnCluster(t).ClusterURL)
	b := newBus(t, rdb)
	for i := range 40 { // in all partitions
		topic := fmt.Sprint("configurator:", i)
		r, e, from := followed(t, rdb, b, topic)
		view(t, r, topic, 1)
		must(t, r.End(t.Context(), topic, visit(1)))
		until(t, 5*time.Second, topic+": joined and left", func() bool { n, _ := e.heard(); return n == 2 })
		e.inOrder(t, from)
		if n, err := r.Count(t.Context(), topic, 3); err != nil || n != 3 {
			t.Errorf("%d viewers, %v", n, err)
		}
	}
}

func TestSlotThatMovesIsHeardFromItsNewMaster(t *testing.T) {
	t.Parallel()
	rdb := cluster(t, dbtest.OwnCluster(t).ClusterURL)
	b := newBus(t, rdb)
	topic := "configurator:moves"
	meta, _, _, _ := realtime.TopicKeys(topic)
	r, e, from := followed(t, rdb, b, topic)
	for i := range 3 {
		view(t, r, topic, 10*i)
		moveSlot(t, rdb, meta)
		moved := time.Now()
		view(t, r, topic, 10*i+1)
		until(t, time.Until(moved.Add(5*time.Second)), "both are heard", func() bool { n, _ := e.heard(); return n == 2*i+2 })
	}
	e.inOrder(t, from)
	if _, lost := e.heard(); lost > 0 {
		t.Errorf("lost %d times, and nothing was", lost)
	}
}

func TestMasterThatIsKilledIsBackForEverybody(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnCluster(t)
	rdb := cluster(t, srv.ClusterURL)
	b := newBus(t, rdb)
	ears, rosters := map[string]*ear{}, map[string]*realtime.Roster{}
	for i := range 12 {
		topic := fmt.Sprint("configurator:killed-", i)
		rosters[topic], ears[topic], _ = followed(t, rdb, b, topic)
	}
	must(t, srv.Cluster[1].Kill())
	must(t, srv.Cluster[1].Restart(t.Context()))
	back := time.Now()
	for topic, e := range ears {
		until(t, time.Until(back.Add(6*time.Second)), topic+" is heard again", func() bool {
			if _, err := rosters[topic].View(t.Context(), topic, visit(int(time.Now().UnixNano()%1e9))); err != nil {
				return false
			}
			if _, lost := e.heard(); lost > 0 {
				if now, err := rosters[topic].Viewers(t.Context(), topic); err == nil {
					b.Follow(topic, now.Epoch, now.Seq)
				}
			}
			n, _ := e.heard()
			return n > 0
		})
	}
}
