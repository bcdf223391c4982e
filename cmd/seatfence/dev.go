package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"seatfence/booking"
	"seatfence/internal/access"
	"seatfence/internal/app"
	"seatfence/internal/config"
	"seatfence/internal/demo"
	"seatfence/internal/devstack"
	"seatfence/internal/staff"
)

const (
	loopback  = "127.0.0.1"
	pagesPort = 8080
	mailPort  = 8025
	portTries = 20 // from the usual port on
)

type devCommand struct {
	JSON   bool   `name:"json" help:"Print one line of JSON when ready, and nothing else."`
	Data   string `default:".data" type:"path" placeholder:"DIR" help:"Where everything is kept (default: .data)."`
	Listen string `placeholder:"HOST:PORT" help:"Address of the pages and the API (default: 127.0.0.1:8080, or the next free port)."`
}

// Run brings what the environment does not name, starts the server and says where everything is. At the end it stops what it started
// and keeps the data.
func (c devCommand) Run(s *session) (err error) {
	if err := os.MkdirAll(c.Data, 0o755); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	stack, err := c.services(s)
	if err != nil {
		return err
	}
	folders := c.Data
	if stack != nil {
		if stack.Dir != c.Data { // the account that runs Postgres could not reach it
			folders += " and " + stack.Dir
		}
		defer func() { err = errors.Join(err, stack.Stop()) }()
	}
	mail, err := startMail(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mail.close()) }()
	if err := c.complete(s.environ); err != nil {
		return err
	}
	cfg, err := config.Load(s.environ)
	if err != nil {
		return fmt.Errorf("these settings cannot work:\n%w", err)
	}
	return c.serve(s, cfg, mail.url, folders)
}

func (c devCommand) serve(s *session, cfg config.Config, mailURL, folders string) error {
	if err := app.Migrate(s.ctx, cfg.Database); err != nil {
		return err
	}
	logs, err := os.Create(filepath.Join(c.Data, "seatfence.log"))
	if err != nil {
		return err
	}
	defer logs.Close()
	server, err := newServer(s, cfg, logs)
	if err != nil {
		return err
	}
	o := opening{data: c.Data, folders: folders, database: cfg.DatabaseURL.URL.String(), mailURL: mailURL}
	if err := c.open(s.ctx, server, &o); err != nil {
		return errors.Join(err, stop(server))
	}
	if err := o.print(s.stdout, c.JSON); err != nil {
		return errors.Join(err, stop(server))
	}
	return wait(s.ctx, server)
}

// services starts Postgres and Redis where the environment names none, and names them there.
func (c devCommand) services(s *session) (*devstack.Stack, error) {
	options := devstack.Options{
		Dir: c.Data, Log: s.stderr,
		Postgres: s.environ["DATABASE_URL"] == "", Redis: s.environ["REDIS_URL"] == "" && s.environ["SEAT_LOCKS"] != "off",
	}
	if !options.Postgres && !options.Redis {
		return nil, nil
	}
	stack, err := devstack.Start(s.ctx, options)
	if err != nil {
		return nil, err
	}
	if options.Postgres {
		s.environ["DATABASE_URL"] = stack.PostgresURL
	}
	if options.Redis {
		s.environ["REDIS_URL"] = stack.RedisURL
	}
	return stack, nil
}

// complete fills in the settings that have no default of use on a workstation.
func (c devCommand) complete(environ map[string]string) (err error) {
	if environ["SIGNING_KEY"] == "" {
		if environ["SIGNING_KEY"], err = keptKey(c.Data); err != nil {
			return err
		}
	}
	listen := cmp.Or(c.Listen, environ["LISTEN"])
	if listen == "" {
		free, err := listenFrom(pagesPort)
		if err != nil {
			return err
		}
		listen = free.Addr().String()
		_ = free.Close() // the server opens its own, by its address
	}
	environ["LISTEN"] = listen
	environ["METRICS_LISTEN"] = cmp.Or(environ["METRICS_LISTEN"], loopback+":0")
	environ["PUBLIC_URL"] = cmp.Or(environ["PUBLIC_URL"], "http://"+listen)
	return nil
}

// open puts the demo on sale and starts the server.
func (c devCommand) open(ctx context.Context, server *app.App, o *opening) error {
	token, organizer, err := demoKey(ctx, c.Data, server.Keys)
	if err != nil {
		return err
	}
	if o.events, err = demo.Load(ctx, server.Booking, organizer); err != nil {
		return err
	}
	if o.seat, err = freeSeat(ctx, server.Booking, o.events[0].ID); err != nil {
		return err
	}
	if o.ownerPassword, err = demoOwner(ctx, c.Data, server.Staff, organizer); err != nil {
		return err
	}
	if err := server.Start(ctx); err != nil {
		return err
	}
	o.apiKey, o.url, o.metricsURL = token, "http://"+server.Addr(), "http://"+server.MetricsAddr()
	return nil
}

// demoKey is the API key kept in the data folder, if the database knows it, or a new one.
func demoKey(ctx context.Context, dir string, keys *access.Keys) (token string, organizer int64, err error) {
	path := filepath.Join(dir, "api_key")
	kept, err := os.ReadFile(path)
	if err == nil {
		caller, err := keys.Lookup(ctx, string(kept))
		if err == nil && caller.Kind == booking.Organizer {
			return string(kept), caller.Organizer, nil
		}
		if err != nil && !errors.Is(err, access.ErrUnknownKey) {
			return "", 0, err
		}
	}
	token, caller, err := keys.Create(ctx, demo.Organizer, "demo", access.ScopeOrganizer)
	if err != nil {
		return "", 0, err
	}
	return token, caller.Organizer, os.WriteFile(path, []byte(token), 0o600)
}

const ownerEmail = "owner@localhost"

// demoOwner is the password of a user who may everything, kept in the data folder and given to them in a database that does not know them.
func demoOwner(ctx context.Context, dir string, people *staff.Staff, organizer int64) (string, error) {
	path := filepath.Join(dir, "owner_password")
	kept, err := os.ReadFile(path)
	password := string(kept)
	if err != nil {
		password = rand.Text()
	}
	owner := staff.NewUser{Email: ownerEmail, Name: "Demo owner", Role: staff.Owner, EveryEvent: true}
	user, _, err := people.Create(ctx, organizer, owner, true)
	if err != nil {
		return "", fmt.Errorf("demo owner: %w", err)
	}
	if user.Active && len(kept) > 0 {
		return password, nil
	}
	letter, err := people.Letter(ctx, user.ID, staff.Reset)
	if err != nil {
		return "", err
	}
	_, token, _ := strings.Cut(letter.Link, "token=")
	if _, _, err := people.SetPassword(ctx, token, password); err != nil {
		return "", fmt.Errorf("demo owner: %w", err)
	}
	return password, os.WriteFile(path, []byte(password), 0o600)
}

// listenFrom listens on the first free loopback port from the given one on.
func listenFrom(port int) (net.Listener, error) {
	for p := port; p < port+portTries; p++ {
		if l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(p))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no free port from %d to %d", port, port+portTries-1)
}
