package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"seatfence/booking"
	"seatfence/booking/bookingtest"
	"seatfence/db/dbtest"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const (
	patience = 20 * time.Second
	nobody   = "127.0.0.1:1" // refuses connections
)

// program is a run of the whole program.
type program struct {
	stdout *bufio.Reader
	stderr *lockedBuffer
	code   chan int
	stop   context.CancelFunc
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func begin(t *testing.T, environ []string, args ...string) program {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	p := program{stdout: bufio.NewReader(out), stderr: &lockedBuffer{}, code: make(chan int, 1), stop: stop}
	go func() {
		code := run(ctx, args, environ, in, p.stderr)
		_ = in.Close()
		p.code <- code
		close(p.code) // later reads get 0
	}()
	t.Cleanup(func() { stop(); <-p.code })
	return p
}

// end stops the program as a signal would and returns its exit code.
func (p program) end(t *testing.T) int {
	t.Helper()
	p.stop()
	_, _ = io.Copy(io.Discard, p.stdout)
	select {
	case code := <-p.code:
		return code
	case <-time.After(patience):
		t.Fatal("the program does not stop")
		return 0
	}
}

// once runs a command to its end.
func once(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := begin(t, environ, args...)
	text, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	return <-p.code, string(text), p.stderr.String()
}

func getJSON(t *testing.T, url string, into any) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// given is an environment that names every service.
func given(t *testing.T, database string) []string {
	t.Helper()
	return []string{
		"DATABASE_URL=" + database, "REDIS_URL=redis://" + nobody, "SMTP_URL=smtp://" + nobody, "SIGNING_KEY=" + strings.Repeat("5f", 32),
		"LISTEN=127.0.0.1:0", "METRICS_LISTEN=127.0.0.1:0", "ALLOW_UNSAFE_FSYNC=true",
	}
}

func TestServeStopsWhenTold(t *testing.T) {
	t.Parallel()
	p := begin(t, given(t, dbtest.URL(t)), "serve")
	var serving struct{ Addr string }
	for deadline := time.Now().Add(patience); serving.Addr == ""; {
		for line := range strings.Lines(p.stderr.String()) {
			var entry struct{ Msg, Addr string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "serving" {
				serving.Addr = entry.Addr
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not say where it is:\n%s", p.stderr)
		}
		<-time.After(10 * time.Millisecond)
	}
	var readiness struct{ Status string }
	if status := getJSON(t, "http://"+serving.Addr+"/readyz", &readiness); status != http.StatusOK {
		t.Errorf("readyz is %d %+v", status, readiness)
	}
	if code := p.end(t); code != 0 {
		t.Errorf("stopped with %d:\n%s", code, p.stderr)
	}
}

func TestServeNamesEverySettingThatIsWrong(t *testing.T) {
	t.Parallel()
	code, _, stderr := once(t, []string{"DATABASE_URL=x", "SEAT_LOCK_TTL=-1s", "SMTP_URL=smtp://" + nobody}, "serve")
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	for _, name := range []string{"DATABASE_URL: ", "SEAT_LOCK_TTL: ", "REDIS_URL: missing", "SIGNING_KEY: missing"} {
		if !strings.Contains(stderr, name) {
			t.Errorf("the reasons lack %q:\n%s", name, stderr)
		}
	}
}

func TestKeysAreMadeListedAndRevoked(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + dbtest.URL(t)}
	code, token, stderr := once(t, environ, "apikey", "create", "--organizer", "Glass Harbour", "--name", "till", "--scope", "partner")
	if code != 0 || !strings.HasPrefix(token, "sf_") {
		t.Fatalf("%d, %q, %s", code, token, stderr)
	}
	id := token[len("sf_"):][:22]
	if _, list, _ := once(t, environ, "apikey", "list"); !strings.Contains(list, id) || !strings.Contains(list, "Glass Harbour") {
		t.Errorf("the list is\n%s", list)
	}
	if code, _, stderr := once(t, environ, "apikey", "revoke", id); code != 0 {
		t.Errorf("revoke: %d, %s", code, stderr)
	}
	if code, _, _ := once(t, environ, "apikey", "revoke", id); code != exitFailed {
		t.Errorf("revoking twice: %d", code)
	}
}

func TestUsersAreMadeListedAndRemoved(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + dbtest.URL(t), "PUBLIC_URL=https://tickets.example"}
	create := []string{"user", "create", "--organizer", "Glass Harbour", "--name", "Lena", "--role", "owner", "--email"}
	code, link, stderr := once(t, environ, append(create, "lena@example.com", "--print-link")...)
	if code != 0 || !strings.HasPrefix(link, "https://tickets.example/staff/password?token=") {
		t.Fatalf("%d, %q, %s", code, link, stderr)
	}
	if code, out, stderr := once(t, environ, append(create, "omar@example.com")...); code != 0 || strings.Contains(out, "token=") {
		t.Fatalf("by mail: %d, %q, %s", code, out, stderr)
	}
	_, list, _ := once(t, environ, "user", "list")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "lena@example.com") || !strings.Contains(lines[1], "none yet") {
		t.Fatalf("the list is\n%s", list)
	}
	first, _, _ := strings.Cut(lines[1], " ")
	second, _, _ := strings.Cut(lines[2], " ")
	if code, _, stderr := once(t, environ, "user", "remove", first); code != 0 {
		t.Errorf("remove: %d, %s", code, stderr)
	}
	for name, args := range map[string][]string{
		"removed twice": {"user", "remove", first}, "the last owner": {"user", "remove", second}, "no id": {"user", "remove", "lena@example.com"},
		"an owner of one event": append(create, "new@example.com", "--event", "evt_0000000000001"), "no event": append(create, "new@example.com", "--event", "x"),
	} {
		if code, _, stderr := once(t, environ, args...); code != exitFailed || stderr == "" {
			t.Errorf("%s: %d, %s", name, code, stderr)
		}
	}
}

