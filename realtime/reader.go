package realtime

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

const (
	continuation = 0
	lowBits      = 0x0f
	reserved     = 0x70
	maxControl   = 125 // bytes
	longestHead  = 14  // bytes before a frame's payload
)

var (
	errNoFrame = errors.New("not a frame")
	errTooBig  = errors.New("a frame has at most 4096 bytes")
)

// reader reads the frames of a connection. It has a buffer only while there is something in it, and waits with as little on its stack as there
// can be: these two are most of what an idle connection costs.
type reader struct {
	*socket
	principal Principal
	frames    bucket
	bytes     bucket // frames without a payload cost something too
	partial   []byte // the beginning of a frame
	message   []byte // the fragments of a message
	open      bool   // a message has begun
	lost      bool   // what comes is no frame any more
	buffer    *[readBuffer]byte
	read      int
	failed    error
}

func newReader(s *socket, p Principal, now time.Time) *reader {
	return &reader{
		socket: s, principal: p,
		frames: bucket{rate: framesASecond, size: framesAtOnce, left: framesAtOnce, at: now},
		bytes:  bucket{rate: bytesASecond, size: bytesAtOnce, left: bytesAtOnce, at: now},
	}
}

// run is the life of a connection. What comes after a frame is left to a new goroutine: a stack that has grown for a frame would not become as
// small again as one needs to wait for the next (2 KB instead of 4 or 8).
func (r *reader) run() {
	if r.wait() && r.chunk() {
		go r.run()
		return
	}
	r.end()
}

// wait reads what there is, once there is something.
func (r *reader) wait() bool {
	if r.raw == nil {
		r.buffer = r.hub.buffers.Get().(*[readBuffer]byte)
		r.read, r.failed = r.Conn.Read(r.buffer[:])
		return true
	}
	return r.raw.Read(r.pull) == nil
}

// pull reads, or reports false if there is nothing yet.
func (r *reader) pull(fd uintptr) bool {
	r.buffer = r.hub.buffers.Get().(*[readBuffer]byte)
	for {
		r.read, r.failed = syscall.Read(int(fd), r.buffer[:])
		switch {
		case r.failed == syscall.EINTR:
			continue
		case r.failed == syscall.EAGAIN:
			r.hub.buffers.Put(r.buffer)
			return false
		case r.failed == nil && r.read == 0:
			r.failed = io.EOF
		}
		return true
	}
}

// chunk handles what was read. It reports whether more may come.
func (r *reader) chunk() bool {
	defer r.hub.buffers.Put(r.buffer)
	if r.failed != nil {
		return false
	}
	if r.lost {
		return true
	}
	if !r.bytes.take(time.Now(), float64(r.read)) {
		return r.refuse(CloseTooMany, "too many bytes")
	}
	p := r.buffer[:r.read]
	if r.partial != nil {
		p, r.partial = append(r.partial, p...), nil
	}
	whole := len(p)
	for {
		head, payload, size, err := cutFrame(p)
		switch {
		case errors.Is(err, errTooBig):
			return r.refuse(CloseTooBig, err.Error())
		case err != nil:
			return r.refuse(CloseBadFrame, err.Error())
		case size == 0 && len(p) == whole && whole > r.read: // already ours: a frame of a thousand pieces is not copied a thousand times
			r.partial = p
			return true
		case size == 0:
			if len(p) > 0 {
				r.partial = bytes.Clone(p)
			}
			return true
		case !r.frame(head, payload):
			return false
		case r.lost:
			return true
		}
		p = p[size:]
	}
}

// refuse closes the connection and forgets whatever comes until the client has gone.
func (r *reader) refuse(code int, reason string) bool {
	r.lost, r.partial, r.message = true, nil, nil
	r.close(code, reason)
	return true
}

