package main

import (
	"encoding/csv"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// deliver brings bodies to the shop's database as webhooks would.
func (w *world) deliver(bodies ...string) {
	w.t.Helper()
	s, err := store.Open(w.t.Context(), store.Options{Path: defaultDB, Mode: store.Client, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	storetest.Deliver(w.t, s, bodies...)
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// paidIntent is money for an order; refunded gives part of it back.
func paidIntent(event, id, order, currency string, amount, created string) string {
	return `{"id":"` + event + `","object":"event","livemode":false,"created":` + created + `,"type":"payment_intent.succeeded","data":{"object":{"id":"` + id +
		`","object":"payment_intent","amount":` + amount + `,"amount_received":` + amount + `,"currency":"` + currency + `","status":"succeeded","metadata":{"order_id":"` + order + `"}}}}`
}

func refunded(event, id, intent, amount, created string) string {
	return `{"id":"` + event + `","object":"event","livemode":false,"created":` + created + `,"type":"refund.updated","data":{"object":{"id":"` + id +
		`","object":"refund","amount":` + amount + `,"currency":"eur","status":"succeeded","payment_intent":"` + intent + `"}}}`
}

func TestTheBooksAreToldByDay(t *testing.T) {
	w := newShop(t)
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur")
	w.must("orders", "add", "--id", "A2", "--total", "500", "--currency", "jpy")
	w.deliver(paidIntent("evt_1", "pi_1", "A1", "eur", "1250", "1767225599"), // 2025-12-31
		paidIntent("evt_2", "pi_2", "A2", "jpy", "500", "1767225600"),
		refunded("evt_3", "re_1", "pi_1", "250", "1767225601"),
		paidIntent("evt_4", "pi_4", "nobody", "eur", "700", "1767225602"))
	out := w.must("books")
	want := `DAY             SALES   REFUNDS  DISPUTES        NET  IN SUSPENSE
2025-12-31  12.50 EUR  0.00 EUR  0.00 EUR  12.50 EUR     0.00 EUR
2026-01-01   0.00 EUR -2.50 EUR  0.00 EUR  -2.50 EUR     7.00 EUR
2026-01-01    500 JPY     0 JPY     0 JPY    500 JPY        0 JPY
closing     12.50 EUR -2.50 EUR  0.00 EUR  10.00 EUR     7.00 EUR
closing       500 JPY     0 JPY     0 JPY    500 JPY        0 JPY
`
	if strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("books\n%s\nwant\n%s", out, want)
	}
	wantParts(t, "books of 2026", w.must("books", "--since", "2026-01-01"), "opening     12.50 EUR", "closing")
	unwanted(t, "books of 2026", w.must("books", "--since", "2026-01-01"), "2025-12-31")
	var b struct {
		Since, Until           *string
		Opening, Days, Closing []map[string]any
	}
	w.mustJSON(&b, "books", "--until", "2026-01-01T00:00:00Z")
	if b.Since != nil || b.Until == nil || len(b.Opening) != 0 || len(b.Days) != 1 || b.Days[0]["date"] != "2025-12-31" || b.Closing[0]["net_minor"] != 1250.0 {
		t.Errorf("books --json: %+v", b)
	}
}

func TestTheExportIsHarmlessAndAddsUp(t *testing.T) {
	w := newShop(t)
	const evil = `=HYPERLINK("http://evil.example")`
	w.must("orders", "add", "--id", evil, "--total", "12.50", "--currency", "eur", "--ref", "pi_1")
	w.deliver(paidIntent("@evt", "pi_1", "", "eur", "1250", "1767225600"), refunded("evt_2", "-re", "pi_1", "250", "1767225601"))
	rows, err := csv.NewReader(strings.NewReader(w.must("books", "--csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"sales", "eur", "12.50", "1250", "main", "'" + evil, "pi_1", "'@evt"},
		{"refunds", "eur", "-2.50", "-250", "main", "'" + evil, "'-re", "evt_2"},
	}
	if len(rows) != 3 || rows[0][0] != "entry" {
		t.Fatalf("rows %q", rows)
	}
	for i, row := range rows[1:] {
		if got := row[3:11]; !slices.Equal(got, want[i]) {
			t.Errorf("row %q; want %q", got, want[i])
		}
	}
	if exit, stdout, stderr := w.run("books", "--csv", "--json"); exit != 2 || stdout != "" || !strings.Contains(stderr, "contradict each other") {
		t.Errorf("two forms at once: exit %d, %q, %s", exit, stdout, stderr)
	}
	if out := w.must("books", "--csv", "--until", "2020-01-01"); strings.Count(out, "\n") != 1 {
		t.Errorf("an empty export is %q; want its header", out)
	}
}

func TestOnlyTextThatWouldBeAFormulaIsChanged(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""}, {"pi_1", "pi_1"}, {"a=b", "a=b"}, {"=1+1", "'=1+1"}, {"+1", "'+1"}, {"-1", "'-1"}, {"@SUM(1)", "'@SUM(1)"},
		{"\t=1", "'\t=1"}, {"\r=1", "'\r=1"}, {"ümlaut", "ümlaut"},
	} {
		if got := harmless(tt.in); got != tt.want {
			t.Errorf("harmless(%q) = %q; want %q", tt.in, got, tt.want)
		}
	}
}
