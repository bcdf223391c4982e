package httpapi

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"seatfence/booking"
	"seatfence/seats/plan"
)

// text is one that people read, and its place in the body. A nil one was left out.
type text struct {
	pointer string
	value   *string
}

// composed brings a text into Unicode form C, so that what looks the same is found by the same name. A nil one was left out.
func composed(value *string) {
	if value != nil {
		*value = norm.NFC.String(*value)
	}
}

// clean composes texts. It refuses what cannot be seen, and what would break a line or turn the direction of what stands beside it.
func clean(texts ...text) error {
	for _, t := range texts {
		composed(t.value)
		switch {
		case t.value == nil:
		case !booking.Plain(*t.value):
			return invalid(t.pointer, "bad_character", "control and direction characters are not allowed")
		case !strings.ContainsFunc(*t.value, visible):
			return invalid(t.pointer, "blank", "something that can be read is needed")
		}
	}
	return nil
}

func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }

// textsOf are the names in a house.
func textsOf(h plan.House) (list []text) {
	add := func(value *string, pointer string, at ...any) {
		list = append(list, text{fmt.Sprintf(pointer, at...), value})
	}
	for i := range h.Categories {
		add(&h.Categories[i].Name, "/categories/%d/name", i)
	}
	for i := range h.Sections {
		s := &h.Sections[i]
		add(&s.Name, "/sections/%d/name", i)
		for j := range s.Rows {
			add(&s.Rows[j].Label, "/sections/%d/rows/%d/label", i, j)
			add(&s.Rows[j].Category, "/sections/%d/rows/%d/category", i, j)
		}
	}
	for i := range h.Areas {
		add(&h.Areas[i].Name, "/areas/%d/name", i)
		add(&h.Areas[i].Category, "/areas/%d/category", i)
	}
	return list
}

// textsOfPrices are the names in a price list.
func textsOfPrices(list booking.PriceList) (texts []text) {
	for i := range list.Types {
		texts = append(texts, text{fmt.Sprintf("/types/%d", i), &list.Types[i]})
	}
	for i := range list.Prices {
		texts = append(texts, text{fmt.Sprintf("/prices/%d/category", i), &list.Prices[i].Category})
		if list.Prices[i].Type != "" {
			texts = append(texts, text{fmt.Sprintf("/prices/%d/type", i), &list.Prices[i].Type})
		}
	}
	return texts
}

func invalid(pointer, code, detail string) error {
	return &booking.InvalidError{Pointer: pointer, Code: code, Detail: detail}
}
