package devstack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// asChild makes the test binary a starter that a test can kill.
const asChild = "SEATFENCE_TEST_STARTER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asChild); dir != "" {
		s, err := Start(context.Background(), options(dir))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.PostgresURL, s.RedisURL)
		select {}
	}
	goleak.VerifyTestMain(m)
}

func options(dir string) Options {
	return Options{Dir: dir, Packages: "../../.data/packages", Postgres: true, Redis: true, Unsafe: true, Log: os.Stderr}
}

// openDir is like t.TempDir, and an unprivileged account can enter it.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "seatfence-devstack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, o Options) *Stack {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, url, statement string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition that nothing announces.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func address(redis string) string {
	return strings.TrimSuffix(strings.TrimPrefix(redis, "redis://"), "/0")
}

func TestSecondStartIsQuickAndFindsTheData(t *testing.T) {
	t.Parallel()
	o := options(openDir(t))
	o.Unsafe = false
	began := time.Now()
	s := start(t, o)
	t.Log("first start:", time.Since(began))
	exec1(t, s.PostgresURL, "CREATE TABLE kept AS SELECT 14 AS seat")
	if err := errors.Join(s.Stop(), s.Stop()); err != nil {
		t.Fatal(err)
	}
	if s.Postgres.Pid() != 0 || s.Redis.Pid() != 0 {
		t.Fatal("Stop returned before its services had ended")
	}
	began = time.Now()
	s = start(t, o)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the second start took %s", took)
	} else {
		t.Log("second start:", took)
	}
	exec1(t, s.PostgresURL, "SELECT seat FROM kept")
	var fsync, commit string
	conn := connect(t, s.PostgresURL)
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(&fsync, &commit); err != nil {
		t.Fatal(err)
	}
	if fsync != "on" || commit != "on" {
		t.Errorf("fsync %s, synchronous_commit %s without Unsafe", fsync, commit)
	}
}

func TestFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	o := options(openDir(t))
	o.Postgres = false
	start(t, o)
	_, err := Start(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), o.Dir) {
		t.Fatalf("a second start on a live folder: %v", err)
	}
}

func TestKilledStarterLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var url, redis string
	if _, err := fmt.Sscan(line, &url, &redis); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	exec1(t, url, "CREATE TABLE kept ()")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	began := time.Now()
	s := start(t, options(dir)) // does not wait for the old server to end
	t.Log("start after a kill -9:", time.Since(began))
	exec1(t, s.PostgresURL, "TABLE kept")
	eventually(t, "the old Redis ended", func() bool {
		conn, err := net.Dial("tcp", address(redis))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

func TestPidFileOfADeadServerStopsNoStart(t *testing.T) {
	t.Parallel()
	o := options(openDir(t))
	o.Redis = false
	s := start(t, o)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	// The number now belongs to a live process of the account that runs the server.
	as, err := account()
	if err != nil {
		t.Fatal(err)
	}
	other := as.command(programs{dir: "/bin"}, "/", "sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	file := filepath.Join(s.Dir, "postgres/data/postmaster.pid")
	if err := os.WriteFile(file, []byte(strconv.Itoa(other.Process.Pid)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, o)
}

func TestCutDuringInitLeavesNoHalfCluster(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	half := filepath.Join(dir, "postgres.tmp-1", "data")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	o := options(dir)
	o.Redis = false
	start(t, o)
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestClusterOfAnotherVersionIsNamed(t *testing.T) {
	t.Parallel()
	o := options(openDir(t))
	data := filepath.Join(o.Dir, "postgres/data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 9") {
		t.Fatalf("%v", err)
	}
}

func TestPausedPostgresAnswersNobodyUntilResumed(t *testing.T) {
	t.Parallel()
	o := options(openDir(t))
	o.Redis = false
	s := start(t, o)
	conn := connect(t, s.PostgresURL)
	if err := s.Postgres.Pause(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT 1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("an open connection was answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := s.Postgres.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if err := s.Postgres.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil { // a paused service can be stopped
		t.Fatal(err)
	}
}

func TestKillAndRestartKeepPortAndCommits(t *testing.T) {
	t.Parallel()
	s := start(t, options(openDir(t)))
	exec1(t, s.PostgresURL, "CREATE TABLE kept ()")
	for _, p := range []*Process{s.Postgres, s.Redis} {
		before := p.Pid()
		if err := errors.Join(p.Kill(), p.Kill()); err != nil {
			t.Fatal(err)
		}
		if p.Pid() != 0 || alive(before) {
			t.Fatalf("%s is alive after Kill", p.name)
		}
		if err := p.Pause(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("pausing a dead %s: %v", p.name, err)
		}
		began := time.Now()
		if err := p.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Log(p.name, "back after", time.Since(began))
		if err := p.Restart(t.Context()); err != nil { // of a running one
			t.Fatal(err)
		}
	}
	exec1(t, s.PostgresURL, "TABLE kept")
}

func TestTerminalSignalsDoNotReachTheServices(t *testing.T) {
	t.Parallel()
	s := start(t, options(openDir(t)))
	for _, p := range []*Process{s.Postgres, s.Redis} {
		group, err := syscall.Getpgid(p.Pid())
		if err != nil || group != p.Pid() {
			t.Errorf("%s is in process group %d: %v", p.name, group, err)
		}
	}
}

func TestAnotherRedisOnThePortIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	o := options(openDir(t))
	o.Postgres = false
	s := start(t, o)
	addr := address(s.RedisURL)
	if err := redisReady(t.Context(), addr, s.Redis.Pid()); err != nil {
		t.Error(err)
	}
	if err := redisReady(t.Context(), addr, 1); err == nil {
		t.Error("a Redis with another process id passed as ours")
	}
}

func TestServiceThatCannotStartShowsItsLog(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	o := options(dir)
	o.Redis = false
	s := start(t, o)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "postgres/data/postgresql.conf"), []byte("no_such_setting = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), o)
	if !errors.Is(err, errExited) || !strings.Contains(err.Error(), "no_such_setting") {
		t.Fatalf("%v", err)
	}
}

func TestFolderOfRootAloneIsReplaced(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root runs the services as another account")
	}
	o := options(t.TempDir()) // mode 0700 above it
	o.Postgres = false
	s := start(t, o)
	defer os.RemoveAll(s.Dir)
	if !strings.HasPrefix(s.Dir, "/var/tmp/seatfence-") {
		t.Fatalf("the files are in %s", s.Dir)
	}
	again, err := Start(t.Context(), o)
	if err == nil {
		_ = again.Stop()
		t.Fatal("the stand-in was not locked for its folder")
	}
}
