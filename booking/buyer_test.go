package booking_test

import (
	"errors"
	"strings"
	"testing"

	"seatfence/booking"
)

func TestBuyerIsStoredCleanOrRefused(t *testing.T) {
	t.Parallel()
	const good = "lena@example.com"
	for _, c := range []struct {
		name, email string
		want        string // the name as stored, or the code of the refusal
	}{
		{"  Lena ", good, "Lena"},
		{"Z\u0307o\u0301łć", good, "Żółć"},
		{"李小龍", good, "李小龍"},
		{"L", good, "L"},
		{"👩\u200d🚀", good, "👩\u200d🚀"},
		{"<script>{{7*7}}", good, "<script>{{7*7}}"},
		{"'; DROP TABLE seats; --", good, "'; DROP TABLE seats; --"},
		{strings.Repeat("é", booking.MaxNameRunes), good, strings.Repeat("é", booking.MaxNameRunes)},
		{strings.Repeat("é", booking.MaxNameRunes+1), good, "name_too_long"},
		{"a" + strings.Repeat("\u0301", 500), good, "name_too_long"},
		{"", good, "name_missing"},
		{" \u200b ", good, "name_missing"},
		{"\u0301", good, "name_missing"},
		{"Lena\r\nBcc: x@example.com", good, "bad_name"},
		{"Lena\x00", good, "bad_name"},
		{"Lena\u202egro.elpmaxe", good, "bad_name"},
		{"Lena\u2028", good, "Lena"},
		{"Le\u2028na", good, "bad_name"},
		{"Le\xffna", good, "bad_name"},
		{"Lena", " " + good + "\n", "Lena"},
		{"Lena", "", "email_missing"},
		{"Lena", "lena", "bad_email"},
		{"Lena", "lena@", "bad_email"},
		{"Lena", "@example.com", "bad_email"},
		{"Lena", "a@b@example.com", "bad_email"},
		{"Lena", "Lena <lena@example.com>", "bad_email"},
		{"Lena", "lena@example.com, omar@example.com", "bad_email"},
		{"Lena", "lena@example.com\r\nBcc: omar@example.com", "bad_email"},
		{"Lena", `"le na"@example.com`, "bad_email"},
		{"Lena", "lena@[127.0.0.1]", "bad_email"},
		{"Lena", "léna@example.com", "bad_email"},
		{"Lena", "lena\x00@example.com", "bad_email"},
		{"Lena", strings.Repeat("a", 255) + "@example.com", "email_too_long"},
	} {
		got, email, err := booking.CleanBuyer(c.name, c.email)
		if refusal, ok := errors.AsType[*booking.InvalidError](err); ok {
			got = refusal.Code
		} else if err != nil || email != good {
			t.Errorf("%q, %q gave e-mail %q, %v", c.name, c.email, email, err)
		}
		if got != c.want {
			t.Errorf("%q, %q gave %q, want %q", c.name, c.email, got, c.want)
		}
	}
}
