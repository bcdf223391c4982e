package realtime

import (
	"encoding/binary"

	"github.com/gorilla/websocket"
)

// Close codes: 4000 to 4999 are the application's (RFC 6455, 7.4.2).
const (
	CloseNormal    = websocket.CloseNormalClosure
	CloseRestart   = websocket.CloseServiceRestart // come back
	CloseBadFrame  = 4400                          // do not come back
	CloseSignIn    = 4401                          // come back as somebody who is known
	CloseForbidden = 4403                          // do not come back
	CloseTooSlow   = 4408                          // come back
	CloseReplaced  = 4409                          // do not come back: the session is connected anew
	CloseTooBig    = 4413                          // do not come back
	CloseTooMany   = 4429                          // come back later
	CloseInternal  = 4500                          // come back
)

const (
	finalBit  = 0x80 // the frame is a message's last, and here its only one
	maxReason = 120  // bytes; a control frame holds 125 with the code
)

// encode returns one unmasked frame (RFC 6455, 5.2). It is written as it is to any number of sockets.
func encode(opcode int, payload []byte) []byte {
	b := make([]byte, 0, len(payload)+10)
	b = append(b, finalBit|byte(opcode))
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

func encodeText(payload []byte) []byte { return encode(websocket.TextMessage, payload) }

func encodeClose(code int, reason string) []byte {
	return encode(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason[:min(len(reason), maxReason)]))
}

var pingFrame = encode(websocket.PingMessage, nil)
