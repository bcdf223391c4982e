package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"seatfence/booking"
	"seatfence/internal/app"
	"seatfence/internal/config"
	"seatfence/seats"
)

type eventCommand struct {
	Create createEvent `cmd:"" help:"Make an event of a published plan."`
	Cancel cancelEvent `cmd:"" help:"Cancel an event. A server undoes its holds and bookings, and mails the buyers."`
}

type createEvent struct {
	Organizer  string    `required:"" help:"Name of the organizer whose event it is."`
	Name       string    `required:"" help:"What is played."`
	Plan       string    `required:"" help:"Id of the plan it is sold from."`
	Version    int32     `help:"Version of the plan; by default the newest that is published."`
	Venue      string    `help:"Where; by default the plan's venue."`
	StartsAt   time.Time `required:"" placeholder:"2027-03-01T19:30:00+01:00" help:"When it begins."`
	Timezone   string    `required:"" placeholder:"Europe/Berlin" help:"IANA zone of the venue."`
	Currency   string    `required:"" placeholder:"EUR" help:"ISO 4217."`
	Price      []string  `required:"" sep:"none" placeholder:"CATEGORY[:TYPE]=AMOUNT" help:"What a category costs as a ticket type, in minor units. One for each; the first type that is named is what is sold to whoever names none."`
	SaleStarts time.Time `help:"When the sale begins; by default now."`
	SaleEnds   time.Time `help:"When the sale ends; by default when the event begins."`
	Payment    string    `enum:"none,required" default:"none" help:"Whether buyers can confirm without a payment: none or required."`
	OnSale     bool      `help:"Put it on sale; otherwise it is a draft."`
	OrphanRule bool      `help:"Refuse a choice of seats that leaves a single one alone, unless nothing else is possible."`
	OrderLimit int       `help:"How many seats one order can have."`
}

// Run prints the event's id.
func (c createEvent) Run(s *session) error {
	spec, err := c.spec(time.Now())
	if err != nil {
		return err
	}
	return withOrganizer(s, c.Organizer, func(service *booking.Service, caller booking.Caller) error {
		plan, err := service.Plan(s.ctx, caller, spec.Plan.Plan)
		if err != nil {
			return fmt.Errorf("--plan: %w", err)
		}
		if spec.Venue == "" {
			spec.Venue = plan.Venue
		}
		for _, version := range plan.Versions {
			if spec.Plan.Version == 0 && version.Status == booking.PlanPublished {
				spec.Plan.Version = version.Number
			}
		}
		if spec.Plan.Version == 0 {
			return errors.New("--plan: no version of the plan is published")
		}
		event, _, err := service.CreateEvent(s.ctx, caller, booking.NewIdempotency("create-"+uuid.NewString()), spec)
		if err != nil {
			return err
		}
		fmt.Fprintln(s.stdout, event.ID)
		return nil
	})
}

func (c createEvent) spec(now time.Time) (booking.NewEvent, error) {
	spec := booking.NewEvent{
		Name: c.Name, Venue: c.Venue, StartsAt: c.StartsAt.UTC(), Timezone: c.Timezone, Currency: c.Currency, Payment: c.Payment,
		Status: booking.StatusDraft, SaleStartsAt: c.SaleStarts.UTC(), SaleEndsAt: c.SaleEnds.UTC(), OrphanRule: c.OrphanRule,
	}
	if c.OnSale {
		spec.Status = booking.StatusOnSale
	}
	if c.SaleStarts.IsZero() {
		spec.SaleStartsAt = now.UTC()
	}
	if c.SaleEnds.IsZero() {
		spec.SaleEndsAt = spec.StartsAt
	}
	if c.OrderLimit != 0 {
		spec.OrderLimit = &c.OrderLimit
	}
	plan, err := booking.ParsePlanID(c.Plan)
	if err != nil {
		return spec, fmt.Errorf("--plan: %w", err)
	}
	spec.Plan = &booking.PlanRef{Plan: plan, Version: c.Version}
	spec.PriceList, err = priceList(c.Price)
	return spec, err
}

// priceList reads prices such as "Stalls=4500" and "Stalls:child=2000".
func priceList(texts []string) (list booking.PriceList, err error) {
	known := map[string]bool{}
	for _, text := range texts {
		what, amount, ok := cutLast(text, "=")
		price := booking.Price{Category: what}
		if price.Amount, err = strconv.ParseInt(amount, 10, 64); err != nil || !ok {
			return list, fmt.Errorf("--price %q: not of the form CATEGORY[:TYPE]=AMOUNT", text)
		}
		if category, kind, typed := cutLast(what, ":"); typed {
			price.Category, price.Type = category, kind
			if !known[kind] {
				known[kind] = true
				list.Types = append(list.Types, kind)
			}
		}
		list.Prices = append(list.Prices, price)
	}
	return list, nil
}

func cutLast(text, mark string) (before, after string, found bool) {
	i := strings.LastIndex(text, mark)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(mark):], true
}

type cancelEvent struct {
	Organizer string `required:"" help:"Name of the organizer whose event it is."`
	Event     string `arg:"" help:"The event's id."`
}

// Run cancels the event. That cannot be undone.
func (c cancelEvent) Run(s *session) error {
	id, err := seats.ParseEventID(c.Event)
	if err != nil {
		return fmt.Errorf("event: %w", err)
	}
	return withOrganizer(s, c.Organizer, func(service *booking.Service, caller booking.Caller) error {
		status := booking.StatusCancelled
		event, err := service.UpdateEvent(s.ctx, caller, id, booking.EventChange{Status: &status})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.stdout, "%s is cancelled; a server undoes its holds and bookings\n", event.ID)
		return nil
	})
}

func withOrganizer(s *session, name string, fn func(*booking.Service, booking.Caller) error) error {
	cfg, err := config.LoadDatabase(s.environ)
	if err != nil {
		return err
	}
	return app.WithOrganizer(s.ctx, cfg, name, fn)
}
