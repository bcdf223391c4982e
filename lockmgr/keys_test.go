package lockmgr

import (
	"math"
	"strings"
	"testing"
)

// Redis Cluster hashes only what stands between the first brace and the next
// closing one. A script over keys of two slots is refused there.
func TestEventsSeatsShareASlotOfRedisCluster(t *testing.T) {
	t.Parallel()
	for _, event := range []int64{0, 7, math.MaxInt64} {
		tags := map[string]bool{}
		for _, key := range seatKeys(event, []int32{0, 1, 200, math.MaxInt32}) {
			_, rest, _ := strings.Cut(key, "{")
			tag, _, ok := strings.Cut(rest, "}")
			if !ok || tag == "" {
				t.Errorf("%s has no hash tag", key)
			}
			tags[tag] = true
		}
		if len(tags) != 1 {
			t.Errorf("seats of event %d have hash tags %v, want one", event, tags)
		}
	}
	if seatKeys(1, []int32{23})[0] == seatKeys(12, []int32{3})[0] {
		t.Error("two events' seats share a lock")
	}
}
