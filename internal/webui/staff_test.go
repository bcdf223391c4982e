package webui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"seatfence/internal/staff"
	"seatfence/seats"
)

const password = "correct horse"

// invited makes a user, and returns the address of their link.
func (s site) invited(t *testing.T, n staff.NewUser) string {
	t.Helper()
	_, link, err := s.people.Create(t.Context(), s.Owner.Organizer, n, true)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(link, "http://localhost")
}

func (s site) owner(t *testing.T) string {
	t.Helper()
	return s.invited(t, staff.NewUser{Email: "lena@example.com", Name: "Lena", Role: staff.Owner, EveryEvent: true})
}

func (b browser) staffCookie() string {
	b.t.Helper()
	address, err := url.Parse(b.site.url)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(address) {
		if c.Name == "seatfence_staff" {
			return c.Value
		}
	}
	return ""
}

var signIn = url.Values{"email": {"lena@example.com"}, "password": {password}}

func TestAnInvitedUserGetsInAndOut(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	b.get("/staff").says(200, "Sign in", "Buyers need no account")
	link := s.owner(t)
	form := b.get(link).says(200, "Choose a password", "For Lena, lena@example.com, at")
	form.send("Keep this password", url.Values{"password": {password}, "again": {"wrong horse"}}).says(422, "The two passwords are not the same.")
	form.send("Keep this password", url.Values{"password": {"short"}, "again": {"short"}}).says(422, "A password has at least 8 characters.")
	home := form.send("Keep this password", url.Values{"password": {password}, "again": {password}})
	home.says(200, "Signed in as Lena, lena@example.com", "Role Owner", "For All events", "An evening", "On sale until")
	if home.path != "/staff" || b.staffCookie() == "" {
		t.Errorf("the page is %s", home.path)
	}
	home.follow("An evening").says(200, "The small house")
	b.get(link).says(410, "This link is over").follow("Get a new link").says(200, "New password")
	form.send("Keep this password", url.Values{"password": {password}, "again": {password}}).says(410, "This link is over")
	if at := b.get("/staff/sign-in"); at.path != "/staff" {
		t.Errorf("who has signed in is asked again, at %s", at.path)
	}

	home.send("Sign out", nil).says(200, "Sign in")
	if b.staffCookie() != "" {
		t.Error("the browser keeps the session")
	}
	again := b.get("/staff/sign-in").send("Sign in", signIn).says(200, "Signed in as Lena")
	again.get("/").says(200, "Events")
}

