package compose

import (
	"encoding/json"
	"testing"

	"paidonce/store"
	"paidonce/store/payment"
)

const at = store.Time(1_796_119_200_000) // 2026-12-01T10:00:00Z

func order(change ...func(*store.Order)) *store.Order {
	o := &store.Order{
		Tenant: "main", ID: "A1", Status: payment.StatusPaid, Attention: []string{}, TotalMinor: 1250, Currency: "eur",
		AmountPolicy: payment.PolicyExact, ReceivedMinor: 1250, RefundedMinor: 300, Refs: []string{"pi_1"},
		Items:    []store.Item{{SKU: "ebook", Quantity: 1}},
		Customer: store.Customer{Email: "ann@example.org", Name: "Ann <&> Lee"},
		Metadata: map[string]string{"size": "XL"}, CreatedAt: at, PaidAt: at, UpdatedAt: at,
	}
	for _, f := range change {
		f(o)
	}
	return o
}

func event() *store.EventRef {
	return &store.EventRef{Scope: "stripe:self:test", ID: "evt_1", Source: "stripe", Type: "charge.succeeded", OccurredAt: at}
}

func paid(change ...func(*store.Order)) store.Occasion {
	return store.Occasion{Operation: "order.paid", OccurredAt: at, At: at + 5, Order: order(change...), Event: event()}
}

func alert(state string, count int64) store.Occasion {
	return store.Occasion{Operation: "alert.quarantined:7", OccurredAt: at, At: at, Alert: &store.Alert{
		Name: "quarantined", State: state, Since: at, Count: count,
		Summary: "3 events are quarantined.", Next: "They stay where they are.", Command: "paidonce events list --status quarantined",
		Items: []store.AlertItem{{Order: "A1", Event: "evt_1", Amount: "12.50 EUR", At: at, Text: "amount_mismatch"}},
	}}
}

func raw(source, typ, body string) store.Occasion {
	return store.Occasion{Operation: source + ":" + typ, OccurredAt: at, At: at, Payload: []byte(body),
		Event: &store.EventRef{Scope: "github:" + source + ":-", ID: "e1", Source: source, Type: typ, OccurredAt: at}}
}

// mailTarget is a right one, changed.
func mailTarget(change ...func(*Target)) Target {
	t := Target{
		Name: "thanks", On: []string{"order.paid"}, Do: store.KindEmail, From: "Shop <shop@example.org>",
		To: Template{"to", "{{.Order.Customer.Email}}"}, Subject: Template{"subject", " Thank you for order {{.Order.ID}}\n"},
		Text: Template{"mail/paid.txt", "We got {{.Amount}}.\n"},
	}
	for _, f := range change {
		f(&t)
	}
	return t
}

// composed is what one target makes of an occasion, which must be one effect.
func composed(t testing.TB, target Target, o store.Occasion) store.Composed {
	t.Helper()
	c, err := New([]Target{target})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	all := c(o)
	if len(all) != 1 {
		t.Fatalf("%d effects of %s; want 1", len(all), o.Operation)
	}
	return all[0]
}

// mailOf is the mail that target writes about o.
func mailOf(t testing.TB, target Target, o store.Occasion) store.MailCall {
	t.Helper()
	c := composed(t, target, o)
	if c.Failed != "" {
		t.Fatalf("failed: %s", c.Failed)
	}
	var m store.MailCall
	if err := json.Unmarshal(c.Body, &m); err != nil {
		t.Fatalf("%v in %s", err, c.Body)
	}
	return m
}
