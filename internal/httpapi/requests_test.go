package httpapi

import (
	"testing"

	"seatfence/booking"
	"seatfence/seats"
)

func TestBookingNamesAHoldOrAnEventNotBoth(t *testing.T) {
	t.Parallel()
	hold, event := booking.HoldID{Event: 1}.String(), seats.EventID(1).String()
	lena := BuyerContact{Name: "Lena", Email: "lena@example.com"}
	total := int64(1)
	for name, b := range map[string]bookingRequest{
		"event": {Hold: &hold, Event: &event, Buyer: lena},
		"seats": {Hold: &hold, Seats: []seatWish{{ID: 1}}, Buyer: lena},
		"ga":    {Hold: &hold, GA: &AreaPlaces{Area: 1, Quantity: 1}, Buyer: lena},
	} {
		if _, err := b.toBook(); err == nil {
			t.Errorf("hold and %s were taken", name)
		}
	}
	req, err := bookingRequest{Hold: &hold, ExpectedTotal: &total, Buyer: lena}.toBook()
	if err != nil || *req.Hold != (booking.HoldID{Event: 1}) || *req.ExpectedTotal != total {
		t.Errorf("a hold and what it should cost: %+v, %v", req, err)
	}
	req, err = bookingRequest{Event: &event, Seats: []seatWish{{ID: 7}}, Buyer: lena}.toBook()
	if err != nil || req.Event != 1 || req.Seats[0] != (seats.Want{ID: 7, Fence: seats.AnyFence}) {
		t.Errorf("%+v, %v", req, err)
	}
}
