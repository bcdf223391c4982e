package stream

import (
	"context"
	"strconv"

	"seatfence/seats"
)

// Saved tells everybody in a configurator that somebody has saved a page of its draft; item 0 and page "" are the whole. It may be lost: what
// was saved is in Postgres, and a page that asks gets it.
func (s *Server) Saved(ctx context.Context, id seats.EventID, by Who, item int32, page string, revision int64) {
	e := event{Type: "saved", By: &person{User: by.ID, Name: by.Name}, Revision: revision}
	e.Resource.Page = page
	if item > 0 {
		e.Resource.Item = strconv.Itoa(int(item))
	}
	s.failed(s.bus.Emit(ctx, rootOf(id), encode(e)))
}
