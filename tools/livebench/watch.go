package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	sampled    = 25   // one viewer of so many looks into its messages; so do all that stall
	tinyBuffer = 2048 // bytes of a viewer that stalls, so that what it does not read stays with the server
	atOnce     = 64   // that connect
	reportWait = 20 * time.Second
)

// crowd is what the viewers have seen. A delivery is a change that has reached one viewer, by itself or merged with others. Times are ms from
// the change until it was read. Maps are those that were compared with the house, seat by seat; those that stalled read on before.
type crowd struct {
	Delivered, Wanted int64
	P50, P99          float64
	Maps, WrongMaps   int
}

func (c *crowd) read(line string) error { return json.Unmarshal([]byte(line), c) }

// viewer is a socket that watches.
type viewer struct {
	seen    atomic.Int64 // changes that have arrived, and no hole
	holes   atomic.Int64
	samples bool
	stalls  chan struct{} // reads nothing before that is closed; nil for who does not stall

	mu     sync.Mutex
	delays []float64
	house  []byte // states of the seats, of one who looks into its messages
}

// watch is the process of the viewers: it prints a line when all are connected, and one with what they have seen.
func watch(what string) {
	raise()
	part := strings.Split(what, ",")
	n, _ := strconv.Atoi(part[2])
	stalled, _ := strconv.Atoi(part[3])
	list := make([]*viewer, n)
	var ready sync.WaitGroup
	turns, wake := make(chan struct{}, atOnce), make(chan struct{})
	for i := range n {
		ready.Add(1)
		turns <- struct{}{}
		go func() {
			v := &viewer{samples: i%sampled == 0}
			if i >= n-stalled {
				v.samples, v.stalls = true, wake
			}
			if v.samples {
				v.house = make([]byte, houseSeats+1)
			}
			list[i] = v
			r, err := connect(part[0], part[1], v.stalls != nil)
			if err != nil {
				panic(err)
			}
			<-turns
			v.follow(part[0], r, &ready)
		}()
	}
	ready.Wait()
	fmt.Println("connected")
	lines := bufio.NewScanner(os.Stdin)
	if !lines.Scan() {
		return
	}
	last, _ := strconv.ParseInt(strings.TrimPrefix(lines.Text(), "report "), 10, 64)
	report := crowd{Wanted: last * int64(n-stalled)}
	for deadline := time.Now().Add(reportWait); time.Now().Before(deadline) && report.Delivered < report.Wanted; time.Sleep(50 * time.Millisecond) {
		report.Delivered = 0
		for _, v := range list[:n-stalled] {
			if v.holes.Load() == 0 {
				report.Delivered += v.seen.Load()
			}
		}
	}
	report.times(list[:n-stalled])
	if part[0] == "seatfence" {
		close(wake)
		report.compare(list, last)
	}
	body, _ := json.Marshal(report)
	fmt.Println(string(body))
	lines.Scan()
}

func (c *crowd) times(list []*viewer) {
	var delays []float64
	for _, v := range list {
		v.mu.Lock()
		delays = append(delays, v.delays...)
		v.mu.Unlock()
	}
	slices.Sort(delays)
	if len(delays) > 0 {
		c.P50, c.P99 = delays[len(delays)/2], delays[len(delays)*99/100]
	}
}

// compare looks whether those who keep a map have the right one after the last change.
func (c *crowd) compare(list []*viewer, last int64) {
	truth := make([]byte, houseSeats+1)
	for seq := range last {
		truth[seatOf(seq+1)] = byte(seat{Fence: seq + 1}.state())
	}
	deadline := time.Now().Add(reportWait)
	for _, v := range list {
		if v.house == nil {
			continue
		}
		for v.seen.Load() < last && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		c.Maps++
		v.mu.Lock()
		if !bytes.Equal(v.house, truth) {
			c.WrongMaps++
		}
		v.mu.Unlock()
	}
}

