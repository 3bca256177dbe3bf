package payment

import (
	"reflect"
	"slices"
	"testing"
)

// scenario is what happens to one order of 12.50 EUR (unless order changes it)
// and what it comes to, as summary writes it.
type scenario struct {
	name       string
	order      func(o *Order)
	bodies     [][]byte
	conflicted [][]byte
	want       string
}

// runScenarios derives each scenario from its bodies in every order, once and
// twice each, and expects the same to the last field (promise P4).
func runScenarios(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			order := &Order{Tenant: "main", ID: "ORD-1", TotalMinor: 1250, Currency: "eur", Policy: PolicyExact}
			if s.order != nil {
				s.order(order)
			}
			conflicted := learn(t, s.conflicted...)
			first := learn(t, s.bodies...)
			want := Derive(order, first, conflicted)
			if got := summary(want); got != s.want {
				t.Errorf("the order comes to\n%s\nwant\n%s", got, s.want)
			}
			checkBooks(t, first, order, want)
			permutations(len(s.bodies), func(seq []int) {
				var bodies [][]byte
				for _, i := range seq {
					bodies = append(bodies, s.bodies[i])
				}
				for _, bodies := range [][][]byte{bodies, slices.Concat(bodies, bodies)} {
					if got := Derive(order, learn(t, bodies...), conflicted); !reflect.DeepEqual(got, want) {
						t.Errorf("in the order %v it comes to\n%+v\nwant\n%+v", seq, got, want)
					}
				}
			})
		})
	}
}

// checkBooks checks that the books are the numbers, and that linking and
// accepting move money between accounts and make none: each object comes to the
// same with the order and without it.
func checkBooks(t *testing.T, facts []Fact, o *Order, out Outcome) {
	t.Helper()
	sums := make(map[Account]int64)
	type object struct{ scope, id, currency string }
	total := make(map[object]int64)
	for _, b := range out.Balances {
		if b.AmountMinor == 0 || b.Currency == "" || b.Object == "" {
			t.Errorf("an empty balance: %+v", b)
		}
		total[object{b.Scope, b.Object, b.Currency}] += b.AmountMinor
		if b.Currency == o.Currency {
			sums[b.Account] += b.AmountMinor
		} else if b.Account != AccountSuspense {
			t.Errorf("money in another currency is counted: %+v", b)
		}
	}
	for _, c := range []struct {
		account Account
		number  int64
	}{
		{AccountSales, out.ReceivedMinor},
		{AccountRefunds, -out.RefundedMinor},
		{AccountDisputes, -out.ChargedBackMinor},
		{AccountSuspense, out.SuspenseMinor},
	} {
		if sums[c.account] != c.number {
			t.Errorf("the entries in %s come to %d; the order's number is %d", c.account, sums[c.account], c.number)
		}
	}
	for _, b := range Derive(nil, facts, nil).Balances {
		if b.Account != AccountSuspense {
			t.Errorf("without an order there is %+v", b)
		}
		total[object{b.Scope, b.Object, b.Currency}] -= b.AmountMinor
	}
	for at, n := range total {
		if n != 0 {
			t.Errorf("with the order %v comes to %d more than without it", at, n)
		}
	}
	if out.ChargedBackMinor > out.ReceivedMinor || out.RefundedMinor > out.ReceivedMinor {
		t.Errorf("more went back than came: %+v", out)
	}
}

