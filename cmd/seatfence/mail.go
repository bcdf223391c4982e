package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"seatfence/internal/httpapi"
	"seatfence/internal/mailsink"
)

// mailbox is the mail sink with its page; empty when the environment names a mail server.
type mailbox struct {
	url  string
	sink *mailsink.Sink
	page *http.Server
	done chan struct{}
}

// startMail starts a mail sink where the environment names no mail server, and names it there.
func startMail(s *session) (m mailbox, err error) {
	if s.environ["SMTP_URL"] != "" {
		return m, nil
	}
	if m.sink, err = mailsink.Start(loopback + ":0"); err != nil {
		return m, err
	}
	listener, err := listenFrom(mailPort)
	if err != nil {
		return m, errors.Join(fmt.Errorf("mail page: %w", err), m.sink.Close())
	}
	s.environ["SMTP_URL"] = m.sink.SMTPURL()
	m.url, m.done = "http://"+listener.Addr().String(), make(chan struct{})
	m.page = httpapi.NewServer(context.WithoutCancel(s.ctx), m.sink, slog.New(slog.DiscardHandler))
	go func() {
		defer close(m.done)
		_ = m.page.Serve(listener) // until close
	}()
	return m, nil
}

func (m mailbox) close() error {
	if m.sink == nil {
		return nil
	}
	err := errors.Join(m.page.Close(), m.sink.Close())
	<-m.done
	return err
}
