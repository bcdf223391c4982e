package app

import (
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
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
