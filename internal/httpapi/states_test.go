package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/internal/httpapi"
	"seatfence/seats"
)

// states are refusals that depend on what has happened before. Each kind has objects of its own.
func (s *suite) states() {
	s.t.Helper()
	s.sales()
	s.holds()
	s.others()
	s.credentials()
	s.running()
	s.panics()
}

func (s *suite) eventWith(changes ...string) string {
	s.t.Helper()
	body := strings.NewReplacer(changes...).Replace(newEvent("on_sale"))
	return s.post("/v1/events", body, as(s.organizer), key(fmt.Sprint("event-", s.keys.Add(1)))).want(201).text("id")
}

// wideRow makes row B of an event the seats 11 to 210.
var wideRow = []string{`"label":"B","category":"A","seats":10`, `"label":"B","category":"A","seats":200`}

func (s *suite) holdIn(event, seats, token string) string {
	s.t.Helper()
	return s.post("/v1/events/"+event+"/holds", `{"seats":[`+seats+`]}`, as(token), key(fmt.Sprint("hold-", s.keys.Add(1)))).want(201).text("id")
}

func confirmation(hold string) string {
	return `{"hold":"` + hold + `","buyer":{"name":"Lena","email":"lena@example.com"}}`
}

func direct(event, what string) string {
	return `{"event":"` + event + `",` + what + `,"buyer":{"name":"Lena","email":"lena@example.com"}}`
}

