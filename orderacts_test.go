package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAPersonActsOnAnOrder(t *testing.T) {
	w := newShop(t)
	w.must("orders", "add", "--id", "A1", "--total", "99", "--currency", "eur", "--email", "ann@example.com")
	w.deliver(paidIntent("evt_1", "pi_1", "A1", "eur", "1250", "1767225600"))
	out := w.must("orders", "ack", "A1", "underpaid", "--note", "wrote to them")
	wantParts(t, "orders ack", out, "A1 acknowledged", "amount_mismatch")
	unwanted(t, "orders ack", out, "underpaid")
	if exit, _, stderr := w.run("orders", "ack", "A1", "underpaid"); exit != 1 || !strings.Contains(stderr, "no attention underpaid") {
		t.Errorf("a second time: exit %d, %s", exit, stderr)
	}
	wantParts(t, "orders fulfil", w.must("orders", "fulfil", "A1"), "A1 fulfilled")
	var failure struct{ Error struct{ Code string } }
	exit, _, stderr := w.run("orders", "fulfil", "A1", "--json")
	if err := json.Unmarshal([]byte(stderr), &failure); exit != 1 || err != nil || failure.Error.Code != "already_fulfilled" {
		t.Errorf("a second time: exit %d, %s", exit, stderr)
	}
	unwanted(t, "orders forget", w.must("orders", "forget", "A1"), "ann@example.com")
	shown := w.must("orders", "show", "A1")
	wantParts(t, "orders show", shown, "ack underpaid by cli: wrote to them", "fulfil by cli", "forget by cli", "recorded order.paid")
	unwanted(t, "orders show", shown, "ann@example.com")
	wantParts(t, "completion", w.must("__complete", "orders", "ack", "A1", ""), "double_payment", "oversold")
}
