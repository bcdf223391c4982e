//go:build !failpoint

package failpoint

import "context"

// Hit does nothing.
func Hit(context.Context, string) error { return nil }
