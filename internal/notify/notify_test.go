package notify_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"seatfence/booking"
	. "seatfence/booking/bookingtest"
	"seatfence/db"
	"seatfence/db/dbtest"
	"seatfence/internal/mailsink"
	"seatfence/internal/notify"
	"seatfence/internal/staff"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const patience = 10 * time.Second

type bundle struct {
	World
	sink *mailsink.Sink
	node *notify.Notifier
}

func setup(t *testing.T) bundle {
	t.Helper()
	t.Parallel()
	b := bundle{World: New(t, dbtest.Pool(t), booking.DefaultLimits), sink: newSink(t)}
	b.node = b.start(t)
	b.Service.Committed = b.node.Committed
	return b
}

func newSink(t *testing.T) *mailsink.Sink {
	t.Helper()
	sink, err := mailsink.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	})
	return sink
}

// start runs one more node on the same database.
func (b bundle) start(t *testing.T) *notify.Notifier {
	t.Helper()
	return start(t.Context(), t, b.Pool, b.Service, b.sink)
}

func start(ctx context.Context, t *testing.T, pool *pgxpool.Pool, service *booking.Service, sink *mailsink.Sink) *notify.Notifier {
	t.Helper()
	server, err := url.Parse(sink.SMTPURL())
	if err != nil {
		t.Fatal(err)
	}
	node, err := notify.New(pool, service, people(t, pool), server, netmail.Address{Name: "Box office", Address: "tickets@seatfence.example"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		if err := errors.Join(node.Stop(ctx), node.Stop(ctx)); err != nil {
			t.Error(err)
		}
	})
	return node
}

func people(t *testing.T, pool *pgxpool.Pool) *staff.Staff {
	t.Helper()
	people, err := staff.New(pool, &url.URL{Scheme: "https", Host: "tickets.example"})
	if err != nil {
		t.Fatal(err)
	}
	return people
}

