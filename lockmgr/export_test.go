package lockmgr

import "time"

// Shorten makes leases end soon enough for a test.
func (e *Edits) Shorten(lease, grace, tombstone, ttl time.Duration) {
	e.lease, e.grace, e.tombstone, e.ttl = lease, grace, tombstone, ttl
}
