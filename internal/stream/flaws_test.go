package stream_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatfence/realtime"
)

// Each of these begins with the number of a way in which locks and presence that are told over sockets usually lose.

func Test16FreeLockIsHeardOfWhoeverLosesTheMessage(t *testing.T) {
	t.Parallel()
	s := open(t)
	lena, omar := s.node(nil).tab("Lena", ""), s.node(nil).tab("Omar", "")
	lena.view()
	omar.view()
	rdb := s.client()
	for range 5 {
		lena.mustLock("1/seats", false)
		omar.hears("lock-acquired", "1/seats")
		must(t, rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err()) // nobody hears anything
		lena.unlock("1/seats")
		began := time.Now()
		omar.hears("lock-released", "1/seats")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("heard after %v", took)
		}
	}
	if omar.gaps > 0 {
		t.Errorf("%d events are missing or came twice", omar.gaps)
	}
}

func Test16LockThatWasTakenWhileAllEventsWereLostIsTold(t *testing.T) {
	t.Parallel()
	s := open(t)
	lena, omar := s.node(nil).tab("Lena", ""), s.node(nil).tab("Omar", "")
	lena.view()
	omar.view()
	fence := lena.mustLock("1/seats", false)
	rdb := s.client()
	_, events, _, _ := realtime.TopicKeys(s.room())
	for range 3 {
		lena.mustLock("1/details", false)
		must(t, rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
		omar.mustLock("1/details", true)
		must(t, rdb.Del(t.Context(), events).Err())
		if f := lena.hears("lock-lost", "1/details"); f.Why != "taken-over" || f.By == nil || f.By.Name != "Omar" {
			t.Errorf("Lena is told %v", f)
		}
		omar.unlock("1/details")
	}
	if again := lena.mustLock("1/seats", false); again != fence {
		t.Errorf("the lock that nobody took has fence %d, and had %d", again, fence)
	}
	if lena.ever("lock-lost", "1/seats") {
		t.Error("a lock that nobody took was told as lost")
	}
}

func Test17WhoComesAndGoesIsToldWhereTheyWereAndMapsCount(t *testing.T) {
	t.Parallel()
	s := open(t)
	n := s.node(nil)
	idle, looking, ida := n.tab("Ida", ""), n.tab("Ida", ""), n.tab("Ida", "")
	looking.watch()
	here, elsewhere := s.Event, s.NewEvent(t, s.spec())
	s.Event = elsewhere
	ida.view()
	s.Event = here
	began := time.Now()
	for range 20 {
		c := n.tab("Lena", "")
		c.watch()
		c.view()
		c.say(`{"type":"bye"}`)
		c.ended()
	}
	passed := time.Since(began)
	until(t, patience, "one is left", func() bool {
		looking.mu.Lock()
		defer looking.mu.Unlock()
		return looking.frames[len(looking.frames)-1].Count == 1
	})
	counts := 0
	looking.mu.Lock()
	for _, f := range looking.frames {
		if f.Viewer != nil {
			t.Errorf("a map names %v", f)
		}
		if f.Type == "viewers" {
			counts++
		}
	}
	looking.mu.Unlock()
	if most := 4 + int(passed/time.Second); counts > most {
		t.Errorf("%d counts in %v", counts, passed)
	}
	for _, c := range []*tab{idle, ida} {
		c.mu.Lock()
		if n := len(c.frames); n > 3 {
			t.Errorf("somebody elsewhere was told %v", c.frames)
		}
		c.mu.Unlock()
	}
}

func Test19ViewAndWhatFollowsMakeOneStory(t *testing.T) {
	t.Parallel()
	s := open(t)
	nodes := []*node{s.node(nil), s.node(nil)}
	var crowd sync.WaitGroup
	for i := range 6 { // lock, and unlock, and look again, as quickly as they can
		c := nodes[i%2].tab([]string{"Lena", "Omar"}[i/2%2], "")
		c.view()
		crowd.Go(func() {
			for range 8 {
				page := fmt.Sprintf("1/%s", []string{"seats", "prices", "details"}[i%3])
				c.say(`{%s}`, c.about("lock", page))
				c.say(`{%s}`, c.about("unlock", page))
				c.say(`{"type":"view-resource","resource":%q}`, s.room())
				time.Sleep(180 * time.Millisecond) // 20 frames a second are allowed
			}
		})
		t.Cleanup(func() {
			if c.gaps > 0 {
				t.Errorf("%s: %d events are missing or came twice", c.name, c.gaps)
			}
		})
	}
	watchers := []*tab{nodes[0].tab("Ida", ""), nodes[1].tab("Ida", "")}
	for _, c := range watchers {
		c.view()
	}
	crowd.Wait()
	truth := nodes[0].tab("Ida", "").view()
	for _, c := range watchers {
		until(t, patience, "the last event", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.seq == truth.Seq && c.epoch == truth.Epoch })
		locks, users := c.told()
		if len(locks) != len(truth.Locks) || len(users) != len(truth.Viewers) {
			t.Errorf("whoever listened knows of %v and %v, but there is %v", locks, users, truth)
		}
		for _, v := range truth.Viewers {
			if editing, here := users[v.User]; !here || editing != v.Editing {
				t.Errorf("%s is editing: %v, to whoever listened %v", v.Name, v.Editing, editing)
			}
		}
		if c.gaps > 0 {
			t.Errorf("%d events are missing or came twice", c.gaps)
		}
	}
}

