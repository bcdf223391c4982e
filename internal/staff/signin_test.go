package staff_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"seatfence/internal/staff"
)

func waitOf(t *testing.T, err error) time.Duration {
	t.Helper()
	wait, ok := errors.AsType[*staff.WaitError](err)
	if !ok {
		t.Fatalf("%v, want a wait", err)
	}
	return wait.Wait
}

func TestWrongPasswordsSlowAnAddressWhosever(t *testing.T) {
	o := open(t)
	o.hired(staff.Owner, "lena@example.com")
	other := node(t, o.pool)
	for _, email := range []string{"lena@example.com", "nobody@example.com"} {
		for i := range staff.FreeAttempts + 1 {
			_, _, err := o.SignIn(t.Context(), email, "wrong horse")
			want(t, fmt.Sprint("attempt ", i), err, staff.ErrWrongPassword)
		}
		for where, people := range map[string]*staff.Staff{"here": o.Staff, "on another node": other} {
			_, _, err := people.SignIn(t.Context(), strings.ToUpper(email), password)
			if wait := waitOf(t, err); wait < time.Second || wait > 2*time.Second {
				t.Errorf("%s waits %v %s", email, wait, where)
			}
		}
	}
	o.exec("UPDATE attempts SET wait_until = statement_timestamp()")
	if _, _, err := o.SignIn(t.Context(), "lena@example.com", password); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	if o.count("SELECT count(*) FROM attempts") != 1 {
		t.Error("a right password does not forgive the wrong ones")
	}
}

func TestTheWaitGrowsToAMinute(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	_, _, err := o.SignIn(t.Context(), u.Email, "wrong horse")
	want(t, "first attempt", err, staff.ErrWrongPassword)
	for failures, seconds := range map[int]int{1: 0, 2: 0, 3: 1, 4: 2, 5: 4, 8: 32, 9: 60, 12: 60, 40: 60} {
		o.exec("UPDATE attempts SET failures = $1, wait_until = statement_timestamp()", failures)
		_, _, err := o.SignIn(t.Context(), u.Email, "wrong horse")
		want(t, "attempt", err, staff.ErrWrongPassword)
		var wait time.Duration
		if err := o.pool.QueryRow(t.Context(), "SELECT make_interval(secs => greatest(0, extract(epoch FROM wait_until - statement_timestamp()))) FROM attempts").Scan(&wait); err != nil {
			t.Fatal(err)
		}
		full := time.Duration(seconds) * time.Second
		if wait > full || wait < full-time.Second {
			t.Errorf("after %d failures the wait is %v, want %v", failures, wait, full)
		}
	}
}

func TestManyGuessesAtOnceAreNotAllHeard(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	const n = 40
	heard := make(chan struct{}, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			_, _, err := o.SignIn(t.Context(), u.Email, "wrong horse")
			if errors.Is(err, staff.ErrWrongPassword) {
				heard <- struct{}{}
			} else {
				waitOf(t, err)
			}
		})
	}
	all.Wait()
	if len(heard) > staff.FreeAttempts+2 {
		t.Errorf("%d of %d guesses were answered", len(heard), n)
	}
}

func TestFewPasswordsAreHashedAtOnce(t *testing.T) {
	o := open(t)
	done, most := make(chan struct{}), make(chan int)
	go func() {
		top := 0
		for {
			top = max(top, staff.Hashing(o.Staff))
			select {
			case <-done:
				most <- top
				return
			default:
			}
		}
	}()
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			_, _, err := o.SignIn(t.Context(), fmt.Sprintf("nobody-%d@example.com", i), password)
			if !errors.Is(err, staff.ErrWrongPassword) {
				waitOf(t, err)
			}
		})
	}
	all.Wait()
	close(done)
	if top := <-most; top > staff.MaxHashes || top == 0 {
		t.Errorf("%d passwords were hashed at once", top)
	}
}

// The right password that had to wait for its turn to be hashed is no wrong one.
func TestARightPasswordThatFoundNoTurnCostsNothing(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	giveBack := staff.TakeTurns(o.Staff)
	errs := make([]error, staff.FreeAttempts+1)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, _, errs[i] = o.SignIn(t.Context(), u.Email, password) })
	}
	all.Wait()
	giveBack()
	for _, err := range errs {
		if wait := waitOf(t, err); wait > time.Second {
			t.Errorf("whoever found no turn waits %v", wait)
		}
	}
	if _, _, err := o.SignIn(t.Context(), u.Email, password); err != nil {
		t.Errorf("a user who only typed the right password: %v", err)
	}
}

