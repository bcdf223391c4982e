package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"seatfence/seats/plan"
)

// What another program has put into our format comes back as it was, to the byte from the second export on.
func TestUnknownMembersAreKept(t *testing.T) {
	t.Parallel()
	const file = `{"format":"seatfence-plan/1","zoom":1.50,"name":"","a<b":"<&>","categories":[{"name":"C"}],"sections":[{"name":"S","Name":[1, {"b":2,"a":1}],
		"rows":[{"label":"A","curve":-0.0,"seats":[{"number":"1","category":"C","x":0,"y":0,"note":"a\u0041","also":null}]}]}],
		"areas":[{"name":"F","category":"C","capacity":1,"floor":"wood"}]}`
	p, report := read(t, file, false)
	if report.Count(plan.UnknownKey) != 7 || report.Errors() > 0 {
		t.Errorf("%s", tallies(report))
	}
	text := export(t, p)
	for _, member := range []string{`"zoom": 1.50`, `"a<b": "<&>"`, `"curve": -0.0`, `"note": "a\u0041"`, `"also": null`, `"floor": "wood"`} {
		if !strings.Contains(text, member) {
			t.Errorf("the export lacks %s:\n%s", member, text)
		}
	}
	if strings.Index(text, `"also"`) > strings.Index(text, `"note"`) || strings.Index(text, `"b": 2`) > strings.Index(text, `"a": 1`) {
		t.Errorf("members are sorted, and what is in them is not:\n%s", text)
	}
	if again, _ := read(t, text, false); export(t, again) != text {
		t.Errorf("the export comes back as\n%s", export(t, again))
	}
}

func TestUnknownMembersAreKeptWithinBounds(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 200_010 {
		fmt.Fprintf(&many, `,"m%d":1`, i)
	}
	for name, c := range map[string]struct {
		member string
		kept   int
	}{
		"a long value": {`,"long":"` + strings.Repeat("x", 1_000) + `"`, 0},
		"a long name":  {`,"` + strings.Repeat("x", 81) + `":1`, 0},
		"many":         {many.String(), 200_000},
		"a full one":   {`,"list":[1` + strings.Repeat(",\n 1", 498) + `]`, 1}, // longer than the bound with its blanks
	} {
		p, report := read(t, `{"format":"seatfence-plan/1","name":"","categories":[],"sections":[]`+c.member+`}`, false)
		if again, _ := read(t, export(t, p), false); len(again.Extra) != c.kept {
			t.Errorf("%s: %d come back", name, len(again.Extra))
		}
		if len(p.Extra) != c.kept || report.Count(plan.UnknownKey) == 0 {
			t.Errorf("%s: %d are kept, %s", name, len(p.Extra), tallies(report))
		}
	}
}
