package httpapi

import (
	"context"
	"slices"

	"seatfence/booking"
	"seatfence/seats"
)

const headerReplayed = "Idempotent-Replayed"

// replay is the value of the header that marks a replayed answer, or nil.
func replay(replayed bool) *string {
	if !replayed {
		return nil
	}
	text := "true"
	return &text
}

// ListEvents answers GET /v1/events.
func (s *server) ListEvents(ctx context.Context, r ListEventsRequestObject) (ListEventsResponseObject, error) {
	var page booking.EventPage
	if r.Params.Cursor != nil {
		var err error
		if page, err = readCursor[booking.EventPage](*r.Params.Cursor); err != nil {
			return nil, err
		}
	}
	n := pageSize(r.Params.Limit)
	events, err := s.Booking.Events(ctx, callOf(ctx).caller, page, n+1)
	if err != nil {
		return nil, err
	}
	answer := EventList{Events: make([]Event, 0, n)}
	for _, e := range events[:min(n, len(events))] {
		answer.Events = append(answer.Events, eventOf(e))
	}
	if len(events) > n {
		last := events[n-1]
		answer.NextCursor, err = cursorOf(booking.EventPage{AfterStart: last.StartsAt, AfterID: int64(last.ID)})
	}
	return ListEvents200JSONResponse(answer), err
}

// CreateEvent answers POST /v1/events.
func (s *server) CreateEvent(ctx context.Context, r CreateEventRequestObject) (CreateEventResponseObject, error) {
	call, b := callOf(ctx), r.Body
	event := booking.NewEvent{
		Name: b.Name, Venue: b.Venue, StartsAt: b.StartsAt, Timezone: b.Timezone, Currency: b.Currency, Payment: string(b.Payment),
		Status: string(b.Status), SaleStartsAt: b.SaleStartsAt, SaleEndsAt: b.SaleEndsAt,
	}
	if b.Plan != nil {
		id, err := booking.ParsePlanID(b.Plan.Id)
		if err != nil {
			return nil, invalid("/plan/id", "unknown_plan", "there is no such plan")
		}
		event.Plan = &booking.PlanRef{Plan: id, Version: b.Plan.Version}
	}
	if b.Categories != nil {
		event.House.Categories = *b.Categories
	}
	if b.Sections != nil {
		event.House.Sections = *b.Sections
	}
	if b.Areas != nil {
		event.House.Areas = *b.Areas
	}
	event.OrphanRule, event.OrderLimit = b.OrphanRule != nil && *b.OrphanRule, b.OrderLimit
	event.PriceList = priceListOf(b.Types, b.Prices)
	texts := slices.Concat(textsOf(event.House), textsOfPrices(event.PriceList), []text{{"/name", &event.Name}, {"/venue", &event.Venue}})
	if err := clean(texts...); err != nil {
		return nil, err
	}
	made, replayed, err := s.Booking.CreateEvent(ctx, call.caller, call.key, event)
	return CreateEvent201JSONResponse{Body: eventOf(made), Headers: CreateEvent201ResponseHeaders{replay(replayed)}}, err
}

// GetEvent answers GET /v1/events/{event}.
func (s *server) GetEvent(ctx context.Context, r GetEventRequestObject) (GetEventResponseObject, error) {
	id, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	e, err := s.Booking.Event(ctx, callOf(ctx).caller, id)
	if err != nil {
		return nil, err
	}
	prices := pricesOf(e.PriceList)
	return GetEvent200JSONResponse{
		Id: e.ID.String(), Name: e.Name, Venue: e.Venue, StartsAt: e.StartsAt, Timezone: e.Timezone, Currency: e.Currency,
		Payment: Payment(e.Payment), Status: EventStatus(e.Status), SaleStartsAt: e.SaleStartsAt, SaleEndsAt: e.SaleEndsAt,
		OrphanRule: e.OrphanRule, OrderLimit: e.OrderLimit, Plan: planRefOf(e.Plan), ServerTime: e.ServerTime,
		Types: prices.Types, Prices: prices.Prices, Sections: sectionsOf(e.Sections),
	}, nil
}

