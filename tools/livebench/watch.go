package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
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
	"time"
)

const (
	sampled    = 25 // one viewer of so many looks into its messages
	atOnce     = 64 // that connect
	reportWait = 20 * time.Second
)

// crowd is what the viewers have seen. A delivery is a change that has reached one viewer, by itself or merged with others. Times are ms from
// the change until it was read.
type crowd struct {
	Delivered, Wanted int64
	P50, P99          float64
}

func (c *crowd) read(line string) error { return json.Unmarshal([]byte(line), c) }

// viewer is a socket that watches.
type viewer struct {
	seen    atomic.Int64 // changes that have arrived, and no hole
	holes   atomic.Int64
	delays  []float64
	samples bool
}

// watch is the process of the viewers: it prints a line when all are connected, and one with what they have seen.
func watch(what string) {
	raise()
	part := strings.Split(what, ",")
	n, _ := strconv.Atoi(part[2])
	stalled, _ := strconv.Atoi(part[3])
	list := make([]*viewer, n-stalled)
	var ready sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range n {
		ready.Add(1)
		turns <- struct{}{}
		go func() {
			v := &viewer{samples: i%sampled == 0}
			if i < len(list) {
				list[i] = v
			}
			r, err := connect(part[0], part[1])
			if err != nil {
				panic(err)
			}
			<-turns
			if i >= len(list) { // reads nothing any more
				ready.Done()
				select {}
			}
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
	report := crowd{Wanted: last * int64(len(list))}
	for deadline := time.Now().Add(reportWait); time.Now().Before(deadline) && report.Delivered < report.Wanted; time.Sleep(50 * time.Millisecond) {
		report.Delivered = 0
		for _, v := range list {
			if v.holes.Load() == 0 {
				report.Delivered += v.seen.Load()
			}
		}
	}
	var delays []float64
	for _, v := range list {
		if v.samples {
			delays = append(delays, v.delays...)
		}
	}
	slices.Sort(delays)
	if len(delays) > 0 {
		report.P50, report.P99 = delays[len(delays)/2], delays[len(delays)*99/100]
	}
	body, _ := json.Marshal(report)
	fmt.Println(string(body))
	lines.Scan()
}

// connect shakes hands and asks for the map.
func connect(kind, addr string) (*bufio.Reader, error) {
	conn, err := net.Dial("tcp", addr)
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
		v.seen.Store(number(frame, `"seq":`))
		return true
	case bytes.HasPrefix(frame, []byte(`{"type":"seats"`)):
		from, seq := number(frame, `"from":`), number(frame, `"seq":`)
		if from > v.seen.Load() {
			v.holes.Add(1)
		}
		v.seen.Store(max(seq, v.seen.Load()))
		if v.samples {
			var said struct{ Cells [][4]int64 }
			if json.Unmarshal(frame, &said) == nil {
				for _, c := range said.Cells {
					v.delays = append(v.delays, float64(now.UnixMicro()-c[3])/1000)
				}
			}
		}
		return true
	}
	return false
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
					v.delays = append(v.delays, float64(now.UnixMicro()-cell[3])/1000)
				}
			}
		}
	}
	return true
}
