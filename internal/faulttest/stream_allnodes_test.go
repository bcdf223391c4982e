package faulttest

import (
	"net/http"
	"sync"
	"testing"
	"time"
)

// All nodes are killed: what is left in Redis of locks, sessions and people ends by itself within a minute.
func TestStreamOfNodesThatAreAllKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	event := s.events(t, 1)[0]
	room, live := "configurator:"+event, "event:"+event
	editors, buyers := s.editors(t, 30), s.buyers(t, 60)
	servers := []*server{s.serve(t), s.serve(t), s.serve(t)}
	for i, v := range servers {
		connect(t, v.addr, editors[10*i:10*i+10], func(int) []string { return []string{room, live} })
		connect(t, v.addr, buyers[20*i:20*i+20], func(int) []string { return []string{live} })
	}
	together(t, editors, func(i int, e *tab) error { return e.lock(pageOf(event, i)) })
	waitFor(t, "all to be counted", func() bool { return editors[0].count(live) == len(editors)+len(buyers) })
	for _, v := range servers {
		v.kill()
	}
	dead := time.Now()
	keys := s.keys(t)
	if len(keys) < 8 {
		t.Fatalf("there are the keys %v only", keys)
	}
	for key, left := range keys {
		if left <= 0 || left > time.Minute {
			t.Errorf("%s lives for %v", key, left)
		}
	}
	if !*full {
		return
	}
	waitUntil(t, "Redis to be empty", dead.Add(time.Minute+time.Second), func() bool { return len(s.keys(t)) == 0 })
	t.Logf("Redis is empty %v after the last node's end", time.Since(dead).Round(time.Millisecond))
}

// keys returns what Redis has and how long it lives, a negative time being for ever.
func (s *site) keys(t testing.TB) map[string]time.Duration {
	t.Helper()
	all := map[string]time.Duration{}
	names := s.rdb.Scan(t.Context(), 0, "", 1000).Iterator()
	for names.Next(t.Context()) {
		left, err := s.rdb.PTTL(t.Context(), names.Val()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if left != -2 { // it has ended since
			all[names.Val()] = left
		}
	}
	if err := names.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// All nodes are restarted at once, and everybody who holds seats is gone for longer than the grace: nobody loses a hold for that. When most are back,
// those who stayed away lose theirs.
func TestStreamOfNodesThatAreAllRestartedAtOnce(t *testing.T) {
	t.Parallel()
	const (
		grace = 10 * time.Second
		held  = 24
		back  = 18
	)
	s := newSite(t)
	event := s.events(t, 1)[0]
	live := []string{"event:" + event}
	setting := "HOLD_GRACE=" + grace.String()
	servers := []*server{s.serve(t, setting), s.serve(t, setting), s.serve(t, setting)}
	buyers, ids := s.buyers(t, held), make([]string, held)
	for i := range buyers {
		v := servers[i%len(servers)]
		connect(t, v.addr, buyers[i:i+1], func(int) []string { return live })
		ids[i] = buyers[i].hold(t, v, event, seatOf(i))
	}
	var stops sync.WaitGroup
	for _, v := range servers {
		stops.Go(func() { v.stop(t) })
	}
	stops.Wait()
	all, gone := s.gonePages(t)
	if stopped := time.Now(); all != held || gone != held {
		t.Fatalf("%d of %d pages are gone at %v", gone, all, stopped)
	}
	for i := range servers {
		servers[i] = s.serve(t, setting)
	}
	<-time.After(grace + 2*time.Second) // there is nothing to see: that is what is tested
	for i, b := range buyers {
		if status := b.holdState(t, servers[0], ids[i]); status != "open" {
			t.Errorf("hold %d is %s though all pages went at once", i, status)
		}
	}
	connect(t, servers[1].addr, buyers[:back], func(int) []string { return live })
	waitFor(t, "the holds of those who stay away to be released", func() bool {
		for i := back; i < held; i++ {
			if buyers[0].seat(live[0], seatOf(i)) != 0 {
				return false
			}
		}
		return true
	})
	for i, b := range buyers[:back] {
		if status := b.holdState(t, servers[2], ids[i]); status != "open" {
			t.Errorf("hold %d of a buyer who came back is %s", i, status)
		}
	}
}

func (b *tab) holdState(t testing.TB, v *server, id string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, v.url+"/v1/holds/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	var hold struct{ Status string }
	b.do(t, req, &hold)
	return hold.Status
}
