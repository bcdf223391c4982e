// Command seatload runs real servers on a private Postgres and Redis and puts load on them: the measurements (bench), and the story of
// the late request (story). It sends load to loopback only, and everything it does is bounded in count and time.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type cli struct {
	Story struct{}     `cmd:"" help:"Tell the story of the late request on two real servers."`
	Bench benchCommand `cmd:"" help:"Start Postgres, Redis and two servers, and compare their rates with pgbench."`
}

type benchCommand struct {
	Seconds int    `default:"5" help:"Length of each measurement, 1 to 30 s."`
	Rounds  int    `default:"3" help:"Rounds of all measurements, 1 to 10; each figure is the median of its rounds."`
	Workers int    `default:"32" help:"Parallel clients, 1 to 128."`
	Dir     string `help:"Where the private Postgres keeps its data (default: a temporary folder)." type:"path"`
}

// Validate bounds the load.
func (c benchCommand) Validate() error {
	switch {
	case c.Seconds < 1 || c.Seconds > 30:
		return fmt.Errorf("--seconds must be between 1 and 30")
	case c.Rounds < 1 || c.Rounds > 10:
		return fmt.Errorf("--rounds must be between 1 and 10")
	case c.Workers < 1 || c.Workers > 128:
		return fmt.Errorf("--workers must be between 1 and 128")
	}
	return nil
}

// longest is the bound of a whole run.
const longest = 20 * time.Minute

func main() {
	var c cli
	parsed := kong.Parse(&c, kong.Name("seatload"), kong.Description("Bounded load on loopback."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var err error
	switch parsed.Command() {
	case "bench":
		err = bench(ctx, c.Bench, os.Stdout)
	case "story":
		err = story(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seatload:", err)
		os.Exit(1)
	}
}
