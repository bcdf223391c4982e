package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/internal/httpapi"
)

func TestBadInputIsRefusedWithItsCode(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena := a.buyer()
	hold := "/v1/events/" + a.event + "/holds"
	for _, c := range []struct {
		name, method, path, body string
		edits                    []edit
		status                   int
		code                     string
	}{
		{"truncated", "POST", hold, `{"seats":[1`, nil, 400, "malformed_json"},
		{"empty", "POST", hold, "", nil, 415, "unsupported_media_type"},
		{"empty json", "POST", hold, " ", nil, 400, "body_required"},
		{"no body", "POST", hold, "", []edit{header("Content-Type", "application/json")}, 400, "body_required"},
		{"null", "POST", hold, `null`, nil, 400, "wrong_type"},
		{"mass assignment", "POST", hold, `{"seats":[1],"price":0}`, nil, 400, "unknown_field"},
		{"event in the body", "POST", hold, `{"seats":[1],"Event":"x"}`, nil, 400, "unknown_field"},
		{"form", "POST", hold, `seats=1`, []edit{header("Content-Type", "application/x-www-form-urlencoded")}, 415, "unsupported_media_type"},
		{"xml", "POST", hold, `<seats/>`, []edit{header("Content-Type", "application/xml")}, 415, "unsupported_media_type"},
		{"encoded", "POST", hold, `{}`, []edit{header("Content-Encoding", "gzip")}, 415, "unsupported_media_type"},
		{"too large", "POST", hold, `{"seats":[1],"session":"` + strings.Repeat("x", 64<<10) + `"}`, nil, 413, "body_too_large"},
		{"too large, chunked", "POST", hold, strings.Repeat(" ", 64<<10+1), []edit{chunked}, 413, "body_too_large"},
		{"many seats", "POST", hold, `{"seats":[` + strings.Repeat("1,", 9999) + `1]}`, nil, 422, "invalid"},
		{"same seat twice", "POST", hold, `{"seats":[1,1]}`, nil, 422, "invalid"},
		{"ticket type", "POST", hold, `{"seats":[{"id":1,"type":"child"}]}`, nil, 422, "invalid"},
		{"neither", "POST", hold, `{"session":"x"}`, nil, 422, "invalid"},
		{"body on checkout", "POST", "/v1/holds/x/checkout", `{"a":1}`, nil, 400, "body_not_allowed"},
		{"bad date", "PATCH", "/v1/events/" + a.event, `{"starts_at":"2099-02-30T00:00:00Z"}`, []edit{as(a.organizer)}, 422, "invalid"},
		{"bad currency", "POST", "/v1/events", strings.Replace(newEvent("draft"), "EUR", "eur", 1), []edit{as(a.organizer)}, 422, "invalid"},
		{"bad zone", "POST", "/v1/events", strings.Replace(newEvent("draft"), "Europe/Berlin", "../etc/passwd", 1), []edit{as(a.organizer)}, 422, "invalid"},
		{"line break in a name", "POST", "/v1/events", strings.Replace(newEvent("draft"), "The Tempest", `a\nb`, 1), []edit{as(a.organizer)}, 422, "invalid"},
		{"bad e-mail", "POST", "/v1/bookings", strings.Replace(a.booking(1, "Lena"), "@", "", 1), nil, 422, "invalid"},
		{"malformed hold", "POST", "/v1/bookings", `{"hold":"x","buyer":{"name":"Lena","email":"l@example.com"}}`, nil, 404, "not_found"},
		{"no key", "POST", hold, `{"seats":[1]}`, []edit{func(r *http.Request) { r.Header.Del("Idempotency-Key") }}, 400, "idempotency_key_missing"},
		{"key with a space", "POST", hold, `{"seats":[1]}`, []edit{key("a b")}, 400, "idempotency_key_invalid"},
		{"key not ASCII", "POST", hold, `{"seats":[1]}`, []edit{key("schlüssel")}, 400, "idempotency_key_invalid"},
		{"key too long", "POST", hold, `{"seats":[1]}`, []edit{key(strings.Repeat("k", 256))}, 400, "idempotency_key_invalid"},
		{"two keys", "POST", hold, `{"seats":[1]}`, []edit{func(r *http.Request) { r.Header.Add("Idempotency-Key", "b") }}, 400, "idempotency_key_invalid"},
		{"percent", "GET", "/v1/bookings?email=%zz", "", nil, 400, "malformed_query"},
		{"semicolon", "GET", "/v1/bookings?limit=1;x=2", "", nil, 400, "malformed_query"},
		{"unknown parameter", "GET", "/v1/bookings?Event=9", "", nil, 400, "unknown_parameter"},
		{"parameter on a write", "POST", hold + "?Event=9", `{"seats":[1]}`, nil, 400, "unknown_parameter"},
		{"repeated parameter", "GET", "/v1/bookings?limit=1&limit=2", "", nil, 400, "repeated_parameter"},
		{"NUL in a parameter", "GET", "/v1/bookings?reference=%00", "", nil, 422, "invalid_parameter"},
		{"limit -1", "GET", "/v1/bookings?limit=-1", "", nil, 422, "invalid_parameter"},
		{"limit 1e9", "GET", "/v1/bookings?limit=1e9", "", nil, 422, "invalid_parameter"},
		{"limit 10^9", "GET", "/v1/bookings?limit=1000000000", "", nil, 422, "invalid_parameter"},
		{"limit abc", "GET", "/v1/events?limit=abc", "", nil, 422, "invalid_parameter"},
		{"status", "GET", "/v1/bookings?status=x", "", nil, 422, "invalid_parameter"},
		{"cursor", "GET", "/v1/bookings?cursor=AAAA", "", nil, 422, "invalid_parameter"},
		{"event filter", "GET", "/v1/bookings?event=x", "", nil, 404, "not_found"},
		{"event id", "GET", "/v1/events/..%2f..%2fetc", "", nil, 404, "not_found"},
		{"seat id", "GET", "/v1/events/" + a.event + "/seats/0x1", "", nil, 404, "not_found"},
		{"seat id 2^31", "GET", "/v1/events/" + a.event + "/seats/2147483648", "", nil, 404, "not_found"},
		{"block of another event", "DELETE", "/v1/events/" + a.event + "/blocks/blk_x", "", []edit{as(a.organizer)}, 404, "not_found"},
		{"method", "PUT", "/v1/bookings", "", nil, 405, "method_not_allowed"},
		{"override", "POST", "/v1/events/" + a.event, `{}`, []edit{header("X-HTTP-Method-Override", "PATCH")}, 405, "method_not_allowed"},
		{"route", "GET", "/v1/nothing", "", nil, 404, "not_found"},
		{"trailing slash", "GET", "/v1/events/", "", nil, 404, "not_found"},
		{"double slash", "GET", "//v1/events", "", nil, 404, "not_found"},
		{"debug", "GET", "/debug/pprof/", "", nil, 404, "not_found"},
		{"metrics", "GET", "/metrics", "", nil, 404, "not_found"},
	} {
		got := a.do(c.method, c.path, c.body, append([]edit{as(lena), key("k")}, c.edits...)...)
		if got.status != c.status || got.body["code"] != c.code {
			t.Errorf("%s: %d %v, want %d %s: %s", c.name, got.status, got.body["code"], c.status, c.code, got.raw)
		}
		for _, leak := range []string{"SQLSTATE", "SELECT", "httpapi.", "booking.", "strconv", "json:", "goroutine", "runtime."} {
			if bytes.Contains(got.raw, []byte(leak)) {
				t.Errorf("%s: tells %s: %s", c.name, leak, got.raw)
			}
		}
		if c.status == 405 && got.header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", c.name)
		}
	}
	if n := len(a.get("/v1/bookings", as(a.organizer)).want(200).at("bookings").([]any)); n != 0 {
		t.Errorf("bad input made %d bookings", n)
	}
}

