// Package demo draws two houses, a theatre and an arena, and puts an event on sale in each, so that a new installation has something to
// sell. It goes through the same use cases as any organizer and may do nothing that one could not.
package demo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
)

// Organizer is who the events belong to.
const Organizer = "Seatfence demo"

// owner has the idempotency keys of the demo, whichever API key its organizer has at the moment.
var owner = uuid.NewSHA1(uuid.NameSpaceURL, []byte("urn:seatfence:demo"))

const (
	weeksAhead = 8
	maxEvents  = 1000 // of the organizer that are looked through
	zone       = "Europe/Berlin"
)

// Load puts the events on sale for an organizer, by its id, and returns them. Those that are still on sale from an earlier start are
// used again.
func Load(ctx context.Context, service *booking.Service, organizer int64) ([]booking.Event, error) {
	caller := booking.Caller{Kind: booking.Organizer, ID: owner, Organizer: organizer}
	old, err := service.Events(ctx, caller, booking.EventPage{}, maxEvents)
	if err != nil {
		return nil, fmt.Errorf("look for demo events: %w", err)
	}
	specs, err := events(time.Now())
	if err != nil {
		return nil, err
	}
	list := make([]booking.Event, len(specs))
	for i, spec := range specs {
		if used, ok := onSale(old, spec.Name); ok {
			list[i] = used
			continue
		}
		if list[i], _, err = service.CreateEvent(ctx, caller, keyOf(spec), spec); err != nil {
			return nil, fmt.Errorf("create demo event: %w", err)
		}
	}
	return list, nil
}

func onSale(list []booking.Event, name string) (booking.Event, bool) {
	for _, e := range list {
		if e.Name == name && e.Status == booking.StatusOnSale && e.SaleEndsAt.After(e.ServerTime) {
			return e, true
		}
	}
	return booking.Event{}, false
}

// keyOf keeps two programs that start at once on one database from making the event twice.
func keyOf(spec booking.NewEvent) booking.Idempotency {
	name := fmt.Sprintf("demo %s %s", spec.Name, spec.StartsAt.Format(time.DateOnly))
	sum := sha256.Sum256([]byte(name))
	return booking.Idempotency{Key: name, Fingerprint: sum[:]}
}

// events are two evenings, some weeks from now: one in the theatre with reduced tickets, one in the arena.
func events(now time.Time) ([]booking.NewEvent, error) {
	place, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("zone of the demo: %w", err)
	}
	evening := func(days, hour, minute int) time.Time {
		y, m, d := now.In(place).AddDate(0, 0, 7*weeksAhead+days).Date()
		return time.Date(y, m, d, hour, minute, 0, 0, place).UTC()
	}
	theatre := booking.NewEvent{
		Name: "The Glass Harbour", Venue: "Theater am Kanal, Berlin", StartsAt: evening(0, 19, 30), House: Theatre(),
	}
	theatre.Types = []string{"adult", "reduced"}
	for _, c := range theatre.House.Categories {
		theatre.Prices = append(theatre.Prices, booking.Price{Category: c.Name, Type: "reduced", Amount: c.Price * 6 / 10})
	}
	arena := booking.NewEvent{
		Name: "Northern Lights Tour", Venue: "Spree Arena, Berlin", StartsAt: evening(1, 20, 0), House: Arena(),
	}
	list := []booking.NewEvent{theatre, arena}
	for i := range list {
		e := &list[i]
		e.Timezone, e.Currency, e.Payment, e.Status = zone, "EUR", booking.PaymentNone, booking.StatusOnSale
		e.SaleStartsAt, e.SaleEndsAt = now.Add(-time.Hour).UTC().Truncate(time.Second), e.StartsAt
	}
	return list, nil
}
