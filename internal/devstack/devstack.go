// Package devstack brings the two services that Seatfence needs, PostgreSQL
// and Redis, as private children of the calling process: for `seatfence dev`
// and for tests, never for production.
//
// It may only write below the folders it is given (and, as root with a folder
// that an unprivileged account cannot enter, below one private folder in
// /var/tmp). It starts, stops and changes no system service, installs no
// package and listens on loopback only. It works on Linux and macOS.
package devstack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Options says what Start brings up and where its files live.
type Options struct {
	Dir      string    // data folder, made when missing; kept by Stop
	Packages string    // where missing system packages are unpacked; default Dir/packages
	Postgres bool      // start PostgreSQL
	Redis    bool      // start Redis
	Cluster  bool      // start a Redis Cluster of three masters
	Unsafe   bool      // fsync off: survives kill -9 of a process, not of the machine; tests only
	Log      io.Writer // one line for each slow or surprising step; nil discards
}

// Stack is a running set of private services. Its URLs stay valid across
// Process.Restart.
type Stack struct {
	Dir         string // where the files really are: Options.Dir, or its stand-in below /var/tmp
	Postgres    *Process
	PostgresURL string // superuser of an own database, postgres://…@127.0.0.1:port/seatfence
	Redis       *Process
	RedisURL    string // redis://127.0.0.1:port/0, without persistence
	Cluster     []*Process
	ClusterURL  string // redis://127.0.0.1:port?addr=…&addr=…, without persistence

	programs programs // PostgreSQL's
	lock     *os.File
}

// Start finds the services on this machine, or unpacks the system's packages
// when they are missing, and returns once both accept connections. A second
// start on the same folder finds the same data. A folder that another live
// process uses is an error. ctx bounds only the start.
func Start(ctx context.Context, o Options) (*Stack, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	as, err := account()
	if err != nil {
		return nil, err
	}
	dir, err := as.place(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if o.Packages == "" {
		o.Packages = filepath.Join(dir, "packages")
	}
	s := &Stack{Dir: dir}
	if s.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	if abs, _ := filepath.Abs(o.Dir); abs != dir {
		fmt.Fprintf(o.Log, "%s cannot be entered by the account the services run as: their files are in %s\n", abs, dir)
	}
	g, ctx := errgroup.WithContext(ctx)
	if o.Postgres {
		g.Go(func() error { return s.startPostgres(ctx, as, o) })
	}
	if o.Redis {
		g.Go(func() error { return s.startRedis(ctx, as, o) })
	}
	if o.Cluster {
		g.Go(func() error { return s.startCluster(ctx, as, o) })
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the services, waits for them and keeps their data. It may be
// called twice.
func (s *Stack) Stop() error {
	all := append([]*Process{s.Postgres, s.Redis}, s.Cluster...)
	errs := make([]error, len(all))
	var g errgroup.Group
	for i, p := range all {
		if p != nil {
			g.Go(func() error { errs[i] = p.Stop(); return nil })
		}
	}
	_ = g.Wait()
	_ = s.lock.Close()
	return errors.Join(errs...)
}

// PostgresTool is a command for one of PostgreSQL's programs beside the
// server, pgbench or pg_basebackup, runnable as the calling user.
func (s *Stack) PostgresTool(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs.dir, name), args...)
	cmd.Env = s.programs.env()
	return cmd
}

// lockDir takes the folder for this process. The kernel lets go of it when the
// process ends, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close()
		return nil, fmt.Errorf("data folder %s is in use by another process: stop it, or give another folder", dir)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock data folder %s: %w", dir, err)
	}
	return f, nil
}

// standIn is the folder that replaces one an unprivileged account cannot
// enter. Everybody can write to /var/tmp, so it must be ours alone.
func standIn(abs string) (string, error) {
	dir := fmt.Sprintf("/var/tmp/seatfence-%x", sha256.Sum256([]byte(abs)))[:len("/var/tmp/seatfence-")+12]
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(st.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s exists and belongs to somebody else", dir)
	}
	return dir, os.Chmod(dir, 0o755) // whatever the umask is
}
