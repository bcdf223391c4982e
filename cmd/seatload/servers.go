package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seatfence/internal/devstack"
	"seatfence/seats"
)

// signingKey signs the sessions of servers that live for one run.
const signingKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

const (
	readyTime = 20 * time.Second
	stopTime  = 15 * time.Second
)

// bed is what a run stands on: a private Postgres with durable commits, a private Redis, the built program, and the servers started
// from it. close stops all of it.
type bed struct {
	dir     string
	made    bool // dir is ours to remove
	stack   *devstack.Stack
	program string
	env     []string
	key     string
	servers []*server
}

// server is one seatfence process.
type server struct {
	addr    string
	metrics string
	cmd     *exec.Cmd
}

// newBed starts the services, builds the program with the given build tags, migrates, and makes an organizer with an API key.
func newBed(ctx context.Context, dir, tags, smtpURL string) (b *bed, err error) {
	b = &bed{dir: dir, made: dir == ""}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.made {
		if b.dir, err = os.MkdirTemp("", "seatload-"); err != nil {
			return nil, err
		}
		// The account that runs Postgres must reach its data.
		if err := os.Chmod(b.dir, 0o755); err != nil {
			return nil, err
		}
	}
	b.stack, err = devstack.Start(ctx, devstack.Options{
		Dir: filepath.Join(b.dir, "stack"), Packages: filepath.Join(".data", "packages"), Postgres: true, Redis: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start Postgres and Redis: %w", err)
	}
	b.program = filepath.Join(b.dir, "seatfence")
	if text, err := exec.CommandContext(ctx, "go", "build", "-tags", tags, "-o", b.program, "./cmd/seatfence").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build seatfence: %w\n%s", err, text)
	}
	b.env = append(os.Environ(),
		"DATABASE_URL="+b.stack.PostgresURL, "REDIS_URL="+b.stack.RedisURL, "SMTP_URL="+smtpURL, "SIGNING_KEY="+signingKey)
	if _, err := b.command(ctx, "migrate"); err != nil {
		return nil, err
	}
	token, err := b.command(ctx, "apikey", "create", "--organizer", "Measurement", "--name", "seatload", "--scope", "organizer")
	if err != nil {
		return nil, err
	}
	b.key = lastWord(token)
	return b, nil
}

func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

func (b *bed) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.program, args...)
	cmd.Env = b.env
	text, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("seatfence %s: %w\n%s", args[0], err, exit.Stderr)
	}
	return string(text), err
}

// serve starts a server with more settings and waits until it is ready.
func (b *bed) serve(ctx context.Context, settings ...string) (*server, error) {
	s := &server{}
	for _, addr := range []*string{&s.addr, &s.metrics} {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		*addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	log, err := os.Create(filepath.Join(b.dir, fmt.Sprintf("server-%d.log", len(b.servers)+1)))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd = exec.Command(b.program, "serve")
	s.cmd.Env = append(append(b.env, "LISTEN="+s.addr, "METRICS_LISTEN="+s.metrics, "PUBLIC_URL=http://"+s.addr), settings...)
	s.cmd.Stderr = log
	// Ctrl-C reaches only this program, which then stops its servers in order.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	b.servers = append(b.servers, s)
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err = until(ctx, func() bool {
		res, err := http.Get("http://" + s.addr + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("server is not ready: %w\n%s", err, text)
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

const pollStep = 20 * time.Millisecond

// until waits for a condition.
func until(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(pollStep)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

func (b *bed) close() {
	for _, s := range b.servers {
		kill := time.AfterFunc(stopTime, func() { _ = s.cmd.Process.Kill() })
		_ = s.cmd.Process.Signal(os.Interrupt)
		_ = s.cmd.Wait()
		kill.Stop()
	}
	if b.stack != nil {
		_ = b.stack.Stop()
		_ = os.RemoveAll(b.stack.Dir)
	}
	if b.made {
		_ = os.RemoveAll(b.dir)
	}
}

// house is one section of rows of equal length, numbered from 1, and a floor if places is not 0, all at one price.
func (b *bed) house(ctx context.Context, s *server, labels []string, rowSeats, places int) (seats.EventID, error) {
	areas := []any{}
	if places > 0 {
		areas = append(areas, map[string]any{"name": "Floor", "category": "All", "capacity": places})
	}
	rows := make([]map[string]any, len(labels))
	for i, label := range labels {
		rows[i] = map[string]any{"label": label, "category": "All", "seats": rowSeats}
	}
	now := time.Now().UTC()
	body, err := json.Marshal(map[string]any{
		"name": "An evening", "venue": "Loopback", "starts_at": now.Add(48 * time.Hour), "timezone": "UTC", "currency": "EUR", "payment": "none",
		"status": "on_sale", "sale_starts_at": now.Add(-time.Hour), "sale_ends_at": now.Add(24 * time.Hour),
		"categories": []any{map[string]any{"name": "All", "price": 4500}},
		"sections":   []any{map[string]any{"name": "Stalls", "rows": rows}}, "areas": areas,
	})
	if err != nil {
		return 0, err
	}
	var made struct{ ID seats.EventID }
	err = s.make(ctx, "/v1/events", b.key, fmt.Sprintf("event-%d", now.UnixNano()), body, &made)
	return made.ID, err
}

// session starts a buyer and returns its token.
func (s *server) session(ctx context.Context) (string, error) {
	var made struct{ Token string }
	err := s.make(ctx, "/v1/sessions", "", "", nil, &made)
	return made.Token, err
}

// make posts a request that creates something and reads the answer into made.
func (s *server) make(_ context.Context, path, token, key string, body []byte, made any) error {
	conn, err := dial(s.addr)
	if err != nil {
		return err
	}
	defer conn.close()
	status, answer, err := conn.post(path, token, key, body)
	if err != nil {
		return err
	}
	if status != http.StatusCreated {
		return fmt.Errorf("POST %s: status %d %s", path, status, answer)
	}
	return json.Unmarshal(answer, made)
}
