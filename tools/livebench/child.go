package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// child is another process of this program, which is told things by lines and answers by lines.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start runs a child until its first line, and returns that.
func start(args ...string) (*child, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	c := &child{cmd: exec.Command(self, args...)}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, "", err
	}
	line, err := c.hear()
	if err != nil {
		c.stop()
		return nil, "", fmt.Errorf("%v: %w", args, err)
	}
	return c, line, nil
}

func (c *child) say(format string, args ...any) error {
	_, err := fmt.Fprintf(c.in, format+"\n", args...)
	return err
}

func (c *child) hear() (string, error) {
	line, err := c.out.ReadString('\n')
	return strings.TrimSpace(line), err
}

// stop ends the child; its end is that of its input.
func (c *child) stop() {
	_ = c.in.Close()
	done := make(chan struct{})
	go func() {
		_ = c.cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = c.cmd.Process.Kill()
		<-done
	}
}

// cpu is the time that the child has been on a processor.
func (c *child) cpu() time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on Linux
}

// rss is the child's memory in KB.
func (c *child) rss() float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(text)[0], 64)
			return kb
		}
	}
	return 0
}

// raise takes as many file descriptors as it may.
func raise() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
}
