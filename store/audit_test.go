package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

func audited(o *store.Options) { o.Audit = true }

// trail returns all lines of the audit trail, and checks that seq goes up by
// one.
func trail(t *testing.T, s *store.Store) []store.AuditLine {
	t.Helper()
	lines, err := s.AuditAfter(ctx, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range lines {
		if i > 0 && l.Seq != lines[i-1].Seq+1 {
			t.Errorf("seq %d after %d", l.Seq, lines[i-1].Seq)
		}
		if l.At == 0 {
			t.Errorf("a line without a time: %+v", l)
		}
	}
	return lines
}

// TestTheTrailHoldsWhatHappenedOnce goes through a sale and checks each line.
func TestTheTrailHoldsWhatHappenedOnce(t *testing.T) {
	s, _ := storetest.Open(t, fan("app"), withKey, audited)
	storetest.Register(t, s, "ORD-1", 1250, "eur", func(n *store.NewOrder) {
		n.Customer = &store.Customer{Email: "ann@example.com", Name: "Ann Example"}
	})
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1), pays("evt_1", "pi_1", 1), pays("evt_2", "pi_1", 2))
	paid := storetest.ClaimOne(t, s, "app")
	storetest.Finish(t, s, paid, again)
	amount := int64(500)
	effect, err := s.RequestRefund(ctx, "", "ORD-1", store.RefundRequest{AmountMinor: &amount, RequestID: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	call := storetest.ClaimOne(t, s, store.StripeTarget)
	storetest.Finish(t, s, call, store.Answer{Outcome: store.OutcomeRefused, Status: 400, Code: "charge_disputed", Error: "answered 400", RequestID: "req_1"})
	if _, err := s.AckAttention(ctx, "", "ORD-1", "effect_failed", "Ann phoned, 030 123"); err != nil {
		t.Fatal(err)
	}
	storetest.Deliver(t, s, broken("evt_3"))
	dismiss(t, s, "evt_3") // with a note that names Ann
	if _, err := s.ResolveEffect(ctx, effect.ID, "canceled", "Ann again"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"act register ORD-1",
		"decision payment_intent.succeeded ORD-1 evt_1 done, applied",
		"decision payment_intent.succeeded ORD-1 evt_2 done, duplicate: another event already said the same of pi_1",
		"call order.paid ORD-1 evt_1 app " + paid.Key + " again: answered 503",
		"act refund ORD-1 effect " + effect.ID + ": pi_1",
		"call refund.request:r1 ORD-1 stripe " + call.Key + " refused: charge_disputed [req_1]",
		"act ack ORD-1: effect_failed",
		"decision payment_intent.updated evt_3 quarantined, malformed: payment_intent: amount is not a plain JSON integer",
		"act dismiss evt_3: evt_3",
		"act resolve ORD-1 effect " + effect.ID + ": refund.request:r1",
	}
	var got []string
	for _, l := range trail(t, s) {
		text := l.Kind + " " + l.Operation
		for _, word := range []string{l.Order, l.Event, l.Target, l.Key, l.Outcome} {
			if word != "" {
				text += " " + word
			}
		}
		if l.Kind == "act" && l.Effect != 0 {
			text += fmt.Sprint(" effect ", l.Effect)
		}
		if l.Detail != "" {
			text += ": " + l.Detail
		}
		if l.RequestID != "" {
			text += " [" + l.RequestID + "]"
		}
		if (l.Actor != "") != (l.Kind == "act") {
			t.Errorf("actor %q of %s", l.Actor, text)
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the trail:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if body, _ := json.Marshal(trail(t, s)); strings.Contains(string(body), "nn@example") || strings.Contains(string(body), "Ann") || strings.Contains(string(body), "030") {
		t.Errorf("a person stands in the trail: %s", body)
	}
}

func TestARetriedEventIsInTheTrail(t *testing.T) {
	s, _ := storetest.Open(t, audited)
	if _, err := s.AddEvent(ctx, storetest.NewEvent(pays("evt_1", "pi_1", 1))); err != nil {
		t.Fatal(err)
	}
	claims, err := s.ClaimEvents(ctx, 1)
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	if err := s.RetryEvent(ctx, claims[0], fmt.Errorf("dial ann@example.com failed"), false); err != nil {
		t.Fatal(err)
	}
	lines := trail(t, s)
	if len(lines) != 1 || lines[0].Outcome != "pending, retrying" || strings.Contains(lines[0].Detail, "ann@") {
		t.Errorf("%+v", lines)
	}
}

func TestWhatFailsLeavesNoLine(t *testing.T) {
	s, _ := storetest.Open(t, audited)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	before := len(trail(t, s))
	if _, err := s.AcceptPayment(ctx, "", "ORD-1", "pi_none"); err == nil {
		t.Fatal("accepted a payment that is not there")
	}
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	if _, err := s.ExplainEvent(ctx, "", "evt_1"); err != nil { // does it, and takes it back
		t.Fatal(err)
	}
	if got := len(trail(t, s)) - before; got != 1 {
		t.Errorf("%d lines; want that of the delivery alone", got)
	}
}

func TestWithoutATrailNothingIsWritten(t *testing.T) {
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	if lines := trail(t, s); len(lines) != 0 {
		t.Errorf("%+v", lines)
	}
}

// TestCopiedLinesGoInSteps: the cursor goes up alone, and what lies behind it
// is deleted by and by.
func TestCopiedLinesGoInSteps(t *testing.T) {
	s, _ := storetest.Open(t, audited)
	for i := range 1200 {
		if testing.Short() && i == 20 {
			break
		}
		if _, err := s.SetStock(ctx, "", "mug", int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	all := trail(t, s)
	last := all[len(all)-1].Seq
	cursor := func(want int64) {
		t.Helper()
		if got, err := s.AuditCursor(ctx); err != nil || got != want {
			t.Errorf("cursor %d, %v; want %d", got, err, want)
		}
	}
	cursor(0)
	copied := func(seq int64) {
		t.Helper()
		if err := s.AuditCopied(ctx, seq); err != nil {
			t.Fatal(err)
		}
	}
	copied(5)
	cursor(5)
	if left := trail(t, s); left[0].Seq != 6 {
		t.Errorf("the first line left is %d; want 6", left[0].Seq)
	}
	copied(3)
	cursor(5)
	copied(last - 1)
	cursor(last - 1)
	left := trail(t, s)
	if len(all) > 1100 && len(left) == 1 {
		t.Error("all were deleted in one step")
	}
	copied(last - 1)
	if left = trail(t, s); len(left) != 1 || left[0].Seq != last {
		t.Errorf("%d lines left; want the one that was not copied", len(left))
	}
	copied(last)
	if _, err := s.SetStock(ctx, "", "mug", 7); err != nil {
		t.Fatal(err)
	}
	if left = trail(t, s); len(left) != 1 || left[0].Seq != last+1 {
		t.Errorf("after all were deleted: %+v; want seq %d", left, last+1)
	}
}
