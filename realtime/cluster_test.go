package realtime_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/internal/devstack"
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
	var one sync.Mutex // it asks all at once
	var to *redis.Client
	must(t, rdb.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		one.Lock()
		defer one.Unlock()
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

func TestEventsOfAClusterAreHeardOnceAndInOrder(t *testing.T) {
	t.Parallel()
	heardInOrder(t, cluster(t, dbtest.OwnCluster(t).ClusterURL))
}

func TestRosterOfAClusterInAnyOrderIsWhatItsEventsTell(t *testing.T) {
	t.Parallel()
	rosterInAnyOrder(t, cluster(t, dbtest.OwnCluster(t).ClusterURL))
}

func TestMessagesWithoutOrderAreHeardFromTheNewMasterOfTheirSlot(t *testing.T) {
	t.Parallel()
	rdb := cluster(t, dbtest.OwnCluster(t).ClusterURL)
	b, e, topic := newBus(t, rdb), &ear{}, "event:moves"
	b.Listen(topic, false, e)
	heardAfter := func(before int) func() bool {
		return func() bool {
			_ = b.Publish(t.Context(), topic, "e", 1, []byte(`[]`))
			n, _ := e.heard()
			return n > before
		}
	}
	until(t, 5*time.Second, "a message", heardAfter(0))
	meta, _, _, _ := realtime.TopicKeys(topic)
	moveSlot(t, rdb, meta)
	moved := time.Now()
	before, _ := e.heard()
	until(t, time.Until(moved.Add(5*time.Second)), "a message after the move", heardAfter(before))
	if _, lost := e.heard(); lost == 0 {
		t.Error("the listener was not told that messages may be missing")
	}
}

func TestMasterThatWasAwayIsHeardFiveSecondsAfter(t *testing.T) {
	t.Parallel()
	for what, away := range map[string]func(*devstack.Process) error{
		"black hole": func(p *devstack.Process) error {
			if err := p.Pause(); err != nil {
				return err
			}
			time.Sleep(6 * time.Second) // longer than the bus and the other masters wait for a sign of life
			return p.Resume()
		},
		"killed": func(p *devstack.Process) error {
			if err := p.Kill(); err != nil {
				return err
			}
			return p.Restart(context.Background())
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			masterAway(t, away)
		})
	}
}

// masterAway wants all topics, of all masters, heard within five seconds of the return of one.
func masterAway(t *testing.T, away func(*devstack.Process) error) {
	t.Helper()
	srv := dbtest.OwnCluster(t)
	rdb := cluster(t, srv.ClusterURL)
	b := newBus(t, rdb)
	type watched struct {
		roster *realtime.Roster
		ear    *ear
		before int
	}
	all := map[string]*watched{}
	for i := range 16 {
		topic := fmt.Sprint("configurator:away-", i)
		r, e, _ := followed(t, rdb, b, topic)
		view(t, r, topic, 0)
		until(t, 5*time.Second, topic+" is heard", func() bool { n, _ := e.heard(); return n == 1 })
		all[topic] = &watched{roster: r, ear: e}
	}
	must(t, away(srv.Cluster[1]))
	back, next := time.Now(), 1
	for _, w := range all {
		w.before, _ = w.ear.heard()
	}
	for len(all) > 0 {
		for topic, w := range all {
			n, lost := w.ear.heard()
			if n > w.before {
				delete(all, topic)
				continue
			}
			if lost > 0 { // as its owner does: read what there is, and go on from there
				if now, err := w.roster.Viewers(t.Context(), topic); err == nil {
					b.Follow(topic, now.Epoch, now.Seq)
				}
			}
			next++
			_, _ = w.roster.View(t.Context(), topic, visit(next)) // refused while the cluster finds itself
		}
		if took := time.Since(back); took > 5*time.Second {
			t.Fatalf("%d topics are not heard %v after", len(all), took)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("all heard %v after", time.Since(back))
}
