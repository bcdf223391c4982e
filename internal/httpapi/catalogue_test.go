package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// catalogue is every kind of bad input that the API is tried with, under numbers that stay. A kind that nothing is tried for needs a reason.
var catalogue = map[int]struct{ what, reason string }{
	1:  {what: "truncated JSON"},
	2:  {what: "empty body"},
	3:  {what: "null as the body"},
	4:  {what: "array, text or number as the body"},
	5:  {what: "two JSON values, or garbage behind one"},
	8:  {what: "unknown member"},
	11: {what: "members that only the server sets"},
	12: {what: "id of the path, in the body"},
	13: {what: "id of the path, in the query"},
	14: {what: "form"},
	15: {what: "XML"},
	16: {what: "multipart, one of them endless"},
	17: {what: "text, no type, two types, or a strange one"},
	18: {what: "Accept of what is not served: ignored, answers are JSON"},
	20: {what: "body over its limit, length told"},
	21: {what: "body over its limit, chunked"},
	23: {what: "deep nesting, within the limit and over it"},
	24: {what: "100,000 seats"},
	25: {what: "empty list"},
	27: {what: "seat of another event"},
	28: {what: "seat 0 and -1"},
	30: {what: "integers out of range"},
	31: {what: "numbers in other forms"},
	32: {what: "amount that the client would like to pay"},
	33: {what: "prices that would overflow"},
	34: {what: "currencies that are none"},
	36: {what: "NUL in a text"},
	41: {what: "names of the world, and what turns text around"},
	42: {what: "name of 2 MiB"},
	43: {what: "SQL as text"},
	44: {what: "wildcards in a search"},
	45: {what: "markup, formulas and line breaks as text"},
	46: {what: "e-mail addresses that are none"},
	47: {what: "path traversal and ids in other forms"},
	49: {what: "broken escape in the path"},
	50: {what: "broken escape or semicolon in the query"},
	54: {what: "page sizes and offsets"},
	56: {what: "idempotency key missing"},
	58: {what: "idempotency key malformed"},
	61: {what: "idempotency key still running"},
	62: {what: "another client's idempotency key"},
	63: {what: "no credential"},
	64: {what: "malformed credential"},
	65: {what: "unknown, revoked and wrong credential, alike"},
	66: {reason: "there are no test-mode keys: each deployment has keys of its own"},
	67: {what: "key without the scope"},
	68: {reason: "tests of sockets are in realtime and internal/stream"},
	69: {what: "JSON web tokens, and a header of 1 MiB"},
	70: {what: "somebody else's hold, booking and block"},
	71: {what: "confirmation of an expired hold"},
	72: {what: "second confirmation of a hold"},
	73: {what: "second cancellation of a booking"},
	74: {what: "event that does not sell"},
	75: {what: "other methods, and headers that ask for one"},
	76: {what: "unknown address, trailing and double slash"},
	77: {what: "no Host and two"},
	79: {what: "broken framing and protocols"},
	80: {what: "forged host, peer and scheme"},
	81: {what: "slow head, slow body, idle connection"},
	82: {reason: "nothing takes a webhook's address"},
	83: {reason: "no webhook comes in"},
	84: {reason: "tests of sockets are in realtime and internal/stream"},
	85: {reason: "tests of sockets are in realtime and internal/stream"},
	87: {reason: "tests of sockets are in realtime and internal/stream"},
	89: {reason: "tests of sockets are in realtime and internal/stream"},
	90: {what: "handler that panics"},

	101: {what: "member twice, plainly and escaped"},
	102: {what: "member in another case"},
	103: {what: "missing member"},
	104: {what: "value of another type"},
	105: {what: "UTF-16, byte order mark, invalid UTF-8, half of a surrogate pair"},
	106: {what: "encoded body"},
	107: {what: "dates that do not exist or cannot be kept"},
	108: {what: "text that is too long, empty or not one of those allowed"},
	109: {what: "same seat twice"},
	110: {what: "query parameter unknown, twice, empty or malformed"},
	111: {what: "cursor that was not given out"},
	112: {what: "body where none is expected"},
}

// bad is a request that must be refused, as one of answers: "400 malformed_json".
type bad struct {
	row                int
	name               string
	method, path, body string
	edits              []edit
	answers            string // one, or several with "|" between them
}

// suite tries bad requests and keeps count of them by row.
type suite struct {
	*api
	tried map[int]int
}

var leaks = regexp.MustCompile(`SQLSTATE|SELECT|INSERT|UPDATE |pgx|pgconn|postgres|json:|strconv|goroutine|runtime\.|\.go\b|/usr/|/root/|openapi3|` +
	`(httpapi|booking|seats|echo|time|uuid|main)\.[A-Z]|0x[0-9a-f]{6}|sf_|sfs_|sfu_|sfl_`)

// refuse sends a bad request and looks at all that an answer to one promises.
func (s *suite) refuse(b bad) answer {
	s.t.Helper()
	s.tried[b.row]++
	unused := key(fmt.Sprint("unused-", s.keys.Add(1)))
	got := s.do(b.method, b.path, b.body, append([]edit{unused}, b.edits...)...)
	s.problem(b, got)
	return got
}

