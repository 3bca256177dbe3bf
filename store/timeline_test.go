package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"paidonce/store/storetest"
)

func TestTheTimelineAnswersWhyAnOrderIsLikeThis(t *testing.T) {
	ctx := context.Background()
	s, clock := storetest.Open(t, returns)
	setStock(t, s, "ebook", 5)
	// Before its order: it belongs to none, and its repeat never will.
	storetest.Deliver(t, s, paid("evt_1", "pi_1"), paid("evt_2", "pi_1"))
	clock.Advance(1e9)
	storetest.Register(t, s, "ORD-1", 1250, "eur", sells("ebook", 2))
	storetest.Register(t, s, "ORD-2", 1250, "eur")
	clock.Advance(1e9)
	storetest.Deliver(t, s, refund("evt_3", "re_1", "failed", 1750000010))
	clock.Advance(1e9)
	both := `,"client_reference_id":"ORD-2"`
	storetest.Deliver(t, s, of("evt_4", "checkout.session", "cs_2", 1750000020, `,"mode":"payment","status":"complete","payment_status":"paid",
		"amount_total":1250,"payment_intent":"pi_2","metadata":{"order_id":"ORD-1"}`+both))
	clock.Advance(1e9)
	if _, err := s.AckAttention(ctx, "", "ORD-1", "refund_failed", "called them"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(1e9)
	if _, err := s.DismissEvent(ctx, "", "evt_4", "settled by mail"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"event: payment_intent.succeeded: done, applied",
		"event: payment_intent.succeeded: done, duplicate (another event already said the same of pi_1)",
		"act: register by api",
		"entry: sales 12.50 EUR for pi_1",
		"stock: took 2 × ebook",
		"operation: recorded order.paid",
		"event: refund.updated: done, applied",
		"operation: recorded refund.failed:re_1",
		"act: ack refund_failed by api: called them",
		"act: dismiss evt_4 by api: settled by mail",
		"event: checkout.session.updated: done, ignored (dismissed, was order_conflict: settled by mail)",
	}
	if got := timelineOf(t, s, "ORD-1"); !slices.Equal(got, want) {
		t.Errorf("timeline\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	if got := strings.Join(timelineOf(t, s, "ORD-2"), "\n"); !strings.Contains(got, "dismissed, was order_conflict") {
		t.Errorf("the other order of the conflict does not tell of it:\n%s", got)
	}
}
