package booking

// StandardType is the ticket type of an event that names none.
const StandardType = standardType

// MostSeats is how many seats one order of the event can have: the event's own limit or the server's.
func (s *Service) MostSeats(event Event) int {
	if event.OrderLimit == nil {
		return s.limits.Seats
	}
	return min(*event.OrderLimit, s.limits.Seats)
}
