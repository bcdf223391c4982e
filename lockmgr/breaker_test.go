package lockmgr

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBreakerLetsOneProbeThroughPerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		for i := range maxFailures {
			if !b.allow() {
				t.Fatalf("refused after %d failures, want %d tries", i, maxFailures)
			}
			b.fail()
		}
		probes := 0
		for range 100 { // 5 s in steps of 50 ms
			if b.allow() {
				probes++
				b.fail()
			}
			time.Sleep(50 * time.Millisecond)
		}
		if probes != 4 {
			t.Errorf("%d probes in 5 s, want 4: at 1, 2, 3 and 4 s", probes)
		}
		time.Sleep(probeInterval)
		if !b.allow() {
			t.Fatal("no probe a second after the last one")
		}
		b.succeed()
		if b.open() || !b.allow() || !b.allow() {
			t.Error("still open after a probe that worked")
		}
	})
}

func TestBreakerForgivesSingleFailures(t *testing.T) {
	t.Parallel()
	var b breaker
	for range 10 * maxFailures {
		for range maxFailures - 1 {
			b.fail()
		}
		b.succeed()
	}
	if b.open() {
		t.Error("opened by failures that were not in a row")
	}
}