// SetPrices answers PUT /v1/events/{event}/prices.
func (s *server) SetPrices(ctx context.Context, r SetPricesRequestObject) (SetPricesResponseObject, error) {
	id, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	list := priceListOf(&r.Body.Types, &r.Body.Prices)
	if err := clean(textsOfPrices(list)...); err != nil {
		return nil, err
	}
	list, err = s.Booking.SetPrices(ctx, callOf(ctx).caller, id, list)
	return SetPrices200JSONResponse(pricesOf(list)), err
}

// ChangePlan answers PUT /v1/events/{event}/plan.
func (s *server) ChangePlan(ctx context.Context, r ChangePlanRequestObject) (ChangePlanResponseObject, error) {
	id, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	plan, err := booking.ParsePlanID(r.Body.Plan)
	if err != nil {
		return nil, invalid("/plan", "unknown_plan", "there is no such plan")
	}
	list := priceListOf(nil, r.Body.Prices)
	if err := clean(textsOfPrices(list)...); err != nil {
		return nil, err
	}
	done, err := s.Booking.ChangePlan(ctx, callOf(ctx).caller, id, booking.PlanChange{
		Plan: plan, Version: r.Body.Version, Prices: list.Prices, DryRun: r.Params.DryRun != nil && *r.Params.DryRun,
	})
	return ChangePlan200JSONResponse{
		Kept: done.Kept, Added: done.Added, Dropped: done.Dropped, Renamed: done.Renamed, Recategorised: done.Recategorised,
	}, err
}

func priceListOf(types *[]string, prices *[]NewPrice) (list booking.PriceList) {
	if types != nil {
		list.Types = *types
	}
	if prices == nil {
		return list
	}
	for _, p := range *prices {
		price := booking.Price{Category: p.Category, From: p.From, Amount: p.Price}
		if p.Type != nil {
			price.Type = *p.Type
		}
		list.Prices = append(list.Prices, price)
	}
	return list
}

func pricesOf(list booking.PriceList) PriceList {
	answer := PriceList{Types: list.Types, Prices: make([]Price, len(list.Prices))}
	for i, p := range list.Prices {
		answer.Prices[i] = Price{Category: p.Category, Type: p.Type, Price: p.Amount, From: p.From, Current: p.Current}
	}
	return answer
}

// UpdateEvent answers PATCH /v1/events/{event}.
func (s *server) UpdateEvent(ctx context.Context, r UpdateEventRequestObject) (UpdateEventResponseObject, error) {
	id, err := seats.ParseEventID(r.Event)
	if err != nil {
		return nil, err
	}
	b := r.Body
	if err := clean(text{"/name", b.Name}, text{"/venue", b.Venue}); err != nil {
		return nil, err
	}
	event, err := s.Booking.UpdateEvent(ctx, callOf(ctx).caller, id, booking.EventChange{
		Name: b.Name, Venue: b.Venue, StartsAt: b.StartsAt, Status: (*string)(b.Status), SaleStartsAt: b.SaleStartsAt, SaleEndsAt: b.SaleEndsAt,
		OrphanRule: b.OrphanRule, OrderLimit: b.OrderLimit,
	})
	return UpdateEvent200JSONResponse(eventOf(event)), err
}

func eventOf(e booking.Event) Event {
	return Event{
		Id: e.ID.String(), Name: e.Name, Venue: e.Venue, StartsAt: e.StartsAt, Timezone: e.Timezone, Currency: e.Currency,
		Payment: Payment(e.Payment), Status: EventStatus(e.Status), SaleStartsAt: e.SaleStartsAt, SaleEndsAt: e.SaleEndsAt,
		OrphanRule: e.OrphanRule, OrderLimit: e.OrderLimit, Plan: planRefOf(e.Plan), ServerTime: e.ServerTime,
	}
}

func planRefOf(ref *booking.PlanRef) *PlanRef {
	if ref == nil {
		return nil
	}
	return &PlanRef{Id: ref.Plan.String(), Version: ref.Version}
}

func sectionsOf(sections []booking.Section) []Section {
	list := make([]Section, len(sections))
	for i, s := range sections {
		list[i] = Section{
			Name: s.Name, Area: s.Area, Category: s.Category, Price: s.Price,
			Total: s.Total, Free: s.Free, Held: s.Held, Booked: s.Booked, Blocked: s.Blocked,
		}
	}
	return list
}
