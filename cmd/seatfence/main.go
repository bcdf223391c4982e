// Command seatfence is the whole service: the server, what it takes to try it on one machine, and what its operators need.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	_ "time/tzdata" // events name zones, and the machine may know none

	"github.com/alecthomas/kong"
)

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, restore) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

type cli struct {
	Dev     devCommand     `cmd:"" help:"Run everything on this machine: Postgres, Redis, a mail sink, two houses with an event on sale, the server."`
	Serve   serveCommand   `cmd:"" help:"Run a server. Its settings come from the environment, see docs/config.md."`
	Migrate migrateCommand `cmd:"" help:"Bring the database at DATABASE_URL to this program's schema."`
	APIKey  apiKeyCommand  `cmd:"" name:"apikey" help:"Make, list and revoke API keys."`
	User    userCommand    `cmd:"" help:"Make, list and remove users, who act for an organizer."`
	Verify  verifyCommand  `cmd:"" help:"Check the invariants of the sale in the database at DATABASE_URL, while it is in use."`
	Plan    planCommand    `cmd:"" help:"Check seat plans, bring them into our own format, and keep them."`
	Event   eventCommand   `cmd:"" help:"Make events of plans, and cancel them."`
	Version versionCommand `cmd:"" help:"Say which build this is."`
}

// session is what a command gets of the world.
type session struct {
	ctx            context.Context
	environ        map[string]string
	stdout, stderr io.Writer
}

const (
	exitFailed = 1
	exitUsage  = 2
)

// run is the program: it returns the exit code, and when ctx ends it stops.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	asked := -1 // by --help
	parser, err := kong.New(&cli{}, kong.Name("seatfence"), kong.Description("Sells numbered seats, and none of them twice."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { asked = code }))
	if err != nil {
		fmt.Fprintln(stderr, "seatfence:", err)
		return exitFailed
	}
	command, err := parser.Parse(args)
	if asked >= 0 {
		return asked
	}
	if err != nil {
		fmt.Fprintln(stderr, "seatfence:", err)
		return exitUsage
	}
	s := &session{ctx, settings(environ), stdout, stderr}
	if s.ctx, err = withFailpoints(s); err == nil {
		err = command.Run(s)
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "seatfence: interrupted")
	default:
		fmt.Fprintln(stderr, "seatfence:", err)
	}
	return exitFailed
}

func settings(environ []string) map[string]string {
	byName := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		byName[name] = value
	}
	return byName
}

type versionCommand struct{}

// Run prints the version, the commit and the Go version of the build.
func (versionCommand) Run(s *session) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this build carries no information")
	}
	commit := "unknown commit"
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			commit = setting.Value
		}
	}
	fmt.Fprintf(s.stdout, "seatfence %s, %s, %s\n", info.Main.Version, commit, info.GoVersion)
	return nil
}
