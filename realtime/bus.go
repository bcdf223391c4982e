package realtime

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	busReceive = 100 * time.Millisecond // a wait for messages, between looks at the clock and at who listens
	busPing    = time.Second            // between probes of a silent connection
	busSilent  = 3 * time.Second        // without an answer: the connection is dead, whatever it says
	busTops    = 2 * time.Second        // between looks for events that were lost without a trace
	busBudget  = time.Second            // of a question to Redis
	busBackoff = time.Second            // at most, between tries to connect
	busEvents  = 256                    // that one repair reads
)

var (
	//go:embed bus_emit.lua
	busEmitSrc string
	busEmit    = redis.NewScript(busEmitSrc)
)

// Listener hears of one topic. Its methods are called one at a time, and hold up the topics of the same partition: they must not wait.
type Listener interface {
	// Message gets what was published. At a topic in order it gets each event once, in order, after the position that was given to Follow.
	Message(epoch string, seq int64, data json.RawMessage)
	// Lost says that events are missing that cannot be had any more: the state has to be read anew, and Follow called again. At a topic without
	// order it says that something may be missing.
	Lost()
}

// Bus carries messages between nodes, over sharded channels of Redis: one connection for each partition in which somebody listens. What Redis
// loses, it finds again in the streams of topics in order.
type Bus struct {
	rdb   redis.UniversalClient
	log   *slog.Logger
	parts [partitions]*partition
	stop  context.CancelFunc
	ctx   context.Context
	wait  sync.WaitGroup
}

// NewBus returns a bus that connects when somebody listens. Its owner owes a Stop. rdb needs patience: seconds, not milliseconds.
func NewBus(rdb redis.UniversalClient, log *slog.Logger) *Bus {
	b := &Bus{rdb: rdb, log: log}
	b.ctx, b.stop = context.WithCancel(context.Background())
	for i := range b.parts {
		b.parts[i] = &partition{bus: b, topics: map[string]*hearing{}}
	}
	return b
}

// Stop ends all connections and waits for their goroutines. It may be called twice.
func (b *Bus) Stop() {
	for _, p := range b.parts {
		p.mu.Lock()
		p.stopped = true
		p.mu.Unlock()
	}
	b.stop()
	b.wait.Wait()
}

// Listen has a listener hear of a topic from now on, in place of an earlier one. ordered says that the topic has a stream: nothing is heard then
// before Follow.
func (b *Bus) Listen(topic string, ordered bool, l Listener) { b.part(topic).add(topic, ordered, l) }

// Follow says up to which event the listener of a topic knows it.
func (b *Bus) Follow(topic, epoch string, seq int64) { b.part(topic).follow(topic, epoch, seq) }

// Mute undoes Listen, unless another listener has taken the topic over.
func (b *Bus) Mute(topic string, l Listener) { b.part(topic).remove(topic, l) }

// Publish sends a message of a topic without order to all nodes. It may be lost.
func (b *Bus) Publish(ctx context.Context, topic, epoch string, seq int64, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, busBudget)
	defer cancel()
	_, _, channel, _ := TopicKeys(topic)
	text, err := json.Marshal(busMessage{epoch, seq, data})
	if err != nil {
		return fmt.Errorf("publish %s: %w", topic, err)
	}
	if err := b.rdb.SPublish(ctx, channel, text).Err(); err != nil {
		return fmt.Errorf("publish %s: %w", topic, err)
	}
	return nil
}

// Emit adds an event, a JSON object, to a topic in order.
func (b *Bus) Emit(ctx context.Context, topic string, event []byte) error {
	ctx, cancel := context.WithTimeout(ctx, busBudget)
	defer cancel()
	meta, stream, channel, _ := TopicKeys(topic)
	if err := busEmit.Run(ctx, b.rdb, []string{meta, stream, channel}, event, rosterTTL.Milliseconds()).Err(); err != nil {
		return fmt.Errorf("emit to %s: %w", topic, err)
	}
	return nil
}

func (b *Bus) part(topic string) *partition { return b.parts[partitionOf(topic)] }

// busMessage is what travels, and what the scripts publish.
type busMessage struct {
	Epoch string          `json:"e"`
	Seq   int64           `json:"s"`
	Data  json.RawMessage `json:"d"`
}

// partition is the topics of one slot, and the goroutine that hears of them while there are any. The connection is the goroutine's alone: nobody
// else waits for Redis.
type partition struct {
	bus *Bus

	mu      sync.Mutex
	topics  map[string]*hearing // by their channel
	running bool
	stopped bool
}