func TestAPasswordOfOldParametersIsHashedAnew(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	salt, encode := []byte("0123456789abcdef"), base64.RawStdEncoding.EncodeToString
	old := "$argon2id$v=19$m=8,t=1,p=1$" + encode(salt) + "$" + encode(argon2.IDKey([]byte(password), salt, 1, 8, 1, 32))
	o.exec("UPDATE users SET password_hash = $1", old)
	_, _, err := o.SignIn(t.Context(), u.Email, "wrong horse")
	want(t, "a wrong password", err, staff.ErrWrongPassword)
	if o.count("SELECT count(*) FROM users WHERE password_hash = $1", old) != 1 {
		t.Error("a wrong password was stored")
	}
	for range 2 {
		if _, _, err := o.SignIn(t.Context(), u.Email, password); err != nil {
			t.Fatal(err)
		}
		if o.count("SELECT count(*) FROM users WHERE starts_with(password_hash, $1)", staff.Current) != 1 {
			t.Error("the hash keeps its old parameters")
		}
	}
}

func TestAPasswordIsTheSameHoweverItIsComposed(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	const composed, apart = "schl\u00fcsselbund", "schlu\u0308sselbund"
	o.set(o.token(u.ID, staff.Reset), apart)
	if _, _, err := o.SignIn(t.Context(), u.Email, composed); err != nil {
		t.Error(err)
	}
}

func TestPasswordsThatAreNoneAreRefusedAndTheLinkStays(t *testing.T) {
	o := open(t)
	u, _ := o.hired(staff.Owner, "lena@example.com")
	token := o.token(u.ID, staff.Reset)
	for code, bad := range map[string]string{
		"password_too_short": "ääääääa", "password_too_long": strings.Repeat("ä", staff.MaxPassword+1), "bad_password": "correct \xff horse",
	} {
		_, _, err := o.SetPassword(t.Context(), token, bad)
		wantCode(t, code, err, code)
	}
	o.set(token, strings.Repeat("ä", staff.MaxPassword))
}

func TestAForgottenPasswordTellsNobodyWhoIsThere(t *testing.T) {
	o := open(t)
	o.hired(staff.Owner, "lena@example.com")
	for _, email := range []string{"lena@example.com", "nobody@example.com"} {
		if err := o.Forgot(t.Context(), email); err != nil {
			t.Errorf("%s: %v", email, err)
		}
	}
	if n := o.count("SELECT count(*) FROM river_job WHERE args->>'purpose' = 'reset'"); n != 1 {
		t.Errorf("%d links are on their way", n)
	}
}

func TestSigningOutEndsOneSession(t *testing.T) {
	o := open(t)
	u, first := o.hired(staff.Owner, "lena@example.com")
	second, _, err := o.SignIn(t.Context(), u.Email, password)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := o.SignOut(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	_, err = o.Lookup(t.Context(), first)
	want(t, "signed out", err, staff.ErrNoSession)
	if _, err := o.Lookup(t.Context(), second); err != nil {
		t.Error(err)
	}
}

func TestAUserHasFewSessions(t *testing.T) {
	o := open(t)
	u, first := o.hired(staff.Owner, "lena@example.com")
	for range staff.MaxSessions {
		if _, _, err := o.SignIn(t.Context(), u.Email, password); err != nil {
			t.Fatal(err)
		}
	}
	if n := o.count("SELECT count(*) FROM user_sessions"); n != staff.MaxSessions {
		t.Errorf("%d sessions", n)
	}
	_, err := o.Lookup(t.Context(), first)
	want(t, "the oldest session", err, staff.ErrNoSession)
}

func TestAttemptsThatAreLongOverAreForgotten(t *testing.T) {
	o := open(t)
	for i := range 30 {
		_, _, err := o.SignIn(t.Context(), fmt.Sprint("nobody-", i, "@example.com"), "wrong horse")
		want(t, "attempt", err, staff.ErrWrongPassword)
	}
	o.exec("UPDATE attempts SET wait_until = statement_timestamp() - interval '2 hours'")
	for i := range 3 {
		_, _, err := o.SignIn(t.Context(), fmt.Sprint("somebody-", i, "@example.com"), "wrong horse")
		want(t, "attempt", err, staff.ErrWrongPassword)
	}
	if n := o.count("SELECT count(*) FROM attempts"); n != 3 {
		t.Errorf("%d addresses are remembered, want those of the last hour", n)
	}
}
