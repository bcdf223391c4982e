package httpapi_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"seatfence/booking"
	"seatfence/seats"
)

const (
	malformed = "400 malformed_json"
	wrongType = "400 wrong_type"
	wrong     = "422 invalid"
	notFound  = "404 not_found"
)

// badBodies are what an operation refuses as its body.
func (x target) badBodies(t *testing.T) (list []bad) {
	add := func(row int, name, body, answers string, edits ...edit) {
		list = append(list, bad{row, name, x.method, x.path(), body, append(x.edits(), edits...), answers})
	}
	if x.body == "" {
		for _, body := range []string{`{"status":"booked"}`, `null`, `[]`, `{} {}`, `{"a":1`, "seats=1", "\xff"} {
			add(112, "body", body, "400 body_not_allowed")
		}
		add(20, "too large", strings.Repeat(" ", 64<<10+1), "413 body_too_large")
		add(21, "too large", strings.Repeat(" ", 64<<10+1), "413 body_too_large", chunked)
		return list
	}
	if x.op.OperationID == "importPlan" {
		x.badFiles(add)
		return list
	}
	if x.op.OperationID == "saveDraft" || x.op.OperationID == "saveDraftPage" {
		x.badPages(add)
		return list
	}
	x.wholeBodies(t, add)
	x.contentTypes(add)
	for _, p := range places(t, x.body) {
		switch value := p.value.(type) {
		case map[string]any:
			x.badObjects(t, p, value, add)
		case []any:
			x.badArrays(t, p, value, add)
		case string:
			badStrings(p, value, add)
		case bool:
			for _, raw := range []string{`"true"`, "1", "null", "{}"} {
				add(104, p.at, p.with(raw), wrongType)
			}
		default:
			badNumbers(p, add)
		}
	}
	return list
}

func chunked(r *http.Request) { r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(r.Body)) }

type adder func(row int, name, body, answers string, edits ...edit)

func (x target) wholeBodies(t *testing.T, add adder) {
	limit := 64 << 10
	if x.op.OperationID == "createEvent" {
		limit = 1 << 20
	}
	padded := func(n int) string { return x.body + strings.Repeat(" ", n-len(x.body)) }
	in := func(members string) string { return `{` + members + `,` + strings.TrimPrefix(x.body, `{`) }
	add(1, "truncated", x.body[:len(x.body)-1], malformed)
	add(1, "truncated", `{"seats":[1`, malformed)
	add(2, "nothing", "", "400 body_required", header("Content-Type", "application/json"))
	add(2, "blanks", " \r\n\t", "400 body_required")
	add(3, "null", "null", wrongType)
	for _, body := range []string{"[" + x.body + "]", `"a"`, "1", "true"} {
		add(4, "not an object", body, wrongType)
	}
	for _, behind := range []string{x.body, "]", "}", "x", "\x00", "null"} {
		add(5, "more behind it", x.body+behind, malformed)
	}
	for row, members := range map[int][]string{
		8:  {`"colour":"red"`, `"":1`, `"__proto__":{}`},
		11: {`"is_admin":true`, `"buyer_id":"x"`, `"owner":1`, `"organizer_id":1`, `"id":1`, `"fence":0`, `"created_at":"2020-01-01T00:00:00Z"`},
		12: {`"Event":"999"`, `"Hold":"999"`, `"event_id":"999"`},
		32: {`"amount":0`, `"price":0`, `"total":-1`},
	} {
		for _, member := range members {
			add(row, member, in(member), "400 unknown_field")
		}
	}
	add(20, "too large", padded(limit+1), "413 body_too_large")
	add(21, "too large", padded(limit+1), "413 body_too_large", chunked)
	add(23, "deep", in(`"x":`+strings.Repeat(`{"a":`, 200)+"1"+strings.Repeat("}", 200)), malformed)
	add(23, "deep", strings.Repeat("[", 60_000), malformed)
	add(23, "deep and large", in(`"x":`+strings.Repeat(`{"a":`, 1<<18)), "413 body_too_large")
	for name, body := range map[string]string{"form": "seats=1&event=1", "XML": "<seats/>", "quotes": strings.ReplaceAll(x.body, `"`, `'`), "comment": "/**/" + x.body} {
		add(1, name+" called JSON", body, malformed)
	}
	add(105, "byte order mark", "\ufeff"+x.body, malformed)
	for order, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		var wide strings.Builder
		for _, c := range []byte(x.body) {
			wide.Write([][]byte{{c, 0}, {0, c}}[order])
		}
		add(105, "UTF-16", mark+wide.String(), malformed)
		add(105, "UTF-16 without a mark", wide.String(), malformed)
	}
	for _, encoding := range []string{"gzip", "deflate", "br", "identity", "x"} {
		add(106, encoding, x.body, "415 unsupported_media_type", header("Content-Encoding", encoding))
	}
}

