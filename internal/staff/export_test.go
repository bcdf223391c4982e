package staff

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

var Current = current

const (
	MaxHashes   = maxHashes
	MaxSessions = maxSessions
	CacheMax    = cacheMax
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

// Crowd returns how many sessions are known after n different ones.
func Crowd(n int) (sessions int) {
	s := &Staff{known: map[[sha256.Size]byte]entry{}}
	for i := range n {
		var hash [sha256.Size]byte
		binary.BigEndian.PutUint64(hash[:], uint64(i))
		s.remember(hash, Session{ExpiresAt: time.Now().Add(time.Hour)})
	}
	return len(s.known)
}

// Hashing returns how many passwords are hashed at this moment.
func Hashing(s *Staff) int { return len(s.hashes) }

// TakeTurns leaves no turn to hash a password until they are given back.
func TakeTurns(s *Staff) (giveBack func()) {
	for range maxHashes {
		s.hashes <- struct{}{}
	}
	return func() {
		for range maxHashes {
			<-s.hashes
		}
	}
}
