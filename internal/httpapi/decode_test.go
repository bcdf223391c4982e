package httpapi

import (
	"errors"
	"strings"
	"testing"
)

func codeOf(err error) string {
	if e, ok := errors.AsType[*requestError](err); ok {
		return e.code
	}
	return ""
}

func TestBodiesThatTwoReadersCouldTakeDifferentlyAreRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"seats":[1`:                   "malformed_json",
		`{"seats":[1]} x`:               "malformed_json",
		`{"seats":[1]}{}`:               "malformed_json",
		`{"seats":[1]}]`:                "malformed_json",
		`{"seats":[1.5]}`:               "malformed_json",
		`{"seats":[1.0]}`:               "malformed_json",
		`{"seats":[1e2]}`:               "malformed_json",
		`{"seats":[-0]}`:                "",
		`{"a":9223372036854775807}`:     "",
		`{"a":9223372036854775808}`:     "malformed_json",
		`{"a":1,"a":2}`:                 "duplicate_field",
		`{"b":{"a":1,"a":1}}`:           "duplicate_field",
		`{"a":1,"\u0061":2}`:            "duplicate_field",
		"{\"a\":\"\xff\"}":              "malformed_json",
		`{"a":"x\u0000"}`:               "malformed_json",
		"{\"a\":\"x\x00\"}":             "malformed_json",
		`{"a":"\ud83d"}`:                "malformed_json",
		`{"a":"\ud83c\udfad"}`:          "",
		`{'a':1}`:                       "malformed_json",
		`{"a":01}`:                      "malformed_json",
		`{"a":1,}`:                      "malformed_json",
		`null`:                          "wrong_type",
		`[1]`:                           "wrong_type",
		`"a"`:                           "wrong_type",
		`1`:                             "wrong_type",
		`nul`:                           "malformed_json",
		strings.Repeat(`{"a":`, 10_000): "malformed_json",
		strings.Repeat(`[`, maxDepth+2) + strings.Repeat(`]`, maxDepth+2):       "malformed_json",
		strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat(`}`, maxDepth): "",
	} {
		if _, err := decodeStrict([]byte(body)); codeOf(err) != want {
			t.Errorf("%.40q: %v, want %q", body, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	doc, err := loadContract()
	if err != nil {
		f.Fatal(err)
	}
	schema := operations(doc)["POST /v1/bookings"].schema
	f.Add([]byte(benchBody))
	f.Add([]byte(`{"hold":"hold_1","buyer":{"name":"Omar","email":"omar@example.com"},"seats":[{"id":1,"fence":2}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, err := decodeStrict(raw)
		if err == nil {
			err = validate(schema, value)
		}
		if err != nil && kinds[codeOf(err)].status/100 != 4 {
			t.Errorf("%q: %v", raw, err)
		}
	})
}

func TestFaultsAreToldWithTheirPlaces(t *testing.T) {
	t.Parallel()
	doc, err := loadContract()
	if err != nil {
		t.Fatal(err)
	}
	schema := operations(doc)["POST /v1/events/:event/holds"].schema
	for body, want := range map[string]struct{ code, pointers string }{
		`{"seats":[1,{"id":2,"fence":3}]}`:               {"", ""},
		`{"seats":[]}`:                                   {"invalid", "/seats"},
		`{"seats":[0,{"id":-1}]}`:                        {"invalid", "/seats/0 /seats/1/id"},
		`{"seats":["1"]}`:                                {"invalid", "/seats/0"},
		`{"seats":[{"id":1,"price":0}]}`:                 {"unknown_field", "/seats/0"},
		`{"seats":[1],"is_admin":true}`:                  {"unknown_field", ""},
		`{"Seats":[1],"seats":[1]}`:                      {"unknown_field", ""},
		`{"seats":"1"}`:                                  {"wrong_type", "/seats"},
		`{"seats":null}`:                                 {"wrong_type", "/seats"},
		`{}`:                                             {"invalid", ""},
		`{"seats":[1],"ga":{"area":1,"quantity":1}}`:     {"invalid", ""},
		`{"ga":{"area":1,"quantity":0}}`:                 {"invalid", "/ga/quantity"},
		`{"ga":{"area":1,"quantity":-3}}`:                {"invalid", "/ga/quantity"},
		`{"ga":{"area":1}}`:                              {"invalid", "/ga/quantity"},
		`{"seats":[2147483648]}`:                         {"invalid", "/seats/0 /seats/0"},
		`{"seats":[` + strings.Repeat("1,", 200) + `1]}`: {"invalid", "/seats"},
	} {
		value, err := decodeStrict([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		err = validate(schema, value)
		var pointers []string
		if e, ok := errors.AsType[*requestError](err); ok {
			for _, f := range e.faults {
				pointers = append(pointers, *f.Pointer)
			}
		}
		if got := strings.Join(pointers, " "); codeOf(err) != want.code || got != want.pointers {
			t.Errorf("%s: %q at %q, want %q at %q", body, codeOf(err), got, want.code, want.pointers)
		}
	}
}
