package faulttest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The network to an editor swallows everything, which neither end is told of: the others see within 9 seconds that nobody is there.
func TestStreamOfAnEditorWhoseNetworkIsGone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := pageOf(s.events(t, 1)[0], 0)
	a, b := s.serve(t), s.serve(t)
	network := newProxy(t, a.addr)
	watcher, editor := s.editors(t, 1), s.editors(t, 1)
	look := func(int) []string { return []string{p.resource()} }
	connect(t, b.addr, watcher, look)
	connect(t, network.addr, editor, look)
	if err := editor[0].lock(p); err != nil {
		t.Fatal(err)
	}
	network.mute.Store(true)
	network.deaf.Store(true)
	since := time.Now()
	what := p.resource() + " " + p.key()
	waitUntil(t, "the editor to be shown as gone", since.Add(9*time.Second), func() bool { return !watcher[0].heard("lock-detached", "")[what].IsZero() })
	t.Logf("detached after %v", time.Since(since).Round(time.Millisecond))
	waitUntil(t, "the lock to be free", since.Add(18*time.Second), func() bool { return !watcher[0].heard("lock-released", "left")[what].IsZero() })
	if err := watcher[0].lock(p); err != nil {
		t.Error(err)
	}
	waitUntil(t, "nobody else to be shown", since.Add(18*time.Second), func() bool {
		return watcher[0].sees(p.resource(), names(watcher), map[string]string{p.key(): watcher[0].name})
	})
}

// 10,000 pages (500 in short) end without a word, with locks, at a node that goes on: it keeps nothing of them, nor does Redis.
func TestStreamOfTabsThatEndWithoutAWord(t *testing.T) {
	t.Parallel()
	const atOnce, slack = 250, 24 // slack is connections of pools
	tabs := 2 * atOnce
	if *full {
		tabs = 40 * atOnce
	}
	s := newSite(t)
	events := s.events(t, 8)
	v := s.serve(t)
	watcher, editors := s.editors(t, 1), s.editors(t, 50)
	var look []string
	for _, event := range events {
		look = append(look, "configurator:"+event)
	}
	live := "event:" + s.event
	connect(t, v.addr, watcher, func(int) []string { return append([]string{live}, look...) })
	s.crowd(t, v, editors, events, 50) // fills the pools
	waitUntil(t, "its subscriptions", time.Now().Add(patience), func() bool { return s.figures(t, v).channels >= len(look)+len(events) })
	before := s.figures(t, v)
	began := time.Now()
	for range tabs / atOnce {
		s.crowd(t, v, editors, events, atOnce)
	}
	ended := time.Now()
	deadline := ended.Add(patience)
	waitUntil(t, "goroutines, files and subscriptions to be what they were", deadline, func() bool {
		now := s.figures(t, v)
		return now.goroutines <= before.goroutines+slack && now.files <= before.files+slack && now.channels <= before.channels && v.metric(t, "seatfence_stream_sessions") == 1
	})
	waitUntil(t, "the watcher to be alone", deadline, func() bool {
		for _, room := range look {
			if !watcher[0].sees(room, names(watcher), map[string]string{}) {
				return false
			}
		}
		return watcher[0].count(live) == 1
	})
	t.Logf("%d ends in %v; %v later there are %+v, before %+v", tabs, ended.Sub(began).Round(time.Millisecond), time.Since(ended).Round(time.Millisecond), s.figures(t, v), before)
	if len(s.rdb.Keys(t.Context(), "*:lk:locks").Val()) > 0 {
		t.Error("Redis has locks")
	}
	if !*full {
		return
	}
	waitUntil(t, "Redis to have nothing but the watcher", time.Now().Add(3*time.Minute), func() bool { return s.records(t) == len(look) })
	t.Logf("Redis has nothing of them after %v", time.Since(ended).Round(time.Millisecond))
}

// figures are what a connection may leave behind.
type figures struct{ goroutines, files, channels int }

func (s *site) figures(t testing.TB, v *server) figures {
	t.Helper()
	channels, err := s.rdb.PubSubShardChannels(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return figures{v.metric(t, "go_goroutines"), v.metric(t, "process_open_fds"), len(channels)}
}

// crowd opens tabs and cuts all, one in ten of them with a lock, when they are seen.
func (s *site) crowd(t *testing.T, v *server, who []*tab, events []string, n int) {
	t.Helper()
	tabs := make([]*tab, n)
	for i := range tabs {
		tabs[i] = who[i%len(who)].tab()
	}
	together(t, tabs, func(i int, b *tab) error {
		event := events[i%len(events)]
		if err := b.connect(v.addr); err != nil {
			return err
		}
		if err := b.view("configurator:"+event, "event:"+event); err != nil || i%10 > 0 {
			return err
		}
		if err := b.lock(pageOf(event, i/10)); err != nil && !strings.Contains(err.Error(), "has it") { // an earlier one may have it still
			return fmt.Errorf("lock: %w", err)
		}
		return nil
	})
	for _, b := range tabs {
		b.away()
	}
}

// records counts what Redis keeps of sessions.
func (s *site) records(t testing.TB) (n int) {
	t.Helper()
	for _, key := range append(s.rdb.Keys(t.Context(), "*:lk:sessions").Val(), s.rdb.Keys(t.Context(), "*:pr:sessions").Val()...) {
		fields, err := s.rdb.HLen(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		n += int(fields)
	}
	return n
}
