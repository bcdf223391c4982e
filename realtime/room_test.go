package realtime_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seatfence/realtime"
)

// TestRoomShowsTheStateAnewToWhoDidNotKeepUp tells a room more at once than a client takes that does not read for a while.
func TestRoomShowsTheStateAnewToWhoDidNotKeepUp(t *testing.T) {
	t.Parallel()
	const last = 5000
	var state atomic.Int64
	room := realtime.NewRoom()
	show := func(x *realtime.Session) {
		at := state.Load()
		room.Show(x, at, fmt.Appendf(nil, `{"type":"whole","seq":%d}`, at))
	}
	s := open(t, nil, func(x *realtime.Session, _ string, _ []byte) {
		if err := room.Join(x); err != nil {
			t.Error(err)
		}
		show(x)
	})
	c := s.connect(t, "")
	c.say(`{"type":"join"}`)
	if got := string(c.hear()); got != `{"type":"whole","seq":0}` {
		t.Fatal(got)
	}
	long := strings.Repeat("x", 1000)
	for seq := int64(1); seq <= last; seq++ {
		state.Store(seq)
		room.Send(seq, func(*realtime.Session) []byte {
			return fmt.Appendf(nil, `{"type":"delta","seq":%d,"text":%q}`, seq, long)
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if late := room.Late(); len(late) > 0 {
				state.Add(1)
				room.Send(state.Load(), func(*realtime.Session) []byte { return fmt.Appendf(nil, `{"type":"delta","seq":%d}`, state.Load()) })
				show(late[0])
				return
			}
		}
		t.Error("the client is not shown the state")
	}()
	heard, at := 0, int64(0)
	for at <= last {
		m := read(t, c)
		if m.Type == "delta" && m.Seq != at+1 || m.Type == "whole" && m.Seq <= at {
			t.Fatalf("%s %d after %d", m.Type, m.Seq, at)
		}
		heard, at = heard+1, m.Seq
	}
	<-over
	if heard >= last {
		t.Errorf("the client was told %d messages", heard)
	}
	room.Send(state.Add(1), func(*realtime.Session) []byte { return fmt.Appendf(nil, `{"type":"delta","seq":%d}`, state.Load()) })
	if m := read(t, c); m.Seq != at+1 {
		t.Errorf("after %d comes %d", at, m.Seq)
	}
}

func read(t *testing.T, c *tab) (m shown) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if err := c.ReadJSON(&m); err != nil {
		t.Fatal(err)
	}
	return m
}
