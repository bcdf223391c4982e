package realtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatfence/realtime"
)

// shown is a message of a board: of some cells, or of all.
type shown struct {
	Type, Epoch string
	From, Seq   int64
	Cells       [][2]int64
}

func message(kind, epoch string, from, seq int64, cells []realtime.Cell[int64]) []byte {
	m := shown{kind, epoch, from, seq, make([][2]int64, len(cells))}
	for i, c := range cells {
		m.Cells[i] = [2]int64{c.ID, c.Value}
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func newBoard(s *site) *realtime.Board[int64] {
	return realtime.NewBoard(s.Hub, realtime.Format[int64]{
		Delta: func(epoch string, from, seq int64, cells []realtime.Cell[int64]) []byte {
			return message("delta", epoch, from, seq, cells)
		},
		Whole: func(epoch string, seq int64, cells []realtime.Cell[int64]) []byte {
			return message("whole", epoch, 0, seq, cells)
		},
	})
}

func cellsOf(state map[int64]int64) (cells []realtime.Cell[int64]) {
	for id, v := range state {
		cells = append(cells, realtime.Cell[int64]{ID: id, Value: v})
	}
	return cells
}

// viewer keeps what a client has of a board, by the rules that clients go by.
type viewer struct {
	*tab
	epoch  string
	seq    int64
	cells  map[int64]int64
	deltas int
	wholes int
}

// until reads until the viewer is at a position.
func (v *viewer) until(epoch string, seq int64) {
	v.t.Helper()
	for v.epoch != epoch || v.seq < seq {
		var m shown
		if err := json.Unmarshal(v.hear(), &m); err != nil {
			v.t.Fatal(err)
		}
		switch {
		case m.Type == "whole":
			v.wholes++
			v.epoch, v.seq, v.cells = m.Epoch, m.Seq, map[int64]int64{}
		case m.Type != "delta":
			continue
		case m.Epoch != v.epoch || m.From > v.seq:
			v.t.Fatalf("a delta of %s after %d, at %s %d", m.Epoch, m.From, v.epoch, v.seq)
		case m.Seq <= v.seq:
			continue
		default:
			v.deltas++
			v.seq = m.Seq
		}
		for _, c := range m.Cells {
			v.cells[c[0]] = c[1]
		}
	}
}

func (v *viewer) check(state map[int64]int64) {
	v.t.Helper()
	if len(v.cells) != len(state) {
		v.t.Fatalf("client has %d cells, board %d", len(v.cells), len(state))
	}
	for id, value := range state {
		if v.cells[id] != value {
			v.t.Fatalf("cell %d is %d, and %d at the client", id, value, v.cells[id])
		}
	}
}

// TestClientsHaveTheBoardsState applies batches at random, with repetitions and new epochs, while clients come, go, and come back at what they
// have.
func TestClientsHaveTheBoardsState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			var b *realtime.Board[int64]
			s := open(t, func(c *realtime.Config) { c.Flush = 3 * time.Millisecond }, func(x *realtime.Session, kind string, frame []byte) {
				var m shown
				if err := json.Unmarshal(frame, &m); err != nil {
					t.Error(err)
				}
				if kind == "leave" {
					b.Leave(x)
				} else if err := b.Join(x, m.Epoch, m.Seq); err != nil {
					t.Error(err)
				}
			})
			b = newBoard(s)
			defer b.Close()
			state := map[int64]int64{}
			for id := range int64(200) {
				state[id] = 0
			}
			epoch, seq := "a", int64(1)
			b.Reset(epoch, seq, cellsOf(state))
			viewers := make([]*viewer, 6)
			for i := range viewers {
				viewers[i] = &viewer{tab: s.connect(t, "")}
				viewers[i].say(`{"type":"join"}`)
			}
			for range 400 {
				switch dice := random.IntN(40); {
				case dice == 0:
					epoch, seq = epoch+"b", random.Int64N(50)
					delete(state, random.Int64N(200))
					b.Reset(epoch, seq, cellsOf(state))
				case dice < 4:
					v := viewers[random.IntN(len(viewers))]
					v.say(`{"type":"leave"}`)
					v.say(fmt.Sprintf(`{"type":"join","epoch":%q,"seq":%d}`, v.epoch, v.seq))
					v.until(epoch, seq)
					v.check(state)
				case dice < 5:
					i := random.IntN(len(viewers))
					v := viewers[i]
					_ = v.Close()
					v.tab = s.connect(t, v.welcome.Token)
					v.say(fmt.Sprintf(`{"type":"join","epoch":%q,"seq":%d}`, v.epoch, v.seq))
				case dice < 8:
					if err := b.Apply(realtime.Batch[int64]{Epoch: epoch, From: seq + 1, Seq: seq + 2}); !errors.Is(err, realtime.ErrGap) {
						t.Fatalf("a gap: %v", err)
					}
				default:
					n := 1 + random.Int64N(3)
					batch := realtime.Batch[int64]{Epoch: epoch, From: seq - random.Int64N(2), Seq: seq + n}
					for range random.IntN(1 + random.IntN(100)) {
						id, value := random.Int64N(200), random.Int64()
						state[id] = value
						batch.Cells = append(batch.Cells, realtime.Cell[int64]{ID: id, Value: value})
					}
					seq += n
					for range 2 { // also when it comes twice
						if err := b.Apply(batch); err != nil {
							t.Fatal(err)
						}
					}
				}
				if random.IntN(10) == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			deltas, wholes := 0, 0
			for _, v := range viewers {
				v.until(epoch, seq)
				v.check(state)
				deltas, wholes = deltas+v.deltas, wholes+v.wholes
			}
			if deltas < 20 || wholes < 20 {
				t.Errorf("%d deltas and %d snapshots: one of them was hardly tried", deltas, wholes)
			}
			if n := b.Members(); n != len(viewers) {
				t.Errorf("%d members", n)
			}
		})
	}
}

