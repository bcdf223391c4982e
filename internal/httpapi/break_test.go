package httpapi_test

import (
	"testing"
)

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
