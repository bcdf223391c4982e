package stream

import "time"

// Shorten sets for how long a map is kept that nobody looks at, and a lock under which nobody edits. It is called before Start.
func (s *Server) Shorten(kept, idle time.Duration) { s.kept, s.idle = kept, idle }
