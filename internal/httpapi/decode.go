package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep a body may nest; the deepest legal one is a new event's, with 5.
const maxDepth = 16

// decodeStrict reads one JSON object, with strings, json.Number, bool, nil, []any and map[string]any in it. It refuses what encoding/json
// lets pass and two readers may take differently: a second value, duplicate names, invalid UTF-8, NUL, text that was broken on its way,
// and numbers that are not plain integers of 64 bits.
func decodeStrict(raw []byte) (map[string]any, error) {
	if !utf8.Valid(raw) {
		return nil, refuse("malformed_json", "the body is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	value, err := decodeValue(d, 0)
	if err == nil {
		_, err = d.Token()
		switch {
		case errors.Is(err, io.EOF):
			object, ok := value.(map[string]any)
			if !ok {
				return nil, refuse("wrong_type", "the body is not a JSON object")
			}
			return object, nil
		case err == nil:
			return nil, refuse("malformed_json", "the body has more than one JSON value")
		}
	}
	if _, ok := errors.AsType[*requestError](err); ok {
		return nil, err
	}
	return nil, refuse("malformed_json", "the body is not valid JSON") // the decoder's text quotes the body
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, refuse("malformed_json", fmt.Sprintf("the body nests deeper than %d levels", maxDepth))
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return decodeArray(d, depth)
		}
		return decodeObject(d, depth)
	case json.Number:
		if _, err := strconv.ParseInt(token.String(), 10, 64); err != nil {
			return nil, refuse("malformed_json", "a number is not a plain integer of 64 bits")
		}
	case string:
		// The decoder reads half of a surrogate pair as the replacement character.
		if strings.ContainsAny(token, "\x00\ufffd") {
			return nil, refuse("malformed_json", "a string has a NUL, a replacement character or half of a surrogate pair")
		}
	}
	return token, nil
}

func decodeArray(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		value, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := d.Token()
	return list, err
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		key := name.(string)
		if _, dup := object[key]; dup {
			return nil, refuse("duplicate_field", "a member stands twice in one object")
		}
		if object[key], err = decodeValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}
