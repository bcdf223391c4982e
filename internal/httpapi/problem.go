package httpapi

import (
	"time"

	"seatfence/booking"
	"seatfence/seats"
	"seatfence/seats/plan"
)

// problem is the body of every refusal (RFC 9457).
type problem struct {
	Type         string        `json:"type"`
	Title        string        `json:"title"`
	Status       int           `json:"status"`
	Code         string        `json:"code"`
	Detail       string        `json:"detail"`
	RequestID    string        `json:"request_id"`
	Seats        []lostSeat    `json:"seats,omitempty"`
	Alternatives []alternative `json:"alternatives,omitempty"`
	Instead      *Hold         `json:"alternative_hold,omitempty"`
	Errors       []fault       `json:"errors,omitempty"`
	Report       *plan.Report  `json:"report,omitempty"`
}

// lostSeat is a seat that the caller did not get. Label is left out where nobody has looked it up.
type lostSeat struct {
	ID        seats.ID        `json:"id"`
	Label     string          `json:"label,omitempty"`
	Reason    string          `json:"reason"`
	Fence     int64           `json:"fence,omitempty"`
	HeldUntil *time.Time      `json:"held_until,omitempty"`
	Hold      *booking.HoldID `json:"hold,omitempty"`
	Change    string          `json:"change,omitempty"`
	Becomes   string          `json:"becomes,omitempty"`
}

// alternative is a free seat nearby.
type alternative struct {
	ID    seats.ID `json:"id"`
	Label string   `json:"label"`
	seats.Place
	Price int64 `json:"price"`
}

// fault is one place where the request is wrong: a JSON pointer into its body, or a parameter.
type fault struct {
	Pointer   *string `json:"pointer,omitempty"`
	Parameter string  `json:"parameter,omitempty"`
	Code      string  `json:"code,omitempty"`
	Detail    string  `json:"detail"`
}

func (p *problem) addSeats(refusal *booking.SeatsError) {
	for _, s := range refusal.Seats {
		lost := lostSeat{ID: s.ID, Label: s.Label(), Reason: s.Reason, Fence: s.Fence, Hold: s.Hold, Change: s.Change}
		if s.Becomes != nil {
			lost.Becomes = s.Becomes.Label()
		}
		if s.HeldUntil != nil {
			until := s.HeldUntil.UTC()
			lost.HeldUntil = &until
		}
		p.Seats = append(p.Seats, lost)
	}
	if refusal.Instead != nil {
		hold := holdOf(*refusal.Instead)
		p.Instead = &hold
	}
	for _, s := range refusal.Alternatives {
		p.Alternatives = append(p.Alternatives, alternative{ID: s.ID, Label: s.Label(), Place: s.Place, Price: s.Price})
	}
}
