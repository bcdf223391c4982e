// Package config reads the settings of a server from its environment, once, and says everything that is wrong with them at once. It
// knows no other package: internal/app gives each its own. docs/config.md describes every setting.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Config is all settings of a server. Fields without a default are needed.
type Config struct {
	Database

	SeatLocks   Switch        `env:"SEAT_LOCKS" envDefault:"on"`
	SeatLockTTL time.Duration `env:"SEAT_LOCK_TTL" envDefault:"10s"`
	RedisURL    URL           `env:"REDIS_URL"` // not needed without seat locks

	Listen        string `env:"LISTEN" envDefault:"127.0.0.1:8080"`
	MetricsListen string `env:"METRICS_LISTEN" envDefault:"127.0.0.1:9090"`
	PublicURL     URL    `env:"PUBLIC_URL" envDefault:"http://127.0.0.1:8080"`
	InFlight      int    `env:"IN_FLIGHT" envDefault:"256"`
	SigningKey    Key    `env:"SIGNING_KEY"`

	StreamOrigins []string `env:"STREAM_ORIGINS" envSeparator:","` // of other sites, whose pages may open the stream

	SMTPURL  URL     `env:"SMTP_URL"`
	MailFrom Address `env:"MAIL_FROM" envDefault:"Seatfence <tickets@localhost>"`

	HoldTTL        time.Duration `env:"HOLD_TTL" envDefault:"10m"`
	HoldLongest    time.Duration `env:"HOLD_LONGEST" envDefault:"30m"`
	HoldExtensions int           `env:"HOLD_EXTENSIONS" envDefault:"3"`
	HoldGrace      time.Duration `env:"HOLD_GRACE" envDefault:"60s"`
	MaxSeats       int           `env:"MAX_SEATS" envDefault:"20"`
	MaxHeldByBuyer int           `env:"MAX_HELD_BY_BUYER" envDefault:"20"`
	MaxHeldByKey   int           `env:"MAX_HELD_BY_KEY" envDefault:"1000"`
	KeyRetention   time.Duration `env:"KEY_RETENTION" envDefault:"24h"`

	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
}

// Database is the settings that reach the database: all that a command needs which is no server.
type Database struct {
	DatabaseURL       URL           `env:"DATABASE_URL"`
	DatabaseMaxConns  int32         `env:"DATABASE_MAX_CONNS" envDefault:"16"`
	IdleInTransaction time.Duration `env:"IDLE_IN_TRANSACTION" envDefault:"3s"`
	AllowUnsafeFsync  bool          `env:"ALLOW_UNSAFE_FSYNC" envDefault:"false"`
}

// Bounds of the settings. All are inclusive.
const (
	minConns     = 4 // the sweeper, the relay, a mail and a request
	maxConns     = 1000
	maxIdle      = time.Minute
	minLockTTL   = 50 * time.Millisecond
	maxLockTTL   = time.Minute
	maxInFlight  = 100_000
	minHold      = time.Second
	maxHold      = 24 * time.Hour
	minGrace     = 10 * time.Second // a reload, and a network that is away for a moment
	maxExtension = 100
	maxSeats     = 200
	maxHeld      = 100_000
	minRetention = time.Hour // a client's retries come within minutes
	maxRetention = 30 * 24 * time.Hour
	maxPort      = 65535
)

// Load reads the settings from environ, the names and values of an environment. The error joins a reason for each setting that is
// missing or wrong, beginning with its name; no reason quotes a secret.
func Load(environ map[string]string) (Config, error) {
	var c Config
	r := read(&c, environ)
	c.Database.check(r)
	c.check(r)
	return c, errors.Join(r.errs...)
}

// LoadDatabase is Load for the settings of the database alone.
func LoadDatabase(environ map[string]string) (Database, error) {
	var d Database
	r := read(&d, environ)
	d.check(r)
	return d, errors.Join(r.errs...)
}

