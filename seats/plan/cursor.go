package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readJSON reads a document twice: first for its syntax and its top keys, which tell the format, then for its contents. It never has
// the document as a tree, which for hostile input would be many times the size of the file.
func (d *draft) readJSON(data []byte) {
	if i := invalidUTF8(data); i >= 0 {
		d.fatal(NotReadable, position(data, i), "not UTF-8")
		return
	}
	first := newCursor(d, data)
	keys := map[string]bool{}
	if data = bytes.TrimLeft(data, " \t\r\n"); data[0] == '{' {
		first.object(func(key string) {
			if len(key) <= maxName {
				keys[key] = len(keys) < maxParts
			}
			first.skip()
		})
	} else {
		first.skip()
	}
	if first.err == nil {
		if _, err := first.dec.Token(); !errors.Is(err, io.EOF) {
			first.err = errors.New("something follows the document")
		}
	}
	if first.err != nil {
		d.fatal(NotReadable, position(first.data, int(first.dec.InputOffset())), first.err.Error())
		return
	}
	c := newCursor(d, data)
	switch {
	case keys["format"]:
		d.report.Format = Format
		c.readOwn()
	case keys["zones"]:
		d.report.Format = "pretix"
		c.readPretix()
	case keys["sections"]:
		d.report.Format = "spec"
		c.readSpec()
	default:
		d.fatal(NotReadable, "", "no plan of a known format: none of the keys format, zones and sections is there")
	}
	if c.err != nil && d.ctx.Err() == nil {
		d.fatal(NotReadable, position(c.data, int(c.dec.InputOffset())), c.err.Error())
	}
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// position is line:column of an offset.
func position(data []byte, offset int) string {
	before := data[:min(offset, len(data))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	return fmt.Sprintf("%d:%d", line, len(before)-bytes.LastIndexByte(before, '\n'))
}

// cursor walks through a JSON document and knows where it is. After an error every method does nothing, and err has it.
type cursor struct {
	*draft
	data  []byte
	dec   *json.Decoder
	path  []byte // JSON pointer
	depth int
	seen  int // tokens
	err   error
}

func newCursor(d *draft, data []byte) *cursor {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return &cursor{draft: d, data: data, dec: dec}
}

func (c *cursor) token() json.Token {
	if c.err != nil {
		return nil
	}
	if c.seen++; c.seen%stride == 0 {
		if c.err = c.ctx.Err(); c.err != nil {
			return nil
		}
	}
	var t json.Token
	if t, c.err = c.dec.Token(); errors.Is(c.err, io.EOF) || errors.Is(c.err, io.ErrUnexpectedEOF) {
		c.err = errors.New("the document breaks off")
	}
	switch t {
	case json.Delim('{'), json.Delim('['):
		if c.depth++; c.depth > maxDepth {
			c.err = fmt.Errorf("nested deeper than %d", maxDepth)
		}
	case json.Delim('}'), json.Delim(']'):
		c.depth--
	}
	return t
}

func (c *cursor) more() bool { return c.err == nil && c.dec.More() }

// rest skips what is left of the value that begins with t.
func (c *cursor) rest(t json.Token) {
	if t != json.Delim('{') && t != json.Delim('[') {
		return
	}
	for around := c.depth - 1; c.depth > around && c.err == nil; {
		c.token()
	}
}

func (c *cursor) skip() { c.rest(c.token()) }

// here is the place of the value being read.
func (c *cursor) here() place { return place{pointer: string(c.path)} }

// within calls fn with the path longer by one step, in the escapes of a JSON pointer.
func (c *cursor) within(step string, fn func()) {
	before := len(c.path)
	if strings.ContainsAny(step, "~/") {
		step = strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
	}
	if len(step) > maxName {
		step = step[:maxName] + "…"
	}
	c.path = append(append(c.path, '/'), step...)
	fn()
	c.path = c.path[:before]
}

func (c *cursor) wrong(severity Severity, want string, t json.Token) {
	c.report.defect(WrongType, severity, string(c.path), want+" is needed, and there is "+kind(t))
}

func kind(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return "an object"
		}
		return "an array"
	case string:
		return "the text " + excerpt(t)
	case json.Number:
		return "the number " + excerpt(t.String())
	case bool:
		return strconv.FormatBool(t)
	}
	return "null"
}