// TestStalledClientIsClosedWhileOthersGoOn has one client read nothing at all and another read slowly, under changes of 100 KB a second.
func TestStalledClientIsClosedWhileOthersGoOn(t *testing.T) {
	t.Parallel()
	t.Run("TCP", func(t *testing.T) {
		t.Parallel()
		stall(t, "n1")
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		stall(t, secretNode)
	})
}

func stall(t *testing.T, node string) {
	const limit, cells = 3 * time.Second, 3000
	var b *realtime.Board[int64]
	s := open(t, func(c *realtime.Config) { c.SlowLimit, c.Node = limit, node }, func(x *realtime.Session, _ string, _ []byte) {
		if err := b.Join(x, "", 0); err != nil {
			t.Error(err)
		}
	})
	b = newBoard(s)
	defer b.Close()
	state := map[int64]int64{}
	for id := range int64(cells) {
		state[id] = 1 << 60
	}
	b.Reset("a", 1, cellsOf(state))
	stalled, slow, quick := s.narrow(t, 4<<10), &viewer{tab: s.narrow(t, 64<<10)}, &viewer{tab: s.connect(t, "")}
	for _, c := range []*tab{stalled, slow.tab, quick.tab} {
		c.say(`{"type":"join"}`)
	}
	seq := int64(1)
	var slowly sync.WaitGroup
	var change sync.Mutex
	done := make(chan struct{})
	slowly.Go(func() { // one frame in a while, of which it has to hear a dozen
		for {
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
			change.Lock()
			now := seq
			change.Unlock()
			slow.until("a", max(slow.seq+1, min(now, 2)))
		}
	})
	began := time.Now()
	worst := time.Duration(0)
	for s.Stats().Closed[realtime.CloseTooSlow] == 0 {
		if time.Since(began) > 3*patience {
			t.Fatalf("the stalled client is not closed: %+v", s.Stats())
		}
		batch := realtime.Batch[int64]{Epoch: "a", From: seq, Seq: seq + 1}
		for range cells / 3 {
			id := rand.Int64N(cells)
			state[id] = 1<<60 + rand.Int64N(1000)
			batch.Cells = append(batch.Cells, realtime.Cell[int64]{ID: id, Value: state[id]})
		}
		change.Lock()
		seq++
		change.Unlock()
		if err := b.Apply(batch); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		quick.until("a", seq)
		worst = max(worst, time.Since(sent))
	}
	took := time.Since(began)
	close(done)
	slowly.Wait()
	if took < limit {
		t.Errorf("closed after %s", took)
	}
	if worst > time.Second {
		t.Errorf("a quick client waited %s for what a slow one did not read", worst)
	}
	quick.check(state)
	slow.until("a", seq)
	slow.check(state)
	if st := s.Stats(); st.Open != 2 || st.Closed[realtime.CloseTooSlow] != 1 {
		t.Errorf("%+v", st)
	}
	if slow.seq == int64(slow.deltas+slow.wholes) {
		t.Error("the slow client has got every change by itself")
	}
}

