package config_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"seatfence/booking"
	"seatfence/db"
	"seatfence/internal/config"
	"seatfence/lockmgr"
)

const secret = "6f0e8d2ac1b94735a8f6c3d2e1b0a9f8e7d6c5b4a3928170f1e2d3c4b5a69788"

func needed() map[string]string {
	return map[string]string{
		"DATABASE_URL": "postgres://seatfence:hunter2@127.0.0.1:5432/seatfence?password=hunter2",
		"REDIS_URL":    "redis://:hunter2@127.0.0.1:6379/0",
		"SMTP_URL":     "smtps://box:hunter2@mail.example.com:465",
		"SIGNING_KEY":  secret,
	}
}

func with(changes ...string) map[string]string {
	environ := needed()
	for i := 0; i < len(changes); i += 2 {
		environ[changes[i]] = changes[i+1]
	}
	maps.DeleteFunc(environ, func(_, value string) bool { return value == "" })
	return environ
}

func TestTheDefaultsAreThoseOfThePackages(t *testing.T) {
	t.Parallel()
	c, err := config.Load(needed())
	if err != nil {
		t.Fatal(err)
	}
	got := booking.Limits{
		Seats: c.MaxSeats, HeldByBuyer: c.MaxHeldByBuyer, HeldByKey: c.MaxHeldByKey, HoldTTL: c.HoldTTL, HoldLongest: c.HoldLongest,
		Extensions: c.HoldExtensions, KeyRetention: c.KeyRetention,
	}
	if got != booking.DefaultLimits {
		t.Errorf("limits are %+v, want %+v", got, booking.DefaultLimits)
	}
	if c.SeatLockTTL != lockmgr.DefaultTTL || c.IdleInTransaction != db.IdleInTransaction || !bool(c.SeatLocks) {
		t.Errorf("seat locks %v of %v, idle in transaction %v", c.SeatLocks, c.SeatLockTTL, c.IdleInTransaction)
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := config.Load(map[string]string{
		"DATABASE_URL": "mysql://x:hunter2@h/d", "REDIS_URL": "hunter2", "HOLD_TTL": "-1s", "SEAT_LOCKS": "maybe", "IN_FLIGHT": "many",
		"LISTEN": "8080", "PUBLIC_URL": "ftp://h", "MAIL_FROM": "nobody",
	})
	if err == nil {
		t.Fatal("loaded")
	}
	for _, want := range []string{
		"DATABASE_URL: does not begin", "REDIS_URL: not a URL", "HOLD_TTL: -1s is not between", "SEAT_LOCKS:", "IN_FLIGHT:", "LISTEN:", "PUBLIC_URL:",
		"MAIL_FROM:", "SIGNING_KEY: missing", "SMTP_URL: missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the reasons lack %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a reason quotes a password:\n%v", err)
	}
}

func TestOneWrongSettingIsRefusedByName(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"DATABASE_URL", ""},
		{"DATABASE_URL", "postgres://"},
		{"DATABASE_MAX_CONNS", "3"},
		{"IDLE_IN_TRANSACTION", "0s"},
		{"REDIS_URL", ""},
		{"REDIS_URL", "http://h"},
		{"SMTP_URL", ""},
		{"SMTP_URL", "mailto:h"},
		{"SIGNING_KEY", ""},
		{"SIGNING_KEY", secret[:60]},
		{"SIGNING_KEY", "%%"},
		{"SEAT_LOCK_TTL", "-10s"},
		{"SEAT_LOCK_TTL", "0s"},
		{"SEAT_LOCK_TTL", "10"},
		{"SEAT_LOCKS", "true"},
		{"HOLD_TTL", "-1s"},
		{"HOLD_LONGEST", "5m"},
		{"HOLD_EXTENSIONS", "-1"},
		{"MAX_SEATS", "0"},
		{"MAX_HELD_BY_BUYER", "0"},
		{"MAX_HELD_BY_KEY", "-5"},
		{"KEY_RETENTION", "1s"},
		{"IN_FLIGHT", "0"},
		{"LISTEN", "127.0.0.1:99999"},
		{"METRICS_LISTEN", "x"},
		{"PUBLIC_URL", "/"},
		{"MAIL_FROM", "a\r\nBcc: b@c"},
		{"LOG_LEVEL", "loud"},
		{"ALLOW_UNSAFE_FSYNC", "perhaps"},
	} {
		_, err := config.Load(with(c[0], c[1]))
		if err == nil || !strings.HasPrefix(err.Error(), c[0]+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s=%q: %v", c[0], c[1], err)
		}
	}
}

func TestWithoutSeatLocksNoRedisIsNeeded(t *testing.T) {
	t.Parallel()
	if _, err := config.Load(with("SEAT_LOCKS", "off", "REDIS_URL", "")); err != nil {
		t.Error(err)
	}
}

func TestAKeyMayBeHexOrBase64(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("ff", 32), "//////////////////////////////////////////8=", "__________________________________________8", "//////////////////////////////////////////8",
	} {
		c, err := config.Load(with("SIGNING_KEY", text))
		if err != nil || !bytes.Equal(c.SigningKey, bytes.Repeat([]byte{255}, 32)) {
			t.Errorf("%s is read as %d bytes, %v", text, len(c.SigningKey), err)
		}
	}
}

func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	c, err := config.Load(needed())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("settings", "settings", c)
	fmt.Fprintf(&out, "%v %+v", c, c)
	for _, hidden := range []string{"hunter2", secret, string(c.SigningKey)} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("%q is printed:\n%s", hidden, out.String())
		}
	}
	for _, shown := range []string{`"SIGNING_KEY":"redacted"`, `"DATABASE_URL":"postgres://seatfence:xxxxx@127.0.0.1:5432/seatfence"`, `"HOLD_TTL":"10m0s"`, `"MAIL_FROM":"\"Seatfence\" <tickets@localhost>"`, `"SEAT_LOCKS":"on"`} {
		if !strings.Contains(out.String(), shown) {
			t.Errorf("%s is not printed:\n%s", shown, out.String())
		}
	}
}

func TestCommandsNeedOnlyTheDatabase(t *testing.T) {
	t.Parallel()
	d, err := config.LoadDatabase(map[string]string{"DATABASE_URL": "postgres://h/d"})
	if err != nil || d.IdleInTransaction != 3*time.Second {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := config.LoadDatabase(nil); err == nil || err.Error() != "DATABASE_URL: missing" {
		t.Errorf("without a URL: %v", err)
	}
}

// TestEverySettingIsDescribed compares the names and defaults in docs/config.md with the struct's, both ways.
func TestEverySettingIsDescribed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (.*?) \\| .+ \\|$").FindAllStringSubmatch(string(page), -1) {
		described[row[1]] = strings.Trim(row[2], "`")
	}
	settings := map[string]string{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Config]()) {
		if name := field.Tag.Get("env"); name != "" {
			settings[name] = field.Tag.Get("envDefault")
			switch {
			case settings[name] != "":
			case field.Type == reflect.TypeFor[[]string]():
				settings[name] = "none"
			default:
				settings[name] = "needed"
			}
		}
	}
	for name, preset := range settings {
		if described[name] != preset {
			t.Errorf("%s: the default is %q, described as %q", name, preset, described[name])
		}
		delete(described, name)
	}
	for name := range described {
		t.Errorf("%s is described and does not exist", name)
	}
}
