package httpapi_test

import (
	"strings"
	"testing"

	"seatfence/booking"
)

func TestAnEventOfAPlanSaysWhichAndSellsIt(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id := a.housePlan()
	onSale := strings.Replace(eventOf(id), `"draft"`, `"on_sale"`, 1)
	made := a.post("/v1/events", onSale, as(a.organizer), key("of-plan")).want(201)
	again := a.post("/v1/events", onSale, as(a.organizer), key("of-plan")).want(201)
	if again.header.Get("Idempotent-Replayed") != "true" || string(again.raw) != string(made.raw) {
		t.Errorf("replay %v\n%s\n%s", again.header, again.raw, made.raw)
	}
	detail := a.get("/v1/events/"+made.text("id"), as(a.organizer)).want(200)
	for name, got := range map[string]answer{"made": made, "read": detail} {
		if got.text("plan", "id") != id || got.number("plan", "version") != 1 {
			t.Errorf("%s: %s", name, got.raw)
		}
	}
	if detail.number("sections", 0, "total") != 30 || detail.number("sections", 1, "total") != 20 {
		t.Errorf("what is sold is not the plan: %s", detail.raw)
	}
	held := a.post("/v1/events/"+made.text("id")+"/holds", `{"seats":[{"id":1},{"id":2,"type":"senior"}]}`, as(a.buyer()), key("hold")).want(201)
	if held.number("total") != 6500 {
		t.Errorf("held %s", held.raw)
	}
	if own := a.get("/v1/events/"+a.event, as(a.organizer)).want(200); own.at("plan") != nil {
		t.Errorf("an event of its own house names a plan: %s", own.raw)
	}
}

func TestAnEventIsOfAPlanOrOfAHouse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id := a.housePlan()
	of := eventOf(id)
	prices := of[strings.Index(of, `"prices"`):strings.Index(of, `"orphan_rule"`)]
	house := `"categories":[{"name":"A","price":4500}],`
	for name, c := range map[string]struct{ body, code string }{
		"of both":                      {strings.Replace(of, `"plan"`, house+`"plan"`, 1), ""},
		"categories instead of prices": {strings.Replace(of, prices, house, 1), "plan_or_house"},
		"sections":                     {strings.Replace(of, `"plan"`, `"sections":[{"name":"S","rows":[{"label":"A","category":"A","seats":1}]}],"plan"`, 1), "plan_or_house"},
		"areas":                        {strings.Replace(of, `"plan"`, `"areas":[{"name":"F","category":"A","capacity":1}],"plan"`, 1), "plan_or_house"},
		"of neither":                   {strings.Replace(of, `"plan":{"id":"`+id+`","version":1},`, "", 1), ""},
		"no plan's id":                 {strings.Replace(of, id, "plan_x", 1), "unknown_plan"},
		"of a plan that is not there":  {strings.Replace(of, id, booking.PlanID(1).String(), 1), "unknown_plan"},
		"of no such version":           {strings.Replace(of, `"version":1`, `"version":2`, 1), "unknown_plan"},
	} {
		got := a.post("/v1/events", c.body, as(a.organizer), key("e-"+strings.ReplaceAll(name, " ", "-"))).wantCode(422, "invalid")
		if c.code != "" && got.text("errors", 0, "code") != c.code {
			t.Errorf("%s: %s", name, got.raw)
		}
	}
	got := a.post("/v1/events", of, as(a.foreign), key("foreign")).wantCode(422, "invalid")
	if got.text("errors", 0, "code") != "unknown_plan" {
		t.Errorf("another organizer's: %s", got.raw)
	}
}

// A name is the same however it is composed: a plan from a Mac has its letters apart.
func TestNamesOfAPlanAreFoundHoweverTheyAreComposed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const apart, whole = "Sa\u0308ule", "S\u00e4ule"
	document := `{"format":"seatfence-plan/1","name":"Hall","categories":[{"name":"` + apart + `"}],"sections":[{"name":"` + apart +
		`","rows":[{"label":"A","seats":[{"number":"1","category":"` + apart + `","x":0,"y":0},{"number":"2","category":"` + apart + `","x":1,"y":0}]}]}]}`
	made := a.post("/v1/plans?venue=Mill", document, as(a.organizer), key("p")).want(201)
	a.post("/v1/plans/"+made.text("plan")+"/versions/1/publish", "", as(a.organizer)).want(200)
	event := `{"name":"The Tempest","venue":"Mill","starts_at":"2099-03-01T19:30:00Z","timezone":"Europe/Berlin","currency":"EUR","payment":"none",
		"status":"on_sale","sale_starts_at":"2020-01-01T00:00:00Z","sale_ends_at":"2099-03-01T18:00:00Z",
		"plan":{"id":"` + made.text("plan") + `","version":1},"types":["` + apart + `"],"prices":[{"category":"` + apart + `","price":5}]}`
	id := a.post("/v1/events", event, as(a.organizer), key("e")).want(201).text("id")
	for i, name := range []string{apart, whole} {
		for n, body := range []string{
			`{"best_available":{"quantity":1,"category":"` + name + `","section":"` + name + `"}}`,
			`{"best_available":{"types":[{"type":"` + name + `","quantity":1}]}}`, `{"seats":[{"id":1,"type":"` + name + `"}]}`,
		} {
			lena := a.buyer()
			held := a.post("/v1/events/"+id+"/holds", body, as(lena), key(string(rune('a'+3*i+n)))).want(201)
			a.do("DELETE", "/v1/holds/"+held.text("id"), "", as(lena)).want(204)
		}
	}
}
