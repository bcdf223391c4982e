package webui_test

import (
	"testing"
	"time"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/internal/browsertest"
)

// shopper is a tab of the site's whose script has a cart, and writes down what it tells.
func (s site) shopper(t *testing.T, b *browsertest.Chromium) *browsertest.Tab {
	t.Helper()
	tab := b.Tab(s.url + "/events/" + s.Event.String())
	tab.Eval(`import("/static/cart.js").then(({Cart}) => {
		window.told = []
		window.cart = new Cart({event: "`+s.Event.String()+`", session: () => null})
		for (const type of ["lost", "warn", "over", "line"]) cart.addEventListener(type, e => told.push({type, ...e.detail}))
	})`, nil)
	return tab
}

// held are the seats that somebody else than nobody holds.
func (s site) held(t *testing.T) (n int) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM seats s JOIN holds h ON h.event_id = s.event_id AND h.id = s.hold_id WHERE h.status = 'open'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCartHoldsWhatTheServerSays(t *testing.T) {
	s := open(t, nil)
	tab := s.shopper(t, browsertest.Open(t))
	tab.Eval("window.first = cart.pick(1); if (cart.hold || !cart.asking.has(1)) throw new Error('it is not asked for')", nil)
	tab.Eval("first", nil)
	tab.Eval("Promise.all([cart.pick(2), cart.pick(3), cart.drop(2)])", nil)
	tab.Wait("[...cart.seats.keys()].join() === '1,3' && cart.asking.size + cart.dropping.size === 0 && cart.left > 60_000")
	if n := s.held(t); n != 2 {
		t.Errorf("%d seats are held", n)
	}

	s.MustHold(t, Buyer(), 4)
	tab.Eval("cart.pick(4)", nil)
	tab.Wait("told.length === 1 && told[0].type === 'lost' && told[0].code === 'seat_taken' && told[0].seats[0].id === 4 && told[0].seats[0].reason === 'held' && told[0].alternatives.length > 0")
	tab.Wait("[...cart.seats.keys()].join() === '1,3'")

	tab.Eval("cart.drop(1); cart.drop(3)", nil)
	tab.Wait("cart.hold === null")
	if n := s.held(t); n != 1 {
		t.Errorf("%d seats are held, one of them by somebody else", n)
	}
	tab.Eval("cart.best({quantity: 2})", nil)
	tab.Wait("cart.hold.seats.length === 2 && cart.hold.together")
	tab.Eval("cart.best({quantity: 3})", nil) // in place of the two
	tab.Wait("cart.hold.seats.length === 3")
	if n := s.held(t); n != 4 {
		t.Errorf("%d seats are held after another wish", n)
	}
}

func TestCartLosesNoAnswer(t *testing.T) {
	s := open(t, nil)
	tab := s.shopper(t, browsertest.Open(t))
	// The first two answers get lost after the server has done what it was asked for.
	tab.Eval(`{ const real = fetch; let lost = 2; window.fetch = async (...what) => { const answer = await real(...what); if (lost-- > 0) throw new TypeError("the line is cut"); return answer } }`, nil)
	tab.Eval("cart.pick(1)", nil)
	tab.Wait("cart.hold.seats.length === 1")
	tab.Offline(true)
	tab.Eval("window.second = cart.pick(2); 0", nil)
	tab.Wait("told.some(e => e.type === 'line' && !e.up) && cart.hold.seats.length === 1")
	tab.Offline(false)
	tab.Eval("second", nil)
	tab.Wait("told.some(e => e.type === 'line' && e.up) && cart.hold.seats.length === 2")
	var holds int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM holds").Scan(&holds); err != nil || holds != 1 {
		t.Errorf("%d holds were made, %v", holds, err)
	}
}

func TestCartsOfTwoTabsAreOne(t *testing.T) {
	s := open(t, nil)
	b := browsertest.Open(t)
	one, two := s.shopper(t, b), s.shopper(t, b)
	one.Eval("cart.pick(1)", nil)
	two.Wait("cart.hold?.seats.length === 1")
	two.Eval("cart.pick(2)", nil)
	one.Wait("cart.hold.seats.length === 2")
	one.Eval("Promise.all([cart.extend(), cart.extend()])", nil)
	two.Eval("cart.release()", nil)
	one.Wait("cart.hold === null && told.some(e => e.type === 'over' && e.status === 'released')")
	if n := s.held(t); n != 0 {
		t.Errorf("%d seats are held", n)
	}
}

func TestCartIsOverWhenItsTimeIs(t *testing.T) {
	s := open(t, nil, func(l *booking.Limits) { l.HoldTTL, l.HoldLongest = 4*time.Second, 20*time.Second })
	tab := s.shopper(t, browsertest.Open(t))
	tab.Eval("cart.pick(1)", nil)
	tab.Wait("told.some(e => e.type === 'warn' && e.seconds === 60)")
	var before float64
	tab.Eval("cart.left", &before)
	tab.Eval("new Promise(done => setTimeout(done, 1500)).then(() => cart.extend())", nil)
	var after float64
	if tab.Eval("cart.left", &after); after < 3000 {
		t.Errorf("%v ms are left of 4 s after an extension, %v before", after, before)
	}
	tab.Wait("cart.hold === null && told.some(e => e.type === 'over' && e.status === 'expired' && e.seats[0].id === 1)")
	tab.Eval("cart.pick(1)", nil)
	tab.Wait("cart.hold.seats[0].id === 1")
}
