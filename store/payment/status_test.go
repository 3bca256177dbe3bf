package payment

import (
	"reflect"
	"testing"
)

// Rule 5: the status, and that the first line that matches wins.
func TestDeriveStatus(t *testing.T) {
	closed := func(o *Order) { o.ClosedAt = 1 }
	intent := at(0, intentOf("pi_1"))
	second := at(5, intentOf("pi_2", "latest_charge=ch_2"))
	const none = "amount_received=0"
	openSession := at(0, sessionOf("cs_1", "status=open", "payment_status=unpaid", "payment_intent=null"))
	expired := at(9, sessionOf("cs_1", "status=expired", "payment_status=unpaid", "payment_intent=null"))
	declined := at(1, intentOf("pi_1", "status=requires_payment_method", none, `last_payment_error={"code":"card_declined"}`))
	declinedCharge := at(1, chargeOf("ch_1", "status=failed", "paid=false", "captured=false", "amount_captured=0"))
	runScenarios(t, []scenario{
		{"processing", nil, [][]byte{at(0, intentOf("pi_1", "status=processing", none))}, nil, "processing\noperations: order.processing"},
		{"a hold", nil, [][]byte{at(0, intentOf("pi_1", "status=requires_capture", none))}, nil, "authorized"},
		{"a hold that the charge tells first", nil, [][]byte{
			at(0, intentOf("pi_1", "status=requires_action", none)), at(0, chargeOf("ch_1", "captured=false", "amount_captured=0")),
		}, nil, "authorized"},
		{"a hold that was let go", nil, [][]byte{
			at(0, chargeOf("ch_1", "captured=false", "amount_captured=0")), at(9, intentOf("pi_1", "status=canceled", none)),
		}, nil, "awaiting_payment"},
		{"a hold behind a completed session", nil, [][]byte{
			at(0, sessionOf("cs_1", "payment_status=unpaid")), at(0, intentOf("pi_1", "status=requires_capture", none)),
		}, nil, "authorized"},
		{"a hold in another currency is not this order's", nil, [][]byte{at(0, intentOf("pi_1", "status=requires_capture", none, "currency=usd"))}, nil,
			"awaiting_payment"},

		{"a delayed payment: complete and unpaid (B30)", nil, [][]byte{at(0, sessionOf("cs_1", "payment_status=unpaid"))}, nil,
			"processing\noperations: order.processing"},
		{"a delayed payment that arrived (B30)", nil, [][]byte{
			at(0, sessionOf("cs_1", "payment_status=unpaid")),
			body("evt_2", "checkout.session.async_payment_succeeded", 600, sessionOf("cs_1")),
		}, nil, "paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur"},
		{"a delayed payment that failed (B30)", nil, [][]byte{
			at(0, sessionOf("cs_1", "payment_status=unpaid")),
			body("evt_2", "checkout.session.async_payment_failed", 600, sessionOf("cs_1", "payment_status=unpaid")),
		}, nil, "payment_failed\noperations: order.payment_failed"},
		{"a delayed payment whose intent says that it failed", nil, [][]byte{at(0, sessionOf("cs_1", "payment_status=unpaid")), declined}, nil,
			"payment_failed\noperations: order.payment_failed"},
		{"a delayed payment whose intent was canceled", nil, [][]byte{
			at(0, sessionOf("cs_1", "payment_status=unpaid")), at(9, intentOf("pi_1", "status=canceled", none)),
		}, nil, "awaiting_payment"},
		{"a delayed payment that failed and was paid by another", nil, [][]byte{
			body("evt_2", "checkout.session.async_payment_failed", 600, sessionOf("cs_1", "payment_status=unpaid")), second,
		}, nil, "paid received 1250\noperations: order.paid\nbooks: pi_2 sales 1250 eur"},

		{"an attempt failed", nil, [][]byte{declined, declinedCharge}, nil, "payment_failed\noperations: order.payment_failed"},
		{"an attempt failed and the session is still open", nil, [][]byte{openSession, declined, declinedCharge}, nil, "awaiting_payment"},
		{"an attempt failed and the next waits for the buyer", nil, [][]byte{declinedCharge, at(2, intentOf("pi_1", "status=requires_action", none))}, nil,
			"awaiting_payment"},
		{"an attempt failed and a fresh intent waits", nil, [][]byte{declined, at(2, intentOf("pi_2", "status=requires_payment_method", none))}, nil,
			"awaiting_payment"},
		{"an attempt failed and the next waits for confirmation", nil, [][]byte{declined, at(2, intentOf("pi_2", "status=requires_confirmation", none))}, nil,
			"awaiting_payment"},
		{"an attempt failed and the session expired", nil, [][]byte{declined, expired}, nil, "payment_failed\noperations: order.payment_failed"},
		{"all sessions expired", nil, [][]byte{expired, at(9, sessionOf("cs_2", "status=expired", "payment_status=unpaid", "payment_intent=null"))}, nil,
			"expired\noperations: order.expired"},
		{"one session expired and the next is open", nil, [][]byte{
			expired, at(9, sessionOf("cs_2", "status=open", "payment_status=unpaid", "payment_intent=null")),
		}, nil, "awaiting_payment"},
		{"money after all sessions expired is money", nil, [][]byte{expired, second}, nil,
			"paid received 1250\noperations: order.paid\nbooks: pi_2 sales 1250 eur"},
		{"late bad news of an old attempt (B22)", nil, [][]byte{
			at(120, intentOf("pi_2", "latest_charge=ch_2")), declined,
			at(90, sessionOf("cs_1", "status=expired", "payment_status=unpaid", "payment_intent=null")),
			at(130, intentOf("pi_1", "status=canceled", none)),
		}, nil, "paid received 1250\noperations: order.paid\nbooks: pi_2 sales 1250 eur"},
		{"money that no order counts does not hide that the session expired", nil, [][]byte{
			at(0, intentOf("pi_2", "amount_received=9")), expired,
		}, nil, "expired suspense 9\nattention: amount_mismatch pi_2, underpaid pi_2\noperations: order.expired\nbooks: pi_2 suspense 9 eur"},

		{"a failed attempt before money that no order counts is history", nil, [][]byte{
			at(0, intentOf("pi_1", "amount_received=9")), at(0, chargeOf("ch_0", "status=failed", "paid=false", "captured=false", "amount_captured=0")),
		}, nil, "awaiting_payment suspense 9\nattention: amount_mismatch pi_1, underpaid pi_1\nbooks: pi_1 suspense 9 eur"},
		{"closed by the shop", closed, nil, nil, "canceled\noperations: order.canceled"},
		{"closed, and an attempt failed", closed, [][]byte{declined}, nil, "canceled\noperations: order.canceled"},
		{"closed, and the bank still works", closed, [][]byte{at(0, intentOf("pi_1", "status=processing", none))}, nil,
			"processing\noperations: order.canceled, order.processing"},
		{"money after the shop closed", closed, [][]byte{intent}, nil,
			"paid received 1250\nattention: paid_after_close pi_1\noperations: order.canceled\nbooks: pi_1 sales 1250 eur"},
		{"money after the shop closed, fulfilled by hand", func(o *Order) { o.ClosedAt, o.FulfilAt = 1, 2 }, [][]byte{intent}, nil,
			"paid received 1250\noperations: order.canceled, order.paid\nbooks: pi_1 sales 1250 eur"},
		{"fulfilled by hand and refunded since", func(o *Order) { o.ClosedAt, o.FulfilAt = 1, 2 }, [][]byte{intent, at(1, refundOf("re_1"))}, nil,
			"refunded received 1250 refunded 1250\noperations: order.canceled, refund.succeeded:re_1, order.refunded\n" +
				"books: pi_1 sales 1250 eur, re_1 refunds -1250 eur"},
		{"closed and refunded", closed, [][]byte{intent, at(1, refundOf("re_1"))}, nil,
			"refunded received 1250 refunded 1250\noperations: order.canceled, refund.succeeded:re_1, order.refunded\n" +
				"books: pi_1 sales 1250 eur, re_1 refunds -1250 eur"},
		{"fulfilled by hand without money", func(o *Order) { o.FulfilAt = 2 }, nil, nil, "awaiting_payment\noperations: order.paid"},

		{"two payments", nil, [][]byte{intent, second}, nil,
			"paid received 2500\nattention: double_payment pi_1,pi_2\noperations: order.paid\nbooks: pi_1 sales 1250 eur, pi_2 sales 1250 eur"},
		{"two payments, the second refunded", nil, [][]byte{intent, second, at(6, refundOf("re_2", "charge=ch_2", "payment_intent=pi_2"))}, nil,
			"paid received 2500 refunded 1250\noperations: order.paid, refund.succeeded:re_2\n" +
				"books: pi_1 sales 1250 eur, pi_2 sales 1250 eur, re_2 refunds -1250 eur"},
		{"two payments, both refunded", nil, [][]byte{
			intent, second, at(6, refundOf("re_1")), at(6, refundOf("re_2", "charge=ch_2", "payment_intent=pi_2")),
		}, nil, "refunded received 2500 refunded 2500\noperations: refund.succeeded:re_1, refund.succeeded:re_2, order.refunded\n" +
			"books: pi_1 sales 1250 eur, pi_2 sales 1250 eur, re_1 refunds -1250 eur, re_2 refunds -1250 eur"},
		{"two payments, one of which no order counts", nil, [][]byte{intent, at(5, intentOf("pi_2", "amount_received=9"))}, nil,
			"paid received 1250 suspense 9\nattention: amount_mismatch pi_2, underpaid pi_2\noperations: order.paid\n" +
				"books: pi_1 sales 1250 eur, pi_2 suspense 9 eur"},
		{"paid, charged back, and paid again", nil, [][]byte{intent, at(2, disputeOf("dp_1", "status=lost")), second}, nil,
			"paid received 2500 charged_back 1250\noperations: dispute.opened:dp_1, dispute.closed:dp_1:lost, order.paid\n" +
				"books: dp_1 disputes -1250 eur, pi_1 sales 1250 eur, pi_2 sales 1250 eur"},
		{"refunded, and paid again", nil, [][]byte{intent, at(2, refundOf("re_1")), second}, nil,
			"paid received 2500 refunded 1250\noperations: refund.succeeded:re_1, order.paid\n" +
				"books: pi_1 sales 1250 eur, pi_2 sales 1250 eur, re_1 refunds -1250 eur"},
		{"a dispute over a payment that was refunded does not block the one that stands", nil, [][]byte{
			intent, at(2, refundOf("re_1")), at(3, disputeOf("dp_1", "balance_transactions=[]")), second,
		}, nil, "paid received 2500 refunded 1250\nattention: dispute_needs_response dp_1\n" +
			"operations: refund.succeeded:re_1, dispute.opened:dp_1, order.paid\n" +
			"books: pi_1 sales 1250 eur, pi_2 sales 1250 eur, re_1 refunds -1250 eur"},
	})
}

