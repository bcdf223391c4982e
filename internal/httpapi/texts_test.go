package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// texts are stored as they are, in Unicode form C, and searched for literally.
func (s *suite) texts() {
	s.t.Helper()
	seat := 0
	book := func(row int, name, reference string) answer {
		seat++
		s.tried[row]++
		body := fmt.Sprintf(`{"event":"%s","seats":[%d],"buyer":{"name":%s,"email":"reader@example.com"},"payment_reference":%s}`,
			s.event, 10+seat, quote(name), quote(reference))
		return s.post("/v1/bookings", body, as(s.partner), key(fmt.Sprint("text-", row, "-", seat)))
	}
	s.event = s.eventWith(wideRow...)
	for name, stored := range map[string]string{
		"Żółć": "Żółć", "李小龍": "李小龍", "👩‍👩‍👧‍👦 & Co": "👩‍👩‍👧‍👦 & Co", "O": "O", "Zoe\u0308": "Zoë", "  Lena\u00a0": "Lena", "שלום": "שלום", "Å": "Å",
		"a" + strings.Repeat("\u0323", 20): "ạ" + strings.Repeat("\u0323", 19), strings.Repeat("李", 200): strings.Repeat("李", 200),
	} {
		got := book(41, name, "r").want(201)
		if read := s.get("/v1/bookings/"+got.text("id"), as(s.partner)).want(200); read.text("buyer", "name") != stored {
			s.t.Errorf("41: %q is stored as %q", name, read.text("buyer", "name"))
		}
	}
	for _, name := range []string{"a" + strings.Repeat("\u0301", 500), strings.Repeat("李", 201), "a\u202eb", "a\nb", "\u200b", " ", "..."} {
		book(41, name, "r").wantCode(422, "invalid")
	}
	for row, texts := range map[int][]string{
		43: {"'; DROP TABLE seats; --", "%' OR 1=1", "$1", "$$", `\'; -- x`, "x'||(SELECT 1)||'", "/* x */", "E'\\x27'"},
		45: {"<script>alert(1)</script>", "{{7*7}}", "=cmd()", "+1", "@x", `"quoted"`, "&lt;", "%0d%0aBcc: x", "${jndi:ldap://127.0.0.1}"},
	} {
		for _, text := range texts {
			got := book(row, text, text).want(201)
			if read := s.get("/v1/bookings/"+got.text("id"), as(s.partner)).want(200); read.text("buyer", "name") != text || read.text("payment_reference") != text {
				s.t.Errorf("%d: %q is stored as %s", row, text, read.raw)
			}
			if bytes.ContainsAny(got.raw, "<>&") || got.header.Get("X-Content-Type-Options") != "nosniff" {
				s.t.Errorf("%d: a browser could take it for a page: %s", row, got.raw)
			}
			found := s.get("/v1/bookings?reference="+url.QueryEscape(text), as(s.partner)).want(200)
			if n := len(found.at("bookings").([]any)); n != 1 || found.text("bookings", 0, "id") != got.text("id") {
				s.t.Errorf("%d: search for %q found %d", row, text, n)
			}
		}
	}
	s.unwritten("searches", func() {
		for _, text := range []string{"%", "_", "%example%", "reader@%", "reader_example.com", "____-____", "' OR ''='", "*", "?", ".*", `\`} {
			for _, path := range []string{"/v1/bookings?email=", "/v1/bookings?reference=", "/v1/events/" + s.event + "/seats?section="} {
				s.tried[44]++
				if len(text) < 3 && strings.Contains(path, "email") {
					text += "%%%"
				}
				got := s.get(path+url.QueryEscape(text), as(s.organizer)).want(200)
				list, _ := got.at("bookings").([]any)
				places, _ := got.at("seats").([]any)
				if len(list)+len(places) > 0 {
					s.t.Errorf("44: %s%q found %s", path, text, got.raw)
				}
			}
		}
	})
	for _, email := range []string{"a@b.co", "lena+tickets@example.com", "o'neil@example.com", strings.Repeat("l", 64) + "@" + strings.Repeat("e.", 91) + "example"} {
		seat++
		s.tried[46]++
		body := fmt.Sprintf(`{"event":"%s","seats":[%d],"buyer":{"name":"Lena","email":%s}}`, s.event, 10+seat, quote(email))
		if got := s.post("/v1/bookings", body, as(s.partner), key("email-"+fmt.Sprint(seat))).want(201); got.text("buyer", "email") != email {
			s.t.Errorf("46: %s is stored as %s", email, got.text("buyer", "email"))
		}
	}
	s.composedNames()
}

// composedNames makes an event of names that are typed in parts: they are found as they are read.
func (s *suite) composedNames() {
	s.t.Helper()
	s.tried[41]++
	event := s.eventWith(`"Stalls"`, `"Scha\u0308nke"`, `"name":"A"`, `"name":"A\u030a"`, `"category":"A"`, `"category":"Å"`, "The Tempest", "L'E\u0301te\u0301")
	for _, section := range []string{"Schänke", "Scha\u0308nke"} {
		got := s.get("/v1/events/" + event + "/seats?section=" + url.QueryEscape(section)).want(200)
		if got.text("seats", 0, "section") != "Schänke" || got.text("seats", 0, "category") != "Å" {
			s.t.Errorf("41: %s", got.raw)
		}
	}
	if got := s.get("/v1/events/" + event).want(200); got.text("name") != "L'Été" {
		s.t.Errorf("41: the event is called %q", got.text("name"))
	}
}

func quote(text string) string {
	raw, _ := json.Marshal(text) // of a string
	return string(raw)
}
