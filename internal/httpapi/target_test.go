package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"seatfence/internal/access"
	"seatfence/internal/httpapi"
	"seatfence/internal/staff"
)

// request is one that succeeds. Without a token it is anonymous.
type request struct {
	ids    map[string]string // of the path
	body   string
	token  string
	status int
}

// target is an operation of the contract with a request that succeeds. A bad request differs from it in one thing, and so is refused for
// that thing.
type target struct {
	request
	name, method string
	route        string // as the contract writes it
	op           *openapi3.Operation
	params       openapi3.Parameters
}

func (x target) path() string { return x.pathWith("", "") }

// pathWith is the path with another value, written as in a URL, for one of its parameters.
func (x target) pathWith(name, value string) string {
	path := x.route
	for id, own := range x.ids {
		if id == name {
			own = value
		}
		path = strings.Replace(path, "{"+id+"}", own, 1)
	}
	return path
}

// keyed reports whether the operation needs an Idempotency-Key.
func (x target) keyed() bool {
	return slices.ContainsFunc(x.params, func(p *openapi3.ParameterRef) bool { return p.Value.Name == "Idempotency-Key" })
}

func (x target) query() (list []*openapi3.Parameter) {
	for _, p := range x.params {
		if p.Value.In == openapi3.ParameterInQuery {
			list = append(list, p.Value)
		}
	}
	return list
}

func (x target) public() bool { return httpapi.Access[x.op.OperationID]&httpapi.Anonymous != 0 }

// edits are the credential of the request that succeeds.
func (x target) edits() []edit {
	var list []edit
	if x.token != "" {
		list = append(list, as(x.token))
	}
	if slices.ContainsFunc(x.params, func(p *openapi3.ParameterRef) bool { return p.Value.Name == "Edit-Fence" }) {
		list = append(list, header("Edit-Fence", "1")) // of an event of which nobody has taken another
	}
	return list
}

// targets pairs each operation of the contract with its requests that succeed. An operation without one fails the test.
func (a *api) targets(requests map[string]request) (list []target) {
	a.t.Helper()
	used := map[string]bool{}
	for route, item := range loadContract(a.t).Paths.Map() {
		for method, op := range item.Operations() {
			missing := true
			for name, r := range requests {
				if id, _, _ := strings.Cut(name, " "); id == op.OperationID {
					list = append(list, target{r, name, method, route, op, append(slices.Clone(item.Parameters), op.Parameters...)})
					missing, used[name] = false, true
				}
			}
			if missing {
				a.t.Errorf("no request that succeeds is known for %s", op.OperationID)
			}
		}
	}
	for name := range requests {
		if !used[name] {
			a.t.Errorf("%s is no operation of the contract", name)
		}
	}
	slices.SortFunc(list, func(x, y target) int { return strings.Compare(x.name, y.name) })
	return list
}