// Rule 1, and that one payment told by several objects is one.
func TestDeriveReceived(t *testing.T) {
	const paid = "paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur"
	session, intent, charge := at(2, sessionOf("cs_1")), at(0, intentOf("pi_1")), at(1, chargeOf("ch_1"))
	runScenarios(t, []scenario{
		{"session, intent and charge are one payment (B20)", nil, [][]byte{session, intent, charge}, nil, paid},
		{"an intent alone", nil, [][]byte{intent}, nil, paid},
		{"a charge that names an intent", nil, [][]byte{charge}, nil, paid},
		{"a session that names an intent", nil, [][]byte{session}, nil, paid},
		{"a charge alone", nil, [][]byte{at(0, chargeOf("ch_1", "payment_intent=null"))}, nil,
			"paid received 1250\noperations: order.paid\nbooks: ch_1 sales 1250 eur"},
		{"a session alone", nil, [][]byte{at(0, sessionOf("cs_1", "payment_intent=null"))}, nil,
			"paid received 1250\noperations: order.paid\nbooks: cs_1 sales 1250 eur"},
		{"the intent knows better than the charge", nil,
			[][]byte{intent, at(1, chargeOf("ch_1", "amount=900", "amount_captured=900"))}, nil, paid},
		{"the charge knows better than the session", nil,
			[][]byte{charge, at(1, sessionOf("cs_1", "amount_total=900"))}, nil, paid},
		{"the charge speaks until the intent has succeeded", nil,
			[][]byte{charge, at(0, intentOf("pi_1", "status=processing", "amount_received=0"))}, nil, paid},
		{"the charge speaks for an intent that does not say what it received", nil,
			[][]byte{charge, at(0, intentOf("pi_1", "amount_received=null"))}, nil, paid},
		{"a failed charge beside the one that worked brings nothing", nil, [][]byte{
			intent, charge, at(0, chargeOf("ch_0", "status=failed", "paid=false", "captured=false", "amount_captured=0")),
		}, nil, paid},
		{"what was asked is not what was received", nil, [][]byte{at(0, intentOf("pi_1", "amount=5000"))}, nil, paid},
		{"an intent whose failure comes late stays paid", nil, [][]byte{
			intent, at(9, intentOf("pi_1", "status=requires_payment_method", "amount_received=0", "last_payment_error={}")),
		}, nil, paid},
		{"a body without its currency as long as it proves nothing", nil,
			[][]byte{at(0, intentOf("pi_1", "status=processing", "amount_received=0", "currency=-"))}, nil,
			"processing\noperations: order.processing"},
		{"nothing happened", nil, nil, nil, "awaiting_payment"},
	})
}

