package lockmgr_test

import (
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatfence/db/dbtest"
	"seatfence/internal/devstack"
	"seatfence/lockmgr"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// plain is a connection for the test itself, behind the locks' back.
func plain(t testing.TB, srv *devstack.Stack) *redis.Client {
	t.Helper()
	opt, err := redis.ParseURL(srv.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func do(t testing.TB, srv *devstack.Stack, args ...any) {
	t.Helper()
	if err := plain(t, srv).Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// proxy stands before a Redis, loses replies and slows them down.
type proxy struct {
	listener net.Listener
	swallow  atomic.Bool  // the next reply is lost and its connection stays open
	cut      atomic.Bool  // the next reply is lost with its connection
	delay    atomic.Int64 // nanoseconds before each reply
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(down, upstream) })
		}
	})
	// Cleanups run last in, first out: the clients opened later are closed by then.
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// serve ends when the client goes.
func (p *proxy) serve(down net.Conn, upstream string) {
	defer down.Close()
	up, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	var replies sync.WaitGroup
	defer replies.Wait()
	defer up.Close()
	replies.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := up.Read(buf)
			if err != nil {
				return
			}
			<-time.After(time.Duration(p.delay.Load()))
			if p.swallow.CompareAndSwap(true, false) {
				continue
			}
			if p.cut.CompareAndSwap(true, false) {
				_ = down.Close()
				return
			}
			if _, err := down.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	_, _ = io.Copy(up, down)
}

// openClient is lockmgr.Open, closed with the test.
func openClient(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := lockmgr.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// newLocks returns warm locks with the default TTL.
func newLocks(t testing.TB, url string) *lockmgr.Seats {
	t.Helper()
	locks := lockmgr.NewSeats(openClient(t, url), lockmgr.DefaultTTL, nil)
	warm(t, locks)
	return locks
}

// warm makes the first connection and loads both scripts, so that a test about
// something else does not measure that.
func warm(t testing.TB, locks *lockmgr.Seats) {
	t.Helper()
	waitFor(t, "a first lock", func() bool {
		lease := locks.Acquire(t.Context(), event, []int32{0}, lockmgr.Owner{Caller: "warm", Key: "warm"})
		lease.Release(t.Context())
		return lease.Verdict == lockmgr.Acquired
	})
}

func mustAcquire(t testing.TB, locks *lockmgr.Seats, owner lockmgr.Owner, seats ...int32) lockmgr.Lease {
	t.Helper()
	lease := locks.Acquire(t.Context(), event, seats, owner)
	if lease.Verdict != lockmgr.Acquired {
		t.Fatalf("%s got %v %v, want acquired", owner.Caller, lease.Verdict, lease.Busy)
	}
	return lease
}

// keys lists all that is in Redis, in order.
func keys(t testing.TB, rdb *redis.Client) []string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	const patience = 10 * time.Second
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// tally counts outcomes.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(outcome string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[outcome]++
}

func (c *tally) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

func (c *tally) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.n)
}
