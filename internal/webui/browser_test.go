package webui_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/access"
	"seatfence/internal/httpapi"
	"seatfence/internal/session"
	"seatfence/internal/shed"
	"seatfence/internal/staff"
	"seatfence/internal/webui"
	"seatfence/lockmgr"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// site is a whole server over a World: what stands around the pages is part of them.
type site struct {
	World
	url     string
	metrics *httpapi.Metrics
	people  *staff.Staff
}

func open(t *testing.T, locks *lockmgr.Seats, change ...func(*booking.Limits)) site {
	t.Helper()
	t.Parallel()
	limits := booking.DefaultLimits
	for _, c := range change {
		c(&limits)
	}
	w := New(t, dbtest.Pool(t), limits)
	t.Cleanup(func() { w.Verify(t) })
	return serve(t, w, locks)
}

func serve(t *testing.T, w World, locks *lockmgr.Seats, change ...func(*httpapi.Deps)) site {
	t.Helper()
	sessions, err := session.NewSigner(make([]byte, session.MinKey), false)
	if err != nil {
		t.Fatal(err)
	}
	metrics, gate := httpapi.NewMetrics(), shed.New(locks, w.Service)
	people, err := staff.New(w.Pool, &url.URL{Scheme: "http", Host: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	pages := webui.New(webui.Deps{Booking: w.Service, Gate: gate, Sessions: sessions, Staff: people, Result: metrics.Result})
	deps := httpapi.Deps{
		Booking: w.Service, Gate: gate, Keys: access.New(w.Pool), Sessions: sessions, Staff: people, Log: slog.New(slog.DiscardHandler), Metrics: metrics,
		State:     func(context.Context) httpapi.State { return httpapi.State{Redis: "off"} },
		PublicURL: &url.URL{Scheme: "http", Host: "localhost"}, InFlight: httpapi.DefaultInFlight, RefusePage: pages.Refuse,
	}
	for _, c := range change {
		c(&deps)
	}
	e, err := httpapi.New(deps)
	if err != nil {
		t.Fatal(err)
	}
	pages.Register(e)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return site{w, server.URL, metrics, people}
}

func (s site) eventPath() string { return "/events/" + s.Event.String() }

func (s site) stalls() string { return s.eventPath() + "/seats?section=Stalls" }

// browser is a visitor without a script. A page that fails on the server's side fails the test, unless mayFail.
type browser struct {
	t       *testing.T
	client  *http.Client
	site    site
	mayFail bool
}

// page is what the browser shows. words is its visible text with single spaces.
type page struct {
	browser
	status int
	header http.Header
	path   string
	doc    *html.Node
	words  string
}

func (s site) visitor(t *testing.T) browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return browser{t: t, client: &http.Client{Jar: jar}, site: s}
}

func (b browser) get(path string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.site.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

func (b browser) post(path string, form url.Values, header ...string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.site.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return b.do(r)
}

func (b browser) do(r *http.Request) page {
	b.t.Helper()
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	doc, err := html.Parse(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	p := page{browser: b, status: resp.StatusCode, header: resp.Header, path: resp.Request.URL.RequestURI(), doc: doc}
	p.words = words(doc)
	if resp.StatusCode >= http.StatusInternalServerError && !b.mayFail {
		b.t.Errorf("%s %s: status %d: %s", r.Method, r.URL, resp.StatusCode, p.words)
	}
	return p
}

func words(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "title" {
			text.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// says fails the test unless the page has the status and all the texts.
func (p page) says(status int, texts ...string) page {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("%s: status %d, want %d: %s", p.path, p.status, status, p.words)
	}
	for _, text := range texts {
		if !strings.Contains(p.words, text) {
			p.t.Errorf("%s does not say %q: %s", p.path, text, p.words)
		}
	}
	return p
}

func attr(n *html.Node, name string) string {
	value, _ := attribute(n, name)
	return value
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// form is the form with a button of that text, as it was rendered.
func (p page) form(button string) (action string, values url.Values) {
	action, _, values = p.formWith(button)
	return action, values
}

func (p page) formWith(button string) (action, method string, values url.Values) {
	p.t.Helper()
	for n := range p.doc.Descendants() {
		if n.Data == "form" && strings.Contains(words(n), button) {
			return attr(n, "action"), attr(n, "method"), fields(n, button)
		}
	}
	p.t.Fatalf("%s has no form to %q: %s", p.path, button, p.words)
	return "", "", nil
}

func fields(form *html.Node, button string) url.Values {
	values := url.Values{}
	for n := range form.Descendants() {
		name := attr(n, "name")
		_, checked := attribute(n, "checked")
		switch {
		case name == "":
		case n.Data == "button" && strings.Contains(words(n), button), n.Data == "input" && (attr(n, "type") != "checkbox" || checked):
			values.Add(name, attr(n, "value"))
		case n.Data == "select":
			values.Add(name, selected(n))
		}
	}
	return values
}

// selected is the value of the option that is selected, or of the first.
func selected(list *html.Node) (value string) {
	first := true
	for n := range list.Descendants() {
		_, chosen := attribute(n, "selected")
		if n.Data == "option" && (first || chosen) {
			first = false
			text, given := attribute(n, "value")
			if value = text; !given {
				value = words(n)
			}
		}
	}
	return value
}

// send submits the form with a button of that text, with some of its fields set.
func (p page) send(button string, set url.Values) page {
	p.t.Helper()
	action, method, values := p.formWith(button)
	for name, v := range set {
		values[name] = v
	}
	if method == "get" {
		return p.get(action + "?" + values.Encode())
	}
	return p.post(action, values)
}

// follow opens the link of that text.
func (p page) follow(text string) page {
	p.t.Helper()
	for n := range p.doc.Descendants() {
		if n.Data == "a" && words(n) == text {
			return p.get(attr(n, "href"))
		}
	}
	p.t.Fatalf("%s has no link %q: %s", p.path, text, p.words)
	return page{}
}

// labels are the texts of all labels, and whether what they label can be used.
func (p page) labels() map[string]bool {
	all := map[string]bool{}
	for n := range p.doc.Descendants() {
		if n.Data != "label" {
			continue
		}
		text, usable := "", true
		for d := range n.Descendants() {
			_, off := attribute(d, "disabled")
			usable = usable && !off
			if attr(d, "class") == "hidden" {
				text = words(d)
			}
		}
		all[text] = usable
	}
	return all
}

// pick ticks seats of the stalls, by their ids, and holds them.
func (b browser) pick(seats ...string) page {
	b.t.Helper()
	return b.get(b.site.stalls()).send("Hold the ticked seats", url.Values{"seat": slices.Clone(seats)})
}

var lena = url.Values{"name": {"Lena"}, "email": {"lena@example.com"}}
