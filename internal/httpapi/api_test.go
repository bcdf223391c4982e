package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"seatfence/booking"
	"seatfence/db/dbtest"
	"seatfence/internal/access"
	"seatfence/internal/httpapi"
	"seatfence/internal/session"
	"seatfence/internal/shed"
	"seatfence/internal/staff"
	"seatfence/internal/stream"
	"seatfence/realtime"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// api is a server on a database of its own, with one event on sale: Stalls, rows A to C of 10 at 45.00 EUR, and a Floor of 20 places.
type api struct {
	t     *testing.T
	url   string
	event string

	organizer, partner               string // API keys of the event's organizer
	foreign, foreignPartner, revoked string // another organizer's, and one of the event's that has ended

	pool     *pgxpool.Pool
	deps     httpapi.Deps
	people   *staff.Staff
	handler  http.Handler
	log      *logBuffer
	metrics  *httpapi.Metrics
	contract routers.Router
	routes   []*echo.Route
	keys     *atomic.Int64 // numbers idempotency keys
	sums     string        // the statement of rows
}

func newAPI(t *testing.T, options ...func(*httpapi.Deps)) *api {
	t.Helper()
	pool := dbtest.Pool(t)
	keys := access.New(pool)
	newKey := func(organizer, scope string) string {
		token, _, err := keys.Create(t.Context(), organizer, "till", scope)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	sessions, err := session.NewSigner(bytes.Repeat([]byte("k"), session.MinKey), false)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{
		organizer: newKey("Old Mill", access.ScopeOrganizer), partner: newKey("Old Mill", access.ScopePartner),
		foreign: newKey("New Mill", access.ScopeOrganizer), foreignPartner: newKey("New Mill", access.ScopePartner),
		pool: pool, t: t, keys: new(atomic.Int64), log: &logBuffer{}, metrics: httpapi.NewMetrics(), contract: contractRouter(t),
	}
	token, ended, err := keys.Create(t.Context(), "Old Mill", "lost", access.ScopeOrganizer)
	if err == nil {
		err = keys.Revoke(t.Context(), access.FormatID(ended.ID))
	}
	if err != nil {
		t.Fatal(err)
	}
	a.revoked = token
	public := &url.URL{Scheme: "http", Host: "localhost"}
	if a.people, err = staff.New(pool, public); err != nil {
		t.Fatal(err)
	}
	service := booking.New(pool, booking.DefaultLimits)
	deps := httpapi.Deps{
		Booking: service, Gate: shed.New(nil, service), Sessions: sessions, Log: slog.New(slog.NewJSONHandler(a.log, nil)), Metrics: a.metrics,
		Keys: keys, Staff: a.people,
		State:     func(context.Context) httpapi.State { return httpapi.State{Redis: "off"} },
		PublicURL: public, InFlight: httpapi.DefaultInFlight,
	}
	deps.Stream = openStream(t, service)
	for _, o := range options {
		o(&deps)
	}
	e, err := httpapi.New(deps)
	if err != nil {
		t.Fatal(err)
	}
	a.deps, a.handler, a.routes = deps, e, e.Routes()
	a.url = a.serve(func(*http.Server) {}).URL
	a.event = a.post("/v1/events", newEvent("on_sale"), as(a.organizer), key("event")).want(201).text("id")
	return a
}

// openStream is a stream of its own node, which writes nothing by itself.
func openStream(t *testing.T, service *booking.Service) *stream.Server {
	t.Helper()
	rdb, err := realtime.OpenRedis(dbtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	s, err := stream.New(stream.Deps{
		Booking: service, Redis: rdb, Node: uuid.New(), Key: bytes.Repeat([]byte("k"), session.MinKey), Origins: []string{"http://localhost"},
		HoldGrace: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

// serve runs the handler in a server as it is in production, but for what set changes.
func (a *api) serve(set func(*http.Server)) *httptest.Server {
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpapi.NewServer(a.t.Context(), a.handler, slog.New(slog.NewJSONHandler(a.log, nil)))
	set(server.Config)
	server.Start()
	a.t.Cleanup(server.Close)
	return server
}

func newEvent(status string) string {
	return `{"name":"The Tempest","venue":"Old Mill Theatre","starts_at":"2099-03-01T19:30:00Z","timezone":"Europe/Berlin","currency":"EUR",
		"payment":"none","status":"` + status + `","sale_starts_at":"2020-01-01T00:00:00Z","sale_ends_at":"2099-03-01T18:00:00Z",
		"categories":[{"name":"A","price":4500}],
		"sections":[{"name":"Stalls","rows":[{"label":"A","category":"A","seats":10},{"label":"B","category":"A","seats":10},{"label":"C","category":"A","seats":10,"first":11}]}],
		"areas":[{"name":"Floor","category":"A","capacity":20}]}`
}

func loadContract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func contractRouter(t *testing.T) routers.Router {
	t.Helper()
	router, err := legacy.NewRouter(loadContract(t))
	if err != nil {
		t.Fatal(err)
	}
	return router
}

type edit func(*http.Request)

func as(token string) edit {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func key(key string) edit { return header("Idempotency-Key", key) }

func header(name, value string) edit { return func(r *http.Request) { r.Header.Set(name, value) } }

type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	raw    []byte
	body   map[string]any
}

func (a *api) get(path string, edits ...edit) answer {
	a.t.Helper()
	return a.do(http.MethodGet, path, "", edits...)
}

func (a *api) post(path, body string, edits ...edit) answer {
	a.t.Helper()
	return a.do(http.MethodPost, path, body, edits...)
}

// do sends a request and holds the answer to the contract.
func (a *api) do(method, path, body string, edits ...edit) answer {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(r)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	var content io.Reader = response.Body
	if response.Header.Get("Content-Encoding") == "gzip" && response.Header.Get("Content-Type") == "application/json" && method != http.MethodHead {
		if content, err = gzip.NewReader(response.Body); err != nil { // asked for, so the transport leaves it
			a.t.Fatal(err)
		}
	}
	raw, err := io.ReadAll(content)
	if err != nil {
		a.t.Fatal(err)
	}
	got := answer{t: a.t, what: method + " " + path, status: response.StatusCode, header: response.Header, raw: raw}
	if strings.HasSuffix(strings.TrimSuffix(response.Header.Get("Content-Type"), "; charset=utf-8"), "json") && method != http.MethodHead {
		if err := json.Unmarshal(raw, &got.body); err != nil {
			a.t.Fatalf("%s: %v in %s", got.what, err, raw)
		}
	}
	a.holdToContract(r, got)
	return got
}

func (a *api) holdToContract(r *http.Request, got answer) {
	a.t.Helper()
	if got.header.Get("X-Request-Id") == "" {
		a.t.Errorf("%s: no X-Request-Id", got.what)
	}
	if got.status >= 400 && got.body["status"] == nil && r.Method != http.MethodHead {
		a.t.Errorf("%s: %d without a problem: %s", got.what, got.status, got.raw)
	}
	if got.status == 404 || got.status == 405 || r.Method == http.MethodHead || !strings.HasPrefix(got.header.Get("Content-Type"), "application/") {
		return
	}
	route, params, err := a.contract.FindRoute(&http.Request{Method: r.Method, URL: &url.URL{Path: r.URL.Path}})
	if err != nil {
		return // not of the contract, such as the docs page
	}
	err = openapi3filter.ValidateResponse(a.t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 got.status, Header: got.header, Body: io.NopCloser(bytes.NewReader(got.raw)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	if err != nil {
		a.t.Errorf("%s: the answer breaks the contract: %v\n%s", got.what, err, got.raw)
	}
}

func (g answer) want(status int) answer {
	g.t.Helper()
	if g.status != status {
		g.t.Fatalf("%s: %d, want %d: %s", g.what, g.status, status, g.raw)
	}
	return g
}

func (g answer) wantCode(status int, code string) answer {
	g.t.Helper()
	if g.status != status || g.body["code"] != code {
		g.t.Fatalf("%s: %d %v, want %d %s: %s", g.what, g.status, g.body["code"], status, code, g.raw)
	}
	return g
}

// at walks names and indices into the body.
func (g answer) at(path ...any) any {
	g.t.Helper()
	var value any = g.body
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				g.t.Fatalf("%s: nothing at %v in %s", g.what, path, g.raw)
			}
			value = list[step]
		}
	}
	return value
}

func (g answer) text(path ...any) string {
	g.t.Helper()
	text, ok := g.at(path...).(string)
	if !ok {
		g.t.Fatalf("%s: no text at %v in %s", g.what, path, g.raw)
	}
	return text
}

func (g answer) number(path ...any) int {
	g.t.Helper()
	number, ok := g.at(path...).(float64)
	if !ok {
		g.t.Fatalf("%s: no number at %v in %s", g.what, path, g.raw)
	}
	return int(number)
}

// buyer starts a session and returns its token.
func (a *api) buyer() string {
	a.t.Helper()
	return a.post("/v1/sessions", "").want(201).text("token")
}

const password = "correct horse"

// hired makes a user of the organizer with a password, and returns its id and a session's token.
func (a *api) hired(role, email string) (id, token string) {
	a.t.Helper()
	caller, err := a.deps.Keys.Lookup(a.t.Context(), a.organizer)
	if err != nil {
		a.t.Fatal(err)
	}
	user, link, err := a.people.Create(a.t.Context(), caller.Organizer, staff.NewUser{Email: email, Name: "Lena", Role: role, EveryEvent: true}, true)
	if err != nil {
		a.t.Fatal(err)
	}
	_, secret, _ := strings.Cut(link, "token=")
	token, _, err = a.people.SetPassword(a.t.Context(), secret, password)
	if err != nil {
		a.t.Fatal(err)
	}
	return staff.FormatID(user.ID), token
}

func (a *api) booking(seat int, name string) string {
	return fmt.Sprintf(`{"event":%q,"seats":[%d],"buyer":{"name":%q,"email":"%s@example.com"}}`, a.event, seat, name, strings.ToLower(name))
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
