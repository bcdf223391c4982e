package plan

import (
	"cmp"
	"slices"
	"strconv"

	"seatfence/seats"
)

// Code is the stable name of a kind of defect.
type Code string

// The codes. They are part of the contract: new ones may come, none changes its meaning.
const (
	NotReadable     Code = "not_readable" // not a plan of any known format, or broken off
	TooLarge        Code = "too_large"    // more bytes than MaxBytes, or more parts than the limits
	TooManySeats    Code = "too_many_seats"
	NoSeats         Code = "no_seats"
	WrongType       Code = "wrong_type" // as a warning: understood all the same
	UnknownKey      Code = "unknown_key"
	BadName         Code = "bad_name"
	EmptyName       Code = "empty_name"
	EmptyRowLabel   Code = "empty_row_label"
	EmptySeatNumber Code = "empty_seat_number"
	DuplicateName   Code = "duplicate_name"
	DuplicateLabel  Code = "duplicate_label_in_section"
	DuplicateGUID   Code = "duplicate_guid"
	UnknownCategory Code = "unknown_category"
	UnusedCategory  Code = "unused_category"
	NoCapacity      Code = "no_capacity"
	NoCoordinates   Code = "no_coordinates"
	OutOfRange      Code = "coordinates_out_of_range"
	Overlapping     Code = "overlapping_seats"
	TooManyTags     Code = "too_many_tags"
	NoSuchSeat      Code = "no_such_seat"
)

// Severity says whether a plan can be published with a defect.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Bounds of a report. The tallies count what the lists leave out.
const (
	maxListed  = 200 // defects of one code; repairs and notes in all
	maxAlso    = 20
	maxExcerpt = 60 // bytes of the file's own text in a detail
)

// Defect is one thing that is wrong. At is a JSON pointer, or line:column in other files, counted from 1. A value that several seats share is one
// defect, at the first of them; Also has the places of the next ones, at most 20, and Seats the number of all of them.
type Defect struct {
	Code     Code         `json:"code"`
	Severity Severity     `json:"severity"`
	At       string       `json:"at"`
	Also     []string     `json:"also,omitempty"`
	Seat     *seats.Place `json:"seat,omitempty"`
	Seats    int          `json:"seats,omitempty"`
	Detail   string       `json:"detail"`
}

// Tally is how many defects of a code there are, listed or not, and how many seats they concern.
type Tally struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Count    int      `json:"count"`
	Seats    int      `json:"seats"`
}

// Repair is a change that was asked for: Code is the defect that is gone by it.
type Repair struct {
	Code Code   `json:"code"`
	At   string `json:"at"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Report is everything there is to say about a file. Of each code at most 200 defects are listed, and of the repairs 200; Tallies and
// Repaired are exact. Counts is what the file has, also where it has too much to be read.
type Report struct {
	Format   string   `json:"format"` // of the file: Format, "pretix", "csv", "spec", or "" if unknown
	Counts   Counts   `json:"counts"`
	Tallies  []Tally  `json:"tallies"`
	Defects  []Defect `json:"defects"`
	Repaired int      `json:"repaired"`
	Repairs  []Repair `json:"repairs,omitempty"`
	Notes    []string `json:"notes,omitempty"` // what the reader had to decide, where nothing is wrong
}

// Errors is the number of defects that keep the plan from being published.
func (r *Report) Errors() int { return r.sum(Error) }

// Warnings is the number of the other defects.
func (r *Report) Warnings() int { return r.sum(Warning) }

// Unreadable reports whether the file gave no plan at all: the plan that came with the report is empty.
func (r *Report) Unreadable() bool {
	return r.Count(NotReadable)+r.Count(TooLarge)+r.Count(TooManySeats) > 0
}

func (r *Report) sum(severity Severity) (n int) {
	for _, t := range r.Tallies {
		if t.Severity == severity {
			n += t.Count
		}
	}
	return n
}

// Count is the number of defects of a code.
func (r *Report) Count(code Code) (n int) {
	for _, t := range r.Tallies {
		if t.Code == code {
			n += t.Count
		}
	}
	return n
}

func (r *Report) add(d Defect) {
	if d.Seat != nil && d.Seats == 0 {
		d.Seats = 1
	}
	i := slices.IndexFunc(r.Tallies, func(t Tally) bool { return t.Code == d.Code && t.Severity == d.Severity })
	if i < 0 {
		i = len(r.Tallies)
		r.Tallies = append(r.Tallies, Tally{Code: d.Code, Severity: d.Severity})
	}
	r.Tallies[i].Count++
	r.Tallies[i].Seats += d.Seats
	if r.Tallies[i].Count <= maxListed {
		r.Defects = append(r.Defects, d)
	}
}

func (r *Report) defect(code Code, severity Severity, at, detail string) {
	r.add(Defect{Code: code, Severity: severity, At: at, Detail: detail})
}

func (r *Report) repair(code Code, at place, from, to string) {
	r.Repaired++
	if len(r.Repairs) < maxListed {
		r.Repairs = append(r.Repairs, Repair{code, at.String(), from, to})
	}
}

func (r *Report) note(text string) {
	if len(r.Notes) < maxListed {
		r.Notes = append(r.Notes, text)
	}
}

// settle puts the tallies in an order that does not depend on the file, and makes lists of what JSON would call null.
func (r *Report) settle() {
	r.Tallies, r.Defects = list(r.Tallies), list(r.Defects)
	slices.SortFunc(r.Tallies, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Code, b.Code))
	})
}

// place is where the file has something, in as few bytes as 60,000 of them need: a pointer of a JSON document, or a line.
type place struct {
	pointer      string
	line, column int32
}

func (p place) String() string {
	if p.line == 0 {
		return p.pointer
	}
	return strconv.Itoa(int(p.line)) + ":" + strconv.Itoa(int(p.column))
}

// excerpt quotes text of the file, shortened.
func excerpt(s string) string {
	if len(s) > maxExcerpt {
		s = s[:maxExcerpt] + "…"
	}
	return strconv.Quote(s)
}
