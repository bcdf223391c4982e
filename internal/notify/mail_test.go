package notify

import (
	"bytes"
	"errors"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river/rivertype"
	"github.com/wneessen/go-mail"

	"seatfence/booking"
	"seatfence/seats"
)

func example() (booking.Booking, booking.Event) {
	id := booking.BookingID{Event: 7, Key: uuid.MustParse("01900000-0000-7000-8000-000000000001")}
	made := booking.Booking{
		ID: id, Number: "K7M2-QX4P", Name: "Lena", Email: "lena@example.com", Total: 4500, Currency: "EUR",
		Seats: []seats.Ticket{{Taken: seats.Taken{ID: 54, Place: seats.Place{Section: "Stalls", Row: "C", Number: "14"}, Price: 4500}, Code: "SECRET"}},
	}
	event := booking.Event{
		ID: 7, Name: "An evening", Venue: "The small house", StartsAt: time.Date(2027, 7, 1, 17, 30, 0, 0, time.UTC), Timezone: "Europe/Berlin",
	}
	return made, event
}

func written(t *testing.T, b booking.Booking, event booking.Event) (*netmail.Message, string) {
	t.Helper()
	msg, err := compose(b, event, booking.MailConfirmed, netmail.Address{Name: "Box office", Address: "tickets@seatfence.example"})
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if _, err := msg.WriteTo(&raw); err != nil {
		t.Fatal(err)
	}
	text := raw.String()
	parsed, err := netmail.ReadMessage(&raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, text
}

func TestTextOfOthersCannotBecomeAHeaderOrMarkup(t *testing.T) {
	t.Parallel()
	evil := "x\"\r\nBcc: omar@example.com\r\n\r\n<script>alert(1)</script>"
	b, event := example()
	b.Name, event.Name, event.Venue = evil, evil, evil
	msg, raw := written(t, b, event)
	if msg.Header.Get("Bcc") != "" {
		t.Error("a name has become a header")
	}
	to, err := msg.Header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Address != "lena@example.com" {
		t.Errorf("To is %v, %v", to, err)
	}
	_, html, _ := strings.Cut(raw, "text/html")
	if strings.Contains(html, "<script") {
		t.Error("a name has become markup")
	}
}

func TestTimesAndAmountsAreThoseOfTheVenue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, currency, when, total string }{
		{"Europe/Berlin", "EUR", "Thursday, 1 July 2027, 19:30 (Europe/Berlin, UTC+02:00)", "45.00 EUR"},
		{"America/St_Johns", "KWD", "Thursday, 1 July 2027, 15:00 (America/St_Johns, UTC-02:30)", "4.500 KWD"},
		{"Pacific/Kiritimati", "JPY", "Friday, 2 July 2027, 07:30 (Pacific/Kiritimati, UTC+14:00)", "4500 JPY"},
	} {
		b, event := example()
		event.Timezone, b.Currency = c.zone, c.currency
		msg, err := compose(b, event, booking.MailConfirmed, netmail.Address{Address: "tickets@seatfence.example"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := msg.GetParts()[0].GetContent()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(c.when)) || !bytes.Contains(text, []byte("Total: "+c.total)) {
			t.Errorf("%s, %s: want %q and %q in\n%s", c.zone, c.currency, c.when, c.total, text)
		}
	}
}

func TestAMailHasOneMessageIDForever(t *testing.T) {
	t.Parallel()
	b, event := example()
	first, _ := written(t, b, event)
	second, _ := written(t, b, event)
	want := "<" + b.ID.String() + ".booking_confirmed@seatfence.example>"
	if first.Header.Get("Message-Id") != want || second.Header.Get("Message-Id") != want {
		t.Errorf("message ids %q and %q, want %q", first.Header.Get("Message-Id"), second.Header.Get("Message-Id"), want)
	}
}

func TestAMailIsTriedForThreeDays(t *testing.T) {
	t.Parallel()
	var all time.Duration
	for failed := range maxAttempts - 1 {
		wait := retryAfter(failed)
		if failed == 0 && wait > 2*time.Second {
			t.Errorf("the first retry comes after %v", wait)
		}
		if wait > longestRetry*11/10 {
			t.Errorf("retry %d comes after %v", failed, wait)
		}
		all += wait
	}
	if all < 68*time.Hour || all > 80*time.Hour {
		t.Errorf("a mail is given up after %v", all)
	}
}

func TestWhatTheServerSaidIsNotLogged(t *testing.T) {
	t.Parallel()
	err := failure(errors.Join(&mail.SendError{Reason: mail.ErrSMTPRcptTo}))
	if _, cancelled := errors.AsType[*rivertype.JobCancelError](err); cancelled || strings.Contains(err.Error(), "@") {
		t.Errorf("a failure without a code gives %v", err)
	}
}
