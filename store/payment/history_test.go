package payment

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// randomEvent is an event about one of a few objects that hang together in many
// ways, most of them sound.
func randomEvent(r *rand.Rand, n int) []byte {
	word := func(words ...string) string { return words[r.IntN(len(words))] }
	amount := func() string { return word("1250", "1250", "1250", "0", "200", "1300") }
	named := word("x=1", "x=1", `metadata={"order_id":"ORD-1"}`, `metadata={"order_id":"ORD-2"}`)
	i := word("1", "2")
	var object string
	switch r.IntN(5) {
	case 0:
		object = sessionOf("cs_"+i, "status="+word("open", "complete", "complete", "expired"),
			"payment_status="+word("unpaid", "paid", "no_payment_required"), "amount_total="+amount(),
			"payment_intent="+word("null", "pi_"+i), named, "mode="+word("payment", "payment", "setup", "-"))
	case 1:
		object = intentOf("pi_"+i, "status="+word("requires_payment_method", "requires_action", "processing", "requires_capture",
			"succeeded", "succeeded", "canceled"), "amount_received="+amount(), "latest_charge="+word("null", "ch_1", "ch_2"),
			"last_payment_error="+word("null", "{}"), "currency="+word("eur", "eur", "usd"), named)
	case 2:
		object = chargeOf("ch_"+i, "status="+word("pending", "failed", "succeeded", "succeeded"), "captured="+word("true", "false"),
			"amount_captured="+amount(), "amount_refunded="+amount(), "payment_intent="+word("null", "pi_"+i))
	case 3:
		object = refundOf("re_"+i, "status="+word("pending", "requires_action", "succeeded", "failed", "canceled"), "amount="+amount(),
			"charge="+word("null", "ch_1", "ch_2"), "payment_intent="+word("null", "pi_"+i), "currency="+word("eur", "eur", "-", "usd"))
	default:
		object = disputeOf("dp_"+i, "status="+word("warning_needs_response", "needs_response", "under_review", "won", "lost"),
			"charge="+word("null", "ch_"+i), "payment_intent="+word("null", "pi_"+i),
			fmt.Sprintf(`balance_transactions=[{"id":"txn_%d","amount":%s%s,"currency":%q}]`,
				r.IntN(2), word("-", ""), word("1250", "1300", "50"), word("eur", "eur", "gbp")))
	}
	eventType := "x"
	if strings.Contains(object, `"complete"`) {
		eventType = word("x", "checkout.session.async_payment_failed")
	}
	return body(fmt.Sprintf("evt_%d", n), eventType, int64(r.IntN(4)), object)
}

// Whatever happens, in whatever order and however often: one outcome, and books
// that add up (promise P4).
func TestRandomHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	policies := []Policy{PolicyExact, PolicyAtLeast, PolicyAny, PolicySubtotal}
	seen := make(map[Status]int)
	for range 1200 {
		var bodies [][]byte
		for n := range 1 + r.IntN(9) {
			bodies = append(bodies, randomEvent(r, n))
		}
		facts := learn(t, bodies...)
		order := &Order{Tenant: "main", ID: "ORD-1", TotalMinor: 1250, Currency: "eur", Policy: policies[r.IntN(4)]}
		switch r.IntN(6) {
		case 0:
			order.ClosedAt = 1
		case 1:
			order.PaymentIntent = "pi_1"
		case 2:
			order.Accepted = map[PaymentKey]bool{{testScope, "pi_1"}: true, {testScope, "cs_2"}: true}
		case 3:
			order.TotalMinor = 0
		}
		want := Derive(order, facts, nil)
		seen[want.Status]++
		checkBooks(t, facts, order, want)
		for range 3 {
			again := append(bodies[:len(bodies):len(bodies)], bodies...)
			r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
			if got := Derive(order, learn(t, again...), nil); !reflect.DeepEqual(got, want) {
				t.Errorf("in another order it comes to\n%+v\nwant\n%+v", got, want)
			}
		}
		if t.Failed() {
			for _, b := range bodies {
				t.Logf("%s", b)
			}
			return
		}
	}
	for _, s := range []Status{
		StatusAwaitingPayment, StatusProcessing, StatusAuthorized, StatusPaymentFailed, StatusExpired, StatusCanceled, StatusPaid,
		StatusPartiallyRefunded, StatusRefundPending, StatusRefunded, StatusDisputed, StatusChargedBack,
	} {
		if seen[s] == 0 {
			t.Errorf("no history came to %s", s)
		}
	}
}
