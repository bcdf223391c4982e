package faulttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is the server, with its named points if the tests have them, built once; TestMain removes it.
var program struct {
	once sync.Once
	path string
	err  error
	text []byte
}

func init() {
	cleanUp = func() {
		if program.path != "" {
			_ = os.RemoveAll(filepath.Dir(program.path))
		}
	}
}

func build(t *testing.T) {
	t.Helper()
	program.once.Do(func() {
		dir, err := os.MkdirTemp("", "faulttest-")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "seatfence")
		program.text, program.err = exec.Command("go", "build", "-tags", buildTags, "-o", program.path, "seatfence/cmd/seatfence").CombinedOutput()
	})
	if program.err != nil {
		t.Fatalf("build: %v\n%s", program.err, program.text)
	}
}

// server is a node in a process of its own.
type server struct {
	url, addr, metrics string

	process *os.Process
	ended   chan struct{}
	err     error // of its end
}

// serve starts a server in a process of its own, which ends with the test at the latest.
func (s *site) serve(t *testing.T, settings ...string) *server {
	t.Helper()
	build(t)
	cmd := exec.Command(program.path, "serve")
	for name, value := range s.env() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, settings...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	v := &server{process: cmd.Process, ended: make(chan struct{})}
	serving := make(chan [2]string, 1)
	var log sync.WaitGroup
	log.Go(func() { readLog(r, t.Output(), serving) })
	go func() {
		v.err = cmd.Wait()
		close(v.ended)
	}()
	t.Cleanup(func() {
		v.kill()
		log.Wait()
	})
	select {
	case at := <-serving:
		v.addr, v.url, v.metrics = at[0], "http://"+at[0], "http://"+at[1]+"/metrics"
	case <-v.ended:
		t.Fatalf("the server ended: %v", v.err)
	case <-time.After(patience):
		t.Fatal("the server does not begin to serve")
	}
	return v
}

// readLog waits for a server to say where it serves, and hands on what it complains of.
func readLog(r io.ReadCloser, out io.Writer, serving chan<- [2]string) {
	defer r.Close()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Level, Msg, Addr, Metrics string }
		err := json.Unmarshal(lines.Bytes(), &line)
		switch {
		case err == nil && line.Msg == "serving":
			serving <- [2]string{line.Addr, line.Metrics}
		case err != nil || line.Level != "INFO":
			fmt.Fprintf(out, "%s\n", lines.Bytes())
		}
	}
}

// kill ends the process at once, as a machine that loses its power does.
func (v *server) kill() {
	_ = v.process.Kill()
	<-v.ended
}

// stop asks the process to end and waits until it has.
func (v *server) stop(t testing.TB) {
	t.Helper()
	if err := v.process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	select {
	case <-v.ended:
		if v.err != nil {
			t.Errorf("a server that was asked to stop ends with %v", v.err)
		}
	case <-time.After(patience):
		t.Error("a server that was asked to stop does not")
	}
}

// metric reads one number from the server's metrics.
func (v *server) metric(t testing.TB, name string) int {
	t.Helper()
	res, err := http.Get(v.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("there is no metric %s", name)
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(string(match[1])), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(value)
}
