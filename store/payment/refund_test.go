package payment

import "testing"

// Rule 3: what went back.
func TestDeriveRefunded(t *testing.T) {
	intent, charge := at(0, intentOf("pi_1")), at(0, chargeOf("ch_1"))
	const closed = "\nbooks: pi_1 sales 1250 eur"
	runScenarios(t, []scenario{
		{"a refund object", nil, [][]byte{intent, at(1, refundOf("re_1"))}, nil,
			"refunded received 1250 refunded 1250\noperations: refund.succeeded:re_1, order.refunded\n" +
				"books: pi_1 sales 1250 eur, re_1 refunds -1250 eur"},
		{"a refund object and what the charge shows of it are one", nil,
			[][]byte{intent, charge, at(1, refundOf("re_1")), at(1, chargeOf("ch_1", "amount_refunded=1250", "refunded=true"))}, nil,
			"refunded received 1250 refunded 1250\noperations: refund.succeeded:re_1, order.refunded\n" +
				"books: pi_1 sales 1250 eur, re_1 refunds -1250 eur"},
		{"what the charge shows alone", nil, [][]byte{intent, at(1, chargeOf("ch_1", "amount_refunded=500"))}, nil,
			"partially_refunded received 1250 refunded 500\nbooks: ch_1 refunds -500 eur, pi_1 sales 1250 eur"},
		{"two events of one charge are not added up", nil, [][]byte{
			intent, at(1, chargeOf("ch_1", "amount_refunded=200")), at(2, chargeOf("ch_1", "amount_refunded=500")),
		}, nil, "partially_refunded received 1250 refunded 500\nbooks: ch_1 refunds -500 eur, pi_1 sales 1250 eur"},
		{"what the charge shows beyond the refund that is known", nil, [][]byte{
			intent, at(1, refundOf("re_1", "amount=200")), at(2, chargeOf("ch_1", "amount_refunded=500")),
		}, nil, "partially_refunded received 1250 refunded 500\noperations: refund.succeeded:re_1\n" +
			"books: ch_1 refunds -300 eur, pi_1 sales 1250 eur, re_1 refunds -200 eur"},
		{"a refund in parts", nil, [][]byte{
			intent, at(1, refundOf("re_1", "amount=200")), at(2, refundOf("re_2", "amount=1050")),
		}, nil, "refunded received 1250 refunded 1250\noperations: refund.succeeded:re_1, refund.succeeded:re_2, order.refunded\n" +
			"books: pi_1 sales 1250 eur, re_1 refunds -200 eur, re_2 refunds -1050 eur"},
		{"a charge of 2012 that says only that it was refunded", nil, [][]byte{
			at(0, object("charge", "ch_1", "paid=true", "amount=1250", "currency=eur", "refunded=true")),
		}, nil, "refunded received 1250 refunded 1250\noperations: order.refunded\nbooks: ch_1 refunds -1250 eur, ch_1 sales 1250 eur"},
		{"a charge that says little beside an intent that says enough (B28)", nil, [][]byte{
			intent, at(1, object("charge", "ch_1", "amount=1250", "amount_refunded=1250", "payment_intent=null", "metadata={}")),
		}, nil, "refunded received 1250 refunded 1250\noperations: order.refunded\nbooks: ch_1 refunds -1250 eur, pi_1 sales 1250 eur"},

		{"a refund that failed after the charge showed it (B27)", nil, [][]byte{
			intent, at(1, chargeOf("ch_1", "amount_refunded=1250", "refunded=true")),
			at(2, object("refund", "re_1", "charge=ch_1", "amount=1250", "status=failed", "failure_reason=expired_or_canceled_card")),
		}, nil, "paid received 1250\nattention: refund_failed re_1\noperations: order.paid, refund.failed:re_1" + closed},
		{"a refund that succeeded and failed (B27)", nil, [][]byte{intent, at(1, refundOf("re_1")), at(2, refundOf("re_1", "status=failed"))}, nil,
			"paid received 1250\nattention: refund_failed re_1\noperations: order.paid, refund.failed:re_1" + closed},
		{"a refund without the charge's event (B27)", nil, [][]byte{intent, at(1, refundOf("re_1", "currency=-"))}, nil,
			"refunded received 1250 refunded 1250\noperations: refund.succeeded:re_1, order.refunded\n" +
				"books: pi_1 sales 1250 eur, re_1 refunds -1250 eur"},
		{"a canceled refund counts nothing", nil, [][]byte{intent, at(1, refundOf("re_1", "status=canceled"))}, nil,
			"paid received 1250\noperations: order.paid" + closed},
		{"a pending refund is under way", nil, [][]byte{intent, at(1, refundOf("re_1", "status=pending"))}, nil,
			"refund_pending received 1250 refund_pending 1250\noperations: order.paid" + closed},
		{"a refund that needs action is under way", nil, [][]byte{intent, at(1, refundOf("re_1", "status=requires_action", "amount=200"))}, nil,
			"refund_pending received 1250 refund_pending 200\noperations: order.paid" + closed},
		{"a pending refund that the charge shows already is not taken twice", nil, [][]byte{
			intent, at(1, refundOf("re_1", "status=pending")), at(1, chargeOf("ch_1", "amount_refunded=1250", "refunded=true")),
		}, nil, "refund_pending received 1250 refund_pending 1250\noperations: order.paid" + closed},
		{"a refund that the bank returned is under way again", nil, [][]byte{intent, at(1, refundOf("re_1")), returned("evt_9", 1)}, nil,
			"refund_pending received 1250 refund_pending 1250\noperations: order.paid" + closed},
		{"part done and part under way is part refunded", nil, [][]byte{
			intent, at(1, refundOf("re_1", "amount=200")), at(1, refundOf("re_2", "amount=300", "status=pending")),
		}, nil, "partially_refunded received 1250 refunded 200 refund_pending 300\noperations: refund.succeeded:re_1\n" +
			"books: pi_1 sales 1250 eur, re_1 refunds -200 eur"},
		{"a refund without a status is what its charge shows", nil, [][]byte{
			intent, at(1, refundOf("re_1", "status=null", "amount=200")), at(1, chargeOf("ch_1", "amount_refunded=200")),
		}, nil, "partially_refunded received 1250 refunded 200\nbooks: ch_1 refunds -200 eur, pi_1 sales 1250 eur"},

		{"the release of a hold is no refund", nil, [][]byte{
			at(0, chargeOf("ch_1", "captured=false", "amount_captured=0", "amount_refunded=1250", "refunded=true")),
			at(0, intentOf("pi_1", "status=canceled", "amount_received=0")),
			at(0, refundOf("re_1")),
		}, nil, "awaiting_payment"},
		{"the release of a hold whose charge is not known is no refund", nil, [][]byte{
			at(0, intentOf("pi_1", "status=canceled", "amount_received=0")), at(0, refundOf("re_1")),
		}, nil, "awaiting_payment"},
		{"the release of a hold whose intent is not known is no refund", nil, [][]byte{
			at(0, chargeOf("ch_1", "captured=false", "amount_captured=0", "amount_refunded=1250", "refunded=true")), at(0, refundOf("re_1")),
		}, nil, "awaiting_payment"},
		{"the release of what was not captured is no refund", func(o *Order) { o.TotalMinor = 900 }, [][]byte{
			at(0, intentOf("pi_1", "amount_received=900")), at(0, chargeOf("ch_1", "amount_captured=900", "amount_refunded=350")),
		}, nil, "paid received 900\noperations: order.paid\nbooks: pi_1 sales 900 eur"},
		{"a refund beyond the release is one", func(o *Order) { o.TotalMinor = 900 }, [][]byte{
			at(0, intentOf("pi_1", "amount_received=900")), at(0, chargeOf("ch_1", "amount_captured=900", "amount_refunded=450")),
		}, nil, "partially_refunded received 900 refunded 100\nbooks: ch_1 refunds -100 eur, pi_1 sales 900 eur"},
		{"the refund object of an expired hold is no refund", func(o *Order) { o.TotalMinor = 900 }, [][]byte{
			at(0, intentOf("pi_1", "amount_received=900")), at(0, chargeOf("ch_1", "amount_captured=900", "amount_refunded=350")),
			at(1, refundOf("re_1", "amount=350", "reason=expired_uncaptured_charge")),
		}, nil, "paid received 900\noperations: order.paid\nbooks: pi_1 sales 900 eur"},
		{"a refund beyond the release, whose own refund object is known", func(o *Order) { o.TotalMinor = 900 }, [][]byte{
			at(0, intentOf("pi_1", "amount_received=900")), at(0, chargeOf("ch_1", "amount_captured=900", "amount_refunded=450")),
			at(1, refundOf("re_1", "amount=350", "reason=expired_uncaptured_charge")),
		}, nil, "partially_refunded received 900 refunded 100\nbooks: ch_1 refunds -100 eur, pi_1 sales 900 eur"},
		{"a charge that says little, alone, may be the release of a hold", nil, [][]byte{
			at(1, object("charge", "ch_1", "amount=1250", "amount_refunded=1250", "currency=eur")),
		}, nil, "awaiting_payment"},
		{"no more can go back than was captured", func(o *Order) { o.TotalMinor = 900 }, [][]byte{
			at(0, intentOf("pi_1", "amount_received=900")), at(1, refundOf("re_1", "amount=350")), at(2, refundOf("re_2", "amount=900")),
		}, nil, "refunded received 900 refunded 900\noperations: refund.succeeded:re_1, refund.succeeded:re_2, order.refunded\n" +
			"books: pi_1 sales 900 eur, re_1 refunds -350 eur, re_2 refunds -550 eur"},

		{"a refund of money that no order counts stands beside it", nil, [][]byte{
			at(0, intentOf("pi_1", "amount_received=1300")), at(1, refundOf("re_1", "amount=300")),
		}, nil, "awaiting_payment suspense 1000\nattention: amount_mismatch pi_1, overpaid pi_1\noperations: refund.succeeded:re_1\n" +
			"books: pi_1 suspense 1300 eur, re_1 suspense -300 eur"},
		{"a refund in another currency is no order's", nil, [][]byte{intent, at(1, refundOf("re_1", "currency=usd"))}, nil,
			"paid received 1250\noperations: order.paid\nbooks: pi_1 sales 1250 eur, re_1 suspense -1250 usd"},
		{"a refund whose payment is not known yet", nil, [][]byte{at(1, refundOf("re_1"))}, nil,
			"awaiting_payment suspense -1250\noperations: refund.succeeded:re_1\nbooks: re_1 suspense -1250 eur"},
		{"a refund without a currency whose payment is not known yet", nil, [][]byte{at(1, refundOf("re_1", "currency=-"))}, nil,
			"awaiting_payment\noperations: refund.succeeded:re_1"},
	})
}
