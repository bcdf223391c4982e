// Command livebench measures how a live map reaches many viewers: with the sockets of this project, and with centrifuge, a library that is made
// for such things, under the same load in the same run. Servers and viewers are processes of their own on this machine.
//
//	go run . [-viewers 5000] [-rate 160] [-seconds 20]
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

var (
	viewers = flag.Int("viewers", 5000, "sockets that watch")
	rate    = flag.Int("rate", 160, "seats that change in a second")
	seconds = flag.Int("seconds", 20, "for how long they change; above 24 servers miss the answers to their pings, which viewers here do not give")
	joiners = flag.Int("joiners", 10_000, "sockets of the largest crowd that joins; 0: none")
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "watch" {
		watch(os.Args[2])
		return
	}
	flag.Parse()
	if err := compare(); err != nil {
		fmt.Fprintln(os.Stderr, "livebench:", err)
		os.Exit(1)
	}
}

// result is one measurement of a server.
type result struct {
	crowd
	cpu  time.Duration // of the server while seats changed
	took time.Duration
	lags int64   // of stalled viewers
	kb   float64 // of memory for a socket that is idle
}

func (r result) perCPU() float64 { return float64(r.Delivered) / r.cpu.Seconds() }

func compare() error {
	raise()
	fmt.Printf("%d viewers, %d seats change in a second, for %d s\n\n", *viewers, *rate, *seconds)
	fmt.Printf("%-34s %9s %9s %9s %9s %10s %12s\n", "", "delivered", "p50 ms", "p99 ms", "cores", "KB/socket", "per CPU s")
	results := map[string]result{}
	for _, run := range []struct {
		name, server string
		stalled      int
	}{
		{"seatfence", "seatfence", 0},
		{"seatfence, 1 % stalled", "seatfence", *viewers / 100},
		{"seatfence, once more", "seatfence", 0},
		{"centrifuge", "centrifuge", 0},
		{"centrifuge, writes held 100 ms", "centrifuge-delayed", 0},
	} {
		r, err := measure(run.server, run.stalled)
		if err != nil {
			return fmt.Errorf("%s: %w", run.name, err)
		}
		results[run.name] = r
		fmt.Printf("%-34s %8.2f%% %9.0f %9.0f %9.2f %10.1f %12.0f\n", run.name,
			100*float64(r.Delivered)/float64(r.Wanted), r.P50, r.P99, r.cpu.Seconds()/r.took.Seconds(), r.kb, r.perCPU())
	}
	ours, best := results["seatfence"], max(results["centrifuge"].perCPU(), results["centrifuge, writes held 100 ms"].perCPU())
	fmt.Printf("\ndeliveries in a second of the server's processor: %.1f times centrifuge's as it comes, %.1f times its best\n",
		ours.perCPU()/results["centrifuge"].perCPU(), ours.perCPU()/best)
	fmt.Printf("p99 with 1 %% stalled: %.2f of that without (%.2f between two runs without)\n",
		results["seatfence, 1 % stalled"].P99/ours.P99, results["seatfence, once more"].P99/ours.P99)
	if *joiners > 0 {
		if err := joins(); err != nil {
			return err
		}
	}
	maps := 0
	for name, r := range results {
		if strings.HasPrefix(name, "centrifuge") {
			continue
		}
		if maps += r.Maps; r.Delivered != r.Wanted || r.WrongMaps > 0 {
			return fmt.Errorf("%s: %d of %d changes have arrived, %d of %d maps are wrong", name, r.Delivered, r.Wanted, r.WrongMaps, r.Maps)
		}
	}
	stalled := results["seatfence, 1 % stalled"]
	if stalled.lags < int64(*viewers/100) {
		return fmt.Errorf("of %d viewers that read nothing the server noticed %d", *viewers/100, stalled.lags)
	}
	fmt.Printf("\nall %d maps that were compared with the house are right, also those of the %d viewers that had stalled\n", maps, *viewers/100)
	return nil
}

// measure runs a server and its viewers.
func measure(server string, stalled int) (r result, err error) {
	s, addr, err := start("serve", server)
	if err != nil {
		return r, err
	}
	defer s.stop()
	before := s.rss()
	w, _, err := start("watch", fmt.Sprintf("%s,%s,%d,%d", server, addr, *viewers, stalled))
	if err != nil {
		return r, err
	}
	defer w.stop()
	time.Sleep(time.Second) // until all have read their maps
	if err := s.say("rest"); err != nil {
		return r, err
	}
	if _, err := s.hear(); err != nil {
		return r, err
	}
	r.kb = (s.rss() - before) / float64(*viewers)
	began, cpu := time.Now(), s.cpu()
	if err := s.say("change %d %d", *rate, *seconds); err != nil {
		return r, err
	}
	line, err := s.hear()
	if err != nil {
		return r, err
	}
	r.took, r.cpu = time.Since(began), s.cpu()-cpu
	var last int64
	if _, err := fmt.Sscan(line, &last, &r.lags); err != nil {
		return r, err
	}
	if err := w.say("report %d", last); err != nil {
		return r, err
	}
	report, err := w.hear()
	if err != nil {
		return r, err
	}
	return r, r.crowd.read(report)
}

// joins measures what it costs that a crowd arrives.
func joins() error {
	fmt.Println()
	for _, n := range []int{*joiners / 5, *joiners} {
		s, addr, err := start("serve", "seatfence")
		if err != nil {
			return err
		}
		cpu := s.cpu()
		w, _, err := start("watch", fmt.Sprintf("seatfence,%s,%d,0", addr, n))
		if err != nil {
			s.stop()
			return err
		}
		took := s.cpu() - cpu
		w.stop()
		s.stop()
		fmt.Printf("%d join: %.2f s of the server's processor, %.0f µs each, with a map of 50,000 seats for everyone\n", n, took.Seconds(), took.Seconds()/float64(n)*1e6)
	}
	return nil
}
