package realtime

import (
	"errors"
	"sync"
	"sync/atomic"
)

const (
	// smallDelta is up to how many bytes a delta is sent without a look at how long a snapshot would be.
	smallDelta = 2 << 10
	// maxDeltas is how many deltas are kept for clients that are behind; those of clients beyond are made for each.
	maxDeltas = 256
)

// ErrGap is returned for a batch that does not follow what the board has: it needs what lies between, or a Reset.
var ErrGap = errors.New("a batch does not follow")

// Cell is a part of what a board shows.
type Cell[V any] struct {
	ID    int64
	Value V
}

// Batch is the new values of all cells that have changed after From, up to Seq.
type Batch[V any] struct {
	Epoch     string
	From, Seq int64
	Cells     []Cell[V]
}

// Format makes the messages of a board. The functions may keep nothing of cells.
type Format[V any] struct {
	// Delta tells the cells that have changed after from, the latest first.
	Delta func(epoch string, from, seq int64, cells []Cell[V]) []byte
	// Whole tells all cells.
	Whole func(epoch string, seq int64, cells []Cell[V]) []byte
}

// Board is a state of many cells that many sessions look at. It has positions, an epoch and a number that grows within it. Once in each window
// it is published: whoever follows gets the same bytes, and whoever is behind, for whatever reason, one message that leads to the present: the
// cells that have changed since, or all of them if that is shorter. It is safe for concurrent use.
type Board[V any] struct {
	hub     *Hub
	format  Format[V]
	edition atomic.Pointer[edition] // what is published
	note    atomic.Pointer[[]byte]
	members atomic.Int64

	mu      sync.Mutex
	cells   []Cell[V]
	links   []link // of cells, by the time of their last change
	newest  int32
	index   map[int64]int32
	base    int64 // what has changed up to here is not known
	top     int64 // the last batch, which may wait for the next edition
	waiting []Cell[V]
	whole   []byte           // the frame of all cells of this edition, or nil
	deltas  map[int64][]byte // frames that lead to this edition
}

// link is the place of a cell among all, by the number of its last change.
type link struct {
	seq          int64
	newer, older int32
}

const nobody = -1

// edition is a published position and the frame that leads there from the one before, nil if there is none.
type edition struct {
	epoch     string
	from, seq int64
	frame     []byte
}

// NewBoard returns a board without an epoch: whoever joins waits for the first Reset. Its owner owes a Close.
func NewBoard[V any](h *Hub, format Format[V]) *Board[V] {
	b := &Board[V]{hub: h, format: format, newest: nobody}
	b.edition.Store(&edition{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boards[b] = struct{}{}
	return b
}

// Close takes the board from its hub. It is not published any more.
func (b *Board[V]) Close() {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	delete(b.hub.boards, b)
}

// Reset begins anew with all cells at a position. Everybody gets them, except who is at that position already.
func (b *Board[V]) Reset(epoch string, seq int64, cells []Cell[V]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cells, b.links, b.index = nil, nil, make(map[int64]int32, len(cells))
	b.newest, b.waiting = nobody, nil
	b.base, b.top = seq, seq
	for _, c := range cells {
		b.put(c, seq)
	}
	b.whole, b.deltas = nil, map[int64][]byte{}
	b.edition.Store(&edition{epoch: epoch, from: seq, seq: seq})
}

// Apply adds a batch. It returns ErrGap if the batch is of another epoch, or begins after what the board has; a batch that brings nothing new is
// ignored. Members hear of it within a window.
func (b *Board[V]) Apply(batch Batch[V]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case batch.Epoch != b.edition.Load().epoch || batch.From > b.top:
		return ErrGap
	case batch.Seq <= b.top:
		return nil
	}
	b.top = batch.Seq
	b.waiting = append(b.waiting, batch.Cells...)
	return nil
}

// Position returns the last position that was applied.
func (b *Board[V]) Position() (epoch string, seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.edition.Load().epoch, b.top
}

// Note tells every member something that has no position, such as their number. Only the last note counts: who is behind misses others.
func (b *Board[V]) Note(message []byte) {
	frame := encodeText(message)
	b.note.Store(&frame)
}

// Members returns how many connections look at the board.
func (b *Board[V]) Members() int { return int(b.members.Load()) }

// Join has a session look at the board, from a position that its client has or from "", 0. It gets at once what leads from there to the present:
// nothing if it is there. To join again is to ask again. It returns ErrTooMany for a session that looks at too many.
func (b *Board[V]) Join(s *Session, epoch string, seq int64) error {
	sock := s.sock
	sock.mu.Lock()
	defer sock.mu.Unlock()
	for i := range sock.subs {
		if sock.subs[i].board == topic(b) {
			sock.subs[i].epoch, sock.subs[i].seq = epoch, seq
			sock.flush()
			return nil
		}
	}
	switch {
	case sock.ended || sock.closeAt != 0: // it leaves, and would never be counted out
		return nil
	case len(sock.subs) == maxBoards:
		return ErrTooMany
	}
	sock.subs = append(sock.subs, subscription{board: b, epoch: epoch, seq: seq})
	b.count(1)
	sock.flush()
	return nil
}

// Leave undoes Join.
func (b *Board[V]) Leave(s *Session) {
	s.sock.mu.Lock()
	defer s.sock.mu.Unlock()
	for i := range s.sock.subs {
		if s.sock.subs[i].board == topic(b) {
			s.sock.subs = append(s.sock.subs[:i], s.sock.subs[i+1:]...)
			b.count(-1)
			return
		}
	}
}

func (b *Board[V]) count(n int64) { b.members.Add(n) }

func (b *Board[V]) noted() *[]byte { return b.note.Load() }

// publish makes an edition of what has been applied.
func (b *Board[V]) publish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.edition.Load()
	if b.top == last.seq {
		return
	}
	for _, c := range b.waiting {
		b.put(c, b.top)
	}
	b.waiting = nil
	b.whole = nil
	clear(b.deltas)
	next := &edition{epoch: last.epoch, from: last.seq, seq: b.top}
	if b.members.Load() > 0 {
		next.frame = b.lead(next, last.seq)
	}
	b.edition.Store(next)
}

