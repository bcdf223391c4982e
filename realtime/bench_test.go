package realtime_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seatfence/realtime"
)

// crowdOf, in the environment, makes the test binary a crowd of clients: they measure nothing of the server but what reaches them.
const crowdOf = "REALTIME_CROWD_OF"

// crowd is what the clients of another process have seen.
type crowd struct {
	Bytes, Updates int64 // of all clients; of those that look at each
	P50, P99, Max  float64
}

// BenchmarkFanOut has clients of another process watch a board with 160 changes a second, for five seconds. It reports the memory of a
// connection, the processors that the server was busy on, how long changes took and what part of them arrived.
//
//	go test -run '^$' -bench FanOut -benchtime 1x ./realtime
func BenchmarkFanOut(b *testing.B) {
	for _, c := range []struct{ clients, stalled int }{{1000, 0}, {5000, 0}, {5000, 50}} {
		b.Run(fmt.Sprintf("clients=%d/stalled=%d", c.clients, c.stalled), func(b *testing.B) {
			for b.Loop() {
				fanOut(b, c.clients, c.stalled)
			}
		})
	}
}

func fanOut(b *testing.B, clients, stalled int) {
	const rate, long, seats = 160, 5 * time.Second, 20_000
	var board *realtime.Board[int64]
	s := open(b, func(c *realtime.Config) { c.Flush, c.Grace = 0, time.Millisecond }, func(x *realtime.Session, _ string, _ []byte) {
		_ = board.Join(x, "", 0)
	})
	board = realtime.NewBoard(s.Hub, realtime.Format[int64]{
		Delta: func(epoch string, from, seq int64, cells []realtime.Cell[int64]) []byte {
			return message("delta", epoch, from, seq, cells)
		},
		Whole: func(epoch string, seq int64, _ []realtime.Cell[int64]) []byte {
			return fmt.Appendf(nil, `{"type":"whole","epoch":%q,"seq":%d,"states":%q}`, epoch, seq, strings.Repeat("x", seats/3))
		},
	})
	defer board.Close()
	cells := make([]realtime.Cell[int64], seats)
	for i := range cells {
		cells[i].ID = int64(i)
	}
	board.Reset("a", 1, cells)
	before := resident(b)
	stop := gather(b, strings.TrimPrefix(s.url, "ws://"), clients, stalled)
	for board.Members() < clients {
		time.Sleep(10 * time.Millisecond)
	}
	for len(s.last) > 0 {
		<-s.last
	}
	after := resident(b)
	busy, began := busyTime(b), time.Now()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	sent := int64(0)
	for now := began; now.Sub(began) < long; now = <-tick.C {
		for ; sent < int64(rate*now.Sub(began)/time.Second); sent++ {
			cell := realtime.Cell[int64]{ID: sent * 7 % seats, Value: time.Now().UnixMicro()}
			if err := board.Apply(realtime.Batch[int64]{Epoch: "a", From: sent + 1, Seq: sent + 2, Cells: []realtime.Cell[int64]{cell}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	cores := (busyTime(b) - busy).Seconds() / time.Since(began).Seconds()
	time.Sleep(time.Second)
	seen := stop()
	watching := int64((clients - stalled + every - 1) / every)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(after-before)/float64(clients)/1024, "KB/conn")
	b.ReportMetric(cores, "cores")
	b.ReportMetric(seen.P50, "p50-ms")
	b.ReportMetric(seen.P99, "p99-ms")
	b.ReportMetric(seen.Max, "max-ms")
	b.ReportMetric(100*float64(seen.Updates)/float64(sent*watching), "%delivered")
	b.ReportMetric(float64(sent)*float64(clients)/long.Seconds(), "updates/s")
}

// resident returns the bytes of memory that the process has, without garbage.
func resident(b *testing.B) int64 {
	b.Helper()
	for range 3 {
		runtime.GC()
		debug.FreeOSMemory()
		time.Sleep(100 * time.Millisecond)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func busyTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// gather starts a process of clients. What it returns ends them and tells what they saw.
func gather(b *testing.B, addr string, clients, stalled int) func() crowd {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", crowdOf, addr, clients, stalled))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return func() (seen crowd) {
		_ = in.Close()
		if err := json.NewDecoder(out).Decode(&seen); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		return seen
	}
}

// every is which part of the clients looks at what it gets: looking costs more than sending does.
const every = 16

// beCrowd is the process of clients.
func beCrowd(order string) {
	var addr string
	var clients, stalled int
	if _, err := fmt.Sscan(order, &addr, &clients, &stalled); err != nil {
		panic(err)
	}
	var (
		seen   crowd
		bytes  atomic.Int64
		mu     sync.Mutex
		took   []float64
		asleep []net.Conn
		join   sync.WaitGroup
		turns  = make(chan struct{}, 64)
	)
	for i := range clients {
		turns <- struct{}{}
		join.Go(func() {
			conn, err := dialRaw(addr)
			if err != nil {
				panic(err)
			}
			hello := `{"type":"join"}`
			_, _ = conn.Write(append([]byte{0x81, 0x80 | byte(len(hello)), 0, 0, 0, 0}, hello...))
			<-turns
			switch {
			case i < stalled:
				mu.Lock()
				defer mu.Unlock()
				asleep = append(asleep, conn) // else it would be closed as garbage
			case (i-stalled)%every == 0:
				go look(conn, func(age float64) {
					mu.Lock()
					defer mu.Unlock()
					took = append(took, age)
				})
			default:
				go pass(conn, &bytes)
			}
		})
	}
	join.Wait()
	_, _ = io.Copy(io.Discard, os.Stdin)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(took)
	seen.Bytes, seen.Updates = bytes.Load(), int64(len(took))
	if n := len(took); n > 0 {
		seen.P50, seen.P99, seen.Max = took[n/2], took[n*99/100], took[n-1]
	}
	_ = json.NewEncoder(os.Stdout).Encode(seen)
	runtime.KeepAlive(asleep)
}

var scraps = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// pass reads and forgets.
func pass(conn net.Conn, bytes *atomic.Int64) {
	for {
		p := scraps.Get().(*[16 << 10]byte)
		n, err := conn.Read(p[:])
		scraps.Put(p)
		if err != nil {
			return
		}
		bytes.Add(int64(n))
	}
}

// look reads frames and tells how old each change is, in ms.
func look(conn net.Conn, tell func(float64)) {
	r := bufio.NewReader(conn)
	for {
		var head [10]byte
		if _, err := io.ReadFull(r, head[:2]); err != nil {
			return
		}
		n := uint64(head[1])
		switch n {
		case 126:
			_, _ = io.ReadFull(r, head[:2])
			n = uint64(binary.BigEndian.Uint16(head[:]))
		case 127:
			_, _ = io.ReadFull(r, head[:8])
			n = binary.BigEndian.Uint64(head[:])
		}
		p := make([]byte, n)
		if _, err := io.ReadFull(r, p); err != nil {
			return
		}
		var m shown
		if json.Unmarshal(p, &m) != nil || m.Type != "delta" {
			continue
		}
		now := time.Now().UnixMicro()
		for _, c := range m.Cells {
			tell(float64(now-c[1]) / 1000)
		}
	}
}
