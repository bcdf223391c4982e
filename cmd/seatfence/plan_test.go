package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seatfence/db/dbtest"
	"seatfence/seats/plan"
)

const fixtures = "../../seats/plan/testdata/"

func TestPlanCheckTellsEveryDefectAndFails(t *testing.T) {
	t.Parallel()
	code, out, stderr := once(t, nil, "plan", "check", fixtures+"pretix.json")
	if code != exitFailed || !strings.Contains(stderr, "the plan has 3 errors") {
		t.Errorf("%d, %s", code, stderr)
	}
	for _, part := range []string{"7 seats", "duplicate_guid", "/zones/0/rows/0/seats/1", "warning", "unused_category"} {
		if !strings.Contains(out, part) {
			t.Errorf("the report lacks %q:\n%s", part, out)
		}
	}
	code, out, _ = once(t, nil, "plan", "check", "--json", "--repair", fixtures+"pretix.json")
	var report plan.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || report.Repaired != 6 || report.Counts.Seats != 7 {
		t.Errorf("repaired: %d, %v, %+v", code, err, report)
	}
}

func TestPlanExportIsOurFormat(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile(fixtures + "own.json")
	if err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := once(t, nil, "plan", "export", fixtures+"own.json"); code != 0 || out != string(want) {
		t.Errorf("%d, %s\n%s", code, stderr, out)
	}
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, want[:len(want)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{broken, broken + ".gone"} {
		if code, out, stderr := once(t, nil, "plan", "export", name); code != exitFailed || out != "" || stderr == "" {
			t.Errorf("%s: %d, %s%s", name, code, out, stderr)
		}
	}
}

func TestPlanImportKeepsAVersionAndPublishesIt(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + dbtest.URL(t)}
	own := fixtures + "own.json"
	if code, _, stderr := once(t, environ, "plan", "import", own, "--organizer", "Old Mill"); code != exitFailed || !strings.Contains(stderr, "no organizer") {
		t.Errorf("%d, %s", code, stderr)
	}
	if code, _, stderr := once(t, environ, "apikey", "create", "--organizer", "Old Mill", "--name", "till"); code != 0 {
		t.Fatal(stderr)
	}
	kept := func(want string, args ...string) (id string) {
		t.Helper()
		code, out, stderr := once(t, environ, append([]string{"plan", "import", "--organizer", "Old Mill"}, args...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		id, rest, _ := strings.Cut(lines[len(lines)-1], " ")
		if code != 0 || rest != want {
			t.Errorf("%v: %d, %s%s", args, code, out, stderr)
		}
		return id
	}
	id := kept("version 1 validated", own, "--venue", "Mill")
	kept("version 1 published", own, "--venue", "Mill", "--publish")
	kept("version 2 draft", fixtures+"pretix.json", "--plan", id)
	kept("version 3 published", fixtures+"pretix.json", "--plan", id, "--repair", "--publish")
	for message, args := range map[string][]string{
		"the version of the plan has errors": {fixtures + "pretix.json", "--plan", id, "--publish"},
		"no plan that can be read":           {"plan.go"},
		"malformed id":                       {own, "--plan", "x"},
		"has its venue":                      {own, "--plan", id, "--venue", "Mill"},
	} {
		if code, _, stderr := once(t, environ, append([]string{"plan", "import", "--organizer", "Old Mill"}, args...)...); code != exitFailed || !strings.Contains(stderr, message) {
			t.Errorf("%v: %d, %s", args, code, stderr)
		}
	}
	if code, out, stderr := once(t, nil, "plan", "import", own, "--organizer", "Old Mill", "--dry-run"); code != 0 || !strings.Contains(out, "seats") {
		t.Errorf("dry run: %d, %s%s", code, out, stderr)
	}
}

func TestLargePlanShowsProgress(t *testing.T) {
	t.Parallel()
	large := filepath.Join(t.TempDir(), "large.json")
	spec := `{"sections":[{"name":"Bowl","type":"grid","rows":250,"seatsPerRow":100},{"name":"Ring","type":"grid","rows":250,"seatsPerRow":100,"position":{"x":0,"y":9000}}]}`
	if err := os.WriteFile(large, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := once(t, nil, "plan", "check", large); code != 0 || stderr != "25000 seats read\n50000 seats read\n" {
		t.Errorf("%d, %s%s", code, out, stderr)
	}
}
