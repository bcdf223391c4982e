package plan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/getkin/kin-openapi/openapi3"

	"seatfence/seats"
	"seatfence/seats/plan"
)

func read(t *testing.T, text string, repair bool) (plan.Plan, plan.Report) {
	t.Helper()
	p, report, err := plan.Import(t.Context(), strings.NewReader(text), plan.Options{Repair: repair})
	if err != nil {
		t.Fatal(err)
	}
	return p, report
}

func export(t *testing.T, p plan.Plan) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Export(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// tallies is what a report counts, in one line.
func tallies(r plan.Report) string {
	var list []string
	for _, t := range r.Tallies {
		list = append(list, fmt.Sprintf("%s %s %d/%d", t.Severity, t.Code, t.Count, t.Seats))
	}
	return strings.Join(list, ", ")
}

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// real plans of other people lie beside the repository, and not everywhere.
func real(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "plans")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder of real plans is not here")
	}
	return file(t, filepath.Join(dir, name))
}

func TestRealPlansKeepEverySeatAndShowEveryDefect(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		counts  plan.Counts
		tallies string
	}{
		"seatmap-canvas-stadium.pretix.json": {
			plan.Counts{Categories: 5, Sections: 2, Rows: 90, Seats: 738},
			// 738 seats less 546 that share one of 126 ids leave 192 ids of one seat, and so 318 in all.
			"error duplicate_guid 126/546, error duplicate_label_in_section 126/546, warning unused_category 1/0, warning wrong_type 2/0",
		},
		"seatmap-pro-theatre.json": {
			plan.Counts{Categories: 1, Sections: 2, Rows: 18, Seats: 468, Accessible: 4, Areas: 1}, "error no_capacity 1/0",
		},
		"revel-teatro-grande.csv": {
			plan.Counts{Categories: 4, Sections: 6, Rows: 41, Seats: 1352, Inactive: 3, Accessible: 20}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, report := read(t, real(t, name), false)
			if report.Counts != want.counts || p.Count() != want.counts {
				t.Errorf("counted %+v, want %+v", report.Counts, want.counts)
			}
			if got := tallies(report); got != want.tallies {
				t.Errorf("defects: %s\nwant: %s", got, want.tallies)
			}
			again, second := read(t, export(t, p), false)
			if export(t, again) != export(t, p) || second.Counts != report.Counts {
				t.Error("what was exported does not come back the same")
			}
			fixed, after := read(t, real(t, name), true)
			if fixed.Count().Seats != want.counts.Seats || after.Count(plan.DuplicateGUID)+after.Count(plan.DuplicateLabel) != 0 {
				t.Errorf("repaired: %+v, %s", fixed.Count(), tallies(after))
			}
			if clean := report.Errors() == report.Count(plan.NoCapacity); clean != (after.Repaired == 0) {
				t.Errorf("%d repairs of %s", after.Repaired, tallies(report))
			}
		})
	}
}

func TestFixturesShowTheirTraps(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"pretix.json": "error duplicate_guid 1/3, error duplicate_label_in_section 1/2, error unknown_category 1/1, warning empty_row_label 1/0, " +
			"warning overlapping_seats 1/1, warning unused_category 1/0, warning wrong_type 2/0",
		"spec.json":  "error no_capacity 1/0, warning no_such_seat 1/0",
		"latin1.csv": "error wrong_type 1/0, warning no_coordinates 1/0",
		"own.json":   "",
	} {
		p, report := read(t, file(t, "testdata/"+name), false)
		if got := tallies(report); got != want {
			t.Errorf("%s: %s\nwant %s\n%+v", name, got, want, report.Defects)
		}
		if again, _ := read(t, export(t, p), false); export(t, again) != export(t, p) {
			t.Errorf("%s does not come back the same", name)
		}
	}
}

func TestADefectNamesItsPlaceAndSeat(t *testing.T) {
	t.Parallel()
	_, report := read(t, file(t, "testdata/pretix.json"), false)
	i := slices.IndexFunc(report.Defects, func(d plan.Defect) bool { return d.Code == plan.DuplicateLabel })
	d := report.Defects[i]
	if d.At != "/zones/0/rows/0/seats/1" || !slices.Equal(d.Also, []string{"/zones/0/rows/1/seats/0"}) || *d.Seat != (seats.Place{Section: "Floor", Row: "A", Number: "2"}) {
		t.Errorf("%+v", d)
	}
	_, report = read(t, file(t, "testdata/latin1.csv"), false)
	if d := report.Defects[0]; d.Code != plan.WrongType || d.At != "4:18" {
		t.Errorf("%+v", d)
	}
}

func TestRepairsAreListedAndLeaveNothingToRepair(t *testing.T) {
	t.Parallel()
	broken := file(t, "testdata/pretix.json")
	p, report := read(t, broken, true)
	if report.Errors() != 0 || report.Counts.Seats != 7 || report.Repaired != len(report.Repairs) || report.Repaired != 6 {
		t.Errorf("%s; %+v", tallies(report), report.Repairs)
	}
	if label := p.Sections[0].Rows[1].Label; label != "A (2)" {
		t.Errorf("the second row A is %q", label)
	}
	again, second := read(t, export(t, p), true)
	if second.Repaired != 0 || export(t, again) != export(t, p) {
		t.Errorf("a repaired plan is repaired again: %+v", second.Repairs)
	}
}

