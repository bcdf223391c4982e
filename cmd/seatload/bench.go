package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"seatfence/internal/mailsink"
	"seatfence/seats"
)

//go:embed sale.sql
var saleScript []byte

// The house of each measurement is new, so that none starts half sold.
const (
	benchRows     = 120
	benchRowSeats = 500
	benchSeats    = benchRows * benchRowSeats
	benchConns    = 16 // to Postgres, of pgbench and of each server
	benchBuyers   = 4000
)

// meter takes the measurements on two servers that differ in SEAT_LOCKS alone.
type meter struct {
	*bed
	seconds, workers int
	locked, unlocked *server
	buyers           []string
	used             spent // by the latest measurement, without what prepared it
}

// figure is one measurement: its name, its rate in each round, and how many operations took how much processor time in all.
type figure struct {
	name  string
	rates []float64
	done  float64
	spent spent
}

func (f figure) median() float64 { return median(f.rates) }

func median(rates []float64) float64 {
	rates = slices.Sorted(slices.Values(rates))
	return rates[len(rates)/2]
}

func bench(ctx context.Context, c benchCommand, out io.Writer) error {
	// The mail server accepts and says nothing: mails wait in their queue, and the sale alone is measured.
	mails, err := mailsink.Start("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer mails.Close()
	mails.Fail(mailsink.Hang)
	b, err := newBed(ctx, c.Dir, "", mails.SMTPURL())
	if err != nil {
		return err
	}
	defer b.close()
	m := &meter{bed: b, seconds: c.Seconds, workers: c.Workers}
	conns := "DATABASE_MAX_CONNS=" + strconv.Itoa(benchConns)
	if m.locked, err = b.serve(ctx, conns, "SEAT_LOCKS=on"); err != nil {
		return err
	}
	if m.unlocked, err = b.serve(ctx, conns, "SEAT_LOCKS=off"); err != nil {
		return err
	}
	for range benchBuyers {
		token, err := m.locked.session(ctx)
		if err != nil {
			return err
		}
		m.buyers = append(m.buyers, token)
	}
	figures, err := m.rounds(ctx, c.Rounds, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d cores, %s, %d clients, %d s each, median of %d rounds\n", runtime.NumCPU(), runtime.GOARCH, c.Workers, c.Seconds, c.Rounds)
	for _, f := range figures {
		fmt.Fprintf(out, "%-42s %8.0f/s   %5.2f of pgbench   each: %s\n", f.name, f.median(), f.median()/figures[0].median(), f.spent.each(f.done))
	}
	return m.fillings(ctx, c.Rounds, out)
}

func (m *meter) rounds(ctx context.Context, n int, out io.Writer) ([]figure, error) {
	measure := []struct {
		name string
		rate func() (float64, error)
	}{
		{"pgbench, one-statement sale", func() (float64, error) { return m.pgbench(ctx) }},
		{"HTTP bookings, with the lock", func() (float64, error) { return m.bookings(ctx, m.locked) }},
		{"HTTP bookings, without it", func() (float64, error) { return m.bookings(ctx, m.unlocked) }},
		{"HTTP holds, with the lock", func() (float64, error) { return m.holds(ctx, m.locked) }},
		{"HTTP holds, without it", func() (float64, error) { return m.holds(ctx, m.unlocked) }},
		{"HTTP refusals of one seat, with the lock", func() (float64, error) { return m.crowd(ctx, m.locked) }},
		{"HTTP refusals of one seat, without it", func() (float64, error) { return m.crowd(ctx, m.unlocked) }},
	}
	figures := make([]figure, len(measure))
	for round := range n {
		for i, of := range measure {
			rate, err := of.rate()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of.name, err)
			}
			f := &figures[i]
			f.name, f.rates = of.name, append(f.rates, rate)
			f.done += rate * float64(m.seconds)
			f.spent = f.spent.plus(m.used)
			fmt.Fprintf(out, "round %d  %-42s %8.0f/s\n", round+1, of.name, rate)
		}
	}
	return figures, nil
}

