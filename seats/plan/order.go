package plan

import (
	"cmp"
	"strings"
)

// LabelOrder returns how the row labels of one section are ordered from front to back. If all are Roman numerals, and one of them has
// several signs, they are numbers; otherwise text is compared with its numbers as numbers (2 before 10) and single letters before
// double ones (Z before AA).
func LabelOrder(labels []string) func(a, b string) int {
	several := false
	for _, label := range labels {
		if fromRoman(label) == 0 {
			return compareNatural
		}
		// AA-like doubles are letters of a second round wherever they are valid numerals as well.
		several = several || len(label) > 1 && strings.Trim(label, label[:1]) != ""
	}
	if !several {
		return compareNatural
	}
	return func(a, b string) int { return cmp.Compare(fromRoman(a), fromRoman(b)) }
}

func compareNatural(a, b string) int {
	whole := [2]string{a, b}
	for a != "" && b != "" {
		x, y := run(a), run(b)
		a, b = a[len(x):], b[len(y):]
		if c := compareRuns(x, y); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(whole[0], whole[1])) // 7 and 07 are two labels
}

// run is the longest beginning of s that is all digits, all letters, or neither.
func run(s string) string {
	class := classOf(s[0])
	for i := 1; i < len(s); i++ {
		if classOf(s[i]) != class {
			return s[:i]
		}
	}
	return s
}

func classOf(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return 0
	case 'a' <= c|0x20 && c|0x20 <= 'z':
		return 1
	}
	return 2
}

func compareRuns(x, y string) int {
	if classOf(x[0]) == 0 && classOf(y[0]) == 0 {
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	}
	if short := 2; classOf(x[0]) == 1 && classOf(y[0]) == 1 && len(x) <= short && len(y) <= short {
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(strings.ToUpper(x), strings.ToUpper(y)))
	}
	return cmp.Compare(strings.ToUpper(x), strings.ToUpper(y))
}
