package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/internal/httpapi"
)

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
	if strings.Contains(a.log.String(), `"ERROR"`) {
		t.Error("a crowd is logged as our own fault")
	}
	a.get("/healthz").want(200)
	a.get("/readyz").want(200)
	release()
	if status := <-done; status != 200 {
		t.Errorf("the one inside got %d", status)
	}
}

// A client that announces a body and does not send it must not keep the one place from others.
func TestBodyThatDoesNotComeTakesNoPlace(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(d *httpapi.Deps) { d.InFlight = 1 })
	at, err := url.Parse(a.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/bookings", "/a/page"} {
		conn, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// The server answers 100 as soon as it begins to read the body.
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("HTTP/1.1 100"))
		if _, err := io.ReadFull(conn, line); err != nil || string(line) != "HTTP/1.1 100" {
			t.Fatalf("%s: %q, %v", path, line, err)
		}
	}
	a.get("/v1/events").want(200)
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
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Content-Encoding": "gzip", "Vary": "Origin, Accept-Encoding",
	} {
		if strings.Join(got.header.Values(name), ", ") != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
}

func TestSessionOfAPageIsExactOrRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena := a.buyer()
	for i, session := range []string{"", "x", "tab-1", "AAAAAAAAAAAAAAAAAAAAAA.9223372036854775808.00000000-0000-4000-8000-000000000001", "AAAAAAAAAAAAAAAAAAAAAB.1.00000000-0000-4000-8000-000000000001", "AAAAAAAAAAAAAAAAAAAAAA.1.------------------------------------"} {
		body := fmt.Sprintf(`{"seats":[1],"session":%q}`, session)
		a.post("/v1/events/"+a.event+"/holds", body, as(lena), key(fmt.Sprint(i))).want(422)
	}
}
