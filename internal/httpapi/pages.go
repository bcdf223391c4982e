package httpapi

import (
	"encoding/base64"
	"encoding/json"
)

const defaultLimit = 50 // of a list; the contract says so too

// pageSize is how many entries a list answers with. One more is read, to know whether there is a next page.
func pageSize(limit *int32) int {
	if limit == nil {
		return defaultLimit
	}
	return int(*limit)
}

// cursorOf writes where a list goes on. Clients hand it back as it is.
func cursorOf(page any) (*string, error) {
	raw, err := json.Marshal(page)
	text := base64.RawURLEncoding.EncodeToString(raw)
	return &text, err
}

// readCursor reads what cursorOf has written, and nothing else.
func readCursor[T any](cursor string) (page T, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, &page)
	}
	if again, _ := cursorOf(page); err != nil || *again != cursor {
		return page, &requestError{
			code: "invalid_parameter", detail: "a parameter breaks its rule",
			faults: []fault{{Parameter: "cursor", Detail: "value must be the next_cursor of an earlier page"}},
		}
	}
	return page, nil
}
