package main

import (
	"strings"
	"testing"
)

func TestAnEventIsExplained(t *testing.T) {
	w := newShop(t)
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur", "--item", "ebook:1")
	w.deliver(paidIntent("evt_1", "pi_1", "A1", "eur", "1000", "1767225600"), paidIntent("evt_2", "pi_2", "B1", "eur", "700", "1767225600"))
	wantParts(t, "a wrong amount", w.must("events", "explain", "evt_1"),
		"evt_1 is quarantined, amount_mismatch: the order's amount_policy", "metadata.order_id of pi_1 names order A1", "received 10.00 EUR", "pi_1", "nothing would change")
	wantParts(t, "an order that is not there", w.must("events", "explain", "evt_2"), "names order B1, which does not exist", "nothing would change")
	w.must("events", "requeue", "evt_1")
	w.must("orders", "edit", "A1", "--total", "10")
	out := w.must("events", "explain", "evt_1")
	wantParts(t, "what is to come", out, "the event would be done, applied")
	var x struct {
		Event eventJSON
		Today struct {
			Possible bool
			Verdict  string
		}
	}
	w.mustJSON(&x, "events", "explain", "evt_1")
	if !x.Today.Possible || x.Today.Verdict != "applied" || x.Event.Verdict != "new" {
		t.Errorf("%+v", x.Today)
	}
	w.must("orders", "forget", "A1")
	if exit, _, stderr := w.run("events", "explain", "evt_nobody"); exit != 1 || !strings.Contains(stderr, "no event evt_nobody") {
		t.Errorf("exit %d, %s", exit, stderr)
	}
}
