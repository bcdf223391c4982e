package webui_test

import (
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/lockmgr"
	"seatfence/seats"
)

const seat14C, seat15C, seat16C = "54", "55", "56"

func holdOf(t *testing.T, p page) booking.HoldID {
	t.Helper()
	id, err := booking.ParseHoldID(strings.TrimPrefix(p.path, "/holds/"))
	if err != nil {
		t.Fatalf("%s is not the page of a hold: %s", p.path, p.words)
	}
	return id
}

func (s site) state(t *testing.T, id seats.ID) seats.State {
	t.Helper()
	seat, err := s.Service.Seat(t.Context(), s.Owner, s.Event, id)
	if err != nil {
		t.Fatal(err)
	}
	return seat.State
}

func TestABuyerGetsFromTheListToTheirBooking(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	event := b.get("/").says(200, "An evening", "The small house", "On sale until", "Europe/Berlin").follow("An evening")
	event.says(200, "Stalls 45.00 EUR", "60 of 60", "30 of 30 left", "On sale until")
	section := event.follow("Stalls").says(200, "Row C")
	if usable := section.labels()["Stalls, row C, seat 14, 45.00 EUR, free"]; !usable {
		t.Error("14C cannot be ticked")
	}
	hold := section.send("Hold the ticked seats", url.Values{"seat": {seat14C, seat15C}})
	hold.says(200, "C14 and C15 are yours until", "about 10 minutes", "Europe/Berlin", "Total 90.00 EUR", "Book C14 and C15 for 90.00 EUR")

	made := hold.send("Book C14", lena)
	made.says(200, "C14 and C15 are yours.", "on its way to l…@example.com", "Booking number", "90.00 EUR")
	if !strings.HasPrefix(made.path, "/bookings/bkg_") || strings.Contains(made.words, "lena@example.com") {
		t.Errorf("%s: %s", made.path, made.words)
	}
	if s.state(t, Seat14C) != seats.Booked {
		t.Error("14C is not booked")
	}
	taken := s.visitor(t).get(s.stalls())
	if usable, there := taken.labels()["Stalls, row C, seat 14, 45.00 EUR, sold"]; usable || !there {
		t.Error("14C is not shown as sold to others")
	}
	made.get(hold.path).says(200, "C14 and C15 are yours.")

	ask := made.follow("Cancel this booking").says(200, "This cannot be undone")
	ask.send("Cancel the booking", nil).says(200, "This booking is cancelled", "C14 and C15 are on sale again")
	ask.send("Cancel the booking", nil).says(200, "This booking is cancelled")
	if s.state(t, Seat14C) != seats.Free {
		t.Error("14C is not free after the cancel")
	}
}

func TestPlacesOfAnAreaAreHeldByNumber(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	event := b.get(s.eventPath())
	event.send("Hold places in Floor", url.Values{"quantity": {"31"}}).says(422)
	hold := event.send("Hold places in Floor", url.Values{"quantity": {"2"}})
	hold.says(200, "2 places in Floor are yours until", "Total 60.00 EUR")
	s.Expire(t, holdOf(t, hold))
	again := b.get(hold.path).says(410, "Your time is up", "2 places in Floor are still there")
	again.send("Take them again", nil).says(200, "2 places in Floor are yours until")
	for range 2 {
		if _, _, err := s.Service.Hold(t.Context(), Buyer(), Key(), booking.HoldRequest{Event: s.Event, Places: &booking.AreaPlaces{Area: Floor, Quantity: 14}}); err != nil {
			t.Fatal(err)
		}
	}
	event.send("Hold places in Floor", url.Values{"quantity": {"1"}}).says(409, "There are not that many places left")
}

func TestLosingARaceNamesTheSeatsThatAreFree(t *testing.T) {
	s := open(t, nil)
	section := s.visitor(t).get(s.stalls())
	if _, err := s.Book(t.Context(), Buyer(), Seat14C); err != nil {
		t.Fatal(err)
	}
	lost := section.send("Hold the ticked seats", url.Values{"seat": {seat14C}})
	lost.says(409, "C14 was just bought by someone else.", "same price, are free.")
	_, form := lost.form("Take these seats")
	if got := form["seat"]; len(got) != 1 || got[0] != "53" && got[0] != seat15C {
		t.Errorf("offered seats %v instead of 14C", got)
	}
	lost.send("Take these seats", nil).says(200, "yours until")
	lost.follow("Back to Stalls").says(200)

	two := section.send("Hold the ticked seats", url.Values{"seat": {seat14C, seat16C}})
	two.says(409, "C14 was just bought by someone else.", "C16 is still free.")
	if _, form := two.form("Take these seats"); len(form["seat"]) != 2 || form["seat"][0] != seat16C {
		t.Errorf("offered seats %v instead of 14C and 16C", form["seat"])
	}
}

func TestAHeldSeatIsToldApartFromASoldOne(t *testing.T) {
	s := open(t, nil)
	section := s.visitor(t).get(s.stalls())
	hold := s.MustHold(t, Buyer(), Seat14C)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	section.send("Hold the ticked seats", url.Values{"seat": {seat14C}}).
		says(409, "Someone is buying C14 right now. If they don't finish, it comes back at "+hold.ExpiresAt.In(berlin).Format("15:04"))
}

