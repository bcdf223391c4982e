package seats

import (
	"encoding/base32"
	"encoding/binary"
	"errors"
	"strings"
)

// EventID names an event. Its public form is "evt_" and 13 characters.
type EventID int64

// ErrBadID says that a text is not the public form of an id.
var ErrBadID = errors.New("malformed id")

// IDEncoding writes ids in lower case without letters that are easily confused.
var IDEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const eventPrefix = "evt_"

func (e EventID) String() string {
	return eventPrefix + IDEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(e)))
}

// ParseEventID reads the public form of an event's id; anything else is ErrBadID.
func ParseEventID(s string) (EventID, error) {
	text, ok := strings.CutPrefix(s, eventPrefix)
	raw, err := IDEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) != 8 || IDEncoding.EncodeToString(raw) != text {
		return 0, ErrBadID
	}
	return EventID(binary.BigEndian.Uint64(raw)), nil
}

// MarshalText writes the public form.
func (e EventID) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads the public form.
func (e *EventID) UnmarshalText(text []byte) (err error) {
	*e, err = ParseEventID(string(text))
	return err
}

// ID names a seat within its event, from 1 up.
type ID = int32

// State is what a seat is to everybody: free, held, booked or blocked.
type State string

// The states.
const (
	Free    State = "free"
	Held    State = "held"
	Booked  State = "booked"
	Blocked State = "blocked"
)

// Place is where a seat is, in words for people. An unnumbered seat of a general admission area has its area's name as section and
// neither row nor number.
type Place struct {
	Section string `json:"section"`
	Row     string `json:"row"`
	Number  string `json:"number"`
}

// Label is the short form for people: "Stalls C14", or the area's name.
func (p Place) Label() string {
	if p.Number == "" {
		return p.Section
	}
	if p.Row != "" && isDigit(p.Row[len(p.Row)-1]) {
		return p.Section + " " + p.Row + "-" + p.Number
	}
	return p.Section + " " + p.Row + p.Number
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Seat is one seat as an event's list shows it. Price is what the event's first ticket type costs now, in minor units of its currency. A
// seat that the caller has no channel for is Blocked to them.
type Seat struct {
	ID ID
	Place
	Category   string
	Price      int64
	State      State
	Fence      int64
	Attributes Attributes
	Tags       []string
}

// Reach is the seats that a caller may sell, by their channels: All of them, or those in Channels, where 0 stands for being in none.
type Reach struct {
	All      bool
	Channels []int32
}

// AnyFence, as the fence of a Want, expects nothing of the seat's fence.
const AnyFence = -1

// Want is a seat that somebody asks for. Fence is the fence they saw, or AnyFence; Type is a ticket type, or "" for the event's first.
type Want struct {
	ID    ID
	Fence int64
	Type  string
}

// Any asks for seats of the event's first type at any fence.
func Any(ids ...ID) []Want {
	wants := make([]Want, len(ids))
	for i, id := range ids {
		wants[i] = Want{ID: id, Fence: AnyFence}
	}
	return wants
}

// IDs returns the ids of wants, in their order.
func IDs(wants []Want) []ID {
	ids := make([]ID, len(wants))
	for i, w := range wants {
		ids[i] = w.ID
	}
	return ids
}
