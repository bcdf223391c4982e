package httpapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
)

//go:embed docs/index.html docs/docs.js docs/docs.css docs/swagger-ui-bundle.js.gz docs/swagger-ui.css.gz
//go:embed docs/LICENSE docs/NOTICE docs/swagger-ui-bundle.js.LICENSE.txt
var docs embed.FS

// The page's own script and the vendored one are all it runs, and it talks to nobody but us. Swagger UI draws its icons from data URLs.
const docsPolicy = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// addDocs serves the contract and a page that shows it, without a request to any other host.
func addDocs(e *echo.Echo) {
	serve := func(path, contentType string, body []byte, around ...echo.MiddlewareFunc) {
		handler := func(c echo.Context) error {
			h := c.Response().Header()
			h.Set("Content-Security-Policy", docsPolicy)
			h.Set("Cache-Control", "public, max-age=3600")
			return c.Blob(http.StatusOK, contentType, body)
		}
		e.GET(path, handler, around...)
		e.HEAD(path, handler, around...)
	}
	file := func(name string) []byte {
		body, err := docs.ReadFile("docs/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		return body
	}
	serve("/openapi.yaml", "application/yaml", contract, compressed)
	const html, script, style, text = "text/html; charset=utf-8", "text/javascript; charset=utf-8", "text/css; charset=utf-8", "text/plain; charset=utf-8"
	serve("/docs", html, file("index.html"))
	serve("/docs/docs.js", script, file("docs.js"))
	serve("/docs/docs.css", style, file("docs.css"))
	serve("/docs/swagger-ui-bundle.js", script, file("swagger-ui-bundle.js.gz"), zipped)
	serve("/docs/swagger-ui.css", style, file("swagger-ui.css.gz"), zipped)
	for _, name := range []string{"LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"} {
		serve("/docs/"+name, text, file(name))
	}
}

// zipped marks a body that is kept compressed, and unpacks it for the rare client that does not take it so.
func zipped(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
		if acceptsGzip(c.Request()) {
			h.Set(echo.HeaderContentEncoding, "gzip")
			return next(c)
		}
		plain := c.Response().Writer
		c.Response().Writer = &gunzipResponse{plain}
		defer func() { c.Response().Writer = plain }()
		return next(c)
	}
}

type gunzipResponse struct{ http.ResponseWriter }

// Write is called once, with the whole body.
func (w *gunzipResponse) Write(b []byte) (int, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(w.ResponseWriter, r); err != nil {
		return 0, err
	}
	return len(b), nil
}
