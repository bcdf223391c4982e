package booking

import (
	"encoding/json"
	"fmt"
	"strconv"

	"seatfence/db"
	"seatfence/seats"
)

// FeedState is what a seat is to those who watch, as two bits. What cannot be had, whatever the reason, is FeedBlocked.
type FeedState uint8

// The states.
const (
	FeedFree FeedState = iota
	FeedHeld
	FeedBooked
	FeedBlocked
)

// Cell is what changes have made of a numbered seat, or, with Area set, how many places of that area are free. HeldUntil, in milliseconds
// since 1970 by Postgres's clock, is when a held seat's hold ends at the earliest: it may be extended, and the seat is held until a cell
// says something else. In JSON it is [seat, state, fence], [seat, 1, fence, held_until] or ["a", area, free].
type Cell struct {
	Seat      seats.ID
	State     FeedState
	Fence     int64
	HeldUntil int64
	Area      int32
	Free      int64
}

// MarshalJSON writes one of the three forms.
func (c Cell) MarshalJSON() ([]byte, error) {
	if c.Area != 0 {
		return fmt.Appendf(nil, `["a",%d,%d]`, c.Area, c.Free), nil
	}
	b := fmt.Appendf(nil, `[%d,%d,%d`, c.Seat, c.State, c.Fence)
	if c.HeldUntil != 0 {
		b = strconv.AppendInt(append(b, ','), c.HeldUntil, 10)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads one of the three forms.
func (c *Cell) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	into := []any{&c.Seat, &c.State, &c.Fence, &c.HeldUntil}
	*c = Cell{}
	if len(parts) == 3 && string(parts[0]) == `"a"` {
		parts, into = parts[1:], []any{&c.Area, &c.Free}
	}
	if len(parts) < min(3, len(into)) || len(parts) > len(into) {
		return fmt.Errorf("a cell has %d parts", len(parts))
	}
	for i, part := range parts {
		if err := json.Unmarshal(part, into[i]); err != nil {
			return err
		}
	}
	return nil
}

func cellOf(r db.FeedCellsRow) Cell {
	return Cell{Seat: r.SeatID, State: FeedState(r.State), Fence: r.Fence, HeldUntil: r.UntilMs}
}
