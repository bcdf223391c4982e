package notify_test

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/internal/mailsink"
	"seatfence/internal/staff"
)

var linkIn = regexp.MustCompile(`https://tickets\.example/staff/password\?token=[\w-]+`)

func invite(t *testing.T, s *staff.Staff, b bundle, name, email string) staff.User {
	t.Helper()
	u, _, err := s.Invite(t.Context(), b.Owner, booking.NewIdempotency(uuid.NewString()), staff.NewUser{Email: email, Name: name, Role: staff.Owner, EveryEvent: true})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// link waits for the nth mail to an address and returns the token of its link.
func (b bundle) link(t *testing.T, n int, email string) (token string, m mailsink.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := map[int64]bool{} // Wait looks at a mail again whenever another one comes
	m, err := b.sink.Wait(ctx, func(m mailsink.Message) bool {
		if len(m.To) == 1 && m.To[0] == email {
			seen[m.ID] = true
		}
		return len(seen) >= n && seen[m.ID]
	})
	if err != nil {
		t.Fatalf("mail to %s: %v", email, err)
	}
	address, err := url.Parse(linkIn.FindString(m.Text))
	if err != nil || !strings.Contains(m.HTML, address.String()) || address.Query().Get("token") == "" {
		t.Fatalf("no link, or two, in\n%s\n%s", m.Text, m.HTML)
	}
	return address.Query().Get("token"), m
}

func TestAnInvitationAndANewPasswordAreMailed(t *testing.T) {
	b := setup(t)
	s := people(t, b.Pool)
	invite(t, s, b, "Lena", "lena@example.com")
	token, m := b.link(t, 1, "lena@example.com")
	if !strings.HasPrefix(m.Subject, "Your invitation to ") || !strings.Contains(m.Text, "Hello Lena") {
		t.Errorf("%s\n%s", m.Subject, m.Text)
	}
	if _, _, err := s.SetPassword(t.Context(), token, "correct horse"); err != nil {
		t.Fatal(err)
	}
	for range 3 { // however often it is asked for
		if err := s.Forgot(t.Context(), "LENA@example.com"); err != nil {
			t.Fatal(err)
		}
	}
	token, m = b.link(t, 2, "lena@example.com")
	if !strings.Contains(m.Subject, "new password") {
		t.Errorf("%s\n%s", m.Subject, m.Text)
	}
	if _, _, err := s.SetPassword(t.Context(), token, "another horse"); err != nil {
		t.Fatal(err)
	}
	b.until(t, 2, "SELECT count(*) FROM river_job WHERE kind = 'staff_mail' AND state = 'completed'")
	if n := b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'staff_mail'"); n != 2 {
		t.Errorf("%d jobs for an invitation and three times the same wish", n)
	}
}

func TestALinkRestsInNoTable(t *testing.T) {
	b := setup(t)
	s := people(t, b.Pool)
	invite(t, s, b, "Lena", "lena@example.com")
	token, _ := b.link(t, 1, "lena@example.com")
	var jobs, tokens string
	if err := b.Pool.QueryRow(t.Context(), "SELECT string_agg(j::text, ' ') FROM river_job j").Scan(&jobs); err != nil {
		t.Fatal(err)
	}
	if err := b.Pool.QueryRow(t.Context(), "SELECT string_agg(k::text, ' ') || string_agg(encode(hash, 'escape'), ' ') FROM user_tokens k").Scan(&tokens); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(jobs+tokens, token) || strings.Contains(jobs, "lena@") {
		t.Error("the link of an invitation, or an address, is stored in a job")
	}
}

func TestALinkThatWasTriedTwiceWorksInItsNewestForm(t *testing.T) {
	b := setup(t)
	s := people(t, b.Pool)
	b.sink.Fail(mailsink.Drop) // taken, but the answer is lost
	invite(t, s, b, "Lena", "lena@example.com")
	old, first := b.link(t, 1, "lena@example.com")
	b.sink.Fail(mailsink.None)
	token, second := b.link(t, 2, "lena@example.com")
	if first.MessageID == second.MessageID {
		t.Error("a mailbox would take the second mail for the first")
	}
	if _, err := s.Linked(t.Context(), old); err == nil {
		t.Error("the link of the first mail still works")
	}
	if _, _, err := s.SetPassword(t.Context(), token, "correct horse"); err != nil {
		t.Error(err)
	}
}

func TestOneWhoWasRemovedIsNotMailed(t *testing.T) {
	b := setup(t)
	s := people(t, b.Pool)
	if err := b.sink.Down(); err != nil {
		t.Fatal(err)
	}
	invite(t, s, b, "Omar", "omar@example.com")
	u := invite(t, s, b, "Lena", "lena@example.com")
	if err := s.Remove(t.Context(), staff.ActorOf(b.Owner), u.Organizer, u.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.sink.Up(); err != nil {
		t.Fatal(err)
	}
	b.link(t, 1, "omar@example.com")
	b.until(t, 1, "SELECT count(*) FROM river_job WHERE kind = 'staff_mail' AND state = 'cancelled'")
	if n := len(b.sink.Messages()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

func TestNamesOfStaffBecomeNoHeaderAndNoMarkup(t *testing.T) {
	b := setup(t)
	s := people(t, b.Pool)
	invite(t, s, b, `"<script>alert(1)</script>`, "lena@example.com")
	if _, m := b.link(t, 1, "lena@example.com"); strings.Contains(m.HTML, "<script") {
		t.Errorf("a name has become markup: %s", m.HTML)
	}
}
