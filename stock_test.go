package main

import (
	"strings"
	"testing"
)

func TestStockIsSetAndTaken(t *testing.T) {
	w := newShop(t)
	w.write("paidonce.toml", "[stock]\nlow = 1\n")
	wantParts(t, "stock set", w.must("stock", "set", "ebook", "3"), "ebook: 3 on hand")
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur", "--item", "ebook:2:6.25")
	w.deliver(paidIntent("evt_1", "pi_1", "A1", "eur", "1250", "1767225600"))
	wantParts(t, "stock list", w.must("stock", "list"), "SKU", "low_stock")
	var list pageOf[struct {
		OnHand         int64 `json:"on_hand"`
		Taken, Counted int64
	}]
	w.mustJSON(&list, "stock", "list")
	if len(list.Items) != 1 || list.Items[0].OnHand != 1 || list.Items[0].Taken != 2 || list.Items[0].Counted != 3 {
		t.Errorf("stock %+v", list.Items)
	}
	wantParts(t, "orders show", w.must("orders", "show", "A1"), "took 2 × ebook")
	if exit, _, stderr := w.run("stock", "set", "e\nbook", "3"); exit != 1 || !strings.Contains(stderr, "sku") {
		t.Errorf("a name with a line break: exit %d, %s", exit, stderr)
	}
}