// Rule 6: when each operation is taken to have happened.
func TestOperationsSayWhen(t *testing.T) {
	const s = second * 1000
	const none = "amount_received=0"
	for _, tt := range []struct {
		name   string
		order  Order
		bodies [][]byte
		want   []Operation
	}{
		{"paid when first proven, refunded when last heard of", Order{}, [][]byte{
			at(5, intentOf("pi_1")), at(4, chargeOf("ch_1")), at(7, refundOf("re_1")), at(9, refundOf("re_1", "x=1")),
		}, []Operation{{"refund.succeeded:re_1", s + 7000}, {"order.refunded", s + 9000}}},
		{"paid when first proven", Order{}, [][]byte{at(5, intentOf("pi_1")), at(4, chargeOf("ch_1"))},
			[]Operation{{"order.paid", s + 4000}}},
		{"a refund fails when it fails", Order{}, [][]byte{at(5, intentOf("pi_1")), at(6, refundOf("re_1")), at(8, refundOf("re_1", "status=failed"))},
			[]Operation{{"order.paid", s + 5000}, {"refund.failed:re_1", s + 8000}}},
		{"a dispute opens and closes", Order{}, [][]byte{
			at(5, intentOf("pi_1")), at(6, disputeOf("dp_1", "status=warning_needs_response")), at(7, disputeOf("dp_1")), at(9, disputeOf("dp_1", "status=lost")),
		}, []Operation{{"dispute.opened:dp_1", s + 7000}, {"dispute.closed:dp_1:lost", s + 9000}}},
		{"processing", Order{}, [][]byte{at(3, intentOf("pi_1", "status=processing", none))}, []Operation{{"order.processing", s + 3000}}},
		{"closed, then fulfilled by hand", Order{ClosedAt: s + 1, FulfilAt: s + 9999}, [][]byte{at(5, intentOf("pi_1"))},
			[]Operation{{"order.canceled", s + 1}, {"order.paid", s + 9999}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.order
			o.TotalMinor, o.Currency, o.Policy = 1250, "eur", PolicyExact
			if got := Derive(&o, learn(t, tt.bodies...), nil).Operations; !reflect.DeepEqual(got, tt.want) {
				t.Errorf("operations = %v; want %v", got, tt.want)
			}
		})
	}
}