// sales tries all that sells on events that do not.
func (s *suite) sales() {
	s.t.Helper()
	lena := s.buyer()
	now := time.Now().UTC()
	draft := s.eventWith("on_sale", "draft")
	early := s.eventWith("2020-01-01T00:00:00Z", now.Add(time.Hour).Format(time.RFC3339))
	late := s.eventWith("2099-03-01T18:00:00Z", now.Add(-time.Hour).Format(time.RFC3339))
	refused := func(name, event, answers string, hold string) {
		for _, b := range []bad{
			{74, name + ": hold", "POST", "/v1/events/" + event + "/holds", `{"seats":[1]}`, nil, answers},
			{74, name + ": places", "POST", "/v1/events/" + event + "/holds", `{"ga":{"area":1,"quantity":1}}`, nil, answers},
			{74, name + ": booking", "POST", "/v1/bookings", direct(event, `"seats":[1]`), nil, answers},
			{74, name + ": bookings", "POST", "/v1/bookings", direct(event, `"seats":[1,2]`), nil, answers},
			{74, name + ": places booked", "POST", "/v1/bookings", direct(event, `"ga":{"area":1,"quantity":1}`), nil, answers},
			{74, name + ": addition", "PATCH", "/v1/holds/" + hold, `{"add":[3]}`, nil, answers},
			{74, name + ": extension", "PATCH", "/v1/holds/" + hold, `{"extend":true}`, nil, answers},
			{74, name + ": check-out", "POST", "/v1/holds/" + hold + "/checkout", "", nil, answers},
			{74, name + ": confirmation", "POST", "/v1/bookings", confirmation(hold), nil, answers},
		} {
			if hold == "" && (b.method == "PATCH" || strings.Contains(b.name, "check-out") || strings.Contains(b.name, "confirmation")) {
				continue
			}
			b.edits = []edit{as(lena)}
			s.unwritten(b.name, func() { s.refuse(b) })
		}
	}
	refused("draft", draft, notFound, "")
	refused("early", early, "409 sale_not_started", "")
	refused("late", late, "409 sale_ended", "")
	s.refuse(bad{74, "draft of the key's own", "POST", "/v1/events/" + draft + "/holds", `{"seats":[1]}`, []edit{as(s.partner)}, "409 event_draft"})
	for _, status := range []string{"paused", "ended", "cancelled"} {
		event := s.eventWith()
		hold := s.holdIn(event, "9", lena)
		s.do("PATCH", "/v1/events/"+event, `{"status":"`+status+`"}`, as(s.organizer)).want(200)
		refused(status, event, "409 event_"+status, hold)
	}
	event := s.eventWith()
	s.refuse(bad{74, "sold out", "POST", "/v1/events/" + s.eventWith(`"capacity":20`, `"capacity":1`) + "/holds", `{"ga":{"area":1,"quantity":2}}`, []edit{as(lena)}, "409 sold_out"})
	s.refuse(bad{74, "backwards", "PATCH", "/v1/events/" + s.eventWith("on_sale", "draft"), `{"status":"paused"}`, []edit{as(s.organizer)}, "409 bad_transition"})
	s.refuse(bad{107, "window", "PATCH", "/v1/events/" + event, `{"sale_starts_at":"2099-12-01T00:00:00Z"}`, []edit{as(s.organizer)}, wrong})
	s.refuse(bad{34, "payment", "POST", "/v1/bookings", direct(s.eventWith(`"payment":"none"`, `"payment":"required"`), `"seats":[1]`), []edit{as(lena)}, "403 payment_required"})

	// The dearest seats there can be, as many as there can be, are a sum like any other.
	dear := s.eventWith("4500", "1000000000")
	s.tried[33]++
	if got := s.post("/v1/events/"+dear+"/holds", `{"ga":{"area":1,"quantity":20}}`, as(lena), key("dear")).want(201); got.number("total") != 20_000_000_000 {
		s.t.Errorf("33: total %s", got.raw)
	}
	larger := s.eventWith(wideRow...)
	s.tried[27]++
	s.get("/v1/events/" + larger + "/seats/200").want(200)
	for _, b := range []bad{
		{27, "hold", "POST", "/v1/events/" + event + "/holds", `{"seats":[1,200]}`, []edit{as(lena)}, "404 seat_unknown"},
		{27, "booking", "POST", "/v1/bookings", direct(event, `"seats":[200]`), []edit{as(lena)}, "404 seat_unknown"},
		{27, "area", "POST", "/v1/bookings", direct(event, `"ga":{"area":2,"quantity":1}`), []edit{as(lena)}, notFound},
		{27, "block", "POST", "/v1/events/" + event + "/blocks", `{"seats":[1,200],"reason":"x"}`, []edit{as(s.organizer)}, "404 seat_unknown"},
		{27, "read", "GET", "/v1/events/" + event + "/seats/200", "", nil, notFound},
	} {
		s.unwritten(b.name, func() { s.refuse(b) })
	}
}

// holds are tried after their time, and after their end.
func (s *suite) holds() {
	s.t.Helper()
	lena := s.buyer()
	event := s.eventWith()
	over := s.holdIn(event, "1", lena)
	if _, err := s.pool.Exec(s.t.Context(), `WITH h AS (UPDATE holds SET expires_at = statement_timestamp() - interval '1 minute'
		WHERE id = (SELECT hold_id FROM seats WHERE event_id = holds.event_id AND id = 1 AND buyer IS NULL) AND status = 'open' RETURNING event_id, id)
		UPDATE seats s SET held_until = statement_timestamp() - interval '1 minute' FROM h WHERE s.event_id = h.event_id AND s.hold_id = h.id`); err != nil {
		s.t.Fatal(err)
	}
	s.unwritten("expired hold", func() {
		for _, b := range []bad{
			{71, "confirmation", "POST", "/v1/bookings", confirmation(over), nil, "410 hold_expired"},
			{71, "check-out", "POST", "/v1/holds/" + over + "/checkout", "", nil, "410 hold_expired"},
			{71, "extension", "PATCH", "/v1/holds/" + over, `{"extend":true}`, nil, "410 hold_expired"},
			{71, "addition", "PATCH", "/v1/holds/" + over, `{"add":[2]}`, nil, "410 hold_expired"},
		} {
			b.edits = []edit{as(lena)}
			s.refuse(b)
		}
	})
	hold := s.holdIn(event, "3", lena)
	first := s.post("/v1/bookings", confirmation(hold), as(lena), key("confirm-1")).want(201)
	for _, k := range []string{"confirm-1", "confirm-2"} {
		s.tried[72]++
		if again := s.post("/v1/bookings", confirmation(hold), as(lena), key(k)).want(201); string(again.raw) != string(first.raw) {
			s.t.Errorf("72: confirmed again: %s, first %s", again.raw, first.raw)
		}
	}
	s.unwritten("another confirmation under the key", func() {
		s.refuse(bad{
			72, "another buyer's name under the key", "POST", "/v1/bookings", strings.Replace(confirmation(hold), "Lena", "Omar", 1),
			[]edit{as(lena), key("confirm-1")},
			"422 idempotency_key_reused",
		})
	})
	cancel := "/v1/bookings/" + first.text("id") + "/cancel"
	s.post(cancel, "", as(lena)).want(200)
	s.unwritten("second cancellation", func() {
		s.refuse(bad{73, "by the buyer", "POST", cancel, "", []edit{as(lena)}, "409 booking_cancelled"})
		s.refuse(bad{73, "by the organizer", "POST", cancel, "", []edit{as(s.organizer)}, "409 booking_cancelled"})
	})
}

