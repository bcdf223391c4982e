package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/internal/staff"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// roles are who asks, in the order of the matrix. Lena's are the hold and the bookings; the event belongs to the organizer of the keys
// that are not foreign and of the users behind them, one of each role; the last was one.
var roles = []string{
	"anonymous", "Lena", "Omar", "partner", "foreign partner", "organizer", "foreign organizer", "revoked key",
	"owner", "editor", "box office", "door", "removed",
}

// matrix says what each role gets from each operation, with objects that nobody has changed.
var matrix = map[string][]int{
	"createStreamTicket": {401, 201, 201, 201, 201, 201, 201, 401, 201, 201, 201, 201, 401},
	"connectStream":      {401, 400, 400, 400, 400, 400, 400, 401, 400, 400, 400, 400, 401}, // all of them without a handshake
	"createSession":      {201, 201, 201, 201, 201, 201, 201, 401, 201, 201, 201, 201, 401},
	"listEvents":         {200, 200, 200, 200, 200, 200, 200, 401, 200, 200, 200, 200, 401},
	"createEvent":        {401, 403, 403, 403, 403, 201, 201, 401, 201, 201, 403, 403, 401},
	"getEvent":           {200, 200, 200, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"getEvent draft":     {404, 404, 404, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"updateEvent":        {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"setPrices":          {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"listSeats":          {200, 200, 200, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"getSeat":            {200, 200, 200, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"listChanges":        {200, 200, 200, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"listChanges draft":  {404, 404, 404, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"listSeats compact":  {200, 200, 200, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"getMap":             {200, 200, 200, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"getMap draft":       {404, 404, 404, 200, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"getSeatHistory":     {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 200, 403, 401},
	"createBlock":        {401, 403, 403, 403, 403, 201, 404, 401, 201, 201, 201, 403, 401},
	"deleteBlock":        {401, 403, 403, 403, 403, 204, 404, 401, 204, 204, 204, 403, 401},
	"listChannels":       {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"createChannel":      {401, 403, 403, 403, 403, 201, 404, 401, 201, 201, 403, 403, 401},
	"getChannel":         {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"updateChannel":      {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"deleteChannel":      {401, 403, 403, 403, 403, 204, 404, 401, 204, 204, 403, 403, 401},
	"createHold":         {401, 201, 201, 201, 404, 201, 404, 401, 201, 403, 201, 403, 401},
	"createHold best":    {401, 201, 201, 201, 404, 201, 404, 401, 201, 403, 201, 403, 401},
	"createHold ga":      {401, 201, 201, 201, 404, 201, 404, 401, 201, 403, 201, 403, 401},
	"getHold":            {401, 200, 404, 404, 404, 200, 404, 401, 200, 403, 200, 403, 401},
	"changeHold":         {401, 200, 404, 404, 404, 404, 404, 401, 404, 403, 404, 403, 401},
	"releaseHold":        {401, 204, 404, 404, 404, 404, 404, 401, 404, 403, 404, 403, 401},
	"checkoutHold":       {401, 200, 404, 404, 404, 404, 404, 401, 404, 403, 404, 403, 401},
	"listBookings":       {401, 200, 200, 200, 200, 200, 200, 401, 200, 200, 200, 200, 401},
	"listBookings event": {401, 200, 200, 200, 200, 200, 200, 401, 200, 200, 200, 200, 401},
	"createBooking":      {401, 201, 201, 201, 404, 201, 404, 401, 201, 403, 201, 403, 401},
	"createBooking many": {401, 201, 201, 201, 404, 201, 404, 401, 201, 403, 201, 403, 401},
	"createBooking ga":   {401, 201, 201, 201, 404, 201, 404, 401, 201, 403, 201, 403, 401},
	"createBooking hold": {401, 201, 404, 404, 404, 404, 404, 401, 404, 403, 404, 403, 401},
	"getBooking":         {401, 200, 404, 404, 404, 200, 404, 401, 200, 200, 200, 200, 401},
	"cancelBooking":      {401, 200, 404, 404, 404, 200, 404, 401, 200, 403, 200, 403, 401},
	"signIn":             {201, 201, 201, 201, 201, 201, 201, 401, 201, 201, 201, 201, 401},
	"signOut":            {401, 403, 403, 403, 403, 403, 403, 401, 204, 204, 204, 204, 401},
	"listStaff":          {401, 403, 403, 403, 403, 200, 200, 401, 200, 403, 403, 403, 401},
	"inviteStaff":        {401, 403, 403, 403, 403, 201, 201, 401, 201, 403, 403, 403, 401},
	"changeStaff":        {401, 403, 403, 403, 403, 200, 404, 401, 200, 403, 403, 403, 401},
	"removeStaff":        {401, 403, 403, 403, 403, 204, 404, 401, 204, 403, 403, 403, 401},
	"listAudit":          {401, 403, 403, 403, 403, 200, 200, 401, 200, 403, 403, 403, 401},
	"listVenues":         {401, 403, 403, 403, 403, 200, 200, 401, 200, 200, 403, 403, 401},
	"listPlans":          {401, 403, 403, 403, 403, 200, 200, 401, 200, 200, 403, 403, 401},
	"importPlan":         {401, 403, 403, 403, 403, 201, 201, 401, 201, 201, 403, 403, 401},
	"importPlan dry":     {401, 403, 403, 403, 403, 200, 200, 401, 200, 200, 403, 403, 401},
	"importPlan version": {401, 403, 403, 403, 403, 201, 404, 401, 201, 201, 403, 403, 401},
	"getPlan":            {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"getPlanVersion":     {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"publishPlan":        {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"changePlan":         {401, 403, 403, 403, 403, 200, 404, 401, 200, 200, 403, 403, 401},
	"getDraft":           {401, 403, 403, 403, 403, 409, 404, 401, 409, 409, 403, 403, 401},
	"saveDraft":          {401, 403, 403, 403, 403, 409, 404, 401, 409, 409, 403, 403, 401},
	"takeEdit":           {401, 403, 403, 403, 403, 409, 404, 401, 409, 409, 403, 403, 401},
	"addDraftItem":       {401, 403, 403, 403, 403, 409, 404, 401, 409, 409, 403, 403, 401},
	"removeDraftItem":    {401, 403, 403, 403, 403, 409, 404, 401, 409, 409, 403, 403, 401},
	"getDraftPage":       {401, 403, 403, 403, 403, 409, 404, 401, 409, 409, 403, 403, 401},
	"saveDraftPage":      {401, 403, 403, 403, 403, 409, 404, 401, 409, 409, 403, 403, 401},
	"publishDraft":       {401, 403, 403, 403, 403, 409, 404, 401, 409, 409, 403, 403, 401},
	"health":             {200, 200, 200, 200, 200, 200, 200, 401, 200, 200, 200, 200, 401},
	"ready":              {200, 200, 200, 200, 200, 200, 200, 401, 200, 200, 200, 200, 401},
}

// samePrices is the price list of newEvent.
const samePrices = `{"types":["standard"],"prices":[{"category":"A","price":4500}]}`

// housePlan is a published plan of the house that newEvent has.
func (a *api) housePlan() string {
	a.t.Helper()
	house := plan.House{
		Categories: []plan.HouseCategory{{Name: "A"}}, Areas: []plan.HouseArea{{Name: "Floor", Category: "A", Capacity: 20}},
		Sections: []plan.HouseSection{{Name: "Stalls", Rows: []plan.HouseRow{
			{Label: "A", Category: "A", Seats: 10}, {Label: "B", Category: "A", Seats: 10}, {Label: "C", Category: "A", Seats: 10, First: 11},
		}}},
	}
	var document strings.Builder
	if err := house.Plan().Export(&document); err != nil {
		a.t.Fatal(err)
	}
	id := a.post("/v1/plans?venue=Mill", document.String(), as(a.organizer), key(fmt.Sprint("house-", a.keys.Add(1)))).want(201).text("plan")
	a.post("/v1/plans/"+id+"/versions/1/publish", "", as(a.organizer)).want(200)
	return id
}

// world is one event on sale with a hold, a booking and a block, a user who has not signed in yet, a draft that nothing changes,
// a plan, and the published plan of the event's own house.
type world struct{ event, draft, hold, booking, block, user, email, plan, house string }

func (a *api) world(lena, draft, house string) world {
	a.t.Helper()
	nth := a.keys.Add(1)
	made := func(path, body, token string) string {
		return a.post(path, body, as(token), key(fmt.Sprintf("world-%d-%d-%d", nth, len(path), len(body)))).want(201).text("id")
	}
	w := world{event: made("/v1/events", newEvent("on_sale"), a.organizer), draft: draft, house: house}
	w.hold = made("/v1/events/"+w.event+"/holds", `{"seats":[1,2]}`, lena)
	w.booking = made("/v1/bookings", direct(w.event, `"seats":[3]`), lena)
	a.post("/v1/events/"+w.event+"/channels", `{"name":"box office","seats":[9]}`, as(a.organizer), key(fmt.Sprint("world-channel-", nth))).want(201)
	w.block = made("/v1/events/"+w.event+"/blocks", `{"seats":[4],"reason":"x"}`, a.organizer)
	w.email = fmt.Sprintf("omar-%d@example.com", nth)
	w.user = made("/v1/staff", `{"email":"`+w.email+`","name":"Omar","role":"door","every_event":true}`, a.organizer)
	w.plan = a.post("/v1/plans?name=Winter", cellar, as(a.organizer), key(fmt.Sprint("world-plan-", nth))).want(201).text("plan")
	return w
}

// unknown is a world of the same shape of which nothing exists. With the event known, its ids are of that event.
func (w world) unknown(event seats.EventID) world {
	return world{
		event: seats.EventID(1).String(), draft: seats.EventID(2).String(), hold: booking.HoldID{Event: event}.String(),
		booking: booking.BookingID{Event: event}.String(), block: booking.BlockID{Event: event}.String(), user: staff.FormatID(uuid.UUID{}),
		plan: booking.PlanID(event).String(), house: w.house,
	}
}

// requests are what the rows of the matrix ask of a world. The path may go on with a query.
func (w world) requests() map[string]struct{ method, path, body string } {
	event, hold, sale := "/v1/events/"+w.event, "/v1/holds/"+w.hold, "/v1/bookings/"+w.booking
	return map[string]struct{ method, path, body string }{
		"createStreamTicket": {"POST", "/v1/stream/tickets", ""},
		"connectStream":      {"GET", "/v1/stream", ""},
		"createSession":      {"POST", "/v1/sessions", ""},
		"listEvents":         {"GET", "/v1/events", ""},
		"createEvent":        {"POST", "/v1/events", newEvent("draft")},
		"getEvent":           {"GET", event, ""},
		"getEvent draft":     {"GET", "/v1/events/" + w.draft, ""},
		"updateEvent":        {"PATCH", event, `{"status":"paused"}`},
		"setPrices":          {"PUT", event + "/prices", samePrices},
		"changePlan":         {"PUT", event + "/plan", `{"plan":"` + w.house + `","version":1}`},
		"getDraft":           {"GET", event + "/draft", ""}, // the event has no plan, and so no draft
		"saveDraft":          {"PUT", event + "/draft", "{}"},
		"takeEdit":           {"POST", event + "/draft/edits", `{"whole":true}`},
		"addDraftItem":       {"POST", event + "/draft/items", `{"name":"Balcony"}`},
		"removeDraftItem":    {"DELETE", event + "/draft/items/1", ""},
		"getDraftPage":       {"GET", event + "/draft/1/seats", ""},
		"saveDraftPage":      {"PUT", event + "/draft/1/seats", `{"rows":[]}`},
		"publishDraft":       {"POST", event + "/draft/publish", ""},
		"listSeats":          {"GET", event + "/seats", ""},
		"getSeat":            {"GET", event + "/seats/1", ""},
		"listChanges":        {"GET", event + "/changes", ""},
		"listChanges draft":  {"GET", "/v1/events/" + w.draft + "/changes?after=0", ""},
		"listSeats compact":  {"GET", event + "/seats?format=compact", ""},
		"getMap":             {"GET", event + "/map", ""},
		"getMap draft":       {"GET", "/v1/events/" + w.draft + "/map", ""},
		"getSeatHistory":     {"GET", event + "/seats/1/history", ""},
		"createBlock":        {"POST", event + "/blocks", `{"seats":[5],"reason":"x"}`},
		"deleteBlock":        {"DELETE", event + "/blocks/" + w.block, ""},
		"listChannels":       {"GET", event + "/channels", ""},
		"createChannel":      {"POST", event + "/channels", `{"name":"agency","seats":[5]}`},
		"getChannel":         {"GET", event + "/channels/1", ""},
		"updateChannel":      {"PATCH", event + "/channels/1", `{"name":"city agency","add":[5]}`},
		"deleteChannel":      {"DELETE", event + "/channels/1", ""},
		"createHold":         {"POST", event + "/holds", `{"seats":[5]}`},
		"createHold best":    {"POST", event + "/holds", `{"best_available":{"quantity":2}}`},
		"createHold ga":      {"POST", event + "/holds", `{"ga":{"area":1,"quantity":2}}`},
		"getHold":            {"GET", hold, ""},
		"changeHold":         {"PATCH", hold, `{"add":[5],"drop":[1]}`},
		"releaseHold":        {"DELETE", hold, ""},
		"checkoutHold":       {"POST", hold + "/checkout", ""},
		"listBookings":       {"GET", "/v1/bookings", ""},
		"listBookings event": {"GET", "/v1/bookings?event=" + w.event, ""},
		"createBooking":      {"POST", "/v1/bookings", direct(w.event, `"seats":[5]`)},
		"createBooking many": {"POST", "/v1/bookings", direct(w.event, `"seats":[5,6]`)},
		"createBooking ga":   {"POST", "/v1/bookings", direct(w.event, `"ga":{"area":1,"quantity":2}`)},
		"createBooking hold": {"POST", "/v1/bookings", confirmation(w.hold)},
		"getBooking":         {"GET", sale, ""},
		"cancelBooking":      {"POST", sale + "/cancel", ""},
		"signIn":             {"POST", "/v1/sessions/staff", `{"email":"lena@example.com","password":"` + password + `"}`},
		"signOut":            {"DELETE", "/v1/sessions/staff", ""},
		"listStaff":          {"GET", "/v1/staff", ""},
		"inviteStaff":        {"POST", "/v1/staff", `{"email":"new-` + w.email + `","name":"Omar","role":"door","every_event":true}`},
		"changeStaff":        {"PATCH", "/v1/staff/" + w.user, `{"role":"editor"}`},
		"removeStaff":        {"DELETE", "/v1/staff/" + w.user, ""},
		"listAudit":          {"GET", "/v1/audit", ""},
		"health":             {"GET", "/healthz", ""},
		"ready":              {"GET", "/readyz", ""},

		"listVenues":         {"GET", "/v1/venues", ""},
		"listPlans":          {"GET", "/v1/plans", ""},
		"importPlan":         {"POST", "/v1/plans?venue=Old+Mill", cellar},
		"importPlan dry":     {"POST", "/v1/plans?dry_run=true", cellar},
		"importPlan version": {"POST", "/v1/plans?plan=" + w.plan, cellar},
		"getPlan":            {"GET", "/v1/plans/" + w.plan, ""},
		"getPlanVersion":     {"GET", "/v1/plans/" + w.plan + "/versions/1", ""},
		"publishPlan":        {"POST", "/v1/plans/" + w.plan + "/versions/1/publish", ""},
	}
}

// TestEveryRoleGetsWhatTheMatrixSays asks every operation as every role. Who may not know of a thing is answered as if there were none,
// byte for byte, and nobody changes what is not theirs.
func TestEveryRoleGetsWhatTheMatrixSays(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for name := range matrix {
		id, _, _ := strings.Cut(name, " ")
		covered[id] = true
	}
	for route, item := range loadContract(t).Paths.Map() {
		for method, op := range item.Operations() {
			if !covered[op.OperationID] {
				t.Errorf("%s %s has no row in the matrix", method, route)
			}
		}
	}
	a := newAPI(t)
	lena, omar := a.buyer(), a.buyer()
	draft := a.post("/v1/events", newEvent("draft"), as(a.organizer), key("draft")).want(201).text("id")
	house := a.housePlan()
	tokens := []string{"", lena, omar, a.partner, a.foreignPartner, a.organizer, a.foreign, a.revoked}
	for _, role := range staff.Roles {
		_, token := a.hired(role, role+"@example.com")
		tokens = append(tokens, token)
	}
	id, removed := a.hired(staff.Owner, "removed@example.com")
	a.do("DELETE", "/v1/staff/"+id, "", as(a.organizer)).want(204)
	tokens = append(tokens, removed)
	a.hired(staff.Door, "lena@example.com")
	for _, name := range slices.Sorted(maps.Keys(matrix)) {
		var w world
		changed := true
		for i, role := range roles {
			if changed {
				w = a.world(lena, draft, house)
			}
			ask := func(w world) answer {
				r, ok := w.requests()[name]
				if !ok {
					t.Fatalf("%s has no request", name)
				}
				token := tokens[i]
				if name == "signOut" && slices.Contains(staff.Roles, strings.ReplaceAll(role, " ", "_")) {
					token = a.post("/v1/sessions/staff", `{"email":"`+strings.ReplaceAll(role, " ", "_")+`@example.com","password":"`+password+`"}`).want(201).text("token")
				}
				edits := []edit{key(fmt.Sprint("matrix-", a.keys.Add(1))), header("Edit-Fence", "1")}
				if token != "" {
					edits = append(edits, as(token))
				}
				return a.do(r.method, r.path, r.body, edits...)
			}
			before := a.rows()
			got := ask(w)
			changed = got.status < 400 && w.requests()[name].method != http.MethodGet
			if got.status != matrix[name][i] {
				t.Errorf("%s as %s: %d, want %d: %s", name, role, got.status, matrix[name][i], got.raw)
			}
			if got.status >= 400 && !maps.Equal(before, a.rows()) {
				t.Errorf("%s as %s was refused with %d and has written", name, role, got.status)
			}
			if got.status == http.StatusNotFound {
				event, err := seats.ParseEventID(w.event)
				if err != nil {
					t.Fatal(err)
				}
				for _, of := range []seats.EventID{event, 1} {
					if none := ask(w.unknown(of)); withoutRequestID(none) != withoutRequestID(got) {
						t.Errorf("%s as %s tells what is not there from what is not theirs:\n%s\n%s", name, role, withoutRequestID(got), withoutRequestID(none))
					}
				}
			}
			a.sees(got, name, role, w)
		}
	}
}

// sees looks for what a list must or must not tell a role.
func (a *api) sees(got answer, name, role string, w world) {
	a.t.Helper()
	look := func(id string, to ...string) {
		if told := strings.Contains(string(got.raw), `"`+id+`"`); told != slices.Contains(to, role) {
			a.t.Errorf("%s as %s tells %s: %v", name, role, id, told)
		}
	}
	switch name {
	case "listBookings", "listBookings event":
		look(w.booking, "Lena", "organizer", "owner", "editor", "box office", "door")
	case "listStaff":
		look(w.user, "organizer", "owner")
	case "listAudit":
		look(w.user, "organizer", "owner")
	case "listPlans":
		look(w.plan, "organizer", "owner", "editor")
	case "getSeat", "listSeats", "getEvent", "listChanges", "listSeats compact", "getMap":
		look(w.hold)
		look(w.booking)
	}
}