func TestLaggardIsNotSentEverything(t *testing.T) {
	t.Parallel()
	var b *realtime.Board[int64]
	s := open(t, nil, func(x *realtime.Session, _ string, _ []byte) { _ = b.Join(x, "a", 1) })
	b = newBoard(s)
	defer b.Close()
	var cells []realtime.Cell[int64]
	for id := range int64(1000) {
		cells = append(cells, realtime.Cell[int64]{ID: id})
	}
	b.Reset("a", 1, cells)
	for seq := int64(1); seq < 500; seq++ {
		if err := b.Apply(realtime.Batch[int64]{Epoch: "a", From: seq, Seq: seq + 1, Cells: []realtime.Cell[int64]{{ID: seq % 3, Value: seq}}}); err != nil {
			t.Fatal(err)
		}
	}
	c := s.connect(t, "")
	for seq := int64(1); seq < 500; {
		c.say(`{"type":"join"}`)
		var m shown
		if err := json.Unmarshal(c.hear(), &m); err != nil {
			t.Fatal(err)
		}
		if m.Type != "delta" || m.From != 1 || len(m.Cells) > 3 {
			t.Fatalf("%+v", m)
		}
		seq = m.Seq
	}
}

func TestOnlyTheLastNoteCounts(t *testing.T) {
	t.Parallel()
	var b *realtime.Board[int64]
	s := open(t, nil, func(x *realtime.Session, _ string, _ []byte) { _ = b.Join(x, "", 0) })
	b = newBoard(s)
	defer b.Close()
	for i := range 100 {
		b.Note(fmt.Appendf(nil, `{"viewers":%d}`, i))
	}
	c := s.connect(t, "")
	c.say(`{"type":"join"}`)
	if got := string(c.hear()); got != `{"viewers":99}` {
		t.Error(got)
	}
}

func TestSessionLooksAtSoManyBoards(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	s.connect(t, "")
	x := <-s.last
	var err error
	for i := range 9 {
		if err != nil {
			t.Fatalf("board %d: %v", i, err)
		}
		b := newBoard(s)
		defer b.Close()
		err = b.Join(x, "", 0)
	}
	if !errors.Is(err, realtime.ErrTooMany) {
		t.Error(err)
	}
}

// narrow connects with a system that takes so many bytes for a program that does not read.
func (s *site) narrow(t *testing.T, size int) *tab {
	t.Helper()
	dialer := anyDialer
	dialer.NetDialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return conn, conn.(*net.TCPConn).SetReadBuffer(size)
	}
	conn, resp, err := dialer.DialContext(t.Context(), s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	c := &tab{Conn: conn, t: t}
	c.hello("")
	return c
}

func TestControlFramesNobodyReadsEndAConnection(t *testing.T) {
	t.Parallel()
	s := open(t, nil, nil)
	s.narrow(t, 4<<10)
	x := <-s.last
	s.expect(t, "open")
	long := []byte(`{"type":"` + strings.Repeat("x", 8000) + `"}`)
	for range 200 {
		x.Send(long)
	}
	s.expect(t, "detached")
	if s.Stats().Closed[realtime.CloseTooSlow] != 1 {
		t.Errorf("%+v", s.Stats())
	}
}

// TestRoomTellsEverythingOnce has sessions join a room while it is told something all the time.
func TestRoomTellsEverythingOnce(t *testing.T) {
	t.Parallel()
	const last = 2000
	var (
		room  = realtime.NewRoom()
		mu    sync.Mutex
		state int64 // what the room is about
	)
	s := open(t, nil, func(x *realtime.Session, _ string, _ []byte) {
		if err := room.Join(x); err != nil {
			t.Error(err)
		}
		mu.Lock()
		at := state
		mu.Unlock()
		time.Sleep(time.Millisecond) // the state travels while others are told what comes after
		room.Show(x, at, fmt.Appendf(nil, `{"type":"whole","seq":%d}`, at))
	})
	var telling sync.WaitGroup
	telling.Go(func() {
		for seq := int64(1); seq <= last; seq++ {
			mu.Lock()
			state = seq
			mu.Unlock()
			room.Send(seq, func(x *realtime.Session) []byte { return fmt.Appendf(nil, `{"type":"delta","seq":%d}`, seq) })
			time.Sleep(50 * time.Microsecond)
		}
	})
	var listening sync.WaitGroup
	for range 10 {
		c := s.connect(t, "")
		listening.Go(func() {
			_ = c.WriteMessage(websocket.TextMessage, []byte(`{"type":"join"}`))
			at := int64(-1)
			for at < last {
				var m shown
				_ = c.SetReadDeadline(time.Now().Add(patience))
				if err := c.ReadJSON(&m); err != nil {
					t.Error(err)
					return
				}
				if m.Type == "delta" && m.Seq != at+1 || m.Type == "whole" && at >= 0 {
					t.Errorf("%s %d after %d", m.Type, m.Seq, at)
					return
				}
				at = m.Seq
			}
		})
	}
	telling.Wait()
	listening.Wait()
	for _, x := range room.Members() {
		room.Leave(x)
	}
	if n := len(room.Members()); n != 0 {
		t.Errorf("%d members are left", n)
	}
}
