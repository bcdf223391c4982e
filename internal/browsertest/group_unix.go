//go:build unix

package browsertest

import (
	"os/exec"
	"syscall"
)

// A browser is many processes; in a group of their own they end together.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
