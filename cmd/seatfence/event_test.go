package main

import (
	"strings"
	"testing"

	"seatfence/booking"
	"seatfence/db/dbtest"
	"seatfence/seats"
)

// ownPlan makes an organizer, Old Mill, with a published plan, and returns the plan's id and the names of its categories.
func ownPlan(t *testing.T, environ []string) (plan string, categories []string) {
	t.Helper()
	if code, _, stderr := once(t, environ, "apikey", "create", "--organizer", "Old Mill", "--name", "till"); code != 0 {
		t.Fatal(stderr)
	}
	code, out, stderr := once(t, environ, "plan", "import", fixtures+"own.json", "--organizer", "Old Mill", "--venue", "Mill", "--publish")
	if code != 0 {
		t.Fatal(stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	plan, _, _ = strings.Cut(lines[len(lines)-1], " ")
	_, document, _ := once(t, nil, "plan", "export", fixtures+"own.json")
	for _, part := range strings.Split(document[:strings.Index(document, `"sections"`)], `"name": "`)[2:] { // the plan's name comes first
		category, _, _ := strings.Cut(part, `"`)
		categories = append(categories, category)
	}
	return plan, categories
}

func TestEventIsMadeOfAPlanAndCancelled(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + dbtest.URL(t)}
	plan, categories := ownPlan(t, environ)
	var prices []string
	for i, category := range categories {
		prices = append(prices, "--price", category+":adult=4500")
		if i == 0 {
			prices = append(prices, "--price", category+":child=2000")
		}
	}
	args := append([]string{
		"event", "create", "--organizer", "Old Mill", "--name", "The Tempest", "--plan", plan, "--starts-at", "2099-03-01T19:30:00+01:00",
		"--timezone", "Europe/Berlin", "--currency", "EUR", "--on-sale",
	}, prices...)
	code, out, stderr := once(t, environ, args...)
	event := strings.TrimSpace(out)
	if code != 0 || !strings.HasPrefix(event, "evt_") {
		t.Fatalf("%d, %s%s", code, out, stderr)
	}
	for message, change := range map[string][]string{
		"malformed id": {"--plan", "x"}, "CATEGORY[:TYPE]=AMOUNT": {"--price", "Floor"}, "IANA": {"--timezone", "Mars"},
		"not the caller's": {"--plan", booking.PlanID(1).String()}, "no organizer": {"--organizer", "New Mill"},
	} {
		if code, _, stderr := once(t, environ, append(args, change...)...); code != exitFailed || !strings.Contains(stderr, message) {
			t.Errorf("%v: %d, %s", change, code, stderr)
		}
	}
	if code, out, stderr := once(t, environ, "event", "cancel", event, "--organizer", "Old Mill"); code != 0 || !strings.Contains(out, "is cancelled") {
		t.Errorf("%d, %s%s", code, out, stderr)
	}
	if code, _, stderr := once(t, environ, "event", "cancel", seats.EventID(1).String(), "--organizer", "Old Mill"); code != exitFailed || !strings.Contains(stderr, "unknown") {
		t.Errorf("%d, %s", code, stderr)
	}
}

// A name stands in the head of mails and in lists; the API refuses these.
func TestEventOfACommandHasAReadableName(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + dbtest.URL(t)}
	plan, categories := ownPlan(t, environ)
	var prices []string
	for _, category := range categories {
		prices = append(prices, "--price", category+"=4500")
	}
	for _, name := range []string{"The Tempest\r\nBcc: omar@example.com", "\u202eThe Tempest", " ", strings.Repeat("x", 5000)} {
		code, out, stderr := once(t, environ, append([]string{
			"event", "create", "--organizer", "Old Mill", "--name", name, "--plan", plan, "--starts-at", "2099-03-01T19:30:00+01:00",
			"--timezone", "Europe/Berlin", "--currency", "EUR",
		}, prices...)...)
		if code != exitFailed || !strings.Contains(stderr, "a name has 1 to 200 characters") {
			t.Errorf("%.30q: %d, %s%s", name, code, out, stderr)
		}
	}
}
