package httpapi

import (
	"strings"
	"testing"

	"seatfence/booking"
	"seatfence/seats"
)

func TestContactsThatBreakAMailAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, email string
		want        string // the name as stored; "" if refused
	}{
		{"Lena", "lena@example.com", "Lena"},
		{"Z\u0307o\u0301\u0142c\u0301", "zolc@example.com", "\u017b\u00f3\u0142\u0107"},
		{" 李小龍 ", "li@example.com", "李小龍"},
		{"\U0001f469\u200d\U0001f680", "a@example.com", "\U0001f469\u200d\U0001f680"},
		{"Robert'); DROP TABLE seats;--", "bobby@example.com", "Robert'); DROP TABLE seats;--"},
		{"ليلى\u200f", "l@example.com", "ليلى\u200f"},
		{strings.Repeat("x", 200), "x@example.com", strings.Repeat("x", 200)},
		{strings.Repeat("x", 201), "x@example.com", ""},
		{strings.Repeat("e\u0301", 201), "x@example.com", ""},
		{"", "x@example.com", ""},
		{" \u3000", "x@example.com", ""},
		{"Lena\r\nBcc: omar@example.com", "lena@example.com", ""},
		{"Lena\u202egnp", "lena@example.com", ""},
		{"Lena\u2066", "lena@example.com", ""},
		{"Le\u0085na", "lena@example.com", ""},
		{"Lena", "lena", ""},
		{"Lena", "lena@", ""},
		{"Lena", "lena@example.com, omar@example.com", ""},
		{"Lena", "Lena <lena@example.com>", ""},
		{"Lena", "lena@@example.com", ""},
		{"Lena", "lena@example.com\r\nBcc: omar@example.com", ""},
		{"Lena", "lena @example.com", ""},
		{"Lena", `"lena x"@example.com`, ""},
	} {
		name, _, err := contact(BuyerContact{Name: c.name, Email: c.email})
		if (err == nil) != (c.want != "") || name != c.want {
			t.Errorf("%q <%s>: %q, %v, want %q", c.name, c.email, name, err, c.want)
		}
	}
}

func TestBookingNamesAHoldOrAnEventNotBoth(t *testing.T) {
	t.Parallel()
	hold, event := booking.HoldID{Event: 1}.String(), seats.EventID(1).String()
	lena := BuyerContact{Name: "Lena", Email: "lena@example.com"}
	total := int64(1)
	for name, b := range map[string]bookingRequest{
		"event": {Hold: &hold, Event: &event, Buyer: lena},
		"seats": {Hold: &hold, Seats: []seatWish{{ID: 1}}, Buyer: lena},
		"ga":    {Hold: &hold, GA: &AreaPlaces{Area: 1, Quantity: 1}, Buyer: lena},
		"total": {Hold: &hold, ExpectedTotal: &total, Buyer: lena},
	} {
		if _, err := b.toBook(); err == nil {
			t.Errorf("hold and %s were taken", name)
		}
	}
	req, err := bookingRequest{Event: &event, Seats: []seatWish{{ID: 7}}, Buyer: lena}.toBook()
	if err != nil || req.Event != 1 || req.Seats[0] != (seats.Want{ID: 7, Fence: seats.AnyFence, Type: seats.Standard}) {
		t.Errorf("%+v, %v", req, err)
	}
}