// connect shakes hands and asks for the map.
func connect(kind, addr string, tiny bool) (*bufio.Reader, error) {
	var d net.Dialer
	if tiny { // before the connection, whose window it limits
		d.Control = func(_, _ string, c syscall.RawConn) error {
			var set error
			err := c.Control(func(fd uintptr) {
				set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, tinyBuffer)
			})
			return errors.Join(err, set)
		}
	}
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", addr)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 4096)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("status %d", answer.StatusCode)
	}
	first := []string{`{"type":"hello","protocol":1}`, `{"type":"view"}`}
	if strings.HasPrefix(kind, "centrifuge") {
		first = []string{`{"id":1,"connect":{}}`}
	}
	for _, text := range first {
		if _, err := conn.Write(masked(text)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// masked is a short text frame of a client, with a mask of zeros.
func masked(text string) []byte {
	return append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

// follow reads until the connection ends. ready is told when the map is there.
func (v *viewer) follow(kind string, r *bufio.Reader, ready *sync.WaitGroup) {
	read := v.ours
	if strings.HasPrefix(kind, "centrifuge") {
		read = v.theirs
	}
	var buffer []byte
	begun := false
	for {
		frame, err := next(r, &buffer)
		if err != nil {
			return
		}
		if read(frame, time.Now()) && !begun {
			begun = true
			ready.Done()
			if v.stalls != nil {
				<-v.stalls
			}
		}
	}
}

// next reads the content of a frame of a server.
func next(r *bufio.Reader, buffer *[]byte) ([]byte, error) {
	head, err := r.Peek(2)
	if err != nil {
		return nil, err
	}
	n, size := 2, int(head[1]&0x7f)
	switch size {
	case 126:
		n = 4
	case 127:
		n = 10
	}
	head, err = r.Peek(n)
	if err != nil {
		return nil, err
	}
	switch size {
	case 126:
		size = int(binary.BigEndian.Uint16(head[2:]))
	case 127:
		size = int(binary.BigEndian.Uint64(head[2:]))
	}
	_, _ = r.Discard(n)
	if cap(*buffer) < size {
		*buffer = make([]byte, size)
	}
	frame := (*buffer)[:size]
	_, err = io.ReadFull(r, frame)
	return frame, err
}

func number(frame []byte, name string) int64 {
	i := bytes.Index(frame, []byte(name))
	if i < 0 {
		return -1
	}
	n := int64(0)
	for _, c := range frame[i+len(name):] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// ours reads a frame of this project's. It reports whether the map is there.
func (v *viewer) ours(frame []byte, now time.Time) bool {
	switch {
	case bytes.HasPrefix(frame, []byte(`{"type":"view"`)):
		if v.samples {
			v.show(frame)
		}
		v.seen.Store(number(frame, `"seq":`))
		return true
	case bytes.HasPrefix(frame, []byte(`{"type":"seats"`)):
		from, seq := number(frame, `"from":`), number(frame, `"seq":`)
		if from > v.seen.Load() {
			v.holes.Add(1)
		}
		if v.samples && seq > v.seen.Load() {
			v.apply(frame, now)
		}
		v.seen.Store(max(seq, v.seen.Load()))
		return true
	}
	return false
}

// show replaces a map by the state of all seats.
func (v *viewer) show(frame []byte) {
	var said struct{ States []byte }
	if json.Unmarshal(frame, &said) != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, four := range said.States {
		for at := range 4 {
			v.house[4*i+at+1] = four >> (2 * at) & 3
		}
	}
}

// apply changes seats of a map.
func (v *viewer) apply(frame []byte, now time.Time) {
	var said struct{ Cells [][4]int64 }
	if json.Unmarshal(frame, &said) != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range said.Cells {
		v.house[c[0]] = byte(c[1])
		v.delays = append(v.delays, float64(now.UnixMicro()-c[3])/1000)
	}
}

// theirs reads a frame of centrifuge's: one or more objects in lines.
func (v *viewer) theirs(frame []byte, now time.Time) bool {
	if n := int64(bytes.Count(frame, []byte(`"pub":`))); n > 0 {
		v.seen.Add(n)
		if v.samples {
			for line := range bytes.Lines(frame) {
				var said struct {
					Push struct {
						Pub struct{ Data [2]json.RawMessage }
					}
				}
				var cell [4]int64
				if json.Unmarshal(line, &said) == nil && json.Unmarshal(said.Push.Pub.Data[1], &cell) == nil {
					v.mu.Lock()
					v.delays = append(v.delays, float64(now.UnixMicro()-cell[3])/1000)
					v.mu.Unlock()
				}
			}
		}
	}
	return true
}
