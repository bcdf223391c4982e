package booking

import (
	"encoding/binary"
	"strings"

	"github.com/google/uuid"

	"seatfence/seats"
)

// ref is the event and the key within it that every public id of a hold, booking or block carries, so that a look-up names its event.
type ref struct {
	Event seats.EventID
	Key   uuid.UUID
}

// HoldID, BookingID and BlockID name a hold, a booking and a block. Their public forms are "hold_", "bkg_" and "blk_" and 39 characters.
type (
	HoldID    ref
	BookingID ref
	BlockID   ref
)

const (
	holdPrefix    = "hold_"
	bookingPrefix = "bkg_"
	blockPrefix   = "blk_"
)

// PlanID names a plan. Its public form is "plan_" and 13 characters.
type PlanID int64

const planPrefix = "plan_"

func (id PlanID) String() string {
	return planPrefix + seats.IDEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(id)))
}

// ParsePlanID reads the public form of a plan's id; anything else is seats.ErrBadID.
func ParsePlanID(s string) (PlanID, error) {
	text, ok := strings.CutPrefix(s, planPrefix)
	raw, err := seats.IDEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) != 8 || seats.IDEncoding.EncodeToString(raw) != text {
		return 0, seats.ErrBadID
	}
	return PlanID(binary.BigEndian.Uint64(raw)), nil
}

// MarshalText writes the public form.
func (id PlanID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the public form.
func (id *PlanID) UnmarshalText(text []byte) (err error) {
	*id, err = ParsePlanID(string(text))
	return err
}

func (id HoldID) String() string    { return ref(id).format(holdPrefix) }
func (id BookingID) String() string { return ref(id).format(bookingPrefix) }
func (id BlockID) String() string   { return ref(id).format(blockPrefix) }

// ParseHoldID reads the public form of a hold's id; anything else is seats.ErrBadID.
func ParseHoldID(s string) (HoldID, error) {
	r, err := parseRef(holdPrefix, s)
	return HoldID(r), err
}

// ParseBookingID reads the public form of a booking's id; anything else is seats.ErrBadID.
func ParseBookingID(s string) (BookingID, error) {
	r, err := parseRef(bookingPrefix, s)
	return BookingID(r), err
}

// ParseBlockID reads the public form of a block's id; anything else is seats.ErrBadID.
func ParseBlockID(s string) (BlockID, error) {
	r, err := parseRef(blockPrefix, s)
	return BlockID(r), err
}

// MarshalText writes the public form.
func (id HoldID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// MarshalText writes the public form.
func (id BookingID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// MarshalText writes the public form.
func (id BlockID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the public form.
func (id *HoldID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseHoldID(string(text))
	return err
}

// UnmarshalText reads the public form.
func (id *BookingID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseBookingID(string(text))
	return err
}

// UnmarshalText reads the public form.
func (id *BlockID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseBlockID(string(text))
	return err
}

func (r ref) format(prefix string) string {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, 24), uint64(r.Event))
	return prefix + seats.IDEncoding.EncodeToString(append(raw, r.Key[:]...))
}

func parseRef(prefix, s string) (ref, error) {
	text, ok := strings.CutPrefix(s, prefix)
	raw, err := seats.IDEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) != 24 || seats.IDEncoding.EncodeToString(raw) != text {
		return ref{}, seats.ErrBadID
	}
	return ref{Event: seats.EventID(binary.BigEndian.Uint64(raw)), Key: uuid.UUID(raw[8:])}, nil
}
