package httpapi_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"seatfence/internal/staff"
)

func credentials(email, password string) string {
	return fmt.Sprintf(`{"email":%q,"password":%q}`, email, password)
}

func cookieOf(g answer) edit {
	return header("Cookie", strings.SplitN(g.header.Get("Set-Cookie"), ";", 2)[0])
}

func TestAUserSignsInWorksAndSignsOut(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.hired(staff.Editor, "lena@example.com")
	in := a.post("/v1/sessions/staff", credentials("lena@example.com", password)).want(201)
	if in.text("role") != staff.Editor || in.text("user", "id") != id || in.at("user", "every_event") != true || !strings.HasPrefix(in.text("token"), "sfu_") {
		t.Errorf("session %s", in.raw)
	}
	cookie := in.header.Get("Set-Cookie")
	for _, want := range []string{"seatfence_staff=" + in.text("token"), "Path=/", "HttpOnly", "SameSite=Lax", "Expires="} {
		if !strings.Contains(cookie, want) {
			t.Errorf("cookie %s lacks %s", cookie, want)
		}
	}
	draft := a.post("/v1/events", newEvent("draft"), cookieOf(in), key("d")).want(201).text("id")
	a.get("/v1/events/"+draft, as(in.text("token"))).want(200)
	a.post("/v1/bookings", a.booking(1, "Omar"), cookieOf(in), key("b")).wantCode(403, "forbidden")

	out := a.do(http.MethodDelete, "/v1/sessions/staff", "", cookieOf(in)).want(204)
	if cookie := out.header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "seatfence_staff=;") || !strings.Contains(cookie, "Max-Age=0") {
		t.Errorf("after signing out the cookie is %s", cookie)
	}
	a.get("/v1/events/"+draft, as(in.text("token"))).wantCode(401, "unauthorized")
	a.get("/v1/events", cookieOf(in)).want(200) // the browser cannot help it
	a.post("/v1/events", newEvent("draft"), cookieOf(in), key("e")).wantCode(401, "unauthorized")
}

func TestOfTwoCookiesThatOfStaffWins(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	_, token := a.hired(staff.Door, "lena@example.com")
	both := header("Cookie", "seatfence_session="+a.buyer()+"; seatfence_staff="+token)
	a.post("/v1/bookings", a.booking(1, "Omar"), both, key("b")).wantCode(403, "forbidden")
	over := header("Cookie", "seatfence_session="+a.buyer()+"; seatfence_staff="+swapped(token))
	a.post("/v1/bookings", a.booking(1, "Omar"), over, key("b")).want(201)
}

func TestAnotherSitesPageCannotSpendTheCookieOfStaff(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, token := a.hired(staff.Owner, "lena@example.com")
	cookie := header("Cookie", "seatfence_staff="+token)
	for _, foreign := range []edit{header("Sec-Fetch-Site", "cross-site"), header("Sec-Fetch-Site", "same-site"), header("Origin", "http://evil.example"), header("Origin", "null")} {
		for _, r := range []struct{ method, path, body string }{
			{"POST", "/v1/staff", `{"email":"evil@example.com","name":"Evil","role":"owner","every_event":true}`},
			{"PATCH", "/v1/staff/" + id, `{"role":"door"}`},
			{"DELETE", "/v1/staff/" + id, ""},
			{"DELETE", "/v1/sessions/staff", ""},
			{"POST", "/v1/sessions/staff", credentials("lena@example.com", password)},
		} {
			a.do(r.method, r.path, r.body, cookie, foreign, key("k")).wantCode(403, "cross_origin")
		}
	}
	a.get("/v1/staff", cookie, header("Sec-Fetch-Site", "same-origin")).want(200)
}

