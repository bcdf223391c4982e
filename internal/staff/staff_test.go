package staff_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
	"seatfence/internal/staff"
	"seatfence/seats"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const password = "correct horse battery"

// office is an organizer with an event and its staff.
type office struct {
	*staff.Staff
	t    *testing.T
	pool *pgxpool.Pool
	World
}

func open(t *testing.T) office {
	t.Helper()
	t.Parallel()
	w := New(t, dbtest.Pool(t), booking.DefaultLimits)
	return office{node(t, w.Pool), t, w.Pool, w}
}

// node is one more server on the same database.
func node(t *testing.T, pool *pgxpool.Pool) *staff.Staff {
	t.Helper()
	s, err := staff.New(pool, &url.URL{Scheme: "https", Host: "tickets.example"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func person(role, email string) staff.NewUser {
	return staff.NewUser{Email: email, Name: "Lena", Role: role, EveryEvent: true}
}

func (o office) invite(n staff.NewUser) (staff.User, error) {
	u, _, err := o.Invite(o.t.Context(), o.Owner, Key(), n)
	return u, err
}

// hired is a user with a password, and a session.
func (o office) hired(role, email string) (u staff.User, secret string) {
	o.t.Helper()
	u, err := o.invite(person(role, email))
	if err != nil {
		o.t.Fatal(err)
	}
	secret, _ = o.set(o.token(u.ID, staff.Invitation), password)
	u.Active = true
	return u, secret
}

// token is that of the link that a user would be mailed.
func (o office) token(user uuid.UUID, purpose string) string {
	o.t.Helper()
	letter, err := o.Letter(o.t.Context(), user, purpose)
	if err != nil {
		o.t.Fatal(err)
	}
	return tokenIn(o.t, letter.Link)
}

func tokenIn(t *testing.T, link string) string {
	t.Helper()
	address, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, "https://tickets.example/staff/password?token=") {
		t.Fatalf("link %s, %v", link, err)
	}
	return address.Query().Get("token")
}

func (o office) set(token, password string) (string, staff.Session) {
	o.t.Helper()
	secret, session, err := o.SetPassword(o.t.Context(), token, password)
	if err != nil {
		o.t.Fatal(err)
	}
	return secret, session
}

func (o office) exec(statement string, args ...any) {
	o.t.Helper()
	if _, err := o.pool.Exec(o.t.Context(), statement, args...); err != nil {
		o.t.Fatal(err)
	}
}

func (o office) count(query string, args ...any) (n int) {
	o.t.Helper()
	if err := o.pool.QueryRow(o.t.Context(), query, args...).Scan(&n); err != nil {
		o.t.Fatal(err)
	}
	return n
}

func want(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if e, ok := errors.AsType[*booking.InvalidError](err); !ok || e.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func TestAnInvitedUserSetsAPasswordAndSignsIn(t *testing.T) {
	o := open(t)
	u, err := o.invite(staff.NewUser{Email: " Lena@example.com ", Name: "Lena", Role: staff.Door, Events: []seats.EventID{o.Event}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = o.SignIn(t.Context(), u.Email, password)
	want(t, "before there is a password", err, staff.ErrWrongPassword)
	first, _ := o.set(o.token(u.ID, staff.Invitation), password)
	secret, session, err := o.SignIn(t.Context(), "lena@EXAMPLE.com", password)
	if err != nil {
		t.Fatal(err)
	}
	if secret == first || !strings.HasPrefix(secret, staff.Prefix) {
		t.Errorf("a sign-in gave the secret %q after %q", secret, first)
	}
	if life := time.Until(session.ExpiresAt); life < 11*time.Hour || life > 12*time.Hour {
		t.Errorf("the session lives for %v", life)
	}
	for range 2 { // from the database, then from the cache
		got, err := o.Lookup(t.Context(), secret)
		caller := got.User.Caller()
		if err != nil || caller.Kind != booking.Organizer || !caller.Staff || caller.ID != u.ID || caller.Organizer != o.Owner.Organizer ||
			len(caller.Events) != 1 || caller.Events[0] != o.Event || got.User.Role != staff.Door {
			t.Errorf("session %+v, caller %+v, %v", got, caller, err)
		}
	}
	if o.count("SELECT count(*) FROM river_job WHERE kind = 'staff_mail'") != 1 {
		t.Error("the invitation was not queued once")
	}
}

func TestTheDatabaseKnowsNoSecret(t *testing.T) {
	o := open(t)
	u, secret := o.hired(staff.Owner, "lena@example.com")
	token := o.token(u.ID, staff.Reset)
	for _, table := range []string{"users", "user_sessions", "user_tokens", "audit_log", "river_job", "idempotency_keys"} {
		var dump string
		if err := o.pool.QueryRow(t.Context(), "SELECT coalesce(string_agg(x::text, ' '), '') FROM "+table+" x").Scan(&dump); err != nil {
			t.Fatal(err)
		}
		for _, hidden := range []string{secret[len(staff.Prefix):], token[4:], password, fmt.Sprintf("%x", secret), fmt.Sprintf("%x", token)} {
			if strings.Contains(dump, hidden) {
				t.Errorf("%s knows a secret", table)
			}
		}
	}
}

func TestGuessedSecretsAreRefusedAlike(t *testing.T) {
	o := open(t)
	u, secret := o.hired(staff.Owner, "lena@example.com")
	token := o.token(u.ID, staff.Reset)
	for name, change := range map[string]func(string) string{
		"empty":      func(string) string { return "" },
		"cut":        func(s string) string { return s[:len(s)-1] },
		"longer":     func(s string) string { return s + "A" },
		"other case": strings.ToUpper,
		"not text":   func(s string) string { return strings.Repeat("\xff", len(s)) },
		"invented":   func(s string) string { return s[:4] + strings.Repeat("A", len(s)-4) },
		"huge":       func(s string) string { return s + strings.Repeat("A", 1<<20) },
	} {
		_, err := o.Lookup(t.Context(), change(secret))
		want(t, name+" session", err, staff.ErrNoSession)
		_, err = o.Linked(t.Context(), change(token))
		want(t, name+" link", err, staff.ErrBadToken)
		_, _, err = o.SetPassword(t.Context(), change(token), password)
		want(t, name+" link used", err, staff.ErrBadToken)
	}
	_, err := o.Lookup(t.Context(), token)
	want(t, "a link as a session", err, staff.ErrNoSession)
	_, err = o.Linked(t.Context(), secret)
	want(t, "a session as a link", err, staff.ErrBadToken)
}

func TestALinkWorksOnceAndEndsTheOtherSessions(t *testing.T) {
	o := open(t)
	u, old := o.hired(staff.Owner, "lena@example.com")
	if _, err := o.Lookup(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	dropped := o.token(u.ID, staff.Reset)
	token := o.token(u.ID, staff.Reset)
	_, _, err := o.SetPassword(t.Context(), dropped, password)
	want(t, "a link that was replaced", err, staff.ErrBadToken)

	const n = 8
	won := make(chan string, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			secret, _, err := o.SetPassword(t.Context(), token, "another horse")
			if err == nil {
				won <- secret
			} else if !errors.Is(err, staff.ErrBadToken) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("one link has set %d passwords", len(won))
	}
	if _, err := o.Lookup(t.Context(), <-won); err != nil {
		t.Error(err)
	}
	_, err = o.Lookup(t.Context(), old)
	want(t, "a session from before the new password", err, staff.ErrNoSession)
	_, _, err = o.SignIn(t.Context(), u.Email, password)
	want(t, "the old password", err, staff.ErrWrongPassword)
}

func TestWhatIsOldIsOver(t *testing.T) {
	o := open(t)
	u, secret := o.hired(staff.Owner, "lena@example.com")
	token := o.token(u.ID, staff.Reset)
	o.exec("UPDATE user_tokens SET expires_at = expires_at - interval '61 minutes'")
	_, err := o.Linked(t.Context(), token)
	want(t, "a link after an hour", err, staff.ErrBadToken)
	_, _, err = o.SetPassword(t.Context(), token, password)
	want(t, "a link after an hour, used", err, staff.ErrBadToken)

	o.exec("UPDATE user_sessions SET seen_at = seen_at - interval '119 minutes'")
	if _, err := o.Lookup(t.Context(), secret); err != nil {
		t.Errorf("idle for less than two hours: %v", err)
	}
	if o.count("SELECT count(*) FROM user_sessions WHERE seen_at > statement_timestamp() - interval '1 minute'") != 1 {
		t.Error("a session that is used grows idle")
	}
	o.exec("UPDATE user_sessions SET seen_at = seen_at - interval '121 minutes'")
	staff.Expire(o.Staff)
	_, err = o.Lookup(t.Context(), secret)
	want(t, "idle for two hours", err, staff.ErrNoSession)

	o.exec("UPDATE user_sessions SET seen_at = statement_timestamp(), expires_at = expires_at - interval '12 hours'")
	_, err = o.Lookup(t.Context(), secret)
	want(t, "after twelve hours", err, staff.ErrNoSession)
}

func TestARemovedUserIsOutOnEveryNodeInTime(t *testing.T) {
	o := open(t)
	o.hired(staff.Owner, "omar@example.com")
	u, secret := o.hired(staff.Editor, "lena@example.com")
	token := o.token(u.ID, staff.Reset)
	other := node(t, o.pool)
	for _, n := range []*staff.Staff{o.Staff, other} {
		if _, err := n.Lookup(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Remove(t.Context(), staff.ActorOf(o.Owner), u.Organizer, u.ID); err != nil {
		t.Fatal(err)
	}
	_, err := o.Lookup(t.Context(), secret)
	want(t, "the node that removed them", err, staff.ErrNoSession)
	staff.Expire(other)
	_, err = other.Lookup(t.Context(), secret)
	want(t, "the other node after the cache's time", err, staff.ErrNoSession)
	_, _, err = o.SignIn(t.Context(), u.Email, password)
	want(t, "sign-in", err, staff.ErrWrongPassword)
	_, err = o.Linked(t.Context(), token)
	want(t, "link", err, staff.ErrBadToken)
	want(t, "removed again", o.Remove(t.Context(), staff.Operator, u.Organizer, u.ID), booking.ErrNotFound)
	if again, err := o.invite(person(staff.Door, u.Email)); err != nil || again.ID == u.ID {
		t.Errorf("invited again: %+v, %v", again, err)
	}
}

func TestACachedSessionLivesShorterThanPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if !staff.CachedFor(5*time.Second) || staff.CachedFor(10*time.Second) {
			t.Error("a cached session must be forgotten within ten seconds")
		}
	})
}

func TestWhatANodeRemembersIsBounded(t *testing.T) {
	t.Parallel()
	if sessions := staff.Crowd(10_000); sessions > staff.CacheMax {
		t.Errorf("%d sessions are remembered", sessions)
	}
}

func TestTheLogTellsWhoDidWhat(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "omar@example.com")
	v, _ := o.hired(staff.Editor, "lena@example.com")
	if _, _, err := o.SignIn(t.Context(), v.Email, password); err != nil {
		t.Fatal(err)
	}
	door := staff.Door
	by := staff.ActorOf(u.Caller())
	if _, err := o.Change(t.Context(), by, u.Organizer, v.ID, staff.Change{Role: &door}); err != nil {
		t.Fatal(err)
	}
	if err := o.RemoveAny(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	var got []string
	before := staff.Newest
	for {
		page, err := o.Log(t.Context(), u.Organizer, nil, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if time.Since(e.At) > time.Minute || (e.Event != nil) != (e.Action == "event.created") {
				t.Errorf("%+v", e)
			}
			got = append(got, e.Actor.Kind+" "+e.Action)
			before = e.ID
		}
		if len(page) < 2 {
			break
		}
	}
	wantLog := []string{
		"operator user.removed", "user user.changed", "user user.signed_in", "user user.password_set", "key user.created", "user user.password_set", "key user.created",
		"key event.created",
	}
	if strings.Join(got, ", ") != strings.Join(wantLog, ", ") {
		t.Errorf("the log has %v", got)
	}
	if list, err := o.Log(t.Context(), Organizer(t, o.pool), nil, staff.Newest, 10); err != nil || len(list) != 0 {
		t.Errorf("another organizer reads %v, %v", list, err)
	}
	if list, err := o.Log(t.Context(), u.Organizer, &o.Event, staff.Newest, 10); err != nil || len(list) != 1 || list[0].Action != "event.created" {
		t.Errorf("rows about the event: %v, %v", list, err)
	}
}

func TestAnOperatorGetsALinkOrAMail(t *testing.T) {
	o := open(t)
	organizer, err := o.Organizer(t.Context(), "Glass Harbour")
	if err != nil {
		t.Fatal(err)
	}
	_, link, err := o.Create(t.Context(), organizer, person(staff.Owner, "lena@example.com"), true)
	if err != nil || o.count("SELECT count(*) FROM river_job") != 0 {
		t.Fatalf("with a link: %v", err)
	}
	if _, session := o.set(tokenIn(t, link), password); session.User.OrganizerName != "Glass Harbour" {
		t.Errorf("%+v", session)
	}
	if _, link, err := o.Create(t.Context(), organizer, person(staff.Owner, "omar@example.com"), false); err != nil || link != "" {
		t.Errorf("by mail: %q, %v", link, err)
	}
	if all, err := o.Everybody(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}