// requests makes what the operations work on, and returns a request for each that succeeds once, whatever has succeeded before it.
func (a *api) requests() map[string]request {
	lena := a.buyer()
	hold := func(seats string) string {
		return a.post("/v1/events/"+a.event+"/holds", `{"seats":[`+seats+`]}`, as(lena), key("hold-"+seats)).want(201).text("id")
	}
	booked := func(seat int) string {
		return a.post("/v1/bookings", a.booking(seat, "Lena"), as(lena), key(fmt.Sprint("booking-", seat))).want(201).text("id")
	}
	block := a.post("/v1/events/"+a.event+"/blocks", `{"seats":[15],"reason":"broken lamp"}`, as(a.organizer), key("block")).want(201).text("id")
	draft := a.post("/v1/events", newEvent("draft"), as(a.organizer), key("draft")).want(201).text("id")
	_, token := a.hired(staff.Door, "door@example.com")
	omar, _ := a.hired(staff.Door, "omar@example.com")
	lina, _ := a.hired(staff.Door, "lina@example.com")
	a.hired(staff.Owner, "owner@example.com")
	plan := a.post("/v1/plans?venue=Old+Mill", cellar, as(a.organizer), key("plan")).want(201).text("plan")
	const buyer = `"buyer":{"name":"Lena","email":"lena@example.com"}`
	inEvent, inDraft := map[string]string{"event": a.event}, map[string]string{"event": draft}
	seat := map[string]string{"event": a.event, "seat": "16"}
	inChannel := map[string]string{"event": a.event, "channel": "1"}
	for event, id := range map[string]string{a.event: "21", draft: "1"} {
		a.post("/v1/events/"+event+"/channels", `{"name":"box office","seats":[`+id+`]}`, as(a.organizer), key("channel")).want(201)
	}
	drafted := func() map[string]string {
		event := a.post("/v1/events", eventOf(a.housePlan()), as(a.organizer), key(fmt.Sprint("drafted-", a.keys.Add(1)))).want(201).text("id")
		a.post("/v1/events/"+event+"/draft/edits", `{"whole":true}`, as(a.organizer)).want(200)
		return map[string]string{"event": event}
	}
	inSection := func(ids map[string]string, page string) map[string]string {
		ids["item"] = "1"
		if page != "" {
			ids["page"] = page
		}
		return ids
	}
	inWhole := drafted()
	whole := string(a.get("/v1/events/"+inWhole["event"]+"/draft", as(a.organizer)).want(200).raw)
	return map[string]request{
		"getDraft":           {drafted(), "", a.organizer, 200},
		"saveDraft":          {inWhole, whole, a.organizer, 200},
		"takeEdit":           {drafted(), `{"item":1,"page":"seats"}`, a.organizer, 200},
		"takeEdit whole":     {drafted(), `{"whole":true}`, a.organizer, 200},
		"addDraftItem":       {drafted(), `{"name":"Balcony"}`, a.organizer, 201},
		"removeDraftItem":    {inSection(drafted(), ""), "", a.organizer, 204},
		"getDraftPage":       {inSection(drafted(), "details"), "", a.organizer, 200},
		"saveDraftPage":      {inSection(drafted(), "details"), `{"name":"Circle","own":{"x":1.5}}`, a.organizer, 200},
		"publishDraft":       {drafted(), "", a.organizer, 200},
		"createSession":      {nil, "", "", 201},
		"createStreamTicket": {nil, "", a.organizer, 201},
		"connectStream":      {nil, "", a.organizer, 400}, // without a handshake that is as far as it comes
		"listEvents":         {nil, "", "", 200},
		"createEvent":        {nil, newEvent("draft"), a.organizer, 201},
		"createEvent plan":   {nil, eventOf(a.housePlan()), a.organizer, 201},
		"getEvent":           {inEvent, "", "", 200},
		"updateEvent":        {inDraft, `{"name":"The Storm","venue":"New Mill","starts_at":"2099-03-01T20:00:00+01:00","status":"on_sale","sale_starts_at":"2021-01-01T00:00:00Z","sale_ends_at":"2099-03-01T17:00:00Z"}`, a.organizer, 200},
		"setPrices":          {inDraft, `{"types":["standard","senior"],"prices":[{"category":"A","price":4500},{"category":"A","type":"senior","price":1000,"from":"2027-01-01T00:00:00Z"}]}`, a.organizer, 200},
		"changePlan":         {inDraft, `{"plan":"` + a.housePlan() + `","version":1,"prices":[{"category":"A","type":"standard","price":5000,"from":"2027-01-01T00:00:00Z"}]}`, a.organizer, 200},
		"listSeats":          {inEvent, "", "", 200},
		"getSeat":            {seat, "", "", 200},
		"listChanges":        {inEvent, "", "", 200},
		"getMap":             {inEvent, "", "", 200},
		"getSeatHistory":     {seat, "", a.organizer, 200},
		"createBlock":        {inEvent, `{"seats":[13,14],"reason":"camera"}`, a.organizer, 201},
		"deleteBlock":        {map[string]string{"event": a.event, "block": block}, "", a.organizer, 204},

		"listChannels":     {inEvent, "", a.organizer, 200},
		"createChannel":    {inEvent, `{"name":"agency","release_before_seconds":3600,"keys":["` + a.partnerKey() + `"],"seats":[19,20]}`, a.organizer, 201},
		"createChannel ga": {inEvent, `{"name":"fan club","ga":{"area":1,"quantity":1}}`, a.organizer, 201},
		"getChannel":       {inChannel, "", a.organizer, 200},
		"updateChannel":    {inChannel, `{"name":"city agency","release_before_seconds":7200,"keys":["` + a.partnerKey() + `"],"add":[22],"drop":[21]}`, a.organizer, 200},
		"deleteChannel":    {map[string]string{"event": draft, "channel": "1"}, "", a.organizer, 204},
		"createHold":       {inEvent, `{"seats":[7,{"id":8,"type":"standard","fence":0}],"session":"AAAAAAAAAAAAAAAAAAAAAA.1.00000000-0000-4000-8000-000000000001"}`, lena, 201},
		"createHold best": {
			inEvent, `{"best_available":{"types":[{"type":"standard","quantity":2}],"category":"A","section":"Stalls","together":true}}`,
			lena, 201,
		},
		"createHold ga": {inEvent, `{"ga":{"area":1,"quantity":2}}`, lena, 201},
		"getHold":       {map[string]string{"hold": hold("1")}, "", lena, 200},
		"changeHold":    {map[string]string{"hold": hold("2,4")}, `{"add":[{"id":3,"type":"standard","fence":0},17],"drop":[4],"extend":true,"expected_total":13500}`, lena, 200},
		"releaseHold":   {map[string]string{"hold": hold("5")}, "", lena, 204},
		"checkoutHold":  {map[string]string{"hold": hold("6")}, "", lena, 200},

		"listBookings": {nil, "", lena, 200},
		"createBooking": {
			nil, `{"event":"` + a.event + `","seats":[{"id":9,"type":"standard","fence":0},10],` + buyer + `,"payment_reference":"till-7","expected_total":9000}`,
			a.partner, 201,
		},
		"createBooking ga":   {nil, `{"event":"` + a.event + `","ga":{"area":1,"quantity":2},` + buyer + `}`, lena, 201},
		"createBooking hold": {nil, `{"hold":"` + hold("18") + `",` + buyer + `}`, lena, 201},
		"getBooking":         {map[string]string{"booking": booked(11)}, "", lena, 200},
		"cancelBooking":      {map[string]string{"booking": booked(12)}, "", lena, 200},
		"signIn":             {nil, `{"email":"owner@example.com","password":"` + password + `"}`, "", 201},
		"signOut":            {nil, "", token, 204},
		"listStaff":          {nil, "", a.organizer, 200},
		"inviteStaff":        {nil, `{"email":"new@example.com","name":"Omar","role":"door","every_event":false,"events":["` + a.event + `"]}`, a.organizer, 201},
		"changeStaff":        {map[string]string{"user": omar}, `{"role":"editor","every_event":false,"events":["` + a.event + `"]}`, a.organizer, 200},
		"removeStaff":        {map[string]string{"user": lina}, "", a.organizer, 204},
		"listAudit":          {nil, "", a.organizer, 200},
		"health":             {nil, "", "", 200},
		"ready":              {nil, "", "", 200},

		"listVenues":     {nil, "", a.organizer, 200},
		"listPlans":      {nil, "", a.organizer, 200},
		"importPlan":     {nil, cellar, a.organizer, 201},
		"getPlan":        {map[string]string{"plan": plan}, "", a.organizer, 200},
		"getPlanVersion": {map[string]string{"plan": plan, "version": "1"}, "", a.organizer, 200},
		"publishPlan":    {map[string]string{"plan": plan, "version": "1"}, "", a.organizer, 200},
	}
}

