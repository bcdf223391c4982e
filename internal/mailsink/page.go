package mailsink

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

var (
	//go:embed page.html
	pageSource string
	//go:embed page.css
	style string

	pages = template.Must(template.New("").Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(style) },
		"join":  strings.Join,
	}).Parse(pageSource))

	styleHash = sha256.Sum256([]byte(style))
	// A mail is foreign text: no page here runs a script or loads anything but its own frame.
	pageCSP = "default-src 'none'; frame-src 'self'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(styleHash[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

const mailCSP = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'"

// ServeHTTP shows the messages: a list at /, JSON of all at /messages, one at
// /messages/{id} (a page, or JSON for a client that accepts only that), its
// HTML part at /messages/{id}/html. Links are relative, so that a prefix may
// be stripped before it.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", pageCSP)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

func (s *Sink) routes() {
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { render(w, "list", s.Messages()) })
	s.mux.HandleFunc("GET /messages", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Messages()) })
	s.mux.HandleFunc("GET /messages/{id}", func(w http.ResponseWriter, r *http.Request) {
		m, ok := s.find(r.PathValue("id"))
		switch {
		case !ok:
			http.NotFound(w, r)
		case strings.HasPrefix(r.Header.Get("Accept"), "application/json"):
			writeJSON(w, m)
		default:
			render(w, "message", m)
		}
	})
	s.mux.HandleFunc("GET /messages/{id}/html", func(w http.ResponseWriter, r *http.Request) {
		m, ok := s.find(r.PathValue("id"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Security-Policy", mailCSP)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(m.HTML))
	})
}

func (s *Sink) find(id string) (Message, bool) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return Message{}, false
	}
	for _, m := range s.Messages() {
		if m.ID == n {
			return m, true
		}
	}
	return Message{}, false
}

func render(w http.ResponseWriter, name string, data any) {
	var page bytes.Buffer
	if err := pages.ExecuteTemplate(&page, name, data); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = page.WriteTo(w)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