func TestSheetsInAnyDialectAreOnePlan(t *testing.T) {
	t.Parallel()
	want := ""
	for _, sheet := range []string{
		"section,row,seat,x,y\nStalls,A,1,0,0\nStalls,A,2,1,0\n",
		"\ufeffSector;Fila;Butaca;X;Y\r\nStalls;A;1;0,0;0\r\nStalls;A;2;1,0;0\r\n",
		"zone\trow_label\tplatz\tx\ty\nStalls\tA\t1\t0\t0\nStalls\tA\t2\t1\t0",
	} {
		p, report := read(t, sheet, false)
		if got := export(t, p); len(report.Tallies) != 0 || want != "" && got != want {
			t.Errorf("%q: %s\n%s", sheet, tallies(report), got)
		} else {
			want = got
		}
	}
}

func TestSeatsOfASpecAreNumberedAsItSays(t *testing.T) {
	t.Parallel()
	p, _ := read(t, file(t, "testdata/spec.json"), false)
	var got []string
	for _, s := range p.Sections {
		for _, r := range s.Rows {
			text := s.Name + " " + r.Label + ":"
			for _, seat := range r.Seats {
				text += " " + seat.Number
			}
			got = append(got, text)
		}
	}
	want := []string{"Left Y: 3 2 1", "Left Z: 3 1", "Left AA: 3 2 1", "Bow X: 01 02", "Bow IX: 01 02"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// stranger is input that never ends.
type stranger struct{ read int }

func (s *stranger) Read(p []byte) (int, error) {
	s.read += len(p)
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestHostileFilesGetAReport(t *testing.T) {
	t.Parallel()
	seat := `{"format":"seatfence-plan/1","name":"","categories":[{"name":"C"}],"sections":[{"name":"S","rows":[{"label":"A","seats":[{"number":"1","category":"C","x":%s,"y":0}]}]}]}`
	million := `{"schema":{"name":"M"},"sections":[{"name":"S","type":"grid","rows":1000,"seatsPerRow":1000}]}`
	for name, c := range map[string]struct {
		text string
		code plan.Code
		at   string
	}{
		"empty":              {"", plan.NotReadable, ""},
		"truncated":          {fmt.Sprintf(seat, "1")[:100], plan.NotReadable, "1:101"},
		"deep":               {strings.Repeat("[", 10_001), plan.NotReadable, "1:66"},
		"deep in a key":      {`{"format":"seatfence-plan/1","x":` + strings.Repeat(`{"a":`, 10_001), plan.NotReadable, "1:350"},
		"NaN":                {fmt.Sprintf(seat, "NaN"), plan.NotReadable, "1:155"},
		"NaN as text":        {fmt.Sprintf(seat, `"NaN"`), plan.OutOfRange, "/sections/0/rows/0/seats/0"},
		"huge":               {fmt.Sprintf(seat, "1e999"), plan.OutOfRange, "/sections/0/rows/0/seats/0"},
		"mixed":              {fmt.Sprintf(seat, `{"a":[1]}`), plan.WrongType, "/sections/0/rows/0/seats/0/x"},
		"invalid UTF-8":      {"{\"format\":\"\xff\"}", plan.NotReadable, "1:12"},
		"two documents":      {fmt.Sprintf(seat, "1") + "{}", plan.NotReadable, ""},
		"no plan":            {`{"hello":1}`, plan.NotReadable, ""},
		"newer":              {`{"format":"seatfence-plan/2"}`, plan.NotReadable, "/format"},
		"prose":              {"Dear all,\nthe plan is attached.\n", plan.NotReadable, "1:1"},
		"million":            {million, plan.TooManySeats, ""},
		"million lines":      {"row,seat\n" + strings.Repeat("A,1\n", 1_000_000), plan.TooManySeats, ""},
		"overflowing":        {strings.Replace(million, "1000,", "999999999,", 1), plan.TooManySeats, ""},
		"broken quote":       {"row,seat\nA,\"1\nB,2\n", plan.NotReadable, ""},
		"NaN in a sheet":     {"row,seat,x,y\nA,1,NaN,0\n", plan.OutOfRange, "2:1"},
		"control characters": {"row,seat,x,y\nA,1\x00,0,0\n", plan.BadName, "2:1"},
		"turned text":        {"row,seat,x,y\nA\u202e,1,0,0\n", plan.BadName, "2:1"},
		"many categories":    {"row,seat,category\n" + lines(1000), plan.TooLarge, ""},
		"endless picks": {
			`{"sections":[{"name":"S","rows":1,"seatsPerRow":60000,"skip":[` + strings.Repeat(`{"row":"1"},`, 100_000) + `{"row":"1"}]}]}`, plan.TooLarge, "/sections/0/skip/3",
		},
		"endless sections": {`{"sections":[` + strings.Repeat(`{"name":"S","rows":20000,"seatsPerRow":1},`, 100_000) + `{}]}`, plan.TooManySeats, ""},
		"nothing":          {`{"zones":[]}`, plan.NoSeats, ""},
	} {
		_, report := read(t, c.text, true)
		i := slices.IndexFunc(report.Defects, func(d plan.Defect) bool { return d.Code == c.code && (c.at == "" || d.At == c.at) })
		if i < 0 || report.Errors() == 0 {
			t.Errorf("%s: no %s at %q in %s %+.300v", name, c.code, c.at, tallies(report), report.Defects)
		}
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "A,%d,%d\n", i, i)
	}
	return b.String()
}

func TestAMillionSeatsAreCounted(t *testing.T) {
	t.Parallel()
	p, report := read(t, "row,seat\n"+strings.Repeat("A,1\n", 1_000_000), false)
	if report.Counts.Seats != 1_000_000 || p.Count() != (plan.Counts{}) {
		t.Errorf("%+v, kept %+v", report.Counts, p.Count())
	}
}

func TestAReportStaysShortAndItsTalliesExact(t *testing.T) {
	t.Parallel()
	_, report := read(t, "row,seat,x,y\n"+strings.Repeat("A,1,far,0\n", 5_000), false)
	if report.Count(plan.WrongType) != 5_000 || len(report.Defects) > 500 {
		t.Errorf("%s in %d defects", tallies(report), len(report.Defects))
	}
}

func TestInputEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	endless := &stranger{}
	_, report, err := plan.Import(t.Context(), endless, plan.Options{})
	if err != nil || report.Count(plan.TooLarge) != 1 || endless.read > 3*plan.MaxBytes {
		t.Errorf("%v, %s, after %d bytes", err, tallies(report), endless.read)
	}
}

func TestErrorsAreOfTheReaderAndTheCaller(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	if _, _, err := plan.Import(t.Context(), iotest.ErrReader(broken), plan.Options{}); !errors.Is(err, broken) {
		t.Errorf("reader: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := 0
	_, _, err := plan.Import(ctx, arena(50_000), plan.Options{Progress: func(n int) { read = n; cancel() }})
	if !errors.Is(err, context.Canceled) || read > 5_000 {
		t.Errorf("%v after %d seats", err, read)
	}
}

func TestOurFormatIsWhatItsSchemaSays(t *testing.T) {
	t.Parallel()
	var schema openapi3.Schema
	if err := schema.UnmarshalJSON(plan.Schema); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"own": file(t, "testdata/own.json"), "spec": file(t, "testdata/spec.json"), "empty rows": `{"format":"seatfence-plan/1","name":"","categories":[],"sections":[{"name":"S","rows":[{"label":"A","seats":[]}]}],"decorations":[{"kind":"x","outline":[]}]}`} {
		p, _ := read(t, text, false)
		if name == "own" && export(t, p) != text {
			t.Errorf("the fixture is exported as\n%s", export(t, p))
		}
		if err := schema.VisitJSON(decoded(t, export(t, p))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// arena is a pretix plan of n seats.
func arena(n int) io.Reader {
	var b strings.Builder
	b.WriteString(`{"name":"Arena","categories":[{"name":"C"}],"zones":[{"name":"Bowl","position":{"x":0,"y":0},"rows":[`)
	for i := range n / 100 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"row_number":"%d","position":{"x":0,"y":%d},"seats":[`, i+1, 25*i)
		for j := range 100 {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"seat_number":"%d","seat_guid":"bowl-%d-%d","uuid":"u-%d-%d","category":"C","position":{"x":%d.5,"y":0}}`, j+1, i, j, i, j, 25*j)
		}
		b.WriteString("]}")
	}
	b.WriteString("]}]}")
	return strings.NewReader(b.String())
}

func TestFiftyThousandSeatsAreOnePlan(t *testing.T) {
	t.Parallel()
	last, calls := 0, 0
	p, report, err := plan.Import(t.Context(), arena(50_000), plan.Options{Progress: func(n int) { last = n; calls++ }})
	if err != nil || p.Count().Seats != 50_000 || len(report.Tallies) != 0 || last != 50_000 || calls < 50 {
		t.Errorf("%v, %+v, %s, progress to %d in %d", err, p.Count(), tallies(report), last, calls)
	}
	again, _ := read(t, export(t, p), false)
	if export(t, again) != export(t, p) {
		t.Error("what was exported does not come back the same")
	}
}

func BenchmarkImport50k(b *testing.B) {
	b.ReportAllocs()
	text, err := io.ReadAll(arena(50_000))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := plan.Import(b.Context(), bytes.NewReader(text), plan.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(`{"sections":[{"rows":9,"seatsPerRow":9,"type":"arc","radius":1e308,"numbering":{"rows":{"format":"roman","from":"MMMCMXCIX"}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, repair := range []bool{false, true} {
			p, _, err := plan.Import(t.Context(), bytes.NewReader(data), plan.Options{Repair: repair})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range p.Sections {
				s.Runs()
			}
			text := export(t, p)
			if again, _ := read(t, text, false); export(t, again) != text {
				t.Errorf("what was exported does not come back the same:\n%s", text)
			}
		}
	})
}
