package devstack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
	clusterTimeout = "1500" // ms until a master that says nothing counts as failing
)

// startCluster runs a Redis Cluster of three masters without replicas, which
// keeps nothing but who has which slots.
func (s *Stack) startCluster(ctx context.Context, as runAs, o Options) error {
	bin, err := findRedis(ctx, as, o)
	if err != nil {
		return err
	}
	home := filepath.Join(s.Dir, "cluster") // where the masters note who has which slots
	if err := errors.Join(os.Mkdir(home, 0o700), as.chown(home)); err != nil {
		return err
	}
	s.Cluster = make([]*Process, clusterMasters)
	g, starting := errgroup.WithContext(ctx)
	for i := range s.Cluster {
		p := &Process{name: fmt.Sprint("Redis Cluster ", i), quit: syscall.SIGTERM, log: filepath.Join(s.Dir, fmt.Sprintf("cluster-%d.log", i))}
		p.again = func() *exec.Cmd {
			return as.command(bin.programs, s.Dir, bin.name, "--bind", "127.0.0.1", "--port", strconv.Itoa(p.port),
				"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", "", "--hz", "100",
				"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(busPort(p.port)), "--cluster-config-file", filepath.Join(home, fmt.Sprintf("nodes-%d.conf", i)),
				"--cluster-node-timeout", clusterTimeout, "--cluster-require-full-coverage", "no")
		}
		p.ready = func(ctx context.Context, pid int) error {
			return redisReady(ctx, p.redisAddr(), pid)
		}
		s.Cluster[i] = p
		g.Go(func() error { return p.begin(starting) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.joinCluster(ctx)
}

// busPort is where a master talks to the others. Redis itself would take one among those of outgoing connections.
func busPort(port int) int {
	const ports = lastPort - firstPort + 1
	return firstPort + (port-firstPort+ports/2)%ports
}

func (p *Process) redisAddr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

// joinCluster gives each master its third of the slots and waits until all
// know of all.
func (s *Stack) joinCluster(ctx context.Context) error {
	var more []string
	for i, p := range s.Cluster {
		first, last := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
		if _, err := redisCommand(ctx, p.redisAddr(), fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", first, last)); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		more = append(more, "addr="+p.redisAddr())
		if _, err := redisCommand(ctx, p.redisAddr(), fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", s.Cluster[0].port, busPort(s.Cluster[0].port))); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for _, p := range s.Cluster {
		for {
			info, err := redisCommand(ctx, p.redisAddr(), "CLUSTER INFO")
			if err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(clusterSlots)) {
				break
			}
			select {
			case <-time.After(pollEvery):
			case <-ctx.Done():
				return fmt.Errorf("%s is not whole: %s: %w", p.name, info, ctx.Err())
			}
		}
	}
	s.ClusterURL = "redis://" + s.Cluster[0].redisAddr() + "?" + strings.Join(more, "&")
	return nil
}

// redisCommand sends one inline command and returns a status, or a bulk text.
func redisCommand(ctx context.Context, addr, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	switch {
	case strings.HasPrefix(line, "+"):
		return line[1:], nil
	case strings.HasPrefix(line, "$"):
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", fmt.Errorf("%s: %s", command, line)
		}
		text := make([]byte, 0, n)
		for len(text) < n {
			part, err := r.ReadString('\n')
			if err != nil {
				return "", err
			}
			text = append(text, part...)
		}
		return string(text), nil
	}
	return "", fmt.Errorf("%s: %s", command, line)
}
