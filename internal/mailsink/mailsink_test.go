package mailsink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const seat14C = "From: Box office <tickets@example.org>\r\nTo: lena@example.org\r\nSubject: =?utf-8?q?Ihr_Platz_14C_=E2=80=93_Saal?=\r\n" +
	"Message-ID: <b1@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=x\r\n\r\n" +
	"--x\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nSeat 14C =E2=9C=93\r\n" +
	"--x\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPGI+MTRDPC9iPjxzY3JpcHQ+YWxlcnQoMSk8L3NjcmlwdD4=\r\n--x--\r\n"

func newSink(t *testing.T) *Sink {
	t.Helper()
	s, err := Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func send(s *Sink, body string) error {
	return smtp.SendMail(strings.TrimPrefix(s.SMTPURL(), "smtp://"), nil, "tickets@example.org", []string{"lena@example.org"}, []byte(body))
}

func get(t *testing.T, s *Sink, path, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func wait(t *testing.T, s *Sink, match func(Message) bool) Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	m, err := s.Wait(ctx, match)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func anyMail(Message) bool { return true }

func code(err error) int {
	var answer *textproto.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

func TestMessageIsDecodedForReaders(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	if err := send(s, seat14C); err != nil {
		t.Fatal(err)
	}
	m := wait(t, s, anyMail)
	if m.ID != 1 || m.From != "tickets@example.org" || m.To[0] != "lena@example.org" || m.Subject != "Ihr Platz 14C – Saal" ||
		m.MessageID != "b1@example.org" || m.Text != "Seat 14C ✓" || !strings.HasPrefix(m.HTML, "<b>14C</b>") {
		t.Fatalf("%+v", m)
	}
}

func TestPagesShowMailWithoutRunningIt(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	if err := send(s, strings.Replace(seat14C, "Seat 14C", "<script>alert(1)</script>", 1)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/messages/1"} {
		w := get(t, s, path, "text/html,application/json;q=0.9")
		if w.Code != 200 || !strings.Contains(w.Body.String(), "Ihr Platz 14C – Saal") || strings.Contains(w.Body.String(), "<script") {
			t.Errorf("%s: %d\n%s", path, w.Code, w.Body)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
	if csp := get(t, s, "/messages/1/html", "*/*").Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox; default-src 'none';") {
		t.Errorf("the mail's own page may run scripts: %q", csp)
	}
	for path, want := range map[string]int{"/messages/2": 404, "/messages/x": 404, "/messages/2/html": 404, "/other": 404} {
		if w := get(t, s, path, "*/*"); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}

func TestJSONIsNewestFirst(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	if w := get(t, s, "/messages", "*/*"); strings.TrimSpace(w.Body.String()) != "[]" {
		t.Fatalf("no mail is %s", w.Body)
	}
	for i := range 2 {
		if err := send(s, fmt.Sprintf("Subject: %d\r\n\r\nx\r\n", i)); err != nil {
			t.Fatal(err)
		}
	}
	var list []Message
	if err := json.Unmarshal(get(t, s, "/messages", "*/*").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Subject != "1" || list[1].Subject != "0" {
		t.Fatalf("%+v", list)
	}
	var one Message
	if err := json.Unmarshal(get(t, s, "/messages/2", "application/json").Body.Bytes(), &one); err != nil || one.ID != 2 {
		t.Fatalf("%v %+v", err, one)
	}
}

func TestLimitsKeepMemoryBounded(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	if err := send(s, "Subject: big\r\n\r\n"+strings.Repeat(strings.Repeat("x", 76)+"\r\n", maxMessageBytes/78+1)); code(err) != 552 {
		t.Errorf("a message over 1 MiB: %v", err)
	}
	for i := range maxMessages + 5 {
		s.keep(Message{Raw: fmt.Appendf(nil, "%d", i)})
	}
	if list := s.Messages(); len(list) != maxMessages || list[0].ID != maxMessages+5 {
		t.Errorf("%d kept, newest %d", len(list), list[0].ID)
	}
	for range maxKeptBytes/maxMessageBytes + 5 {
		s.keep(Message{Raw: make([]byte, maxMessageBytes)})
	}
	if n := len(s.Messages()); n != maxKeptBytes/maxMessageBytes {
		t.Errorf("%d MiB kept", n)
	}
}

func TestFaultsLookLikeABrokenServer(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	s.Fail(Busy)
	if err := send(s, seat14C); code(err) != 451 || len(s.Messages()) != 0 {
		t.Errorf("busy: %v, %d kept", err, len(s.Messages()))
	}
	s.Fail(Drop)
	if err := send(s, seat14C); err == nil || code(err) != 0 || len(s.Messages()) != 1 {
		t.Errorf("drop: %v, %d kept", err, len(s.Messages()))
	}
	if err := errors.Join(s.Down(), s.Down()); err != nil {
		t.Fatal(err)
	}
	if err := send(s, seat14C); err == nil {
		t.Error("a server that is down took a message")
	}
	s.Fail(None)
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	if err := send(s, seat14C); err != nil || len(s.Messages()) != 2 {
		t.Errorf("up again: %v, %d kept", err, len(s.Messages()))
	}
}

func TestHangLastsUntilReleased(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	s.Fail(Hang)
	sent := make(chan error, 1)
	go func() { sent <- send(s, seat14C) }()
	select {
	case err := <-sent:
		t.Fatalf("answered while it hangs: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Fail(None)
	if err := <-sent; err != nil || len(s.Messages()) != 1 {
		t.Fatalf("%v, %d kept", err, len(s.Messages()))
	}
}

func TestDownEndsClientsThatHangOrSayNothing(t *testing.T) {
	t.Parallel()
	s := newSink(t)
	silent, err := smtp.Dial(strings.TrimPrefix(s.SMTPURL(), "smtp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s.Fail(Hang)
	sent := make(chan error, 1)
	go func() { sent <- send(s, seat14C) }()
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("closing took %s", took)
	}
	if err := silent.Noop(); err == nil {
		t.Error("the connection is still open")
	}
	if err := <-sent; err == nil || len(s.Messages()) != 0 {
		t.Errorf("the message that hung: %v, %d kept", err, len(s.Messages()))
	}
}
