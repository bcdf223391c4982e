package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// runAs is the account of the children: the caller's own, or as root an
// unprivileged one, because PostgreSQL refuses to run as root.
type runAs struct {
	cred *syscall.Credential // nil: the caller's own
}

func account() (runAs, error) {
	if os.Geteuid() != 0 {
		return runAs{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return runAs{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
		}
	}
	return runAs{}, errors.New("PostgreSQL refuses to run as root and there is no account postgres or nobody to run it as")
}

// place makes dir and returns its absolute path, or that of its stand-in when
// the account cannot enter it (a project below /root, mode 0700).
func (a runAs) place(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", err
	}
	if a.cred == nil || a.canEnter(abs) {
		return abs, nil
	}
	return standIn(abs)
}

// canEnter asks the kernel rather than reading modes and ACLs: the child
// changes its account first and its folder after.
func (a runAs) canEnter(dir string) bool {
	cmd := exec.Command("/bin/sh", "-c", ":")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.cred}
	return cmd.Run() == nil
}

func (a runAs) chown(path string) error {
	if a.cred == nil {
		return nil
	}
	return os.Chown(path, int(a.cred.Uid), int(a.cred.Gid))
}

// command is a child of its own process group, so that Ctrl-C in a terminal
// reaches only the caller, who then stops its children in order.
func (a runAs) command(p programs, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.dir, name), args...)
	cmd.Dir = dir
	cmd.Env = p.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: a.cred}
	return cmd
}

// programs is a folder of executables and the libraries they need.
type programs struct {
	dir  string
	libs string // LD_LIBRARY_PATH for unpacked packages, else empty
}

// env leaves the caller's environment out: a PGPORT or PGDATA in it would
// change what the programs do.
func (p programs) env() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	if p.libs != "" {
		env = append(env, "LD_LIBRARY_PATH="+p.libs)
	}
	return env
}

// missing is the answer where neither the service nor a way to unpack it was found.
func missing(what, brew string) error {
	return fmt.Errorf("%s was not found and this system has no apt-get to unpack it with: install it (Debian, Ubuntu: apt-get; macOS: brew install %s) or give the URL of a running one", what, brew)
}
