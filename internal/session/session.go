// Package session makes and reads the tokens of anonymous buyer sessions. A session is stored nowhere: the token carries who the buyer is
// and until when, under a signature. Nothing here knows HTTP but the shape of the cookie.
package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	// Prefix begins every token, so that a scanner of leaked secrets can know one.
	Prefix = "sfs_"
	// Lifetime is how long a session is good for.
	Lifetime = 30 * 24 * time.Hour
	// MinKey is the least length of a signing key in bytes.
	MinKey = 32

	idSize      = 16
	payloadSize = idSize + 8
	tokenSize   = payloadSize + sha256.Size
)

// domain keeps a signature of this package from being one of another that uses the same key.
const domain = "seatfence buyer session 1\x00"

// ErrInvalid says that a token is malformed, forged or over.
var ErrInvalid = errors.New("invalid session token")

// Session is an anonymous buyer until ExpiresAt (UTC, whole seconds).
type Session struct {
	Buyer     uuid.UUID
	ExpiresAt time.Time
}

// Signer makes and reads tokens with one key. It is safe for concurrent use.
type Signer struct {
	key    []byte
	secure bool
}

// NewSigner returns a Signer for a key of at least MinKey bytes. secure says that the public URL is https: cookies then travel only over
// TLS and belong to this host alone.
func NewSigner(key []byte, secure bool) (*Signer, error) {
	if len(key) < MinKey {
		return nil, fmt.Errorf("signing key has %d bytes, at least %d are needed", len(key), MinKey)
	}
	return &Signer{key: key, secure: secure}, nil
}

// New returns a token of a new buyer.
func (s *Signer) New() (string, Session) {
	session := Session{Buyer: uuid.Must(uuid.NewV7()), ExpiresAt: time.Now().Add(Lifetime).UTC().Truncate(time.Second)}
	raw := make([]byte, 0, tokenSize)
	raw = append(raw, session.Buyer[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(session.ExpiresAt.Unix()))
	raw = append(raw, s.sign(raw)...)
	return Prefix + base64.RawURLEncoding.EncodeToString(raw), session
}

// Parse returns the session of a token; ErrInvalid if there is none.
func (s *Signer) Parse(token string) (Session, error) {
	text, ok := strings.CutPrefix(token, Prefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return Session{}, ErrInvalid
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || !hmac.Equal(raw[payloadSize:], s.sign(raw[:payloadSize])) {
		return Session{}, ErrInvalid
	}
	expires := time.Unix(int64(binary.BigEndian.Uint64(raw[idSize:payloadSize])), 0).UTC()
	if !time.Now().Before(expires) {
		return Session{}, ErrInvalid
	}
	return Session{Buyer: uuid.UUID(raw[:idSize]), ExpiresAt: expires}, nil
}

func (s *Signer) sign(payload []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(domain))
	mac.Write(payload)
	return mac.Sum(nil)
}

// Cookie carries a token in the browser.
func (s *Signer) Cookie(token string, session Session) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(), Value: token, Path: "/", Expires: session.ExpiresAt,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
}

// FromCookie returns the session of the request's cookie; ErrInvalid if there is none.
func (s *Signer) FromCookie(r *http.Request) (Session, error) {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return Session{}, ErrInvalid
	}
	return s.Parse(cookie.Value)
}

// cookieName has the prefix by which browsers refuse a cookie that another host of the domain, or a page without TLS, has set.
func (s *Signer) cookieName() string {
	if s.secure {
		return "__Host-seatfence_session"
	}
	return "seatfence_session"
}
