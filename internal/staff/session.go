package staff

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"seatfence/booking"
	"seatfence/db"
)

const (
	// Prefix begins every session's secret, so that a scanner of leaked secrets can know one.
	Prefix = "sfu_"

	sessionLife = 12 * time.Hour
	sessionIdle = 2 * time.Hour
	maxSessions = 20 // of one user: a new one ends the oldest
	seenEvery   = time.Minute
	secretBytes = 32

	// cacheTTL is how long a session that was ended on another node may live on, and how late a node learns of a new role.
	cacheTTL = 5 * time.Second
	cacheMax = 4096
)

// Session is a user who has signed in, at most until ExpiresAt.
type Session struct {
	User      User
	ExpiresAt time.Time
}

type entry struct {
	session Session
	until   time.Time
}

// newSecret returns a secret and what of it is stored. It needs no slow hash: it cannot be guessed.
func newSecret(prefix string) (secret string, hash [sha256.Size]byte) {
	raw := make([]byte, secretBytes)
	rand.Read(raw)
	secret = prefix + base64.RawURLEncoding.EncodeToString(raw)
	return secret, sha256.Sum256([]byte(secret))
}

func isSecret(prefix, text string) bool {
	return strings.HasPrefix(text, prefix) && len(text) == len(prefix)+base64.RawURLEncoding.EncodedLen(secretBytes)
}

// SignIn starts a session, always with a secret of its own. ErrWrongPassword says the same of an unknown address and of a wrong password; a
// WaitError that there were too many.
func (s *Staff) SignIn(ctx context.Context, email, password string) (secret string, session Session, err error) {
	if email, err = booking.CleanEmail(email); err != nil {
		return "", session, at("/email", err)
	}
	p, err := queries.PersonByEmail(ctx, s.pool, email)
	if err != nil && !db.NotFound(err) {
		return "", session, answer("read user", err)
	}
	stored := nobody
	if p.PasswordHash != nil {
		stored = *p.PasswordHash
	}
	right, err := s.verify(ctx, stored, password, func() error { return s.attempt(ctx, email) })
	if err != nil {
		return "", session, err
	}
	if !right || p.PasswordHash == nil {
		return "", session, ErrWrongPassword
	}
	renewed := stored
	if !strings.HasPrefix(stored, current) {
		if renewed, err = s.hash(ctx, password); err != nil {
			return "", session, err
		}
	}
	err = db.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		n, err := queries.UserSignedIn(ctx, tx, db.UserSignedInParams{ID: p.ID, OldHash: &stored, NewHash: &renewed})
		if err != nil {
			return err
		}
		if n == 0 { // removed, or given another password, since it was read
			return ErrWrongPassword
		}
		if secret, session, err = begin(ctx, tx, userOf(p)); err != nil {
			return err
		}
		return record(ctx, tx, p.OrganizerID, userActor(p.ID), "user.signed_in", p.ID, nil)
	})
	if err != nil {
		return "", Session{}, answer("sign in", err)
	}
	return secret, session, nil
}

// begin starts a session of a user, whose wrong passwords are forgiven.
func begin(ctx context.Context, tx pgx.Tx, u User) (string, Session, error) {
	if err := queries.AttemptsForgive(ctx, tx, u.Email); err != nil {
		return "", Session{}, err
	}
	if err := queries.SessionsTrim(ctx, tx, db.SessionsTrimParams{UserID: u.ID, Kept: maxSessions - 1}); err != nil {
		return "", Session{}, err
	}
	secret, hash := newSecret(Prefix)
	expires, err := queries.SessionInsert(ctx, tx, db.SessionInsertParams{ID: hash[:], UserID: u.ID, Lifetime: sessionLife})
	return secret, Session{u, expires.UTC()}, err
}

// SignOut ends the session of a secret, if there is one. Nodes that have just seen it accept it for some seconds more.
func (s *Staff) SignOut(ctx context.Context, secret string) error {
	hash := sha256.Sum256([]byte(secret))
	if err := queries.SessionDelete(ctx, s.pool, hash[:]); err != nil {
		return answer("sign out", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, hash)
	return nil
}

// Lookup returns the session of a secret: ErrNoSession for one that is invented, over, or of a user who was removed, all alike.
func (s *Staff) Lookup(ctx context.Context, secret string) (Session, error) {
	if !isSecret(Prefix, secret) {
		return Session{}, ErrNoSession
	}
	hash := sha256.Sum256([]byte(secret))
	if session, ok := s.cached(hash); ok {
		return session, nil
	}
	row, err := queries.SessionGet(ctx, s.pool, db.SessionGetParams{ID: hash[:], Idle: sessionIdle})
	switch {
	case db.NotFound(err):
		return Session{}, ErrNoSession
	case err != nil:
		return Session{}, answer("look up session", err)
	}
	if time.Since(row.SeenAt) > seenEvery {
		if err := queries.SessionSeen(ctx, s.pool, hash[:]); err != nil {
			return Session{}, answer("note session", err)
		}
	}
	session := Session{userOf(row.Person), row.ExpiresAt.UTC()}
	s.remember(hash, session)
	return session, nil
}

func (s *Staff) cached(hash [sha256.Size]byte) (Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.known[hash]
	return e.session, ok && time.Now().Before(e.until)
}

func (s *Staff) remember(hash [sha256.Size]byte, session Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= cacheMax {
		clear(s.known) // rarer than anything a finer rule would be worth
	}
	until := time.Now().Add(cacheTTL)
	if session.ExpiresAt.Before(until) {
		until = session.ExpiresAt
	}
	s.known[hash] = entry{session, until}
}

// forget has this node read the sessions of a user anew.
func (s *Staff) forget(user uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, e := range s.known {
		if e.session.User.ID == user {
			delete(s.known, hash)
		}
	}
}

// Cookie carries a session's secret in the browser. Without a secret it takes it from there.
func (s *Staff) Cookie(secret string, expires time.Time) *http.Cookie {
	cookie := &http.Cookie{
		Name: s.cookieName(), Value: secret, Path: "/", Expires: expires,
		HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteLaxMode,
	}
	if secret == "" {
		cookie.MaxAge, cookie.Expires = -1, time.Time{}
	}
	return cookie
}

// FromCookie returns the secret in the request's cookie, or nothing.
func (s *Staff) FromCookie(r *http.Request) string {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (s *Staff) secure() bool { return s.public.Scheme == "https" }

// cookieName has the prefix by which browsers refuse a cookie that another host of the domain, or a page without TLS, has set.
func (s *Staff) cookieName() string {
	if s.secure() {
		return "__Host-seatfence_staff"
	}
	return "seatfence_staff"
}
