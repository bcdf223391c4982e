package staff

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Bounds of a password, in characters of its Unicode form C.
const (
	MinPassword = 8
	MaxPassword = 200
)

const (
	hashMemory   = 19 << 10 // KiB
	hashPasses   = 2
	hashLanes    = 1
	hashSize     = 32
	saltSize     = 16
	maxHashes    = 4               // at once, on one node: each takes hashMemory and a core
	hashPatience = 2 * time.Second // for one's turn
)

// current begins every hash that is made today. One that begins otherwise is made anew when its user signs in.
var current = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argon2.Version, hashMemory, hashPasses, hashLanes)

// nobody is a hash that no password has. It is what a password is compared with where there is no user.
var nobody = current + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)

// checkPassword returns a new password in the form in which it is hashed.
func checkPassword(password string) (string, error) {
	const where = "/password"
	if !utf8.ValidString(password) {
		return "", invalid(where, "bad_password", "a password is text")
	}
	password = norm.NFC.String(password)
	switch n := utf8.RuneCountInString(password); {
	case n < MinPassword:
		return "", invalid(where, "password_too_short", "a password has at least %d characters", MinPassword)
	case n > MaxPassword:
		return "", invalid(where, "password_too_long", "a password has at most %d characters", MaxPassword)
	}
	return password, nil
}

// turn waits until a password may be hashed. The caller gives its place back.
func (s *Staff) turn(ctx context.Context) (done func(), err error) {
	timer := time.NewTimer(hashPatience)
	defer timer.Stop()
	select {
	case s.hashes <- struct{}{}:
		return func() { <-s.hashes }, nil
	case <-timer.C:
		return nil, &WaitError{time.Second}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hash returns the PHC form of a password that checkPassword has passed.
func (s *Staff) hash(ctx context.Context, password string) (string, error) {
	done, err := s.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	salt := make([]byte, saltSize)
	rand.Read(salt)
	sum := argon2.IDKey([]byte(password), salt, hashPasses, hashMemory, hashLanes, hashSize)
	return current + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(sum), nil
}

// verify reports whether a password is the one that was hashed, by the parameters that the hash names. attempt counts it once its turn has
// come, so that whoever found none has not been wrong.
func (s *Staff) verify(ctx context.Context, stored, password string, attempt func() error) (bool, error) {
	h, err := parseHash(stored)
	if err != nil {
		return false, err
	}
	done, err := s.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if err := attempt(); err != nil {
		return false, err
	}
	sum := argon2.IDKey([]byte(norm.NFC.String(password)), h.salt, h.passes, h.memory, h.lanes, uint32(len(h.sum)))
	return subtle.ConstantTimeCompare(sum, h.sum) == 1, nil
}

type phc struct {
	memory, passes uint32
	lanes          uint8
	salt, sum      []byte
}

func parseHash(stored string) (h phc, err error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.lanes); err != nil {
		return h, errHash
	}
	if h.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return h, errHash
	}
	if h.sum, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(h.sum) == 0 || h.passes == 0 || h.lanes == 0 {
		return h, errHash
	}
	return h, nil
}

var errHash = fmt.Errorf("a stored password hash is not argon2id of version %d", argon2.Version)
