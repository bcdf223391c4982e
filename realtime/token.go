package realtime

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"
)

const (
	idBytes    = 16
	saidBytes  = idBytes + 8 + 8 // session, generation, when it was signed in unix ms
	tokenBytes = saidBytes + sha256.Size
	// tokenLife is for how long a tab can be resumed. A tab that was shut in a laptop over a weekend begins anew.
	tokenLife = 48 * time.Hour
	// tokenDomain keeps the key of tokens apart from others that are made of the same secret.
	tokenDomain = "seatfence page session 1"
)

// signer makes and reads the secret by which a tab proves which page session it is. Tokens are stored nowhere: every node knows them by their
// signature, which covers who the tab belongs to.
type signer struct{ key []byte }

func newSigner(secret []byte) (signer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, tokenDomain, sha256.Size)
	if err != nil {
		return signer{}, fmt.Errorf("derive key of page sessions: %w", err)
	}
	return signer{key}, nil
}

func newID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func (s signer) token(id string, gen int64, p Principal, now time.Time) string {
	raw, _ := base64.RawURLEncoding.DecodeString(id) // made by newID
	raw = binary.BigEndian.AppendUint64(raw, uint64(gen))
	raw = binary.BigEndian.AppendUint64(raw, uint64(now.UnixMilli()))
	return base64.RawURLEncoding.EncodeToString(append(raw, s.sign(raw, p)...))
}

// parse returns the session of a token of p. There is none in what is malformed, forged, too old, or another principal's.
func (s signer) parse(token string, p Principal, now time.Time) (id string, gen int64, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != tokenBytes {
		return "", 0, false
	}
	said, mac := raw[:saidBytes], raw[saidBytes:]
	signed := time.UnixMilli(int64(binary.BigEndian.Uint64(said[idBytes+8:])))
	if !hmac.Equal(mac, s.sign(said, p)) || now.Sub(signed) > tokenLife {
		return "", 0, false
	}
	return base64.RawURLEncoding.EncodeToString(said[:idBytes]), int64(binary.BigEndian.Uint64(said[idBytes:])), true
}

func (s signer) sign(said []byte, p Principal) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(said)
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p.Kind))))
	mac.Write([]byte(p.Kind + p.ID))
	return mac.Sum(nil)
}
