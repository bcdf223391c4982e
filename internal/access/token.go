package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"math/big"
	"strings"

	"github.com/google/uuid"
)

// A token is "sf_", 22 characters of the key's id, "_", 27 characters of secret and 6 of checksum. All are base 62, so that a double
// click selects the whole token. The checksum tells a mistyped or invented token from a wrong one without asking the database, and
// a scanner a leaked one from any other text.
const (
	// Prefix begins every token, so that a scanner of leaked secrets can know one.
	Prefix = "sf_"

	base        = 62
	idLen       = 22 // 128 bits
	secretLen   = 27 // 160 bits
	secretBytes = 20
	sumLen      = 6 // 32 bits
	tokenLen    = len(Prefix) + idLen + 1 + secretLen + sumLen
)

// newToken returns a token for the key and what of it is stored.
func newToken(id uuid.UUID) (token string, hash []byte) {
	secret := make([]byte, secretBytes)
	rand.Read(secret)
	text := encode(secret, secretLen)
	signed := Prefix + FormatID(id) + "_" + text
	return signed + checksum(signed), hashOf(text)
}

// parseToken returns the key's id and the hash of the secret. ok is false for what newToken cannot have made.
func parseToken(token string) (id uuid.UUID, hash []byte, ok bool) {
	if len(token) != tokenLen || !strings.HasPrefix(token, Prefix) || token[len(Prefix)+idLen] != '_' {
		return id, nil, false
	}
	signed, sum := token[:tokenLen-sumLen], token[tokenLen-sumLen:]
	if subtle.ConstantTimeCompare([]byte(checksum(signed)), []byte(sum)) != 1 {
		return id, nil, false
	}
	id, err := ParseID(token[len(Prefix):][:idLen])
	return id, hashOf(signed[len(signed)-secretLen:]), err == nil
}

// hashOf needs no salt and no slow hash: the secret is random and as long as the hash of a guess is useless.
func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func checksum(signed string) string {
	sum := crc32.ChecksumIEEE([]byte(signed))
	return encode([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}, sumLen)
}

// FormatID is the public form of a key's id: 22 characters, as they stand in its tokens.
func FormatID(id uuid.UUID) string { return encode(id[:], idLen) }

// ParseID reads the public form of a key's id; anything else is ErrBadID.
func ParseID(text string) (id uuid.UUID, err error) {
	n, ok := new(big.Int).SetString(text, base)
	if !ok || n.Sign() < 0 || n.BitLen() > 8*len(id) {
		return id, ErrBadID
	}
	n.FillBytes(id[:])
	if FormatID(id) != text {
		return id, ErrBadID
	}
	return id, nil
}

func encode(raw []byte, n int) string {
	text := new(big.Int).SetBytes(raw).Text(base)
	return strings.Repeat("0", n-len(text)) + text
}