// told is what a client of the configurator knows from its last view and what came after: locks, and users and whether they edit.
func (c *tab) told() (locks map[string]string, users map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.frames {
		switch f.Type {
		case "view":
			locks, users = map[string]string{}, map[string]bool{}
			for _, l := range f.Locks {
				locks[l.Item+"/"+l.Page] = l.By.User
			}
			for _, v := range f.Viewers {
				users[v.User] = v.Editing
			}
		case "viewer-joined", "viewer-changed":
			users[f.Viewer.User] = f.Viewer.Editing
		case "viewer-left":
			delete(users, f.Viewer.User)
		case "lock-acquired":
			locks[f.Item+"/"+f.Page] = f.By.User
		case "lock-released":
			delete(locks, f.Item+"/"+f.Page)
		}
	}
	return locks, users
}

func Test22WhoIsConnectedAndDoesNotEditLosesTheLock(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.idle = 4 * time.Second
	n := s.node(nil)
	lena, omar := n.tab("Lena", ""), n.tab("Omar", "")
	lena.view()
	omar.view()
	lena.mustLock("1/seats", false)
	began := time.Now()
	if w := lena.hears("idle-warning", "1/seats"); w.Seconds > 2 || time.Since(began) < 2*time.Second {
		t.Errorf("warned after %v: %v", time.Since(began), w)
	}
	lena.say(`{"type":"activity","configurator":%q}`, s.Event)
	lena.hears("idle-warning", "1/seats")
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("warned again after %v", took)
	}
	f := omar.hears("lock-released", "1/seats")
	if took := time.Since(began); f.Why != "idle" || took < 6*time.Second || took > 9*time.Second {
		t.Errorf("after %v: %v", took, f)
	}
	if l := lena.hears("lock-lost", "1/seats"); l.Why != "idle" {
		t.Errorf("told %v", l)
	}
	omar.mustLock("1/seats", false)
}

func Test22HalfOpenConnectionOfAnEditorIsDetachedWithinNineSeconds(t *testing.T) {
	t.Parallel()
	s := open(t)
	n := s.node(nil)
	omar := n.tab("Omar", "")
	omar.view()
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), n.url+"?as=Lena", nil)
	must(t, err)
	_ = resp.Body.Close()
	defer conn.Close()
	for _, text := range []string{
		`{"type":"hello","protocol":1}`, fmt.Sprintf(`{"type":"view-resource","resource":%q}`, s.room()), fmt.Sprintf(`{"type":"lock-configurator","configurator":%q}`, s.Event),
	} {
		must(t, conn.WriteMessage(websocket.TextMessage, []byte(text)))
	}
	omar.hears("lock-acquired", "")
	began := time.Now() // from here on nothing is read, so nothing is answered
	omar.hears("lock-detached", "")
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("detached after %v", took)
	}
}

func Test25WhateverComesAndGoesNobodyIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := open(t)
	nodes := []*node{s.node(nil), s.node(nil)}
	ida := nodes[0].tab("Ida", "")
	ida.view()
	var crowd sync.WaitGroup
	for i := range 8 {
		rng := rand.New(rand.NewPCG(uint64(i), 25))
		crowd.Go(func() {
			for range 6 {
				c := nodes[rng.IntN(2)].tab([]string{"Lena", "Omar"}[rng.IntN(2)], "")
				c.say(`{"type":"view-resource","resource":%q}`, s.room())
				c.say(`{%s}`, c.about("lock", []string{"", "1/seats"}[rng.IntN(2)]))
				time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
				switch rng.IntN(4) {
				case 0:
					c.say(`{"type":"bye"}`)
				case 1:
					c = c.again(nodes[rng.IntN(2)]) // beside the old one
					c.say(`{"type":"view-resource","resource":%q}`, s.room())
				case 2:
					c.say(`{"type":"leave-resource","resource":%q}`, s.room())
				}
				_ = c.conn.NetConn().Close()
			}
		})
	}
	crowd.Wait()
	until(t, patience, "everybody has gone", func() bool {
		_, users := ida.told()
		return len(users) == 1
	})
	until(t, patience, "every lock is free", func() bool {
		locks, _ := ida.told()
		return len(locks) == 0
	})
	v := ida.view()
	if len(v.Viewers) != 1 || len(v.Locks) > 0 || ida.gaps > 0 {
		t.Errorf("left are %v, and %d events were missing", v, ida.gaps)
	}
}
