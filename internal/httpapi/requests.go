package httpapi

import (
	"encoding/json"

	"seatfence/booking"
	"seatfence/seats"
)

// seatWish is a seat as a request names it: its id alone, or an object with what is expected of it.
type seatWish struct {
	ID    seats.ID `json:"id"`
	Type  string   `json:"type"`
	Fence *int64   `json:"fence"`
}

// UnmarshalJSON reads either form.
func (w *seatWish) UnmarshalJSON(raw []byte) error {
	if raw[0] != '{' {
		return json.Unmarshal(raw, &w.ID)
	}
	type object seatWish // without this method
	return json.Unmarshal(raw, (*object)(w))
}

func wants(wishes []seatWish) []seats.Want {
	if len(wishes) == 0 {
		return nil
	}
	list := make([]seats.Want, len(wishes))
	for i, w := range wishes {
		composed(&w.Type)
		list[i] = seats.Want{ID: w.ID, Fence: seats.AnyFence, Type: w.Type}
		if w.Fence != nil {
			list[i].Fence = *w.Fence
		}
	}
	return list
}

func places(ga *AreaPlaces) *booking.AreaPlaces {
	if ga == nil {
		return nil
	}
	places := &booking.AreaPlaces{Area: ga.Area, Quantity: ga.Quantity}
	if ga.Type != nil {
		places.Type = *ga.Type
		composed(&places.Type)
	}
	return places
}

type holdRequest struct {
	Seats       []seatWish     `json:"seats"`
	GA          *AreaPlaces    `json:"ga"`
	Best        *bestAvailable `json:"best_available"`
	Session     *string        `json:"session"`
	Alternative bool           `json:"hold_alternative"`
}

// bestAvailable is a wish for the best free seats.
type bestAvailable struct {
	Quantity   int         `json:"quantity"`
	Types      []TypeCount `json:"types"`
	Category   string      `json:"category"`
	Section    string      `json:"section"`
	Accessible int         `json:"accessible"`
	Together   bool        `json:"together"`
}

func (b *bestAvailable) wish() *booking.BestWish {
	if b == nil {
		return nil
	}
	composed(&b.Category)
	composed(&b.Section)
	wish := booking.BestWish{Quantity: b.Quantity, Category: b.Category, Section: b.Section, Accessible: b.Accessible, Together: b.Together}
	for _, t := range b.Types {
		composed(&t.Type)
		wish.Types = append(wish.Types, booking.TypeCount{Type: t.Type, Quantity: t.Quantity})
	}
	return &wish
}

// toHold is the request in the words of the domain.
func (r holdRequest) toHold(event seats.EventID) (booking.HoldRequest, error) {
	if r.Alternative && r.Seats == nil {
		return booking.HoldRequest{}, invalid("/hold_alternative", "without_seats", "only named seats have an alternative")
	}
	req := booking.HoldRequest{Event: event, Seats: wants(r.Seats), Places: places(r.GA), Best: r.Best.wish()}
	if r.Session != nil {
		page, err := booking.ParsePage(*r.Session)
		if err != nil {
			return req, err
		}
		req.Page = &page
	}
	return req, nil
}

type bookingRequest struct {
	Hold             *string      `json:"hold"`
	Event            *string      `json:"event"`
	Seats            []seatWish   `json:"seats"`
	GA               *AreaPlaces  `json:"ga"`
	Buyer            BuyerContact `json:"buyer"`
	PaymentReference *string      `json:"payment_reference"`
	ExpectedTotal    *int64       `json:"expected_total"`
}

// toBook is the request in the words of the domain. The contract has seen to it that it names a hold, or an event and what to book of it;
// that it does not name both is left to here.
func (b bookingRequest) toBook() (req booking.BookRequest, err error) {
	req = booking.BookRequest{Seats: wants(b.Seats), Places: places(b.GA), Reference: b.PaymentReference, ExpectedTotal: b.ExpectedTotal}
	if err := clean(text{"/payment_reference", b.PaymentReference}); err != nil {
		return req, err
	}
	if req.Name, req.Email, err = booking.CleanBuyer(b.Buyer.Name, b.Buyer.Email); err != nil {
		return req, err
	}
	if b.Hold == nil {
		req.Event, err = seats.ParseEventID(*b.Event)
		return req, err
	}
	if b.Event != nil || b.Seats != nil || b.GA != nil {
		return req, invalid("/hold", "hold_or_event", "a hold is booked as it is: without event, seats and ga")
	}
	hold, err := booking.ParseHoldID(*b.Hold)
	req.Hold = &hold
	return req, err
}
