package httpapi

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"seatfence/booking"
	"seatfence/internal/session"
	"seatfence/seats"
)

var benchBody = `{"event":"` + seats.EventID(1).String() + `","seats":[214],"buyer":{"name":"Lena","email":"lena@example.com"}}`

// soldAlready is the API with a sale that costs nothing: what is left is what a request costs the server itself.
type soldAlready struct{ *server }

func (s soldAlready) CreateBooking(_ context.Context, r CreateBookingRequestObject) (CreateBookingResponseObject, error) {
	req, err := r.Body.toBook()
	if err != nil {
		return nil, err
	}
	taken := seats.Taken{ID: req.Seats[0].ID, Place: seats.Place{Section: "Stalls", Row: "C", Number: "14"}, Type: "standard", Price: 4500, Fence: 1}
	made := booking.Booking{
		Event: req.Event, Number: "K7M2-QX4P", Status: booking.BookingConfirmed, Seats: []seats.Ticket{{Taken: taken, Code: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}},
		Total: 4500, Currency: "EUR", Timezone: "Europe/Berlin", Name: req.Name, Email: req.Email, CreatedAt: time.Now().UTC(),
	}
	return CreateBooking201JSONResponse{Body: bookingOf(made)}, nil
}

func benchServer(b *testing.B) (*echo.Echo, string) {
	b.Helper()
	sessions, err := session.NewSigner(make([]byte, session.MinKey), false)
	if err != nil {
		b.Fatal(err)
	}
	doc, err := loadContract()
	if err != nil {
		b.Fatal(err)
	}
	s := &server{Deps: Deps{
		Sessions: sessions, Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), Metrics: NewMetrics(),
		PublicURL: &url.URL{Scheme: "http", Host: "localhost"}, InFlight: DefaultInFlight,
	}, places: make(chan struct{}, DefaultInFlight)}
	token, _ := sessions.New()
	return s.routed(doc, soldAlready{s}), token
}

// BenchmarkBooking is all that a direct booking of one seat costs besides net/http, Redis and Postgres.
func BenchmarkBooking(b *testing.B) {
	e, token := benchServer(b)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/v1/bookings", bytes.NewReader([]byte(benchBody)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set(headerKey, "key-1")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != http.StatusCreated {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

// BenchmarkReadBody is the part of it that holds the body to the contract.
func BenchmarkReadBody(b *testing.B) {
	doc, err := loadContract()
	if err != nil {
		b.Fatal(err)
	}
	schema := operations(doc)["POST /v1/bookings"].schema
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeStrict([]byte(benchBody)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("validate", func(b *testing.B) {
		value, err := decodeStrict([]byte(benchBody))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := validate(schema, value); err != nil {
				b.Fatal(err)
			}
		}
	})
}
