package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/seats"
)

// opening is what `seatfence dev` says when it is ready.
type opening struct {
	url, metricsURL, mailURL string // mailURL is empty when mails go elsewhere
	apiKey                   string
	ownerPassword            string
	events                   []booking.Event
	seat                     *seats.Seat // free, of the first event; nil if it is sold out
	data, database           string
	folders                  string // where all that is kept is, in words
}

var openingText = template.Must(template.New("opening").Parse(`
Seatfence is open.

  pages     {{.URL}}/
  API       {{.URL}}/v1/events
  docs      {{.URL}}/docs
{{- with .MailURL}}
  mail      {{.}}/
{{- end}}
  metrics   {{.MetricsURL}}/metrics
  log       {{.Log}}
  database  DATABASE_URL='{{.Database}}'
  API key   {{.APIKey}}
  staff     {{.URL}}/staff as {{.OwnerEmail}}, password {{.OwnerPassword}}

On sale:
{{- range .Events}}
  {{.ID}}  {{.Name}}, {{.Venue}}
{{- end}}
{{- with .Seat}}

Buy a seat ({{.Label}}):

  curl -s {{$.URL}}/v1/bookings \
    -H 'Authorization: Bearer {{$.APIKey}}' \
    -H 'Idempotency-Key: {{$.Key}}' \
    -H 'Content-Type: application/json' \
    -d '{"event":"{{(index $.Events 0).ID}}","seats":[{{.ID}}],"buyer":{"name":"Lena","email":"lena@example.com"}}'

The next buyer is told that it is taken, and what is free nearby:

  TOKEN=$(curl -sX POST {{$.URL}}/v1/sessions | sed 's/.*"token":"\([^"]*\)".*/\1/')
  curl -s {{$.URL}}/v1/bookings \
    -H "Authorization: Bearer $TOKEN" \
    -H 'Idempotency-Key: next-buyer' \
    -H 'Content-Type: application/json' \
    -d '{"event":"{{(index $.Events 0).ID}}","seats":[{{.ID}}],"buyer":{"name":"Omar","email":"omar@example.com"}}'
{{- end}}

Ctrl-C stops everything. {{if .MailURL}}The mails go with it; all other data is{{else}}The data is{{end}} kept in {{.Data}}.

`))

// print writes one line of JSON, or the same for people.
func (o opening) print(w io.Writer, asJSON bool) error {
	if !asJSON {
		return openingText.Execute(w, map[string]any{
			"URL": o.url, "MailURL": o.mailURL, "MetricsURL": o.metricsURL, "Log": filepath.Join(o.data, "seatfence.log"), "Database": o.database,
			"APIKey": o.apiKey, "OwnerEmail": ownerEmail, "OwnerPassword": o.ownerPassword, "Events": o.events, "Seat": o.seat, "Key": uuid.NewString(), "Data": o.folders,
		})
	}
	type event struct {
		ID   seats.EventID `json:"id"`
		Name string        `json:"name"`
	}
	line := struct {
		URL     string  `json:"url"`
		APIKey  string  `json:"api_key"`
		Events  []event `json:"events"`
		MailURL string  `json:"mail_url"`
	}{URL: o.url, APIKey: o.apiKey, MailURL: o.mailURL}
	for _, e := range o.events {
		line.Events = append(line.Events, event{e.ID, e.Name})
	}
	return json.NewEncoder(w).Encode(line)
}

// freeSeat finds a seat to show the sale with, or none.
func freeSeat(ctx context.Context, service *booking.Service, event seats.EventID) (*seats.Seat, error) {
	house, err := service.Seats(ctx, booking.Caller{Kind: booking.Buyer}, event, nil)
	if err != nil {
		return nil, err
	}
	for _, seat := range house.Seats {
		if seat.State == seats.Free {
			return &seat, nil
		}
	}
	return nil, nil
}

const keyBytes = 32

// keptKey is the signing key in the data folder, made at the first start, so that sessions live on.
func keptKey(dir string) (string, error) {
	path := filepath.Join(dir, "signing_key")
	kept, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(kept)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("signing key: %w", err)
	}
	raw := make([]byte, keyBytes)
	rand.Read(raw)
	text := hex.EncodeToString(raw)
	return text, os.WriteFile(path, []byte(text), 0o600)
}
