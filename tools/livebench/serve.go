package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/centrifugal/centrifuge"

	"seatfence/realtime"
)

const (
	houseSeats  = 50_000
	wantedSeats = 500
	channel     = "event:7"
)

// seat is a cell as the stream tells it: [seat, state, fence, held until]. Here the last is when it changed, in µs.
type seat struct {
	ID, Fence, At int64
}

func (s seat) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d,%d,%d]", s.ID, s.state(), s.Fence, s.At), nil
}

// state is free, held or booked.
func (s seat) state() int64 { return s.Fence % 3 }

// seatOf is the seat that a change is about: those that many want in their turn, which lie all over the house.
func seatOf(seq int64) int64 { return seq%wantedSeats*(houseSeats/wantedSeats) + 1 }

// server is one that can be told of changes.
type server interface {
	http.Handler
	change(seq int64, s seat) error
	lagged() int64 // times that a client did not take what there was for it; 0 where nobody counts that
}

// serve is the process of a server: it prints its address, and then, for each order to change seats, the last number and how many have lagged;
// told to rest, it gives back the memory that it does not need.
func serve(kind string) {
	raise()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var s server
	switch kind {
	case "seatfence":
		s = newOurs()
	case "centrifuge":
		s = newCentrifuge(0)
	case "centrifuge-delayed":
		s = newCentrifuge(100 * time.Millisecond)
	}
	go func() { _ = http.Serve(listener, s) }()
	fmt.Println(listener.Addr())
	seq := int64(0)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		debug.FreeOSMemory() // what connecting has taken
		if lines.Text() == "rest" {
			fmt.Println("rests")
			continue
		}
		var rate, seconds int
		if _, err := fmt.Sscanf(lines.Text(), "change %d %d", &rate, &seconds); err != nil {
			panic(err)
		}
		tick := time.NewTicker(time.Second / time.Duration(rate))
		began := time.Now()
		for n := 0; n < rate*seconds; {
			<-tick.C
			for due := int(time.Since(began).Seconds() * float64(rate)); n < min(due, rate*seconds); n++ { // also what a late tick has missed
				seq++
				if err := s.change(seq, seat{ID: seatOf(seq), Fence: seq, At: time.Now().UnixMicro()}); err != nil {
					panic(err)
				}
			}
		}
		tick.Stop()
		fmt.Println(seq, s.lagged())
	}
}

// ours is the sockets and a board of this project, without what stands behind them.
type ours struct {
	hub   *realtime.Hub
	board *realtime.Board[seat]
}

func newOurs() *ours {
	o := &ours{}
	var err error
	o.hub, err = realtime.New(realtime.Config{
		Node: "bench", Key: make([]byte, 32), Origins: []string{"http://bench"}, Log: slog.New(slog.DiscardHandler), MaxSockets: 1 << 20,
	}, o)
	if err != nil {
		panic(err)
	}
	o.board = realtime.NewBoard(o.hub, realtime.Format[seat]{
		Delta: func(epoch string, from, seq int64, cells []realtime.Cell[seat]) []byte {
			list := make([]seat, len(cells))
			for i, c := range cells {
				list[i] = c.Value
			}
			body, _ := json.Marshal(list)
			return fmt.Appendf(nil, `{"type":"seats","resource":%q,"epoch":%q,"from":%d,"seq":%d,"cells":%s}`, channel, epoch, from, seq, body)
		},
		Whole: func(epoch string, seq int64, cells []realtime.Cell[seat]) []byte {
			states := make([]byte, houseSeats/4)
			for _, c := range cells {
				states[(c.ID-1)/4] |= byte(c.Value.state() << (2 * ((c.ID - 1) % 4)))
			}
			return fmt.Appendf(nil, `{"type":"view","resource":%q,"epoch":%q,"seq":%d,"first":1,"states":%q,"held":[],"areas":[]}`,
				channel, epoch, seq, base64.StdEncoding.EncodeToString(states))
		},
	})
	cells := make([]realtime.Cell[seat], houseSeats)
	for i := range cells {
		cells[i].ID = int64(i + 1)
	}
	o.board.Reset("e", 0, cells)
	return o
}

func (o *ours) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = o.hub.Serve(w, r, realtime.Principal{Kind: "buyer", ID: "bench"})
}

func (o *ours) change(seq int64, s seat) error {
	return o.board.Apply(realtime.Batch[seat]{Epoch: "e", From: seq - 1, Seq: seq, Cells: []realtime.Cell[seat]{{ID: s.ID, Value: s}}})
}

func (o *ours) lagged() int64 { return o.hub.Stats().Lagged }

// The handler of the sockets: whoever says anything watches.
func (o *ours) Open(*realtime.Session)                        {}
func (o *ours) Attached(_, _ *realtime.Session)               {}
func (o *ours) Frame(s *realtime.Session, _ string, _ []byte) { _ = o.board.Join(s, "", 0) }
func (o *ours) Detached(*realtime.Session)                    {}
func (o *ours) Closed(_ *realtime.Session, _ string)          {}

// theirs is centrifuge with its memory broker: a publication for each change, as its user would send them, and a subscription by the server.
type theirs struct {
	http.Handler
	node *centrifuge.Node
}

func newCentrifuge(hold time.Duration) *theirs {
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		panic(err)
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{
			Credentials:   &centrifuge.Credentials{UserID: "bench"},
			Subscriptions: map[string]centrifuge.SubscribeOptions{channel: {}},
			WriteDelay:    hold,
		}, nil
	})
	if err := node.Run(); err != nil {
		panic(err)
	}
	return &theirs{centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{
		ReadBufferSize: 512, UseWriteBufferPool: true, CheckOrigin: func(*http.Request) bool { return true },
	}), node}
}

func (t *theirs) change(seq int64, s seat) error {
	body, err := json.Marshal([]any{seq, s})
	if err != nil {
		return err
	}
	_, err = t.node.Publish(channel, body)
	return err
}

func (t *theirs) lagged() int64 { return 0 }
