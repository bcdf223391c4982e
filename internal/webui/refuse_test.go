package webui_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"seatfence/booking"
	"seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/db/dbtest"
)

func TestBadRequestsGetAnAnswerInWords(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	hold := b.pick(seat14C).path
	const key = "AAAABBBB"
	seat := url.Values{"key": {key}, "seat": {seat15C}}
	with := func(name string, values ...string) url.Values {
		form := url.Values{"key": {key}, "seat": {seat15C}}
		form[name] = values
		return form
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = strconv.Itoa(i + 1)
	}
	holds := s.eventPath() + "/holds"
	for _, c := range []struct {
		name   string
		path   string
		form   url.Values
		status int
	}{
		{"no seat", holds, url.Values{"key": {key}}, 422},
		{"no key", holds, url.Values{"seat": {seat15C}}, 400},
		{"key of other letters", holds, with("key", "a\r\nb"), 400},
		{"long key", holds, with("key", strings.Repeat("A", 65)), 400},
		{"seat 0", holds, with("seat", "0"), 422},
		{"seat -1", holds, with("seat", "-1"), 422},
		{"seat that is no number", holds, with("seat", "C14"), 400},
		{"seat beyond 32 bits", holds, with("seat", "9223372036854775808"), 400},
		{"seat beyond the house", holds, with("seat", "99999"), 404},
		{"more seats than allowed", holds, with("seat", many...), 422},
		{"place of an area as a seat, and an area", holds, with("area", "1"), 422},
		{"area that is none", holds, url.Values{"key": {key}, "area": {"77"}, "quantity": {"1"}}, 404},
		{"area that is no number", holds, url.Values{"key": {key}, "area": {"x"}, "quantity": {"1"}}, 400},
		{"no places", holds, url.Values{"key": {key}, "area": {"1"}, "quantity": {"0"}}, 422},
		{"fewer than no places", holds, url.Values{"key": {key}, "area": {"1"}, "quantity": {"-3"}}, 422},
		{"half a place", holds, url.Values{"key": {key}, "area": {"1"}, "quantity": {"1.5"}}, 422},
		{"unknown event", "/events/evt_0000000000000/holds", seat, 404},
		{"event id that is none", "/events/1/holds", seat, 404},
		{"event id with a line break", "/events/%0d%0aX:y/holds", seat, 404},
		{"hold id that is none", "/holds/1/release", nil, 404},
		{"hold of another form", strings.Replace(hold, "hold_", "bkg_", 1) + "/release", nil, 404},
		{"drop without a seat", hold + "/drop", nil, 400},
		{"drop of a foreign seat", hold + "/drop", url.Values{"seat": {"1"}}, 200},
		{"drop of the last seat", hold + "/drop", url.Values{"seat": {seat14C}}, 422},
		{"extend without a time", hold + "/extend", nil, 400},
		{"extend from far away", hold + "/extend", url.Values{"until": {"9999-12-31T23:59:59.999999999+23:59"}}, 200},
		{"book without a key", hold + "/book", lena, 400},
		{"book without anything", hold + "/book", url.Values{"key": {key}}, 422},
		{"name with NUL", hold + "/book", url.Values{"key": {key}, "name": {"a\x00"}, "email": {"lena@example.com"}}, 422},
		{"name that is no text", hold + "/book", url.Values{"key": {key}, "name": {"a\xff"}, "email": {"lena@example.com"}}, 422},
		{"endless name", hold + "/book", url.Values{"key": {key}, "name": {strings.Repeat("a", 10_000)}, "email": {"lena@example.com"}}, 422},
		{"book without a total", hold + "/book", url.Values{"key": {key}, "name": {"Lena"}, "email": {"lena@example.com"}}, 400},
		{"wrong total", hold + "/book", url.Values{"key": {key}, "name": {"Lena"}, "email": {"lena@example.com"}, "total": {"1"}}, 409},
		{"form over the limit", hold + "/book", url.Values{"name": {strings.Repeat("a", 20_000)}}, 413},
		{"booking id that is none", "/bookings/bkg_/cancel", nil, 404},
	} {
		if got := b.post(c.path, c.form); got.status != c.status || got.words == "" {
			t.Errorf("%s: status %d, want %d: %s", c.name, got.status, c.status, got.words)
		}
	}
	for path, status := range map[string]int{
		"/events/1":                                       404,
		"/events/evt_zzzzzzzzzzzzz":                       404,
		"/holds/" + strings.Repeat("x", 2000):             404,
		"/bookings/..%2f..%2fetc%2fpasswd":                404,
		s.eventPath() + "/seats":                          404,
		s.eventPath() + "/seats?section=Nowhere":          404,
		s.eventPath() + "/seats?section=%00":              404,
		s.eventPath() + "/seats?section=%ff":              404,
		s.eventPath() + "/seats?section=%zz":              400,
		s.eventPath() + "/seats?section=Stalls;from=1":    400,
		s.eventPath() + "/seats?section=Stalls&from=x":    404,
		s.eventPath() + "/seats?section=Stalls&from=9999": 404,
		"/?from=x":                      404,
		"/?from=-5_" + s.Event.String(): 404,
		"/?from=9223372036854775807_" + s.Event.String(): 200,
		"/assets/page-0.css":                             404,
		holds:                                            200,
		hold + "/book":                                   200,
	} {
		if got := b.get(path); got.status != status {
			t.Errorf("GET %s: status %d, want %d: %s", path, got.status, status, got.words)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+holds, strings.NewReader(`{"seats":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	b.do(r).says(415)
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete} {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+hold, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.do(r).says(405)
	}
	var written int
	if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM holds").Scan(&written); err != nil || written != 1 {
		t.Errorf("bad requests left %d holds, %v", written-1, err)
	}
}

func TestWithoutPostgresThePagesAskForPatience(t *testing.T) {
	t.Parallel()
	postgres := dbtest.OwnPostgres(t)
	pool, err := db.Open(t.Context(), postgres.PostgresURL, db.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := serve(t, bookingtest.New(t, pool, booking.DefaultLimits), nil)
	b := s.visitor(t)
	b.mayFail = true
	section := b.get(s.stalls())
	if err := postgres.Postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []page{
		b.get("/"), b.get(s.eventPath()), b.get(s.stalls()), section.send("Hold the ticked seats", url.Values{"seat": {seat14C}}),
	} {
		p.says(503, "We cannot answer right now")
		if p.header.Get("Retry-After") != "1" {
			t.Errorf("%s: no Retry-After", p.path)
		}
	}
}
