//go:build failpoint

package faulttest

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// program is the server with its named points, built once; TestMain removes it.
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

// process starts a server of its own process, which may be killed, and returns its URL.
func (s *site) process(t *testing.T, settings ...string) string {
	t.Helper()
	program.once.Do(func() {
		dir, err := os.MkdirTemp("", "faulttest-")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "seatfence")
		program.text, program.err = exec.Command("go", "build", "-tags", "failpoint", "-o", program.path, "seatfence/cmd/seatfence").CombinedOutput()
	})
	if program.err != nil {
		t.Fatalf("build: %v\n%s", program.err, program.text)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()
	env := s.env()
	env["LISTEN"] = addr
	cmd := exec.Command(program.path, "serve")
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, settings...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitFor(t, "the server to be ready", func() bool {
		res, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return "http://" + addr
}
