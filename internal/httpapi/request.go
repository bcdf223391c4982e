package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/stream"
)

const (
	maxBody      = 64 << 10
	maxEventBody = 1 << 20 // POST /v1/events: a house with its rows
	maxKey       = 255     // characters of an Idempotency-Key

	headerKey = "Idempotency-Key"
)

// call is what the middleware has found out about a request, for the handler and the log.
type call struct {
	id     string
	end    context.CancelFunc // of its context
	role   Role
	caller booking.Caller
	secret string // of the session of a user of the organizer; empty for all others
	key    booking.Idempotency
	body   []byte
	schema *openapi3.Schema
	zips   bool   // whether the client takes gzip
	name   string // of that user
	token  string // of the Authorization header, or of a ticket

	origin  string        // of the page that sent it, if a browser says so
	page    *stream.Page  // on which an anonymous viewer is
	upgrade *http.Request // that asks for the stream
}

type callKey struct{}

// callOf returns the call of a request's context. Outside of the API's middleware it is an empty one.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// operation is one operation of the contract as the middleware needs it.
type operation struct {
	id       string
	roles    Role
	maxBody  int64
	schema   *openapi3.Schema // of the body; nil if there is none
	keyed    bool             // needs an Idempotency-Key
	query    map[string]*openapi3.Schema
	compress bool
	streams  bool // a file is the body, which the handler reads
}

func newOperation(op *openapi3.Operation, inPath openapi3.Parameters) operation {
	o := operation{id: op.OperationID, maxBody: maxBody, query: map[string]*openapi3.Schema{}, compress: op.OperationID == "listSeats"}
	var served bool
	if o.roles, served = Access[o.id]; !served {
		panic("httpapi: nobody may use " + o.id)
	}
	if o.id == "createEvent" {
		o.maxBody = maxEventBody
	}
	for _, p := range append(inPath, op.Parameters...) {
		switch p.Value.In {
		case openapi3.ParameterInQuery:
			o.query[p.Value.Name] = p.Value.Schema.Value
		case openapi3.ParameterInHeader:
			o.keyed = o.keyed || p.Value.Name == headerKey
		}
	}
	if op.RequestBody != nil {
		if body := op.RequestBody.Value.Content[echo.MIMEApplicationJSON]; body != nil {
			o.schema = body.Schema.Value
		} else {
			o.streams = true
		}
	}
	return o
}

// admit reads a request up to its handler: the query and the body within their limits, who asks, whether they may, and under which key.
func (s *server) admit(op operation, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		r := c.Request()
		call := callOf(r.Context())
		if err := op.checkAddress(c); err != nil {
			return err
		}
		if op.streams {
			c.Response().Header().Set(echo.HeaderConnection, "close") // what nobody reads of the body ends with it
		} else if call.body, err = op.readBody(c); err != nil {
			return err
		}
		if !forProbe(r) {
			leave, err := s.enter()
			if err != nil {
				return err
			}
			defer leave()
		}
		call.origin = r.Header.Get(echo.HeaderOrigin)
		if op.id == "connectStream" {
			call.upgrade = r
		}
		if err := s.authenticate(r, call); err != nil {
			return err
		}
		if err := op.roles.allow(call.role); err != nil {
			return err
		}
		if op.keyed {
			if call.key, err = idempotency(r, call.body); err != nil {
				return err
			}
		}
		if op.streams {
			end, err := s.stream(c)
			if err != nil {
				return err
			}
			defer end()
		}
		call.schema, call.zips = op.schema, acceptsGzip(r)
		return next(c)
	}
}

// checkAddress holds the path and the query to the contract before the generated code parses them leniently.
func (o operation) checkAddress(c echo.Context) error {
	for _, name := range []string{"seat", "version", "channel", "item"} {
		if n := c.Param(name); n != "" && !plainInteger(n, 32) {
			return booking.ErrNotFound
		}
	}
	raw := c.Request().URL.RawQuery
	if raw == "" {
		return nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil || !utf8.ValidString(raw) {
		return refuse("malformed_query", "the query is not well-formed")
	}
	for name, values := range query {
		schema, ok := o.query[name]
		if !ok {
			return refuse("unknown_parameter", "the query has a parameter that is not documented")
		}
		if len(values) > 1 {
			return refuse("repeated_parameter", "a parameter stands twice in the query")
		}
		if detail := parameterFault(schema, values[0]); detail != "" {
			return &requestError{code: "invalid_parameter", detail: "a parameter breaks its rule", faults: []fault{{Parameter: name, Detail: detail}}}
		}
	}
	return nil
}

func parameterFault(schema *openapi3.Schema, text string) string {
	var value any = text
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "value is not text"
	case schema.Type.Is(openapi3.TypeInteger):
		if !plainInteger(text, 64) {
			return "value must be a plain integer in range"
		}
		value = json.Number(text)
	case schema.Type.Is(openapi3.TypeBoolean):
		if text != "true" && text != "false" {
			return "value must be true or false"
		}
		value = text == "true"
	}
	err := schema.VisitJSON(value)
	if broken, ok := errors.AsType[*openapi3.SchemaError](err); ok {
		return broken.Reason
	}
	if err != nil {
		return "value breaks the schema"
	}
	return ""
}