func TestASeatUnderWriteIsBusyForAMoment(t *testing.T) {
	rdb, err := lockmgr.Open(dbtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	locks := lockmgr.NewSeats(rdb, time.Minute, nil)
	s := open(t, locks)
	section := s.visitor(t).get(s.stalls())
	other := locks.Acquire(t.Context(), int64(s.Event), []seats.ID{Seat14C}, lockmgr.Owner{Caller: "omar", Key: "1"})
	if other.Verdict != lockmgr.Acquired {
		t.Fatalf("the other buyer's lock is %s", other.Verdict)
	}
	busy := section.send("Hold the ticked seats", url.Values{"seat": {seat14C}})
	busy.says(409, "Someone is buying C14 right now. Try again in a moment.")
	if busy.header.Get("Retry-After") != "1" {
		t.Error("no Retry-After")
	}
	other.Release(t.Context())
	busy.send("Try again", nil).says(200, "C14 is yours until")
}

func TestMeetingOnesOwnSeatLeadsToIt(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	section := b.get(s.stalls())
	hold := b.pick(seat14C).says(200, "C14 is yours until")
	own := section.send("Hold the ticked seats", url.Values{"seat": {seat14C}})
	own.says(409, "C14 is yours already.", "You are holding C14 until")
	if back := own.follow("Go to your seats"); back.path != hold.path {
		t.Errorf("the link leads to %s, not to %s", back.path, hold.path)
	}
	if usable, there := b.get(s.stalls()).labels()["Stalls, row C, seat 14, 45.00 EUR, yours"]; usable || !there {
		t.Error("the buyer's own seat is not shown as theirs")
	}
}

func TestAHoldIsChangedOnItsPage(t *testing.T) {
	s := open(t, nil)
	hold := s.visitor(t).pick(seat14C, seat15C, seat16C).says(200, "C14, C15 and C16 are yours")
	id := holdOf(t, hold)
	hold.send("Give back Stalls, row C, seat 16", nil).says(200, "C14 and C15 are yours")
	hold.send("Give back Stalls, row C, seat 16", nil).says(200, "C14 and C15 are yours")
	hold.send("Book C14", lena).says(409, "Your seats have changed")

	if _, err := s.Pool.Exec(t.Context(), "UPDATE holds SET expires_at = expires_at - interval '5 min' WHERE id = $1", id.Key); err != nil {
		t.Fatal(err)
	}
	short := hold.get(hold.path).says(200, "about 5 minutes")
	short.send("More time", nil).says(200, "about 10 minutes")
	short.send("More time", nil).says(200, "about 10 minutes")
	var extensions int
	if err := s.Pool.QueryRow(t.Context(), "SELECT extensions FROM holds WHERE id = $1", id.Key).Scan(&extensions); err != nil || extensions != 1 {
		t.Errorf("two clicks made %d extensions, %v", extensions, err)
	}

	hold.send("Give all back", nil).says(200, "You have given these seats back", "C14 and C15 are still there")
	hold.send("Give all back", nil).says(200, "You have given these seats back").
		send("Take them again", nil).says(200, "C14 and C15 are yours until")
}

func TestAnExpiredHoldOffersWhatIsStillFree(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	hold := b.pick(seat14C, seat15C)
	s.Expire(t, holdOf(t, hold))
	if _, err := s.Book(t.Context(), Buyer(), 55); err != nil {
		t.Fatal(err)
	}
	over := hold.send("Book C14", lena).says(410, "Your time is up", "C14 is still there", "C15 has gone to someone else")
	hold.send("More time", nil).says(410, "Your time is up")
	over.send("Take it again", nil).says(200, "C14 is yours until")
}

func TestAFormSentTwiceMakesOneBooking(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	section := b.get(s.stalls())
	twice := func(p page, button string, set url.Values) [8]page {
		var got [8]page
		var clicks sync.WaitGroup
		for i := range got {
			clicks.Go(func() { got[i] = p.send(button, set) })
		}
		clicks.Wait()
		for _, g := range got {
			if g.says(200).path != got[0].path {
				t.Errorf("one form led to %s and to %s", got[0].path, g.path)
			}
		}
		return got
	}
	holds := twice(section, "Hold the ticked seats", url.Values{"seat": {seat14C}})
	twice(holds[0], "Book C14", lena)
	var n int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM bookings").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d bookings, %v", n, err)
	}
	// A browser that goes back may show the form as it was: another choice is another request, not a reused key.
	section.send("Hold the ticked seats", url.Values{"seat": {seat16C}}).says(200, "C16 is yours until")
}

func TestAFormKeepsWhatWasTyped(t *testing.T) {
	s := open(t, nil)
	hold := s.visitor(t).pick(seat14C)
	wrong := hold.send("Book C14", url.Values{"name": {"\u202e"}, "email": {"lena at example"}})
	wrong.says(422, "A name has no control", "One e-mail address", "C14 is yours until")
	if _, form := wrong.form("Book C14"); form.Get("email") != "lena at example" {
		t.Errorf("the form lost what was typed: %v", form)
	}
	wrong.send("Book C14", lena).says(200, "C14 is yours.")
}

