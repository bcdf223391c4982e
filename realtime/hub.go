package realtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// MaxFrame is the longest message of a client, in bytes.
	MaxFrame = 4096
	// Protocol is the one version that there is.
	Protocol = 1

	handshakeWait = 5 * time.Second
	framesASecond = 20
	framesAtOnce  = 40
	maxToken      = 256 // bytes
	readBuffer    = MaxFrame + longestHead
	reapers       = 16 // sessions that are ended at once
	drainFast     = 2 * time.Second
	drainWait     = 2 * time.Second
	drainTick     = 20 * time.Millisecond
)

// Config is the settings of a Hub. Durations and counts of 0 mean what stands beside them.
type Config struct {
	Node    string   // this process; new each time that it starts
	Key     []byte   // signs tokens; the same on all nodes
	Origins []string // scheme and host of the pages that may connect; the first is our own
	Log     *slog.Logger

	MaxSockets int           // 20,000
	HelloWait  time.Duration // 5 s for the first frame
	Ping       time.Duration // 25 s of silence before a ping
	Pong       time.Duration // 10 s for its answer
	FastPing   time.Duration // 4 s for either, for sessions with Watch
	Grace      time.Duration // 8 s for a tab to come back
	Flush      time.Duration // 100 ms between frames of a board
	SlowLimit  time.Duration // 30 s without progress of a client
}

// Why Serve does not accept a connection.
var (
	ErrOrigin    = errors.New("pages of this origin may not connect")
	ErrFull      = errors.New("as many connections as there may be")
	ErrDraining  = errors.New("the server stops")
	ErrHandshake = errors.New("not a handshake of a WebSocket")
)

// Hub is the connections of a node. It is safe for concurrent use.
type Hub struct {
	cfg      Config
	handler  Handler
	signer   signer
	upgrader websocket.Upgrader
	buffers  sync.Pool // *[readBuffer]byte
	shards   []*shard
	stats    stats
	stop     chan struct{}
	halt     sync.Once
	wait     sync.WaitGroup // of every goroutine

	mu       sync.Mutex
	open     int // connections
	turn     int // the shard of the next one
	draining bool
	lives    map[string]*life
	detached []departure // the oldest first
	boards   map[publisher]struct{}
}

// publisher is a board as the clock knows it.
type publisher interface{ publish() }

// shard is the connections that one goroutine serves.
type shard struct {
	kick    chan struct{}
	mu      sync.Mutex
	sockets []*socket
	round   []*socket // of the goroutine alone
}

// New returns a running hub. Its owner owes a Stop.
func New(cfg Config, handler Handler) (*Hub, error) {
	if cfg.Node == "" || len(cfg.Key) == 0 || len(cfg.Origins) == 0 {
		return nil, errors.New("realtime: a hub needs a node, a key and an origin")
	}
	sign, err := newSigner(cfg.Key)
	if err != nil {
		return nil, err
	}
	cfg.defaults()
	h := &Hub{
		cfg: cfg, handler: handler, signer: sign, stop: make(chan struct{}),
		lives: map[string]*life{}, boards: map[publisher]struct{}{}, stats: stats{closed: map[int]int64{}},
		upgrader: websocket.Upgrader{
			HandshakeTimeout: handshakeWait, ReadBufferSize: 1, WriteBufferPool: &sync.Pool{},
			CheckOrigin: func(*http.Request) bool { return true }, // allowed has looked
			Error:       func(http.ResponseWriter, *http.Request, int, error) {},
		},
		buffers: sync.Pool{New: func() any { return new([readBuffer]byte) }},
	}
	for range runtime.GOMAXPROCS(0) {
		h.shards = append(h.shards, &shard{kick: make(chan struct{}, 1)})
	}
	for _, sh := range h.shards {
		h.wait.Go(sh.serve)
	}
	h.wait.Go(h.clock)
	h.wait.Go(h.reap)
	return h, nil
}

func (c *Config) defaults() {
	or := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	or(&c.HelloWait, 5*time.Second)
	or(&c.Ping, 25*time.Second)
	or(&c.Pong, 10*time.Second)
	or(&c.FastPing, 4*time.Second)
	or(&c.Grace, 8*time.Second)
	or(&c.Flush, 100*time.Millisecond)
	or(&c.SlowLimit, 30*time.Second)
	if c.MaxSockets == 0 {
		c.MaxSockets = 20_000
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// clock publishes the boards and wakes the shards, once in each window.
func (h *Hub) clock() {
	tick := time.NewTicker(h.cfg.Flush)
	defer tick.Stop()
	defer func() {
		for _, sh := range h.shards {
			close(sh.kick)
		}
	}()
	for {
		select {
		case <-h.stop:
			return
		case <-tick.C:
			for _, b := range h.published() {
				b.publish()
			}
			for _, sh := range h.shards {
				select {
				case sh.kick <- struct{}{}:
				default: // it is still at the last round
				}
			}
		}
	}
}

func (h *Hub) published() []publisher {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]publisher, 0, len(h.boards))
	for b := range h.boards {
		list = append(list, b)
	}
	return list
}

func (sh *shard) serve() {
	for range sh.kick {
		sh.mu.Lock()
		sh.round = append(sh.round[:0], sh.sockets...)
		sh.mu.Unlock()
		now := time.Now().UnixNano()
		for _, s := range sh.round {
			s.turn(now)
		}
		clear(sh.round) // it would keep those alive that have gone
	}
}