// Rule 2 (B31): which money an order counts.
func TestDeriveAccepts(t *testing.T) {
	policy := func(p Policy) func(o *Order) { return func(o *Order) { o.Policy = p } }
	received := func(n string) []byte { return at(0, intentOf("pi_1", "amount_received="+n)) }
	free := at(0, sessionOf("cs_1", "payment_status=no_payment_required", "amount_total=0", "amount_subtotal=0", "payment_intent=null"))
	accepted := func(p Policy, object string) func(o *Order) {
		return func(o *Order) {
			o.Policy = p
			o.Accepted = map[PaymentKey]bool{{testScope, object}: true}
		}
	}
	runScenarios(t, []scenario{
		{"exact: a cent less is never paid", nil, [][]byte{received("1249")}, nil,
			"awaiting_payment suspense 1249\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 1249 eur"},
		{"exact: a cent more is never paid", nil, [][]byte{received("1251")}, nil,
			"awaiting_payment suspense 1251\nattention: amount_mismatch pi_1, overpaid pi_1\nbooks: pi_1 suspense 1251 eur"},
		{"exact: an intent that succeeded with nothing", nil, [][]byte{received("0")}, nil,
			"awaiting_payment\nattention: amount_mismatch pi_1, underpaid pi_1"},
		{"exact: upper-case currency is the currency", nil, [][]byte{at(0, intentOf("pi_1", "currency=EUR"))}, nil,
			"paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur"},
		{"exact: the same number in another currency is other money", nil, [][]byte{at(0, intentOf("pi_1", "currency=usd"))}, nil,
			"awaiting_payment\nattention: currency_mismatch pi_1\nbooks: pi_1 suspense 1250 usd"},
		{"exact: a partial capture is not the whole", nil, [][]byte{at(0, intentOf("pi_1", "amount=1250", "amount_received=900"))}, nil,
			"awaiting_payment suspense 900\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 900 eur"},
		{"an unknown policy is exact", policy("whatever"), [][]byte{received("1251")}, nil,
			"awaiting_payment suspense 1251\nattention: amount_mismatch pi_1, overpaid pi_1\nbooks: pi_1 suspense 1251 eur"},
		{"at least: more is fine", policy(PolicyAtLeast), [][]byte{received("1300")}, nil,
			"paid received 1300\noperations: order.paid\nbooks: pi_1 sales 1300 eur"},
		{"at least: as much is fine", policy(PolicyAtLeast), [][]byte{received("1250")}, nil,
			"paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur"},
		{"at least: less is not", policy(PolicyAtLeast), [][]byte{received("1249")}, nil,
			"awaiting_payment suspense 1249\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 1249 eur"},
		{"any: whatever it is", policy(PolicyAny), [][]byte{received("1")}, nil,
			"paid received 1\noperations: order.paid\nbooks: pi_1 sales 1 eur"},
		{"any: but not nothing", policy(PolicyAny), [][]byte{received("0")}, nil,
			"awaiting_payment\nattention: amount_mismatch pi_1, underpaid pi_1"},
		{"any: but not another currency", policy(PolicyAny), [][]byte{at(0, intentOf("pi_1", "currency=usd"))}, nil,
			"awaiting_payment\nattention: currency_mismatch pi_1\nbooks: pi_1 suspense 1250 usd"},

		{"a free session pays a free order (B30)", func(o *Order) { o.TotalMinor = 0 }, [][]byte{free}, nil,
			"paid\noperations: order.paid"},
		{"an open session with nothing to pay is not yet a purchase", func(o *Order) { o.TotalMinor = 0 }, [][]byte{
			at(0, sessionOf("cs_1", "status=open", "payment_status=no_payment_required", "amount_total=0", "payment_intent=null")),
		}, nil, "awaiting_payment"},
		{"no payment required now, but something to pay later, is no money at any price", policy(PolicyAny), [][]byte{
			at(0, sessionOf("cs_1", "payment_status=no_payment_required", "payment_intent=null")),
		}, nil, "awaiting_payment"},
		{"a free order without a session waits", func(o *Order) { o.TotalMinor = 0 }, nil, nil, "awaiting_payment"},
		{"a free session does not pay an order that costs", nil, [][]byte{free}, nil,
			"awaiting_payment\nattention: amount_mismatch cs_1, underpaid cs_1"},
		{"a free session pays at any price", policy(PolicyAny), [][]byte{free}, nil, "paid\noperations: order.paid"},

		{"by hand: too little counts as all", accepted(PolicyExact, "pi_1"), [][]byte{received("900")}, nil,
			"paid received 900\noperations: order.paid\nbooks: pi_1 sales 900 eur"},
		{"by hand: the session that was accepted is the intent's", accepted(PolicyExact, "cs_1"),
			[][]byte{at(0, intentOf("pi_1", "amount_received=900")), at(0, sessionOf("cs_1", "amount_total=900"))}, nil,
			"paid received 900\noperations: order.paid\nbooks: pi_1 sales 900 eur"},
		{"by hand: what would be accepted anyway", accepted(PolicyAtLeast, "pi_1"), [][]byte{received("1300")}, nil,
			"paid received 1300\noperations: order.paid\nbooks: pi_1 sales 1300 eur"},
		{"by hand: another currency cannot be counted", accepted(PolicyExact, "pi_1"), [][]byte{at(0, intentOf("pi_1", "currency=usd"))}, nil,
			"awaiting_payment\nattention: currency_mismatch pi_1\nbooks: pi_1 suspense 1250 usd"},
		{"by hand: another payment's acceptance is not this one's", accepted(PolicyExact, "pi_2"), [][]byte{received("900")}, nil,
			"awaiting_payment suspense 900\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 900 eur"},
		{"by hand: no money is no payment", accepted(PolicyExact, "pi_1"),
			[][]byte{at(0, intentOf("pi_1", "status=processing", "amount_received=0"))}, nil, "processing\noperations: order.processing"},
		{"by hand: a contradiction is overruled", accepted(PolicyExact, "pi_1"),
			[][]byte{received("1250"), at(1, intentOf("pi_1", "status=canceled"))}, nil,
			"paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur"},
	})
}

