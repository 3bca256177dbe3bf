package stripefake_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v82"

	"paidonce/worker/stripefake"
)

// someLives are lives for tests that need no thousands of them.
func someLives(n int) []stripefake.Life {
	if testing.Short() {
		n = max(1, n/5)
	}
	lives := make([]stripefake.Life, n)
	for i := range lives {
		lives[i] = drawLife(uint64(i+1), 0)
	}
	return lives
}

func TestALifeIsAFunctionOfItsSeed(t *testing.T) {
	for _, l := range someLives(50) {
		again := drawLife(l.Seed, 0)
		if got, want := again.String(), l.String(); got != want {
			t.Fatalf("drawn twice:\n%s\n%s", want, got)
		}
		replayed := l.Replay()
		if got, want := replayed.String(), l.String(); got != want {
			t.Fatalf("lived twice:\n%s\n%s", want, got)
		}
		for i, e := range replayed.Events {
			if string(e.Body(1)) != string(l.Events[i].Body(1)) {
				t.Fatalf("life %d: %s differs when lived again", l.Seed, e)
			}
		}
		if !reflect.DeepEqual(replayed.Ledger, l.Ledger) {
			t.Fatalf("life %d: the ledger differs when lived again", l.Seed)
		}
	}
}

func TestEveryLifeIsLegal(t *testing.T) {
	ids := map[string]bool{}
	for _, l := range someLives(300) {
		if err := l.Account.Check(); err != nil {
			t.Errorf("%s\n%v", l, err)
		}
		for _, e := range l.Events {
			if ids[e.ID] {
				t.Errorf("life %d: the event id %s is not the only one", l.Seed, e.ID)
			}
			ids[e.ID] = true
		}
	}
}

// TestLivesAreDiverse keeps the convergence tests from becoming empty: the lives
// of one run must have everything in them.
func TestLivesAreDiverse(t *testing.T) {
	if testing.Short() {
		t.Skip("needs many lives")
	}
	seen := map[string]int{}
	for _, l := range someLives(1500) {
		seen["version "+l.World.APIVersion]++
		seen[fmt.Sprint("release ", l.World.Release)]++
		if len(l.Lost) > 0 {
			seen["lost events"]++
		}
		for _, s := range l.Steps {
			seen["act "+string(s.Act)]++
		}
		for _, e := range l.Events {
			seen["event "+e.Type]++
		}
		for _, o := range l.Orders {
			seen["policy "+o.Policy]++
		}
		for _, e := range expect(l) {
			seen["status "+e.Status]++
			for _, a := range e.Attention {
				word, _, _ := strings.Cut(a, " ")
				seen["attention "+word]++
			}
		}
	}
	var want []string
	for kind, words := range map[string]string{
		"version": "2020-08-27 2025-08-27.basil", "release": "0 1 2", "policy": "exact at_least any subtotal", "lost": "events",
		"status": "awaiting_payment processing authorized payment_failed expired canceled paid partially_refunded refund_pending refunded disputed charged_back",
		"attention": "amount_mismatch currency_mismatch order_conflict double_payment paid_after_close refund_failed " +
			"dispute_inquiry dispute_needs_response underpaid overpaid",
		"event": "checkout.session.completed checkout.session.async_payment_succeeded checkout.session.async_payment_failed checkout.session.expired " +
			"payment_intent.created payment_intent.succeeded payment_intent.amount_capturable_updated payment_intent.processing " +
			"payment_intent.requires_action payment_intent.payment_failed payment_intent.canceled " +
			"charge.pending charge.updated charge.succeeded charge.captured charge.failed charge.expired charge.refunded charge.refund.updated " +
			"refund.created refund.updated refund.failed charge.dispute.created charge.dispute.updated charge.dispute.funds_withdrawn " +
			"charge.dispute.funds_reinstated charge.dispute.closed invoice.paid invoice_payment.paid",
	} {
		for _, word := range strings.Fields(words) {
			want = append(want, kind+" "+word)
		}
	}
	for _, act := range []stripefake.Act{
		stripefake.ActOpenSession, stripefake.ActCreateIntent, stripefake.ActChargeDirectly, stripefake.ActSubscribe, stripefake.ActRenew,
		stripefake.ActAskBuyer, stripefake.ActDecline, stripefake.ActPay, stripefake.ActSettle, stripefake.ActBounce, stripefake.ActCapture,
		stripefake.ActCancel, stripefake.ActHoldExpires, stripefake.ActExpireSession, stripefake.ActRefund, stripefake.ActRefundLater,
		stripefake.ActRefundWaits, stripefake.ActRefundArrives, stripefake.ActRefundFails, stripefake.ActRefundReturned,
		stripefake.ActRefundCanceled, stripefake.ActInquire, stripefake.ActChargeBack, stripefake.ActAnswer, stripefake.ActEscalate,
		stripefake.ActCloseInquiry, stripefake.ActPrevent, stripefake.ActWin, stripefake.ActLose, stripefake.ActReinstate,
		stripefake.ActTurn, stripefake.ActTouch, stripefake.ActRepeat,
	} {
		want = append(want, "act "+string(act))
	}
	for _, w := range want {
		if seen[w] < 5 {
			t.Errorf("only %d lives have: %s", seen[w], w)
		}
	}
}

