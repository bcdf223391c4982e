//go:build failpoint

package failpoint

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Set holds the armed points of one node. The zero value has none.
type Set struct {
	mu    sync.Mutex
	armed map[string]func(context.Context) error
}

type setKey struct{}

// With returns a context whose Hits ask set.
func With(ctx context.Context, set *Set) context.Context {
	return context.WithValue(ctx, setKey{}, set)
}

// Hit runs what is armed at the point, once, and returns its error.
func Hit(ctx context.Context, point string) error {
	set, _ := ctx.Value(setKey{}).(*Set)
	if set == nil {
		return nil
	}
	set.mu.Lock()
	act := set.armed[point]
	delete(set.armed, point)
	set.mu.Unlock()
	if act == nil {
		return nil
	}
	return act(ctx)
}

// Arm sets what the next Hit of the point does.
func (s *Set) Arm(point string, act func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed == nil {
		s.armed = map[string]func(context.Context) error{}
	}
	s.armed[point] = act
}

// Pause stops the next Hit of the point. reached is closed when it got there; resume lets it go on.
func (s *Set) Pause(point string) (reached <-chan struct{}, resume func()) {
	at, on := make(chan struct{}), make(chan struct{})
	s.Arm(point, func(context.Context) error {
		close(at)
		<-on
		return nil
	})
	return at, sync.OnceFunc(func() { close(on) })
}

// FromEnv arms "point=12s,point=kill" as given in an environment variable: a pause of that length, or the end of the process.
func FromEnv(value string, say func(string, ...any)) (*Set, error) {
	set := &Set{}
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) {
		point, action, _ := strings.Cut(part, "=")
		if action == "kill" {
			set.Arm(point, func(context.Context) error { os.Exit(137); return nil })
			continue
		}
		pause, err := time.ParseDuration(action)
		if err != nil {
			return nil, fmt.Errorf("failpoint %q: %w", part, err)
		}
		set.Arm(point, func(context.Context) error {
			say("paused at %s for %s", point, pause)
			time.Sleep(pause)
			say("woke up at %s", point)
			return nil
		})
	}
	return set, nil
}
