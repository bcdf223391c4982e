package webui_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	. "seatfence/booking/bookingtest"
	"seatfence/internal/browsertest"
	"seatfence/internal/staff"
	"seatfence/seats/plan"
)

// drawn is a site whose event was made of a plan with the sections Stalls and Circle.
func drawn(t *testing.T) site {
	t.Helper()
	p := Spec().House.Plan()
	p.Sections = append(p.Sections, plan.Section{Name: "Circle", Rows: []plan.Row{{Label: "A", Seats: []plan.Seat{{Number: "1", Category: "Stalls", Point: plan.Point{X: 1, Y: 900}}}}}})
	return fromPlan(t, open(t, nil), p)
}

// signedIn is a tab of a user who has signed in.
func (s site) signedIn(t *testing.T, b *browsertest.Chromium, at string, n staff.NewUser) (*browsertest.Tab, staff.User) {
	t.Helper()
	user, link, err := s.people.Create(t.Context(), s.Owner.Organizer, n, true)
	if err != nil {
		t.Fatal(err)
	}
	tab := b.Tab(at + strings.TrimPrefix(link, "http://localhost"))
	tab.Eval("{ for (const f of document.querySelectorAll('input[type=password]')) f.value = 'correct horse'; document.querySelector('form button').click() }", nil)
	tab.Wait("location.pathname === '/staff' && document.readyState === 'complete'")
	return tab, user
}

// locks answers the next lock of a page with the fence that the user is given.
func (l *line) locks(s site, user staff.User, page string) {
	l.t.Helper()
	asked := l.gets("lock-item-subresource")
	if asked["page"] != page {
		l.t.Fatalf("locks %v, want %s", asked, page)
	}
	item, _ := strconv.ParseInt(asked["item"].(string), 10, 32)
	fence, err := s.Service.TakeEdit(l.t.Context(), user.Caller(), s.Event, int32(item), page)
	if err != nil {
		l.t.Fatal(err)
	}
	l.says(frame{"type": "locked", "id": asked["id"], "resource": "configurator:" + s.Event.String(), "item": asked["item"], "page": page, "fence": fence})
}

func (l *line) unlocks(n int) {
	l.t.Helper()
	for range n {
		l.says(frame{"type": "ok", "id": l.gets("unlock-item-subresource")["id"]})
	}
}

// stalls is an expression about the first section, as "form".
func stalls(expression string) string {
	return "(form => " + expression + ")(document.querySelector('[data-items] form'))"
}

func shows(button string) string {
	return stalls("!form.querySelector('[data-do=" + button + "]').hidden")
}

func click(button string) string {
	return stalls("form.querySelector('[data-do=" + button + "]').click()")
}

func typed(field int, text string) string {
	return stalls("{ const f = form.querySelectorAll('input')[" + strconv.Itoa(field) + "]; f.value = '" + text + "'; f.dispatchEvent(new Event('input', {bubbles: true})) }")
}

