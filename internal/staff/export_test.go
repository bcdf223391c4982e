package staff

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

var (
	WaitAfter = waitAfter
	Current   = current
)

const (
	MaxHashes    = maxHashes
	MaxSessions  = maxSessions
	MaxStrangers = maxStrangers
	CacheMax     = cacheMax
)

// Expire makes what s has cached as old as time would.
func Expire(s *Staff) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, e := range s.known {
		e.until = e.until.Add(-cacheTTL)
		s.known[hash] = e
	}
}

// CachedFor reports whether a session that was cached is still known after d.
func CachedFor(d time.Duration) bool {
	s := &Staff{known: map[[sha256.Size]byte]entry{}}
	s.remember([sha256.Size]byte{}, Session{ExpiresAt: time.Now().Add(time.Hour)})
	time.Sleep(d - time.Nanosecond)
	_, ok := s.cached([sha256.Size]byte{})
	return ok
}

// Crowd returns how many sessions and addresses are known after n different ones.
func Crowd(n int) (sessions, strangers int) {
	s := &Staff{known: map[[sha256.Size]byte]entry{}, strangers: map[string]attempts{}}
	for i := range n {
		var hash [sha256.Size]byte
		binary.BigEndian.PutUint64(hash[:], uint64(i))
		s.remember(hash, Session{ExpiresAt: time.Now().Add(time.Hour)})
		_ = s.strange(string(hash[:]))
	}
	return len(s.known), len(s.strangers)
}

// Hashing returns how many passwords are hashed at this moment.
func Hashing(s *Staff) int { return len(s.hashes) }
