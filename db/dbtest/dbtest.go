// Package dbtest gives tests real databases: a private PostgreSQL cluster for
// each test process, started at first use, and a private Redis for each test
// that asks. Nothing here touches a server that it did not start.
//
// A package that uses it needs
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
//
// The servers run without fsync: they survive the kill -9 that a fault test
// provokes, not the end of the machine. A session that sets no time zone (the
// service's pools set UTC) gets one with half hours, so that a time that lost
// its zone is wrong and seen.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"seatfence/db"
	"seatfence/internal/devstack"
	"seatfence/migrations"
)

const (
	timeZone  = "America/St_Johns"
	poolConns = 16
	startTime = 12 * time.Minute // unpacking packages on a fresh machine included
	stepTime  = 30 * time.Second
	template  = "template_seatfence"
	prefix    = "seatfence-test-" // of a process's folder in the system's temporary one
)

var process struct {
	mu    sync.Mutex
	dir   string
	lock  *os.File
	stack *devstack.Stack
	admin *pgxpool.Pool // makes and drops the databases
	err   error         // a start that failed fails every test alike, once
}

var serial atomic.Int64

// Main runs the tests, stops what they started and returns the exit code. A
// look for leaked goroutines belongs after it.
func Main(m interface{ Run() int }) int {
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		return max(code, 1)
	}
	return code
}

// Pool is a pool of at most 16 connections on a migrated database of the
// test's own. Both go when the test ends.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, URL(t))
}

// URL is the address of a migrated database of the test's own, dropped with
// all its connections when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	s := shared(t)
	name := fmt.Sprintf("test_%d", serial.Add(1))
	run(t, "CREATE DATABASE "+name+" TEMPLATE "+template)
	t.Cleanup(func() { run(t, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return withDatabase(s.PostgresURL, name)
}

// Tx is a transaction on a migrated database, rolled back when the test ends:
// quicker than Pool for tests that neither commit nor race.
func Tx(t testing.TB) pgx.Tx {
	t.Helper()
	s := shared(t)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, withDatabase(s.PostgresURL, "transactions"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// Redis is the URL of an empty Redis server of the test's own.
func Redis(t testing.TB) string {
	t.Helper()
	return OwnRedis(t).RedisURL
}

// OwnRedis is an empty Redis server that the test may pause, kill and restart.
func OwnRedis(t testing.TB) *devstack.Stack {
	t.Helper()
	return own(t, devstack.Options{Redis: true})
}

// OwnCluster is an empty Redis Cluster of three masters that the test may
// pause, kill and restart.
func OwnCluster(t testing.TB) *devstack.Stack {
	t.Helper()
	return own(t, devstack.Options{Cluster: true})
}

// OwnPostgres is a cluster with one migrated database, PostgresURL, that the
// test may pause, kill and restart. It costs a second: Pool is for the rest.
func OwnPostgres(t testing.TB) *devstack.Stack {
	t.Helper()
	s := own(t, devstack.Options{Postgres: true})
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	if err := migrate(ctx, s.PostgresURL); err != nil {
		t.Fatal(err)
	}
	return s
}

func own(t testing.TB, o devstack.Options) *devstack.Stack {
	t.Helper()
	dir, err := processDir()
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = filepath.Join(dir, fmt.Sprintf("own-%d", serial.Add(1)))
	s, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(), os.RemoveAll(s.Dir), os.RemoveAll(o.Dir)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shared is the cluster of this process, with its template of the migrations.
func shared(t testing.TB) *devstack.Stack {
	t.Helper()
	dir, err := processDir()
	if err != nil {
		t.Fatal(err)
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.stack == nil && process.err == nil {
		process.stack, process.admin, process.err = startShared(dir)
	}
	if process.err != nil {
		t.Fatal(process.err)
	}
	return process.stack
}

func startShared(dir string) (*devstack.Stack, *pgxpool.Pool, error) {
	s, err := start(devstack.Options{Dir: filepath.Join(dir, "shared"), Postgres: true})
	if err != nil {
		return nil, nil, err
	}
	admin, err := makeTemplate(s)
	if err != nil {
		return nil, nil, errors.Join(err, s.Stop())
	}
	return s, admin, nil
}

// makeTemplate migrates once; every test gets a copy of the files.
func makeTemplate(s *devstack.Stack) (*pgxpool.Pool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	admin, err := pgxpool.New(ctx, s.PostgresURL)
	if err != nil {
		return nil, err
	}
	err = func() error {
		if _, err := admin.Exec(ctx, "CREATE DATABASE "+template); err != nil {
			return err
		}
		if err := migrate(ctx, withDatabase(s.PostgresURL, template)); err != nil {
			return err
		}
		_, err := admin.Exec(ctx, "CREATE DATABASE transactions TEMPLATE "+template)
		return err
	}()
	if err != nil {
		admin.Close()
		return nil, fmt.Errorf("make the template database: %w", err)
	}
	return admin, nil
}

// migrate takes a pool without the service's time limits, which are for requests.
func migrate(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "ALTER ROLE CURRENT_USER SET timezone = '"+timeZone+"'"); err != nil {
		return err
	}
	return migrations.Up(ctx, pool)
}

func start(o devstack.Options) (*devstack.Stack, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	o.Packages = filepath.Join(root, ".data", "packages")
	o.Unsafe = true
	o.Log = os.Stderr
	return devstack.Start(ctx, o)
}

func stop() error {
	process.mu.Lock()
	defer process.mu.Unlock()
	var errs []error
	if process.admin != nil {
		process.admin.Close()
		errs = append(errs, process.stack.Stop(), os.RemoveAll(process.stack.Dir))
	}
	if process.dir != "" {
		errs = append(errs, os.RemoveAll(process.dir), process.lock.Close())
	}
	process.stack, process.admin, process.dir = nil, nil, ""
	return errors.Join(errs...)
}

func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(context.Background(), url, db.Options{MaxConns: poolConns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func run(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	if _, err := process.admin.Exec(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

func withDatabase(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err) // made by devstack
	}
	u.Path = name
	return u.String()
}

// processDir is this process's folder. A process that was killed leaves its
// own behind: the next one removes it, because the lock inside is free.
func processDir() (string, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.dir != "" {
		return process.dir, nil
	}
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range left {
		// A new one may not have its lock yet.
		if info, err := os.Stat(dir); err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if lock, err := lockDir(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = lock.Close()
		}
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", err
	}
	if process.lock, err = lockDir(dir); err != nil {
		return "", err
	}
	process.dir = dir
	return dir, os.Chmod(dir, 0o755) // as root the servers run as another account
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the test's folder")
		}
		dir = up
	}
}
