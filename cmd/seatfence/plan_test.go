package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
