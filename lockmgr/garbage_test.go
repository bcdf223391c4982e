package lockmgr_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"seatfence/lockmgr"
)

// Something answers in Redis's place, and wrongly. Every sale goes on without locks, and the breaker learns of it.
func TestRepliesThatTheScriptCannotGiveAreSkipped(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"a seat beyond the request": "*2\r\n:1\r\n:99\r\n",
		"a seat before the first":   "*2\r\n:1\r\n:0\r\n",
		"a negative seat":           "*2\r\n:1\r\n:-1\r\n",
		"busy without a seat":       "*1\r\n:1\r\n",
		"an unknown verdict":        "*1\r\n:7\r\n",
		"an empty list":             "*0\r\n",
		"an impossible length":      "*-2147483648\r\n",
		"another type":              "+OK\r\n",
		"no reply of Redis at all":  "HTTP/1.1 200 OK\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen tally
			locks := lockmgr.NewSeats(openClient(t, "redis://"+garbage(t, reply)), lockmgr.DefaultTTL, seen.add)
			for range 5 {
				lease := locks.Acquire(t.Context(), 7, []int32{1, 2}, lockmgr.Owner{Caller: "lena", Key: "k"})
				if lease.Verdict != lockmgr.Skipped {
					t.Fatalf("verdict %v, busy %v", lease.Verdict, lease.Busy)
				}
				lease.Release(t.Context())
			}
			if seen.counts()["skipped"] == 0 {
				t.Error("the breaker never opened")
			}
		})
	}
}

// garbage is a server that takes the commands of go-redis's handshake and answers every script with reply.
func garbage(t *testing.T, reply string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerWith(conn, reply)
		}
	}()
	return l.Addr().String()
}

func answerWith(conn net.Conn, reply string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(conn)
	for {
		// The first bulk string of a command is its name; what follows it is not needed to answer.
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch name := strings.ToUpper(strings.TrimSpace(line)); name {
		case "HELLO":
			_, err = io.WriteString(conn, "-ERR unknown command\r\n")
		case "CLIENT":
			_, err = io.WriteString(conn, "+OK\r\n")
		case "EVALSHA", "EVAL":
			_, err = io.WriteString(conn, reply)
		}
		if err != nil {
			return
		}
	}
}