func (sh *shard) add(s *socket) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.place = len(sh.sockets)
	sh.sockets = append(sh.sockets, s)
}

func (sh *shard) remove(s *socket) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	last := len(sh.sockets) - 1
	sh.sockets[s.place] = sh.sockets[last]
	sh.sockets[s.place].place = s.place
	sh.sockets[last] = nil
	sh.sockets = sh.sockets[:last]
}

// Serve takes over the connection of a caller who is known, and returns: a goroutine of the hub reads it, so that nothing of the request stays
// in memory. After one of the errors above the caller answers; after nil it must not.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, p Principal) error {
	if !h.allowed(r, p) {
		return ErrOrigin
	}
	if !websocket.IsWebSocketUpgrade(r) {
		return ErrHandshake
	}
	sh, err := h.enter()
	if err != nil {
		return err
	}
	ws, err := h.upgrader.Upgrade(w, r, nil)
	if err != nil {
		h.leave()
		if _, ok := errors.AsType[websocket.HandshakeError](err); ok {
			return fmt.Errorf("%w: %w", ErrHandshake, err)
		}
		return nil // the connection was taken over, and has broken
	}
	now := time.Now()
	sock := newSocket(ws.NetConn(), h, now)
	sock.shard = sh
	sh.add(sock)
	h.mu.Lock()
	draining := h.draining
	h.mu.Unlock()
	if draining { // since enter, and it may have passed this one by
		sock.cut()
	}
	if sock.raw == nil {
		h.wait.Go(sock.writer)
	}
	go newReader(sock, p, now).run() // counted since enter
	return nil
}

// allowed reports whether a page may connect. Programs have no origin; they cannot be made to use somebody's cookie. A cookie is believed
// from our own pages alone, by whatever name of this server they were loaded.
func (h *Hub) allowed(r *http.Request, p Principal) bool {
	origin := r.Header.Get("Origin")
	if p.Origin != "" {
		return origin == p.Origin
	}
	if p.Cookie {
		scheme, _, _ := strings.Cut(h.cfg.Origins[0], "://")
		return origin == h.cfg.Origins[0] || origin == scheme+"://"+r.Host
	}
	return origin == "" || slices.Contains(h.cfg.Origins, origin)
}

func (h *Hub) enter() (*shard, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.draining:
		return nil, ErrDraining
	case h.open == h.cfg.MaxSockets:
		return nil, ErrFull
	}
	h.open++
	h.turn = (h.turn + 1) % len(h.shards)
	h.wait.Add(1) // until leave, so that Stop waits for who is between here and their goroutine
	return h.shards[h.turn], nil
}

func (h *Hub) leave() {
	h.mu.Lock()
	h.open--
	h.mu.Unlock()
	h.wait.Done()
}

// release takes a connection from its boards and rooms.
func (h *Hub) release(sock *socket) {
	sock.mu.Lock()
	subs, rooms := sock.subs, sock.rooms
	sock.subs, sock.rooms = nil, nil
	sock.mu.Unlock()
	for _, sub := range subs {
		sub.board.count(-1)
	}
	for _, r := range rooms {
		r.remove(sock)
	}
}

// sockets returns the connections of this moment.
func (h *Hub) sockets() (list []*socket) {
	for _, sh := range h.shards {
		sh.mu.Lock()
		list = append(list, sh.sockets...)
		sh.mu.Unlock()
	}
	return list
}

// Sessions returns the sessions that are connected.
func (h *Hub) Sessions() (list []*Session) {
	for _, sock := range h.sockets() {
		if s := sock.session.Load(); s != nil {
			list = append(list, s)
		}
	}
	return list
}

// Drain accepts no more connections and asks every client to come back after a wait of its own: evenly over spread, but at most 2 seconds for
// sessions with Watch, which hold locks. Clients close by themselves; those that have not within 2 seconds, or at the end of ctx, are closed.
// From now on no session expires here: it may go on elsewhere.
func (h *Hub) Drain(ctx context.Context, spread time.Duration) {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	socks := h.sockets()
	rand.Shuffle(len(socks), func(i, j int) { socks[i], socks[j] = socks[j], socks[i] })
	for i, sock := range socks {
		after := spread.Seconds() * (float64(i) + rand.Float64()) / float64(len(socks))
		if sock.fast.Load() && spread > drainFast {
			after *= drainFast.Seconds() / spread.Seconds()
		}
		sock.send(encodeText(fmt.Appendf(nil, `{"type":"drain","retry_after":%.2f}`, after)))
	}
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	h.empty(ctx)
	for _, sock := range h.sockets() {
		sock.close(CloseRestart, "this server stops")
	}
}

// empty waits until there is no connection, or for the end of ctx.
func (h *Hub) empty(ctx context.Context) {
	tick := time.NewTicker(drainTick)
	defer tick.Stop()
	for h.Stats().Open > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Stop closes every connection and waits for every goroutine. At the end of ctx connections are cut; a handler that still runs is waited for.
// It may be called twice. Sessions get Detached but not Closed: they may go on elsewhere.
func (h *Hub) Stop(ctx context.Context) {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	for _, sock := range h.sockets() {
		sock.close(CloseRestart, "this server stops")
	}
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	h.empty(ctx)
	h.halt.Do(func() { close(h.stop) })
	for _, sock := range h.sockets() {
		sock.cut()
	}
	h.wait.Wait()
}
