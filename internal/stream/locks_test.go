package stream_test

import (
	"testing"
)

func TestGroupAndMemberExcludeEachOtherOverTwoNodes(t *testing.T) {
	t.Parallel()
	s := open(t)
	lena, omar := s.node(nil).tab("Lena", ""), s.node(nil).tab("Omar", "")
	lena.view()
	omar.view()

	fence := lena.mustLock("1/seats", false)
	if f := omar.hears("lock-acquired", "1/seats"); f.By.Name != "Lena" || !f.CanEdit {
		t.Errorf("the other node tells %v", f)
	}
	for _, page := range []string{"1/seats", ""} {
		if f := omar.lock(page, false); f.Code != "locked" || f.By == nil || f.By.Name != "Lena" || f.By.Own {
			t.Errorf("%q beside Lena's page: %v", page, f)
		}
	}
	omar.mustLock("1/prices", false)
	if f := lena.unlock("1/seats"); f.Type != "ok" {
		t.Errorf("unlock: %v", f)
	}
	if f := omar.hears("lock-released", "1/seats"); f.Why != "unlocked" {
		t.Errorf("the other node tells %v", f)
	}
	if f := lena.unlock("1/seats"); f.Code != "not_held" {
		t.Errorf("unlock twice: %v", f)
	}
	omar.unlock("1/prices")

	if whole := omar.mustLock("", false); whole <= fence {
		t.Errorf("fence %d of the whole after %d of a page", whole, fence)
	}
	if f := lena.hears("lock-acquired", ""); f.CanEdit {
		t.Errorf("Lena may edit what Omar has: %v", f)
	}
	if f := lena.lock("1/details", false); f.Code != "locked" || f.By.Name != "Omar" {
		t.Errorf("a page of what Omar has: %v", f)
	}
	omar.unlock("")
	if f := lena.hears("lock-released", ""); !f.CanEdit {
		t.Errorf("Lena may not edit what is free: %v", f)
	}
}

func TestWhoIsTakenOverIsToldByWhomAndTheirSaveIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(nil), s.node(nil)
	lena, omar := a.tab("Lena", ""), b.tab("Omar", "")
	lena.view()
	omar.view()
	lena.mustLock("1/seats", false)
	lena.mustLock("/variables", false)
	first := lena.mustLock("1/details", false)
	omar.mustLock("1/details", true)
	if f := lena.hears("lock-lost", "1/details"); f.Why != "taken-over" || f.By == nil || f.By.Name != "Omar" {
		t.Errorf("Lena is told %v", f)
	}
	save := func(who string, fence int64) error {
		_, err := s.Service.SaveDraftPage(t.Context(), s.who(who).Caller, s.Event, fence, 1, "details", []byte(`{"name":"Parterre"}`))
		return err
	}
	if err := save("Lena", first); err == nil {
		t.Error("the save of who was taken over counts")
	}
	whole := omar.mustLock("", true) // the rest of what Lena has, and with it his own page
	lost := map[string]bool{}
	for range 2 {
		f := lena.wait("lock-lost", func(f frame) bool { return f.Type == "lock-lost" })
		lost[f.where()] = f.By != nil && f.By.Name == "Omar"
	}
	if !lost["1/seats"] || !lost["/variables"] {
		t.Errorf("Lena is told of %v", lost)
	}
	if err := save("Omar", whole); err != nil {
		t.Errorf("who has the whole may not save a page: %v", err)
	}
	a.Saved(t.Context(), s.Event, s.who("Omar"), 1, "details", 17)
	if f := lena.hears("saved", "1/details"); f.Revision != 17 || f.By.Name != "Omar" {
		t.Errorf("saved: %v", f)
	}
	if f := omar.hears("saved", "1/details"); f.Revision != 17 {
		t.Errorf("saved: %v", f)
	}
}

func TestOneUserIsPresentOnceAndTheOtherTabIsTheirs(t *testing.T) {
	t.Parallel()
	s := open(t)
	a, b := s.node(nil), s.node(nil)
	ida := a.tab("Ida", "")
	if v := ida.view(); v.CanEdit || len(v.Viewers) != 1 || v.LockedBy != nil {
		t.Errorf("Ida, who may not edit, sees %v", v)
	}
	one, two := a.tab("Lena", ""), b.tab("Lena", "")
	if v := one.view(); !v.CanEdit || len(v.Viewers) != 2 {
		t.Errorf("the first tab sees %v", v)
	}
	ida.wait("viewer-joined", func(f frame) bool { return f.Type == "viewer-joined" && f.Viewer.Name == "Lena" })
	if v := two.view(); len(v.Viewers) != 2 {
		t.Errorf("the second tab sees %v", v)
	}
	one.mustLock("", false)
	ida.wait("viewer-changed", func(f frame) bool { return f.Type == "viewer-changed" && f.Viewer.Editing })
	if f := two.lock("", false); f.Code != "locked" || !f.By.Own {
		t.Errorf("the second tab is told %v", f)
	}
	if v := two.view(); v.CanEdit || v.LockedBy == nil || v.LockedBy.Name != "Lena" {
		t.Errorf("the second tab sees %v", v)
	}
	two.mustLock("", true)
	one.hears("lock-lost", "")
	if f := ida.lock("", true); f.Code != "forbidden" {
		t.Errorf("who may not edit is answered %v", f)
	}
	one.say(`{"type":"bye"}`)
	if code := one.ended(); code != 1000 {
		t.Errorf("bye ends with %d", code)
	}
	two.unlock("")
	two.say(`{"type":"bye"}`)
	ida.wait("viewer-left", func(f frame) bool { return f.Type == "viewer-left" && f.Viewer.Name == "Lena" })
	ida.mu.Lock()
	defer ida.mu.Unlock()
	joined, left := 0, 0
	for _, f := range ida.frames {
		switch {
		case f.Type == "viewer-joined" && f.Viewer.Name == "Lena":
			joined++
		case f.Type == "viewer-left":
			left++
		}
	}
	if joined != 1 || left != 1 || ida.gaps > 0 {
		t.Errorf("joined %d times, left %d times, %d gaps", joined, left, ida.gaps)
	}
}

func TestWhoIsRefusedTheWholeKeepsTheirPages(t *testing.T) {
	t.Parallel()
	s := open(t)
	lena, omar := s.node(nil).tab("Lena", ""), s.node(nil).tab("Omar", "")
	lena.view()
	omar.view()
	fence := lena.mustLock("1/seats", false)
	omar.mustLock("1/prices", false)
	if f := lena.lock("", false); f.Code != "locked" || f.By.Name != "Omar" {
		t.Fatalf("the whole beside Omar's page: %v", f)
	}
	if f := omar.lock("1/seats", false); f.Code != "locked" {
		t.Errorf("Lena's page went with her question: %v", f)
	}
	if again := lena.mustLock("1/seats", false); again != fence {
		t.Errorf("fence %d, and then %d", fence, again)
	}
	omar.unlock("1/prices")
	lena.hears("lock-released", "1/prices")
	lena.mustLock("", false)
	if f := omar.hears("lock-released", "1/seats"); f.Why != "unlocked" {
		t.Errorf("the page that the whole has is told as %v", f)
	}
	if again := lena.mustLock("", false); again <= fence {
		t.Errorf("fence %d after %d", again, fence)
	}
}
