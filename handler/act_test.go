package handler

import (
	"strings"
	"testing"
)

func TestAnAttentionIsAcknowledged(t *testing.T) {
	w := newWorld(t)
	w.call("POST", "/v1/orders", `{"id":"ORD-1","total_minor":9900,"currency":"eur"}`)
	w.stripe("stripe", testEvent("evt_1")) // 1250
	w.work()
	for _, tt := range []struct {
		name, path, body string
		status           int
		code             string // or the order's status
	}{
		{"a word that the order does not show", "/v1/orders/ORD-1/ack", `{"attention":"oversold"}`, 404, "not_found"},
		{"no word", "/v1/orders/ORD-1/ack", `{"note":"x"}`, 422, "invalid"},
		{"no body", "/v1/orders/ORD-1/ack", "", 400, "malformed"},
		{"a name that is none", "/v1/orders/ORD-1/ack", `{"attention":"underpaid","why":"x"}`, 422, "invalid"},
		{"a number for a word", "/v1/orders/ORD-1/ack", `{"attention":1}`, 422, "invalid"},
		{"a note that is too long", "/v1/orders/ORD-1/ack", `{"attention":"underpaid","note":"` + strings.Repeat("x", 501) + `"}`, 422, "invalid"},
		{"another tenant's order", "/v1/orders/ORD-1/ack?tenant=acct_B", `{"attention":"underpaid"}`, 404, "not_found"},
		{"as it should be", "/v1/orders/ORD-1/ack", `{"attention":"underpaid","note":"wrote to them"}`, 200, "awaiting_payment"},
		{"without a note", "/v1/orders/ORD-1/ack", `{"attention":"amount_mismatch"}`, 200, "awaiting_payment"},
		{"a second time", "/v1/orders/ORD-1/ack", `{"attention":"underpaid"}`, 404, "not_found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if g := w.call("POST", tt.path, tt.body); g.status != tt.status || g.code() != tt.code {
				t.Errorf("%d %s; want %d %s", g.status, g.body, tt.status, tt.code)
			}
		})
	}
	g := w.call("GET", "/v1/orders/ORD-1", "")
	if g.field(t, "attention") != "[]" || !strings.Contains(g.body, "ack underpaid by api: wrote to them") {
		t.Errorf("order: %s", g.body)
	}
}

func TestAnOrderIsFulfilledAndForgotten(t *testing.T) {
	w := newWorld(t)
	const order = `{"id":"ORD-1","total_minor":1250,"currency":"eur","customer":{"email":"ann@example.com"},"metadata":{"room":"7"}}`
	w.call("POST", "/v1/orders", order)
	for _, tt := range []struct {
		name, path, body string
		status           int
		code             string
	}{
		{"fulfil with a field", "/v1/orders/ORD-1/fulfil", `{"now":true}`, 422, "invalid"},
		{"fulfil", "/v1/orders/ORD-1/fulfil", "", 200, "awaiting_payment"},
		{"fulfil again", "/v1/orders/ORD-1/fulfil", "{}", 409, "already_fulfilled"},
		{"fulfil nobody's order", "/v1/orders/nobody/fulfil", "", 404, "not_found"},
		{"forget with a field", "/v1/orders/ORD-1/forget", `{"all":true}`, 422, "invalid"},
		{"forget", "/v1/orders/ORD-1/forget", "{}", 200, "awaiting_payment"},
		{"forget again", "/v1/orders/ORD-1/forget", "", 200, "awaiting_payment"},
		{"forget nobody's order", "/v1/orders/nobody/forget", "", 404, "not_found"},
		{"register the same again", "/v1/orders", order, 200, "awaiting_payment"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if g := w.call("POST", tt.path, tt.body); g.status != tt.status || g.code() != tt.code {
				t.Errorf("%d %s; want %d %s", g.status, g.body, tt.status, tt.code)
			}
		})
	}
	g := w.call("GET", "/v1/orders/ORD-1", "")
	if g.field(t, "customer") != "{}" || g.field(t, "metadata") != "{}" || !strings.Contains(g.body, `"name":"order.paid"`) {
		t.Errorf("order: %s", g.body)
	}
}
