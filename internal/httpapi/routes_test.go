package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"seatfence/internal/httpapi"
)

func TestLenaBooksAndOmarIsToldWhatIsFree(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena, omar := a.buyer(), a.buyer()

	hold := a.post("/v1/events/"+a.event+"/holds", `{"seats":[24,{"id":25,"fence":0,"type":"standard"}],"session":"AAAAAAAAAAAAAAAAAAAAAA.1.00000000-0000-4000-8000-000000000001"}`, as(lena), key("h1")).want(201)
	if hold.number("total") != 9000 || hold.text("seats", 0, "label") != "Stalls C14" || hold.text("timezone") != "Europe/Berlin" {
		t.Errorf("hold %s", hold.raw)
	}
	for _, name := range []string{"expires_at", "ends_at", "server_time"} {
		if at, err := time.Parse(time.RFC3339Nano, hold.text(name)); err != nil || !strings.HasSuffix(hold.text(name), "Z") || at.IsZero() {
			t.Errorf("%s is %s", name, hold.text(name))
		}
	}
	id := hold.text("id")
	a.get("/v1/holds/"+id, as(lena)).want(200)
	a.get("/v1/holds/"+id, as(omar)).wantCode(404, "not_found")
	a.get("/v1/holds/"+id, as(a.organizer)).want(200)

	refusal := a.post("/v1/events/"+a.event+"/holds", `{"seats":[24,26]}`, as(omar), key("h1")).wantCode(409, "seat_taken")
	if refusal.text("seats", 0, "label") != "Stalls C14" || refusal.text("seats", 0, "reason") != "held" || refusal.text("seats", 0, "held_until") == "" {
		t.Errorf("refusal %s", refusal.raw)
	}
	if free := refusal.number("alternatives", 0, "id"); free != 23 && free != 27 {
		t.Errorf("nearest free seat is %d, want a neighbour: %s", free, refusal.raw)
	}
	own := a.post("/v1/events/"+a.event+"/holds", `{"seats":[24]}`, as(lena), key("h2")).wantCode(409, "seat_yours")
	if own.text("seats", 0, "hold") != id {
		t.Errorf("her own hold is not named: %s", own.raw)
	}

	changed := a.do("PATCH", "/v1/holds/"+id, `{"add":[26],"drop":[25],"extend":true,"expected_total":9000}`, as(lena)).want(200)
	if changed.number("extensions_left") != hold.number("extensions_left")-1 || changed.number("seats", 1, "id") != 26 {
		t.Errorf("changed hold %s", changed.raw)
	}
	a.do("PATCH", "/v1/holds/"+id, `{"add":[27],"expected_total":1}`, as(lena)).wantCode(409, "price_changed")
	if a.post("/v1/holds/"+id+"/checkout", "{}", as(lena)).want(200).at("checkout") != true {
		t.Error("not in checkout")
	}

	body := fmt.Sprintf(`{"hold":%q,"buyer":{"name":"Lena","email":"lena@example.com"}}`, id)
	booked := a.post("/v1/bookings", body, as(lena), key("b1")).want(201)
	again := a.post("/v1/bookings", body, as(lena), key("b1")).want(201)
	if again.header.Get("Idempotent-Replayed") != "true" || string(again.raw) != string(booked.raw) || booked.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("replay %v\n%s\n%s", again.header, again.raw, booked.raw)
	}
	a.post("/v1/bookings", strings.Replace(body, "Lena", "Lina", 1), as(lena), key("b1")).wantCode(422, "idempotency_key_reused")
	if booked.number("total") != 9000 || booked.text("seats", 0, "code") == "" || booked.text("status") != "confirmed" {
		t.Errorf("booking %s", booked.raw)
	}
	if got := a.get("/v1/holds/"+id, as(lena)).want(200); got.text("booking") != booked.text("id") || got.text("status") != "booked" {
		t.Errorf("booked hold %s", got.raw)
	}
	a.do("DELETE", "/v1/holds/"+id, "", as(lena)).wantCode(409, "hold_closed")

	a.get("/v1/bookings/"+booked.text("id"), as(lena)).want(200)
	a.get("/v1/bookings/"+booked.text("id"), as(omar)).wantCode(404, "not_found")
	cancelled := a.post("/v1/bookings/"+booked.text("id")+"/cancel", "", as(a.organizer)).want(200)
	if cancelled.text("status") != "cancelled" || cancelled.text("cancelled_at") == "" {
		t.Errorf("cancelled %s", cancelled.raw)
	}
	a.post("/v1/bookings/"+booked.text("id")+"/cancel", "", as(lena)).wantCode(409, "booking_cancelled")
}

