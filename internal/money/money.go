// Package money writes amounts for people. Amounts are whole minor units everywhere else, and nothing calculates here.
package money

import "fmt"

// exponents are the digits of the minor unit where they are not two, by ISO 4217. Locale data would not do: it says how a currency is
// commonly written, and there the dinar of Iraq and the pound of Lebanon have lost digits that their minor units have.
var exponents = map[string]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0,
	"VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
	"CLF": 4, "UYW": 4,
}

// Exponent is how many decimal digits the minor unit of an ISO 4217 currency has.
func Exponent(currency string) int {
	if n, ok := exponents[currency]; ok {
		return n
	}
	return 2
}

// Format writes an amount in minor units with its currency: "45.00 EUR", "4500 JPY", "4.500 KWD".
func Format(amount int64, currency string) string {
	digits := Exponent(currency)
	if digits == 0 {
		return fmt.Sprintf("%d %s", amount, currency)
	}
	unit := int64(1)
	for range digits {
		unit *= 10
	}
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	return fmt.Sprintf("%s%d.%0*d %s", sign, amount/unit, digits, amount%unit, currency)
}
