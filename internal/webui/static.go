package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// scripts are modules. Those of the pages import seatfence.js, which other sites load too.
//
//go:embed static/*.js
var scripts embed.FS

const (
	scriptsPath  = "/static/"
	scriptsFresh = "public, max-age=300" // under an address that stays when the content changes
	kept         = "public, max-age=31536000, immutable"
)

// The version of all scripts together: a page names it in the address of its script, and what that imports is found beside it.
var scriptsVersion = hashOf(func() (all []byte) {
	files, err := scripts.ReadDir("static")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		all = append(all, script(f.Name())...)
	}
	return all
}())

// script is the content of a file that is there.
func script(name string) []byte {
	content, err := scripts.ReadFile("static/" + name)
	if err != nil {
		panic(err)
	}
	return content
}

// scriptPath is the address of a script that a page loads.
func scriptPath(name string) string { return scriptsPath + scriptsVersion + "/" + name }

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

func registerScripts(e *echo.Echo) {
	for _, path := range []string{scriptsPath + ":script", scriptsPath + ":version/:script"} {
		e.Match([]string{http.MethodGet, http.MethodHead}, path, serveScript)
	}
}

// serveScript answers with a module, which any site may load: it knows nothing of anybody.
func serveScript(c echo.Context) error {
	content, err := scripts.ReadFile("static/" + c.Param("script"))
	if err != nil {
		return echo.ErrNotFound
	}
	h, tag := c.Response().Header(), `"`+hashOf(content)+`"`
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", scriptsFresh)
	if c.Param("version") == scriptsVersion {
		h.Set("Cache-Control", kept)
	}
	h.Set("ETag", tag)
	if c.Request().Header.Get("If-None-Match") == tag {
		return c.NoContent(http.StatusNotModified)
	}
	return writeStatic(c, "text/javascript; charset=utf-8", c.Param("script"), content)
}

var zipped sync.Map // what was compressed, by name

// writeStatic answers with a file of the program, compressed for whoever takes that.
func writeStatic(c echo.Context, kind, name string, content []byte) error {
	h := c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	takes := c.Request().Header.Get(echo.HeaderAcceptEncoding)
	if !strings.Contains(takes, "gzip") || strings.Contains(takes, "gzip;q=0") {
		return c.Blob(http.StatusOK, kind, content)
	}
	small, ok := zipped.Load(name)
	if !ok {
		var buffer bytes.Buffer
		w, _ := gzip.NewWriterLevel(&buffer, gzip.BestCompression) // errs only on a bad level
		_, _ = w.Write(content)                                    // a buffer takes everything
		_ = w.Close()
		small = buffer.Bytes()
		zipped.Store(name, small)
	}
	h.Set(echo.HeaderContentEncoding, "gzip")
	return c.Blob(http.StatusOK, kind, small.([]byte))
}