func chunked(r *http.Request) { r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(r.Body)) }

// swapped is a token of the right form with two characters of its secret exchanged.
func swapped(token string) string {
	b := []byte(token)
	for i := len(b) - 12; ; i-- {
		if b[i] != b[i-1] {
			b[i], b[i-1] = b[i-1], b[i]
			return string(b)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena := a.buyer()
	twice := func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + lena, "Bearer " + lena} }
	for name, c := range map[string]struct {
		edit   edit
		status int
	}{
		"none":           {func(*http.Request) {}, 401},
		"session":        {as(lena), 200},
		"lower case":     {header("Authorization", "bearer "+lena), 200},
		"key":            {as(a.partner), 200},
		"unknown key":    {as(swapped(a.partner)), 401},
		"forged session": {as(swapped(lena)), 401},
		"scheme":         {header("Authorization", "Basic "+lena), 401},
		"no token":       {header("Authorization", "Bearer"), 401},
		"bare token":     {header("Authorization", lena), 401},
		"long":           {as("sf_" + strings.Repeat("x", 8000)), 401},
		"two":            {twice, 401},
		"cookie":         {header("Cookie", "seatfence_session="+lena), 200},
		"bad cookie":     {header("Cookie", "seatfence_session=x"), 401},
	} {
		got := a.get("/v1/bookings", c.edit)
		if got.status != c.status || (c.status == 401) != (got.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d %v, want %d", name, got.status, got.header, c.status)
		}
	}
	a.get("/v1/events", header("Cookie", "seatfence_session=ended")).want(200)
	a.get("/v1/events", as("sf_nonsense")).want(401)
	a.post("/v1/events", newEvent("draft"), as(a.partner), key("k")).wantCode(403, "forbidden")
}

