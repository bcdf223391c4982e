// Package archtest holds the shape of the program: which room may know which, where transactions begin, where SQL is written.
package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "seatfence/"
	anyone = module + "internal/failpoint" // a leaf that every room may import
	echo   = "github.com/labstack/echo/"
	redis  = "github.com/redis/go-redis/"
	socket = "github.com/gorilla/"
	pgx    = "github.com/jackc/pgx/"
)

// knows is all that these rooms may import of the project.
var knows = map[string][]string{
	"internal/failpoint": {},
	"migrations":         {},
	"db":                 {},
	"lockmgr":            {},
	"realtime":           {},
	"seats":              {"db"},
	"seats/plan":         {"seats"},
	"booking":            {"db", "seats", "seats/plan"},
}

// without is what these rooms may not import, by the beginning of its path.
var without = map[string][]string{
	"booking":          {echo, redis, socket},
	"seats":            {echo, redis, socket},
	"internal/httpapi": {pgx, module + "db"},
	"internal/webui":   {pgx, module + "db"},
}

// only is who may import these, by the end of its path or, with a slash at the end, by its beginning. Test files may import anything.
var only = map[string][]string{
	"internal/app":      {"cmd/"},
	"internal/devstack": {"cmd/", "test"},
	"migrations":        {"internal/app", "cmd/", "test"},
	"seats/plan":        {"booking", "cmd/", "internal/demo", "internal/httpapi", "test"},
}

// openers are the rooms that begin transactions: the use cases, and what has no part in a sale.
var openers = []string{"booking", "db", "migrations", "internal/access", "internal/notify", "internal/staff"}

// outside are rooms that are no part of the service and look into databases from there.
var outside = []string{"cmd/seatload", "internal/devstack", "internal/mutants"}

type room struct {
	ImportPath, Dir string
	Imports         []string
}

func (r room) name() string { return strings.TrimPrefix(r.ImportPath, module) }

// forTests reports whether the room exists for tests alone; the rules of the program are not for it.
func (r room) forTests() bool { return strings.HasSuffix(r.ImportPath, "test") }

func rooms(t *testing.T) (list []room) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,Imports", module+"...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var r room
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// wrong returns what is wrong with the imports of a room.
func wrong(r room) (faults []string) {
	if r.forTests() {
		return nil
	}
	allowed, closed := knows[r.name()]
	for _, path := range r.Imports {
		name, ours := strings.CutPrefix(path, module)
		switch {
		case path == anyone:
		case slices.ContainsFunc(without[r.name()], func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix) }),
			ours && closed && !slices.Contains(allowed, name),
			ours && strings.HasSuffix(name, "test"),
			only[name] != nil && !slices.ContainsFunc(only[name], r.matches):
			faults = append(faults, fmt.Sprintf("%s imports %s", r.name(), path))
		}
	}
	return faults
}

func (r room) matches(who string) bool {
	if strings.HasSuffix(who, "/") {
		return strings.HasPrefix(r.name(), who)
	}
	return strings.HasSuffix(r.name(), who)
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	list := rooms(t)
	if len(list) < 15 {
		t.Fatalf("only %d rooms found", len(list))
	}
	for _, r := range list {
		for _, fault := range wrong(r) {
			t.Error(fault)
		}
	}
}

func TestWrongImportsAreSeen(t *testing.T) {
	t.Parallel()
	for who, paths := range map[string][]string{
		"booking":          {module + "lockmgr", module + "internal/shed", echo + "v4", redis + "v9", socket + "websocket", module + "booking/bookingtest"},
		"seats":            {module + "booking", module + "seats/plan", echo + "v4"},
		"seats/plan":       {module + "db", module + "booking"},
		"db":               {module + "seats"},
		"lockmgr":          {module + "booking"},
		"realtime":         {module + "seats"},
		"internal/httpapi": {module + "db", pgx + "v5", module + "internal/app", module + "internal/devstack"},
		"internal/webui":   {pgx + "v5/pgxpool", module + "db/dbtest"},
		"internal/notify":  {module + "internal/app", module + "migrations"},
	} {
		if faults := wrong(room{ImportPath: module + who, Imports: paths}); len(faults) != len(paths) {
			t.Errorf("of %d wrong imports of %s only these are seen: %v", len(paths), who, faults)
		}
	}
}

// sources calls look with each node of the files that the room brings into a program.
func sources(t *testing.T, r room, look func(ast.Node, token.Position)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.Dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if n != nil {
				look(n, set.Position(n.Pos()))
			}
			return true
		})
	}
}

func TestOnlyUseCasesBeginTransactions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rooms(t) {
		if r.forTests() {
			continue
		}
		sources(t, r, func(n ast.Node, at token.Position) {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Begin", "BeginTx", "BeginFunc", "InTx"}, method.Sel.Name) {
				return
			}
			seen[r.name()] = true
			if !slices.Contains(openers, r.name()) {
				t.Errorf("%s: a transaction begins in %s", at, r.name())
			}
		})
	}
	if !seen["booking"] || !seen["db"] {
		t.Errorf("transactions were found in %v alone", seen)
	}
}

// sql matches statements, not the words: DELETE is also a method of HTTP.
var sql = regexp.MustCompile(`\b(SELECT\s|INSERT\s+INTO\s|UPDATE\s.*\sSET\s|DELETE\s+FROM\s)`)

func TestStatementsAreWrittenInQueriesAlone(t *testing.T) {
	t.Parallel()
	generated := 0
	for _, r := range rooms(t) {
		if r.forTests() || slices.Contains(outside, r.name()) {
			continue
		}
		sources(t, r, func(n ast.Node, at token.Position) {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return
			}
			text, err := strconv.Unquote(lit.Value)
			switch {
			case err != nil:
				t.Error(err)
			case !sql.MatchString(strings.ReplaceAll(text, "\n", " ")):
			case r.name() == "db" && strings.HasSuffix(at.Filename, ".gen.go"):
				generated++
			default:
				t.Errorf("%s: a statement in Go: %.60s", at, text)
			}
		})
	}
	if generated < 50 {
		t.Errorf("only %d statements were found where they belong", generated)
	}
}

// The places where a test may stop a request must not exist where buyers are.
func TestReleaseHasNoFailpoints(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "seatfence")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/seatfence")
	build.Dir, build.Stderr = root(t), os.Stderr
	if err := build.Run(); err != nil {
		t.Fatal(err)
	}
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(symbols, []byte(module+"booking.")) {
		t.Fatal("the binary has no symbols to look at")
	}
	for line := range bytes.Lines(symbols) {
		if bytes.Contains(line, []byte(module+"internal/failpoint.")) {
			t.Errorf("the release has %s", line)
		}
	}
}
