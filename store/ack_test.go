package store_test

import (
	"context"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

func TestAnAcknowledgedAttentionComesBackWithANewCause(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, paid("evt_1", "pi_1"), refund("evt_2", "re_1", "failed", 1750000010))
	wantOrder(t, s, "ORD-1", "paid", 1250, 0, "refund_failed")

	o, err := s.AckAttention(ctx, "", "ORD-1", "refund_failed", "told the customer")
	if err != nil || len(o.Attention) != 0 {
		t.Fatalf("ack: %v, attention %q; want none", err, o.Attention)
	}
	storetest.Deliver(t, s, paid("evt_3", "pi_1"), refund("evt_4", "re_1", "failed", 1750000020))
	d := wantOrder(t, s, "ORD-1", "paid", 1250, 0)
	if len(d.AttentionDetail) != 0 {
		t.Errorf("attention_detail %+v; want none", d.AttentionDetail)
	}
	if page, err := s.ListOrders(ctx, store.OrderFilter{Attention: "any"}); err != nil || len(page.Items) != 0 {
		t.Errorf("orders with any attention: %+v, %v; want none", page.Items, err)
	}
	if lines := strings.Join(timelineOf(t, s, "ORD-1"), "\n"); !strings.Contains(lines, "act: ack refund_failed by api: told the customer") {
		t.Errorf("the timeline lacks the act:\n%s", lines)
	}

	storetest.Deliver(t, s, refund("evt_5", "re_2", "failed", 1750000030))
	d = wantOrder(t, s, "ORD-1", "paid", 1250, 0, "refund_failed")
	if len(d.AttentionDetail) != 1 || d.AttentionDetail[0].Cause != "re_2" {
		t.Errorf("attention_detail %+v; want re_2 alone", d.AttentionDetail)
	}
}

func TestAnAcknowledgementEndsWithItsAttention(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	dispute := func(event, status string, created int64) string {
		return of(event, "dispute", "dp_1", created, `,"amount":1250,"status":"`+status+`","payment_intent":"pi_1","charge":null,"balance_transactions":[]`)
	}
	storetest.Deliver(t, s, paid("evt_1", "pi_1"), dispute("evt_2", "needs_response", 1750000010))
	if _, err := s.AckAttention(ctx, "", "ORD-1", "dispute_needs_response", ""); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, s, "ORD-1", "disputed", 1250, 0)
	storetest.Deliver(t, s, dispute("evt_3", "under_review", 1750000020))
	wantOrder(t, s, "ORD-1", "disputed", 1250, 0)
	storetest.Deliver(t, s, dispute("evt_4", "needs_response", 1750000030))
	wantOrder(t, s, "ORD-1", "disputed", 1250, 0, "dispute_needs_response")
}

func TestOnlyWhatStandsIsAcknowledged(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, intent("evt_1", "pi_1", "succeeded", 1750000000, 1000, ""))
	for _, tt := range []struct {
		name, order, word, note string
		code                    store.Code
	}{
		{"a word that the order does not show", "ORD-1", "oversold", "", store.CodeNotFound},
		{"a word that is none", "ORD-1", "nonsense", "", store.CodeNotFound},
		{"no word", "ORD-1", "", "", store.CodeInvalid},
		{"an order that is not there", "ORD-9", "underpaid", "", store.CodeNotFound},
		{"a note that is too long", "ORD-1", "underpaid", strings.Repeat("x", 501), store.CodeInvalid},
		{"a note with a control character", "ORD-1", "underpaid", "a\x1bb", store.CodeInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.AckAttention(ctx, "", tt.order, tt.word, tt.note)
			p := wantProblem(t, "ack", err, tt.code)
			if tt.code == store.CodeNotFound && tt.order == "ORD-1" && !strings.Contains(p.Message, tt.word) {
				t.Errorf("%q does not name %s", p.Message, tt.word)
			}
		})
	}
	if _, err := s.AckAttention(ctx, "", "ORD-1", "underpaid", ""); err != nil {
		t.Fatal(err)
	}
	wantOrder(t, s, "ORD-1", "awaiting_payment", 0, 1000, "amount_mismatch")
	_, err := s.AckAttention(ctx, "", "ORD-1", "underpaid", "")
	wantProblem(t, "a second time", err, store.CodeNotFound)
}
