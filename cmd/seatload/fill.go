package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"seatfence/seats"
)

// What may slow down as it fills is sold to the last place, not for a time.
const (
	fillRows, fillRowSeats   = 240, 50
	fillPlaces               = fillRows * fillRowSeats // of the floor, and as many numbered seats
	fillBuyers               = 64
	groupRows, groupRowSeats = 200, 40
	groupBuyers              = 160
	smallest, largest        = 2, 6 // of the groups
)

// fillings compares a floor with as many numbered seats, and has groups fill a house with the best that is left.
func (m *meter) fillings(ctx context.Context, rounds int, out io.Writer) error {
	fmt.Fprintf(out, "\n%d places to %d buyers, one at a time; the rate of each quarter; %d buyers of the best %d to %d together in %d seats\n",
		fillPlaces, fillBuyers, groupBuyers, smallest, largest, groupRows*groupRowSeats)
	var ratios, lasts []float64
	for round := range rounds {
		// In turns, because the tables grow from one to the next.
		rates := map[bool]filled{}
		for _, floor := range []bool{round%2 == 1, round%2 == 0} {
			f, err := m.fill(ctx, floor)
			if err != nil {
				return fmt.Errorf("fill: %w", err)
			}
			rates[floor] = f
			fmt.Fprintf(out, "round %d  %-42s %8.0f/s   by quarter:%s\n", round+1, map[bool]string{true: "the floor", false: "numbered seats"}[floor], f.rate, f.byQuarter())
		}
		ratios = append(ratios, rates[true].rate/rates[false].rate)
		lasts = append(lasts, rates[true].quarters[3]/rates[true].rate)
		took, held, err := m.groups(ctx)
		if err != nil {
			return fmt.Errorf("groups: %w", err)
		}
		fmt.Fprintf(out, "round %d  %-42s p50 %v, p95 %v, %d requests, %d seats held\n", round+1, "groups", took[len(took)/2], took[len(took)*95/100], len(took), held)
	}
	fmt.Fprintf(out, "the floor, median of %d rounds: %.2f of numbered seats, its last quarter %.2f of all of it\n", rounds, median(ratios), median(lasts))
	return nil
}

// filled is the rate at which everything was sold, and that of each quarter, a second.
type filled struct {
	rate     float64
	quarters [4]float64
}

func (f filled) byQuarter() (text string) {
	for _, q := range f.quarters {
		text += fmt.Sprintf(" %.0f", q)
	}
	return text
}

// fill sells a floor, or as many numbered seats, of a new house that has both.
func (m *meter) fill(ctx context.Context, floor bool) (f filled, err error) {
	event, err := m.house(ctx, m.locked, rowLabels(fillRows), fillRowSeats, fillPlaces)
	if err != nil {
		return f, err
	}
	var next, sold atomic.Int64
	var ends [4]time.Time
	start := time.Now()
	err = m.crowded(ctx, fillBuyers, func(ctx context.Context, conn *client, _ int) error {
		for n := next.Add(1); n <= fillPlaces && ctx.Err() == nil; n = next.Add(1) {
			body := saleOf(event, n)
			if floor {
				body = placeOf(event)
			}
			status, answer, err := conn.post("/v1/bookings", m.key, fmt.Sprintf("%d-%d", start.UnixNano(), n), body)
			if err != nil || status != http.StatusCreated {
				return cmp.Or(err, fmt.Errorf("status %d %s", status, answer))
			}
			if done := sold.Add(1); done%(fillPlaces/4) == 0 {
				ends[done/(fillPlaces/4)-1] = time.Now()
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return f, err
	}
	f.rate = fillPlaces / ends[3].Sub(start).Seconds()
	for i, end := range ends {
		f.quarters[i] = fillPlaces / 4 / end.Sub(start).Seconds()
		start = end
	}
	return f, nil
}

func placeOf(event seats.EventID) []byte {
	return fmt.Appendf(nil, `{"event":%q,"ga":{"area":1,"quantity":1},"buyer":{"name":"Buyer","email":"buyer@example.com"}}`, event.String())
}

// groups has everybody hold the best seats together for one group after the other, each for a buyer of its own, until not even the
// smallest fits. It returns how long the requests took, in ascending order, and how many seats are held.
func (m *meter) groups(ctx context.Context) (took []time.Duration, held int, err error) {
	event, err := m.house(ctx, m.locked, rowLabels(groupRows), groupRowSeats, 0)
	if err != nil {
		return nil, 0, err
	}
	path := "/v1/events/" + event.String() + "/holds"
	var mu sync.Mutex
	start := time.Now()
	err = m.crowded(ctx, groupBuyers, func(ctx context.Context, conn *client, i int) error {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		group := func() int { return smallest + random.IntN(largest-smallest+1) }
		for size := group(); size >= smallest && ctx.Err() == nil; {
			mu.Lock()
			took = append(took, 0)
			n := len(took) - 1
			mu.Unlock()
			sent := time.Now()
			status, answer, err := conn.post(path, m.buyers[n%benchBuyers], fmt.Sprintf("%d-%d", start.UnixNano(), n),
				fmt.Appendf(nil, `{"best_available":{"quantity":%d,"together":true}}`, size))
			var refusal struct{ Code string }
			if err == nil && status == http.StatusConflict {
				err = json.Unmarshal(answer, &refusal)
			}
			mu.Lock()
			took[n] = time.Since(sent)
			switch {
			case err == nil && status == http.StatusCreated:
				held += size
				size = group()
			case err == nil && refusal.Code == "no_block":
				size--
			default:
				err = cmp.Or(err, fmt.Errorf("status %d %s", status, answer))
			}
			mu.Unlock()
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	slices.Sort(took)
	return took, held, err
}

// crowded runs so many clients of the server with the lock, each on its own connection. The first error ends them all.
func (m *meter) crowded(ctx context.Context, n int, run func(ctx context.Context, conn *client, i int) error) error {
	clients, ctx := errgroup.WithContext(ctx)
	for i := range n {
		clients.Go(func() error {
			conn, err := dial(m.locked.addr)
			if err != nil {
				return err
			}
			defer conn.close()
			return run(ctx, conn, i)
		})
	}
	return clients.Wait()
}
