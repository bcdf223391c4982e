package httpapi

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"

	"seatfence/booking"
)

// exported returns the names of the package's exported variables and constants that begin with prefix.
func exported(t *testing.T, prefix string) []string {
	t.Helper()
	var names []string
	entries, err := fs.ReadDir(os.DirFS("../../booking"), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../../booking/"+entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				value, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, name := range value.Names {
					if strings.HasPrefix(name.Name, prefix) {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func TestEveryErrorOfTheDomainHasAnAnswer(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	names := append(exported(t, "Err"), exported(t, "CodeSeat")...)
	if len(names) < 20 {
		t.Fatalf("found only %v", names)
	}
	for _, name := range names {
		if !strings.Contains(string(source), "booking."+name+",") && !strings.Contains(string(source), "booking."+name+":") {
			t.Errorf("booking.%s is in no table", name)
		}
	}
	for _, a := range answers {
		if _, ok := kinds[a.code]; !ok {
			t.Errorf("%v has the code %s, which is no kind", a.err, a.code)
		}
		p := problemOf(fmt.Errorf("book: %w", a.err))
		if p.Code != a.code || p.Status >= 500 && p.Status != 503 {
			t.Errorf("%v is answered %d %s", a.err, p.Status, p.Code)
		}
	}
}

func TestNothingOfAnUnknownErrorIsTold(t *testing.T) {
	t.Parallel()
	p := problemOf(errors.New("SELECT secret FROM seats"))
	if p.Status != 500 || p.Code != "internal" || strings.Contains(fmt.Sprint(p), "secret") {
		t.Errorf("answer %+v", p)
	}
}

func TestContractNamesEveryCode(t *testing.T) {
	t.Parallel()
	for code, kind := range kinds {
		if kind.status == 500 || kind.status == 405 || kind.status == 408 {
			continue // of no operation in particular
		}
		if !strings.Contains(string(contract), "`"+code+"`") {
			t.Errorf("openapi.yaml does not name %s", code)
		}
	}
}

func TestSeatsThatNobodyLookedUpHaveNoPlace(t *testing.T) {
	t.Parallel()
	p := problemOf(booking.Busy([]int32{7}))
	if p.Status != 409 || len(p.Seats) != 1 || p.Seats[0].ID != 7 || p.Seats[0].Reason != "busy" {
		t.Errorf("answer %+v", p)
	}
}