// after is what topic says.
func (b *Board[V]) after(epoch string, seq int64) (frame []byte, nowEpoch string, nowSeq int64) {
	e := b.edition.Load()
	switch {
	case e.epoch == "", epoch == e.epoch && seq >= e.seq: // also who comes from a node that is ahead
		return nil, epoch, seq
	case epoch == e.epoch && seq == e.from && e.frame != nil:
		return e.frame, e.epoch, e.seq
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e = b.edition.Load()
	if epoch == e.epoch && seq >= e.seq {
		return nil, epoch, seq
	}
	from := seq
	if epoch != e.epoch {
		from = b.base - 1
	}
	return b.lead(e, from), e.epoch, e.seq
}

// lead returns the frame that leads from a number to an edition, the present one. mu is held.
func (b *Board[V]) lead(e *edition, from int64) []byte {
	if from < b.base {
		return b.all(e)
	}
	if frame := b.deltas[from]; frame != nil {
		return frame
	}
	frame := encodeText(b.format.Delta(e.epoch, from, e.seq, b.changed(from)))
	if len(frame) > smallDelta {
		if whole := b.all(e); len(whole) < len(frame) {
			frame = whole
		}
	}
	if len(b.deltas) < maxDeltas {
		b.deltas[from] = frame
	}
	return frame
}

// all returns the frame of all cells.
func (b *Board[V]) all(e *edition) []byte {
	if b.whole == nil {
		b.whole = encodeText(b.format.Whole(e.epoch, e.seq, b.cells))
	}
	return b.whole
}

// changed returns the cells that have changed after a number.
func (b *Board[V]) changed(from int64) (cells []Cell[V]) {
	for i := b.newest; i != nobody && b.links[i].seq > from; i = b.links[i].older {
		cells = append(cells, b.cells[i])
	}
	return cells
}

// put sets a cell, and makes it the one that has changed last.
func (b *Board[V]) put(c Cell[V], seq int64) {
	i, ok := b.index[c.ID]
	if ok {
		b.cells[i] = c
		b.unlink(i)
	} else {
		i = int32(len(b.cells))
		b.index[c.ID] = i
		b.cells, b.links = append(b.cells, c), append(b.links, link{})
	}
	b.links[i] = link{seq: seq, newer: nobody, older: b.newest}
	if b.newest != nobody {
		b.links[b.newest].newer = i
	}
	b.newest = i
}

func (b *Board[V]) unlink(i int32) {
	l := b.links[i]
	if l.newer != nobody {
		b.links[l.newer].older = l.older
	} else {
		b.newest = l.older
	}
	if l.older != nobody {
		b.links[l.older].newer = l.newer
	}
}
