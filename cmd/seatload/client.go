package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// client is one keep-alive HTTP/1.1 connection. net/http's client costs as much processor time as the server that is measured on the
// same cores; this one writes prepared bytes and reads what the server's answers have: a status and a length.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

const (
	answerTime = 15 * time.Second
	maxAnswer  = 1 << 20
)

var errNotLoopback = errors.New("load goes to loopback addresses only")

func dial(addr string) (*client, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, errNotLoopback
	}
	conn, err := net.DialTimeout("tcp", addr, answerTime)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}, nil
}

// post sends one request and returns the status and the body of the answer. Without a token, or without a key, its header is left out.
func (c *client) post(path, token, key string, body []byte) (status int, answer []byte, err error) {
	c.out = fmt.Appendf(c.out[:0], "POST %s HTTP/1.1\r\nHost: localhost\r\n", path)
	if token != "" {
		c.out = fmt.Appendf(c.out, "Authorization: Bearer %s\r\n", token)
	}
	if key != "" {
		c.out = fmt.Appendf(c.out, "Idempotency-Key: %s\r\n", key)
	}
	if len(body) > 0 {
		c.out = append(c.out, "Content-Type: application/json\r\n"...)
	}
	c.out = fmt.Appendf(c.out, "Content-Length: %d\r\n\r\n", len(body))
	c.out = append(c.out, body...)
	if err := c.conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return 0, nil, err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, nil, err
	}
	return c.read()
}

var contentLength = []byte("content-length:")

func (c *client) read() (status int, body []byte, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 12 {
		return 0, nil, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, fmt.Errorf("status line: %w", err)
	}
	length := 0
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil || length > maxAnswer {
				return 0, nil, fmt.Errorf("answer of %q bytes", line)
			}
		}
	}
	body = make([]byte, length)
	_, err = io.ReadFull(c.in, body)
	return status, body, err
}

func (c *client) close() { _ = c.conn.Close() }
