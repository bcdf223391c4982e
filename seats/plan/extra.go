package plan

import (
	"bytes"
	"encoding/json"
)

// Bounds of what is kept without being understood.
const (
	maxExtra      = 200_000 // members of a plan
	maxExtraBytes = 1_000   // of one member, without blanks
)

// Extra are members that our own format does not have, as another program has left them. They are written again behind the others, sorted.
type Extra map[string]json.RawMessage

// keep reads a member that the format does not have.
func (c *cursor) keep(in *Extra, key string) {
	from := c.dec.InputOffset()
	c.skip()
	var raw bytes.Buffer // without the blanks, of which an export has others
	fits := c.err == nil && json.Compact(&raw, bytes.TrimLeft(c.data[from:c.dec.InputOffset()], ": \t\r\n")) == nil && raw.Len() <= maxExtraBytes
	if !fits || c.extra == maxExtra || len(key) > maxName {
		c.report.defect(UnknownKey, Warning, string(c.path), "this format has no such key, and it is too much to be kept; it is left out")
		return
	}
	c.report.defect(UnknownKey, Warning, string(c.path), "this format has no such key; it is kept as it is")
	if *in == nil {
		*in = Extra{}
	}
	c.extra++
	(*in)[key] = raw.Bytes()
}

// encode is how all of the format is written: text as it is, not as it would be in a page.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), err
}

// with encodes an object that has a member, and behind its members those of e.
func (e Extra) with(object any) ([]byte, error) {
	out, err := encode(object)
	if err != nil || len(e) == 0 {
		return out, err
	}
	more, err := encode(e)
	if err != nil {
		return nil, err
	}
	return append(append(out[:len(out)-1], ','), more[1:]...), nil
}

// MarshalJSON writes the section in our own format.
func (s Section) MarshalJSON() ([]byte, error) {
	type bare Section
	return s.Extra.with(bare(s))
}

// MarshalJSON writes the row in our own format.
func (r Row) MarshalJSON() ([]byte, error) {
	type bare Row
	return r.Extra.with(bare(r))
}

// MarshalJSON writes the seat in our own format.
func (s Seat) MarshalJSON() ([]byte, error) {
	type bare Seat
	return s.Extra.with(bare(s))
}

// MarshalJSON writes the area in our own format.
func (a Area) MarshalJSON() ([]byte, error) {
	type bare Area
	return a.Extra.with(bare(a))
}
