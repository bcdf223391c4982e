package lockmgr

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// stepTimeout limits each single step of a Redis call: dial, read, write, and
// the wait for a pooled connection. What a request pays in all is limited
// below it, by acquireBudget and requestBudget.
const stepTimeout = 50 * time.Millisecond

// clusterReload is how often a client of a cluster looks who has which slot. By
// itself it would dial a dead master for a minute.
const clusterReload = time.Second

// Open returns a client for the Redis at address, set up to fail fast and never
// to retry. One that names further servers ("?addr=host:port") is a cluster.
// Open does not connect, so a process starts with Redis down; the error is only
// ever about address. Pool settings may be given in address ("?pool_size=40");
// time limits and retries given there are overridden.
func Open(address string) (redis.UniversalClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	if u.Query().Has("addr") {
		return openCluster(address)
	}
	opt, err := redis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	// A retried script whose first reply was lost would meet its own lock. And
	// go-redis defaults (5 s, three retries, context deadlines ignored) make a
	// stalled Redis cost ten seconds.
	opt.MaxRetries = -1
	opt.DialTimeout = stepTimeout
	opt.ReadTimeout = stepTimeout
	opt.WriteTimeout = stepTimeout
	opt.PoolTimeout = stepTimeout
	opt.ContextTimeoutEnabled = true
	// Each of these is one more round trip inside the first request's budget.
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.Dialer = dialOrDead(redis.NewDialer(opt))
	return redis.NewClient(opt), nil
}

// openCluster is Open for a cluster. One redirection is followed, to where a
// slot has moved.
func openCluster(address string) (redis.UniversalClient, error) {
	opt, err := redis.ParseClusterURL(address)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	opt.MaxRedirects = 1
	opt.MaxRetries = -1
	opt.DialTimeout = stepTimeout
	opt.ReadTimeout = stepTimeout
	opt.WriteTimeout = stepTimeout
	opt.PoolTimeout = stepTimeout
	opt.ContextTimeoutEnabled = true
	opt.ClusterStateReloadInterval = clusterReload
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opt.NewClient = func(server *redis.Options) *redis.Client {
		server.Dialer = dialOrDead(redis.NewDialer(server))
		return redis.NewClient(server)
	}
	return redis.NewClusterClient(opt), nil
}

// dialOrDead makes a failed dial look like a connection that is already closed.
// After PoolSize failed dials go-redis stops dialing and looks again on a one
// second timer of its own; added to our probe's second, Redis would be back in
// use after more than two. This way the breaker alone decides when to look.
func dialOrDead(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if conn, err := dial(ctx, network, addr); err == nil {
			return conn, nil
		}
		dead, peer := net.Pipe()
		_ = peer.Close()
		return dead, nil
	}
}
