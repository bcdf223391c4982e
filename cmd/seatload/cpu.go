package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// clockTick is the unit of /proc's processor times; it is the same on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// spent is processor time by part, so far.
type spent struct{ client, server, postgres, redis time.Duration }

func (a spent) since(b spent) spent {
	return spent{a.client - b.client, a.server - b.server, a.postgres - b.postgres, a.redis - b.redis}
}

func (a spent) plus(b spent) spent {
	return spent{a.client + b.client, a.server + b.server, a.postgres + b.postgres, a.redis + b.redis}
}

// each says how much of it one of n operations took.
func (a spent) each(n float64) string {
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	return fmt.Sprintf("client %4.0f, server %4.0f, Postgres %4.0f, Redis %4.0f µs", per(a.client), per(a.server), per(a.postgres), per(a.redis))
}

// cpu reads what the parts have used. It is zero where there is no /proc.
func (m *meter) cpu() spent {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own) // cannot fail with these arguments
	return spent{
		client:   time.Duration(own.Utime.Nano() + own.Stime.Nano()),
		server:   cpuOf(m.locked.cmd.Process.Pid) + cpuOf(m.unlocked.cmd.Process.Pid),
		postgres: cpuOf(m.stack.Postgres.Pid()),
		redis:    cpuOf(m.stack.Redis.Pid()),
	}
}

// cpuOf adds up a process and its children, living and reaped.
func cpuOf(pid int) (total time.Duration) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// After the name in parentheses: state, parent, …; user, system and the reaped children's times are fields 14 to 17 of all.
		_, rest, _ := bytes.Cut(text, []byte(") "))
		fields := bytes.Fields(rest)
		self, _, _ := bytes.Cut(text, []byte(" "))
		if len(fields) < 15 || string(self) != strconv.Itoa(pid) && string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		for _, field := range fields[11:15] {
			ticks, _ := strconv.Atoi(string(field))
			total += time.Duration(ticks) * clockTick
		}
	}
	return total
}
