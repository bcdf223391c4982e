// Command mutants shows what the tests of a sale are worth: it breaks the program in one place at a time, as a hurried hand would, and
// runs the tests that should notice. A mutant that no test notices ends the run with an error.
//
// Nothing in the tree is touched: go test reads the broken files through an overlay. A mutant whose place is not in the source exactly
// once, or that does not compile, counts as an error and not as noticed.
//
//	go run ./internal/mutants [pattern of names]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	parallel    = 2               // each brings a database cluster of its own
	testTimeout = 2 * time.Minute // of one package's tests
	runTimeout  = 5 * time.Minute // with compiling it
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pattern := strings.Join(os.Args[1:], " ")
	if err := run(ctx, os.Stdout, pattern); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, pattern string) error {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Concat(mutants, live), func(m mutant) bool { return !names.MatchString(m.name) })
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant is called %q", pattern)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "seatfence-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := soundTree(ctx, out, root, chosen); err != nil {
		return err
	}
	return tryAll(ctx, out, root, tmp, chosen)
}

func tryAll(ctx context.Context, out io.Writer, root, tmp string, chosen []mutant) error {
	var mu sync.Mutex
	killed := 0
	var errs []error
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, m := range chosen {
		group.Go(func() error {
			by, err := m.try(ctx, root, filepath.Join(tmp, fmt.Sprint(i)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
				fmt.Fprintf(out, "ERROR     %s\n", m.name)
			case by == "":
				fmt.Fprintf(out, "SURVIVED  %s\n", m.name)
			default:
				killed++
				fmt.Fprintf(out, "killed    %-54s %s\n", m.name, by)
			}
			return nil
		})
	}
	_ = group.Wait() // every mutant has its own verdict
	fmt.Fprintf(out, "mutants: killed %d / %d\n", killed, len(chosen))
	if killed < len(chosen) {
		return errors.Join(append(errs, errors.New("not every mutant is noticed"))...)
	}
	return nil
}

func moduleRoot(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(mod))), nil
}

// soundTree runs the tests without a mutant: one that fails anyway notices nothing, nor does one that is not there.
func soundTree(ctx context.Context, out io.Writer, root string, chosen []mutant) error {
	tests := map[string][]string{}
	for _, m := range chosen {
		tests[m.pkg] = append(tests[m.pkg], m.tests...)
	}
	for pkg, names := range tests {
		slices.Sort(names)
		names = slices.Compact(names)
		ran, err := goTest(ctx, root, pkg, names, "")
		if err != nil {
			return err
		}
		if len(ran.failed) > 0 {
			return fmt.Errorf("tests of %s fail without a mutant:\n%s", pkg, ran.output)
		}
		for _, name := range names {
			if !slices.Contains(ran.passed, name) {
				return fmt.Errorf("%s has no %s", pkg, name)
			}
		}
		fmt.Fprintf(out, "%d tests of %s pass without a mutant\n", len(names), pkg)
	}
	return nil
}

// try returns the test that notices the mutant, or "" if none does.
func (m mutant) try(ctx context.Context, root, dir string) (by string, err error) {
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return "", err
	}
	ran, err := goTest(ctx, root, m.pkg, m.tests, overlay)
	if err != nil || len(ran.failed) == 0 {
		return "", err
	}
	return ran.failed[0], nil
}

// overlay writes the broken files to dir and returns the file that names them to the go command.
func (m mutant) overlay(root, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	broken := map[string]string{}
	for _, e := range m.edits {
		text, ok := broken[e.file]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return "", err
			}
			text = string(raw)
		}
		text, err := e.apply(text)
		if err != nil {
			return "", err
		}
		broken[e.file] = text
	}
	replace := map[string]string{}
	for file, text := range broken {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o644)
}

type result struct {
	passed, failed []string // names of tests; a subtest before its parent
	output         string
}

// goTest runs the named tests of a package. Its error says that they did not run to their end: nothing is learned from them.
func goTest(ctx context.Context, root, pkg string, names []string, overlay string) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	args := []string{
		"test", "-json", "-tags=failpoint", "-vet=off", "-count=1", "-timeout=" + testTimeout.String(),
		"-run=^(" + strings.Join(names, "|") + ")$", "-overlay=" + overlay, pkg,
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, runErr := cmd.Output()
	ran, err := parse(stdout)
	switch {
	case err != nil:
		return ran, err
	case ctx.Err() != nil:
		return ran, ctx.Err()
	case len(ran.passed)+len(ran.failed) == 0:
		return ran, fmt.Errorf("no test ran (%v):\n%s%s", runErr, stderr.String(), ran.output)
	case strings.Contains(ran.output, "panic: test timed out"):
		return ran, fmt.Errorf("the tests did not end:\n%s", ran.output)
	case strings.Contains(ran.output, "(SQLSTATE 42"):
		return ran, fmt.Errorf("a statement is not valid SQL:\n%s", ran.output)
	}
	return ran, nil
}

// parse reads the events of go test -json.
func parse(stdout []byte) (ran result, err error) {
	var output strings.Builder
	for events := json.NewDecoder(bytes.NewReader(stdout)); ; {
		var e struct{ Action, Test, Output string }
		if err := events.Decode(&e); errors.Is(err, io.EOF) {
			ran.output = output.String()
			return ran, nil
		} else if err != nil {
			return ran, fmt.Errorf("read the tests' events: %w", err)
		}
		output.WriteString(e.Output)
		switch {
		case e.Test == "":
		case e.Action == "pass":
			ran.passed = append(ran.passed, e.Test)
		case e.Action == "fail":
			ran.failed = append(ran.failed, e.Test)
		}
	}
}