func (s *suite) problem(b bad, got answer) {
	s.t.Helper()
	code, _ := got.body["code"].(string)
	switch {
	case b.method == http.MethodHead && len(got.raw) == 0: // as it must be
		if !strings.HasPrefix(b.answers, fmt.Sprint(got.status)) {
			s.t.Errorf("%d %s: %s: %d, want %s", b.row, b.name, got.what, got.status, b.answers)
		}
		return
	case !slices.Contains(strings.Split(b.answers, "|"), fmt.Sprint(got.status, " ", code)):
		s.t.Errorf("%d %s: %.200s: %d %s, want %s: %.300s\n%.300s", b.row, b.name, got.what, got.status, code, b.answers, got.raw, b.body)
	case got.header.Get("Content-Type") != "application/problem+json":
		s.t.Errorf("%d %s: %s: is %s", b.row, b.name, got.what, got.header.Get("Content-Type"))
	case got.body["request_id"] != got.header.Get("X-Request-Id") || got.body["request_id"] == "":
		s.t.Errorf("%d %s: %s: request id %v, header %v", b.row, b.name, got.what, got.body["request_id"], got.header)
	case got.status == 401 && got.header.Get("WWW-Authenticate") == "", got.status == 405 && got.header.Get("Allow") == "":
		s.t.Errorf("%d %s: %s: a header is missing: %v", b.row, b.name, got.what, got.header)
	}
	if leak := leaks.Find(got.raw); leak != nil {
		s.t.Errorf("%d %s: %s: tells %q: %s", b.row, b.name, got.what, leak, got.raw)
	}
}

// complete fails for kinds that were neither tried nor explained.
func (s *suite) complete() {
	s.t.Helper()
	total := 0
	for row, n := range s.tried {
		total += n
		if catalogue[row].what == "" {
			s.t.Errorf("%d is not in the catalogue", row)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(catalogue)) {
		if c := catalogue[row]; c.reason != "" {
			s.t.Logf("%d: not tried: %s", row, c.reason)
		} else {
			s.t.Logf("%d: %d tried: %s", row, s.tried[row], c.what)
			if s.tried[row] == 0 {
				s.t.Errorf("%d, %s, was not tried and has no reason", row, c.what)
			}
		}
	}
	s.t.Logf("%d bad requests", total)
}

// rows sums up every row of every table, so that two sums differ if anything was written in between.
func (a *api) rows() map[string]string {
	a.t.Helper()
	if a.sums == "" {
		// One statement over all tables that there are: a new one is looked at from its first day. The sessions of users remember when
		// they were used.
		err := a.pool.QueryRow(a.t.Context(), `SELECT string_agg(format('SELECT %L AS name, count(*) || '' rows, '' ||
			coalesce(sum(hashtextextended(%s::text, 0)), 0) AS sum FROM %I t', relname, CASE relname WHEN 'user_sessions' THEN 't.id' ELSE 't' END, relname), ' UNION ALL ')
			FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'user_sessions'`).Scan(&a.sums)
		if err != nil {
			a.t.Fatal(err)
		}
	}
	found, err := a.pool.Query(a.t.Context(), a.sums)
	if err != nil {
		a.t.Fatal(err)
	}
	sums := map[string]string{}
	var name, sum string
	if _, err := pgx.ForEachRow(found, []any{&name, &sum}, func() error {
		sums[name] = sum
		return nil
	}); err != nil || sums["seats"] == "" {
		a.t.Fatalf("sums %v, %v", sums, err)
	}
	return sums
}

// unwritten fails the test if anything that it does has written a row.
func (a *api) unwritten(what string, do func()) {
	a.t.Helper()
	before := a.rows()
	do()
	after := a.rows()
	for name := range after {
		if before[name] != after[name] {
			a.t.Errorf("%s wrote to %s: %s before, %s after", what, name, before[name], after[name])
		}
	}
}

// TestBadInputIsRefused tries the whole catalogue.
func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	s := &suite{api: newAPI(t), tried: map[int]int{}}
	targets := s.targets(s.requests())
	for _, x := range targets {
		s.unwritten(x.name, func() {
			for _, b := range slices.Concat(x.badBodies(t), x.badAddresses(), x.badHeaders(s.api)) {
				s.refuse(b)
			}
		})
	}
	s.unwritten("methods", func() { s.badMethods(targets) })
	s.unwritten("raw bytes", s.sockets)
	s.succeed(targets)
	s.states()
	s.texts()
	s.complete()
}

// succeed sends the requests that the bad ones differed from in one thing: that thing was why they were refused. What comes with them
// changes nothing.
func (s *suite) succeed(targets []target) {
	s.t.Helper()
	for _, x := range targets {
		s.tried[18]++
		s.tried[75]++
		s.tried[80]++
		got := s.do(x.method, x.path(), x.body, append(
			x.edits(), key("key-of-"+strings.ReplaceAll(x.name, " ", "-")), header("Accept", "image/png"), header("X-HTTP-Method-Override", "DELETE"), header("X-Method-Override", "DELETE"),
			header("X-Forwarded-For", "192.0.2.7"), header("X-Forwarded-Host", "forged.example"), header("X-Forwarded-Proto", "https"),
			header("Forwarded", "for=192.0.2.7;host=forged.example;proto=https"), func(r *http.Request) { r.Host = "forged.example" })...).want(x.status)
		if answer := fmt.Sprint(got.header, string(got.raw)); strings.Contains(answer, "forged") || strings.Contains(answer, "192.0.2.7") || strings.Contains(answer, "Secure") {
			s.t.Errorf("%s believes forged headers: %s", x.name, answer)
		}
		if s.t.Failed() && got.status != x.status {
			return
		}
	}
	if strings.Contains(s.log.String(), "192.0.2.7") {
		s.t.Error("the log believes a forged peer")
	}
}
