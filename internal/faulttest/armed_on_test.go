//go:build failpoint

package faulttest

import (
	"context"

	"seatfence/internal/failpoint"
)

const buildTags = "failpoint"

// armed is the named points of a node.
type armed struct{ points *failpoint.Set }

func (a *armed) arm(ctx context.Context) context.Context {
	a.points = &failpoint.Set{}
	return failpoint.With(ctx, a.points)
}
