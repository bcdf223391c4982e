package webui

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seatfence/booking"
	"seatfence/seats"
)

func TestPlacesAreNamedAsPeopleDo(t *testing.T) {
	t.Parallel()
	seat := func(section, row, number string) seats.Place {
		return seats.Place{Section: section, Row: row, Number: number}
	}
	c14, c15, a2, block := seat("Stalls", "C", "14"), seat("Stalls", "C", "15"), seat("Circle", "A", "2"), seat("Block 1", "3", "7")
	floor := seat("Floor", "", "")
	for _, c := range []struct {
		places []seats.Place
		here   string
		want   string
	}{
		{nil, "", ""},
		{[]seats.Place{c14}, "", "C14 is"},
		{[]seats.Place{c14, c15}, "", "C14 and C15 are"},
		{[]seats.Place{c14, c15, a2}, "", "Stalls C14, Stalls C15 and Circle A2 are"},
		{[]seats.Place{c14, a2}, "Stalls", "C14 and Circle A2 are"},
		{[]seats.Place{block}, "", "3-7 is"},
		{[]seats.Place{floor}, "", "1 place in Floor is"},
		{[]seats.Place{floor, floor}, "", "2 places in Floor are"},
		{[]seats.Place{floor, c14, floor}, "", "Stalls C14 and 2 places in Floor are"},
	} {
		got := crowdOf(c.places, c.here)
		if said := got.Names + " " + got.Is(); said != c.want && got.Names != c.want {
			t.Errorf("%v: %q, want %q", c.places, said, c.want)
		}
	}
}

func TestTimesAreThoseOfTheVenue(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 5, 1, 17, 30, 0, 0, time.UTC)
	for zone, want := range map[string]string{
		"Europe/Berlin":    "Friday 1 May 2026, 19:30 (UTC+02:00, Europe/Berlin)",
		"Asia/Kathmandu":   "Friday 1 May 2026, 23:15 (UTC+05:45, Asia/Kathmandu)",
		"Pacific/Auckland": "Saturday 2 May 2026, 05:30 (UTC+12:00, Pacific/Auckland)",
	} {
		if got := when(moment, zone); got != want {
			t.Errorf("%s: %q, want %q", zone, got, want)
		}
	}
	hold := booking.Hold{ServerTime: moment}
	for in, want := range map[time.Duration]string{
		10 * time.Minute: "about 10 minutes", 9*time.Minute + 58*time.Second: "about 10 minutes", 3 * time.Minute: "about 3 minutes",
		70 * time.Second: "less than 2 minutes", 0: "less than 2 minutes",
	} {
		if hold.ExpiresAt = moment.Add(in); left(hold) != want {
			t.Errorf("%s: %q, want %q", in, left(hold), want)
		}
	}
}

func TestAddressesAreMasked(t *testing.T) {
	t.Parallel()
	for email, want := range map[string]string{
		"lena@example.com": "l…@example.com", "o@example.com": "o…@example.com", "élan@example.com": "é…@example.com", "": "…", "lena": "…",
	} {
		if got := masked(email); got != want {
			t.Errorf("%q: %q, want %q", email, got, want)
		}
	}
}

func TestALargeSectionIsShownInPagesOfWholeRows(t *testing.T) {
	t.Parallel()
	var house booking.House
	for i := range 4000 {
		house.Seats = append(house.Seats, seats.Seat{ID: seats.ID(i + 1), Place: seats.Place{Row: strconv.Itoa(i / 800)}, State: seats.Free})
	}
	first := rowsOf(house, 0, nil)
	if len(first) != 2 || len(first[1].Chips) != 800 {
		t.Fatalf("the first page has %d rows", len(first))
	}
	if rest := rowsOf(house, int(first[1].Chips[799].ID)+1, nil); len(rest) != 2 || rest[0].Label != "2" {
		t.Errorf("the second page has %d rows", len(rest))
	}
}

func TestEveryRefusalInWordsIsOneOfTheAPI(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	files, err := filepath.Glob("../../booking/*.go") // the rules that a form can break
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../httpapi/errors.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	ours := []string{"no_choice", "no_quantity"}
	domains := []string{booking.CodeSeatUnknown, booking.CodeSeatBusy, booking.CodeSeatTaken, booking.CodeSeatYours, booking.CodeStaleFence, booking.CodeSeatAlone}
	for code, p := range refusals {
		if !strings.Contains(source.String(), strconv.Quote(code)) && !slices.Contains(append(ours, domains...), code) {
			t.Errorf("no answer has the code %s", code)
		}
		if p.title == "" || p.text != "" && !strings.HasSuffix(p.text, ".") {
			t.Errorf("%s says %q", code, p)
		}
	}
}
