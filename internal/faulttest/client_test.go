package faulttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seatfence/internal/session"
	"seatfence/seats"
)

// client is one caller with its credential.
type client struct {
	site  *site
	name  string
	token string
}

// reply is an answer, with the members that tests look at.
type reply struct {
	status int
	header http.Header
	body   []byte

	ID    string
	Code  string
	Seats []struct {
		ID     seats.ID
		Label  string
		Reason string
	}
	Alternatives []struct{ ID seats.ID }
}

var web = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 128}}

var keys atomic.Int64

func newKey() string { return fmt.Sprintf("key-%d", keys.Add(1)) }

// buyer is a new session. Its mails go to name@example.com.
func (s *site) buyer(t *testing.T, name string) *client {
	t.Helper()
	signer, err := session.NewSigner(signingKey, false)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := signer.New()
	return &client{site: s, name: name, token: token}
}

func (s *site) sale(c *client, ids ...seats.ID) string {
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",")
	return fmt.Sprintf(`{"event":%q,"seats":[%s],"buyer":{"name":%q,"email":"%s@example.com"}}`, s.event, list, c.name, c.name)
}

func (c *client) tryPost(base, path, key, body string) (r reply, err error) {
	req, err := http.NewRequest(http.MethodPost, base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return r, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := web.Do(req)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	r.status, r.header = res.StatusCode, res.Header
	if r.body, err = io.ReadAll(res.Body); err != nil {
		return r, err
	}
	return r, json.Unmarshal(r.body, &r)
}

func (c *client) post(t testing.TB, n *node, path, key, body string) reply {
	t.Helper()
	r, err := c.tryPost(n.url, path, key, body)
	if err != nil {
		t.Error(err)
	}
	return r
}

func (r reply) want(t testing.TB, status int, code string) {
	t.Helper()
	if r.status != status || r.Code != code {
		t.Fatalf("answer is %d %s, want %d with code %q", r.status, r.body, status, code)
	}
}

func (c *client) bookKey(t testing.TB, n *node, key string, ids ...seats.ID) reply {
	t.Helper()
	return c.post(t, n, "/v1/bookings", key, c.site.sale(c, ids...))
}

func (c *client) book(t testing.TB, n *node, ids ...seats.ID) reply {
	t.Helper()
	return c.bookKey(t, n, newKey(), ids...)
}

// startBook books in the background.
func (c *client) startBook(t testing.TB, n *node, ids ...seats.ID) <-chan reply {
	return c.startBookKey(t, n, newKey(), ids...)
}

func (c *client) startBookKey(t testing.TB, n *node, key string, ids ...seats.ID) <-chan reply {
	to := make(chan reply, 1)
	go func() { to <- c.bookKey(t, n, key, ids...) }()
	return to
}

// bookWhenFree books as soon as the seats are not busy any more.
func (c *client) bookWhenFree(t *testing.T, n *node, ids ...seats.ID) (won reply) {
	t.Helper()
	waitFor(t, "the seats to be given up", func() bool {
		won = c.book(t, n, ids...)
		return won.Code != "seat_busy"
	})
	won.want(t, http.StatusCreated, "")
	return won
}

// untilAnswered repeats a request with its key, as a client does, until it is neither 503 nor cut. Anything else than 201 fails the test.
func (c *client) untilAnswered(t *testing.T, n *node, key string, ids ...seats.ID) (r reply) {
	t.Helper()
	waitFor(t, "an answer to a booking", func() bool {
		var err error
		r, err = c.tryPost(n.url, "/v1/bookings", key, c.site.sale(c, ids...))
		return err == nil && r.status != http.StatusServiceUnavailable
	})
	r.want(t, http.StatusCreated, "")
	return r
}

// tryUntilAnswered is untilAnswered for goroutines: it reports faults without ending the test.
func (c *client) tryUntilAnswered(t *testing.T, n *node, key string, ids ...seats.ID) (reply, bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		r, err := c.tryPost(n.url, "/v1/bookings", key, c.site.sale(c, ids...))
		switch {
		case err != nil:
			t.Errorf("book: %v", err)
			return r, false
		case r.status == http.StatusCreated:
			return r, true
		case r.status != http.StatusServiceUnavailable && r.Code != "seat_busy":
			t.Errorf("book: status %d %s", r.status, r.body)
			return r, false
		}
	}
	t.Error("a booking was never answered")
	return reply{}, false
}