func (x target) contentTypes(add adder) {
	const refused = "415 unsupported_media_type"
	as := func(types ...string) edit { return func(r *http.Request) { r.Header["Content-Type"] = types } }
	add(14, "form", "seats=1", refused, as("application/x-www-form-urlencoded"))
	add(14, "JSON called a form", x.body, refused, as("application/x-www-form-urlencoded"))
	add(15, "XML", "<seats/>", refused, as("application/xml"))
	add(15, "entity bomb", `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>`, refused, as("text/xml"))
	add(16, "multipart", "--b\r\nContent-Disposition: form-data; name=\"seats\"\r\n\r\n1\r\n--b--\r\n", refused, as("multipart/form-data; boundary=b"))
	for _, kind := range []string{
		"text/plain", "", "json", "application/", "application/jsonp", "text/json", "application/merge-patch+json", "application/problem+json", "*/*",
		"application/json; charset=utf-16", "application/json; charset=", "application/json, text/plain", "application/json; charset=utf-8; charset=utf-16",
	} {
		add(17, kind, x.body, refused, as(kind))
	}
	add(17, "no type", x.body, refused, as())
	add(17, "two types", x.body, refused, as("application/json", "application/x-www-form-urlencoded"))
}

// optional are the members that can be left out.
var optional = []string{"session", "type", "fence", "payment_reference", "expected_total", "first", "from", "sections", "areas", "events"}

// narrowing are those of a wish.
var narrowing = []string{"category", "section", "together"}

// mayLack reports whether the operation does without a member that others need.
func (x target) mayLack(p place, member string) bool {
	switch x.op.OperationID {
	case "createHold":
		return p.at == "/best_available" && slices.Contains(narrowing, member)
	case "changePlan":
		return member == "prices"
	case "takeEdit":
		return member == "item"
	case "createChannel":
		return p.at == "" && member != "name"
	case "createEvent":
		return member == "types" || member == "orphan_rule" || member == "order_limit"
	case "updateEvent", "changeStaff", "changeHold", "updateChannel":
		return p.at == ""
	}
	return false
}

func (x target) badObjects(t *testing.T, p place, object map[string]any, add adder) {
	typed := wrongType
	if p.name == "seats" || p.name == "add" { // a seat may be a number, too
		typed += "|" + wrong
	}
	for _, raw := range []string{"null", `"a"`, "[]", "true"} {
		if p.at != "" {
			add(104, p.at, p.with(raw), typed)
		}
	}
	rest := encode(t, object)[1:]
	add(8, p.at, p.with(`{"colour":"red",`+rest), "400 unknown_field")
	for _, member := range slices.Sorted(maps.Keys(object)) {
		value, at := encode(t, object[member]), p.at+"/"+member
		add(101, at, p.with(`{"`+member+`":`+value+`,`+rest), "400 duplicate_field")
		add(101, at, p.with(fmt.Sprintf(`{"\u%04x%s":%s,%s`, member[0], member[1:], value, rest)), "400 duplicate_field")
		for _, other := range []string{strings.ToUpper(member[:1]) + member[1:], strings.ToUpper(member), member + " ", strings.Replace(member, "s", "ſ", 1)} {
			if other != member {
				add(102, at, p.with(`{"`+other+`":`+value+`,`+rest), "400 unknown_field")
			}
		}
		less := maps.Clone(object)
		delete(less, member)
		if x.mayLack(p, member) {
			continue
		}
		if !slices.Contains(optional, member) {
			add(103, at, p.with(encode(t, less)), wrong)
		}
	}
	if p.at == "" {
		add(103, "no member", "{}", wrong)
	}
}

