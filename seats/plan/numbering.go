package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"seatfence/seats"
)

// maxRoman is the last number that Roman numerals write without signs of their own.
const maxRoman = 3999

// numbering is how a row of things is named: arabic (with what stands before the digits, and their leading zeros), letters or roman.
type numbering struct {
	format, from string
	step         int
	backwards    bool
}

// names returns n names. An error means that the numbering cannot name so many, and that they are numbered from 1 instead.
func (n numbering) names(count int) ([]string, error) {
	name, first, err := n.style()
	if last := first + (count-1)*n.step; err == nil && n.format == "roman" && last > maxRoman {
		err = fmt.Errorf("roman numerals end at %d", maxRoman)
	}
	if n.step < 1 || n.step > seats.MaxSeats {
		err = fmt.Errorf("a step is between 1 and %d", seats.MaxSeats)
	}
	if err != nil {
		name, first, n.step = strconv.Itoa, 1, 1
	}
	list := make([]string, count)
	for i := range list {
		list[i] = name(first + i*n.step)
	}
	if n.backwards {
		slices.Reverse(list)
	}
	return list, err
}

// style returns what writes a number in the format, and the number that from is.
func (n numbering) style() (write func(int) string, first int, err error) {
	number, _ := strconv.Atoi(n.from)
	switch n.format {
	case "letters":
		if first = max(number, fromLetters(n.from)); first == 0 && n.from != "" {
			err = fmt.Errorf("letters do not begin with %s", excerpt(n.from))
		}
		if lower := n.from != "" && strings.ToLower(n.from) == n.from && number == 0; lower {
			return func(i int) string { return strings.ToLower(letters(i)) }, first, err
		}
		return letters, max(first, 1), err
	case "roman":
		if first = max(number, fromRoman(n.from)); first == 0 && n.from != "" {
			err = fmt.Errorf("roman numerals do not begin with %s", excerpt(n.from))
		}
		return roman, max(first, 1), err
	case "", "arabic", "numbers":
		prefix := strings.TrimRight(n.from, "0123456789")
		digits := n.from[len(prefix):]
		if first, err = strconv.Atoi(digits); n.from == "" {
			return strconv.Itoa, 1, nil
		}
		if err != nil || first > 1e9 || len(n.from) > maxName {
			err = fmt.Errorf("numbers do not begin with %s", excerpt(n.from))
		}
		return func(i int) string { return fmt.Sprintf("%s%0*d", prefix, len(digits), i) }, first, err
	}
	return nil, 0, fmt.Errorf("a numbering is arabic, letters or roman, and not %s", excerpt(n.format))
}

// letters writes A to Z, then AA.
func letters(i int) string {
	var b []byte
	for ; i > 0; i = (i - 1) / 26 {
		b = append(b, byte('A'+(i-1)%26))
	}
	slices.Reverse(b)
	return string(b)
}

// fromLetters is the number of up to four letters, or 0.
func fromLetters(s string) (i int) {
	if len(s) > 4 {
		return 0
	}
	for _, r := range strings.ToUpper(s) {
		if r < 'A' || r > 'Z' {
			return 0
		}
		i = i*26 + int(r-'A') + 1
	}
	return i
}

var romanParts = []struct {
	value int
	sign  string
}{
	{1000, "M"},
	{900, "CM"},
	{500, "D"},
	{400, "CD"},
	{100, "C"},
	{90, "XC"},
	{50, "L"},
	{40, "XL"},
	{10, "X"},
	{9, "IX"},
	{5, "V"},
	{4, "IV"},
	{1, "I"},
}

func roman(i int) string {
	var b strings.Builder
	for _, p := range romanParts {
		for ; i >= p.value; i -= p.value {
			b.WriteString(p.sign)
		}
	}
	return b.String()
}

// fromRoman is the number of a well-formed Roman numeral up to maxRoman, or 0.
func fromRoman(s string) (i int) {
	if len(s) > len("MMMDCCCLXXXVIII") {
		return 0
	}
	rest := strings.ToUpper(s)
	for _, p := range romanParts {
		for strings.HasPrefix(rest, p.sign) {
			i += p.value
			rest = rest[len(p.sign):]
		}
	}
	if rest != "" || i > maxRoman || roman(i) != strings.ToUpper(s) {
		return 0
	}
	return i
}
