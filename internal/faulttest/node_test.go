package faulttest

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"seatfence/internal/app"
	"seatfence/internal/config"
)

// node is one server of a site, in this process.
type node struct {
	url      string
	app      *app.App
	metrics  string
	database *proxy // set by throughProxy
	armed
}

type nodeOption func(*testing.T, *site, *node, map[string]string)

// throughProxy puts a proxy between the node and Postgres.
func throughProxy(t *testing.T, s *site, n *node, env map[string]string) {
	u := mustURL(t, s.databaseURL)
	n.database = newProxy(t, u.Host)
	u.Host = n.database.addr
	env["DATABASE_URL"] = u.String()
}

func idleInTransaction(d time.Duration) nodeOption {
	return func(_ *testing.T, _ *site, _ *node, env map[string]string) { env["IDLE_IN_TRANSACTION"] = d.String() }
}

func (s *site) env() map[string]string {
	return map[string]string{
		"DATABASE_URL": s.databaseURL, "REDIS_URL": s.redis.RedisURL, "SMTP_URL": s.mails.SMTPURL(), "SIGNING_KEY": base64.StdEncoding.EncodeToString(signingKey),
		"LISTEN": "127.0.0.1:0", "METRICS_LISTEN": "127.0.0.1:0", "SEAT_LOCK_TTL": lockTTL.String(), "ALLOW_UNSAFE_FSYNC": "true",
	}
}

// node starts a server that ends with the test.
func (s *site) node(t *testing.T, options ...nodeOption) *node {
	t.Helper()
	n, env := &node{}, s.env()
	for _, o := range options {
		o(t, s, n, env)
	}
	cfg, err := config.Load(env)
	if err != nil {
		t.Fatal(err)
	}
	ctx := n.arm(t.Context())
	a, err := app.New(ctx, cfg, logTo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Logf("stop node: %v", err)
		}
	})
	if err := a.Start(ctx); err != nil {
		t.Fatal(err)
	}
	n.app = a
	n.url, n.metrics = "http://"+a.Addr(), "http://"+a.MetricsAddr()+"/metrics"
	return n
}

// lockOutcome reads from the node's metrics how often a request for seat locks has ended so.
func (n *node) lockOutcome(t *testing.T, outcome string) int {
	t.Helper()
	res, err := http.Get(n.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(fmt.Sprintf(`(?m)^seatfence_seat_lock_seconds_count\{outcome=%q\} ([0-9]+)$`, outcome)).FindSubmatch(text)
	if match == nil {
		return 0
	}
	count, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return count
}
