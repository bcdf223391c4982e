// Package app puts a server together: it is the only package that knows everybody, and it decides nothing that is not about starting,
// stopping, or who gets which setting.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"seatfence/booking"
	"seatfence/internal/access"
	"seatfence/internal/config"
	"seatfence/internal/httpapi"
	"seatfence/internal/notify"
	"seatfence/internal/session"
	"seatfence/internal/shed"
	"seatfence/internal/staff"
	"seatfence/internal/stream"
	"seatfence/internal/webui"
	"seatfence/lockmgr"
	"seatfence/realtime"
)

const (
	drainTime   = 10 * time.Second // for requests under way
	workersTime = 10 * time.Second // for mails being sent
	readyTime   = time.Second      // for Postgres to answer /readyz
)

// App is one server.
type App struct {
	// Booking, Keys and Staff are the use cases, the API keys and the users it serves, for whoever prepares its data before Start.
	Booking *booking.Service
	Keys    *access.Keys
	Staff   *staff.Staff

	cfg      config.Config
	log      *slog.Logger
	pool     *pgxpool.Pool
	rdb      redis.UniversalClient // nil without seat locks
	live     redis.UniversalClient // of the stream; nil without Redis
	stream   *stream.Server        // nil without Redis
	notifier *notify.Notifier
	public   *listener
	metrics  *listener
	failed   chan error

	endSweep context.CancelFunc // nil until Start
	loops    sync.WaitGroup
	stop     sync.Once
	stopErr  error
}

