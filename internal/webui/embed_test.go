package webui_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/access"
	"seatfence/internal/browsertest"
	"seatfence/internal/httpapi"
	"seatfence/internal/stream"
	"seatfence/realtime"
	"seatfence/seats"
)

// withStream gives a site the real stream.
func (s site) withStream(t *testing.T) site {
	t.Helper()
	rdb, err := realtime.OpenRedis(dbtest.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	live, err := stream.New(stream.Deps{
		Booking: s.Service, Redis: rdb, Node: uuid.New(), Key: make([]byte, 32), Origins: []string{"http://localhost"}, HoldGrace: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	live.Start()
	t.Cleanup(func() {
		live.Stop(context.Background())
		_ = rdb.Close()
	})
	return serve(t, s.World, nil, func(d *httpapi.Deps) { d.Stream = live })
}

// shop is a partner's site: the example of docs/embed.md as it stands there, but for the names in it. Its address is another origin.
func shop(t *testing.T) (server *httptest.Server, set func(s site, id, token string)) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/embed.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(doc)
		if found == nil {
			t.Fatalf("docs/embed.md has no %s", language)
		}
		return string(found[1])
	}
	page, script, call := block("html"), block("js"), block("sh")
	mux := http.NewServeMux()
	server = httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server, func(s site, id, token string) {
		names := strings.NewReplacer("https://tickets.example", s.url, `"EVENT"`, `"`+s.Event.String()+`"`, "/EVENT", "/"+s.Event.String(), `"KEY"`, `"`+id+`"`)
		mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
			// As strict as a policy can be that lets it work.
			w.Header().Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; script-src 'self' %s; connect-src 'self' %s %s", s.url, s.url, strings.Replace(s.url, "http", "ws", 1)))
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, names.Replace(page))
		})
		mux.HandleFunc("GET /shop.js", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, script)
		})
		mux.HandleFunc("POST /hold", func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			cmd := exec.CommandContext(r.Context(), "sh", "-c", names.Replace(call))
			cmd.Env = append(os.Environ(), "EVENT="+s.Event.String(), "SEATFENCE_TOKEN="+token, "ORDER="+uuid.NewString(), "SEATS="+string(body))
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("the example's call: %v", err)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(out)
		})
	}
}

func TestSeatsOnAPartnersPage(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here, which the example uses")
	}
	s := open(t, nil).withStream(t)
	b := browsertest.Open(t)
	partner, set := shop(t)
	keys := access.New(s.Pool)
	var organizer string
	if err := s.Pool.QueryRow(t.Context(), "SELECT name FROM organizers WHERE id = $1", s.Owner.Organizer).Scan(&organizer); err != nil {
		t.Fatal(err)
	}
	token, caller, err := keys.Create(t.Context(), organizer, "shop", access.ScopePartner, partner.URL)
	if err != nil {
		t.Fatal(err)
	}
	if caller.Organizer != s.Owner.Organizer {
		t.Fatal("the key is another organizer's")
	}
	set(s, access.FormatID(caller.ID), token)

	tab := b.Tab(partner.URL)
	const root = "document.querySelector('seatfence-map').shadowRoot"
	seat := func(id seats.ID) string { return fmt.Sprintf("%s.querySelector('[data-seat=\"%d\"]')", root, id) }
	tab.Wait(root + ".querySelector('details')")
	tab.Eval("window.lost = []; document.addEventListener('seatfence-change', e => lost.push(...e.detail.lost.map(s => s.id)))", nil)
	tab.Eval("for (const d of "+root+".querySelectorAll('details')) d.open = true", nil)
	tab.Wait(seat(1) + "?.dataset.state === 'free'")

	// Somebody else's choice turns, and is taken from the page's.
	tab.Eval(seat(1)+".click()", nil)
	tab.Eval(seat(2)+".click()", nil)
	tab.Wait("document.querySelector('seatfence-map').selected.length === 2 && !document.querySelector('#buy').disabled")
	s.MustHold(t, Buyer(), 1)
	tab.Wait(seat(1) + ".dataset.state === 'held' && lost.join() === '1' && document.querySelector('seatfence-map').selected.map(s => s.id).join() === '2'")

	// What is left the partner's server holds.
	tab.Eval("document.querySelector('#buy').click()", nil)
	tab.Wait("document.querySelector('#said').textContent.startsWith('Yours until')")
	tab.Wait(seat(2) + ".dataset.state === 'held'")
	if got := s.state(t, 2); got != seats.Held {
		t.Errorf("seat 2 is %v", got)
	}

	// The same page from an origin that no key lists shows what stands inside of the element, and reads nothing.
	stranger, set := shop(t)
	set(s, access.FormatID(caller.ID), token)
	tab = b.Tab(stranger.URL)
	tab.Eval("window.codes = []; document.addEventListener('seatfence-error', e => codes.push(e.detail.code)); document.querySelector('seatfence-map').setAttribute('lang', 'de')", nil)
	tab.Wait("codes.includes('unreachable')")
	tab.Wait("document.querySelector('seatfence-map').shadowRoot?.querySelector('[role=status]').textContent !== ''")
	tab.Wait("document.querySelector('seatfence-map').shadowRoot.querySelector('slot') && !document.querySelector('seatfence-map').shadowRoot.querySelector('[data-seat]')")
	var told string
	tab.Eval(fmt.Sprintf("fetch('%s/v1/stream/tickets?key=%s', {method: 'POST'}).then(r => 'read ' + r.status, () => 'refused')", s.url, access.FormatID(caller.ID)), &told)
	if told != "refused" {
		t.Errorf("a page of another origin: %s", told)
	}
}
