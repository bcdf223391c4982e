//go:build !failpoint

package faulttest

import "context"

const buildTags = ""

// armed has no points in a build without them.
type armed struct{}

func (*armed) arm(ctx context.Context) context.Context { return ctx }