// reasons are what is wrong, one for each setting.
type reasons struct {
	errs  []error
	named map[string]bool
}

func (r *reasons) add(name string, err error) {
	if err != nil && !r.named[name] {
		r.named[name] = true
		r.errs = append(r.errs, fmt.Errorf("%s: %w", name, err))
	}
}

// read fills in a struct of settings. What cannot be read is a reason under its setting's name.
func read(settings any, environ map[string]string) *reasons {
	r := &reasons{named: map[string]bool{}}
	err := env.ParseWithOptions(settings, env.Options{Environment: environ})
	if all, ok := errors.AsType[env.AggregateError](err); ok {
		for _, err := range all.Errors {
			parse, _ := errors.AsType[env.ParseError](err) // the only one that fields without options can have
			field, _ := reflect.TypeFor[Config]().FieldByName(parse.Name)
			r.add(field.Tag.Get("env"), parse.Err)
		}
	}
	return r
}

func (d Database) check(r *reasons) {
	r.add("DATABASE_URL", d.DatabaseURL.check("postgres", "postgresql"))
	r.add("DATABASE_MAX_CONNS", between(d.DatabaseMaxConns, minConns, maxConns))
	r.add("IDLE_IN_TRANSACTION", between(d.IdleInTransaction, time.Millisecond, maxIdle))
}

func (c Config) check(r *reasons) {
	if c.SeatLocks {
		r.add("REDIS_URL", c.RedisURL.check("redis", "rediss"))
	}
	r.add("SEAT_LOCK_TTL", between(c.SeatLockTTL, minLockTTL, maxLockTTL))
	r.add("LISTEN", address(c.Listen))
	r.add("METRICS_LISTEN", address(c.MetricsListen))
	r.add("PUBLIC_URL", c.PublicURL.check("http", "https"))
	r.add("IN_FLIGHT", between(c.InFlight, 1, maxInFlight))
	r.add("SIGNING_KEY", c.SigningKey.check())
	r.add("SMTP_URL", c.SMTPURL.check("smtp", "smtps"))
	r.add("HOLD_TTL", between(c.HoldTTL, minHold, maxHold))
	r.add("HOLD_LONGEST", between(c.HoldLongest, c.HoldTTL, maxHold))
	r.add("HOLD_EXTENSIONS", between(c.HoldExtensions, 0, maxExtension))
	r.add("HOLD_GRACE", between(c.HoldGrace, minGrace, maxHold))
	r.add("STREAM_ORIGINS", origins(c.StreamOrigins))
	r.add("MAX_SEATS", between(c.MaxSeats, 1, maxSeats))
	r.add("MAX_HELD_BY_BUYER", between(c.MaxHeldByBuyer, 1, maxHeld))
	r.add("MAX_HELD_BY_KEY", between(c.MaxHeldByKey, 1, maxHeld))
	r.add("KEY_RETENTION", between(c.KeyRetention, minRetention, maxRetention))
}

func between[T int | int32 | time.Duration](value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%v is not between %v and %v", value, least, most)
	}
	return nil
}

// origins checks that each is a scheme and a host, as browsers write them.
func origins(list []string) error {
	for _, text := range list {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || text != u.Scheme+"://"+strings.ToLower(u.Host) {
			return fmt.Errorf("%q is not an origin like https://shop.example", text)
		}
	}
	return nil
}

func address(value string) error {
	_, port, err := net.SplitHostPort(value)
	if n, parseErr := strconv.Atoi(port); err != nil || parseErr != nil || n < 0 || n > maxPort {
		return fmt.Errorf("%q is not host:port", value)
	}
	return nil
}

// LogValue lists the settings by name, without secrets.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if name := field.Tag.Get("env"); name != "" {
			attrs = append(attrs, slog.String(name, fmt.Sprint(reflect.ValueOf(c).FieldByIndex(field.Index))))
		}
	}
	return slog.GroupValue(attrs...)
}
