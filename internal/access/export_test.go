package access

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"seatfence/booking"
)

var NewToken = newToken

// Expire makes what k has cached as old as time would.
func Expire(k *Keys) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, e := range k.known {
		e.until = e.until.Add(-cacheTTL)
		k.known[key] = e
	}
}

// CachedFor reports whether a key that was cached is still known after d.
func CachedFor(d time.Duration) bool {
	k := New(nil)
	k.remember([sha256.Size]byte{}, booking.Caller{})
	time.Sleep(d - time.Nanosecond)
	_, ok := k.cached([sha256.Size]byte{})
	return ok
}

// CacheSizeAfter returns how many keys are known after n different ones.
func CacheSizeAfter(n int) int {
	k := New(nil)
	for i := range n {
		var key [sha256.Size]byte
		binary.BigEndian.PutUint64(key[:], uint64(i))
		k.remember(key, booking.Caller{})
	}
	return len(k.known)
}

// Forget lets the list of origins be over.
func (k *Keys) Forget() { k.origins.list.Store(nil) }
