//go:build !linux

package devstack

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// ctype makes lower() and pattern matching know all letters.
const ctype = "en_US.UTF-8"

// endWithParent has nothing to use here: after a kill -9 of the caller its
// services stay until they are ended by hand.
func endWithParent(*exec.Cmd, syscall.Signal) {}

func children(pid int) ([]int, error) {
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // none
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, field := range strings.Fields(string(out)) {
		kid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, kid)
	}
	return pids, nil
}

func worksIn(pid int, _ string) bool { return syscall.Kill(pid, 0) == nil }
