package realtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/internal/devstack"
	"seatfence/realtime"
)

// patient is a client as the stream's are.
func patient(t testing.TB, url string) *redis.Client {
	t.Helper()
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout, opt.ContextTimeoutEnabled = time.Second, time.Second, time.Second, true
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func newBus(t testing.TB, rdb redis.UniversalClient) *realtime.Bus {
	t.Helper()
	b := realtime.NewBus(rdb, slog.New(slog.DiscardHandler))
	t.Cleanup(b.Stop)
	return b
}

// ear writes down what a listener is told.
type ear struct {
	mu   sync.Mutex
	seqs []int64
	data []string
	lost int
}

func (e *ear) Message(_ string, seq int64, data json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seqs, e.data = append(e.seqs, seq), append(e.data, string(data))
}

func (e *ear) Lost() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost++
}

func (e *ear) heard() (n, lost int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.seqs), e.lost
}

// told reports whether the last thing that was heard has a text in it.
func (e *ear) told(text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.data) > 0 && strings.Contains(e.data[len(e.data)-1], text)
}

// inOrder fails unless exactly the numbers after from were heard, each once.
func (e *ear) inOrder(t *testing.T, from int64) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, seq := range e.seqs {
		if seq != from+int64(i)+1 {
			t.Fatalf("heard %v after %d", e.seqs, from)
		}
	}
}

func until(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func visit(i int) realtime.Visit {
	return realtime.Visit{ID: fmt.Sprint("session-", i), Gen: 1, Node: "n1", Viewer: realtime.Viewer{User: fmt.Sprint("user-", i), Name: "Lena"}}
}

// followed is a topic that a bus listens to from its present on.
func followed(t *testing.T, rdb redis.UniversalClient, b *realtime.Bus, topic string) (*realtime.Roster, *ear, int64) {
	t.Helper()
	r, e := realtime.NewRoster(rdb, "n1"), &ear{}
	b.Listen(topic, true, e)
	now, err := r.Viewers(t.Context(), topic)
	must(t, err)
	b.Follow(topic, now.Epoch, now.Seq)
	return r, e, now.Seq
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func view(t *testing.T, r *realtime.Roster, topic string, i int) {
	t.Helper()
	if _, err := r.View(t.Context(), topic, visit(i)); err != nil {
		t.Fatal(err)
	}
}

func TestEventsAreHeardOnceAndInOrderWhateverTheirMessagesDo(t *testing.T) {
	t.Parallel()
	heardInOrder(t, patient(t, dbtest.Redis(t)))
}

func heardInOrder(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	b := newBus(t, rdb)
	topic := fmt.Sprint("configurator:order-", time.Now().UnixNano())
	meta, stream, channel, _ := realtime.TopicKeys(topic)
	r, e, from := followed(t, rdb, b, topic)
	ctx := t.Context()
	for i := range 20 {
		view(t, r, topic, i)
		now, err := r.Viewers(ctx, topic)
		must(t, err)
		// Doubled, of the past, far ahead, and no message at all.
		for _, seq := range []int64{now.Seq, now.Seq - 1, now.Seq + 1000} {
			must(t, rdb.SPublish(ctx, channel, fmt.Sprintf(`{"e":%q,"s":%d,"d":{"type":"false"}}`, now.Epoch, seq)).Err())
		}
		must(t, rdb.SPublish(ctx, channel, "not a message").Err())
		// One whose message is lost.
		_, err = rdb.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.HSet(ctx, meta, "s", now.Seq+1)
			return pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, ID: fmt.Sprint(now.Seq+1, "-1"), Values: []any{"d", `{"type":"quiet"}`}}).Err()
		})
		must(t, err)
	}
	until(t, 5*time.Second, "40 events", func() bool { n, _ := e.heard(); return n == 40 })
	e.inOrder(t, from)
	for _, d := range e.data {
		if d == `{"type":"false"}` {
			t.Error("a message that no event stands behind was believed")
		}
	}
	if _, lost := e.heard(); lost > 0 {
		t.Errorf("lost %d times", lost)
	}
}

func TestListenerIsToldWhatCannotBeRepaired(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := patient(t, srv.RedisURL)
	b := newBus(t, rdb)
	for what, harm := range map[string]func(topic string){
		"everything is flushed": func(string) { must(t, rdb.FlushAll(t.Context()).Err()) },
		"the stream is cut": func(topic string) {
			meta, stream, _, _ := realtime.TopicKeys(topic)
			must(t, rdb.HIncrBy(t.Context(), meta, "s", 5).Err())
			must(t, rdb.Del(t.Context(), stream).Err())
		},
	} {
		topic := "configurator:" + what
		r, e, _ := followed(t, rdb, b, topic)
		view(t, r, topic, 1)
		until(t, 5*time.Second, "an event", func() bool { n, _ := e.heard(); return n == 1 })
		harm(topic)
		until(t, 4*time.Second, what+" and it is told", func() bool { _, lost := e.heard(); return lost > 0 })
		view(t, r, topic, 2)
		now, err := r.Viewers(t.Context(), topic)
		must(t, err)
		b.Follow(topic, now.Epoch, now.Seq)
		view(t, r, topic, 3)
		until(t, 5*time.Second, "it goes on", func() bool { n, _ := e.heard(); return n == 2 })
	}
}

