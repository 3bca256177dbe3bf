package store_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

func returns(o *store.Options) { o.StockReturn = true }

func setStock(t *testing.T, s *store.Store, sku string, n int64) {
	t.Helper()
	if _, err := s.SetStock(context.Background(), "", sku, n); err != nil {
		t.Fatal(err)
	}
}

func wantStock(t *testing.T, s *store.Store, want ...string) {
	t.Helper()
	lines, err := s.ListStock(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %s", l.SKU, l.OnHand, strings.Join(l.Attention, " "))))
	}
	if !slices.Equal(got, want) {
		t.Errorf("stock %q; want %q", got, want)
	}
}

func TestStockIsTakenOnceAndGivenBackOnAFullRefund(t *testing.T) {
	pay, back := paid("evt_1", "pi_1"), refund("evt_2", "re_1", "succeeded", 1750000010)
	failed := refund("evt_3", "re_1", "failed", 1750000020)
	for _, tt := range []struct {
		name    string
		returns bool
		bodies  []string
		want    int64
		moves   int
	}{
		{"nothing before the money", true, []string{intent("evt_1", "pi_1", "processing", 1750000000, 0, "")}, 10, 0},
		{"nothing for a wrong amount", true, []string{intent("evt_1", "pi_1", "succeeded", 1750000000, 50, "")}, 10, 0},
		{"once when it is paid", true, []string{pay, pay, paid("evt_9", "pi_1")}, 7, 1},
		{"back on a full refund", true, []string{pay, back}, 10, 2},
		{"never out when the refund was learned first", true, []string{back, pay}, 10, 0},
		{"out again when the refund fails", true, []string{pay, back, failed}, 7, 3},
		{"kept by the buyer where the shop wants no return", false, []string{pay, back}, 7, 1},
		{"taken all the same where the refund was learned first", false, []string{back, pay}, 7, 1},
		{"a part refund gives nothing back", true, []string{pay, strings.Replace(back, `"amount":1250`, `"amount":1249`, 1)}, 7, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t, func(o *store.Options) { o.StockReturn = tt.returns })
			setStock(t, s, "ebook", 10)
			storetest.Register(t, s, "ORD-1", 1250, "eur", sells("ebook", 2), sells("ebook", 1), sells("uncounted", 1))
			for _, body := range tt.bodies { // one by one, each its own derivation
				storetest.Deliver(t, s, body)
			}
			wantStock(t, s, fmt.Sprintf("ebook %d", tt.want))
			n := 0
			for _, line := range timelineOf(t, s, "ORD-1") {
				if strings.HasPrefix(line, "stock: ") && strings.HasSuffix(line, "× ebook") {
					n++
				}
			}
			if n != tt.moves {
				t.Errorf("%d moves in the timeline; want %d", n, tt.moves)
			}
		})
	}
}

func TestTooLittleStockIsAnAttentionAndNoFailure(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t, returns)
	setStock(t, s, "ebook", 1)
	storetest.Register(t, s, "ORD-1", 1250, "eur", sells("ebook", 3))
	storetest.Deliver(t, s, paid("evt_1", "pi_1"))
	o := wantOrder(t, s, "ORD-1", "paid", 1250, 0, "oversold")
	if a := o.AttentionDetail[0]; a.Cause != "ebook" || !strings.Contains(a.Detail, "3 were sold and 2 of them were not in stock") {
		t.Errorf("attention %+v", a)
	}
	if !slices.Contains(timelineOf(t, s, "ORD-1"), "stock: took 3 × ebook, of which 2 were not there") {
		t.Errorf("timeline %q", timelineOf(t, s, "ORD-1"))
	}
	wantStock(t, s, "ebook -2")
	setStock(t, s, "ebook", 5) // the count has the three in it
	storetest.Check(t, s)
	if _, err := s.RequeueEvent(ctx, "", "evt_1"); err != nil { // what was short stays so when it is learned again
		t.Fatal(err)
	}
	storetest.Work(t, s)
	wantOrder(t, s, "ORD-1", "paid", 1250, 0, "oversold")
	if o, err := s.AckAttention(ctx, "", "ORD-1", "oversold", "more are coming"); err != nil || len(o.Attention) != 0 {
		t.Errorf("ack: %v, %q", err, o.Attention)
	}
	storetest.Deliver(t, s, refund("evt_2", "re_1", "succeeded", 1750000010))
	wantStock(t, s, "ebook 8")
	setStock(t, s, "ebook", 0)
	storetest.Deliver(t, s, refund("evt_3", "re_1", "failed", 1750000020))
	wantOrder(t, s, "ORD-1", "paid", 1250, 0, "oversold", "refund_failed") // taken again, short again
}

func TestOrdersOfATenantTakeItsStock(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	if _, err := s.SetStock(ctx, "acct_B", "ebook", 5); err != nil {
		t.Fatal(err)
	}
	storetest.Register(t, s, "ORD-1", 1250, "eur", sells("ebook", 1))
	storetest.Deliver(t, s, paid("evt_1", "pi_1"))
	wantStock(t, s, "ebook 5")
}

func TestStockAtOrUnderTheMarkIsLow(t *testing.T) {
	s, _ := storetest.Open(t, func(o *store.Options) { o.StockLow = 2 })
	setStock(t, s, "book", 3)
	setStock(t, s, "mug", 2)
	setStock(t, s, "tee", -1)
	wantStock(t, s, "book 3", "mug 2 low_stock", "tee -1 low_stock")
}

func TestACountThatCannotBeIsRefused(t *testing.T) {
	s, _ := storetest.Open(t)
	for _, tt := range []struct {
		name, tenant, sku string
		onHand            int64
		field             string
	}{
		{"no name", "", "", 1, "sku"},
		{"a name with a line break", "", "a\nb", 1, "sku"},
		{"a tenant that is none", "a b", "ebook", 1, "tenant"},
		{"too much", "", "ebook", math.MaxInt64, "on_hand"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.SetStock(context.Background(), tt.tenant, tt.sku, tt.onHand)
			if p := wantProblem(t, "set", err, store.CodeInvalid); len(p.Fields) != 1 || p.Fields[0].Field != tt.field {
				t.Errorf("fields %+v; want %s", p.Fields, tt.field)
			}
		})
	}
}

func TestWhatWentBackIsNotTakenAgainByAnotherPolicy(t *testing.T) {
	var o store.Options
	s, _ := storetest.Open(t, returns, func(opt *store.Options) { o = *opt })
	setStock(t, s, "ebook", 10)
	storetest.Register(t, s, "ORD-1", 1250, "eur", sells("ebook", 3))
	storetest.Deliver(t, s, paid("evt_1", "pi_1"), refund("evt_2", "re_1", "succeeded", 1750000010))
	wantStock(t, s, "ebook 10")
	o.Mode, o.StockReturn = store.Client, false
	other, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	storetest.Deliver(t, other, refund("evt_3", "re_2", "failed", 1750000020))
	wantOrder(t, s, "ORD-1", "refunded", 1250, 0, "refund_failed")
	wantStock(t, s, "ebook 10")
}
