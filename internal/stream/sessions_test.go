package stream_test

import (
	"testing"
	"time"

	"seatfence/internal/stream"
	"seatfence/seats"
)

func TestReloadKeepsTheLockOnTheSameNodeAndOnAnother(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(nil), s.node(nil)
	omar := b.tab("Omar", "")
	omar.view()
	lena := a.tab("Lena", "")
	lena.view()
	fence := lena.mustLock("1/seats", false)
	for i, to := range []*node{a, b, a, a} {
		lena.drop()
		omar.hears("lock-detached", "1/seats")
		if f := omar.lock("1/seats", false); f.Code != "locked" {
			t.Fatalf("reload %d: Omar gets the lock in between: %v", i, f)
		}
		lena = lena.again(to)
		if v := lena.view(); len(v.Locks) != 1 || v.Locks[0].By.Name != "Lena" || v.Locks[0].State != "held" {
			t.Errorf("reload %d: sees %v", i, v)
		}
		omar.hears("lock-attached", "1/seats")
		again := lena.mustLock("1/seats", false)
		if again < fence {
			t.Errorf("reload %d: fence %d after %d", i, again, fence)
		}
		if _, err := s.Service.SaveDraftPage(t.Context(), s.who("Lena").Caller, s.Event, again, 1, "details", []byte(`{"name":"Parterre"}`)); err == nil {
			t.Error("a fence of a page saves another")
		}
		fence = again
	}
	for _, f := range omar.frames {
		if f.Type == "viewer-left" || f.Type == "lock-released" {
			t.Errorf("a reload was told as %v", f)
		}
	}
}

func TestLateCloseOfAnOlderSocketChangesNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(nil), s.node(nil)
	omar := b.tab("Omar", "")
	omar.view()
	for _, to := range []*node{a, b} {
		old := a.tab("Lena", "")
		old.view()
		old.mustLock("1/seats", false)
		lena := old.again(to)
		lena.view()
		lena.mustLock("1/seats", false)
		if to == a {
			if code := old.ended(); code != 4409 {
				t.Errorf("the older socket is closed with %d", code)
			}
		}
		old.drop()
		if f := omar.lock("1/seats", false); f.Code != "locked" {
			t.Errorf("the close of the older socket freed the lock: %v", f)
		}
		until(t, patience, "the node has noticed", func() bool { return a.Stats().Open == map[bool]int{true: 1, false: 0}[to == a] })
		if f := omar.lock("1/seats", false); f.Code != "locked" {
			t.Errorf("the close of the older socket freed the lock: %v", f)
		}
		if f := lena.unlock("1/seats"); f.Type != "ok" {
			t.Errorf("unlock: %v", f)
		}
		lena.say(`{"type":"bye"}`)
		lena.ended()
		omar.hears("lock-released", "1/seats")
	}
	for _, f := range omar.frames {
		if f.Type == "lock-detached" {
			t.Errorf("a close that came late was told: %v", f)
		}
	}
}

func TestByeFreesAtOnceAndALostConnectionAfterItsGrace(t *testing.T) {
	t.Parallel()
	s := open(t)
	a := s.node(nil)
	omar := s.node(nil).tab("Omar", "")
	omar.view()
	lena := a.tab("Lena", "")
	lena.view()
	lena.mustLock("1/seats", false)
	began := time.Now()
	lena.say(`{"type":"bye"}`)
	if f := omar.hears("lock-released", "1/seats"); f.Why != "left" || time.Since(began) > 2*time.Second {
		t.Errorf("after %v: %v", time.Since(began), f)
	}
	lena = a.tab("Lena", "")
	lena.view()
	lena.mustLock("1/seats", false)
	lena.drop()
	gone := time.Now()
	omar.hears("lock-detached", "1/seats")
	if took := time.Since(gone); took > 2*time.Second {
		t.Errorf("detached after %v", took)
	}
	f := omar.hears("lock-released", "1/seats")
	if took := time.Since(gone); took < 7*time.Second || took > 10*time.Second || f.Why != "left" {
		t.Errorf("free after %v: %v", took, f)
	}
	omar.mustLock("1/seats", false)
	if omar.gaps > 0 {
		t.Errorf("%d events are missing or came twice", omar.gaps)
	}
}

func TestPermissionThatIsWithdrawnEndsTheLockWithinSixSeconds(t *testing.T) {
	t.Parallel()
	s := open(t)
	lena, omar := s.node(nil).tab("Lena", ""), s.node(nil).tab("Omar", "")
	lena.view()
	omar.view()
	lena.mustLock("1/seats", false)
	who := s.who("Lena")
	who.Editor = false
	s.set("Lena", who)
	began := time.Now()
	if f := omar.hears("lock-released", "1/seats"); f.Why != "withdrawn" || time.Since(began) > 6*time.Second {
		t.Errorf("after %v: %v", time.Since(began), f)
	}
	told := map[string]frame{}
	for range 2 {
		f := lena.wait("can-edit and lock-lost", func(f frame) bool { return f.Type == "can-edit" || f.Type == "lock-lost" })
		told[f.Type] = f
	}
	if f := told["can-edit"]; f.Type == "" || f.CanEdit {
		t.Errorf("told %v", f)
	}
	if f := told["lock-lost"]; f.Why != "withdrawn" {
		t.Errorf("told %v", f)
	}
	if f := lena.lock("1/seats", false); f.Code != "forbidden" {
		t.Errorf("locks again: %v", f)
	}
	s.set("Lena", stream.Who{})
	began = time.Now()
	if code := lena.ended(); code != 4401 || time.Since(began) > 6*time.Second {
		t.Errorf("who has to sign in again is closed with %d after %v", code, time.Since(began))
	}
	omar.wait("viewer-left", func(f frame) bool { return f.Type == "viewer-left" && f.Viewer.Name == "Lena" })
}

func TestWhoMayNotKnowOfTheEventAnyMoreHasToGo(t *testing.T) {
	t.Parallel()
	s := open(t)
	lena, omar := s.node(nil).tab("Lena", ""), s.node(nil).tab("Omar", "")
	lena.view()
	omar.view()
	lena.mustLock("", false)
	who := s.who("Lena")
	who.Caller.Events = []seats.EventID{}
	s.set("Lena", who)
	if code := lena.ended(); code != 4403 {
		t.Errorf("closed with %d", code)
	}
	if f := omar.hears("lock-released", ""); f.Why != "withdrawn" {
		t.Errorf("the lock is told as %v", f)
	}
	again := lena.again(lena.node)
	if f := again.ask(`"type":"view-resource","resource":%q`, s.room()); f.Code != "not_found" {
		t.Errorf("who comes back is answered %v", f)
	}
}

func TestOriginsAreExact(t *testing.T) {
	t.Parallel()
	s := open(t)
	n := s.node(nil)
	withCookie := s.who("Lena")
	withCookie.Cookie = true
	s.set("Cookie", withCookie)
	for _, c := range []struct {
		who, origin string
		ok          bool
	}{
		{"Lena", "", true},
		{"Lena", own, true},
		{"Lena", partner, true},
		{"Lena", "http://shop.test", false},
		{"Lena", "https://shop.test:444", false},
		{"Lena", "https://shop.test.evil.test", false},
		{"Lena", "null", false},
		{"Cookie", own, true},
		{"Cookie", partner, false},
		{"Cookie", "", false},
	} {
		x, err := n.dial(c.who, c.origin)
		if (err == nil) != c.ok {
			t.Errorf("%s of %q: %v", c.who, c.origin, err)
		}
		if x != nil {
			x.drop()
		}
	}
}