func TestWhatTheCallerSawOfAHoldDecidesWhatIsDoneToIt(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena := a.buyer()
	hold := a.post("/v1/events/"+a.event+"/holds", `{"seats":[24]}`, as(lena), key("h")).want(201)
	path, left := "/v1/holds/"+hold.text("id"), hold.number("extensions_left")
	extend := fmt.Sprintf(`{"extend":true,"seen_expires_at":%q}`, hold.text("expires_at"))
	for range 2 {
		if got := a.do("PATCH", path, extend, as(lena)).want(200); got.number("extensions_left") != left-1 {
			t.Errorf("%d extensions left of %d", got.number("extensions_left"), left)
		}
	}
	a.do("PATCH", path, strings.Replace(extend, "true", "false", 1), as(lena)).wantCode(422, "invalid")

	body := fmt.Sprintf(`{"hold":%q,"buyer":{"name":"Lena","email":"lena@example.com"},"expected_total":4400}`, hold.text("id"))
	a.post("/v1/bookings", body, as(lena), key("b")).wantCode(409, "price_changed")
	a.post("/v1/bookings", strings.Replace(body, "4400", "4500", 1), as(lena), key("b")).want(201)
}

func TestTheDomainLimitsTheSeatsOfARequest(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	got := a.post("/v1/events/"+a.event+"/holds", `{"ga":{"area":1,"quantity":21}}`, as(a.buyer()), key("h")).wantCode(422, "invalid")
	if got.text("errors", 0, "code") != "bad_quantity" {
		t.Errorf("refused by the contract, whatever the operator allows: %s", got.raw)
	}
}

func TestHoldIsReplayedWordByWord(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena := a.buyer()
	body := `{"ga":{"area":1,"quantity":2}}`
	first := a.post("/v1/events/"+a.event+"/holds", body, as(lena), key("h")).want(201)
	again := a.post("/v1/events/"+a.event+"/holds", body, as(lena), key("h")).want(201)
	if string(first.raw) != string(again.raw) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s\n%s", first.raw, again.raw)
	}
	a.do("DELETE", "/v1/holds/"+first.text("id"), "", as(lena)).want(204)
	a.do("DELETE", "/v1/holds/"+first.text("id"), "", as(lena)).want(204)
	a.do("PATCH", "/v1/holds/"+first.text("id"), `{"extend":true}`, as(lena)).wantCode(409, "hold_closed")
}

func TestEventIsListedReadAndChanged(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	draft := a.post("/v1/events", newEvent("draft"), as(a.organizer), key("e2")).want(201).text("id")
	a.get("/v1/events/"+draft).wantCode(404, "not_found")
	a.get("/v1/events/"+draft, as(a.organizer)).want(200)
	a.get("/v1/events/"+draft, as(a.foreign)).wantCode(404, "not_found")

	detail := a.get("/v1/events/" + a.event).want(200)
	if detail.number("sections", 0, "total") != 30 || detail.number("sections", 1, "area") != 1 || detail.number("sections", 1, "free") != 20 {
		t.Errorf("event %s", detail.raw)
	}
	page := a.get("/v1/events?limit=1", as(a.organizer)).want(200)
	next := a.get("/v1/events?limit=1&cursor="+page.text("next_cursor"), as(a.organizer)).want(200)
	if next.at("next_cursor") != nil || page.text("events", 0, "id") == next.text("events", 0, "id") {
		t.Errorf("pages %s %s", page.raw, next.raw)
	}
	a.do("PATCH", "/v1/events/"+a.event, `{"status":"paused","name":"The Storm"}`, as(a.organizer)).want(200)
	a.post("/v1/bookings", a.booking(1, "Lena"), as(a.buyer()), key("b")).wantCode(409, "event_paused")
	a.do("PATCH", "/v1/events/"+draft, `{"status":"paused"}`, as(a.organizer)).wantCode(409, "bad_transition")
	a.do("PATCH", "/v1/events/"+a.event, `{"status":"on_sale"}`, as(a.foreign)).wantCode(404, "not_found")
}