// hearing is a listener and its position. The position is the goroutine's, but for what Follow leaves in next.
type hearing struct {
	topic    string
	ordered  bool
	listener Listener

	epoch string // "" for no position
	seq   int64
	last  string    // the event seq itself; "" if it was not heard, but given to Follow
	next  *position // guarded by the partition
}

type position struct {
	epoch string
	seq   int64
}

func (p *partition) add(topic string, ordered bool, l Listener) {
	_, _, channel, _ := TopicKeys(topic)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.topics[channel] = &hearing{topic: topic, ordered: ordered, listener: l}
	if !p.running {
		p.running = true
		p.bus.wait.Go(p.run)
	}
}

func (p *partition) follow(topic, epoch string, seq int64) {
	_, _, channel, _ := TopicKeys(topic)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.topics[channel]; s != nil {
		s.next = &position{epoch, seq}
	}
}

func (p *partition) remove(topic string, l Listener) {
	_, _, channel, _ := TopicKeys(topic)
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.topics[channel]; h != nil && h.listener == l {
		delete(p.topics, channel)
	}
}

// run connects, and connects again, until nobody listens any more or the bus stops.
func (p *partition) run() {
	backoff := busBackoff / 16
	for p.needed() {
		began := time.Now()
		conn := p.bus.rdb.SSubscribe(p.bus.ctx) // connects with the first channel
		err := p.listen(conn)
		_ = conn.Close()
		if p.bus.ctx.Err() != nil || err == nil {
			continue
		}
		p.bus.log.Warn("connection of the stream's bus ended", "error", err)
		if time.Since(began) > busSilent {
			backoff = busBackoff / 16
		}
		select {
		case <-time.After(backoff):
		case <-p.bus.ctx.Done():
		}
		backoff = min(2*backoff, busBackoff)
		for _, s := range p.list() {
			if !s.ordered {
				s.listener.Lost()
			}
		}
	}
}

// needed reports whether somebody listens; otherwise the goroutine has to end.
func (p *partition) needed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = len(p.topics) > 0 && !p.stopped
	return p.running
}

// subscribe has a connection carry the channels that somebody listens to, and no others. have is those that it does.
func (p *partition) subscribe(conn *redis.PubSub, have map[string]bool) error {
	var more, less []string
	p.mu.Lock()
	for channel := range p.topics {
		if !have[channel] {
			more = append(more, channel)
		}
	}
	for channel := range have {
		if p.topics[channel] == nil {
			less = append(less, channel)
		}
	}
	p.mu.Unlock()
	for _, channel := range more {
		have[channel] = true
	}
	for _, channel := range less {
		delete(have, channel)
	}
	var errs []error
	if len(more) > 0 {
		errs = append(errs, conn.SSubscribe(p.bus.ctx, more...))
	}
	if len(less) > 0 {
		errs = append(errs, conn.SUnsubscribe(p.bus.ctx, less...))
	}
	return errors.Join(errs...)
}

var (
	errBusSilent = errors.New("no answer to a ping")
	errBusMoved  = errors.New("a channel was unsubscribed by the server")
)

// listen hears of a connection until it ends, or nobody listens any more (nil).
func (p *partition) listen(conn *redis.PubSub) error {
	heard, pinged, looked := time.Now(), time.Now(), time.Time{}
	have := map[string]bool{}
	for {
		if err := p.subscribe(conn, have); err != nil || len(have) == 0 || p.bus.ctx.Err() != nil {
			return err
		}
		message, err := conn.ReceiveTimeout(p.bus.ctx, busReceive)
		now := time.Now()
		var slow net.Error
		switch {
		case err == nil:
			heard = now
			if err := p.handle(message, have); err != nil {
				return err
			}
		case errors.As(err, &slow) && slow.Timeout() && p.bus.ctx.Err() == nil:
		default:
			return err
		}
		if now.Sub(heard) > busSilent {
			return errBusSilent
		}
		if now.Sub(heard) > busPing && now.Sub(pinged) > busPing {
			pinged = now
			if err := conn.Ping(p.bus.ctx); err != nil {
				return err
			}
		}
		p.adopt()
		if now.Sub(looked) > busTops {
			looked = now
			p.compareTops()
		}
	}
}

func (p *partition) list() []*hearing {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*hearing, 0, len(p.topics))
	for _, s := range p.topics {
		list = append(list, s)
	}
	return list
}