// object calls fn with each key; fn must read the value.
func (c *cursor) object(fn func(key string)) {
	t := c.token()
	if t != json.Delim('{') {
		c.mismatch("an object", t)
		return
	}
	for c.more() {
		key, _ := c.token().(string)
		c.within(key, func() { fn(key) })
	}
	c.token()
}

// array calls fn for each element; fn must read it.
func (c *cursor) array(fn func()) {
	t := c.token()
	if t != json.Delim('[') {
		c.mismatch("an array", t)
		return
	}
	for i := 0; c.more(); i++ {
		c.within(strconv.Itoa(i), fn)
	}
	c.token()
}

func (c *cursor) mismatch(want string, t json.Token) {
	if c.err == nil {
		c.wrong(Error, want, t)
		c.rest(t)
	}
}

// text reads a string. A number is taken as its digits, with a warning.
func (c *cursor) text() string {
	switch t := c.token().(type) {
	case string:
		return t
	case json.Number:
		c.wrong(Warning, "a text", t)
		return t.String()
	default:
		c.mismatch("a text", t)
		return ""
	}
}

// number reads a number. A text that is one is taken, with a warning. One too large for a float64 is infinite, which check finds.
func (c *cursor) number() float64 {
	switch t := c.token().(type) {
	case json.Number:
		f, _ := t.Float64()
		return f
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			c.wrong(Error, "a number", t)
			return 0
		}
		c.wrong(Warning, "a number", t)
		return f
	default:
		c.mismatch("a number", t)
		return 0
	}
}

// whole reads a whole number between 0 and 10^9.
func (c *cursor) whole() int {
	f := c.number()
	if f != math.Trunc(f) || f < 0 || f > 1e9 {
		c.report.defect(WrongType, Error, string(c.path), "a whole number from 0 up is needed")
		return 0
	}
	return int(f)
}

// drawnWhole reads a number that its format wants whole and that is only drawn, so that a fraction is as good.
func (c *cursor) drawnWhole() float64 {
	f := c.number()
	if f != math.Trunc(f) {
		c.report.defect(WrongType, Warning, string(c.path), "the format wants a whole number; the fraction is kept")
	}
	return f
}

func (c *cursor) flag() bool {
	t := c.token()
	b, ok := t.(bool)
	if !ok {
		c.mismatch("true or false", t)
	}
	return b
}

func (c *cursor) point() (p Point) {
	c.object(func(key string) {
		switch key {
		case "x":
			p.X = c.number()
		case "y":
			p.Y = c.number()
		default:
			c.skip()
		}
	})
	return p
}

func (c *cursor) points() (list []Point) {
	c.array(func() {
		p := c.point()
		if len(list) == maxPoints {
			c.fatal(TooLarge, string(c.path), fmt.Sprintf("more than %d points", maxPoints))
		}
		if len(list) <= maxPoints {
			list = append(list, p)
		}
	})
	return list
}

// tags reads the free words of a seat.
func (c *cursor) tags() (list []string) {
	c.array(func() {
		if t := c.text(); len(list) <= maxTags { // one too many is seen by check
			list = append(list, t)
		}
	})
	return list
}

// unknown skips what our own format does not have.
func (c *cursor) unknown() {
	c.report.defect(UnknownKey, Warning, string(c.path), "this format has no such key; it is left out")
	c.skip()
}

// addSection keeps a section that has been read, unless there are too many to look at.
func (c *cursor) addSection(s Section) {
	if len(c.plan.Sections) <= maxParts {
		c.plan.Sections = append(c.plan.Sections, s)
	}
}

func (c *cursor) addArea(a Area) {
	if len(c.plan.Areas) <= maxParts {
		c.plan.Areas = append(c.plan.Areas, a)
	}
}

func (c *cursor) addShape(s Shape) {
	if len(c.plan.Decorations) <= maxShapes {
		c.plan.Decorations = append(c.plan.Decorations, s)
	}
}

func (c *cursor) addCategory(cat Category) {
	if len(c.plan.Categories) <= maxCategories {
		c.plan.Categories = append(c.plan.Categories, cat)
	}
}

// moved returns points shifted by an offset.
func moved(points []Point, by Point) []Point {
	points = slices.Clone(points)
	for i := range points {
		points[i] = Point{points[i].X + by.X, points[i].Y + by.Y}
	}
	return points
}