// eventOf is a new event of a published plan.
func eventOf(plan string) string {
	return `{"name":"The Tempest","venue":"Old Mill Theatre","starts_at":"2099-03-01T19:30:00Z","timezone":"Europe/Berlin","currency":"EUR",
		"payment":"none","status":"draft","sale_starts_at":"2020-01-01T00:00:00Z","sale_ends_at":"2099-03-01T18:00:00Z",
		"plan":{"id":"` + plan + `","version":1},"types":["adult","senior"],"prices":[{"category":"A","price":4500},{"category":"A","type":"senior","price":2000}],
		"orphan_rule":true,"order_limit":6}`
}

// partnerKey is the id of a new key of a partner.
func (a *api) partnerKey() string {
	a.t.Helper()
	list, err := a.deps.Keys.List(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	_, caller, err := a.deps.Keys.Create(a.t.Context(), list[0].Organizer, "agency", access.ScopePartner)
	if err != nil {
		a.t.Fatal(err)
	}
	return access.FormatID(caller.ID)
}

// place is one value in a JSON body.
type place struct {
	name  string // the member it is, or belongs to as an element
	at    string // a JSON pointer
	value any
	with  func(raw string) string // the body with other text instead of the value
}

// places are all values of a body, the body itself among them.
func places(t *testing.T, body string) (list []place) {
	t.Helper()
	var root any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	var walk func(name, at string, value any, set func(any))
	walk = func(name, at string, value any, set func(any)) {
		list = append(list, place{name, at, value, func(raw string) string {
			const mark = "put it here"
			set(mark)
			defer set(value)
			return strings.Replace(encode(t, root), `"`+mark+`"`, raw, 1)
		}})
		switch value := value.(type) {
		case map[string]any:
			for _, member := range slices.Sorted(maps.Keys(value)) {
				walk(member, at+"/"+member, value[member], func(v any) { value[member] = v })
			}
		case []any:
			for i := range value {
				walk(name, fmt.Sprint(at, "/", i), value[i], func(v any) { value[i] = v })
			}
		}
	}
	walk("", "", root, func(v any) { root = v })
	return list
}

func encode(t *testing.T, value any) string {
	t.Helper()
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(buf.String())
}

// methods are those that a client may try on any address.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodTrace, "LOCK",
}