func (p *partition) handle(message any, have map[string]bool) error {
	switch m := message.(type) {
	case *redis.Subscription:
		switch {
		case m.Kind == "sunsubscribe" && have[m.Channel]:
			return errBusMoved // its slot is another server's now; or it was wanted again, and the order is unknown
		case m.Kind == "ssubscribe":
			p.opened(m.Channel)
		}
	case *redis.Message:
		p.mu.Lock()
		s := p.topics[m.Channel]
		p.mu.Unlock()
		var said busMessage
		if s == nil || json.Unmarshal([]byte(m.Payload), &said) != nil {
			return nil // of somebody who has just gone; or nobody's of us
		}
		p.adopt()
		p.hear(s, said)
	}
	return nil
}

// opened reads what was published before a channel was open.
func (p *partition) opened(channel string) {
	p.mu.Lock()
	s := p.topics[channel]
	p.mu.Unlock()
	switch {
	case s == nil:
	case s.ordered:
		p.repair(s)
	default:
		s.listener.Lost()
	}
}

// adopt takes over the positions that Follow has left, and looks for what was published before.
func (p *partition) adopt() {
	var fresh []*hearing
	p.mu.Lock()
	for _, s := range p.topics {
		if s.next != nil {
			s.epoch, s.seq, s.last, s.next = s.next.epoch, s.next.seq, "", nil
			fresh = append(fresh, s)
		}
	}
	p.mu.Unlock()
	for _, s := range fresh {
		p.repair(s)
	}
}

// hear hands on a message, in its turn.
func (p *partition) hear(s *hearing, m busMessage) {
	switch {
	case !s.ordered:
		s.listener.Message(m.Epoch, m.Seq, m.Data)
	case s.epoch == "": // nobody knows yet from where on
	case m.Epoch != s.epoch:
		s.lost()
	case m.Seq == s.seq+1:
		s.deliver(m.Seq, m.Data)
	case m.Seq > s.seq:
		p.repair(s)
	}
}

func (s *hearing) deliver(seq int64, data json.RawMessage) {
	s.seq, s.last = seq, string(data)
	s.listener.Message(s.epoch, seq, data)
}

func (s *hearing) lost() {
	s.epoch = ""
	s.listener.Lost()
}

// repair reads the events after a position from the topic's stream. It looks at the last one that was heard, too: a copy that took over from a
// dead server may have missed it, and given its number to another since.
func (p *partition) repair(s *hearing) {
	if s.epoch == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.bus.ctx, busBudget)
	defer cancel()
	meta, stream, _, _ := TopicKeys(s.topic)
	var top *redis.SliceCmd
	var events *redis.XMessageSliceCmd
	_, err := p.bus.rdb.TxPipelined(ctx, func(pipe redis.Pipeliner) error { // both at one moment
		top = pipe.HMGet(ctx, meta, "e", "s")
		events = pipe.XRangeN(ctx, stream, strconv.FormatInt(s.seq, 10), "+", busEvents)
		return nil
	})
	if err != nil {
		return // the next look at the tops asks again
	}
	epoch, seq := topOf(top.Val())
	if epoch != s.epoch || seq < s.seq {
		s.lost()
		return
	}
	for _, e := range events.Val() {
		number, _, _ := strings.Cut(e.ID, "-")
		n, err := strconv.ParseInt(number, 10, 64)
		data, ok := e.Values["d"].(string)
		switch {
		case err == nil && ok && n == s.seq && (s.last == "" || s.last == data):
		case err == nil && ok && n == s.seq+1:
			s.deliver(n, json.RawMessage(data))
		default:
			s.lost() // another story, or one that does not go so far back
			return
		}
	}
	if s.seq < seq && len(events.Val()) < busEvents {
		s.lost() // nor so far on
	}
}

// compareTops finds events that were lost without a trace: the last ones of a topic.
func (p *partition) compareTops() {
	var list []*hearing
	for _, s := range p.list() {
		if s.ordered && s.epoch != "" {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(p.bus.ctx, busBudget)
	defer cancel()
	tops := make([]*redis.SliceCmd, len(list))
	_, err := p.bus.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, s := range list {
			meta, _, _, _ := TopicKeys(s.topic)
			tops[i] = pipe.HMGet(ctx, meta, "e", "s")
		}
		return nil
	})
	if err != nil {
		return
	}
	for i, s := range list {
		switch epoch, seq := topOf(tops[i].Val()); {
		case epoch != s.epoch || seq < s.seq:
			s.lost()
		case seq > s.seq:
			p.repair(s)
		}
	}
}

// topOf reads an epoch and a number; "" where there are none.
func topOf(values []any) (epoch string, seq int64) {
	if len(values) != 2 {
		return "", 0
	}
	epoch, _ = values[0].(string)
	text, _ := values[1].(string)
	seq, _ = strconv.ParseInt(text, 10, 64)
	return epoch, seq
}
