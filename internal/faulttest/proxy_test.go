package faulttest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy is a TCP proxy in front of a service that a test can cut, or make deaf to its answers.
type proxy struct {
	addr     string
	target   string
	listener net.Listener
	mute     atomic.Bool // swallow what the service answers
	deaf     atomic.Bool // swallow what it is asked

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), target: target, listener: l, conns: map[net.Conn]bool{}}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.done.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.done.Go(func() { p.pipe(server, client, &p.deaf) })
		p.done.Go(func() { p.pipe(client, server, &p.mute) })
	}
}

// pipe copies from one end to the other until either is closed, leaving out what comes while drop is set.
func (p *proxy) pipe(to, from net.Conn, drop *atomic.Bool) {
	defer func() {
		_, _ = to.Close(), from.Close()
		p.mu.Lock()
		delete(p.conns, to)
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !drop.Load() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut closes every connection that is open now.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}
