package app

import (
	"errors"
	"testing"
	"time"
)

func TestAFailingSweepRestsOnlyWhenItEndsNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("one hold cannot be ended")
	var rest time.Duration
	for i, c := range []struct {
		ended int
		err   error
		want  time.Duration
	}{
		{0, nil, sweepEvery},
		{0, broken, 2 * sweepEvery},
		{0, broken, 4 * sweepEvery},
		{3, broken, 0},
		{0, broken, sweepEvery},
		{3, nil, 0},
		{0, nil, sweepEvery},
	} {
		if rest = pause(rest, c.ended, c.err); rest != c.want {
			t.Errorf("round %d: a pause of %v, want %v", i, rest, c.want)
		}
	}
	for range 20 {
		rest = pause(rest, 0, broken)
	}
	if rest != sweepRest {
		t.Errorf("a pause of %v, want at most %v", rest, sweepRest)
	}
}