// cutFrame returns the first byte of the frame that p begins with, its payload, and its size, 0 if p is not all of it. It unmasks in place.
func cutFrame(p []byte) (head byte, payload []byte, size int, err error) {
	if len(p) < 2 {
		return 0, nil, 0, nil
	}
	head, n, at := p[0], uint64(p[1]&^finalBit), 2
	control := head&8 != 0
	if head&reserved != 0 || p[1]&finalBit == 0 || control && (head&finalBit == 0 || n > maxControl) {
		return 0, nil, 0, errNoFrame
	}
	switch {
	case n == 126 && len(p) >= 4:
		n, at = uint64(binary.BigEndian.Uint16(p[2:])), 4
	case n == 127 && len(p) >= 10:
		n, at = binary.BigEndian.Uint64(p[2:]), 10
	case n >= 126:
		return 0, nil, 0, nil
	}
	if n > MaxFrame {
		return 0, nil, 0, errTooBig
	}
	at += 4
	if len(p) < at+int(n) {
		return 0, nil, 0, nil
	}
	mask, payload := p[at-4:at], p[at:at+int(n)]
	for i := range payload {
		payload[i] ^= mask[i&3]
	}
	return head, payload, at + int(n), nil
}

// frame handles one. It reports whether more may come.
func (r *reader) frame(head byte, payload []byte) bool {
	switch head & lowBits {
	case websocket.PingMessage:
		r.send(encode(websocket.PongMessage, payload))
	case websocket.PongMessage:
		r.heard.Store(time.Now().UnixNano())
	case websocket.CloseMessage:
		r.close(CloseNormal, "")
		return false
	case websocket.TextMessage:
		if r.open {
			return r.refuse(CloseBadFrame, errNoFrame.Error())
		}
		if head&finalBit != 0 {
			r.text(payload)
			break
		}
		r.open, r.message = true, bytes.Clone(payload)
	case continuation:
		switch {
		case !r.open:
			return r.refuse(CloseBadFrame, errNoFrame.Error())
		case len(r.message)+len(payload) > MaxFrame:
			return r.refuse(CloseTooBig, errTooBig.Error())
		}
		r.message = append(r.message, payload...)
		if head&finalBit != 0 {
			message := r.message
			r.open, r.message = false, nil
			r.text(message)
		}
	default: // binary among them
		return r.refuse(CloseBadFrame, "a frame is a JSON object")
	}
	return true
}

// text handles a message.
func (r *reader) text(message []byte) {
	if r.closing() {
		return // nobody listens any more; the client has not yet heard
	}
	now := time.Now()
	if !r.frames.take(now, 1) {
		r.close(CloseTooMany, "too many frames")
		return
	}
	r.heard.Store(now.UnixNano())
	kind, ok := parse(message)
	s := r.session.Load()
	switch {
	case !ok:
		r.close(CloseBadFrame, "a frame is a JSON object")
	case s != nil:
		r.hub.frame(s, kind, message)
	default:
		r.hello(message)
	}
}

// parse returns the type of a message, and whether it is a JSON object.
func parse(message []byte) (kind string, ok bool) {
	var head struct {
		Type string `json:"type"`
	}
	if !utf8.Valid(message) || !bytes.HasPrefix(bytes.TrimLeft(message, " \t\r\n"), []byte("{")) || json.Unmarshal(message, &head) != nil {
		return "", false
	}
	return head.Type, true
}

func (r *reader) hello(message []byte) {
	var said hello
	if json.Unmarshal(message, &said) != nil || said.Type != "hello" || said.Protocol != Protocol || len(said.Token) > maxToken {
		r.close(CloseBadFrame, "the first frame is hello, of protocol 1")
		return
	}
	r.mu.Lock()
	r.greeted = true
	r.mu.Unlock()
	r.hub.attach(r.socket, r.principal, said)
}

// end takes the connection out of everything.
func (r *reader) end() {
	r.cut()
	r.hub.release(r.socket)
	if s := r.session.Load(); s != nil {
		r.hub.detach(s)
	}
	r.shard.remove(r.socket)
	r.hub.leave()
}
