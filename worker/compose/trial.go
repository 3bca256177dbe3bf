package compose

import (
	"errors"
	"fmt"
	"strings"

	"paidonce/store"
	"paidonce/store/payment"
)

// trialError is a template that failed on a made-up occasion.
type trialError struct {
	kind string
	err  error
}

func (e *trialError) Error() string { return e.err.Error() }
func (e *trialError) Unwrap() error { return e.err }

// try runs a template on a made-up occasion of every kind that on matches, as
// brought about by an event and by none. It returns the first failure that real
// occasions would have too.
func try(p switchable, on []pattern) error {
	defer p.missingKey("error")
	p.missingKey("zero") // which metadata the shop's orders have is not known here
	for _, data := range specimens(on) {
		if _, err := render(p, data); err != nil && !dependsOnData(err) {
			return &trialError{data.Operation.Kind, err}
		}
	}
	return nil
}

// dependsOnData reports whether a template failed on what only a made-up order
// lacks: so many items, or so long a text.
func dependsOnData(err error) bool {
	for _, function := range []string{"index", "slice"} {
		if strings.Contains(err.Error(), ": error calling "+function+": ") {
			return true
		}
	}
	return false
}

func specimens(on []pattern) []Data {
	const at = store.Time(1_764_583_200_000)
	var all []Data
	for _, kind := range kinds() {
		for _, p := range on {
			if !p.matches(kind) {
				continue
			}
			if name, ok := strings.CutPrefix(kind, "alert."); ok {
				all = append(all, Data{Operation: parseOperation(kind+":1", at), Alert: specimenAlert(name, at)})
				break
			}
			d := Data{Order: specimenOrder(at), Operation: parseOperation(kind+specimenObject(kind), at), Event: specimenEvent("stripe", "charge.updated", at)}
			all = append(all, d)
			d.Event = nil
			all = append(all, d)
			break
		}
	}
	for _, p := range on {
		if p.source != "" {
			name := p.text
			if p.prefix {
				name += "created"
			}
			_, typ, _ := strings.Cut(name, ":")
			all = append(all, Data{Operation: parseOperation(name, at), Event: specimenEvent(p.source, typ, at)})
		}
	}
	return all
}

func specimenObject(kind string) string {
	switch family, _, _ := strings.Cut(kind, "."); {
	case family == "refund":
		return ":re_1AbCdEfGhIjKlMnO"
	case kind == "dispute.closed":
		return ":dp_1AbCdEfGhIjKlMnO:won"
	case family == "dispute":
		return ":dp_1AbCdEfGhIjKlMnO"
	}
	return ""
}

func specimenOrder(at store.Time) *store.Order {
	return &store.Order{
		Tenant: "main", ID: "order-10001", Status: payment.StatusPaid, Attention: []string{"double_payment"},
		TotalMinor: 1250, Currency: "eur", AmountPolicy: payment.PolicyExact, ReceivedMinor: 1250, RefundedMinor: 250,
		PaymentIntent: "pi_1AbCdEfGhIjKlMnO", Refs: []string{"pi_1AbCdEfGhIjKlMnO", "ch_1AbCdEfGhIjKlMnO"},
		Items:       []store.Item{{SKU: "ebook", Name: "An e-book", Quantity: 1, UnitMinor: 1000}, {SKU: "card", Name: "A card", Quantity: 1, UnitMinor: 250}},
		Customer:    store.Customer{Email: "customer@shop.example", Name: "A Customer"},
		Metadata:    map[string]string{},
		CheckoutURL: "https://checkout.stripe.com/c/pay/cs_test_1",
		CreatedAt:   at, PaidAt: at, UpdatedAt: at,
	}
}

func specimenEvent(source, typ string, at store.Time) *store.EventRef {
	return &store.EventRef{Scope: "stripe:self:test", ID: "evt_1AbCdEfGhIjKlMnO", Source: source, Type: typ, OccurredAt: at}
}

func specimenAlert(name string, at store.Time) *store.Alert {
	return &store.Alert{Name: name, State: "firing", Since: at, Count: 2, Summary: "There are 2 of them.", Next: "They wait.", Command: "paidonce stats",
		Items: []store.AlertItem{{Order: "order-10001", Event: "evt_1AbCdEfGhIjKlMnO", Effect: "17", Amount: "12.50 EUR", At: at, Text: "This is one."}}}
}

// explain is a template's error in words for the operator. A position in a
// template stands in front: "mail/paid.txt:3:10: …".
func explain(err error) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "template: "), "html/template:")
	if before, after, ok := strings.Cut(text, `: executing "`); ok {
		if _, at, ok := strings.Cut(after, `" at <`); ok {
			text = before + ": at <" + at
		}
	}
	var trial *trialError
	switch {
	case !errors.As(err, &trial):
	case errors.Is(err, errNoAmount):
		text = fmt.Sprintf("%s (%s)", text, trial.kind)
	case strings.Contains(text, "nil pointer evaluating *store.EventRef"):
		text = fmt.Sprintf("%s (%s may have no event: write {{with .Event}}…{{end}})", text, trial.kind)
	default:
		text = fmt.Sprintf("%s (tried on %s)", text, trial.kind)
	}
	return text
}
