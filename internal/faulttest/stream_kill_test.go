package faulttest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatfence/seats"
)

// freed is how long after the end of a node its people may still be in anybody's way.
const freed = 13 * time.Second

// A node is killed with everybody who is connected to it: the others free their locks and their places and say so to those who watch, and
// go on with what it did. Who comes back elsewhere in time keeps the lock.
func TestStreamOfAKilledNode(t *testing.T) {
	t.Parallel()
	size := crowd{editors: 60, named: 40, buyers: 160, events: 2}
	if *full {
		size = crowd{editors: 500, named: 500, buyers: 1500, events: 8}
	}
	for i := range *kills {
		t.Run(fmt.Sprint(i), func(t *testing.T) { killNode(t, size) })
	}
}

// crowd is who is on the node that is killed.
type crowd struct{ editors, named, buyers, events int }

// witness is what a test of a killed node watches.
type witness struct {
	events   []string
	pages    []page // of the editors
	watchers []*tab // one on each other node
	editors  []*tab
	named    []*tab // who look at configurators and edit nothing
	back     int    // so many of the editors come back
}

func killNode(t *testing.T, size crowd) {
	s := newSite(t)
	w := &witness{events: s.events(t, size.events), back: 5}
	live := "event:" + s.event
	a, b, c := s.serve(t), s.serve(t), s.serve(t)
	w.watchers = s.editors(t, 2)
	rooms := make([]string, len(w.events))
	for i, event := range w.events {
		rooms[i] = "configurator:" + event
	}
	for i, v := range []*server{b, c} {
		connect(t, v.addr, w.watchers[i:i+1], func(int) []string { return append([]string{live}, rooms[:min(7, len(rooms))]...) })
		if len(rooms) > 7 {
			if err := w.watchers[i].view(rooms[7:]...); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.editors, w.named = s.editors(t, size.editors), s.editors(t, size.named)
	for i := range w.editors {
		w.pages = append(w.pages, pageOf(w.events[i%len(w.events)], i/len(w.events)))
	}
	connect(t, a.addr, w.editors, func(i int) []string { return []string{w.pages[i].resource()} })
	together(t, w.editors, func(i int, e *tab) error { return e.lock(w.pages[i]) })
	connect(t, a.addr, w.named, func(i int) []string { return []string{rooms[i%len(rooms)]} })
	buyers := s.buyers(t, size.buyers)
	connect(t, a.addr, buyers, func(int) []string { return []string{live} })
	const holds = 6
	for i, buyer := range buyers[:holds] {
		buyer.hold(t, a, s.event, seatOf(i))
	}
	stays := s.buyers(t, 1)
	connect(t, b.addr, stays, func(int) []string { return []string{live} })
	stays[0].hold(t, b, s.event, seatOf(holds))
	w.wait(t, "all to be seen", time.Now().Add(patience), func(watcher *tab) bool {
		return watcher.count(live) == size.buyers+3 && watcher.seat(live, seatOf(holds)) == 1 && w.shown(watcher, len(w.editors), true)
	})

	for _, watcher := range w.watchers {
		watcher.mu.Lock()
		clear(watcher.anew)
		watcher.mu.Unlock()
	}
	a.kill()
	killed := time.Now()
	late := func(d time.Duration) time.Time { return killed.Add(d) }
	stays[0].book(t, &node{url: c.url}, seatOf(20)).want(t, http.StatusCreated, "")
	w.wait(t, "a sale right after the end of the publisher to be on every map", late(3*time.Second), func(watcher *tab) bool { return watcher.seat(live, seatOf(20)) == 2 })
	sold := time.Since(killed)
	together(t, w.editors[:w.back], func(i int, e *tab) error {
		if err := e.connect(b.addr); err != nil {
			return err
		}
		return e.view(w.pages[i].resource())
	})
	w.wait(t, "the locks and places of the node's people to be free", late(freed), func(watcher *tab) bool {
		return watcher.count(live) == 3 && w.shown(watcher, w.back, false) && w.told(watcher)
	})
	free := time.Since(killed)
	waitUntil(t, "the grace of the node's holds to begin", late(freed), func() bool {
		all, gone := s.gonePages(t)
		return all == holds+1 && gone == holds
	})
	t.Logf("after a node's end with %d people: a sale on every map after %v, all free after %v, the grace of holds begun after %v",
		size.editors+size.named+size.buyers, sold.Round(time.Millisecond), free.Round(time.Millisecond), time.Since(killed).Round(time.Millisecond))
	for _, watcher := range w.watchers {
		if again := watcher.again(); len(again) > 0 {
			t.Logf("a watcher was shown %v anew", again)
		}
	}
	w.others(t, c, s.editors(t, 1))
	for i, e := range w.editors[:w.back] {
		if status := e.save(t, c, w.pages[i]); status != http.StatusOK {
			t.Errorf("an editor who came back is answered %d when saving", status)
		}
	}
	s.world.Verify(t)
}

// seatOf is a seat of an event of Blocks.
func seatOf(i int) seats.ID { return seats.ID(i + 1) }

// shown reports whether a watcher is shown exactly the first editors with their locks, the named if they are there, and the watchers.
func (w *witness) shown(watcher *tab, editors int, all bool) bool {
	for i, event := range w.events {
		viewers, locks := names(w.watchers), map[string]string{}
		for j, e := range w.editors[:editors] {
			if p := w.pages[j]; p.event == event {
				viewers, locks[p.key()] = append(viewers, e.name), e.name
			}
		}
		for j := i; all && j < len(w.named); j += len(w.events) {
			viewers = append(viewers, w.named[j].name)
		}
		if !watcher.sees("configurator:"+event, viewers, locks) {
			return false
		}
	}
	return true
}

// told reports whether a watcher has heard of the end of each lock and of each person, and of no other. Where it did not keep up it was shown
// the state instead.
func (w *witness) told(watcher *tab) bool {
	released, left := map[string]bool{}, map[string]bool{}
	for i, e := range w.editors[w.back:] {
		p := w.pages[w.back+i]
		released[p.resource()+" "+p.key()], left[p.resource()+" "+e.name] = true, true
	}
	for i, n := range w.named {
		left["configurator:"+w.events[i%len(w.events)]+" "+n.name] = true
	}
	return maps.Equal(watcher.told("lock-released", "expired", released), released) && maps.Equal(watcher.told("viewer-left", "", left), left)
}

// told is what a tab has heard of, and what it need not have heard of because it was shown the configurator anew.
func (b *tab) told(kind, why string, all map[string]bool) map[string]bool {
	heard := of(b.heard(kind, why))
	b.mu.Lock()
	defer b.mu.Unlock()
	for what := range all {
		if room, _, _ := strings.Cut(what, " "); b.anew[room] {
			heard[what] = true
		}
	}
	return heard
}

func of(times map[string]time.Time) map[string]bool {
	all := map[string]bool{}
	for what := range times {
		all[what] = true
	}
	return all
}

// others has somebody else take the locks that have become free.
func (w *witness) others(t *testing.T, v *server, other []*tab) {
	t.Helper()
	event := w.events[0]
	connect(t, v.addr, other, func(int) []string { return []string{"configurator:" + event} })
	for i := w.back; i < len(w.editors); i += 7 {
		if p := w.pages[i]; p.event == event {
			if err := other[0].lock(p); err != nil {
				t.Errorf("what is free cannot be locked: %v", err)
			} else if status := other[0].save(t, v, p); status != http.StatusOK {
				t.Errorf("the new editor is answered %d when saving", status)
			}
		}
	}
	if err := other[0].lock(w.pages[0]); err == nil {
		t.Error("the lock of an editor who came back is given to another")
	}
}

// wait waits for something to hold for all watchers.
func (w *witness) wait(t *testing.T, what string, deadline time.Time, holds func(*tab) bool) {
	t.Helper()
	for _, watcher := range w.watchers {
		for !holds(watcher) {
			if time.Now().After(deadline) {
				for _, event := range w.events {
					t.Logf("%s is shown %s", watcher.name, watcher.room("configurator:"+event))
				}
				t.Fatalf("waited in vain for %s", what)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// waitUntil waits for something to hold.
func waitUntil(t *testing.T, what string, deadline time.Time, holds func() bool) {
	t.Helper()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
