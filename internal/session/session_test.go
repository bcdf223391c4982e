package session_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seatfence/internal/session"
)

func signer(t *testing.T, secure bool) *session.Signer {
	t.Helper()
	s, err := session.NewSigner(bytes.Repeat([]byte("k"), session.MinKey), secure)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokenNamesItsBuyer(t *testing.T) {
	t.Parallel()
	s := signer(t, false)
	token, made := s.New()
	got, err := s.Parse(token)
	if err != nil || got != made {
		t.Fatalf("Parse = %v, %v, want %v", got, err, made)
	}
	if _, other := s.New(); other.Buyer == made.Buyer {
		t.Error("two sessions are one buyer")
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	s := signer(t, false)
	token, _ := s.New()
	other, err := session.NewSigner(bytes.Repeat([]byte("x"), session.MinKey), false)
	if err != nil {
		t.Fatal(err)
	}
	foreign, _ := other.New()
	forged := []string{
		"", session.Prefix, foreign, token[:len(token)-1], token + "A", strings.TrimPrefix(token, session.Prefix), token + "\n",
		strings.Replace(token, session.Prefix, "sf_", 1), session.Prefix + strings.Repeat("A", len(token)-len(session.Prefix)),
	}
	for i := len(session.Prefix); i < len(token); i++ {
		flipped := []byte(token)
		flipped[i] = map[bool]byte{true: 'B', false: 'A'}[token[i] == 'A']
		forged = append(forged, string(flipped))
	}
	for _, f := range forged {
		if _, err := s.Parse(f); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("Parse(%q) = %v, want ErrInvalid", f, err)
		}
	}
}

func TestTokenEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := signer(t, false)
		token, _ := s.New()
		time.Sleep(session.Lifetime - time.Second)
		if _, err := s.Parse(token); err != nil {
			t.Errorf("one second before its end: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := s.Parse(token); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("at its end: %v, want ErrInvalid", err)
		}
	})
}

func TestShortKeysAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := session.NewSigner(make([]byte, session.MinKey-1), false); err == nil {
		t.Error("a short signing key was taken")
	}
}

func TestCookieIsForThisHostAlone(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		s := signer(t, secure)
		token, made := s.New()
		cookie := s.Cookie(token, made)
		if err := cookie.Valid(); err != nil {
			t.Error(err)
		}
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure != secure ||
			strings.HasPrefix(cookie.Name, "__Host-") != secure || cookie.Path != "/" || cookie.Domain != "" {
			t.Errorf("secure %v: cookie %v", secure, cookie)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if _, err := s.FromCookie(r); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("without a cookie: %v", err)
		}
		r.AddCookie(cookie)
		if got, err := s.FromCookie(r); err != nil || got != made {
			t.Errorf("FromCookie = %v, %v, want %v", got, err, made)
		}
	}
}