// TestStripesOwnLibraryReadsEveryBody decodes every event with stripe-go into
// the type of its object.
func TestStripesOwnLibraryReadsEveryBody(t *testing.T) {
	for _, l := range someLives(300) {
		for _, e := range l.Events {
			var ev stripe.Event
			if err := json.Unmarshal(e.Body(1), &ev); err != nil {
				t.Fatalf("%s: %v\n%s", e, err, e.Body(1))
			}
			if ev.ID != e.ID || string(ev.Type) != e.Type || ev.Created != e.Created || ev.APIVersion != l.World.APIVersion || ev.PendingWebhooks != 1 {
				t.Errorf("%s came out as %s, %s, %d, %s", e, ev.ID, ev.Type, ev.Created, ev.APIVersion)
			}
			if id := typed(t, ev); id != e.Object {
				t.Errorf("%s came out as %q", e, id)
			}
		}
	}
}

// typed decodes an event's object into its type, and returns its id.
func typed(t *testing.T, ev stripe.Event) string {
	t.Helper()
	into := func(v any) {
		t.Helper()
		if err := json.Unmarshal(ev.Data.Raw, v); err != nil {
			t.Fatalf("%s: %v\n%s", ev.Type, err, ev.Data.Raw)
		}
	}
	switch ev.Data.Object["object"] {
	case "checkout.session":
		var o stripe.CheckoutSession
		into(&o)
		return o.ID
	case "payment_intent":
		var o stripe.PaymentIntent
		into(&o)
		return o.ID
	case "charge":
		var o stripe.Charge
		into(&o)
		return o.ID
	case "refund":
		var o stripe.Refund
		into(&o)
		return o.ID
	case "dispute":
		var o stripe.Dispute
		into(&o)
		return o.ID
	case "invoice":
		var o stripe.Invoice
		into(&o)
		return o.ID
	case "invoice_payment":
		var o stripe.InvoicePayment
		into(&o)
		return o.ID
	}
	return ""
}

func TestShrinkKeepsOnlyWhatFails(t *testing.T) {
	// Whatever life has a refund that fails on a charge, that is what remains.
	failing := func(l stripefake.Life) bool {
		return slices.ContainsFunc(l.Events, func(e stripefake.Event) bool { return e.Type == "refund.failed" })
	}
	tried := 0
	for _, l := range someLives(200) {
		if !failing(l) || len(l.Steps) < 8 {
			continue
		}
		tried++
		small := stripefake.Shrink(l, failing)
		if !failing(small) || len(small.Steps) > 6 || len(small.Events) != 1 || len(small.Orders) != 0 {
			t.Errorf("life %d is still:\n%s", l.Seed, small)
		}
		if err := small.Account.Check(); err != nil {
			t.Errorf("life %d: %v", l.Seed, err)
		}
	}
	if tried < 5 && !testing.Short() {
		t.Errorf("only %d lives had something to shrink", tried)
	}
}
