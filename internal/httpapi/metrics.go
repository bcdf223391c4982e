package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"seatfence/booking"
)

// Metrics is what a node counts. Its methods may be called by many goroutines at once and do not block.
type Metrics struct {
	// Registry takes further collectors, such as the statistics of the connection pool.
	Registry *prometheus.Registry

	requests *prometheus.HistogramVec
	inFlight prometheus.Gauge
	results  *prometheus.CounterVec
	zeroRows *prometheus.CounterVec
	guarded  prometheus.Counter
	locks    *prometheus.HistogramVec
}

// NewMetrics returns metrics on a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "seatfence_http_request_seconds", Help: "Time to answer, by route and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"route", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "seatfence_http_requests_in_flight", Help: "Requests being worked on.",
		}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seatfence_results_total", Help: "Outcomes of writes: ok, replayed, or the code of the refusal.",
		}, []string{"operation", "code"}),
		zeroRows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seatfence_zero_row_writes_total", Help: "Writes that the database refused because somebody else has the seat.",
		}, []string{"code"}),
		guarded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "seatfence_guarded_writes_total", Help: "Writes that only a unique index refused. Any is a bug.",
		}),
		locks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "seatfence_seat_lock_seconds", Help: "Time on Redis, by outcome.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1},
		}, []string{"outcome"}),
	}
	m.Registry.MustRegister(m.requests, m.inFlight, m.results, m.zeroRows, m.guarded, m.locks)
	return m
}

// Handler serves the registry, on a listener that is not the public one.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{})
}

// Lock counts one round trip to the seat locks; it is what lockmgr.NewSeats reports to.
func (m *Metrics) Lock(outcome string, took time.Duration) {
	m.locks.WithLabelValues(outcome).Observe(took.Seconds())
}

// Guarded counts a write that only a unique index refused; it is for booking.Service.Guarded.
func (m *Metrics) Guarded() { m.guarded.Inc() }

// Result counts the outcome of a use case that writes, under the operation's name.
func (m *Metrics) Result(operation string, replayed bool, err error) {
	code := "ok"
	switch {
	case err != nil:
		code = problemOf(err).Code
	case replayed:
		code = "replayed"
	}
	m.results.WithLabelValues(operation, code).Inc()
	if e, ok := errors.AsType[*booking.SeatsError](err); ok && e.Code != booking.CodeSeatBusy {
		m.zeroRows.WithLabelValues(e.Code).Inc()
	}
}

func (m *Metrics) observe(route string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}