func TestSeatsAreListedBlockedAndRemembered(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	block := a.post("/v1/events/"+a.event+"/blocks", `{"seats":[1,2],"reason":"broken lamp"}`, as(a.organizer), key("k")).want(201)
	a.post("/v1/bookings", a.booking(1, "Lena"), as(a.buyer()), key("b")).wantCode(409, "seat_taken")
	list := a.get("/v1/events/"+a.event+"/seats?section=Stalls", header("Accept-Encoding", "identity")).want(200)
	if list.text("seats", 0, "state") != "blocked" || list.number("areas", 0, "total") != 20 || list.text("timezone") != "Europe/Berlin" {
		t.Errorf("seats %s", list.raw)
	}
	a.do("DELETE", "/v1/events/"+a.event+"/blocks/"+block.text("id"), "", as(a.organizer)).want(204)
	a.do("DELETE", "/v1/events/"+a.event+"/blocks/"+block.text("id"), "", as(a.organizer)).wantCode(409, "block_removed")
	if seat := a.get("/v1/events/" + a.event + "/seats/1").want(200); seat.text("state") != "free" || seat.number("fence") != 2 {
		t.Errorf("seat %s", seat.raw)
	}
	history := a.get("/v1/events/"+a.event+"/seats/1/history?limit=1", as(a.organizer)).want(200)
	if history.text("changes", 0, "action") != "unblocked" || history.text("changes", 0, "ref") != block.text("id") {
		t.Errorf("history %s", history.raw)
	}
	a.get("/v1/events/"+a.event+"/seats/1/history?before=2", as(a.organizer)).want(200)
	a.get("/v1/events/"+a.event+"/seats/1/history", as(a.buyer())).wantCode(403, "forbidden")
	a.get("/v1/events/"+a.event+"/seats/9999").wantCode(404, "not_found")
	a.post("/v1/bookings", a.booking(9999, "Lena"), as(a.buyer()), key("b")).wantCode(404, "seat_unknown")
	a.post("/v1/events/"+a.event+"/holds", `{"seats":[{"id":1,"fence":1}]}`, as(a.buyer()), key("h")).wantCode(409, "stale_fence")
}

func TestBookingsAreFoundWithinTheirScope(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	lena := a.buyer()
	for seat := 1; seat <= 3; seat++ {
		a.post("/v1/bookings", a.booking(seat, "Lena"), as(lena), key(fmt.Sprint("b", seat))).want(201)
	}
	sold := a.post("/v1/bookings", strings.TrimSuffix(a.booking(4, "Omar"), "}")+`,"payment_reference":"till-7"}`, as(a.partner), key("b")).want(201)
	a.post("/v1/bookings", strings.TrimSuffix(a.booking(5, "Omar"), "}")+`,"payment_reference":"till-7"}`, as(lena), key("b")).wantCode(403, "forbidden")
	count := func(path string, token string) int {
		t.Helper()
		return len(a.get(path, as(token)).want(200).at("bookings").([]any))
	}
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/v1/bookings", lena, 3},
		{"/v1/bookings", a.buyer(), 0},
		{"/v1/bookings", a.organizer, 4},
		{"/v1/bookings", a.foreign, 0},
		{"/v1/bookings", a.partner, 1},
		{"/v1/bookings?event=" + a.event + "&email=LENA@example.com&status=confirmed", a.organizer, 3},
		{"/v1/bookings?reference=till-7", a.organizer, 1},
		{"/v1/bookings?reference=" + sold.text("number"), a.organizer, 1},
	} {
		if got := count(c.path, c.token); got != c.want {
			t.Errorf("%s: %d bookings, want %d", c.path, got, c.want)
		}
	}
	seen := map[string]bool{}
	for path := "/v1/bookings?limit=3"; path != ""; {
		page := a.get(path, as(a.organizer)).want(200)
		for i := range page.at("bookings").([]any) {
			seen[page.text("bookings", i, "id")] = true
		}
		path = ""
		if next := page.at("next_cursor"); next != nil {
			path = "/v1/bookings?limit=3&cursor=" + next.(string)
		}
	}
	if len(seen) != 4 {
		t.Errorf("paging found %d bookings, want 4", len(seen))
	}
}

func TestRoutesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	doc := loadContract(t)
	want, operations := map[string]bool{}, 0
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			route := method + " " + strings.NewReplacer("{", ":", "}", "").Replace(path)
			want[route] = true
			operations++
			if method == "GET" {
				want["HEAD"+strings.TrimPrefix(route, "GET")] = true
			}
			if httpapi.Access[op.OperationID] == 0 {
				t.Errorf("nobody may use %s", op.OperationID)
			}
		}
	}
	if operations != len(httpapi.Access) {
		t.Errorf("Access has %d operations, the contract %d", len(httpapi.Access), operations)
	}
	a := newAPI(t)
	got := map[string]bool{}
	for _, route := range a.routes {
		if !strings.HasPrefix(route.Path, "/docs") && route.Path != "/openapi.yaml" {
			got[route.Method+" "+route.Path] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("routes %v\nwant   %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}
