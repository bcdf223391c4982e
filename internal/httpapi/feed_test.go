package httpapi_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func (a *api) number() {
	a.t.Helper()
	if _, err := a.deps.Booking.Number(a.t.Context(), uuid.UUID{1}); err != nil {
		a.t.Fatal(err)
	}
}

func TestFeedIsPulled(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	seats, lena := "/v1/events/"+a.event+"/seats", a.buyer()
	identity := header("Accept-Encoding", "identity")
	list := a.get(seats, identity).want(200)
	epoch, from := list.text("epoch"), list.number("seq")
	a.post("/v1/events/"+a.event+"/holds", `{"seats":[2,3]}`, as(lena), key("h")).want(201)
	a.post("/v1/events/"+a.event+"/holds", `{"ga":{"area":1,"quantity":2}}`, as(lena), key("g")).want(201)
	a.post("/v1/bookings", a.booking(5, "Lena"), as(lena), key("b")).want(201)
	ask := func(after int, more string) answer {
		return a.get(fmt.Sprintf("/v1/events/%s/changes?after=%d&epoch=%s%s", a.event, after, epoch, more)).want(200)
	}
	if got := ask(from, ""); got.at("reset") != false || got.number("seq") != from || len(got.at("cells").([]any)) != 0 {
		t.Errorf("before they are numbered: %s", got.raw)
	}
	a.number()
	got := ask(from, "")
	text := string(got.raw)
	if got.number("seq") != from+5 || got.number("top") != from+5 || !strings.Contains(text, `[2,1,1,`) || !strings.Contains(text, `[5,2,1]`) || !strings.Contains(text, `["a",1,18]`) {
		t.Errorf("changes %s", text)
	}
	if got := ask(from, "&limit=2"); got.number("seq") != from+2 || got.number("top") != from+5 {
		t.Errorf("two changes %s", got.raw)
	}
	for _, query := range []string{fmt.Sprintf("after=%d", from+6), "epoch=other", "after=9223372036854775807"} {
		if got := a.get("/v1/events/" + a.event + "/changes?" + query).want(200); got.at("reset") != true || got.number("seq") != from+5 || got.text("epoch") != epoch {
			t.Errorf("%s: %s", query, got.raw)
		}
	}

	compact := a.get(seats+"?format=compact", identity).want(200)
	if states, err := base64.StdEncoding.DecodeString(compact.text("states")); err != nil || len(states) != 8 || states[0] != 0b00_01_01_00 || states[1] != 0b10 {
		t.Errorf("states %08b, %v: %s", states, err, compact.raw)
	}
	if compact.text("epoch") != epoch || compact.number("seq") != from+5 || compact.number("areas", 0, 1) != 18 || compact.number("held", 0, 1) != 2 {
		t.Errorf("compact %s", compact.raw)
	}
	zipped := a.get(seats+"?format=compact", header("Accept-Encoding", "gzip")).want(200)
	if zipped.header.Get("Content-Encoding") != "gzip" || !slices.Contains(zipped.header.Values("Vary"), "Accept-Encoding") || string(zipped.raw) != string(compact.raw) {
		t.Errorf("zipped %v", zipped.header)
	}
	a.get(seats+"?format=full", identity).want(200)
	a.get(seats+"?format=compact&section=Stalls").wantCode(422, "invalid_parameter")
	a.get(seats+"?format=binary").wantCode(422, "invalid_parameter")
}

func TestMapIsKeptUntilItChanges(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	path := "/v1/events/" + a.event + "/map"
	first := a.get(path, header("Accept-Encoding", "identity")).want(200)
	if first.text("sections", 0, "rows", 1, "seats", 0, "label") != "Stalls B1" || first.number("sections", 0, "rows", 1, "seats", 0, "id") != 11 ||
		first.text("sections", 0, "rows", 2, "label") != "C" || first.text("areas", 0, "name") != "Floor" || first.number("areas", 0, "capacity") != 20 ||
		first.text("categories", 0, "name") != "A" {
		t.Errorf("map %s", first.raw)
	}
	etag := first.header.Get("ETag")
	if got := a.get(path, header("If-None-Match", etag)).want(304); len(got.raw) > 0 || got.header.Get("ETag") != etag || got.header.Get("Cache-Control") == "" {
		t.Errorf("unchanged: %v %s", got.header, got.raw)
	}
	a.get(path, header("If-None-Match", `W/`+etag)).want(304)
	zipped := a.get(path, header("Accept-Encoding", "gzip")).want(200)
	if zipped.header.Get("Content-Encoding") != "gzip" || string(zipped.raw) != string(first.raw) {
		t.Errorf("zipped %v", zipped.header)
	}

	id := a.housePlan()
	a.do("PUT", "/v1/events/"+a.event+"/plan", `{"plan":"`+id+`","version":1}`, as(a.organizer)).want(200)
	second := a.get(path, header("If-None-Match", etag)).want(200)
	if second.header.Get("ETag") == etag || second.number("layout") <= first.number("layout") {
		t.Errorf("after another plan: %v", second.header)
	}
	if epoch := a.get("/v1/events/" + a.event + "/changes").want(200).text("epoch"); !strings.HasSuffix(epoch, fmt.Sprint("-", second.number("layout"))) {
		t.Errorf("epoch %s at layout %d", epoch, second.number("layout"))
	}
}

func TestMapShowsWhatThePlanDraws(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	document := `{"format":"seatfence-plan/1","name":"Club","focus":{"x":5,"y":-3},"categories":[{"name":"A","color":"#a00"}],
		"sections":[{"name":"Left","rows":[{"label":"1","seats":[
			{"number":"1","category":"A","x":1.5,"y":2,"accessible":true,"tags":["aisle"]},{"number":"2","category":"A","x":2.5,"y":2,"companion":true},
			{"number":"3","category":"A","x":3.5,"y":2}]}]}],
		"areas":[{"name":"Floor","category":"A","capacity":7,"outline":[{"x":0,"y":5},{"x":9,"y":5},{"x":9,"y":9}]}],
		"decorations":[{"kind":"stage","label":"Stage","outline":[{"x":0,"y":0},{"x":9,"y":0},{"x":9,"y":-2}]}]}`
	id := a.post("/v1/plans?venue=Club", document, as(a.organizer), key("club")).want(201).text("plan")
	a.post("/v1/plans/"+id+"/versions/1/publish", "", as(a.organizer)).want(200)
	event := a.post("/v1/events", eventOf(id), as(a.organizer), key("club-event")).want(201).text("id")
	got := a.get("/v1/events/"+event+"/map", as(a.organizer), header("Accept-Encoding", "identity")).want(200)
	for _, want := range []string{
		`"color":"#a00"`, `"x":1.5,"y":2,"accessible":true,"tags":["aisle"]`, `"companion":true`, `"focus":{"x":5,"y":-3}`, `"label":"Left 1-1"`,
		`"outline":[{"x":0,"y":5},{"x":9,"y":5},{"x":9,"y":9}]`, `"kind":"stage","label":"Stage"`,
	} {
		if !strings.Contains(string(got.raw), want) {
			t.Errorf("the map does not say %s: %s", want, got.raw)
		}
	}
}
