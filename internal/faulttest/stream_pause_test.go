package faulttest

import (
	"maps"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// A node stands still for longer than its leases and then goes on, with its connections: meanwhile its people are in nobody's way; afterwards
// they are there again, an editor is told that the lock is gone, and what another has saved since is not overwritten.
func TestStreamOfANodeThatStoodStill(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	event := s.events(t, 1)[0]
	room, live := "configurator:"+event, "event:"+event
	a, b := s.serve(t), s.serve(t)
	editors, watcher, buyers := s.editors(t, 5), s.editors(t, 1), s.buyers(t, 10)
	connect(t, b.addr, watcher, func(int) []string { return []string{room, live} })
	connect(t, a.addr, editors, func(int) []string { return []string{room} })
	connect(t, a.addr, buyers, func(int) []string { return []string{live} })
	locks := map[string]string{}
	for i, e := range editors {
		if err := e.lock(pageOf(event, i)); err != nil {
			t.Fatal(err)
		}
		locks[pageOf(event, i).key()] = e.name
	}
	buyers[0].hold(t, a, event, seatOf(0))
	waitFor(t, "all to be seen", func() bool {
		return watcher[0].sees(room, names(watcher, editors), locks) && watcher[0].count(live) == len(buyers)+1
	})

	if err := a.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stood := time.Now()
	waitUntil(t, "nobody of the node to be shown", stood.Add(freed), func() bool {
		_, gone := s.gonePages(t)
		return gone == 1 && watcher[0].count(live) == 1 && watcher[0].sees(room, names(watcher), map[string]string{})
	})
	taken := pageOf(event, 0)
	if err := watcher[0].lock(taken); err != nil {
		t.Fatal(err)
	}
	if err := a.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awake := time.Now()
	locks = map[string]string{taken.key(): watcher[0].name}
	for _, tab := range append(watcher, editors...) {
		waitUntil(t, "all to be shown again", awake.Add(5*time.Second), func() bool { return tab.sees(room, names(watcher, editors), locks) })
	}
	for i, e := range editors {
		p := pageOf(event, i)
		waitUntil(t, "an editor to be told that the lock is gone", awake.Add(5*time.Second), func() bool {
			return maps.Equal(of(e.heard("lock-lost", "expired")), map[string]bool{room + " " + p.key(): true})
		})
		if status := e.save(t, a, p); i == 0 && status != http.StatusConflict || i > 0 && status != http.StatusOK {
			t.Errorf("editor %d is answered %d when saving", i, status)
		}
	}
	waitUntil(t, "the buyers to be there again", awake.Add(5*time.Second), func() bool {
		_, gone := s.gonePages(t)
		return gone == 0 && watcher[0].count(live) == len(buyers)+1
	})
}
