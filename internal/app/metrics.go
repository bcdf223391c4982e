package app

import (
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"seatfence/internal/stream"
	"seatfence/realtime"
)

// collect adds what the process and the connection pool count to a registry.
func collect(registry *prometheus.Registry, pool *pgxpool.Pool) error {
	errs := []error{
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	}
	gauge := func(name, help string, value func(*pgxpool.Stat) float64) {
		errs = append(errs, registry.Register(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "seatfence_pool_" + name, Help: help}, func() float64 { return value(pool.Stat()) })))
	}
	counter := func(name, help string, value func(*pgxpool.Stat) float64) {
		errs = append(errs, registry.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "seatfence_pool_" + name, Help: help}, func() float64 { return value(pool.Stat()) })))
	}
	gauge("max_connections", "Connections to Postgres that this node may open.", func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) })
	gauge("connections", "Open connections to Postgres.", func(s *pgxpool.Stat) float64 { return float64(s.TotalConns()) })
	gauge("acquired_connections", "Connections in use.", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) })
	counter("acquires_total", "Connections taken from the pool.", func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) })
	counter("empty_acquires_total", "Connections that had to be waited for.", func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) })
	counter("empty_acquire_wait_seconds_total", "Time spent waiting for a connection.", func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() })
	counter("cancelled_acquires_total", "Waits for a connection that were given up.", func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) })
	return errors.Join(errs...)
}

// collectStream adds the figures of the sockets.
func collectStream(registry *prometheus.Registry, s *stream.Server) error {
	var errs []error
	gauge := func(name, help string, value func(realtime.Stats) int) {
		errs = append(errs, registry.Register(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "seatfence_stream_" + name, Help: help}, func() float64 { return float64(value(s.Stats())) })))
	}
	counter := func(name, help string, value func(realtime.Stats) int64) {
		errs = append(errs, registry.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "seatfence_stream_" + name, Help: help}, func() float64 { return float64(value(s.Stats())) })))
	}
	gauge("connections", "Open sockets.", func(s realtime.Stats) int { return s.Open })
	gauge("sessions", "Page sessions, with those whose connection has just gone.", func(s realtime.Stats) int { return s.Sessions })
	counter("attached_total", "Times that a page has connected.", func(s realtime.Stats) int64 { return s.Attached })
	counter("resumed_total", "Times that it went on with a session.", func(s realtime.Stats) int64 { return s.Resumed })
	counter("lagged_total", "Times that a client did not take what there was for it.", func(s realtime.Stats) int64 { return s.Lagged })
	return errors.Join(errs...)
}
