package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// shared is what pages of other sites may ask for, if a key lists their origin: what everybody may read of events, and a ticket for the
// stream. They ask as nobody: no cookie and no Authorization header comes along.
var shared = map[string]string{ // a route's method
	"/v1/events":                http.MethodGet,
	"/v1/events/:event":         http.MethodGet,
	"/v1/events/:event/map":     http.MethodGet,
	"/v1/events/:event/seats":   http.MethodGet,
	"/v1/events/:event/changes": http.MethodGet,
	"/v1/stream/tickets":        http.MethodPost,
}

// preflightAge is for how many seconds a browser need not ask again. An origin that is no longer listed is refused all the same.
const preflightAge = "600"

var sameOrigin = http.NewCrossOriginProtection()

// crossOrigin lets pages of listed origins read what is shared, and refuses writes that any other site's page has its visitor's browser send.
// A request of the API with an Authorization header is not one, because it is not done for its cookie.
func (s *server) crossOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		listed, err := s.share(c)
		if err != nil {
			return err
		}
		if listed && r.Method == http.MethodOptions {
			return c.NoContent(http.StatusNoContent)
		}
		if !listed && (forPage(r) || r.Header.Get(echo.HeaderAuthorization) == "") && sameOrigin.Check(r) != nil {
			return refuse("cross_origin", "another site's page sent this")
		}
		return next(c)
	}
}

// share tells the browser that a page may read the answer, and reports whether it may. Without a listed origin nothing is told, and the
// browser keeps the answer from the page.
func (s *server) share(c echo.Context) (bool, error) {
	r, h := c.Request(), c.Response().Header()
	method, ok := shared[c.Path()]
	if !ok {
		return false, nil
	}
	h.Add(echo.HeaderVary, echo.HeaderOrigin) // for what stands between: the answer to another page is another
	asked := r.Method
	if asked == http.MethodOptions {
		asked = r.Header.Get(echo.HeaderAccessControlRequestMethod)
	}
	origins := r.Header.Values(echo.HeaderOrigin)
	if len(origins) != 1 || asked != method {
		return false, nil
	}
	listed, err := s.Keys.Listed(r.Context(), origins[0])
	if err != nil || !listed {
		return false, err
	}
	h.Set(echo.HeaderAccessControlAllowOrigin, origins[0])
	h.Set(echo.HeaderAccessControlExposeHeaders, "ETag, Retry-After, X-Request-Id")
	if r.Method == http.MethodOptions {
		h.Set(echo.HeaderAccessControlAllowMethods, method)
		h.Set(echo.HeaderAccessControlMaxAge, preflightAge)
	}
	return true, nil
}
