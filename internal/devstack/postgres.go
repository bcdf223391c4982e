package devstack

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	minPostgres = 14          // oldest major version that will do
	dbName      = "seatfence" // of the database and of its owner
	connectTime = 2 * time.Second
	goneTime    = 10 * time.Second // for a server whose starter was killed to shut down
)

// startPostgres makes the cluster when there is none and runs its server.
func (s *Stack) startPostgres(ctx context.Context, as runAs, o Options) error {
	home := filepath.Join(s.Dir, "postgres")
	data := filepath.Join(home, "data")
	as, want, err := clusterOf(as, data)
	if err != nil {
		return err
	}
	if s.programs, err = findPostgres(ctx, as, want, o); err != nil {
		return err
	}
	if want == 0 {
		if err := initCluster(as, s.programs, home, o.Unsafe); err != nil {
			return err
		}
	}
	password, err := os.ReadFile(filepath.Join(home, "password"))
	if err != nil {
		return err
	}
	if err := waitGone(ctx, data); err != nil {
		return err
	}
	p := &Process{
		name: "PostgreSQL",
		quit: syscall.SIGINT,
		log:  filepath.Join(s.Dir, "postgres.log"),
	}
	address := func(database string) string {
		return (&url.URL{
			Scheme: "postgres", User: url.UserPassword(dbName, string(password)),
			Host: fmt.Sprintf("127.0.0.1:%d", p.port), Path: database, RawQuery: "sslmode=disable",
		}).String()
	}
	p.again = func() *exec.Cmd {
		args := append([]string{"-D", data, "-p", strconv.Itoa(p.port)}, settings(o.Unsafe)...)
		return as.command(s.programs, data, "postgres", args...)
	}
	// The password is this cluster's own, so no other server passes.
	p.ready = func(ctx context.Context, _ int) error {
		return withConn(ctx, address("postgres"), func(context.Context, *pgx.Conn) error { return nil })
	}
	s.Postgres = p
	if err := p.begin(ctx); err != nil {
		return err
	}
	s.PostgresURL = address(dbName)
	return withConn(ctx, address("postgres"), ensureDatabase)
}

// settings for a cluster that shares a workstation. A setting given here wins
// over the cluster's files.
func settings(unsafe bool) []string {
	set := []string{
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=", // their paths are limited to 107 bytes
		"max_connections=200",
		"shared_buffers=256MB",
		"max_wal_size=2GB",
		"jit=off", // short statements only: compiling costs more than it saves
		"timezone=UTC",
		"log_timezone=UTC",
	}
	if unsafe {
		set = append(set, "fsync=off", "full_page_writes=off")
	}
	var args []string
	for _, s := range set {
		args = append(args, "-c", s)
	}
	return args
}

// clusterOf returns the account and major version of an existing cluster: as
// root an existing one runs as its owner. Without one the version is 0.
func clusterOf(as runAs, data string) (runAs, int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return as, 0, nil
	}
	if err != nil {
		return as, 0, fmt.Errorf("read cluster: %w", err)
	}
	version, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return as, 0, fmt.Errorf("read cluster %s: %w", data, err)
	}
	info, err := os.Stat(data)
	if err != nil {
		return as, 0, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && as.cred != nil && st.Uid != 0 {
		as.cred = &syscall.Credential{Uid: st.Uid, Gid: st.Gid}
	}
	return as, version, nil
}

// initCluster makes the cluster beside its place and moves it there, so that
// a cut leaves none rather than half of one.
func initCluster(as runAs, bin programs, home string, unsafe bool) error {
	left, _ := filepath.Glob(home + ".tmp-*")
	for _, dir := range left {
		_ = os.RemoveAll(dir) // fails while the initdb of a killed starter still writes there
	}
	tmp, err := os.MkdirTemp(filepath.Dir(home), filepath.Base(home)+".tmp-")
	if err != nil {
		return err
	}
	if err := as.chown(tmp); err != nil {
		return err
	}
	password := filepath.Join(tmp, "password")
	if err := os.WriteFile(password, []byte(rand.Text()), 0o600); err != nil {
		return err
	}
	if err := as.chown(password); err != nil {
		return err
	}
	args := []string{
		"-D", filepath.Join(tmp, "data"), "-U", dbName, "--pwfile=" + password, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--lc-ctype=" + ctype, "--no-instructions",
	}
	if unsafe {
		args = append(args, "--no-sync")
	}
	if out, err := as.command(bin, tmp, "initdb", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make a PostgreSQL cluster: %w\n%s", err, out)
	}
	return os.Rename(tmp, home)
}

// waitGone waits for the server of a starter that was killed: the kernel told
// it to shut down, and a checkpoint takes a moment. A number in the pid file
// that now belongs to somebody else would stop the new server, so the file
// goes; where its process is dead PostgreSQL itself deals with it.
func waitGone(ctx context.Context, data string) error {
	file := filepath.Join(data, "postmaster.pid")
	deadline := time.Now().Add(goneTime)
	for {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		first, _, _ := bytes.Cut(text, []byte("\n"))
		pid, err := strconv.Atoi(string(bytes.TrimSpace(first)))
		if err != nil || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return nil
		}
		if !worksIn(pid, data) {
			return os.Remove(file)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a PostgreSQL server (process %d) still runs on %s: stop it first", pid, data)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

func withConn(ctx context.Context, url string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, conn), conn.Close(ctx))
}

func ensureDatabase(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", dbName).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+dbName)
	return err
}
