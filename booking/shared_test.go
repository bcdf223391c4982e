package booking

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSharedReadingBeginsAfterTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared[int64]()
		var truth, readings atomic.Int64
		gate := make(chan struct{})
		read := func(context.Context) (int64, error) {
			readings.Add(1)
			value := truth.Load()
			<-gate
			return value, nil
		}
		var all sync.WaitGroup
		ask := func(n int, want int64) {
			for range n {
				all.Go(func() {
					if got, err := s.get(t.Context(), read); got != want || err != nil {
						t.Errorf("told %d, want %d, %v", got, want, err)
					}
				})
			}
			synctest.Wait()
		}
		ask(1, 0)
		truth.Store(1)
		ask(20, 1) // the first reading has begun
		for range 2 {
			gate <- struct{}{}
			synctest.Wait()
		}
		all.Wait()
		if n := readings.Load(); n != 2 {
			t.Errorf("%d readings", n)
		}
	})
}

func TestSharedReadingThatFailsIsNotKept(t *testing.T) {
	t.Parallel()
	v := &view[int]{shared: newShared[int]()}
	broken := errors.New("broken")
	ask := func(value int, err error) (int, error) {
		return v.show(t.Context(), func(int, time.Duration) bool { return true }, func(context.Context) (int, error) { return value, err })
	}
	if _, err := ask(1, broken); !errors.Is(err, broken) {
		t.Errorf("told %v", err)
	}
	for _, value := range []int{2, 3} { // the second is not read
		if got, err := ask(value, nil); got != 2 || err != nil {
			t.Errorf("told %d, %v", got, err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = v.get(t.Context(), func(context.Context) (int, error) { panic("in a reading") })
	}()
	if got, err := v.get(t.Context(), func(context.Context) (int, error) { return 3, nil }); got != 3 || err != nil {
		t.Errorf("after a panic: %d, %v", got, err)
	}
}
