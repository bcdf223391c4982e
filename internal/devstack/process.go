package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	readyTime  = 30 * time.Second // crash recovery of a large data folder on a busy machine included
	stopTime   = 15 * time.Second // a fast shutdown writes a checkpoint
	pollEvery  = 10 * time.Millisecond
	startTries = 6
	retryStep  = 50 * time.Millisecond // times the number of the try
	logTail    = 2 << 10               // bytes of the log shown when a child does not start

	// Ports below the ephemeral ranges of Linux (32768) and macOS (49152): an
	// outgoing connection cannot take the port of a service that is down.
	firstPort, lastPort = 20000, 29999
	portTries           = 50
)

var errExited = errors.New("ended before it was ready")

// Process is one private service. Its methods may be called from any
// goroutine and do not overlap. The faults (Pause, Kill) are for tests.
type Process struct {
	name  string
	again func() *exec.Cmd // the command, new for each start
	ready func(ctx context.Context, pid int) error
	quit  syscall.Signal // asks for an orderly end
	log   string         // path

	mu   sync.Mutex
	port int
	cmd  *exec.Cmd     // nil when not running
	done chan struct{} // closed when cmd has ended
}

// Pid is the process id, 0 when it is not running.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Pause freezes the service and all its children as they are: connections
// stay open and nothing answers.
func (p *Process) Pause() error { return p.signalTree(syscall.SIGSTOP) }

// Resume undoes Pause.
func (p *Process) Resume() error { return p.signalTree(syscall.SIGCONT) }

// Kill ends the service and all its children at once, as a crash would, and
// waits for it.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kill()
}

// Stop asks the service to end, waits for it and, after 15 s, kills it.
// Stopping a stopped or killed service does nothing.
func (p *Process) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop()
}

// Restart stops the service when it runs and starts it again on the same port
// and data. It returns once connections are accepted.
func (p *Process) Restart(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stop(); err != nil {
		return err
	}
	return p.start(ctx, func() (int, error) { return p.port, nil })
}

// begin starts the service for the first time, on a free port.
func (p *Process) begin(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := os.Remove(p.log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return p.start(ctx, freePort)
}

func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *Process) signalTree(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("signal %s: %w", p.name, os.ErrProcessDone)
	}
	return signalTree(p.cmd.Process.Pid, sig)
}

// signalTree reaches the parent first: a stopped parent forks no child that
// the list would miss, and a dead one has no list. Children are named one by
// one because PostgreSQL's leave the process group.
func signalTree(pid int, sig syscall.Signal) error {
	first := sig
	if sig == syscall.SIGKILL {
		first = syscall.SIGSTOP
	}
	if err := syscall.Kill(pid, first); err != nil {
		return err
	}
	kids, err := children(pid)
	if err != nil {
		return fmt.Errorf("list children: %w", err)
	}
	for _, kid := range kids {
		if err := syscall.Kill(kid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	if sig == syscall.SIGKILL {
		return syscall.Kill(pid, sig)
	}
	return nil
}

func (p *Process) kill() error {
	if !p.running() {
		return nil
	}
	if err := signalTree(p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

func (p *Process) stop() error {
	if !p.running() {
		return nil
	}
	_ = signalTree(p.cmd.Process.Pid, syscall.SIGCONT) // a paused one cannot hear the request
	_ = p.cmd.Process.Signal(p.quit)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTime):
		return errors.Join(fmt.Errorf("%s did not stop within %s and was killed", p.name, stopTime), p.kill())
	}
}

// start runs the command until it is ready. One that ends at once is started
// again: the port may have been taken between looking and listening, and what
// a predecessor was killed with may need a moment to let go of its data.
func (p *Process) start(ctx context.Context, port func() (int, error)) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for try := 1; ; try++ {
		var err error
		if p.port, err = port(); err != nil {
			return err
		}
		err = p.startOnce(ctx)
		if err == nil || try == startTries || !errors.Is(err, errExited) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(time.Duration(try) * retryStep):
		}
	}
}

func (p *Process) startOnce(ctx context.Context) error {
	if err := p.spawn(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := p.ready(ctx, p.cmd.Process.Pid)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s: %w; its log ends with:\n%s", p.name, errExited, tail(p.log))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is not ready: %w (log: %s)", p.name, err, p.log), p.kill())
		case <-tick.C:
		}
	}
}

// spawn starts the command on a thread that it keeps until the child has
// ended: the kernel signals the child when the thread that forked it ends,
// which is meant to happen only with this whole process.
func (p *Process) spawn() error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := p.again()
	cmd.Stdout, cmd.Stderr = out, out
	endWithParent(cmd, p.quit)
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			close(done)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.cmd, p.done = cmd, done
	return nil
}

func freePort() (int, error) {
	var err error
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		var l net.Listener
		if l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port from %d to %d: %w", firstPort, lastPort, err)
}

func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-logTail), io.SeekStart)
	}
	text, _ := io.ReadAll(io.LimitReader(f, logTail))
	return string(text)
}
