package main

import (
	"strings"
	"testing"

	"paidonce/store"
)

func TestAnOrderIsRegisteredOnce(t *testing.T) {
	w := newShop(t)
	args := []string{"orders", "add", "--id", "A1", "--total", "12.50", "--currency", "EUR", "--policy", "subtotal", "--allow-discount",
		"--payment-intent", "pi_1", "--ref", "cs_test_1", "--item", "ebook:2:6.25", "--item", "mug:1", "--email", "ann@example.com",
		"--name", "Ann", "--meta", "channel=web", "--meta", "note=a=b"}
	var o, again orderJSON
	w.mustJSON(&o, args...)
	w.mustJSON(&again, args...)
	if o.ID != "A1" || o.Tenant != "main" || o.TotalMinor != 1250 || o.Currency != "eur" || o.AmountPolicy != "subtotal" || !o.AllowDiscount ||
		o.PaymentIntent != "pi_1" || o.Customer != (store.Customer{Email: "ann@example.com", Name: "Ann"}) ||
		o.Metadata["channel"] != "web" || o.Metadata["note"] != "a=b" {
		t.Errorf("order %+v", o)
	}
	if len(o.Items) != 2 || o.Items[0] != (store.Item{SKU: "ebook", Quantity: 2, UnitMinor: 625}) || o.Items[1] != (store.Item{SKU: "mug", Quantity: 1}) {
		t.Errorf("items %+v", o.Items)
	}
	if again.CreatedAt != o.CreatedAt {
		t.Errorf("the same order again was made at %s, not at %s", again.CreatedAt, o.CreatedAt)
	}
	exit, _, stderr := w.run("orders", "add", "--id", "A1", "--total", "13", "--currency", "eur")
	if exit != 1 || !strings.Contains(stderr, "exists with other content") {
		t.Errorf("other content: exit %d, %s", exit, stderr)
	}
	out := w.must("orders", "show", "A1")
	wantParts(t, "orders show", out, "A1\n", "12.50 EUR (subtotal, discounts allowed)", "ann@example.com", "channel=web note=a=b", "mug", "6.25 EUR", "awaiting_payment")
}

func TestAnOrderWithoutAnIDGetsOne(t *testing.T) {
	w := newShop(t)
	out := w.must("orders", "add", "--total-minor", "500", "--currency", "jpy")
	id, _, _ := strings.Cut(out, " ")
	wantParts(t, "orders add", out, id+" registered\n", "500 JPY (exact)")
	wantParts(t, "orders show", w.must("orders", "show", id), id)
}

// Cases B34: what floats make of these is one cent less.
func TestAmountsAreExact(t *testing.T) {
	w := newShop(t)
	for amount, minor := range map[string]int64{"19.99": 1999, "9.95": 995, "8.20": 820, "1.15": 115, "0.29": 29, "4.35": 435} {
		var o orderJSON
		w.mustJSON(&o, "orders", "add", "--total", amount, "--currency", "usd")
		if o.TotalMinor != minor {
			t.Errorf("%s is %d; want %d", amount, o.TotalMinor, minor)
		}
	}
}

func TestAnOrderIsCorrected(t *testing.T) {
	w := newShop(t)
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur", "--email", "ann@example.com", "--name", "Ann", "--item", "ebook:1", "--meta", "k=v")
	var o orderJSON
	w.mustJSON(&o, "orders", "edit", "A1", "--total", "13.75", "--email", "bob@example.com", "--clear", "items", "--policy", "at_least")
	if o.TotalMinor != 1375 || o.Currency != "eur" || o.AmountPolicy != "at_least" || len(o.Items) != 0 || o.Metadata["k"] != "v" {
		t.Errorf("order %+v", o)
	}
	if o.Customer != (store.Customer{Email: "bob@example.com", Name: "Ann"}) {
		t.Errorf("customer %+v: the name is not what the flag was about", o.Customer)
	}
	o = orderJSON{}
	w.mustJSON(&o, "orders", "edit", "A1", "--currency", "jpy", "--total", "1375", "--clear", "metadata", "--clear", "customer")
	if o.TotalMinor != 1375 || o.Currency != "jpy" || len(o.Metadata) != 0 || o.Customer != (store.Customer{}) {
		t.Errorf("order %+v", o)
	}
}

func TestOrdersAreListedPageByPage(t *testing.T) {
	w := newShop(t)
	if out := w.must("orders", "list", "--json"); !strings.Contains(out, `"items": []`) {
		t.Errorf("an empty list is %s", out)
	}
	for _, id := range []string{"A1", "A2", "A3"} {
		w.must("orders", "add", "--id", id, "--total", "1", "--currency", "eur")
	}
	var page pageOf[orderJSON]
	w.mustJSON(&page, "orders", "list", "--limit", "2")
	if len(page.Items) != 2 || page.NextCursor == "" {
		t.Fatalf("%d items, cursor %q; want 2 and one", len(page.Items), page.NextCursor)
	}
	exit, stdout, stderr := w.run("orders", "list", "--limit", "2")
	if exit != 0 || !strings.Contains(stderr, "--cursor "+page.NextCursor) || strings.Contains(stdout, page.NextCursor) {
		t.Errorf("the next page is told as\n%s%s", stdout, stderr)
	}
	rest := w.must("orders", "list", "--limit", "2", "--cursor", page.NextCursor)
	wantParts(t, "the last page", rest, "ORDER", "A1", "1.00 EUR")
	unwanted(t, "the last page", rest, "A2", "A3")
}

func TestTenantsKeepTheirOrdersApart(t *testing.T) {
	w := newShop(t)
	w.must("orders", "add", "--id", "A1", "--total", "1", "--currency", "eur")
	w.must("orders", "add", "--id", "A1", "--total", "2", "--currency", "eur", "--tenant", "acct_9")
	wantParts(t, "orders show", w.must("orders", "show", "A1", "--tenant", "acct_9"), "2.00 EUR", "acct_9")
	wantParts(t, "orders show", w.must("orders", "show", "A1"), "1.00 EUR")
}

func TestTablesStayNarrow(t *testing.T) {
	w := newShop(t)
	w.must("orders", "add", "--id", "2026-0000012345", "--total", "123456.78", "--currency", "eur")
	for line := range strings.Lines(w.must("orders", "list")) {
		if len([]rune(line)) > 100 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}

// A typo in an item must not become another SKU.
func TestAnItemThatIsNoneIsRefused(t *testing.T) {
	w := newShop(t)
	for _, item := range []string{"x", "x:0", "x:0:1", "x:1:2:3", "x:-1", ":1", "x:1.5", "x:1:1,50", "shop:x:1"} {
		exit, _, stderr := w.run("orders", "add", "--id", "A1", "--total", "1", "--currency", "eur", "--item", item)
		if exit != 2 || !strings.Contains(stderr, "--item") {
			t.Errorf("--item %s: exit %d, %s", item, exit, stderr)
		}
	}
}