// plainInteger reports whether a text is how an integer from 0 up is written, in one way only.
func plainInteger(text string, bits int) bool {
	n, err := strconv.ParseInt(text, 10, bits)
	return err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

// readBody reads the whole body, whatever comes of it: it is small, and the connection can be used again. One that is refused unread ends
// its connection instead: otherwise net/http would wait for it before it answers.
func (o operation) readBody(c echo.Context) ([]byte, error) {
	r := c.Request()
	if o.schema != nil {
		if !plainJSON(r.Header) {
			c.Response().Header().Set(echo.HeaderConnection, "close")
			return nil, refuse("unsupported_media_type", "the body must be application/json in UTF-8, not encoded")
		}
	}
	if r.ContentLength > o.maxBody {
		c.Response().Header().Set(echo.HeaderConnection, "close")
		return nil, errBodyTooLarge
	}
	if r.ContentLength == 0 || r.Body == http.NoBody {
		if o.schema != nil {
			return nil, refuse("body_required", "the request needs a JSON body")
		}
		return nil, nil
	}
	// Past the limit http.MaxBytesReader ends the connection, too. It knows net/http's own writer, not Echo's.
	var buf bytes.Buffer
	buf.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := buf.ReadFrom(http.MaxBytesReader(c.Response().Writer, r.Body, o.maxBody))
	body := bytes.TrimSpace(buf.Bytes())
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		return nil, errBodyTooLarge
	case err != nil:
		return nil, notArrived(err)
	case o.schema != nil && len(body) == 0:
		return nil, refuse("body_required", "the request needs a JSON body")
	case o.schema == nil && len(body) > 0 && string(body) != "{}": // many clients always send an object
		return nil, refuse("body_not_allowed", "the request takes no body")
	}
	return body, nil
}

func notArrived(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse("request_timeout", "the body did not arrive in time")
	}
	return refuse("bad_request", "the body did not arrive whole")
}

// plainJSON reports whether a body is declared as what it is going to be read as, and only as that: what stands before this server may
// look at another header of the name, or at the charset.
func plainJSON(h http.Header) bool {
	types := h.Values(echo.HeaderContentType)
	if len(types) != 1 || len(h.Values(echo.HeaderContentEncoding)) > 0 {
		return false
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, named := params["charset"]
	return err == nil && media == echo.MIMEApplicationJSON && (!named || strings.EqualFold(charset, "utf-8"))
}

var errBodyTooLarge = refuse("body_too_large", "the body is over its limit")

// idempotency reads the caller's key. The fingerprint covers what makes two requests the same one, but for a body that streams.
func idempotency(r *http.Request, body []byte) (booking.Idempotency, error) {
	keys := r.Header.Values(headerKey)
	if len(keys) == 0 {
		return booking.Idempotency{}, refuse("idempotency_key_missing", "the request needs an Idempotency-Key header")
	}
	key := keys[0]
	hidden := func(r rune) bool { return r < '!' || '~' < r }
	if len(keys) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, hidden) {
		return booking.Idempotency{}, refuse("idempotency_key_invalid", "an Idempotency-Key is 1 to 255 visible ASCII characters")
	}
	return booking.NewIdempotency(key, []byte(r.Method), []byte(r.URL.Path), []byte(r.URL.RawQuery), body), nil
}

// strictBinder stands in for Echo's binder, which takes members from the path and the query into the body, and bodies of other types.
type strictBinder struct{}

// Bind decodes the body that admit has read, held to the operation's schema.
func (strictBinder) Bind(into any, c echo.Context) error {
	call := callOf(c.Request().Context())
	value, err := decodeStrict(call.body)
	if err != nil {
		return err
	}
	if err := validate(call.schema, value); err != nil {
		return err
	}
	if err := json.Unmarshal(call.body, into); err != nil {
		// The schema has let it pass: a date that is no day, such as the 30th of February.
		return &requestError{code: "invalid", detail: "the body has a value that does not exist"}
	}
	return nil
}
