package main

import (
	"strings"
	"testing"

	"seatfence/db/dbtest"
)

// A name stands in the head of mails and in lists; the API refuses these.
func TestEventOfACommandHasAReadableName(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + dbtest.URL(t)}
	if code, _, stderr := once(t, environ, "apikey", "create", "--organizer", "Old Mill", "--name", "till"); code != 0 {
		t.Fatal(stderr)
	}
	_, out, _ := once(t, environ, "plan", "import", fixtures+"own.json", "--organizer", "Old Mill", "--venue", "Mill", "--publish")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	plan, _, _ := strings.Cut(lines[len(lines)-1], " ")
	_, document, _ := once(t, nil, "plan", "export", fixtures+"own.json")
	var prices []string
	for _, part := range strings.Split(document[:strings.Index(document, `"sections"`)], `"name": "`)[2:] {
		category, _, _ := strings.Cut(part, `"`)
		prices = append(prices, "--price", category+"=4500")
	}
	for _, name := range []string{"The Tempest\r\nBcc: omar@example.com", "\u202eThe Tempest", " ", strings.Repeat("x", 5000)} {
		code, out, _ := once(t, environ, append([]string{
			"event", "create", "--organizer", "Old Mill", "--name", name, "--plan", plan, "--starts-at", "2099-03-01T19:30:00+01:00",
			"--timezone", "Europe/Berlin", "--currency", "EUR",
		}, prices...)...)
		if code == 0 {
			t.Errorf("%.30q was made: %s", name, out)
		}
	}
}