// others have keys and ids of their own.
func (s *suite) others() {
	s.t.Helper()
	lena, omar := s.buyer(), s.buyer()
	event := s.eventWith()
	for seat, token := range []string{lena, omar, s.partner, s.organizer} {
		s.tried[62]++
		got := s.post("/v1/bookings", direct(event, fmt.Sprintf(`"seats":[%d]`, seat+1)), as(token), key("everybody's")).want(201)
		if got.header.Get("Idempotent-Replayed") != "" || got.number("seats", 0, "id") != seat+1 {
			s.t.Errorf("62: got another client's answer: %s", got.raw)
		}
	}
	hold := s.holdIn(event, "9", lena)
	block := s.post("/v1/events/"+event+"/blocks", `{"seats":[10],"reason":"x"}`, as(s.organizer), key("others")).want(201).text("id")
	booking := s.post("/v1/bookings", direct(event, `"seats":[11]`), as(lena), key("others")).want(201).text("id")
	s.unwritten("somebody else", func() {
		for _, b := range []bad{
			{70, "hold", "DELETE", "/v1/holds/" + hold, "", []edit{as(omar)}, notFound},
			{70, "confirmation", "POST", "/v1/bookings", confirmation(hold), []edit{as(omar)}, notFound},
			{70, "booking", "POST", "/v1/bookings/" + booking + "/cancel", "", []edit{as(omar)}, notFound},
			{70, "block", "DELETE", "/v1/events/" + event + "/blocks/" + block, "", []edit{as(s.foreign)}, notFound},
			{70, "block under another event", "DELETE", "/v1/events/" + s.event + "/blocks/" + block, "", []edit{as(s.organizer)}, notFound},
		} {
			s.refuse(b)
		}
		for _, b := range []bad{
			{67, "event", "POST", "/v1/events", newEvent("draft"), nil, "403 forbidden"},
			{67, "change", "PATCH", "/v1/events/" + event, `{"status":"paused"}`, nil, "403 forbidden"},
			{67, "history", "GET", "/v1/events/" + event + "/seats/1/history", "", nil, "403 forbidden"},
			{67, "block", "POST", "/v1/events/" + event + "/blocks", `{"seats":[12],"reason":"x"}`, nil, "403 forbidden"},
			{67, "end of a block", "DELETE", "/v1/events/" + event + "/blocks/" + block, "", nil, "403 forbidden"},
		} {
			for _, token := range []string{s.partner, lena} {
				b.edits = []edit{as(token)}
				s.refuse(b)
			}
		}
		s.refuse(bad{
			67, "payment reference", "POST", "/v1/bookings", strings.TrimSuffix(direct(event, `"seats":[12]`), "}") + `,"payment_reference":"x"}`,
			[]edit{as(lena)},
			"403 forbidden",
		})
	})
}

