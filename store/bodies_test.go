package store_test

import (
	"fmt"
	"testing"

	"paidonce/store"

	"paidonce/store/storetest"
)

// The bodies of these tests are as small as the rules allow. Amounts are in EUR.

// of is an event about an object of any kind; fields begins with a comma.
func of(event, kind, id string, created int64, fields string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","api_version":"2025-08-27.basil","created":%d,"livemode":false,
		"type":"%s.updated","data":{"object":{"id":%q,"object":%q,"currency":"eur"%s}}}`, event, created, kind, id, kind, fields)
}

// refund is a refund of all of pi_1's 1250.
func refund(event, id, status string, created int64) string {
	return of(event, "refund", id, created, fmt.Sprintf(`,"amount":1250,"status":%q,"payment_intent":"pi_1","charge":null`, status))
}

// session is a completed, paid session of a Payment Link.
func session(event, id, link, intent string, created int64) string {
	return of(event, "checkout.session", id, created, fmt.Sprintf(`,"mode":"payment","status":"complete","payment_status":"paid",
		"amount_total":2500,"amount_subtotal":2500,"payment_intent":%q,"payment_link":%q,"client_reference_id":"ORD-1",
		"metadata":{"order_id":"ORD-1"},"customer_details":{"email":"ann@example.com","name":"Ann"}`, intent, link))
}

// loose is paid money that names no order; invoice may be "".
func loose(event, id, invoice string) string {
	more := ""
	if invoice != "" {
		more = fmt.Sprintf(`,"invoice":%q`, invoice)
	}
	return of(event, "payment_intent", id, 1750000000, `,"amount":700,"amount_received":700,"status":"succeeded"`+more)
}

func sells(sku string, quantity int64) func(*store.NewOrder) {
	return func(n *store.NewOrder) { n.Items = append(n.Items, store.Item{SKU: sku, Quantity: quantity}) }
}

func wantProblem(t *testing.T, what string, err error, code store.Code) *store.Problem {
	t.Helper()
	p, ok := store.AsProblem(err)
	if !ok || p.Code != code {
		t.Errorf("%s: %v; want %s", what, err, code)
		return &store.Problem{}
	}
	return p
}

func timelineOf(t *testing.T, s *store.Store, id string) (lines []string) {
	t.Helper()
	for _, it := range storetest.Order(t, s, id).Timeline {
		lines = append(lines, it.Kind+": "+it.Text)
	}
	return lines
}