// What is due under any is what came; of payments that went back, it is not.
func TestDeriveDue(t *testing.T) {
	first, refund := at(0, intentOf("pi_1", "amount_received=9")), at(1, refundOf("re_1", "amount=9"))
	second := at(2, intentOf("pi_2", "latest_charge=ch_2", "amount_received=5000"))
	for _, tt := range []struct {
		name   string
		bodies [][]byte
		want   int64
	}{
		{"before money, the order's total", nil, 1250},
		{"the amount that came", [][]byte{first}, 9},
		{"the amount that came, although it went back", [][]byte{first, refund}, 9},
		{"the amount that came and stands", [][]byte{first, refund, second}, 5000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := &Order{TotalMinor: 1250, Currency: "eur", Policy: PolicyAny}
			if got := Derive(o, learn(t, tt.bodies...), nil).DueMinor; got != tt.want {
				t.Errorf("due %d; want %d", got, tt.want)
			}
		})
	}
}

// Stock follows what was ever received, and comes back when all of it is gone.
func TestDeriveStock(t *testing.T) {
	intent := at(0, intentOf("pi_1"))
	for _, tt := range []struct {
		name                       string
		policy                     Policy
		bodies                     [][]byte
		dueReceived, fullyRefunded bool
	}{
		{"nothing happened", PolicyExact, nil, false, false},
		{"money", PolicyExact, [][]byte{intent}, true, false},
		{"money that no order counts", PolicyExact, [][]byte{at(0, intentOf("pi_1", "amount_received=9"))}, false, false},
		{"a part went back", PolicyExact, [][]byte{intent, at(1, refundOf("re_1", "amount=9"))}, true, false},
		{"all of it went back", PolicyExact, [][]byte{intent, at(1, refundOf("re_1"))}, true, true},
		{"all of it was charged back, which is no refund", PolicyExact, [][]byte{intent, at(1, disputeOf("dp_1", "status=lost"))}, true, false},
		{"it all went back and came again", PolicyExact,
			[][]byte{intent, at(1, refundOf("re_1")), at(2, intentOf("pi_2", "latest_charge=ch_2"))}, true, false},
		{"a hold", PolicyExact, [][]byte{at(0, intentOf("pi_1", "status=requires_capture", "amount_received=0"))}, false, false},
		{"any amount", PolicyAny, [][]byte{at(0, intentOf("pi_1", "amount_received=9"))}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := &Order{TotalMinor: 1250, Currency: "eur", Policy: tt.policy}
			out := Derive(o, learn(t, tt.bodies...), nil)
			if out.DueReceived != tt.dueReceived || out.FullyRefunded != tt.fullyRefunded {
				t.Errorf("due received %v, fully refunded %v; want %v, %v", out.DueReceived, out.FullyRefunded, tt.dueReceived, tt.fullyRefunded)
			}
		})
	}
}

