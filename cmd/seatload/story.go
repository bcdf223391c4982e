package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"seatfence/internal/mailsink"
)

const (
	seat14C   = 2*20 + 14
	pauseTime = 12 * time.Second
	storyTime = 50 * time.Second
)

// teller prints what happens when it happens.
type teller struct {
	out   io.Writer
	start time.Time
}

func (t teller) say(format string, args ...any) {
	fmt.Fprintf(t.out, "%5.1f s  %s\n", time.Since(t.start).Seconds(), fmt.Sprintf(format, args...))
}

// answer is what a buyer's request came back with.
type answer struct {
	status int
	Code   string
	ID     string
	Number string
	err    error
}

// story is the late request on two real servers: Lena's is stopped for longer than its lock lives, Omar buys, Lena's wakes up.
func story(ctx context.Context, out io.Writer) error {
	mails, err := mailsink.Start("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer mails.Close()
	b, err := newBed(ctx, "", "failpoint", mails.SMTPURL())
	if err != nil {
		return err
	}
	defer b.close()
	ctx, cancel := context.WithTimeout(ctx, storyTime)
	defer cancel()
	t := teller{out, time.Now()}
	serverA, err := b.serve(ctx, "FAILPOINTS=before_write="+pauseTime.String())
	if err != nil {
		return err
	}
	serverB, err := b.serve(ctx)
	if err != nil {
		return err
	}
	event, err := b.house(ctx, serverB, []string{"A", "B", "C"}, 20, 0)
	if err != nil {
		return err
	}
	t.say("servers A and B are up, with one Postgres, one Redis and the lock of 10 s; seat 14C is free")

	lena, omar := make(chan answer, 1), make(chan answer, 1)
	buy := func(s *server, name string, to chan<- answer) {
		go func() { to <- s.buy(ctx, event.String(), name) }()
	}
	buy(serverA, "Lena", lena)
	redisOptions, err := redis.ParseURL(b.stack.RedisURL)
	if err != nil {
		return err
	}
	locks := redis.NewClient(redisOptions)
	defer locks.Close()
	lock := fmt.Sprintf("seat:{%d}:%d", int64(event), seat14C)
	if err := until(ctx, func() bool { return locks.Exists(ctx, lock).Val() == 1 || len(lena) > 0 }); err != nil {
		return fmt.Errorf("wait for Lena's lock: %w", err)
	}
	if len(lena) > 0 {
		told := <-lena
		return fmt.Errorf("server A did not stop: it answered %d %s, %w", told.status, told.Code, told.err)
	}
	t.say("Lena asks A for 14C; A has the lock (%.1f s to live) and stops for %s, right before its write", locks.PTTL(ctx, lock).Val().Seconds(), pauseTime)
	early := serverB.buy(ctx, event.String(), "Omar")
	if early.Code != "seat_busy" {
		return fmt.Errorf("while A has the lock B answered %+v, not seat_busy", early)
	}
	t.say("Omar asks B for 14C: %d %s, turned away by the lock before he reaches the row", early.status, early.Code)
	if err := until(ctx, func() bool { return locks.Exists(ctx, lock).Val() == 0 }); err != nil {
		return fmt.Errorf("wait for the lock to expire: %w", err)
	}
	t.say("Redis has let the lock go; A still sleeps, with its request unfinished")
	buy(serverB, "Omar", omar)
	won := <-omar
	if won.status != http.StatusCreated {
		return fmt.Errorf("omar was answered %+v", won)
	}
	t.say("Omar asks B again: %d, booking %s is committed", won.status, won.Number)
	if _, err := mails.Wait(ctx, func(m mailsink.Message) bool { return strings.Contains(strings.Join(m.To, " "), "omar@") }); err != nil {
		return fmt.Errorf("wait for Omar's mail: %w", err)
	}
	t.say("Omar has his mail")
	late := <-lena
	t.say("A wakes up and writes: Lena is told %d %s", late.status, late.Code)
	return epilogue(ctx, t, b, serverA, mails, won, late)
}

// epilogue looks at what each promise left behind.
func epilogue(ctx context.Context, t teller, b *bed, serverA *server, mails *mailsink.Sink, won, late answer) error {
	conn, err := pgx.Connect(ctx, b.stack.PostgresURL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var owner string
	var bookings int
	err = conn.QueryRow(ctx, "SELECT (SELECT b.number FROM seats s JOIN bookings b ON b.id = s.booking_id WHERE s.id = $1), (SELECT count(*) FROM bookings)", seat14C).Scan(&owner, &bookings)
	if err != nil {
		return err
	}
	refused, err := refusedWrites(serverA)
	if err != nil {
		return err
	}
	lenas := 0
	for _, m := range mails.Messages() {
		if strings.Contains(strings.Join(m.To, " "), "lena@") {
			lenas++
		}
	}
	t.say("14C belongs to booking %s; there are %d booking and %d mails to Lena; A counts %s write that changed nothing", owner, bookings, lenas, refused)
	if late.status != http.StatusConflict || late.Code != "seat_taken" || owner != won.Number || bookings != 1 || lenas != 0 || refused != "1" {
		return errors.New("the late request was not refused as it must be")
	}
	t.say("0 rows: refused")
	return nil
}

func (s *server) buy(ctx context.Context, event, name string) (a answer) {
	token, err := s.session(ctx)
	if err != nil {
		return answer{err: err}
	}
	conn, err := dial(s.addr)
	if err != nil {
		return answer{err: err}
	}
	defer conn.close()
	body := fmt.Appendf(nil, `{"event":%q,"seats":[%d],"buyer":{"name":%q,"email":"%s@example.com"}}`, event, seat14C, name, strings.ToLower(name))
	status, text, err := conn.post("/v1/bookings", token, name, body)
	if err != nil {
		return answer{err: err}
	}
	a.err = json.Unmarshal(text, &a)
	a.status = status
	return a
}

var zeroRows = regexp.MustCompile(`(?m)^seatfence_zero_row_writes_total\S* ([0-9]+)$`)

func refusedWrites(s *server) (string, error) {
	res, err := http.Get("http://" + s.metrics + "/metrics")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if match := zeroRows.FindSubmatch(text); match != nil {
		return string(match[1]), nil
	}
	return "", errors.New("the server counts no refused writes")
}