func TestDeriveSubtotal(t *testing.T) {
	strict := func(o *Order) { o.Policy = PolicySubtotal }
	lenient := func(o *Order) { o.Policy, o.AllowDiscount = PolicySubtotal, true }
	money := func(n string) []byte { return at(0, intentOf("pi_1", "amount_received="+n)) }
	priced := func(subtotal, total, discount string) []byte {
		return at(0, sessionOf("cs_1", "amount_subtotal="+subtotal, "amount_total="+total, `total_details={"amount_discount":`+discount+`}`))
	}
	runScenarios(t, []scenario{
		{"money waits in suspense until the session is known", strict, [][]byte{money("1488")}, nil,
			"awaiting_payment suspense 1488\nbooks: pi_1 suspense 1488 eur"},
		{"tax and shipping may be added", strict, [][]byte{money("1488"), priced("1250", "1488", "0")}, nil,
			"paid received 1488\noperations: order.paid\nbooks: pi_1 sales 1488 eur"},
		{"an inclusive tax adds nothing", strict, [][]byte{money("1250"), priced("1250", "1250", "0")}, nil,
			"paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur"},
		{"another subtotal is another sale", strict, [][]byte{money("1300"), priced("1300", "1300", "0")}, nil,
			"awaiting_payment suspense 1300\nattention: amount_mismatch pi_1, overpaid pi_1\nbooks: pi_1 suspense 1300 eur"},
		{"a discount needs leave", strict, [][]byte{money("1000"), priced("1250", "1000", "250")}, nil,
			"awaiting_payment suspense 1000\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 1000 eur"},
		{"a discount hidden behind shipping needs leave", strict, [][]byte{money("1250"), priced("1250", "1250", "250")}, nil,
			"awaiting_payment suspense 1250\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 1250 eur"},
		{"a discount that the details hide needs leave", strict, [][]byte{money("1000"), priced("1250", "1000", "0")}, nil,
			"awaiting_payment suspense 1000\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 1000 eur"},
		{"a discount with leave", lenient, [][]byte{money("1000"), priced("1250", "1000", "250")}, nil,
			"paid received 1000\noperations: order.paid\nbooks: pi_1 sales 1000 eur"},
		{"a discount of all of it, with leave", lenient, [][]byte{
			at(0, sessionOf("cs_1", "payment_status=no_payment_required", "amount_total=0", `total_details={"amount_discount":1250}`, "payment_intent=null")),
		}, nil, "paid\noperations: order.paid"},
		{"less received than the session's total", strict, [][]byte{money("1250"), priced("1250", "1488", "0")}, nil,
			"awaiting_payment suspense 1250\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 1250 eur"},
		{"a session in another currency prices nothing", strict, [][]byte{
			money("1250"), at(0, sessionOf("cs_1", "currency=usd")),
		}, nil, "awaiting_payment suspense 1250\nattention: amount_mismatch pi_1\nbooks: pi_1 suspense 1250 eur"},
		{"the completed session prices, not the open one beside it", strict, [][]byte{
			money("1250"), at(0, sessionOf("cs_0", "status=open", "payment_status=unpaid", "amount_subtotal=9", "amount_total=9")), priced("1250", "1250", "0"),
		}, nil, "paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur"},
	})
	t.Run("what is due is the session's total", func(t *testing.T) {
		order := &Order{TotalMinor: 1250, Currency: "eur", Policy: PolicySubtotal}
		out := Derive(order, learn(t, money("1488"), priced("1250", "1488", "0")), nil)
		if out.DueMinor != 1488 || !out.DueReceived {
			t.Errorf("due %d, received %v", out.DueMinor, out.DueReceived)
		}
	})
}

