package httpapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for what is certain to come.
const patience = 10 * time.Second

// socket is a connection to the server at an address, which reads and writes for at most patience.
func socket(t *testing.T, url string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// spoken sends bytes and returns the first answer.
func spoken(t *testing.T, url, raw string) answer {
	t.Helper()
	conn := socket(t, url)
	go func() { _, _ = io.WriteString(conn, raw) }() // the answer may come before all is sent
	return heard(t, conn)
}

func heard(t *testing.T, conn net.Conn) answer {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return answer{t: t}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{t: t, status: response.StatusCode, header: response.Header, raw: body}
}

// sockets sends what no client library would, and looks for the status: most of it is refused before there is a request to answer.
func (s *suite) sockets() {
	s.t.Helper()
	const end = "\r\n\r\n"
	get := "GET /v1/events/" + s.event + " HTTP/1.1\r\n"
	post := "POST /v1/bookings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + s.partner + "\r\nIdempotency-Key: raw\r\n"
	typed := post + "Content-Type: application/json\r\n"
	body := s.booking(19, "Lena")
	sized := typed + fmt.Sprintf("Content-Length: %d\r\n", len(body))
	whole := "\r\n" + body
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for _, c := range []struct {
		row    int
		name   string
		raw    string
		status int
	}{
		{16, "endless multipart, of which nothing comes", post + "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1073741824" + end, 415},
		{20, "large body, of which nothing comes", typed + "Content-Length: 1073741824" + end, 413},
		{17, "text, of which nothing comes", post + "Content-Type: text/plain\r\nContent-Length: 100" + end, 415},
		{20, "body just over the limit, of which nothing comes", typed + "Content-Length: 65537" + end, 413},
		{20, "large body that asks first", typed + "Expect: 100-continue\r\nContent-Length: 65537" + end, 413},
		{21, "large chunk", typed + "Transfer-Encoding: chunked" + end + "20000\r\n" + strings.Repeat(" ", 0x20000), 413},
		{49, "broken escape", "GET /v1/events/%zz HTTP/1.1\r\nHost: localhost" + end, 400},
		{49, "broken escape at the end", "GET /v1/events/% HTTP/1.1\r\nHost: localhost" + end, 400},
		{58, "NUL in a key", strings.Replace(sized, "raw", "r\x00w", 1) + whole, 400},
		{58, "line break in a key", strings.Replace(sized, "raw", "r\r\nw", 1) + whole, 400},
		{69, "header of 1 MiB", get + "Host: localhost\r\nAuthorization: Bearer " + strings.Repeat("x", 1<<20) + end, 431},
		{69, "many headers", get + "Host: localhost\r\n" + strings.Repeat("X: y\r\n", 10_000) + "\r\n", 431},
		{77, "no Host", get + "\r\n", 400},
		{77, "two Hosts", get + "Host: localhost\r\nHost: forged.example" + end, 400},
		{77, "malformed Host", get + "Host: local host" + end, 400},
		{79, "two lengths", sized + "Content-Length: 5\r\n" + whole, 400},
		{79, "negative length", typed + "Content-Length: -1\r\n" + whole, 400},
		{79, "length with a sign", typed + "Content-Length: +5\r\n" + whole, 400},
		{79, "length in another base", typed + "Content-Length: 0x10\r\n" + whole, 400},
		{79, "list of lengths", typed + "Content-Length: 5, 5\r\n" + whole, 400},
		{79, "unknown transfer encoding", typed + "Transfer-Encoding: foo\r\n" + whole, 501},
		{79, "transfer encodings", typed + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks, 501},
		{79, "two transfer encodings", typed + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunks, 501},
		{79, "malformed chunk", typed + "Transfer-Encoding: chunked" + end + "zz\r\n" + body, 400},
		{79, "blank in a header's name", get + "Host: localhost\r\nContent-Length : 5" + end, 400},
		{79, "HTTP/3.7", strings.Replace(get, "1.1", "3.7", 1) + "Host: localhost" + end, 505},
		{79, "HTTP/1.10", strings.Replace(get, "1.1", "1.10", 1) + "Host: localhost" + end, 400},
		{79, "no version", "GET /v1/events\r\n\r\n", 400},
		{79, "TLS", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + strings.Repeat("x", 160) + end, 400},
		{79, "noise", "\x00\xff\x00\xff" + end, 400},
	} {
		s.tried[c.row]++
		start := time.Now()
		got := spoken(s.t, s.url, c.raw)
		if took := time.Since(start); took > patience/4 {
			s.t.Errorf("%d %s: answered after %v", c.row, c.name, took)
		}
		if got.status != c.status {
			s.t.Errorf("%d %s: %d, want %d: %s", c.row, c.name, got.status, c.status, got.raw)
		}
		if leak := leaks.Find(got.raw); leak != nil {
			s.t.Errorf("%d %s: tells %q: %s", c.row, c.name, leak, got.raw)
		}
	}
	s.forgedHosts()
	s.slow()
}

// forgedHosts asks for another host's page: there is only one here, and no answer names it.
func (s *suite) forgedHosts() {
	s.t.Helper()
	for _, raw := range []string{
		"GET http://forged.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET http://forged.example:99/healthz HTTP/1.1\r\nHost: forged.example\r\nX-Forwarded-Host: forged.example\r\n\r\n",
		"GET //forged.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET https://lena:secret@forged.example/v1/nothing HTTP/1.1\r\nHost: forged.example\r\n\r\n",
	} {
		s.tried[80]++
		got := spoken(s.t, s.url, raw)
		if text := fmt.Sprint(got.header, string(got.raw)); got.status != 200 && got.status != 404 || strings.Contains(text, "forged") {
			s.t.Errorf("80: %q is answered %d: %s", raw, got.status, text)
		}
	}
}

// slow talks slower than a server with short limits allows: each connection ends, with an answer or without one.
func (s *suite) slow() {
	s.t.Helper()
	const limit = 200 * time.Millisecond
	server := s.serve(func(h *http.Server) {
		if h.ReadHeaderTimeout == 0 || h.ReadTimeout == 0 || h.WriteTimeout == 0 || h.IdleTimeout == 0 || h.MaxHeaderBytes == 0 {
			s.t.Fatalf("a limit is missing: %+v", h)
		}
		h.ReadHeaderTimeout, h.ReadTimeout, h.IdleTimeout = limit, 2*limit, limit
	})
	post := "POST /v1/bookings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + s.partner + "\r\nIdempotency-Key: slow\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name, first, trickle string
		status               int // 0: none
	}{
		{"nothing is said", "", "", 0},
		{"head stops", "GET / HTTP/1.1\r\nHost:", "", 0},
		{"head trickles", "GET / HTTP/1.1\r\nX: ", "x", 0},
		{"headers trickle", "GET / HTTP/1.1\r\nHost: localhost\r\n", "X: y\r\n", 0},
		{"body stops", post + "Content-Length: 100\r\n\r\n{", "", 408},
		{"body trickles", post + "Content-Length: 1000\r\n\r\n{", " ", 408},
		{"chunks trickle", post + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "1\r\n \r\n", 408},
		{"idle after an answer", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "", 200},
	} {
		s.tried[81]++
		conn := socket(s.t, server.URL)
		start := time.Now()
		stop := trickle(conn, c.first, c.trickle, limit/20)
		got := answer{}
		if c.status != 0 {
			got = heard(s.t, conn)
		}
		rest, err := io.ReadAll(conn)
		stop()
		if got.status != c.status || len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			s.t.Errorf("81 %s: %d after %v, want %d and the end: %s %s, %v", c.name, got.status, time.Since(start), c.status, got.raw, rest, err)
		}
	}
}

// trickle writes first, and then piece by piece until the connection ends or stop is called.
func trickle(conn net.Conn, first, piece string, every time.Duration) (stop func()) {
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		_, err := io.WriteString(conn, first)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for err == nil && piece != "" {
			select {
			case <-done:
				return
			case <-tick.C:
				_, err = io.WriteString(conn, piece)
			}
		}
	})
	return func() {
		close(done)
		writer.Wait()
	}
}
