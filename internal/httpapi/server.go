package httpapi

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/access"
	"seatfence/internal/session"
	"seatfence/internal/shed"
	"seatfence/internal/staff"
	"seatfence/internal/stream"
)

//go:embed openapi.yaml
var contract []byte

// Deps are what the API stands on. All are needed but Middleware and RefusePage.
type Deps struct {
	Booking   *booking.Service
	Gate      *shed.Gate
	Keys      *access.Keys
	Sessions  *session.Signer
	Staff     *staff.Staff
	Stream    *stream.Server              // nil without Redis
	State     func(context.Context) State // asked by /readyz
	Log       *slog.Logger
	Metrics   *Metrics
	PublicURL *url.URL
	InFlight  int // how many requests are worked on at once

	// Middleware runs inside of everything else, right around the handlers of the API.
	Middleware []echo.MiddlewareFunc

	// RefusePage writes the page that answers an error, under the status and the code that the API would answer it with. It is asked at
	// every address that is not the API's, known or not.
	RefusePage func(c echo.Context, status int, code string, err error) error
}

// State is what a node stands on at this moment. Redis is "ok", "degraded" or "off".
type State struct {
	Postgres error
	Redis    string
}

// server implements StrictServerInterface.
type server struct {
	Deps
	places  chan struct{} // one for each request that is worked on
	imports chan struct{} // one for each file that is read
}

// New returns the API with its docs page. Pages may be added to it: they get everything but what the contract asks of requests.
func New(deps Deps) (*echo.Echo, error) {
	doc, err := loadContract()
	if err != nil {
		return nil, err
	}
	s := &server{deps, make(chan struct{}, deps.InFlight), make(chan struct{}, maxImports)}
	return s.routed(doc, s), nil
}

// routed returns the router that calls the handlers.
func (s *server) routed(doc *openapi3.T, handlers StrictServerInterface) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(io.Discard) // it logs text; handleError logs what there is
	e.Binder = strictBinder{}
	e.HTTPErrorHandler = s.handleError
	e.IPExtractor = echo.ExtractIPDirect()
	e.SchemeExtractor = func(*http.Request) string { return s.PublicURL.Scheme }
	e.Use(s.begin, recoverPanic, s.secure, s.limitPages, s.crossOrigin)
	RegisterHandlers(routes{e, s, operations(doc)}, NewStrictHandler(handlers, nil))
	addDocs(e)
	return e
}

func loadContract() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(contract)
	if err != nil {
		return nil, fmt.Errorf("load openapi.yaml: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return doc, nil
}

// operations maps a method and a route of Echo to its operation.
func operations(doc *openapi3.T) map[string]operation {
	ops := map[string]operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			ops[method+" "+echoPath(path)] = newOperation(op, item.Parameters)
		}
	}
	return ops
}

// forProbe reports whether a request asks how the process is.
func forProbe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// forPage reports whether a request is for a page, there or not: the API has its own addresses.
func forPage(r *http.Request) bool { return !strings.HasPrefix(r.URL.Path, "/v1/") && !forProbe(r) }

func echoPath(path string) string { return strings.NewReplacer("{", ":", "}", "").Replace(path) }

// routes is the router that the generated code registers with: it puts each operation's own middleware around it and serves HEAD where
// there is a GET.
type routes struct {
	*echo.Echo
	s   *server
	ops map[string]operation
}

// around wraps a handler once: Echo would wrap it anew for each request.
func (r routes) around(method, path string, h echo.HandlerFunc) echo.HandlerFunc {
	op, ok := r.ops[method+" "+path]
	if !ok {
		panic("httpapi: not in the contract: " + method + " " + path)
	}
	for _, m := range slices.Backward(r.s.Middleware) {
		h = m(h)
	}
	if op.compress {
		h = compressed(h)
	}
	if method != http.MethodGet {
		h = r.s.count(op, h)
	}
	return r.s.admit(op, h)
}

func (r routes) GET(path string, h echo.HandlerFunc, _ ...echo.MiddlewareFunc) *echo.Route {
	h = r.around(http.MethodGet, path, h)
	r.Echo.HEAD(path, h)
	return r.Echo.GET(path, h)
}

func (r routes) POST(path string, h echo.HandlerFunc, _ ...echo.MiddlewareFunc) *echo.Route {
	return r.Echo.POST(path, r.around(http.MethodPost, path, h))
}

func (r routes) PUT(path string, h echo.HandlerFunc, _ ...echo.MiddlewareFunc) *echo.Route {
	return r.Echo.PUT(path, r.around(http.MethodPut, path, h))
}

func (r routes) PATCH(path string, h echo.HandlerFunc, _ ...echo.MiddlewareFunc) *echo.Route {
	return r.Echo.PATCH(path, r.around(http.MethodPatch, path, h))
}

func (r routes) DELETE(path string, h echo.HandlerFunc, _ ...echo.MiddlewareFunc) *echo.Route {
	return r.Echo.DELETE(path, r.around(http.MethodDelete, path, h))
}

// count counts what comes of an operation that writes.
func (s *server) count(op operation, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		s.Metrics.Result(op.id, c.Response().Header().Get(headerReplayed) != "", err)
		return err
	}
}

const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 16 << 10
)

// NewServer returns an http.Server for a handler with every limit set. ctx is what the contexts of its requests descend from.
func NewServer(ctx context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
