package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"seatfence/internal/app"
	"seatfence/internal/config"
)

// stopTime is how long a stop may take in all, whatever does not answer.
const stopTime = 14 * time.Second

type serveCommand struct{}

// Run serves until the program is told to stop.
func (serveCommand) Run(s *session) error {
	cfg, err := config.Load(s.environ)
	if err != nil {
		return fmt.Errorf("these settings cannot work:\n%w", err)
	}
	server, err := newServer(s, cfg, s.stderr)
	if err != nil {
		return err
	}
	if err := server.Start(s.ctx); err != nil {
		return errors.Join(err, stop(server))
	}
	return wait(s.ctx, server)
}

func newServer(s *session, cfg config.Config, logs io.Writer) (*app.App, error) {
	return app.New(s.ctx, cfg, slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: cfg.LogLevel})))
}

// wait stops the server when ctx ends or one of its listeners fails.
func wait(ctx context.Context, server *app.App) error {
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-server.Failed():
	}
	return errors.Join(failure, stop(server))
}

func stop(server *app.App) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return server.Stop(ctx)
}
