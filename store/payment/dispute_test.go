package payment

import "testing"

// Rule 4: what disputes took.
func TestDeriveChargedBack(t *testing.T) {
	intent := at(0, intentOf("pi_1"))
	list := func(items string) string { return "balance_transactions=[" + items + "]" }
	const (
		out  = `{"id":"txn_1","amount":-1250,"currency":"eur","fee":1500,"net":-2750}`
		back = `{"id":"txn_2","amount":1250,"currency":"eur"}`
		sale = "pi_1 sales 1250 eur"
	)
	runScenarios(t, []scenario{
		{"an open dispute takes its money, without the fee", nil, [][]byte{intent, at(1, disputeOf("dp_1"))}, nil,
			"disputed received 1250 charged_back 1250\nattention: dispute_needs_response dp_1\noperations: dispute.opened:dp_1\n" +
				"books: dp_1 disputes -1250 eur, " + sale},
		{"a dispute under review is Stripe's to work on", nil, [][]byte{intent, at(1, disputeOf("dp_1", "status=under_review"))}, nil,
			"disputed received 1250 charged_back 1250\noperations: dispute.opened:dp_1\nbooks: dp_1 disputes -1250 eur, " + sale},
		{"an open dispute that has taken nothing yet", nil, [][]byte{intent, at(1, disputeOf("dp_1", list("")))}, nil,
			"disputed received 1250\nattention: dispute_needs_response dp_1\noperations: dispute.opened:dp_1\nbooks: " + sale},
		{"a dispute that was won and returned", nil, [][]byte{
			intent, at(1, disputeOf("dp_1")), at(2, disputeOf("dp_1", "status=won", list(out+","+back))),
		}, nil, "paid received 1250\noperations: order.paid, dispute.opened:dp_1, dispute.closed:dp_1:won\nbooks: " + sale},
		{"a dispute that was won and not yet returned", nil, [][]byte{intent, at(2, disputeOf("dp_1", "status=won"))}, nil,
			"paid received 1250 charged_back 1250\noperations: dispute.opened:dp_1, dispute.closed:dp_1:won\n" +
				"books: dp_1 disputes -1250 eur, " + sale},
		{"a dispute that was lost", nil, [][]byte{intent, at(1, disputeOf("dp_1")), at(2, disputeOf("dp_1", "status=lost"))}, nil,
			"charged_back received 1250 charged_back 1250\noperations: dispute.opened:dp_1, dispute.closed:dp_1:lost\n" +
				"books: dp_1 disputes -1250 eur, " + sale},
		{"a lost dispute that was turned", nil, [][]byte{
			intent, at(2, disputeOf("dp_1", "status=lost")), at(3, disputeOf("dp_1", "status=won", list(out+","+back))),
		}, nil, "paid received 1250\noperations: order.paid, dispute.opened:dp_1, dispute.closed:dp_1:won\nbooks: " + sale},
		{"a lost dispute with an adjustment leaves something", nil, [][]byte{
			intent, at(2, disputeOf("dp_1", "status=lost", list(out+`,{"id":"txn_2","amount":50,"currency":"eur"}`))),
		}, nil, "paid received 1250 charged_back 1200\noperations: dispute.opened:dp_1, dispute.closed:dp_1:lost\n" +
			"books: dp_1 disputes -1200 eur, " + sale},
		{"a lost dispute that was returned all the same", nil, [][]byte{intent, at(2, disputeOf("dp_1", "status=lost", list(out+","+back)))}, nil,
			"paid received 1250\noperations: order.paid, dispute.opened:dp_1, dispute.closed:dp_1:lost\nbooks: " + sale},
		{"transactions of different bodies are one sum", nil, [][]byte{
			intent, at(1, disputeOf("dp_1", "status=won", list(out))), at(2, disputeOf("dp_1", "status=won", list(back))),
		}, nil, "paid received 1250\noperations: order.paid, dispute.opened:dp_1, dispute.closed:dp_1:won\nbooks: " + sale},
		{"a lost dispute from before the list of transactions", nil, [][]byte{intent, at(2, disputeOf("dp_1", "status=lost", "balance_transactions=-"))}, nil,
			"charged_back received 1250 charged_back 1250\noperations: dispute.opened:dp_1, dispute.closed:dp_1:lost\n" +
				"books: dp_1 disputes -1250 eur, " + sale},
		{"a lost dispute with an empty list took nothing", nil, [][]byte{intent, at(2, disputeOf("dp_1", "status=lost", list("")))}, nil,
			"paid received 1250\noperations: order.paid, dispute.opened:dp_1, dispute.closed:dp_1:lost\nbooks: " + sale},

		{"an inquiry moves nothing and blocks nothing", nil, [][]byte{intent, at(1, disputeOf("dp_1", "status=warning_needs_response", list("")))}, nil,
			"paid received 1250\nattention: dispute_inquiry dp_1\noperations: order.paid\nbooks: " + sale},
		{"an inquiry under review", nil, [][]byte{intent, at(1, disputeOf("dp_1", "status=warning_under_review", list("")))}, nil,
			"paid received 1250\nattention: dispute_inquiry dp_1\noperations: order.paid\nbooks: " + sale},
		{"an inquiry that was closed", nil, [][]byte{intent, at(1, disputeOf("dp_1", "status=warning_closed", list("")))}, nil,
			"paid received 1250\noperations: order.paid, dispute.closed:dp_1:warning_closed\nbooks: " + sale},
		{"a dispute that was prevented", nil, [][]byte{intent, at(1, disputeOf("dp_1", "status=prevented", list("")))}, nil,
			"paid received 1250\noperations: order.paid, dispute.closed:dp_1:prevented\nbooks: " + sale},
		{"a dispute of an unknown status", nil, [][]byte{intent, at(1, disputeOf("dp_1", "status=magic", list("")))}, nil,
			"paid received 1250\noperations: order.paid\nbooks: " + sale},

		{"a refund and a lost dispute over the rest (B36)", nil, [][]byte{
			intent, at(1, refundOf("re_1", "amount=500")), at(2, disputeOf("dp_1", "status=lost", "amount=750", list(`{"id":"txn_1","amount":-750,"currency":"eur"}`))),
		}, nil, "charged_back received 1250 refunded 500 charged_back 750\n" +
			"operations: refund.succeeded:re_1, dispute.opened:dp_1, dispute.closed:dp_1:lost\n" +
			"books: dp_1 disputes -750 eur, pi_1 sales 1250 eur, re_1 refunds -500 eur"},
		{"a dispute over more than the charge (B36)", nil, [][]byte{
			intent, at(2, disputeOf("dp_1", "status=lost", "amount=1287", list(`{"id":"txn_1","amount":-1287,"currency":"eur"}`))),
		}, nil, "charged_back received 1250 charged_back 1250 suspense -37\noperations: dispute.opened:dp_1, dispute.closed:dp_1:lost\n" +
			"books: dp_1 disputes -1250 eur, dp_1 suspense -37 eur, " + sale},
		{"two disputes share what the charge brought", nil, [][]byte{
			intent, at(1, disputeOf("dp_1", "status=lost", list(`{"id":"txn_1","amount":-1000,"currency":"eur"}`))),
			at(2, disputeOf("dp_2", "status=lost", list(`{"id":"txn_2","amount":-500,"currency":"eur"}`))),
		}, nil, "charged_back received 1250 charged_back 1250 suspense -250\n" +
			"operations: dispute.opened:dp_1, dispute.closed:dp_1:lost, dispute.opened:dp_2, dispute.closed:dp_2:lost\n" +
			"books: dp_1 disputes -1000 eur, dp_2 disputes -250 eur, dp_2 suspense -250 eur, " + sale},
		{"a bank debit that was refunded and disputed", nil, [][]byte{intent, at(1, refundOf("re_1")), at(2, disputeOf("dp_1", "status=lost"))}, nil,
			"refunded received 1250 refunded 1250 charged_back 1250\n" +
				"operations: refund.succeeded:re_1, order.refunded, dispute.opened:dp_1, dispute.closed:dp_1:lost\n" +
				"books: dp_1 disputes -1250 eur, pi_1 sales 1250 eur, re_1 refunds -1250 eur"},
		{"more returned than taken is no order's money", nil, [][]byte{
			intent, at(2, disputeOf("dp_1", "status=won", list(out+`,{"id":"txn_2","amount":1300,"currency":"eur"}`))),
		}, nil, "paid received 1250 suspense 50\noperations: order.paid, dispute.opened:dp_1, dispute.closed:dp_1:won\n" +
			"books: dp_1 suspense 50 eur, " + sale},

		{"a transaction in the account's currency counts as the dispute's amount", nil, [][]byte{
			intent, at(1, disputeOf("dp_1", list(`{"id":"txn_1","amount":-1075,"currency":"gbp"}`))),
		}, nil, "disputed received 1250 charged_back 1250\nattention: dispute_needs_response dp_1\noperations: dispute.opened:dp_1\n" +
			"books: dp_1 disputes -1250 eur, " + sale},
		{"and so it does on the way back", nil, [][]byte{
			intent, at(1, disputeOf("dp_1", "status=won", list(`{"id":"txn_1","amount":-1075,"currency":"gbp"},{"id":"txn_2","amount":1081,"currency":"gbp"}`))),
		}, nil, "paid received 1250\noperations: order.paid, dispute.opened:dp_1, dispute.closed:dp_1:won\nbooks: " + sale},
		{"and a transaction of nothing is nothing", nil, [][]byte{
			intent, at(1, disputeOf("dp_1", "status=won", list(`{"id":"txn_1","amount":0,"currency":"gbp"}`))),
		}, nil, "paid received 1250\noperations: order.paid, dispute.opened:dp_1, dispute.closed:dp_1:won\nbooks: " + sale},
		{"a dispute of which nothing is in the payment's currency", nil, [][]byte{
			intent, at(1, disputeOf("dp_1", "currency=usd", "amount=1390", list(`{"id":"txn_1","amount":-1075,"currency":"gbp"}`))),
		}, nil, "disputed received 1250\nattention: dispute_needs_response dp_1\noperations: dispute.opened:dp_1\n" +
			"books: dp_1 suspense -1075 gbp, " + sale},
		{"a dispute whose payment is not known yet", nil, [][]byte{at(1, disputeOf("dp_1"))}, nil,
			"awaiting_payment suspense -1250\nattention: dispute_needs_response dp_1\noperations: dispute.opened:dp_1\nbooks: dp_1 suspense -1250 eur"},

		{"a dispute on a refunded order is a reason to look (B26)", nil, [][]byte{intent, at(1, refundOf("re_1")), at(2, disputeOf("dp_1"))}, nil,
			"refunded received 1250 refunded 1250 charged_back 1250\nattention: dispute_needs_response dp_1\n" +
				"operations: refund.succeeded:re_1, order.refunded, dispute.opened:dp_1\n" +
				"books: dp_1 disputes -1250 eur, pi_1 sales 1250 eur, re_1 refunds -1250 eur"},
		{"even under review", nil, [][]byte{intent, at(1, refundOf("re_1")), at(2, disputeOf("dp_1", "status=under_review", list("")))}, nil,
			"refunded received 1250 refunded 1250\nattention: dispute_needs_response dp_1\n" +
				"operations: refund.succeeded:re_1, order.refunded, dispute.opened:dp_1\n" +
				"books: pi_1 sales 1250 eur, re_1 refunds -1250 eur"},
		{"a dispute on an order that the shop closed revives nothing (B26)", func(o *Order) { o.ClosedAt = 1 }, [][]byte{intent, at(2, disputeOf("dp_1"))}, nil,
			"paid received 1250 charged_back 1250\nattention: dispute_needs_response dp_1, paid_after_close pi_1\n" +
				"operations: order.canceled, dispute.opened:dp_1\nbooks: dp_1 disputes -1250 eur, " + sale},
		{"a dispute over money that no order counts", nil, [][]byte{at(0, intentOf("pi_1", "amount_received=1300")), at(2, disputeOf("dp_1"))}, nil,
			"awaiting_payment suspense 50\nattention: amount_mismatch pi_1, dispute_needs_response dp_1, overpaid pi_1\n" +
				"operations: dispute.opened:dp_1\nbooks: dp_1 suspense -1250 eur, pi_1 suspense 1300 eur"},
	})
}

func TestDisputeAttentionSaysWhenItIsDue(t *testing.T) {
	order := &Order{TotalMinor: 1250, Currency: "eur", Policy: PolicyExact}
	out := Derive(order, learn(t, at(0, intentOf("pi_1")), at(1, disputeOf("dp_1", `evidence_details={"due_by":1780531199}`))), nil)
	want := Attention{
		Word: AttentionDisputeNeedsResponse, Cause: "dp_1", DueAt: 1780531199000,
		Detail: "dp_1: a dispute over 12.50 EUR must be answered",
	}
	if len(out.Attention) != 1 || out.Attention[0] != want {
		t.Errorf("attention = %+v; want %+v", out.Attention, want)
	}
}
