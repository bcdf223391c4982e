package stream

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// TicketLife is for how long a ticket is good.
	TicketLife = 30 * time.Second
	// usedFor is for how long a ticket that was used is remembered. Clocks of nodes may differ by what is above TicketLife.
	usedFor   = 2 * TicketLife
	maxTicket = 256 // characters
	// ticketDomain keeps the key of tickets from being another that is derived from the same secret.
	ticketDomain = "seatfence stream ticket 1"
)

// ErrTicket says that a ticket is malformed, forged, over or used.
var ErrTicket = errors.New("no such ticket, or it has been used")

// Tickets lets the holder of a credential open a socket without showing it: a page cannot send an Authorization header along with one. A ticket
// carries the credential under a seal, so that it is looked up anew when the socket opens. Redis knows which tickets were used.
type Tickets struct {
	seal cipher.AEAD
	rdb  redis.UniversalClient
}

// NewTickets returns the tickets of a signing key.
func NewTickets(key []byte, rdb redis.UniversalClient) (*Tickets, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, ticketDomain, 32)
	if err != nil {
		return nil, fmt.Errorf("derive ticket key: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("ticket key: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("ticket key: %w", err)
	}
	return &Tickets{seal, rdb}, nil
}

// Make returns a ticket for a credential, and until when it is good.
func (t *Tickets) Make(credential string) (ticket string, expires time.Time) {
	expires = time.Now().Add(TicketLife).UTC().Truncate(time.Second)
	nonce := make([]byte, t.seal.NonceSize(), maxTicket)
	_, _ = rand.Read(nonce) // never fails
	plain := append(binary.BigEndian.AppendUint64(nil, uint64(expires.Unix())), credential...)
	return base64.RawURLEncoding.EncodeToString(t.seal.Seal(nonce, nonce, plain, nil)), expires
}

// Take uses a ticket up and returns its credential: ErrTicket if it is none, or another error if Redis cannot say whether it was used.
func (t *Tickets) Take(ctx context.Context, ticket string) (credential string, err error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(ticket)
	if err != nil || len(ticket) > maxTicket || len(sealed) < t.seal.NonceSize() {
		return "", ErrTicket
	}
	nonce, body := sealed[:t.seal.NonceSize()], sealed[t.seal.NonceSize():]
	plain, err := t.seal.Open(nil, nonce, body, nil)
	if err != nil || len(plain) < 8 || time.Now().Unix() >= int64(binary.BigEndian.Uint64(plain)) {
		return "", ErrTicket
	}
	key := "ticket:" + base64.RawURLEncoding.EncodeToString(nonce)
	switch fresh, err := t.rdb.SetNX(ctx, key, "", usedFor).Result(); {
	case err != nil:
		return "", fmt.Errorf("use ticket: %w", err)
	case !fresh:
		return "", ErrTicket
	}
	return string(plain[8:]), nil
}