func (x target) badArrays(t *testing.T, p place, list []any, add adder) {
	for _, raw := range []string{"null", `"a"`, "{}", "true", "1"} {
		add(104, p.at, p.with(raw), wrongType)
	}
	if p.name != "sections" && p.name != "areas" && (p.name != "prices" || x.name != "changePlan") && (p.name != "keys" || x.name != "updateChannel") { // a house needs one of both
		add(25, p.at, p.with("[]"), wrong)
	}
	first := encode(t, list[0])
	add(109, p.at, p.with("["+first+","+first+"]"), wrong)
	add(24, p.at, p.with("["+strings.Repeat("1,", 99_999)+"1]"), "413 body_too_large|400 wrong_type")
	if p.name == "seats" || p.name == "add" || p.name == "drop" {
		add(24, p.at, p.with("["+strings.Repeat("1,", 9_999)+"1]"), wrong)
		add(104, p.at, p.with("[null]"), wrongType+"|"+wrong)
		add(104, p.at, p.with("[[1]]"), wrongType+"|"+wrong)
	}
}

func badNumbers(p place, add adder) {
	for _, raw := range []string{"1.5", "1.0", "1e2", "1E2", "01", "+1", "0x1", "1_0", ".5", "1.", "NaN", "Infinity", "-"} {
		add(31, p.at, p.with(raw), malformed)
	}
	for _, raw := range []string{"9223372036854775808", "-9223372036854775809", "1" + strings.Repeat("0", 1000)} {
		add(30, p.at, p.with(raw), malformed)
	}
	typed := wrongType
	if p.name == "seats" || p.name == "add" {
		typed += "|" + wrong
	}
	for _, raw := range []string{`"1"`, `""`, "true", "null", "[]"} {
		add(104, p.at, p.with(raw), typed)
	}
	for _, raw := range []string{"-3", "-1", "-9223372036854775808"} {
		add(31, p.at, p.with(raw), wrong)
	}
	large := wrong
	switch p.name {
	case "fence":
		large = "409 stale_fence"
	case "expected_total":
		large = "409 price_changed"
	}
	add(30, p.at, p.with("9223372036854775807"), large)
	row := 31
	switch p.name {
	case "price":
		add(33, p.at, p.with("1000000001"), wrong)
		return // can be 0, as those below
	case "first", "fence", "expected_total", "release_before_seconds":
		return
	case "id", "seats", "add", "drop", "area":
		row = 28
		add(30, p.at, p.with("2147483648"), wrong)
		add(30, p.at, p.with("4294967297"), wrong)
		add(27, p.at, p.with("2147483647"), "404 seat_unknown|404 not_found|422 invalid")
	}
	add(row, p.at, p.with("0"), wrong)
	add(row, p.at, p.with("-0"), wrong)
}

