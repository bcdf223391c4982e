package realtime

import (
	"maps"
	"sync"
	"sync/atomic"
)

type stats struct {
	opened, resumed, lagged atomic.Int64
	mu                      sync.Mutex
	closed                  map[int]int64
}

// Stats is the figures of a hub. All but the first three only grow.
type Stats struct {
	Open, Sessions, Detached int // connections; page sessions; those of them without a connection, or resumed within the grace
	Attached, Resumed        int64
	Lagged                   int64         // times that a client did not take what there was for it
	Closed                   map[int]int64 // by code; CloseNormal also for those that clients closed
}

// Stats returns the figures of this moment.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	st := Stats{Open: h.open, Sessions: len(h.lives), Detached: len(h.detached)}
	h.mu.Unlock()
	st.Attached, st.Resumed, st.Lagged = h.stats.opened.Load(), h.stats.resumed.Load(), h.stats.lagged.Load()
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	st.Closed = maps.Clone(h.stats.closed)
	return st
}

func (h *Hub) closed(code int) {
	h.stats.mu.Lock()
	defer h.stats.mu.Unlock()
	h.stats.closed[code]++
}