func TestAnotherSitesPageCannotSpendTheCookie(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	started := a.post("/v1/sessions", "").want(201)
	cookie := header("Cookie", strings.SplitN(started.header.Get("Set-Cookie"), ";", 2)[0])
	foreign, same := header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "same-origin")
	a.post("/v1/bookings", a.booking(1, "Lena"), cookie, key("k"), foreign).wantCode(403, "cross_origin")
	a.post("/v1/bookings", a.booking(1, "Lena"), cookie, key("k"), header("Origin", "http://evil.example")).wantCode(403, "cross_origin")
	a.post("/v1/sessions", "", foreign).wantCode(403, "cross_origin")
	a.post("/v1/bookings", a.booking(1, "Lena"), cookie, key("k"), same).want(201)
	a.post("/v1/bookings", a.booking(2, "Omar"), as(a.buyer()), key("k"), foreign).want(201)
	if got := a.get("/v1/events", header("Origin", "http://evil.example")); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another origin may read")
	}
}

func TestPanicIsAnsweredAndTheConnectionLives(t *testing.T) {
	t.Parallel()
	trip := make(chan struct{}, 1)
	a := newAPI(t, func(d *httpapi.Deps) {
		d.Middleware = []echo.MiddlewareFunc{func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				select {
				case <-trip:
					panic("lena@example.com")
				default:
					return next(c)
				}
			}
		}}
	})
	trip <- struct{}{}
	if got := a.get("/v1/events").wantCode(500, "internal"); bytes.Contains(got.raw, []byte("lena")) {
		t.Errorf("answer %s", got.raw)
	}
	a.get("/v1/events").want(200)
	if strings.Count(a.log.String(), "request failed") != 1 {
		t.Errorf("log %s", a.log)
	}
}

func TestCrowdIsTurnedAwayAndProbesPass(t *testing.T) {
	t.Parallel()
	inside, stay := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(stay) })
	defer release()
	a := newAPI(t, func(d *httpapi.Deps) {
		d.InFlight = 1
		d.Middleware = []echo.MiddlewareFunc{func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				if c.Request().Header.Get("X-Stay") != "" {
					close(inside)
					<-stay
				}
				return next(c)
			}
		}}
	})
	done := make(chan int)
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/v1/events", nil)
		r.Header.Set("X-Stay", "1")
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			done <- 0
			return
		}
		_ = response.Body.Close()
		done <- response.StatusCode
	}()
	<-inside
	start := time.Now()
	got := a.get("/v1/events").wantCode(503, "overloaded")
	if took := time.Since(start); got.header.Get("Retry-After") == "" || took > time.Second {
		t.Errorf("turned away after %v: %v", took, got.header)
	}
	a.get("/healthz").want(200)
	a.get("/readyz").want(200)
	release()
	if status := <-done; status != 200 {
		t.Errorf("the one inside got %d", status)
	}
}

func TestReadinessTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	state := httpapi.State{Redis: "degraded"}
	a := newAPI(t, func(d *httpapi.Deps) { d.State = func(context.Context) httpapi.State { return state } })
	if got := a.get("/readyz").want(200); got.text("redis") != "degraded" {
		t.Errorf("%s", got.raw)
	}
	state = httpapi.State{Postgres: io.ErrUnexpectedEOF, Redis: "ok"}
	ready := func() answer {
		response, err := http.Get(a.url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		got := answer{t: t, what: "GET /readyz", status: response.StatusCode}
		if err := json.NewDecoder(response.Body).Decode(&got.body); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ready().want(503); got.text("status") != "unavailable" || got.text("postgres") != "down" {
		t.Errorf("%v", got.body)
	}
	state = httpapi.State{Redis: "ok", Draining: true}
	if got := ready().want(503); got.text("status") != "draining" {
		t.Errorf("%v", got.body)
	}
}

func TestLogAndMetricsHaveNoPersonalData(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena := a.buyer()
	id := header("X-Request-Id", "trace-1")
	if got := a.post("/v1/bookings", a.booking(1, "Canaria"), as(lena), key("canary-key"), id).want(201); got.header.Get("X-Request-Id") != "trace-1" {
		t.Errorf("request id %v", got.header)
	}
	a.post("/v1/bookings", a.booking(1, "Canaria"), as(lena), key("canary-key")).want(201)
	a.post("/v1/bookings", a.booking(1, "Canaria"), as(a.buyer()), key("canary-key"), header("X-Request-Id", "bad id\t")).wantCode(409, "seat_taken")
	a.get("/v1/bookings?email=canaria@example.com", as(a.organizer)).want(200)
	metrics := scrape(t, a)
	for _, secret := range []string{"anaria", "canary", lena, a.organizer, "example.com"} {
		if strings.Contains(a.log.String(), secret) || strings.Contains(metrics, secret) {
			t.Errorf("%s is in the log or in the metrics", secret)
		}
	}
	for _, want := range []string{`"route":"/v1/bookings"`, `"request_id":"trace-1"`, `"caller":"organizer"`, `"caller":"buyer"`} {
		if !strings.Contains(a.log.String(), want) {
			t.Errorf("the log does not say %s", want)
		}
	}
	for _, want := range []string{
		`seatfence_results_total{code="ok",operation="createBooking"} 1`,
		`seatfence_results_total{code="replayed",operation="createBooking"} 1`,
		`seatfence_results_total{code="seat_taken",operation="createBooking"} 1`,
		`seatfence_zero_row_writes_total{code="seat_taken"} 1`,
		`seatfence_http_request_seconds_count{route="/v1/bookings",status="201"} 2`,
		`seatfence_http_requests_in_flight 0`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not say %s", want)
		}
	}
}

func scrape(t *testing.T, a *api) string {
	t.Helper()
	recorder := &response{header: http.Header{}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	a.metrics.Handler().ServeHTTP(recorder, r)
	return recorder.body.String()
}

type response struct {
	header http.Header
	body   bytes.Buffer
}

func (r *response) Header() http.Header         { return r.header }
func (r *response) WriteHeader(int)             {}
func (r *response) Write(b []byte) (int, error) { return r.body.Write(b) }

func TestDocsPageAsksNobodyElse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	page := a.get("/docs").want(200)
	policy := page.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
	if bytes.Contains(page.raw, []byte("://")) || bytes.Contains(page.raw, []byte("<script>")) {
		t.Errorf("page %s", page.raw)
	}
	for _, path := range []string{"/docs/docs.js", "/docs/docs.css", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css", "/docs/LICENSE", "/openapi.yaml"} {
		plain := a.get(path, header("Accept-Encoding", "identity")).want(200)
		if len(plain.raw) == 0 || plain.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", path, plain.header)
		}
		if got := a.do(http.MethodHead, path, "").want(200); len(got.raw) != 0 {
			t.Errorf("HEAD %s has a body", path)
		}
	}
	zipped := a.get("/docs/swagger-ui-bundle.js", header("Accept-Encoding", "gzip")).want(200)
	if zipped.header.Get("Content-Encoding") != "gzip" || zipped.raw[0] != 0x1f {
		t.Errorf("not compressed: %v", zipped.header)
	}
}

func TestHeadersKeepBrowsersModest(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	got := a.do(http.MethodHead, "/v1/events/"+a.event+"/seats", "", header("Accept-Encoding", "gzip")).want(200)
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Content-Encoding": "gzip", "Vary": "Accept-Encoding",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
}

func TestServerCutsSlowHeaders(t *testing.T) {
	t.Parallel()
	server := httpapi.NewServer(t.Context(), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if server.ReadHeaderTimeout == 0 || server.ReadTimeout == 0 || server.WriteTimeout == 0 || server.IdleTimeout == 0 || server.MaxHeaderBytes == 0 {
		t.Fatalf("a limit is missing: %+v", server)
	}
	server.ReadHeaderTimeout = 50 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	defer func() { _ = server.Close(); <-done }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost:")
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := bufio.NewReader(conn).ReadByte(); err != io.EOF {
		t.Errorf("the connection was not cut: %v", err)
	}
}
