//go:build failpoint

package main

import (
	"context"
	"fmt"

	"seatfence/internal/failpoint"
)

// withFailpoints arms what FAILPOINTS names, in builds for tests.
func withFailpoints(s *session) (context.Context, error) {
	set, err := failpoint.FromEnv(s.environ["FAILPOINTS"], func(format string, args ...any) {
		fmt.Fprintf(s.stderr, format+"\n", args...)
	})
	if err != nil {
		return nil, err
	}
	return failpoint.With(s.ctx, set), nil
}
