package stream

import "time"

// Keep sets for how long a map is kept that nobody looks at. It is called before Start.
func (s *Server) Keep(long time.Duration) { s.kept = long }