func TestDetailsAreInMajorUnitsAndSayWhatIsMeant(t *testing.T) {
	o := &Order{TotalMinor: 500, Currency: "jpy", Policy: PolicyExact}
	out := Derive(o, learn(t,
		at(0, intentOf("pi_1", "amount_received=400", "currency=jpy")),
		at(1, refundOf("re_1", "amount=400", "currency=-", "status=failed")),
		at(0, intentOf("pi_2", "amount_received=500", "currency=jpy", "latest_charge=ch_2")),
		at(0, intentOf("pi_3", "amount_received=500", "currency=jpy", "latest_charge=ch_3")),
	), learn(t, at(0, intentOf("pi_4", "amount_received=1250", `metadata={"order_id":"someone@example.com"}`))))
	want := []Attention{
		{Word: "amount_mismatch", Cause: "pi_1", Detail: "pi_1: received 400 JPY, expected 500 JPY"},
		{Word: "double_payment", Cause: "pi_2,pi_3", Detail: "2 payments hold money: pi_2 (500 JPY), pi_3 (500 JPY)"},
		{Word: "order_conflict", Cause: "pi_4", Detail: "pi_4: names other orders too, so none counts its 12.50 EUR"},
		{Word: "refund_failed", Cause: "re_1", Detail: "re_1: the refund of 400 JPY failed, the money is back in the Stripe balance"},
		{Word: "underpaid", Cause: "pi_1", Detail: "pi_1: received 400 JPY, expected 500 JPY"},
	}
	if !reflect.DeepEqual(out.Attention, want) {
		t.Errorf("attention = %+v; want %+v", out.Attention, want)
	}
}