func TestASectionIsEditedUnderItsLocksAndASaveThatComesTooLateKeepsTheDraft(t *testing.T) {
	s := drawn(t)
	p := s.withPeer(t)
	tab, lena := s.signedIn(t, browsertest.Open(t), p.url, staff.NewUser{Email: "lena@example.com", Name: "Lena", Role: staff.Owner, EveryEvent: true})
	omar, _, err := s.people.Create(t.Context(), s.Owner.Organizer, staff.NewUser{Email: "omar@example.com", Name: "Omar", Role: staff.Editor, EveryEvent: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	tab.Narrow(390)
	tab.Eval("[...document.links].find(a => a.pathname.startsWith('/configurator/')).click()", nil)
	tab.Wait("location.pathname.startsWith('/configurator/')")
	l, _ := p.accept()
	l.welcomes(pageOne)
	conf := "configurator:" + s.Event.String()
	me, other := frame{"user": staff.FormatID(lena.ID), "name": "Lena"}, frame{"user": staff.FormatID(omar.ID), "name": "Omar", "isEditing": true}
	asked := l.gets("view-resource")
	l.says(frame{
		"type": "view", "id": asked["id"], "resource": conf, "epoch": "a", "seq": 1, "viewers": []any{me, other},
		"lockedBy": other, "canEdit": false, "locks": []any{frame{"item": "", "page": "", "by": other, "state": "held"}},
	})
	tab.Wait("document.body.innerText.includes('Omar is editing everything. You can look;') && document.body.innerText.includes('Lena (you)') && document.body.innerText.includes('Omar, editing')")
	tab.Wait(stalls("form.querySelector('h3').textContent === 'Stalls' && form.elements.name.readOnly && form.querySelectorAll('input')[1].value === '45.00'"))
	tab.Wait("!" + shows("edit") + " && !document.querySelector('[data-do=take-all]').hidden && document.documentElement.scrollWidth <= 390")

	l.says(frame{"type": "lock-released", "resource": conf, "seq": 2, "item": "", "page": "", "by": other, "why": "left", "canEdit": true})
	tab.Wait(shows("edit"))
	tab.Eval(click("edit"), nil)
	l.locks(s, lena, "details")
	l.locks(s, lena, "prices")
	tab.Wait(shows("save") + " && " + stalls("!form.elements.name.readOnly && form.contains(document.activeElement)"))
	tab.Eval(typed(0, "Parterre"), nil)
	tab.Eval(typed(1, "47.5"), nil)
	l.gets("activity")
	tab.Eval(click("save"), nil)
	tab.Wait(stalls("form.innerText.includes('Saved.') && form.querySelector('h3').textContent === 'Parterre'"))
	draft, err := s.Service.Draft(t.Context(), s.Owner, s.Event)
	if err != nil || !strings.Contains(string(draft.Items[0].Details), "Parterre") || !strings.Contains(string(draft.Items[0].Prices), "4750") || strings.Contains(string(draft.Items[1].Prices), "4750") {
		t.Errorf("saved is %s %s, %v", draft.Items[0].Details, draft.Items[0].Prices, err)
	}

	if _, err := s.Service.TakeEdit(t.Context(), omar.Caller(), s.Event, 1, "details"); err != nil { // and nobody says so
		t.Fatal(err)
	}
	tab.Eval(typed(0, "Orchestra"), nil)
	tab.Eval(click("save"), nil)
	l.unlocks(2)
	tab.Wait(stalls("form.innerText.includes('Your changes are kept here') && form.elements.name.value === 'Orchestra'") + " && " + shows("copy") + " && " + shows("edit"))
	tab.Reload() // loses neither
	l, _ = p.accept()
	l.welcomes(pageTwo)
	asked = l.gets("view-resource")
	l.says(frame{"type": "view", "id": asked["id"], "resource": conf, "epoch": "a", "seq": 9, "viewers": []any{me}, "lockedBy": nil, "canEdit": true, "locks": []any{}})
	tab.Wait(stalls("form.elements.name.value === 'Orchestra' && form.querySelector('h3').textContent === 'Parterre'") + " && " + shows("edit"))
	tab.Eval(click("edit"), nil)
	l.locks(s, lena, "details")
	l.locks(s, lena, "prices")
	tab.Wait(shows("save") + " && !" + shows("copy"))
	tab.Eval(click("done"), nil)
	l.unlocks(2)
	tab.Wait(stalls("form.querySelector('h3').textContent === 'Orchestra'") + " && " + shows("edit"))

	tab.Eval(click("edit"), nil)
	l.locks(s, lena, "details")
	l.locks(s, lena, "prices")
	tab.Wait(shows("save"))
	tab.Eval(typed(0, "Pit"), nil)
	l.gets("activity")
	l.says(frame{"type": "lock-lost", "resource": conf, "item": "1", "page": "details", "why": "taken-over", "by": other})
	l.unlocks(1)
	tab.Wait(stalls("form.innerText.includes('Omar took over. Your changes are kept here; compare and copy what you need.') && form.elements.name.value === 'Pit'"))
}

func TestOnlyStaffOfItsOrganizerFindTheConfigurator(t *testing.T) {
	s := drawn(t)
	b := s.visitor(t)
	path := "/configurator/" + s.Event.String()
	b.get(path).says(200, "Sign in")
	b.get(s.owner(t)).send("Keep this password", url.Values{"password": {password}, "again": {password}}).follow("Edit An evening").says(200, "Who is here")
	b.get("/configurator/999999").says(404)
}
