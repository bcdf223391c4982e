package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// postgresDirs are the places of packages that keep PostgreSQL out of PATH.
var postgresDirs = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // postgresql.org's RPMs
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin",
}

// findPostgres returns the programs of major version want, or with want 0 of
// the one in PATH, else of the newest. It unpacks them only when there are
// none: another version cannot read the cluster and a second one would not
// help.
func findPostgres(ctx context.Context, as runAs, want int, o Options) (programs, error) {
	p, seen := as.choosePostgres(want, installedPostgres())
	if p.dir == "" && len(seen) == 0 {
		root, err := o.unpack(ctx, as, "PostgreSQL", "postgresql", "postgresql")
		if err != nil {
			return programs{}, err
		}
		var unpacked []programs
		for _, dir := range newestFirst(filepath.Join(root, "usr/lib/postgresql/*/bin")) {
			unpacked = append(unpacked, programs{dir: dir, libs: LibraryPath(root)})
		}
		p, seen = as.choosePostgres(want, unpacked)
	}
	switch {
	case p.dir != "":
		return p, nil
	case want != 0:
		return p, fmt.Errorf("the cluster in %s was made by PostgreSQL %d and this machine has %v: install %d, or remove the folder with its data",
			o.Dir, want, seen, want)
	default:
		return p, fmt.Errorf("PostgreSQL %d or newer is needed and this machine has %v", minPostgres, seen)
	}
}

func installedPostgres() []programs {
	var found []programs
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // the other programs are beside the real one
			found = append(found, programs{dir: filepath.Dir(path)})
		}
	}
	for _, dir := range newestFirst(postgresDirs...) {
		found = append(found, programs{dir: dir})
	}
	return found
}

func newestFirst(patterns ...string) []string {
	var dirs []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return number(b) - number(a) })
	return dirs
}

// choosePostgres returns the first that fits, or the versions that do not.
func (a runAs) choosePostgres(want int, from []programs) (_ programs, seen []int) {
	for _, p := range from {
		v := a.postgresVersion(p)
		if v >= minPostgres && (want == 0 || v == want) {
			return p, nil
		}
		if v > 0 && !slices.Contains(seen, v) {
			seen = append(seen, v)
		}
	}
	return programs{}, seen
}

var firstNumber = regexp.MustCompile(`\d+`)

func number(s string) int {
	n, _ := strconv.Atoi(firstNumber.FindString(s))
	return n
}

// postgresVersion runs the server as the account that will run it, so that a
// version also means that the account may; 0 otherwise.
func (a runAs) postgresVersion(p programs) int {
	if _, err := os.Stat(filepath.Join(p.dir, "initdb")); err != nil {
		return 0
	}
	out, err := a.command(p, "/", "postgres", "--version").Output()
	if err != nil {
		return 0
	}
	return number(string(out))
}

// server is one executable.
type server struct {
	programs
	name string
}

func findRedis(ctx context.Context, as runAs, o Options) (server, error) {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	dirs = append(dirs, "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
	for _, name := range []string{"redis-server", "valkey-server"} {
		for _, dir := range dirs {
			s := server{programs{dir: dir}, name}
			if filepath.IsAbs(dir) && as.runs(s) {
				return s, nil
			}
		}
	}
	root, err := o.unpack(ctx, as, "Redis", "redis", "redis-server")
	if err != nil {
		return server{}, err
	}
	s := server{programs{filepath.Join(root, "usr/bin"), LibraryPath(root)}, "redis-server"}
	if !as.runs(s) {
		return server{}, fmt.Errorf("the unpacked %s does not run", filepath.Join(s.dir, s.name))
	}
	return s, nil
}

func (a runAs) runs(s server) bool {
	if _, err := os.Stat(filepath.Join(s.dir, s.name)); err != nil {
		return false
	}
	return a.command(s.programs, "/", s.name, "--version").Run() == nil
}