// Whoever plants a session in a browser must not share the one that starts there.
func TestASignInTakesNoSecretThatItIsGiven(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	_, planted := a.hired(staff.Door, "omar@example.com")
	a.hired(staff.Owner, "lena@example.com")
	in := a.post("/v1/sessions/staff", credentials("lena@example.com", password), header("Cookie", "seatfence_staff="+planted)).want(201)
	if in.text("token") == planted || in.text("user", "email") != "lena@example.com" {
		t.Errorf("session %s", in.raw)
	}
	a.get("/v1/staff", as(planted)).wantCode(403, "forbidden")
}

func TestGuessingIsSlowedWithoutTellingWhoIsThere(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.hired(staff.Owner, "lena@example.com")
	var first string
	for _, email := range []string{"lena@example.com", "nobody@example.com"} {
		told := ""
		for range 6 {
			got := a.post("/v1/sessions/staff", credentials(email, "wrong horse"))
			if after, _ := strconv.Atoi(got.header.Get("Retry-After")); (got.status == 429) != (after >= 1) || after > 60 {
				t.Errorf("%d with Retry-After %q", got.status, got.header.Get("Retry-After"))
			}
			told += withoutRequestID(got) + "\n"
		}
		if !strings.Contains(told, "wrong_password") || !strings.Contains(told, "too_many_attempts") {
			t.Errorf("six wrong passwords are answered\n%s", told)
		}
		if first == "" {
			first = told
		} else if told != first {
			t.Errorf("an unknown address is answered\n%s\nand a known one\n%s", told, first)
		}
	}
}

func TestAnInvitationIsReplayedWordByWord(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	body := `{"email":"omar@example.com","name":"Omar","role":"door","every_event":false,"events":["` + a.event + `"]}`
	first := a.post("/v1/staff", body, as(a.organizer), key("i")).want(201)
	again := a.post("/v1/staff", body, as(a.organizer), key("i")).want(201)
	if string(first.raw) != string(again.raw) || again.header.Get("Idempotent-Replayed") != "true" || first.at("active") != false || first.text("events", 0) != a.event {
		t.Errorf("%s\n%s", first.raw, again.raw)
	}
	a.post("/v1/staff", strings.Replace(body, "Omar", "Oman", 1), as(a.organizer), key("i")).wantCode(422, "idempotency_key_reused")
	a.post("/v1/staff", strings.Replace(body, "door", "editor", 1), as(a.organizer), key("j")).wantCode(409, "email_taken")
	other := strings.Replace(body, "omar@", "oman@", 1)
	a.post("/v1/staff", other, as(a.foreign), key("i")).wantCode(422, "invalid") // the event is not theirs
}

func TestTheLastOwnerIsKept(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, token := a.hired(staff.Owner, "lena@example.com")
	a.do("DELETE", "/v1/staff/"+id, "", as(token)).wantCode(409, "last_owner")
	a.do("PATCH", "/v1/staff/"+id, `{"role":"door"}`, as(a.organizer)).wantCode(409, "last_owner")
	a.do("PATCH", "/v1/staff/"+id, `{"every_event":false}`, as(a.organizer)).wantCode(422, "invalid")
	a.hired(staff.Owner, "omar@example.com")
	a.do("DELETE", "/v1/staff/"+id, "", as(token)).want(204)
	a.get("/v1/staff", as(token)).wantCode(401, "unauthorized")
}

func TestTheLogIsReadInPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, token := a.hired(staff.Owner, "lena@example.com")
	for i := range 3 {
		a.post("/v1/staff", fmt.Sprintf(`{"email":"omar-%d@example.com","name":"Omar","role":"door","every_event":true}`, i), as(token), key(fmt.Sprint(i))).want(201)
	}
	var actions []string
	for path := "/v1/audit?limit=2"; path != ""; {
		page := a.get(path, as(a.organizer)).want(200)
		for i := range page.at("entries").([]any) {
			actor, _ := page.at("entries", i, "actor").(string)
			actions = append(actions, page.text("entries", i, "actor_kind")+" "+page.text("entries", i, "action"))
			if kind := page.text("entries", i, "actor_kind"); (kind == staff.ActorUser) != (actor == id) {
				t.Errorf("%s is %q", kind, actor)
			}
		}
		path = ""
		if next := page.at("next_cursor"); next != nil {
			path = "/v1/audit?limit=2&cursor=" + next.(string)
		}
	}
	want := "user user.created, user user.created, user user.created, user user.password_set, operator user.created, key event.created"
	if got := strings.Join(actions, ", "); got != want {
		t.Errorf("the log has %s", got)
	}
	about := a.get("/v1/audit?event="+a.event, as(a.organizer)).want(200)
	if len(about.at("entries").([]any)) != 1 || about.text("entries", 0, "action") != "event.created" || about.text("entries", 0, "event") != a.event {
		t.Errorf("about the event: %s", about.raw)
	}
}

// A user of one event gets of the organizer's others what a stranger would.
func TestAUserOfOneEventKnowsNoOther(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	other := a.post("/v1/events", newEvent("on_sale"), as(a.organizer), key("other")).want(201).text("id")
	mine, theirs := `"`+a.event+`"`, `"`+other+`"`
	sold := func(event string) string {
		return a.post("/v1/bookings", direct(event, `"seats":[1]`), as(a.organizer), key("sold-"+event)).want(201).text("id")
	}
	own, foreign := sold(a.event), sold(other)
	for _, role := range []string{staff.Editor, staff.BoxOffice, staff.Door} {
		id, token := a.hired(role, role+"@example.com")
		a.do("PATCH", "/v1/staff/"+id, `{"events":[`+mine+`]}`, as(a.organizer)).want(200)
		for _, path := range []string{"/v1/events/%s", "/v1/events/%s/seats", "/v1/events/%s/seats/1"} {
			a.get(fmt.Sprintf(path, a.event), as(token)).want(200)
			a.get(fmt.Sprintf(path, other), as(token)).wantCode(404, "not_found")
		}
		a.get("/v1/bookings/"+own, as(token)).want(200)
		a.get("/v1/bookings/"+foreign, as(token)).wantCode(404, "not_found")
		if list := a.get("/v1/events", as(token)).want(200); !strings.Contains(string(list.raw), mine) || strings.Contains(string(list.raw), theirs) {
			t.Errorf("%s lists %s", role, list.raw)
		}
		if list := a.get("/v1/bookings", as(token)).want(200); !strings.Contains(string(list.raw), own) || strings.Contains(string(list.raw), foreign) {
			t.Errorf("%s lists %s", role, list.raw)
		}
		if found := a.get("/v1/bookings?event="+other, as(token)); strings.Contains(string(found.raw), foreign) {
			t.Errorf("%s finds %s", role, found.raw)
		}
		for _, r := range []struct{ method, path, body, may string }{
			{"PATCH", "/v1/events/" + other, `{"name":"x"}`, staff.Editor},
			{"POST", "/v1/events/" + other + "/blocks", `{"seats":[5],"reason":"x"}`, staff.Editor + staff.BoxOffice},
			{"GET", "/v1/events/" + other + "/seats/1/history", "", staff.Editor + staff.BoxOffice},
			{"POST", "/v1/events/" + other + "/holds", `{"seats":[5]}`, staff.BoxOffice},
			{"POST", "/v1/bookings", direct(other, `"seats":[5]`), staff.BoxOffice},
			{"POST", "/v1/bookings/" + foreign + "/cancel", "", staff.BoxOffice},
		} {
			if got := a.do(r.method, r.path, r.body, as(token), key(role)); strings.Contains(r.may, role) {
				got.wantCode(404, "not_found")
			} else {
				got.wantCode(403, "forbidden")
			}
		}
		if role == staff.Editor {
			a.post("/v1/events", newEvent("draft"), as(token), key("new")).wantCode(403, "forbidden")
		}
	}
}