func badStrings(p place, value string, add adder) {
	typed := wrongType
	if p.name == "status" || p.name == "payment" || p.name == "currency" || p.name == "role" { // of an enum, nothing else is right
		typed = wrong
	}
	for _, raw := range []string{"1", "true", "null", "{}", "[]"} {
		add(104, p.at, p.with(raw), typed)
	}
	for _, raw := range []string{`"\u0000"`, `"a\u0000b"`, "\"\x00\"", "\"\x1f\"", "\"\n\""} {
		add(36, p.at, p.with(raw), malformed)
	}
	for _, raw := range []string{`"\ud83d"`, `"a\udc00b"`, "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", `"\x41"`, `"\u12"`} {
		add(105, p.at, p.with(raw), malformed)
	}
	quoted := func(text string) string { return p.with(`"` + text + `"`) }
	add(108, p.at, quoted(""), wrong)
	add(108, p.at, quoted(strings.Repeat("x", 5000)), wrong)
	add(42, p.at, quoted(strings.Repeat("x", 2<<20)), "413 body_too_large")
	for _, text := range badTexts[p.name] {
		add(rowOfText[p.name], p.at+" "+text, quoted(text), wrong)
	}
	switch p.name {
	case "hold", "event":
		for _, id := range []string{
			"x", value + "x", strings.ToUpper(value), " " + value, "'; DROP TABLE seats; --", "%' OR 1=1", "../x", "evt_", "hold_",
			seats.EventID(7).String(), booking.HoldID{Event: 7}.String(), booking.BookingID{Event: 7}.String(), booking.BlockID{Event: 7}.String(),
		} {
			add(43, p.at+" "+id, quoted(id), notFound)
		}
	case "status", "payment", "timezone", "currency", "starts_at", "sale_starts_at", "sale_ends_at", "type", "email", "role", "password":
	default: // texts that people read
		for _, text := range []string{" ", "\u00a0", "\u3000"} {
			add(108, p.at, quoted(text), wrong)
		}
		for _, text := range []string{`a\nb`, `a\r\nBcc: b`, `a\tb`, `\u0007`, "a\u007fb", "a\u0085b", "a\u2028b", "a\u202egnp.b", "a\u2066b"} {
			add(45, p.at, quoted(text), wrong)
		}
	}
}

var farOff = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -14*3600)).Format(time.RFC3339)

// badTexts are texts that the members of these names refuse besides what all refuse.
var badTexts = map[string][]string{
	"timezone":       {"../etc/passwd", "Local", "Mars/Olympus", "europe/berlin/", "/Europe/Berlin", "UTC+1", "Europe/Berlin ", `Europe\\Berlin`},
	"currency":       {"eur", "Eur", "XXX", "XTS", "ZZZ", "EURO", "EU", "EUR ", "ıNR", "€UR", "ＥＵＲ", "978"},
	"starts_at":      dates,
	"sale_starts_at": dates,
	"sale_ends_at":   dates,
	"status":         {"booked", "On_sale", "on sale", "ended ", "deleted"},
	"payment":        {"None", "free", "none "},
	"role":           {"admin", "Owner", "owner ", "box office"},
	"type":           {"child", "Standard", "standard "},
	"category":       {"Z", "a", "A "},
	"name":           {"", "\u200b", "\u202e\u202c"},
	"email": {
		"lena", "lena@", "@example.com", "lena@@example.com", "le na@example.com", "lena@exa mple.com", "a@b@example.com", "lena@example.com, omar@example.com",
		"Lena <lena@example.com>", `lena@example.com\r\nBcc: omar@example.com`, `\"lena`, "lena@exämple.com", "lénà@example.com",
		"lena@[127.0.0.1]", "lena@example.com\u202e", `<script>@example.com`, strings.Repeat("l", 250) + "@example.com",
	},
}

var dates = []string{
	"2099-02-30T00:00:00Z", "2099-13-01T00:00:00Z", "2099-01-01", "2099-01-01T00:00:00", "2099-01-01 00:00:00Z", "2099-01-01T24:00:00Z", "2099-01-01T00:00:60Z",
	"now", "infinity", "1e9", "10000-01-01T00:00:00Z", farOff, "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2099-01-01T00:00:00+99:99",
}

var rowOfText = map[string]int{
	"timezone": 108, "currency": 34, "starts_at": 107, "sale_starts_at": 107, "sale_ends_at": 107, "status": 108, "payment": 108, "type": 108, "category": 108,
	"name": 41, "email": 46, "role": 108,
}