func (m *meter) event(ctx context.Context) (seats.EventID, error) {
	return m.house(ctx, m.locked, rowLabels(benchRows), benchRowSeats, 0)
}

func rowLabels(n int) []string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = strconv.Itoa(i + 1)
	}
	return labels
}

// load runs the clients for the measurement's time, each on its own connection, and returns how many answers of the wanted status came
// in a second. Any other status ends it.
func (m *meter) load(parent context.Context, s *server, want int, request func(n int64) (path, token string, body []byte)) (float64, error) {
	ctx, cancel := context.WithTimeout(parent, time.Duration(m.seconds)*time.Second)
	defer cancel()
	var next, done atomic.Int64
	before := m.cpu()
	errs := make(chan error, m.workers)
	var workers sync.WaitGroup
	start := time.Now()
	for range m.workers {
		workers.Go(func() {
			conn, err := dial(s.addr)
			if err != nil {
				errs <- err
				return
			}
			defer conn.close()
			for ctx.Err() == nil {
				n := next.Add(1)
				path, token, body := request(n)
				status, answer, err := conn.post(path, token, fmt.Sprintf("%d-%d", start.UnixNano(), n), body)
				if err != nil || status != want {
					errs <- fmt.Errorf("status %d %s %w", status, answer, err)
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	if err := parent.Err(); err != nil {
		return 0, err
	}
	took := time.Since(start)
	m.used = m.cpu().since(before)
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(done.Load()) / took.Seconds(), nil
	}
}

func saleOf(event seats.EventID, seat int64) []byte {
	return fmt.Appendf(nil, `{"event":%q,"seats":[%d],"buyer":{"name":"Buyer","email":"buyer@example.com"}}`, event.String(), seat)
}

func (m *meter) bookings(ctx context.Context, s *server) (float64, error) {
	event, err := m.event(ctx)
	if err != nil {
		return 0, err
	}
	return m.load(ctx, s, http.StatusCreated, func(n int64) (string, string, []byte) { return "/v1/bookings", m.key, saleOf(event, n) })
}

func (m *meter) holds(ctx context.Context, s *server) (float64, error) {
	event, err := m.event(ctx)
	if err != nil {
		return 0, err
	}
	path := "/v1/events/" + event.String() + "/holds"
	return m.load(ctx, s, http.StatusCreated, func(n int64) (string, string, []byte) {
		return path, m.buyers[n%benchBuyers], fmt.Appendf(nil, `{"seats":[%d]}`, n)
	})
}

// crowd sends everybody to one seat that is sold.
func (m *meter) crowd(ctx context.Context, s *server) (float64, error) {
	event, err := m.event(ctx)
	if err != nil {
		return 0, err
	}
	var made struct{ ID string }
	if err := s.make(ctx, "/v1/bookings", m.key, fmt.Sprintf("first-%d", event), saleOf(event, 1), &made); err != nil {
		return 0, err
	}
	path, hold := "/v1/events/"+event.String()+"/holds", []byte(`{"seats":[1]}`)
	return m.load(ctx, s, http.StatusConflict, func(n int64) (string, string, []byte) { return path, m.buyers[n%benchBuyers], hold })
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

func (m *meter) pgbench(ctx context.Context) (float64, error) {
	event, err := m.event(ctx)
	if err != nil {
		return 0, err
	}
	script := filepath.Join(m.dir, "sale.sql")
	if err := os.WriteFile(script, saleScript, 0o644); err != nil {
		return 0, err
	}
	cmd := m.stack.PostgresTool(ctx, "pgbench", "-n", "-M", "prepared", "-f", script, "-c", strconv.Itoa(benchConns), "-j", "1",
		"-T", strconv.Itoa(m.seconds), "-D", "n=0", "-D", fmt.Sprintf("event=%d", int64(event)), "-D", fmt.Sprintf("share=%d", benchSeats/benchConns), m.stack.PostgresURL)
	before := m.cpu()
	text, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, text)
	}
	m.used = m.cpu().since(before)
	match := tps.FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("pgbench said %s", text)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}
