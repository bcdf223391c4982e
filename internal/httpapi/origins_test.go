package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatfence/booking"
	"seatfence/internal/access"
)

const shop = "https://shop.example"

// pageKey makes a key that lists origins and returns its public id and its caller.
func (a *api) pageKey(organizer string, origins ...string) (string, booking.Caller) {
	a.t.Helper()
	_, caller, err := access.New(a.pool).Create(a.t.Context(), organizer, "shop", access.ScopePartner, origins...)
	if err != nil {
		a.t.Fatal(err)
	}
	return access.FormatID(caller.ID), caller
}

func corsOf(h http.Header) (names []string) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			names = append(names, name)
		}
	}
	return names
}

// TestOriginsAreNotReflected asks as pages whose origin looks like a listed one.
func TestOriginsAreNotReflected(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.pageKey("Old Mill", shop, "https://shop.example:8443", "http://127.0.0.1:9000")
	ended, _ := a.pageKey("Old Mill", "https://ended.example")
	if err := access.New(a.pool).Revoke(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		origin string
		listed bool
	}{
		{shop, true},
		{"https://shop.example:8443", true},
		{"http://127.0.0.1:9000", true},
		{"", false},
		{"null", false},
		{"*", false},
		{"http://shop.example", false},
		{"https://SHOP.example", false},
		{"HTTPS://shop.example", false},
		{"https://shop.example/", false},
		{"https://shop.example.", false},
		{"https://shop.example:443", false},
		{"https://shop.example:8444", false},
		{"https://shop.example.evil.example", false},
		{"https://evilshop.example", false},
		{"https://www.shop.example", false},
		{"https://evil.example@shop.example", false},
		{"https://shop.example@evil.example", false},
		{"https://shop.example https://evil.example", false},
		{"https://shop.example,https://evil.example", false},
		{"http://127.0.0.1", false},
		{"http://127.0.0.1:9001", false},
		{"http://localhost:9000", false},
		{"http://localhost", false}, // our own, which needs no permission
		{"https://ended.example", false},
	} {
		for _, path := range []string{"/v1/events", "/v1/events/" + a.event, "/v1/events/" + a.event + "/map", "/v1/events/" + a.event + "/seats", "/v1/events/" + a.event + "/changes?after=0"} {
			got := a.get(path, header("Origin", c.origin), header("Cookie", "seatfence_session=none")).want(200)
			if !slices.Contains(got.header.Values("Vary"), "Origin") {
				t.Errorf("%s does not vary by the origin: %v", path, got.header.Values("Vary"))
			}
			want := ""
			if c.listed {
				want = c.origin
			}
			if said := got.header.Values("Access-Control-Allow-Origin"); strings.Join(said, "|") != want || !c.listed && corsOf(got.header) != nil {
				t.Errorf("%s for %q: %v %v", path, c.origin, said, corsOf(got.header))
			}
			if got.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s takes credentials", path)
			}
		}
		pre := a.do(http.MethodOptions, "/v1/stream/tickets", "", header("Origin", c.origin), header("Access-Control-Request-Method", "POST")).want(204)
		if said := pre.header.Get("Access-Control-Allow-Methods"); (said == "POST") != c.listed || !c.listed && corsOf(pre.header) != nil {
			t.Errorf("preflight of %q: %v", c.origin, pre.header)
		}
	}
}

// TestOnlyWhatIsSharedIsShared asks as a page that is listed for what no page of another site may have.
func TestOnlyWhatIsSharedIsShared(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.pageKey("Old Mill", shop)
	event := "/v1/events/" + a.event
	for path, methods := range map[string][]string{
		"/v1/sessions": {"POST"}, "/v1/events": {"POST"}, event: {"PATCH"}, event + "/holds": {"POST"}, "/v1/bookings": {"GET", "POST"}, "/v1/staff": {"GET", "POST"},
		event + "/seats/1": {"GET"}, event + "/seats/1/history": {"GET"}, event + "/draft": {"GET", "PUT"}, "/v1/holds/hld_1": {"GET", "PATCH", "DELETE"}, "/healthz": {"GET"},
		"/v1/stream": {"GET"}, "/v1/stream/tickets": {"DELETE"},
	} {
		for _, method := range methods {
			for _, got := range []answer{
				a.do(http.MethodOptions, path, "", header("Origin", shop), header("Access-Control-Request-Method", method), header("Access-Control-Request-Headers", "authorization")),
				a.do(method, path, "", header("Origin", shop), header("Sec-Fetch-Site", "cross-site"), key("page")),
			} {
				if corsOf(got.header) != nil {
					t.Errorf("%s %s is shared: %v", method, path, got.header)
				}
			}
		}
	}
	for _, origin := range []string{"https://evil.example", "null"} {
		a.post("/v1/stream/tickets?key="+strings.Repeat("0", 22), "", header("Origin", origin), header("Sec-Fetch-Site", "cross-site")).wantCode(403, "cross_origin")
	}
	a.post("/v1/sessions", "", header("Origin", shop), header("Sec-Fetch-Site", "cross-site")).wantCode(403, "cross_origin")
}

func TestAPageWatchesWithTheIDOfAKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.pageKey("Old Mill", shop)
	other, _ := a.pageKey("New Mill", "https://other.example", shop)
	ask := func(key, origin string, edits ...edit) answer {
		return a.post("/v1/stream/tickets?key="+key, "", append(edits, header("Origin", origin), header("Sec-Fetch-Site", "cross-site"))...)
	}
	got := ask(id, shop).want(201)
	if got.header.Get("Access-Control-Allow-Origin") != shop {
		t.Errorf("the page may not read its ticket: %v", got.header)
	}
	for _, c := range []struct{ key, origin string }{
		{id, "https://other.example"}, {id, "https://evil.example"}, {id, "null"}, {strings.Repeat("0", 22), shop},
	} {
		ask(c.key, c.origin).wantCode(403, "cross_origin")
	}
	a.post("/v1/stream/tickets?key="+id, "").wantCode(403, "cross_origin") // a program without an origin
	a.post("/v1/stream/tickets?key="+id, "", as(a.partner), header("Origin", shop)).wantCode(400, "bad_request")
	ask("short", shop).wantCode(422, "invalid_parameter")
	// Nothing a ticket carries is a token by itself.
	a.get("/v1/events", header("Authorization", "Bearer page "+id+" "+shop)).want(401)

	// The ticket is for pages of its origin.
	for origin, want := range map[string]int{shop: 101, "https://other.example": 403, "https://evil.example": 403, "http://localhost": 403, "": 403} {
		conn, status := a.dialled(ask(id, shop).want(201).text("ticket"), origin)
		if status != want {
			t.Errorf("a socket from %q: %d, want %d", origin, status, want)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
	// It shows maps of the key's organizer, and nothing else.
	ticket := ask(id, shop).want(201).text("ticket")
	conn, _ := a.dialled(ticket, shop)
	if _, status := a.dialled(ticket, shop); status != 401 {
		t.Errorf("a ticket that was used: %d", status)
	}
	conn.says(`{"type":"hello","protocol":1}`)
	conn.gets("welcome")
	conn.says(`{"type":"view-resource","id":1,"resource":"event:` + a.event + `"}`)
	conn.gets("view")
	for _, frame := range []string{
		`"type":"view-resource","resource":"configurator:` + a.event + `"`, `"type":"show-hold","hold":"hld_1"`,
		`"type":"lock-configurator","configurator":"` + a.event + `"`, `"type":"activity","configurator":"` + a.event + `"`,
	} {
		conn.says(`{"id":2,` + frame + `}`)
		if refused := conn.gets("error"); refused["code"] != "forbidden" {
			t.Errorf("%s: %v", frame, refused)
		}
	}
	conn, _ = a.dialled(ask(other, shop).want(201).text("ticket"), shop)
	conn.says(`{"type":"hello","protocol":1}`)
	conn.says(`{"type":"view-resource","id":1,"resource":"event:` + a.event + `"}`)
	if refused := conn.gets("error"); refused["code"] != "not_found" {
		t.Errorf("the map of another organizer: %v", refused)
	}
}

// pageSocket is a connection that a page has opened.
type pageSocket struct {
	*websocket.Conn
	t *testing.T
}

// dialled opens the stream as a page of an origin would, and tells how that was answered.
func (a *api) dialled(ticket, origin string) (*pageSocket, int) {
	a.t.Helper()
	h := http.Header{}
	if origin != "" {
		h.Set("Origin", origin)
	}
	conn, response, err := websocket.DefaultDialer.DialContext(a.t.Context(), "ws"+strings.TrimPrefix(a.url, "http")+"/v1/stream?ticket="+ticket, h)
	if response == nil {
		a.t.Fatal(err)
	}
	if err != nil {
		return nil, response.StatusCode
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	return &pageSocket{conn, a.t}, response.StatusCode
}

func (p *pageSocket) says(frame string) {
	p.t.Helper()
	if err := p.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		p.t.Fatal(err)
	}
}

// gets returns the next frame of a type.
func (p *pageSocket) gets(kind string) (frame map[string]any) {
	p.t.Helper()
	for frame["type"] != kind {
		_, raw, err := p.ReadMessage()
		if err != nil {
			p.t.Fatalf("no %s: %v", kind, err)
		}
		frame = nil
		if err := json.Unmarshal(raw, &frame); err != nil {
			p.t.Fatal(err)
		}
	}
	return frame
}

// TestSeatMapsTellNothingOfPeople holds and books under names that can be found again, and looks for them in all that shows a seat map.
func TestSeatMapsTellNothingOfPeople(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena := a.buyer()
	hold := a.post("/v1/events/"+a.event+"/holds", `{"seats":[2,3]}`, as(lena), key("h")).want(201)
	booked := a.post("/v1/bookings", `{"event":"`+a.event+`","seats":[5],"buyer":{"name":"Canaria Quill","email":"canaria@quill.example"},"payment_reference":"canary-paid"}`, as(a.organizer), key("b")).want(201)
	a.number()
	var buyer, holdKey, bookingKey string
	if err := a.pool.QueryRow(t.Context(), "SELECT (SELECT buyer::text FROM holds LIMIT 1), (SELECT id::text FROM holds LIMIT 1), (SELECT id::text FROM bookings LIMIT 1)").Scan(&buyer, &holdKey, &bookingKey); err != nil {
		t.Fatal(err)
	}
	secrets := []string{"anaria", "Quill", "quill", "canary", buyer, holdKey, bookingKey, hold.text("id"), booked.text("id"), booked.text("number"), strings.TrimPrefix(lena, "sfs_")}
	for _, path := range []string{"", "/map", "/seats", "/seats?format=compact", "/changes?after=0", "/seats/2", "/seats/5"} {
		for _, edits := range [][]edit{nil, {as(lena)}, {as(a.foreignPartner)}} {
			got := a.get("/v1/events/"+a.event+path, append(edits, header("Accept-Encoding", "identity"))...)
			for _, secret := range secrets {
				if strings.Contains(string(got.raw)+strings.Join(got.header["Etag"], ""), secret) {
					t.Errorf("%s tells %q: %s", path, secret, got.raw)
				}
			}
		}
	}
}
