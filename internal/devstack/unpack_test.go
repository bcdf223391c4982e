package devstack

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// archive makes a mirror of two packages, of which the first needs the second,
// and points apt at it alone.
func archive(t *testing.T) (mirror string) {
	t.Helper()
	if !haveApt() {
		t.Skip("apt-get and dpkg are needed")
	}
	mirror = openDir(t)
	publish(t, mirror, "seatfence-a", "Depends: seatfence-b\n")
	publish(t, mirror, "seatfence-b", "")
	etc := openDir(t)
	sources := filepath.Join(etc, "sources.list")
	conf := filepath.Join(etc, "apt.conf")
	if err := os.WriteFile(sources, fmt.Appendf(nil, "deb [trusted=yes] copy:%s ./\n", mirror), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, fmt.Appendf(nil, "Dir::Etc::SourceList %q;\nDir::Etc::SourceParts \"/dev/null\";\n", sources), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APT_CONFIG", conf)
	return mirror
}

func publish(t *testing.T, mirror, name, fields string) {
	t.Helper()
	tree := filepath.Join(openDir(t), name)
	if err := os.MkdirAll(filepath.Join(tree, "DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(tree, "usr/share"), 0o755); err != nil {
		t.Fatal(err)
	}
	control := "Package: " + name + "\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\n" + fields + "Description: test\n"
	script := "#!/bin/sh\ntouch " + filepath.Join(mirror, "script-ran") + "\n"
	for file, text := range map[string]string{"DEBIAN/control": control, "DEBIAN/preinst": script, "usr/share/" + name: name} {
		if err := os.WriteFile(filepath.Join(tree, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(mirror, name+".deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "-b", tree, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(deb)
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.OpenFile(filepath.Join(mirror, "Packages"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	fmt.Fprintf(index, "%sFilename: ./%s.deb\nSize: %d\nSHA256: %x\n\n", control, name, len(raw), sha256.Sum256(raw))
}

func TestPackagesAreUnpackedOnceWithWhatTheyNeed(t *testing.T) {
	mirror := archive(t)
	dir := openDir(t)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			root, err := Unpack(t.Context(), dir, "seatfence-a")
			if err != nil {
				t.Error(err)
				return
			}
			for _, file := range []string{"seatfence-a", "seatfence-b"} {
				if _, err := os.Stat(filepath.Join(root, "usr/share", file)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := os.Stat(filepath.Join(mirror, "script-ran")); err == nil {
		t.Error("a package's script ran")
	}
	if exec.Command("dpkg", "-s", "seatfence-a").Run() == nil {
		t.Error("the package was installed")
	}
	if err := os.RemoveAll(mirror); err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(t.Context(), dir, "seatfence-a"); err != nil {
		t.Errorf("what is there already needed the mirror: %v", err)
	}
}

func TestListsThatAreOldAreRenewed(t *testing.T) {
	mirror := archive(t)
	dir := openDir(t)
	if _, err := Unpack(t.Context(), dir, "seatfence-b"); err != nil {
		t.Fatal(err)
	}
	publish(t, mirror, "seatfence-c", "")
	if _, err := Unpack(t.Context(), dir, "seatfence-c"); err != nil {
		t.Error(err)
	}
}

func TestDamagedOrUnknownPackageLeavesNothing(t *testing.T) {
	mirror := archive(t)
	if err := os.WriteFile(filepath.Join(mirror, "seatfence-b.deb"), []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	for _, name := range []string{"seatfence-a", "seatfence-none"} {
		root, err := Unpack(t.Context(), dir, name)
		if err == nil || !strings.Contains(err.Error(), "seatfence-") {
			t.Errorf("%s: %q, %v", name, root, err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was left half", name)
		}
	}
}