func TestVerifyFailsOnABrokenPromise(t *testing.T) {
	t.Parallel()
	w := bookingtest.New(t, dbtest.Pool(t), booking.DefaultLimits)
	environ := []string{"DATABASE_URL=" + w.Pool.Config().ConnString()}
	if _, err := w.Book(t.Context(), bookingtest.Buyer(), bookingtest.Seat14C); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := once(t, environ, "verify"); code != 0 || strings.Count(out, "ok ") < 9 {
		t.Errorf("on a sound database: %d\n%s%s", code, out, stderr)
	}
	if _, err := w.Pool.Exec(t.Context(), "UPDATE tickets SET status = 'cancelled'"); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := once(t, environ, "verify"); code != exitFailed || !strings.Contains(out, "BROKEN  every sold seat has its ticket and booking: 1 rows") {
		t.Errorf("on a broken database: %d\n%s", code, out)
	}
}

func TestMigrateMakesAnEmptyDatabaseUsable(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE empty"); err != nil {
		t.Fatal(err)
	}
	environ := []string{"DATABASE_URL=" + strings.Replace(conn.Config().ConnString(), "/"+conn.Config().Database, "/empty", 1)}
	for range 2 {
		if code, _, stderr := once(t, environ, "migrate"); code != 0 {
			t.Fatalf("migrate: %d, %s", code, stderr)
		}
	}
	if code, out, stderr := once(t, environ, "verify"); code != 0 {
		t.Errorf("verify: %d\n%s%s", code, out, stderr)
	}
}

func TestCodesOfUse(t *testing.T) {
	t.Parallel()
	for code, all := range map[int][][]string{
		0:         {{"--help"}, {"dev", "--help"}, {"version"}},
		exitUsage: {{}, {"sell"}, {"serve", "--port", "1"}, {"apikey", "create"}, {"apikey", "create", "--organizer", "a", "--name", "b", "--scope", "all"}},
	} {
		for _, args := range all {
			if got, out, stderr := once(t, nil, args...); got != code || out+stderr == "" {
				t.Errorf("%q: code %d, want %d\n%s%s", args, got, code, out, stderr)
			}
		}
	}
}
