// Package demo draws two houses, a theatre and an arena, and puts an event on sale in each, so that a new installation has something to
// sell. The arena is sold as simply as can be; the theatre has ticket types, an early-bird tier, and leaves no seat alone. The package goes
// through the same use cases as any organizer and may do nothing that one could not.
package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/seats/plan"
)

// Organizer is who the events belong to.
const Organizer = "Seatfence demo"

// owner has the idempotency keys of the demo, whichever API key its organizer has at the moment.
var owner = uuid.NewSHA1(uuid.NameSpaceURL, []byte("urn:seatfence:demo"))

const (
	weeksAhead = 8
	earlyUntil = 4    // weeks before the event
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
		if spec.Plan, err = publish(ctx, service, caller, spec.house); err != nil {
			return nil, fmt.Errorf("publish demo plan: %w", err)
		}
		if list[i], _, err = service.CreateEvent(ctx, caller, keyOf(spec.Name, spec.StartsAt), spec.NewEvent); err != nil {
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

// publish keeps a drawing as a version of its plan that events can be made of.
func publish(ctx context.Context, service *booking.Service, caller booking.Caller, drawn plan.Plan) (*booking.PlanRef, error) {
	var document bytes.Buffer
	if err := drawn.Export(&document); err != nil {
		return nil, err
	}
	drawn, report, err := plan.Import(ctx, &document, plan.Options{})
	if err != nil {
		return nil, err
	}
	key := keyOf(drawn.Name+" plan", time.Now())
	version, _, err := service.ImportPlan(ctx, caller, key, booking.PlanImport{Document: drawn, Report: report})
	if err != nil {
		return nil, err
	}
	_, err = service.PublishPlan(ctx, caller, version.Plan, version.Number)
	return &booking.PlanRef{Plan: version.Plan, Version: version.Number}, err
}

// keyOf keeps two programs that start at once on one database from making the same thing twice.
func keyOf(what string, day time.Time) booking.Idempotency {
	name := fmt.Sprintf("demo %s %s", what, day.Format(time.DateOnly))
	sum := sha256.Sum256([]byte(name))
	return booking.Idempotency{Key: name, Fingerprint: sum[:]}
}

// prices are the theatre's, with adult tickets dearer from a time on.
func prices(later time.Time) booking.PriceList {
	const adult, reduced = "adult", "reduced"
	list := booking.PriceList{Types: []string{adult, reduced}}
	for _, p := range theatrePrices {
		list.Prices = append(list.Prices,
			booking.Price{Category: p.category, Type: adult, Amount: p.early},
			booking.Price{Category: p.category, Type: adult, Amount: p.adult, From: &later},
			booking.Price{Category: p.category, Type: reduced, Amount: p.reduced})
	}
	return list
}

// evening is an event, and the house that it is in.
type evening struct {
	booking.NewEvent
	house plan.Plan
}

// events are two evenings, some weeks from now.
func events(now time.Time) ([]evening, error) {
	place, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("zone of the demo: %w", err)
	}
	at := func(days, hour, minute int) time.Time {
		y, m, d := now.In(place).AddDate(0, 0, days).Date()
		return time.Date(y, m, d, hour, minute, 0, 0, place).UTC()
	}
	theatre := booking.NewEvent{
		Name: "The Glass Harbour", Venue: "Theater am Kanal, Berlin", StartsAt: at(7*weeksAhead, 19, 30), OrphanRule: true,
		PriceList: prices(at(7*(weeksAhead-earlyUntil), 0, 0)),
	}
	arena := booking.NewEvent{
		Name: "Northern Lights Tour", Venue: "Spree Arena, Berlin", StartsAt: at(7*weeksAhead+1, 20, 0),
		PriceList: booking.PriceList{Prices: arenaPrices},
	}
	list := []evening{{theatre, Theatre()}, {arena, Arena()}}
	for i := range list {
		e := &list[i]
		e.Timezone, e.Currency, e.Payment, e.Status = zone, "EUR", booking.PaymentNone, booking.StatusOnSale
		e.SaleStartsAt, e.SaleEndsAt = now.Add(-time.Hour).UTC().Truncate(time.Second), e.StartsAt
	}
	return list, nil
}