// New connects to the database, refuses one that it could not serve from, and builds the server. Redis and the mail server may be down.
// Requests carry the values of ctx, not its end. The caller owes a Stop.
func New(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *App, err error) {
	a := &App{cfg: cfg, log: log, failed: make(chan error, 2)}
	defer func() {
		if err != nil {
			a.disconnect()
		}
	}()
	if a.pool, err = connect(ctx, cfg.Database); err != nil {
		return nil, err
	}
	if err := checkServer(ctx, cfg.Database, a.pool); err != nil {
		return nil, err
	}
	a.Booking = booking.New(a.pool, booking.Limits{
		Seats: cfg.MaxSeats, HeldByBuyer: cfg.MaxHeldByBuyer, HeldByKey: cfg.MaxHeldByKey,
		HoldTTL: cfg.HoldTTL, HoldLongest: cfg.HoldLongest, Extensions: cfg.HoldExtensions, KeyRetention: cfg.KeyRetention,
	})
	a.Keys = access.New(a.pool)
	if a.Staff, err = staff.New(a.pool, cfg.PublicURL.URL); err != nil {
		return nil, err
	}
	if a.notifier, err = notify.New(a.pool, a.Booking, a.Staff, cfg.SMTPURL.URL, cfg.MailFrom.Address, log); err != nil {
		return nil, err
	}
	a.Booking.Committed = a.notifier.Committed
	if err := a.buildHTTP(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// buildHTTP sets up what the two listeners serve.
func (a *App) buildHTTP(ctx context.Context) error {
	counters := httpapi.NewMetrics()
	a.Booking.Guarded = counters.Guarded
	if err := collect(counters.Registry, a.pool); err != nil {
		return err
	}
	locks, err := a.seatLocks(counters)
	if err != nil {
		return err
	}
	sessions, err := session.NewSigner(a.cfg.SigningKey, a.cfg.PublicURL.Scheme == "https")
	if err != nil {
		return err
	}
	if err := a.openStream(counters); err != nil {
		return err
	}
	gate := shed.New(locks, a.Booking)
	pages := webui.New(webui.Deps{Booking: a.Booking, Gate: gate, Sessions: sessions, Staff: a.Staff, Result: counters.Result})
	api, err := httpapi.New(httpapi.Deps{
		Booking: a.Booking, Gate: gate, Keys: a.Keys, Sessions: sessions, Staff: a.Staff, Stream: a.stream, State: a.state, Log: a.log, Metrics: counters,
		PublicURL: a.cfg.PublicURL.URL, InFlight: a.cfg.InFlight, RefusePage: pages.Refuse,
	})
	if err != nil {
		return err
	}
	pages.Register(api)
	base := context.WithoutCancel(ctx)
	a.public = &listener{name: "LISTEN", addr: a.cfg.Listen, server: httpapi.NewServer(base, api, a.log)}
	scrape := http.NewServeMux()
	scrape.Handle("GET /metrics", counters.Handler())
	a.metrics = &listener{name: "METRICS_LISTEN", addr: a.cfg.MetricsListen, server: httpapi.NewServer(base, scrape, a.log)}
	return nil
}

// seatLocks returns nil, which lets everybody through, when they are switched off.
func (a *App) seatLocks(counters *httpapi.Metrics) (*lockmgr.Seats, error) {
	if !a.cfg.SeatLocks {
		return nil, nil
	}
	var err error
	if a.rdb, err = lockmgr.Open(a.cfg.RedisURL.URL.String()); err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return lockmgr.NewSeats(a.rdb, a.cfg.SeatLockTTL, counters.Lock), nil
}

// openStream starts the stream, if there is a Redis for it.
func (a *App) openStream(counters *httpapi.Metrics) (err error) {
	if a.cfg.RedisURL.URL == nil {
		return nil
	}
	if a.live, err = realtime.OpenRedis(a.cfg.RedisURL.URL.String()); err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	own := url.URL{Scheme: a.cfg.PublicURL.Scheme, Host: a.cfg.PublicURL.Host}
	a.stream, err = stream.New(stream.Deps{
		Booking: a.Booking, Redis: a.live, Node: uuid.New(), Key: a.cfg.SigningKey, Origins: append([]string{own.String()}, a.cfg.StreamOrigins...),
		HoldGrace: a.cfg.HoldGrace, Log: a.log,
	})
	if err != nil {
		return err
	}
	return collectStream(counters.Registry, a.stream)
}

// Start listens and runs the workers, whose contexts carry the values of ctx, not its end. It returns when the server takes requests.
func (a *App) Start(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if err := a.public.open(); err != nil {
		return err
	}
	if err := a.metrics.open(); err != nil {
		return err
	}
	if err := a.notifier.Start(ctx); err != nil {
		return err
	}
	if a.stream != nil {
		a.stream.Start()
	}
	ctx, a.endSweep = context.WithCancel(ctx)
	a.loops.Go(func() { a.sweep(ctx) })
	for _, l := range []*listener{a.public, a.metrics} {
		a.loops.Go(func() { l.serve(a.failed) })
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "serving", slog.String("addr", a.Addr()), slog.String("metrics", a.MetricsAddr()), slog.Any("settings", a.cfg))
	return nil
}

// Addr is the host and port of the API and the pages, from Start on.
func (a *App) Addr() string { return a.public.addr }

// MetricsAddr is the host and port of the metrics, from Start on.
func (a *App) MetricsAddr() string { return a.metrics.addr }

// Failed delivers the error of a listener that ended by itself.
func (a *App) Failed() <-chan error { return a.failed }

// Stop ends the server in the order in which its parts need each other: no new requests, those under way to their end or for ten
// seconds, workers, connections. The end of ctx ends the waiting. It may be called twice, and after a Start that failed.
func (a *App) Stop(ctx context.Context) error {
	a.stop.Do(func() { a.stopErr = a.shutDown(ctx) })
	return a.stopErr
}

func (a *App) shutDown(ctx context.Context) error {
	if a.stream != nil {
		a.stream.Drain(ctx)
	}
	err := a.public.close(ctx, drainTime)
	rest := make(chan error, 1)
	go func() { rest <- a.stopWorkers(ctx) }()
	select {
	case workersErr := <-rest:
		return errors.Join(err, workersErr)
	case <-ctx.Done():
		// Something waits for a database that does not answer. The process ends, and Postgres rolls back what it had begun.
		return errors.Join(err, fmt.Errorf("stop workers: %w", ctx.Err()))
	}
}

func (a *App) stopWorkers(ctx context.Context) error {
	if a.endSweep != nil {
		a.endSweep()
	}
	if a.stream != nil {
		a.stream.Stop(ctx)
	}
	workers, done := context.WithTimeout(ctx, workersTime)
	defer done()
	err := errors.Join(a.notifier.Stop(workers), a.metrics.close(ctx, time.Second))
	a.loops.Wait()
	a.disconnect()
	return err
}

func (a *App) disconnect() {
	if a.rdb != nil {
		_ = a.rdb.Close() // it has nothing that could be lost
	}
	if a.stream != nil {
		a.stream.Stop(context.Background()) // again, or of a server that was never started
	}
	if a.live != nil {
		_ = a.live.Close()
	}
	if a.pool != nil {
		a.pool.Close()
	}
}

// state is what /readyz tells. A server without Redis is ready: it sells. Both are asked at once, so that neither takes the other's time.
func (a *App) state(ctx context.Context) httpapi.State {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	state := httpapi.State{Redis: "off"}
	var asked sync.WaitGroup
	asked.Go(func() { state.Postgres = a.pool.Ping(ctx) })
	if a.rdb != nil {
		asked.Go(func() {
			state.Redis = "ok"
			if a.rdb.Ping(ctx).Err() != nil {
				state.Redis = "degraded"
			}
		})
	}
	asked.Wait()
	return state
}

// listener is one address and its server.
type listener struct {
	name   string // of its setting
	addr   string // as asked for, then as given
	server *http.Server
	socket net.Listener // nil until open
}

func (l *listener) open() (err error) {
	if l.socket, err = net.Listen("tcp", l.addr); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	l.addr = l.socket.Addr().String()
	return nil
}

func (l *listener) serve(failed chan<- error) {
	if err := l.server.Serve(l.socket); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("%s: %w", l.name, err)
	}
}

// close lets requests end for as long as patience, then cuts their connections.
func (l *listener) close(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("%s: requests were cut: %w", l.name, errors.Join(err, l.server.Close()))
	}
	if l.socket != nil {
		_ = l.socket.Close() // the server has done it, unless it never served
	}
	return err
}