// What an order does not count, and why.
func TestDeriveVerdicts(t *testing.T) {
	registered := func(o *Order) { o.PaymentIntent = "pi_1" }
	runScenarios(t, []scenario{
		{"a registered intent's money", registered, [][]byte{at(0, intentOf("pi_1"))}, nil,
			"paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur"},
		{"money of another intent than the registered one (B73)", registered,
			[][]byte{at(0, intentOf("pi_9", "latest_charge=ch_9", `metadata={"order_id":"ORD-1"}`))}, nil,
			"awaiting_payment suspense 1250\nattention: order_conflict pi_9\nbooks: pi_9 suspense 1250 eur"},
		{"another intent's failure is not this order's", registered, [][]byte{
			at(0, intentOf("pi_9", "status=requires_payment_method", "amount_received=0", "last_payment_error={}")),
		}, nil, "awaiting_payment\nattention: order_conflict pi_9"},
		{"a charge without an intent, where one is registered", registered, [][]byte{at(0, chargeOf("ch_9", "payment_intent=null"))}, nil,
			"awaiting_payment suspense 1250\nattention: order_conflict ch_9\nbooks: ch_9 suspense 1250 eur"},
		{"an open session whose intent is not known yet is not foreign", registered,
			[][]byte{at(0, sessionOf("cs_1", "status=open", "payment_status=unpaid", "payment_intent=null"))}, nil, "awaiting_payment"},
		{"another intent, accepted by hand", func(o *Order) {
			o.PaymentIntent = "pi_1"
			o.Accepted = map[PaymentKey]bool{{testScope, "pi_9"}: true}
		}, [][]byte{at(0, intentOf("pi_9", "latest_charge=ch_9"))}, nil,
			"paid received 1250\noperations: order.paid\nbooks: pi_9 sales 1250 eur"},

		{"an intent both succeeded and canceled", nil, [][]byte{at(0, intentOf("pi_1")), at(1, intentOf("pi_1", "status=canceled"))}, nil,
			"awaiting_payment suspense 1250\nattention: contradiction pi_1\nbooks: pi_1 suspense 1250 eur"},
		{"a session both complete and expired", nil, [][]byte{
			at(0, sessionOf("cs_1")), at(1, sessionOf("cs_1", "status=expired", "payment_status=unpaid")),
		}, nil, "awaiting_payment suspense 1250\nattention: contradiction pi_1\nbooks: pi_1 suspense 1250 eur"},
		{"an id of two kinds", nil, [][]byte{at(0, intentOf("pi_1")), at(0, chargeOf("pi_1"))}, nil,
			"awaiting_payment suspense 1250\nattention: contradiction pi_1\nbooks: pi_1 suspense 1250 eur"},
		{"a payment that names other orders too", nil, nil, [][]byte{at(0, intentOf("pi_1"))},
			"awaiting_payment\nattention: order_conflict pi_1"},
		{"it does not touch the money that is the order's own", nil, [][]byte{at(0, intentOf("pi_1"))},
			[][]byte{at(0, intentOf("pi_2", "latest_charge=ch_2"))},
			"paid received 1250\nattention: order_conflict pi_2\noperations: order.paid\nbooks: pi_1 sales 1250 eur"},
	})
}

func TestDeriveWithoutAnOrder(t *testing.T) {
	facts := learn(t,
		at(0, intentOf("pi_1")), at(1, refundOf("re_1", "amount=200")), at(2, disputeOf("dp_1")),
		at(3, intentOf("pi_2", "currency=usd", "latest_charge=ch_2")))
	out := Derive(nil, facts, nil)
	want := "\nbooks: dp_1 suspense -1250 eur, pi_1 suspense 1250 eur, pi_2 suspense 1250 usd, re_1 suspense -200 eur"
	if got := summary(out); got != want {
		t.Errorf("it comes to\n%s\nwant\n%s", got, want)
	}
	for _, p := range out.Payments {
		if p.Verdict != VerdictUnlinked || p.Accepted {
			t.Errorf("payment %+v", p)
		}
	}
}

func TestDerivePayments(t *testing.T) {
	order := &Order{TotalMinor: 1250, Currency: "eur", Policy: PolicyExact}
	out := Derive(order, learn(t,
		at(0, intentOf("pi_1", "amount_received=900")), at(0, chargeOf("ch_1", "amount_captured=900")), at(1, refundOf("re_1", "amount=100", "status=pending")),
	), nil)
	want := []Payment{{
		Key: PaymentKey{testScope, "pi_1"}, Objects: []string{"ch_1", "pi_1", "re_1"}, Currency: "eur",
		ReceivedMinor: 900, RefundPendingMinor: 100, Verdict: VerdictAmountMismatch,
		Reason: "received 9.00 EUR, expected 12.50 EUR",
	}}
	if !reflect.DeepEqual(out.Payments, want) {
		t.Errorf("payments = %+v; want %+v", out.Payments, want)
	}
}

// Rule 8, and which payment is the first: by Stripe's clock.
func TestDerivePaidAt(t *testing.T) {
	order := &Order{TotalMinor: 1250, Currency: "eur", Policy: PolicyExact}
	bodies := [][]byte{
		at(7, sessionOf("cs_1")), at(5, intentOf("pi_1")), at(6, chargeOf("ch_1")), at(0, intentOf("pi_1", "status=processing")),
		at(4, intentOf("pi_2", "latest_charge=ch_2")), at(9, intentOf("pi_2", "latest_charge=ch_2", "x=1")),
	}
	permutations(len(bodies), func(seq []int) {
		var facts [][]byte
		for _, i := range seq {
			facts = append(facts, bodies[i])
		}
		out := Derive(order, learn(t, facts...), nil)
		if out.PaidAt != (second+4)*1000 || out.ProviderPayment != "pi_2" {
			t.Errorf("in the order %v: paid at %d by %s", seq, out.PaidAt, out.ProviderPayment)
		}
	})
}
