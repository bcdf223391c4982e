package realtime

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// NewRosterFor is NewRoster with other times.
func NewRosterFor(rdb redis.UniversalClient, node string, lease, grace time.Duration) *Roster {
	return &Roster{rdb: rdb, node: node, lease: lease, grace: grace}
}
