package devstack

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ctype makes lower() and pattern matching know all letters.
const ctype = "C.UTF-8"

// endWithParent has the kernel signal the child when the caller is killed.
func endWithParent(cmd *exec.Cmd, sig syscall.Signal) {
	cmd.SysProcAttr.Pdeathsig = sig
}

// children reads the parent of every process: the kernel's own list of
// children is not compiled into every kernel.
func children(pid int) ([]int, error) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var kids []int
	for _, proc := range procs {
		kid, err := strconv.Atoi(proc.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", proc.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid …; the name may hold spaces and brackets.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			kids = append(kids, kid)
		}
	}
	return kids, nil
}

// worksIn tells whether pid is a live process whose folder is dir: a server
// of that cluster, not another process that got a dead server's number.
func worksIn(pid int, dir string) bool {
	cwd, err1 := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	want, err2 := os.Stat(dir)
	return err1 == nil && err2 == nil && os.SameFile(cwd, want)
}
