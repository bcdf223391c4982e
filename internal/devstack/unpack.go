package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const unpackTime = 10 * time.Minute

// unpack is Unpack for a service that was not found, into a folder that the
// account can enter.
func (o Options) unpack(ctx context.Context, as runAs, what, brew string, pkgs ...string) (string, error) {
	if !haveApt() {
		return "", missing(what, brew)
	}
	dir, err := as.place(o.Packages)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(unpacked(dir, pkgs)); err != nil {
		fmt.Fprintf(o.Log, "%s is not installed here: unpacking the system's package below %s (nothing is installed)\n", what, dir)
	}
	return Unpack(ctx, dir, pkgs...)
}

func haveApt() bool {
	_, err1 := exec.LookPath("apt-get")
	_, err2 := exec.LookPath("dpkg")
	return err1 == nil && err2 == nil
}

// Unpack puts the files of Debian packages, and of what they depend on and
// the system lacks, below dir and returns the folder that stands for "/" in
// them. Nothing is installed, no script of a package runs, and neither root
// nor the system's package lists are needed or changed. What is there from an
// earlier call is returned at once; parallel processes wait for each other.
func Unpack(ctx context.Context, dir string, pkgs ...string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	root := unpacked(dir, pkgs)
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	ctx, cancel := context.WithTimeout(ctx, unpackTime)
	defer cancel()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := waitLock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("wait for another process that unpacks packages: %w", err)
	}
	defer lock.Close()
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	u := unpacker{apt: filepath.Join(dir, "apt"), lock: lock}
	debs, err := u.download(ctx, pkgs)
	if err != nil {
		return "", fmt.Errorf("download packages: %w", err)
	}
	tmp := root + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return "", err
	}
	for _, deb := range debs {
		if err := u.run(ctx, "dpkg", "-x", deb, tmp); err != nil {
			return "", fmt.Errorf("unpack packages: %w", err)
		}
	}
	if err := os.Rename(tmp, root); err != nil {
		return "", err
	}
	return root, os.RemoveAll(u.cache())
}

func unpacked(dir string, pkgs []string) string { return filepath.Join(dir, strings.Join(pkgs, "+")) }

// aptConf keeps apt's state below one folder. Locks guard the system's state
// and would need root. The hooks go because some (docker-clean, packagekit)
// change /var or talk to services.
const aptConf = `Dir::State::Lists "%[1]s/lists";
Dir::State::extended_states "%[1]s/extended_states";
Dir::Cache "%[1]s/cache";
Dir::Cache::Archives "archives";
Dir::Log "%[1]s";
Debug::NoLocking "true";
Acquire::Retries "3";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Post-Invoke;
`

type unpacker struct {
	apt  string // folder of apt's private state
	lock *os.File
}

func (u unpacker) cache() string { return filepath.Join(u.apt, "cache") }

// download returns the package files. It tries the package lists of an
// earlier call, and new ones when those are missing or name files that the
// mirror no longer has.
func (u unpacker) download(ctx context.Context, pkgs []string) ([]string, error) {
	if err := os.RemoveAll(u.cache()); err != nil {
		return nil, err
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(u.apt, d), 0o755); err != nil {
			return nil, err
		}
	}
	conf := filepath.Join(u.apt, "apt.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, aptConf, u.apt), 0o644); err != nil {
		return nil, err
	}
	install := append([]string{"-c", conf, "install", "--download-only", "--yes", "--no-install-recommends"}, pkgs...)
	if u.run(ctx, "apt-get", install...) != nil {
		if err := u.run(ctx, "apt-get", "-c", conf, "update"); err != nil {
			return nil, err
		}
		if err := u.run(ctx, "apt-get", install...); err != nil {
			return nil, err
		}
	}
	debs, err := filepath.Glob(filepath.Join(u.cache(), "archives/*.deb"))
	if err == nil && len(debs) == 0 {
		err = fmt.Errorf("the system says that %s is installed, but its programs were not found or are too old", strings.Join(pkgs, ", "))
	}
	return debs, err
}

// run hands the lock down: when this process is killed, the next one waits
// for the apt-get that it leaves behind.
func (u unpacker) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	cmd.ExtraFiles = []*os.File{u.lock}
	cmd.WaitDelay = time.Second // apt's helpers hold the output open
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// LibraryPath is the LD_LIBRARY_PATH for programs in an unpacked root.
func LibraryPath(root string) string {
	var dirs []string
	for _, pattern := range []string{"usr/lib/*-linux-*", "lib/*-linux-*", "usr/lib", "lib"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		dirs = append(dirs, found...)
	}
	return strings.Join(dirs, ":")
}

func waitLock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(10 * pollEvery):
		}
	}
}
