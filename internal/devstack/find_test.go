package devstack

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// fakePostgres is a folder whose server only tells its version.
func fakePostgres(t *testing.T, version int) programs {
	t.Helper()
	dir := filepath.Join(openDir(t), fmt.Sprint(version))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.4'\n", version)
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return programs{dir: dir}
}

func TestAClusterGetsItsOwnVersionAndANewOneTheFirstThatWillDo(t *testing.T) {
	// Not parallel: a child forked meanwhile would hold the scripts open for writing, and they would not run.
	as, err := account()
	if err != nil {
		t.Fatal(err)
	}
	v17, v15, v13 := fakePostgres(t, 17), fakePostgres(t, 15), fakePostgres(t, 13)
	empty := programs{dir: openDir(t)}
	all := []programs{empty, v13, v17, v15}
	for want, expected := range map[int]programs{0: v17, 15: v15, 17: v17, 16: {}, 13: {}} {
		if got, _ := as.choosePostgres(want, all); got != expected {
			t.Errorf("version %d: %v", want, got)
		}
	}
	if _, seen := as.choosePostgres(16, all); fmt.Sprint(seen) != "[13 17 15]" {
		t.Errorf("seen %v", seen)
	}
}
