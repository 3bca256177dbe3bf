package stripefake

import (
	"fmt"
	"slices"
	"strings"
)

// Stripe's currencies without decimals. ISK and UGX are sent with two.
var zeroDecimal = strings.Fields("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf")

// majorUnits writes an amount for people: "12.50 EUR".
func majorUnits(minor int64, currency string) string {
	code := strings.ToUpper(currency)
	switch {
	case slices.Contains(zeroDecimal, currency):
		return fmt.Sprintf("%d %s", minor, code)
	case smallestUnit(currency) == 10:
		return fmt.Sprintf("%d.%03d %s", minor/1000, minor%1000, code)
	}
	return fmt.Sprintf("%d.%02d %s", minor/100, minor%100, code)
}
