package money_test

import (
	"testing"

	"seatfence/internal/money"
)

func TestAmountsHaveTheDigitsOfTheirCurrency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{4500, "EUR", "45.00 EUR"},
		{5, "EUR", "0.05 EUR"},
		{0, "EUR", "0.00 EUR"},
		{4500, "JPY", "4500 JPY"},
		{4500, "KWD", "4.500 KWD"},
		{4500, "IQD", "4.500 IQD"},
		{-105, "USD", "-1.05 USD"},
		{1_000_000_000 * 20, "EUR", "200000000.00 EUR"},
	} {
		if got := money.Format(c.amount, c.currency); got != c.want {
			t.Errorf("%d %s is written %q, want %q", c.amount, c.currency, got, c.want)
		}
	}
}
