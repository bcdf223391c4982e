package realtime

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	redisStep   = time.Second // of a dial, a read or a write: editors can wait, and a lost lock is worse
	redisReload = time.Second // between looks at who has which slot; by itself the client dials a dead master for a minute
)

// quiet keeps go-redis from writing lines of its own to standard error: whoever asked is told.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

var silence = sync.OnceFunc(func() { redis.SetLogger(quiet{}) })

// OpenRedis returns a patient client for the Redis at address, which is a cluster if it names further servers ("?addr=host:port"). It does not
// connect; the error is only ever about address.
func OpenRedis(address string) (redis.UniversalClient, error) {
	silence()
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	if u.Query().Has("addr") {
		opt, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, fmt.Errorf("redis url: %w", err)
		}
		opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = redisStep, redisStep, redisStep, redisStep
		opt.ContextTimeoutEnabled, opt.ClusterStateReloadInterval, opt.DialerRetries = true, redisReload, 1
		opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return redis.NewClusterClient(opt), nil
	}
	opt, err := redis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = redisStep, redisStep, redisStep, redisStep
	opt.ContextTimeoutEnabled, opt.DialerRetries = true, 1
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(opt), nil
}
