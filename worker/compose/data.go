package compose

import (
	"errors"
	"strings"
	"text/template"
	"unicode"

	"paidonce/store"
	"paidonce/store/payment"
)

// Data is what the templates of mail see.
type Data struct {
	Order     *store.Order    // nil for raw events and alerts; amounts are minor units
	Operation Operation       // prints as its name
	Event     *store.EventRef // what brought it about; nil for alerts, and where no event did
	Alert     *store.Alert    // nil for all but alerts
}

// errNoAmount: what was refunded or is disputed by one object is not known
// here, and the order's total in its place would be a lie to a customer.
var errNoAmount = errors.New(".Amount is the total of an order, for order.… alone: write {{money .Order.RefundedMinor .Order.Currency}}, or whichever amount is meant")

// Amount is the total of the order in major units with its currency, such as
// "12.50 EUR", for the operations order.…; for others it is an error.
func (d Data) Amount() (string, error) {
	if d.Order == nil || !strings.HasPrefix(d.Operation.Kind, "order.") {
		return "", errNoAmount
	}
	return money(d.Order.TotalMinor, d.Order.Currency)
}

// More is how many things an alert is about beyond its items; 0 is none.
func (d Data) More() int64 {
	if d.Alert == nil {
		return 0
	}
	return max(0, d.Alert.Count-int64(len(d.Alert.Items)))
}

// functions are what a template may call besides those of text/template.
var functions = template.FuncMap{"money": money, "line": line}

// money writes minor units in major ones, by Stripe's table of currencies.
func money(minor int64, currency string) (string, error) {
	if currency == "" {
		return "", errors.New("money needs a currency, such as .Order.Currency")
	}
	return payment.FormatMinor(minor, currency), nil
}

// line is s in one line: every run of blanks, line breaks and other control
// characters is one blank.
func line(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || breaksLine(r) }), " ")
}

// breaksLine reports whether r has no place in a header: control characters,
// and what some programs take for a line break.
func breaksLine(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

func hasControl(s string) bool { return strings.ContainsFunc(s, breaksLine) }