func (b bundle) mustBook(t *testing.T, seats ...int32) booking.Booking {
	t.Helper()
	made, err := b.Book(t.Context(), Buyer(), seats...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// mail waits for the mail of one kind about a booking.
func (b bundle) mail(t *testing.T, id booking.BookingID, kind string) mailsink.Message {
	t.Helper()
	return b.nth(t, 1, id, kind)
}

// nth waits until the mail has come n times.
func (b bundle) nth(t *testing.T, n int, id booking.BookingID, kind string) mailsink.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := 0
	m, err := b.sink.Wait(ctx, func(m mailsink.Message) bool {
		if strings.HasPrefix(m.MessageID, id.String()+"."+kind+"@") {
			seen++
		}
		return seen >= n
	})
	if err != nil {
		t.Fatalf("%s of %s, %d times: %v", kind, id, n, err)
	}
	return m
}

func (b bundle) count(t *testing.T, query string) (n int) {
	t.Helper()
	if err := b.Pool.QueryRow(context.Background(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// until waits for a count.
func (b bundle) until(t *testing.T, want int, query string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for got := -1; got != want; {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d, want %d", query, got, want)
		}
		if got = b.count(t, query); got != want {
			<-time.After(20 * time.Millisecond)
		}
	}
}

func TestACommittedBookingIsMailedAtOnce(t *testing.T) {
	b := setup(t)
	began := time.Now()
	made := b.mustBook(t, Seat14C, Seat14C+1)
	m := b.mail(t, made.ID, booking.MailConfirmed)
	t.Log("mail after", time.Since(began))
	if m.From != "tickets@seatfence.example" || len(m.To) != 1 || m.To[0] != "lena@example.com" || m.Header.Get("To") != `"Lena" <lena@example.com>` {
		t.Errorf("mail from %s to %v (%s)", m.From, m.To, m.Header.Get("To"))
	}
	for _, part := range []string{m.Text, m.HTML} {
		for _, want := range []string{"Lena", made.Number, "An evening", "The small house", "Europe/Berlin", "UTC&#43;01:00", "Stalls C14", "Stalls C15", "45.00 EUR", "90.00 EUR", made.Seats[0].Code} {
			if !strings.Contains(part, want) && !strings.Contains(part, strings.ReplaceAll(want, "&#43;", "+")) {
				t.Errorf("a part of the mail lacks %q:\n%s", want, part)
			}
		}
	}
}

func TestARefusedBookingIsNotMailed(t *testing.T) {
	b := setup(t)
	b.mustBook(t, Seat14C)
	if _, err := b.Book(t.Context(), Buyer(), Seat14C); err == nil {
		t.Fatal("the seat was sold twice")
	}
	last := b.mustBook(t, 1)
	b.mail(t, last.ID, booking.MailConfirmed)
	b.until(t, 2, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND state = 'completed'")
	if n := len(b.sink.Messages()); n != 2 {
		t.Errorf("%d mails for two bookings", n)
	}
}

func TestACancelledBookingIsMailedToo(t *testing.T) {
	b := setup(t)
	made := b.mustBook(t, Seat14C)
	b.mail(t, made.ID, booking.MailConfirmed)
	if _, err := b.Service.Cancel(t.Context(), b.Owner, made.ID); err != nil {
		t.Fatal(err)
	}
	m := b.mail(t, made.ID, booking.MailCancelled)
	if !strings.HasPrefix(m.Subject, "Cancelled") || strings.Contains(m.Text+m.HTML, made.Seats[0].Code) {
		t.Errorf("the mail about a cancel is %q:\n%s", m.Subject, m.Text)
	}
}

func TestAMailServerThatComesBackIsUsedSoon(t *testing.T) {
	b := setup(t)
	if err := b.sink.Down(); err != nil {
		t.Fatal(err)
	}
	made := b.mustBook(t, Seat14C)
	b.until(t, 1, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND cardinality(errors) > 0")
	if err := b.sink.Up(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	b.mail(t, made.ID, booking.MailConfirmed)
	if took := time.Since(back); took > 4*time.Second {
		t.Errorf("the mail came %v after the server", took)
	}
}

func TestABusyMailServerIsTriedAgain(t *testing.T) {
	b := setup(t)
	b.sink.Fail(mailsink.Busy)
	made := b.mustBook(t, Seat14C)
	b.until(t, 1, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND cardinality(errors) > 0")
	b.sink.Fail(mailsink.None)
	b.mail(t, made.ID, booking.MailConfirmed)
}

func TestAMailSentTwiceKeepsItsMessageID(t *testing.T) {
	b := setup(t)
	b.sink.Fail(mailsink.Drop) // taken, but the answer is lost
	made := b.mustBook(t, Seat14C)
	first := b.mail(t, made.ID, booking.MailConfirmed)
	b.sink.Fail(mailsink.None)
	if again := b.nth(t, 2, made.ID, booking.MailConfirmed); again.MessageID != first.MessageID {
		t.Errorf("message ids %q and %q", first.MessageID, again.MessageID)
	}
}

func TestStopDoesNotWaitForAHangingMailServer(t *testing.T) {
	b := setup(t)
	b.sink.Fail(mailsink.Hang)
	b.mustBook(t, Seat14C)
	b.until(t, 1, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND state = 'running'")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	if err := b.node.Stop(ctx); err != nil {
		t.Errorf("stop after %v: %v", time.Since(began), err)
	}
	if n := b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND state IN ('available', 'retryable')"); n != 1 {
		t.Errorf("after the stop %d mails wait for another node, want 1", n)
	}
}

func TestTwoNodesShareTheOutbox(t *testing.T) {
	b := setup(t)
	b.start(t)
	for seat := range int32(60) {
		b.mustBook(t, seat+1)
	}
	b.until(t, 60, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND state = 'completed'")
	ids := map[string]bool{}
	for _, m := range b.sink.Messages() {
		ids[m.MessageID] = true
	}
	if len(ids) != 60 || len(b.sink.Messages()) != 60 {
		t.Errorf("60 bookings, %d mails with %d message ids", len(b.sink.Messages()), len(ids))
	}
}

func TestARowWhoseNodeDiedIsHandedOn(t *testing.T) {
	b := setup(t)
	b.Service.Committed = nil
	made := b.mustBook(t, Seat14C)
	b.mail(t, made.ID, booking.MailConfirmed)
}

func TestARowHandedOnTwiceIsMailedOnce(t *testing.T) {
	b := setup(t)
	made := b.mustBook(t, Seat14C)
	b.mail(t, made.ID, booking.MailConfirmed)
	if _, err := b.Pool.Exec(t.Context(), "UPDATE outbox SET handed_at = NULL"); err != nil {
		t.Fatal(err)
	}
	b.until(t, 0, "SELECT count(*) FROM outbox WHERE handed_at IS NULL")
	if n := b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail'"); n != 1 {
		t.Errorf("%d jobs for one mail", n)
	}
}

func TestAStaleConfirmationIsNotSent(t *testing.T) {
	b := setup(t)
	if err := b.sink.Down(); err != nil {
		t.Fatal(err)
	}
	made := b.mustBook(t, Seat14C)
	b.until(t, 1, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND cardinality(errors) > 0")
	if _, err := b.Service.Cancel(t.Context(), b.Owner, made.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.sink.Up(); err != nil {
		t.Fatal(err)
	}
	b.mail(t, made.ID, booking.MailCancelled)
	b.until(t, 2, "SELECT count(*) FROM river_job WHERE kind = 'booking_mail' AND state = 'completed'")
	if n := len(b.sink.Messages()); n != 1 {
		t.Errorf("%d mails about a booking that was cancelled before its confirmation went out", n)
	}
}

func TestTheRelayOutlivesARestartOfTheDatabase(t *testing.T) {
	t.Parallel()
	stack := dbtest.OwnPostgres(t)
	pool, err := db.Open(t.Context(), stack.PostgresURL, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := bundle{World: New(t, pool, booking.DefaultLimits), sink: newSink(t)}
	b.node = b.start(t)
	stack.Postgres.Kill()
	if err := stack.Postgres.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := b.mustBook(t, Seat14C)
	b.mail(t, made.ID, booking.MailConfirmed)
}

func TestOldRowsAreForgotten(t *testing.T) {
	t.Parallel()
	b := bundle{World: New(t, dbtest.Pool(t), booking.DefaultLimits), sink: newSink(t)}
	made := b.mustBook(t, Seat14C)
	_, err := b.Pool.Exec(t.Context(), `
		WITH o AS (UPDATE outbox SET handed_at = statement_timestamp() - interval '8 days')
		UPDATE idempotency_keys SET created_at = statement_timestamp() - interval '2 days'`)
	if err != nil {
		t.Fatal(err)
	}
	young := b.mustBook(t, 1)
	b.start(t)
	b.until(t, 1, "SELECT count(*) FROM outbox")
	b.until(t, 1, "SELECT count(*) FROM idempotency_keys")
	b.mail(t, young.ID, booking.MailConfirmed)
	if len(b.sink.Messages()) != 1 {
		t.Errorf("%s was mailed though its row says it was handed on", made.ID)
	}
}

func TestStopWithoutStartDoesNothing(t *testing.T) {
	t.Parallel()
	w := New(t, dbtest.Pool(t), booking.DefaultLimits)
	node, err := notify.New(w.Pool, w.Service, people(t, w.Pool), &url.URL{Scheme: "smtp", Host: "127.0.0.1:1"}, netmail.Address{Address: "tickets@seatfence.example"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	node.Committed()
	node.Committed()
	if err := node.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