func TestTheSaleOfAnEventIsToldInWords(t *testing.T) {
	s := open(t, nil)
	stale := s.visitor(t).get(s.stalls())
	hold := s.visitor(t).pick(seat16C)
	seat := url.Values{"seat": {seat14C}}
	set := func(c booking.EventChange) {
		t.Helper()
		if _, err := s.Service.UpdateEvent(t.Context(), s.Owner, s.Event, c); err != nil {
			t.Fatal(err)
		}
	}
	status := func(name string) booking.EventChange { return booking.EventChange{Status: &name} }
	at := func(d time.Duration) *time.Time {
		moment := time.Now().Add(d)
		return &moment
	}
	set(booking.EventChange{SaleStartsAt: at(time.Hour)})
	stale.send("Hold", seat).says(409, "The sale has not started yet")
	stale.get(s.stalls()).says(200, "The sale starts on", "No seats can be held")
	set(booking.EventChange{SaleStartsAt: at(-2 * time.Hour), SaleEndsAt: at(-time.Hour)})
	stale.send("Hold", seat).says(409, "The sale has ended")
	set(booking.EventChange{SaleEndsAt: at(time.Hour)})
	set(status(booking.StatusPaused))
	stale.send("Hold", seat).says(409, "The sale is paused")
	hold.send("Book C16", lena).says(409, "The sale is paused").follow("Back to your seats").says(200, "C16 is yours until")
	stale.get(s.eventPath()).says(200, "The sale is paused")
	set(status(booking.StatusCancelled))
	stale.send("Hold", seat).says(409, "This event is cancelled")
	stale.get("/").says(200, "This event is cancelled")
}

func TestAnEventAgainstPaymentSaysThatItCannotBeBookedHere(t *testing.T) {
	s := open(t, nil)
	spec := Spec()
	spec.Payment = booking.PaymentRequired
	s.Event = s.NewEvent(t, spec)
	hold := s.visitor(t).pick(seat14C).says(200, "this page cannot take a payment yet")
	values := url.Values{"key": {"AAAA"}, "total": {strconv.Itoa(SeatPrice)}, "name": {"Lena"}, "email": {"lena@example.com"}}
	hold.post(hold.path+"/book", values).says(403, "These seats have to be paid for")
}

func TestTheCapIsToldWithWhatIsHeld(t *testing.T) {
	s := open(t, nil, func(l *booking.Limits) { l.HeldByBuyer = 1 })
	b := s.visitor(t)
	b.pick(seat14C).says(200)
	b.pick(seat15C).says(409, "You are holding as many seats as one buyer can", "You are holding C14 until")
}

func TestOthersSeeNothingOfAHoldOrABooking(t *testing.T) {
	s := open(t, nil)
	b, other := s.visitor(t), s.visitor(t)
	hold := b.pick(seat14C)
	for _, action := range []string{"/release", "/extend", "/drop", "/book"} {
		form := url.Values{"key": {"AAAA"}, "seat": {seat14C}, "until": {time.Now().Format(time.RFC3339)}}
		other.post(hold.path+action, form).says(404, "There is nothing here")
	}
	other.get(hold.path).says(404)
	made := hold.send("Book C14", lena)
	other.get(made.path).says(404)
	other.get(made.path + "/cancel").says(404)
	other.post(made.path+"/cancel", nil).says(404)
	if s.state(t, Seat14C) != seats.Booked {
		t.Error("another visitor has cancelled the booking")
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	action, form := b.get(s.stalls()).form("Hold the ticked seats")
	form.Set("seat", seat14C)
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://example.org"}, {"Origin", "null"},
	} {
		b.post(action, form, header...).says(403, "This form came from another site")
	}
	if s.state(t, Seat14C) != seats.Free {
		t.Error("a form of another site took a seat")
	}
	b.post(action, form, "Origin", s.url, "Sec-Fetch-Site", "same-origin").says(200, "C14 is yours until")
}

func TestPagesLoadNothingForeignAndAreNotKept(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	for _, path := range []string{"/", s.eventPath(), s.stalls(), "/events/none"} {
		p := b.get(path)
		if csp := p.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s has the policy %q", path, csp)
		}
		if p.header.Get("X-Content-Type-Options") != "nosniff" || p.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s has headers %v", path, p.header)
		}
		for n := range p.doc.Descendants() {
			switch {
			case n.Data == "script" && n.FirstChild != nil, n.Data == "style", attr(n, "style") != "":
				t.Errorf("%s has an inline %s", path, n.Data)
			case n.Data == "link" && attr(n, "rel") == "stylesheet", n.Data == "script":
				loaded := b.get(attr(n, "href") + attr(n, "src")).says(200)
				if !strings.Contains(loaded.header.Get("Cache-Control"), "immutable") {
					t.Errorf("%s is not kept", loaded.path)
				}
			case n.Type == html.ElementNode && n.Data == "html" && attr(n, "lang") == "":
				t.Errorf("%s names no language", path)
			}
		}
	}
}
