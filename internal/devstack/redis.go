package devstack

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startRedis runs a server that keeps nothing: all in it may be lost.
func (s *Stack) startRedis(ctx context.Context, as runAs, o Options) error {
	bin, err := findRedis(ctx, as, o)
	if err != nil {
		return err
	}
	p := &Process{
		name: "Redis",
		quit: syscall.SIGTERM,
		log:  filepath.Join(s.Dir, "redis.log"),
	}
	p.again = func() *exec.Cmd {
		return as.command(bin.programs, s.Dir, bin.name, "--bind", "127.0.0.1", "--port", strconv.Itoa(p.port),
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "",
			"--hz", "100") // it looks at signals this often: a stop takes 10 ms, not 100
	}
	p.ready = func(ctx context.Context, pid int) error {
		return redisReady(ctx, fmt.Sprintf("127.0.0.1:%d", p.port), pid)
	}
	s.Redis = p
	if err := p.begin(ctx); err != nil {
		return err
	}
	s.RedisURL = fmt.Sprintf("redis://127.0.0.1:%d/0", p.port)
	return nil
}

// redisReady asks for the process id, because any Redis would answer PING.
func redisReady(ctx context.Context, addr string, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		return err
	}
	lines := bufio.NewScanner(io.LimitReader(conn, 64<<10))
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			if id != strconv.Itoa(pid) {
				return errors.New("another server answers on " + addr)
			}
			return nil
		}
	}
	return cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}
