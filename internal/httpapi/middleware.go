package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	requestTimeout = 15 * time.Second
	maxRequestID   = 64

	// DefaultInFlight is how many requests are worked on at once where nothing else is set.
	DefaultInFlight = 256
	inFlightWait    = 50 * time.Millisecond
)

// begin gives a request its id and its deadline, and afterwards writes its line of the log and its metrics. Nothing personal is in either.
//
// The work does not end with the client's connection: a caller who hangs up would cancel a statement, and a cancel that comes late hits the
// next one of that session, which is somebody else's. The limits of statements and of the request bound what is done for nobody.
func (s *server) begin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		call := &call{id: requestID(c.Request()), role: Anonymous}
		var ctx context.Context
		ctx, call.end = context.WithTimeout(context.WithValue(context.WithoutCancel(c.Request().Context()), callKey{}, call), requestTimeout)
		defer func() { call.end() }() // a file's is another one by then
		c.SetRequest(c.Request().WithContext(ctx))
		c.Response().Header().Set(echo.HeaderXRequestID, call.id)
		if err := next(c); err != nil {
			c.Error(err)
		}
		took, status := time.Since(start), c.Response().Status
		s.Metrics.observe(c.Path(), status, took)
		s.Log.LogAttrs(ctx, slog.LevelInfo, "request",
			slog.String("method", c.Request().Method), slog.String("route", c.Path()), slog.Int("status", status),
			slog.Float64("ms", float64(took.Microseconds())/1000), slog.String("request_id", call.id), slog.String("caller", call.role.String()))
		return nil
	}
}

// requestID keeps a sane id of the client's, so that it can follow its request through our logs.
func requestID(r *http.Request) string {
	id := r.Header.Get(echo.HeaderXRequestID)
	sane := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	if id != "" && len(id) <= maxRequestID && strings.IndexFunc(id, func(r rune) bool { return !sane(r) }) < 0 {
		return id
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// recoverPanic turns a panic into an error, so that its request gets an answer and its connection lives.
func recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		return next(c)
	}
}

// secure sets what keeps a browser from making more of an answer than it is. Pages set policies of their own.
func (s *server) secure(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if s.PublicURL.Scheme == "https" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		return next(c)
	}
}

// enter takes a place among the requests that are worked on. Who finds none waits for a moment only: a crowd that queues is served late,
// and all of it. A request takes its place when its body has been read: bodies that trickle in must not use the places up. The probes
// need none, or a busy process would be taken for a dead one.
func (s *server) enter() (leave func(), err error) {
	if !s.place() {
		return nil, refuse(codeOverloaded, "the server has as many requests as it can work on")
	}
	s.Metrics.inFlight.Inc()
	return func() {
		s.Metrics.inFlight.Dec()
		<-s.places
	}, nil
}

func (s *server) place() bool {
	select {
	case s.places <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(inFlightWait)
	defer timer.Stop()
	select {
	case s.places <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// limitPages takes a place for a page; admit does it for the API. What is longer than a form may be is left for the page to refuse.
func (s *server) limitPages(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if !forPage(r) {
			return next(c)
		}
		form, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
		if err != nil {
			return notArrived(err)
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(form), r.Body), r.Body}
		leave, err := s.enter()
		if err != nil {
			return err
		}
		defer leave()
		return next(c)
	}
}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // errs only on a bad level
	return w
}}

// compressed gzips a large answer for whoever takes it. It is for public data only: with secrets in it, the length would tell of them.
func compressed(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		response := c.Response()
		response.Header().Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
		if !acceptsGzip(c.Request()) {
			return next(c)
		}
		plain := response.Writer
		zipped := &gzipResponse{ResponseWriter: plain}
		response.Writer = zipped
		defer func() { response.Writer = plain }()
		if err := next(c); err != nil {
			return err
		}
		return zipped.close()
	}
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get(echo.HeaderAcceptEncoding), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" {
			return !strings.HasPrefix(strings.ReplaceAll(weight, " ", ""), "q=0") || strings.ContainsAny(weight, "123456789")
		}
	}
	return false
}

// gzipResponse starts to compress when the answer begins, so that an error before that is written plainly.
type gzipResponse struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (w *gzipResponse) WriteHeader(status int) {
	if w.Header().Get(echo.HeaderContentEncoding) != "" { // it is kept compressed
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.Header().Set(echo.HeaderContentEncoding, "gzip")
	w.zip = gzipWriters.Get().(*gzip.Writer)
	w.zip.Reset(w.ResponseWriter)
	w.ResponseWriter.WriteHeader(status)
}

// Write is called after WriteHeader: echo.Response sees to that.
func (w *gzipResponse) Write(b []byte) (int, error) {
	if w.zip == nil {
		return w.ResponseWriter.Write(b)
	}
	return w.zip.Write(b)
}

func (w *gzipResponse) close() error {
	if w.zip == nil {
		return nil
	}
	err := w.zip.Close()
	gzipWriters.Put(w.zip)
	return err
}
