package app_test

import (
	"fmt"
	"testing"

	"seatfence/internal/browsertest"
)

const drawnMap = "document.querySelector('.picker .map').seatmap"

// picker is an event's page with its map.
func (s site) picker(t *testing.T, b *browsertest.Chromium) *browsertest.Tab {
	t.Helper()
	tab := b.Tab(s.url + "/events/" + s.World.Event.String())
	tab.Screen(1440, 900, 1, false)
	tab.Wait("!document.getElementById('picker').hidden && " + drawnMap + "?.drawn.looks.free > 0")
	return tab
}

// clickSeat clicks on a seat where it is drawn.
func clickSeat(tab *browsertest.Tab, seat int) {
	var at struct{ X, Y float64 }
	tab.Eval(fmt.Sprintf("(() => { const host = document.querySelector('.picker .map'); host.scrollIntoView({block: 'center'}); const box = host.getBoundingClientRect(), p = %s.place(%d); return {X: box.left + host.clientLeft + p.x, Y: box.top + host.clientTop + p.y} })()", drawnMap, seat), &at)
	tab.Click(at.X, at.Y)
}

func TestSeatsAreBoughtOnTheMapWhileOthersWatch(t *testing.T) {
	s := live(t)
	lena, omar := s.picker(t, browsertest.Open(t)), s.picker(t, browsertest.Open(t))
	clickSeat(lena, 14)
	lena.Wait("document.querySelector('.choice').innerText.includes('A14 is yours until')")
	omar.Wait(drawnMap + ".drawn.looks.held === 1")
	clickSeat(omar, 14)
	omar.Wait("document.querySelector('.choice .news').textContent.startsWith('Someone is buying A14 right now. If they don\\'t finish, it comes back at ')")
	if text := omar.Text(".chosen"); text != "" {
		t.Errorf("the other has %s", text)
	}
	clickSeat(lena, 15)
	lena.Wait("document.querySelectorAll('.chosen li').length === 2 && " + drawnMap + ".drawn.looks.yours === 2")

	lena.Reload()
	lena.Wait("document.querySelectorAll('.chosen li').length === 2 && " + drawnMap + "?.drawn.looks.yours === 2")
	clickSeat(lena, 14) // back it goes
	lena.Wait("document.querySelectorAll('.chosen li').length === 1")
	omar.Wait(drawnMap + ".drawn.looks.held === 1")
	clickSeat(omar, 14)
	omar.Wait("document.querySelector('.choice').innerText.includes('A14 is yours until')")

	lena.Eval("setTimeout(() => document.querySelector('.choice a.next').click())", nil) // the answer comes before the page goes
	lena.Wait("location.pathname.startsWith('/holds/') && document.querySelector('#email')")
	lena.Eval("document.querySelector('#name').value = 'Lena'; document.querySelector('#email').value = 'lena@example.com'; setTimeout(() => document.querySelector('#email').form.requestSubmit())", nil)
	lena.Wait("location.pathname.startsWith('/bookings/')")
	omar.Wait(drawnMap + ".drawn.looks.booked === 1 && " + drawnMap + ".drawn.looks.yours === 1")
	s.World.Verify(t)
}

func TestBestSeatsAreShownOnTheMap(t *testing.T) {
	s := live(t)
	tab := s.picker(t, browsertest.Open(t))
	tab.Eval("document.querySelector('section[aria-labelledby=best] input[type=number]').value = 3; document.querySelector('section[aria-labelledby=best] form').requestSubmit()", nil)
	tab.Wait("document.querySelectorAll('.chosen li').length === 3 && " + drawnMap + ".drawn.looks.yours === 3")
	tab.Eval("document.querySelectorAll('.chosen button').forEach(b => b.click())", nil)
	tab.Wait("!document.querySelector('.chosen') && !" + drawnMap + ".drawn.looks.yours")
	tab.Eval("document.querySelector('.categories button').click()", nil)
	tab.Wait("document.querySelector('.categories button').getAttribute('aria-pressed') === 'false'")
}
