package app_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/browsertest"
	"seatfence/internal/staff"
	"seatfence/seats/plan"
)

// live is a server with a stream, and an event that was made of a plan.
func live(t *testing.T) site {
	t.Helper()
	s := start(t, "REDIS_URL", dbtest.Redis(t))
	if status, _ := get(t, s.url+"/v1/stream"); status == http.StatusNotFound {
		t.Skip("the server has no stream")
	}
	var document bytes.Buffer
	if err := Spec().House.Plan().Export(&document); err != nil {
		t.Fatal(err)
	}
	drawn, report, err := plan.Import(t.Context(), &document, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := s.Service.ImportPlan(t.Context(), s.Owner, Key(), booking.PlanImport{Name: "Small", Document: drawn, Report: report})
	if err == nil {
		_, err = s.Service.PublishPlan(t.Context(), s.Owner, made.Plan, made.Number)
	}
	if err != nil {
		t.Fatalf("%v: %+v", err, report)
	}
	spec := Spec()
	spec.House, spec.Plan = plan.House{}, &booking.PlanRef{Plan: made.Plan, Version: made.Number}
	spec.Prices = []booking.Price{{Category: "Stalls", Amount: SeatPrice}, {Category: "Standing", Amount: FloorPrice}}
	s.World.Event = s.NewEvent(t, spec)
	return s
}

// editor is the configurator in a browser of a new user who has signed in.
func (s site) editor(t *testing.T, name string) (*browsertest.Chromium, *browsertest.Tab) {
	t.Helper()
	_, link, err := s.Staff.Create(t.Context(), s.Owner.Organizer, staff.NewUser{Email: strings.ToLower(name) + "@example.com", Name: name, Role: staff.Editor, EveryEvent: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t)
	tab := b.Tab(s.url + link[strings.Index(link, "/staff/"):])
	tab.Eval("{ for (const f of document.querySelectorAll('input[type=password]')) f.value = 'correct horse'; document.querySelector('form button').click() }", nil)
	tab.Wait("location.pathname === '/staff' && document.readyState === 'complete'")
	tab.Go(s.url + "/configurator/" + s.World.Event.String())
	tab.Wait("document.querySelector('[data-items] form')")
	return b, tab
}

const form = "document.querySelector('[data-items] form')"

func button(name string) string { return form + ".querySelector('[data-do=" + name + "]')" }

func visible(name string) string { return "!" + button(name) + ".hidden" }

func rename(tab *browsertest.Tab, name string) {
	tab.Eval("{ const f = "+form+".elements.name; f.value = '"+name+"'; f.dispatchEvent(new Event('input', {bubbles: true})) }", nil)
}

func TestTwoEditAndWhoseBrowserEndsBlocksNobody(t *testing.T) {
	s := live(t)
	browser, lena := s.editor(t, "Lena")
	_, omar := s.editor(t, "Omar")
	lena.Wait("document.body.innerText.includes('Omar') && document.body.innerText.includes('Lena (you)')")
	omar.Wait("document.body.innerText.includes('Omar (you)') && " + visible("edit"))

	lena.Wait(visible("edit"))
	lena.Eval(button("edit")+".click()", nil)
	lena.Wait(visible("save"))
	omar.Wait("document.body.innerText.includes('Lena is editing this section.') && !" + visible("edit") + " && " + visible("take"))
	rename(lena, "Parterre")
	lena.Eval(button("save")+".click()", nil)
	omar.Wait(form + ".querySelector('h3').textContent === 'Parterre'")

	lena.Reload()
	lena.Wait("document.querySelector('[data-items] form') && " + visible("save"))
	rename(lena, "Orchestra") // with the lock that the reload has kept
	lena.Eval(button("save")+".click()", nil)
	omar.Wait(form + ".querySelector('h3').textContent === 'Orchestra' && !" + visible("edit"))

	browser.Kill()
	took := omar.WaitFor(15*time.Second, visible("edit"))
	t.Logf("%v after the browser of who edited has ended, another may edit", took.Round(10*time.Millisecond))
	omar.Wait("!document.body.innerText.includes('Lena')")
	omar.Eval(button("edit")+".click()", nil)
	omar.Wait(visible("save"))
	rename(omar, "Pit")
	omar.Eval(button("done")+".click()", nil)
	omar.Wait(visible("edit") + " && " + form + ".querySelector('h3').textContent === 'Pit'")
}

func TestWhoIsTakenOverIsToldAndKeepsTheDraft(t *testing.T) {
	s := live(t)
	_, lena := s.editor(t, "Lena")
	_, omar := s.editor(t, "Omar")
	lena.Wait(visible("edit"))
	lena.Eval(button("edit")+".click()", nil)
	lena.Wait(visible("save"))
	rename(lena, "Parterre")
	omar.Wait(visible("take"))
	omar.Eval(button("take")+".click()", nil)
	omar.Wait(visible("save"))
	lena.Wait("document.body.innerText.includes('Omar took over. Your changes are kept here') && " + visible("copy") + " && " + form + ".elements.name.value === 'Parterre'")
	omar.Eval(button("done")+".click()", nil)
	lena.Wait(visible("edit"))
	lena.Eval("document.querySelector('[data-do=edit-all]').click()", nil)
	omar.Wait("document.body.innerText.includes('Lena is editing everything.')")
	lena.Wait("!document.querySelector('[data-do=done-all]').hidden")
	lena.Eval("document.querySelector('[data-do=done-all]').click()", nil)
	omar.Wait(form + ".querySelector('h3').textContent === 'Parterre' && " + visible("edit"))
}

func TestSeatsTurnTakenAndFreeInAnotherBrowser(t *testing.T) {
	s := live(t)
	page := s.url + "/events/" + s.World.Event.String() + "/seats?section=Stalls"
	lena, omar := browsertest.Open(t).Tab(page), browsertest.Open(t).Tab(page)
	const chip = "document.querySelector(\"[data-seat='54']\")"
	for _, tab := range []*browsertest.Tab{lena, omar} {
		tab.Wait("document.querySelector('input[name=session]')?.value")
		tab.Eval(chip+".querySelector('input').click()", nil)
	}
	lena.Wait("document.body.innerText.includes('2 people are looking.')")
	lena.Eval("document.querySelector('.bar .next').click()", nil)
	omar.Wait(chip + ".classList.contains('held') && " + chip + ".querySelector('input').disabled && document.body.innerText.includes('Someone is buying C14 right now.')")
	lena.Wait("location.pathname.startsWith('/holds/') && document.querySelector('form[action$=release]')")
	lena.Eval("document.querySelector('form[action$=release] button').click()", nil)
	omar.Wait(chip + ".classList.contains('free') && !" + chip + ".querySelector('input').disabled")
	if status, _, err := s.buy(Seat14C); status != http.StatusCreated {
		t.Fatalf("a booking is answered %d, %v", status, err)
	}
	omar.Wait(chip + ".classList.contains('booked')")
}