// credentials that do not work are answered alike, whatever is wrong with them.
func (s *suite) credentials() {
	s.t.Helper()
	var first string
	for _, token := range []string{
		"sf_x", s.revoked, swapped(s.revoked), swapped(s.organizer), s.organizer[:len(s.organizer)-1] + "_", "sfs_x", swapped(s.buyer()), "x",
	} {
		s.tried[65]++
		got := s.get("/v1/bookings", as(token)).wantCode(401, "unauthorized")
		if text := withoutRequestID(got); first == "" {
			first = text
		} else if text != first {
			s.t.Errorf("65: %s\nis not %s", text, first)
		}
	}
}

// withoutRequestID is all of an answer but the name of the request and the time.
func withoutRequestID(got answer) string {
	header := got.header.Clone()
	header.Del("X-Request-Id")
	header.Del("Date")
	id, _ := got.body["request_id"].(string)
	text := strings.ReplaceAll(string(got.raw), id, "")
	header.Set("Content-Length", fmt.Sprint(len(text)))
	return fmt.Sprint(got.status, header, text)
}

// running asks while another request has used the key and has not committed.
func (s *suite) running() {
	s.t.Helper()
	started := s.post("/v1/sessions", "").want(201)
	event, err := seats.ParseEventID(s.event)
	if err != nil {
		s.t.Fatal(err)
	}
	free := s.locked(`INSERT INTO idempotency_keys (event_id, caller, key, fingerprint, result, created_at) VALUES ($1, $2, 'running', '', '{}', now())`,
		int64(event), started.text("id"))
	lena := []edit{as(started.text("token")), key("running")}
	s.unwritten("running", func() {
		for _, b := range []bad{
			{61, "booking", "POST", "/v1/bookings", direct(s.event, `"seats":[28]`), lena, "409 seat_busy"},
			{61, "bookings", "POST", "/v1/bookings", direct(s.event, `"seats":[28,29]`), lena, "409 seat_busy"},
			{61, "hold", "POST", "/v1/events/" + s.event + "/holds", `{"seats":[28]}`, lena, "409 seat_busy"},
		} {
			if got := s.refuse(b); got.header.Get("Retry-After") != "1" {
				s.t.Errorf("61: no Retry-After: %v", got.header)
			}
		}
	})
	free()
	s.post("/v1/bookings", direct(s.event, `"seats":[28]`), lena...).want(201)
}

// panics makes every operation panic: the answer tells nothing, nothing is written, and the connection lives.
func (s *suite) panics() {
	s.t.Helper()
	sick := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Request().Header.Get("X-Panic") != "" {
				panic("lena@example.com")
			}
			return next(c)
		}
	}
	p := &suite{api: newAPI(s.t, func(d *httpapi.Deps) { d.Middleware = []echo.MiddlewareFunc{sick} }), tried: s.tried}
	targets := p.targets(p.requests())
	p.unwritten("panics", func() {
		for _, x := range targets {
			if x.op.Responses.Status(500) == nil {
				continue // a probe
			}
			p.refuse(bad{90, x.name, x.method, x.path(), x.body, append(x.edits(), header("X-Panic", "1")), "500 internal"})
			p.get("/healthz").want(200)
		}
	})
}

// TestGetHasAHead reads the same of every address without its body.
func TestGetHasAHead(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, x := range a.targets(a.requests()) {
		if x.method == http.MethodGet {
			if got := a.do(http.MethodHead, x.path(), "", x.edits()...).want(x.status); len(got.raw) > 0 {
				t.Errorf("HEAD %s has a body: %s", x.path(), got.raw)
			}
		}
	}
}