func TestASignInThatFailsSaysWhyInWords(t *testing.T) {
	s := open(t, nil)
	link := s.owner(t)
	b := s.visitor(t)
	b.get(link).send("Keep this password", url.Values{"password": {password}, "again": {password}}).send("Sign out", nil)
	for _, email := range []string{"lena@example.com", "nobody@example.com"} {
		form := url.Values{"email": {email}, "password": {"wrong horse"}}
		p := b.get("/staff/sign-in")
		for range staff.FreeAttempts {
			p = p.send("Sign in", form).says(422, "The e-mail address or the password is wrong.")
		}
		if _, kept := p.form("Sign in"); kept.Get("email") != email || kept.Get("password") != "" {
			t.Errorf("the form has %v", kept)
		}
		p.send("Sign in", form).says(422)
		if slow := p.send("Sign in", form).says(429, "too many attempts. Try again in"); slow.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	b.get("/staff/sign-in").send("Sign in", url.Values{"email": {"lena"}, "password": {"x"}}).says(422, "name@example.com is needed")
	b.post("/staff/sign-in", nil).says(422, "An e-mail address is needed")
	if b.staffCookie() != "" {
		t.Error("somebody is signed in")
	}
}

func TestAForgottenPasswordIsAnsweredTheSameWhoeverAsks(t *testing.T) {
	s := open(t, nil)
	s.owner(t)
	b := s.visitor(t)
	ask := b.get("/staff/sign-in").follow("I do not know my password")
	known := ask.send("Mail me a link", url.Values{"email": {"lena@example.com"}}).says(200, "Look into your mailbox")
	unknown := ask.send("Mail me a link", url.Values{"email": {"nobody@example.com"}}).says(200)
	if known.words != unknown.words {
		t.Errorf("known: %s\nunknown: %s", known.words, unknown.words)
	}
	ask.send("Mail me a link", url.Values{"email": {"lena"}}).says(422, "name@example.com is needed")
}

func TestASessionThatWasPlantedIsNotKept(t *testing.T) {
	s := open(t, nil)
	link := s.owner(t)
	b, evil := s.visitor(t), s.visitor(t)
	set := url.Values{"password": {password}, "again": {password}}
	evil.get(s.invited(t, staff.NewUser{Email: "omar@example.com", Name: "Omar", Role: staff.Owner, EveryEvent: true})).send("Keep this password", set)
	address, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	planted := evil.staffCookie()
	b.client.Jar.SetCookies(address, []*http.Cookie{{Name: "seatfence_staff", Value: planted, Path: "/"}})
	b.get(link).send("Keep this password", set).says(200, "Signed in as Lena")
	if b.staffCookie() == planted {
		t.Error("the session is the planted one")
	}
	if end := evil.get("/staff"); end.path != "/staff/sign-in" {
		t.Error("the planted session was left open")
	}
}

func TestARemovedUserIsSentToTheSignIn(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	b.get(s.owner(t)).send("Keep this password", url.Values{"password": {password}, "again": {password}}).says(200, "Signed in as")
	omar := s.invited(t, staff.NewUser{Email: "omar@example.com", Name: "Omar", Role: staff.Owner, EveryEvent: true})
	s.visitor(t).get(omar).send("Keep this password", url.Values{"password": {password}, "again": {password}}).says(200, "Signed in as")
	session, err := s.people.Lookup(t.Context(), b.staffCookie())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.people.RemoveAny(t.Context(), session.User.ID); err != nil {
		t.Fatal(err)
	}
	if end := b.get("/staff"); end.path != "/staff/sign-in" {
		t.Errorf("the page is %s", end.path)
	}
}

func TestAUserOfOneEventSeesThatOne(t *testing.T) {
	s := open(t, nil)
	link := s.invited(t, staff.NewUser{Email: "lena@example.com", Name: "Lena", Role: staff.Door, Events: []seats.EventID{s.Event}})
	home := s.visitor(t).get(link).send("Keep this password", url.Values{"password": {password}, "again": {password}})
	home.says(200, "Role Door", "For 1 event", "An evening")
}

func TestFormsForStaffOfOtherSitesAreRefused(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	b.get(s.owner(t)).send("Keep this password", url.Values{"password": {password}, "again": {password}})
	for _, path := range []string{"/staff/sign-out", "/staff/sign-in", "/staff/forgotten", "/staff/password"} {
		b.post(path, signIn, "Sec-Fetch-Site", "cross-site").says(403, "This form came from another site")
	}
	b.get("/staff").says(200, "Signed in as Lena")
}

func TestPagesForStaffAreNotKeptAndLoadNothing(t *testing.T) {
	s := open(t, nil)
	b := s.visitor(t)
	for _, path := range []string{"/staff/sign-in", "/staff/forgotten", "/staff/forgotten?sent=yes", "/staff/password?token=x", s.owner(t)} {
		p := b.get(path).isPage()
		if p.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be kept", path)
		}
		for n := range p.doc.Descendants() {
			if n.Data == "script" || n.Data == "style" || attr(n, "style") != "" {
				t.Errorf("%s has an inline %s", path, n.Data)
			}
		}
	}
	b.get("/staff/password?token="+strings.Repeat("A", 4000)).says(410, "This link is over")
	b.get("/staff/nothing").says(404, "There is nothing here")
}