func TestListenerIsToldOfAHoleBeforeALongStream(t *testing.T) {
	t.Parallel()
	rdb := patient(t, dbtest.Redis(t))
	b := newBus(t, rdb)
	topic := fmt.Sprint("configurator:hole-", time.Now().UnixNano())
	meta, stream, _, _ := realtime.TopicKeys(topic)
	_, e, from := followed(t, rdb, b, topic)
	const kept = 300 // more than one repair reads
	_, err := rdb.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		first := from + 100
		pipe.HSet(t.Context(), meta, "s", first+kept-1)
		for i := range int64(kept) {
			pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: fmt.Sprint(first+i, "-1"), Values: []any{"d", "{}"}})
		}
		return nil
	})
	must(t, err)
	until(t, 5*time.Second, "the listener is told", func() bool { _, lost := e.heard(); return lost == 1 })
	if n, _ := e.heard(); n > 0 {
		t.Errorf("it heard %d events from behind the hole", n)
	}
}

func TestListenerIsToldWhenACopyThatMissedEventsTookOver(t *testing.T) {
	t.Parallel()
	rdb := patient(t, dbtest.OwnRedis(t).RedisURL)
	b := newBus(t, rdb)
	topic := "configurator:copy"
	meta, stream, _, _ := realtime.TopicKeys(topic)
	r, e, from := followed(t, rdb, b, topic)
	for i := range 3 {
		view(t, r, topic, i)
	}
	until(t, 5*time.Second, "all are heard", func() bool { n, _ := e.heard(); return n == 3 })
	// The copy has the first two, and a third that nobody heard; its number is the same.
	_, err := rdb.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Del(t.Context(), stream)
		pipe.HSet(t.Context(), meta, "s", from+3)
		for i, data := range []string{e.data[0], e.data[1], `{"type":"another"}`} {
			pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: fmt.Sprint(from+int64(i)+1, "-1"), Values: []any{"d", data}})
		}
		pipe.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
		return nil
	})
	must(t, err)
	until(t, 5*time.Second, "the listener is told", func() bool { _, lost := e.heard(); return lost == 1 })
}

func TestBusIsRightFiveSecondsAfterRedisIsBack(t *testing.T) {
	t.Parallel()
	for what, away := range map[string]func(*devstack.Stack) error{
		"black hole": func(s *devstack.Stack) error {
			if err := s.Redis.Pause(); err != nil {
				return err
			}
			time.Sleep(6 * time.Second) // longer than the bus waits for a sign of life
			return s.Redis.Resume()
		},
		"killed": func(s *devstack.Stack) error {
			if err := s.Redis.Kill(); err != nil {
				return err
			}
			return s.Redis.Restart(context.Background())
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			srv := dbtest.OwnRedis(t)
			rdb := patient(t, srv.RedisURL)
			b := newBus(t, rdb)
			topic := "configurator:away"
			r, e, _ := followed(t, rdb, b, topic)
			plain := &ear{}
			b.Listen("event:away", false, plain)
			view(t, r, topic, 1)
			until(t, 5*time.Second, "an event", func() bool { n, _ := e.heard(); return n == 1 })
			must(t, away(srv))
			back := time.Now()
			for i := 2; ; i++ { // each at once if Redis has kept its state; after a loss the position is set anew
				if _, err := r.View(t.Context(), topic, visit(i)); err == nil {
					break
				}
			}
			for {
				if n, lost := e.heard(); n > 1 {
					break
				} else if lost > 0 {
					now, err := r.Viewers(t.Context(), topic)
					must(t, err)
					b.Follow(topic, now.Epoch, now.Seq)
					view(t, r, topic, int(time.Now().UnixNano()))
				}
				if time.Since(back) > 5*time.Second {
					t.Fatal("nothing is heard five seconds after")
				}
				time.Sleep(20 * time.Millisecond)
			}
			until(t, time.Until(back.Add(5*time.Second)), "a message without order", func() bool {
				must(t, b.Publish(t.Context(), "event:away", "e", 1, []byte(`[]`)))
				n, _ := plain.heard()
				return n > 0
			})
			if _, lost := plain.heard(); lost == 0 {
				t.Error("the listener without order was not told that messages may be missing")
			}
		})
	}
}

func TestTopicsThatNobodyListensToLeaveNothing(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	rdb := patient(t, srv.RedisURL)
	b := newBus(t, rdb)
	last := &ear{}
	for i := range 500 {
		topic := fmt.Sprint("event:", i%5)
		b.Listen(topic, false, last)
		if i < 499 {
			b.Mute(topic, last)
		}
	}
	until(t, 5*time.Second, "the topic that is left is heard", func() bool {
		must(t, b.Publish(t.Context(), "event:4", "e", 1, []byte(`[]`)))
		n, _ := last.heard()
		return n > 0
	})
	_, _, channel, _ := realtime.TopicKeys("event:4")
	until(t, 5*time.Second, "nothing else is subscribed", func() bool {
		channels := rdb.PubSubShardChannels(t.Context(), "*").Val()
		return len(channels) == 1 && channels[0] == channel
	})
	b.Mute("event:4", last)
	until(t, 5*time.Second, "nothing is subscribed", func() bool { return len(rdb.PubSubShardChannels(t.Context(), "*").Val()) == 0 })
}

func TestNobodyWaitsForARedisThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	srv := dbtest.OwnRedis(t)
	b := newBus(t, patient(t, srv.RedisURL))
	e := &ear{}
	b.Listen("configurator:before", true, e)
	must(t, srv.Redis.Pause())
	t.Cleanup(func() { _ = srv.Redis.Resume() })
	for began, i := time.Now(), 0; time.Since(began) < 5*time.Second; i++ { // a silent connection is given up meanwhile, and dialled again
		topic := fmt.Sprint("configurator:", i%50)
		asked := time.Now()
		b.Listen(topic, true, e)
		b.Follow(topic, "1", 1)
		b.Mute(topic, e)
		if took := time.Since(asked); took > 200*time.Millisecond {
			t.Fatalf("a listener waited for %v", took)
		}
		time.Sleep(time.Millisecond)
	}
}
