package payment

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// What each event means (docs: stripe.md 3.1): one event alone, and what an
// order of 12.50 EUR that claims its object comes to.
func TestWhatEachEventProves(t *testing.T) {
	const noReceipt = "amount_received=0"
	for _, tt := range []struct {
		name      string
		eventType string
		object    string
		want      Status
	}{
		{"a completed and paid session is money", "checkout.session.completed", sessionOf("cs_1"), StatusPaid},
		{"a completed and unpaid session is a delayed payment", "checkout.session.completed",
			sessionOf("cs_1", "payment_status=unpaid"), StatusProcessing},
		{"no payment required and something to pay is no money", "checkout.session.completed",
			sessionOf("cs_1", "payment_status=no_payment_required"), StatusAwaitingPayment},
		{"a subscription's session is no order's money", "checkout.session.completed",
			sessionOf("cs_1", "mode=subscription", "payment_intent=null", "subscription=sub_1", "invoice=in_1"), StatusAwaitingPayment},
		{"a session in setup mode is no money", "checkout.session.completed",
			sessionOf("cs_1", "mode=setup", "payment_status=no_payment_required", "amount_total=null", "amount_subtotal=null", "currency=null"),
			StatusAwaitingPayment},
		{"a delayed payment that arrived is money", "checkout.session.async_payment_succeeded", sessionOf("cs_1"), StatusPaid},
		{"a delayed payment that failed", "checkout.session.async_payment_failed",
			sessionOf("cs_1", "payment_status=unpaid"), StatusPaymentFailed},
		{"the type of a failed payment does not undo a paid session", "checkout.session.async_payment_failed",
			sessionOf("cs_1"), StatusPaid},
		{"the type of a failed payment fails none that is not due", "checkout.session.async_payment_failed",
			sessionOf("cs_1", "payment_status=no_payment_required"), StatusAwaitingPayment},
		{"an expired session", "checkout.session.expired",
			sessionOf("cs_1", "status=expired", "payment_status=unpaid", "payment_intent=null"), StatusExpired},
		{"an open session", "x", sessionOf("cs_1", "status=open", "payment_status=unpaid"), StatusAwaitingPayment},

		{"a succeeded intent is money", "payment_intent.succeeded", intentOf("pi_1"), StatusPaid},
		{"a hold", "payment_intent.amount_capturable_updated",
			intentOf("pi_1", "status=requires_capture", "amount_capturable=1250", noReceipt), StatusAuthorized},
		{"a bank at work", "payment_intent.processing", intentOf("pi_1", "status=processing", noReceipt), StatusProcessing},
		{"a buyer who must act", "payment_intent.requires_action", intentOf("pi_1", "status=requires_action", noReceipt), StatusAwaitingPayment},
		{"an attempt that failed", "payment_intent.payment_failed",
			intentOf("pi_1", "status=requires_payment_method", noReceipt, `last_payment_error={"code":"card_declined"}`), StatusPaymentFailed},
		{"a canceled intent", "payment_intent.canceled", intentOf("pi_1", "status=canceled", noReceipt), StatusAwaitingPayment},
		{"a canceled intent whose last attempt failed", "payment_intent.canceled",
			intentOf("pi_1", "status=canceled", noReceipt, `last_payment_error={"code":"card_declined"}`), StatusPaymentFailed},
		{"a new intent", "payment_intent.created", intentOf("pi_1", "status=requires_payment_method", noReceipt), StatusAwaitingPayment},
		{"a new intent in the words of 2018", "payment_intent.created", intentOf("pi_1", "status=requires_source", noReceipt), StatusAwaitingPayment},

		{"a captured charge is money", "charge.succeeded", chargeOf("ch_1"), StatusPaid},
		{"a captured charge in the words of 2014", "charge.succeeded", chargeOf("ch_1", "status=paid"), StatusPaid},
		{"a charge that was only authorised is a hold", "charge.succeeded",
			chargeOf("ch_1", "captured=false", "amount_captured=0"), StatusAuthorized},
		{"a charge that is captured later", "charge.captured", chargeOf("ch_1"), StatusPaid},
		{"a pending charge", "charge.pending", chargeOf("ch_1", "status=pending", "paid=false", "captured=false", "amount_captured=0"), StatusAwaitingPayment},
		{"a failed charge", "charge.failed", chargeOf("ch_1", "status=failed", "paid=false", "captured=false", "amount_captured=0"), StatusPaymentFailed},
		{"a hold that expired", "charge.expired",
			chargeOf("ch_1", "captured=false", "amount_captured=0", "amount_refunded=1250", "refunded=true"), StatusAwaitingPayment},
		{"a charge that went back in full", "charge.refunded", chargeOf("ch_1", "amount_refunded=1250", "refunded=true"), StatusRefunded},
		{"a charge that went back in part", "charge.refunded", chargeOf("ch_1", "amount_refunded=250"), StatusPartiallyRefunded},

		{"a refund alone is no status", "refund.created", refundOf("re_1", "status=pending"), StatusAwaitingPayment},
		{"a dispute alone is no status", "charge.dispute.created", disputeOf("dp_1"), StatusAwaitingPayment},
		{"an inquiry alone is no status", "charge.dispute.created",
			disputeOf("dp_1", "status=warning_needs_response", "balance_transactions=[]"), StatusAwaitingPayment},
		{"an invoice's payment is no order's", "invoice_payment.paid",
			object("invoice_payment", "inpay_1", "invoice=in_1", `payment={"type":"payment_intent","payment_intent":"pi_1"}`, "amount_paid=1250"),
			StatusAwaitingPayment},
	} {
		t.Run(tt.name, func(t *testing.T) {
			order := &Order{Tenant: "main", ID: "ORD-1", TotalMinor: 1250, Currency: "eur", Policy: PolicyExact}
			facts := learn(t, body("evt_1", tt.eventType, 0, tt.object))
			if got := Derive(order, facts, nil).Status; got != tt.want {
				t.Errorf("status = %s; want %s", got, tt.want)
			}
			// Under a type that says nothing the same object proves the same,
			// but for the delayed payment that failed, which only the type tells.
			if tt.want == StatusPaymentFailed && strings.HasPrefix(tt.eventType, "checkout.") {
				return
			}
			facts = learn(t, body("evt_1", "x", 0, tt.object))
			if got := Derive(order, facts, nil).Status; got != tt.want {
				t.Errorf("as x: status = %s; want %s", got, tt.want)
			}
		})
	}
}

// Bodies that contradict themselves; the first ones stand among the fixtures.
func TestABodyThatContradictsItselfProvesNothing(t *testing.T) {
	for _, tt := range []struct {
		eventType string
		object    string
		want      string
	}{
		{"payment_intent.succeeded", chargeOf("pi_1"), "the type speaks of a payment_intent, the object is a charge"},
		{"payment_intent.succeeded", intentOf("pi_1", "status=requires_payment_method", "amount_received=0"), "the object is requires_payment_method"},
		{"payment_intent.canceled", intentOf("pi_1", "status=requires_payment_method", "amount_received=0"), "the object is requires_payment_method"},
		{"charge.captured", chargeOf("ch_1", "status=failed", "paid=false", "captured=false", "amount_captured=0"), "the object is failed"},
		{"charge.captured", chargeOf("ch_1", "captured=false", "amount_captured=0"), "the type says charge.captured"},
		{"charge.pending", chargeOf("ch_1", "status=failed", "paid=false", "captured=false", "amount_captured=0"), "the object is failed"},
		{"charge.succeeded", chargeOf("ch_1", "status=failed", "paid=false", "captured=false", "amount_captured=0"), "the object is failed"},
		{"charge.failed", chargeOf("ch_1"), "the object is succeeded"},
		{"charge.dispute.closed", disputeOf("dp_1", "status=warning_needs_response", "balance_transactions=[]"), "the object is warning_needs_response"},
		{"charge.dispute.closed", disputeOf("dp_1"), "the object is needs_response"},
		{"charge.dispute.funds_withdrawn", disputeOf("dp_1", "status=warning_needs_response", "balance_transactions=[]"), "the object is warning_needs_response"},
		{"charge.dispute.funds_reinstated", disputeOf("dp_1", "status=warning_needs_response", "balance_transactions=[]"), "the object is warning_needs_response"},
		{"refund.failed", refundOf("re_1", "status=succeeded"), "the object is succeeded"},
		{"checkout.session.completed", sessionOf("cs_1", "status=open"), "the object is open"},
		{"checkout.session.expired", sessionOf("cs_1"), "the object is complete"},
		{"charge.refund.updated", chargeOf("ch_1"), "the type speaks of a refund, the object is a charge"},
		{"charge.refunded", refundOf("re_1"), "the type speaks of a charge, the object is a refund"},
		{"charge.failed", chargeOf("ch_1", "status=A Buyer"), "the object is in a state of its own"},
		{"charge.disputed", disputeOf("dp_1"), ""},
		{"charge.dispute.closed", disputeOf("dp_1", "status=lost"), ""},
		{"charge.refund.updated", refundOf("re_1", "status=failed"), ""},
	} {
		t.Run(tt.eventType+" "+tt.want, func(t *testing.T) {
			ev := Decode(body("evt_1", tt.eventType, 0, tt.object))
			if tt.want == "" {
				if ev.Verdict != "" {
					t.Errorf("Decode = %s: %s", ev.Verdict, ev.Reason)
				}
				return
			}
			if ev.Verdict != VerdictMalformed || !strings.Contains(ev.Reason, tt.want) {
				t.Errorf("Decode = %q: %q; want malformed with %q", ev.Verdict, ev.Reason, tt.want)
			}
		})
	}
}

func TestDecodeIgnores(t *testing.T) {
	for _, tt := range []struct {
		name, body, reason string
	}{
		{"an object of another kind", string(body("evt_1", "customer.updated", 0, object("customer", "cus_1"))),
			"no rule wants an object of the kind customer"},
		{"an invoice, marked paid or not", string(body("evt_1", "invoice.paid", 0, object("invoice", "in_1", "status=paid", "amount_paid=0"))),
			"no rule wants an object of the kind invoice"},
		{"a kind that is no word", string(body("evt_1", "x", 0, object("<script>", "x_1"))),
			"no rule wants an object of this kind"},
		{"an object without a kind", string(body("evt_1", "x", 0, `{"id":"ca_1","name":[]}`)), "the object does not say what it is"},
		{"no object", string(body("evt_1", "ping", 0, `null`)), "the event carries no object"},
		{"no data", `{"id":"evt_1","type":"ping","livemode":false}`, "the event carries no object"},
		{"empty data", `{"id":"evt_1","type":"ping","livemode":false,"data":{}}`, "the event carries no object"},
		{"an event of the second API", `{"id":"evt_1","object":"v2.core.event","type":"v2.core.event_ping","livemode":false,` +
			`"created":"2026-01-01T00:00:00.000Z"}`, "an event of the second API carries no object"},
		{"an invoice that was paid without a payment intent",
			string(body("evt_1", "invoice_payment.paid", 0, object("invoice_payment", "inpay_1", "invoice=in_1", `payment={"type":"charge"}`))),
			"an invoice was paid without a payment intent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ev := Decode([]byte(tt.body))
			if ev.Verdict != VerdictIgnored || ev.Reason != tt.reason {
				t.Errorf("Decode = %q, %q; want %q, %q", ev.Verdict, ev.Reason, VerdictIgnored, tt.reason)
			}
			if ev.Fact.ID != "" {
				t.Errorf("there is a fact: %+v", ev.Fact)
			}
		})
	}
}

// Every field that the rules need, in every form that they do not take.
func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, object, reason string
	}{
		{"a payment without an id", intentOf(""), "payment_intent: there is no usable id"},
		{"a dispute of 2013, which has no id", `{"object":"dispute","charge":"ch_1","amount":1000,"status":"won","currency":"usd"}`,
			"dispute: there is no usable id"},
		{"an id that is a number", `{"object":"refund","id":1,"amount":1250}`, "refund: there is no usable id"},
		{"an id twice", `{"object":"refund","id":"re_1","id":"re_2","amount":1250}`, "refund: the key id stands there twice"},
		{"a kind twice", `{"object":"refund","object":"charge","id":"re_1"}`, "data.object: the key object stands there twice"},
		{"a kind that is a number", `{"object":1,"id":"re_1"}`, "data.object: object is not a string"},
		{"an object that is a list", `[]`, "data.object: the object is not a JSON object"},
		{"an object that is a string", `"pi_1"`, "data.object: the object is not a JSON object"},

		{"an amount with an exponent", intentOf("pi_1", "amount_received=1e3"), "payment_intent: amount_received is not a plain JSON integer"},
		{"an amount with decimals", intentOf("pi_1", "amount_received=1250.0"), "payment_intent: amount_received is not a plain JSON integer"},
		{"an amount in quotes", intentOf("pi_1", `amount_received="1250"`), "payment_intent: amount_received is not a plain JSON integer"},
		{"an amount below zero", intentOf("pi_1", "amount_received=-1250"), "payment_intent: amount_received is negative"},
		{"an amount of minus zero", intentOf("pi_1", "amount_received=-0"), "payment_intent: amount_received is not a plain JSON integer"},
		{"an amount that sums would not hold", intentOf("pi_1", "amount_received=9223372036854775807"), "payment_intent: amount_received is more money than there is: sums would overflow"},
		{"an amount beyond 64 bits", intentOf("pi_1", "amount_received=9223372036854775808"), "payment_intent: amount_received is not a plain JSON integer"},
		{"an amount that is a list", intentOf("pi_1", "amount_received=[1250]"), "payment_intent: amount_received is not a plain JSON integer"},
		{"an amount that is true", intentOf("pi_1", "amount_received=true"), "payment_intent: amount_received is not a plain JSON integer"},
		{"an amount twice", strings.Replace(intentOf("pi_1"), `"amount_received":1250`, `"amount_received":5000,"amount_received":1`, 1),
			"payment_intent: the key amount_received stands there twice"},
		{"the asked amount in quotes", intentOf("pi_1", `amount="1250"`), "payment_intent: amount is not a plain JSON integer"},
		{"a status that is a number", intentOf("pi_1", "status=1"), "payment_intent: status is not a string"},
		{"a status twice", strings.Replace(intentOf("pi_1"), `"status"`, `"status":"canceled","status"`, 1), "payment_intent: the key status stands there twice"},
		{"a currency that is no code", intentOf("pi_1", "currency=euro"), "payment_intent: currency is not a currency"},
		{"a currency that is a number", intentOf("pi_1", "currency=978"), "payment_intent: currency is not a string"},
		{"received money without a currency", intentOf("pi_1", "currency=-"), "payment_intent: there is an amount without its currency"},
		{"an error that is a string", intentOf("pi_1", `last_payment_error="declined"`), "payment_intent: last_payment_error is not an object"},
		{"a charge that is a number", intentOf("pi_1", "latest_charge=7"), "payment_intent: latest_charge is neither an id nor an object with one"},
		{"an expanded charge without an id", intentOf("pi_1", `latest_charge={"object":"charge"}`), "payment_intent: latest_charge is neither an id nor an object with one"},
		{"an expanded charge with two ids", intentOf("pi_1", `latest_charge={"id":"ch_1","id":"ch_2"}`), "payment_intent: latest_charge: the key id stands there twice"},
		{"metadata that is a string", intentOf("pi_1", `metadata="ORD-1"`), "payment_intent: metadata is not an object"},
		{"metadata that is a full list", intentOf("pi_1", `metadata=["ORD-1"]`), "payment_intent: metadata is not an object"},
		{"an order named twice", intentOf("pi_1", `metadata={"order_id":"ORD-1","order_id":"ORD-2"}`), "payment_intent: metadata: the key order_id stands there twice"},

		{"a total in quotes", sessionOf("cs_1", `amount_total="1250"`), "checkout.session: amount_total is not a plain JSON integer"},
		{"a subtotal with decimals", sessionOf("cs_1", "amount_subtotal=1250.5"), "checkout.session: amount_subtotal is not a plain JSON integer"},
		{"a discount below zero", sessionOf("cs_1", `total_details={"amount_discount":-1}`), "checkout.session: total_details: amount_discount is negative"},
		{"details that are a number", sessionOf("cs_1", "total_details=1"), "checkout.session: total_details is not an object"},
		{"a reference that is a number", sessionOf("cs_1", "client_reference_id=1042"), "checkout.session: client_reference_id is not a string"},
		{"a payment status that is a flag", sessionOf("cs_1", "payment_status=true"), "checkout.session: payment_status is not a string"},
		{"a paid total without a currency", sessionOf("cs_1", "currency=null"), "checkout.session: there is an amount without its currency"},

		{"a captured flag that is a string", chargeOf("ch_1", `captured="true"`), "charge: captured is not a boolean"},
		{"a paid flag that is a number", chargeOf("ch_1", "paid=1"), "charge: paid is not a boolean"},
		{"a captured charge without an amount", chargeOf("ch_1", "amount=-", "amount_captured=-"), "charge: a captured charge has no amount"},
		{"a captured charge without a currency", chargeOf("ch_1", "currency=-"), "charge: there is an amount without its currency"},
		{"a refunded amount with an exponent", chargeOf("ch_1", "amount_refunded=1e2"), "charge: amount_refunded is not a plain JSON integer"},

		{"a refund without an amount", refundOf("re_1", "amount=-"), "refund: there is no amount"},
		{"a refund of less than nothing", refundOf("re_1", "amount=-1250"), "refund: amount is negative"},

		{"a dispute without an amount", disputeOf("dp_1", "amount=null"), "dispute: there is no amount"},
		{"transactions that are an object", disputeOf("dp_1", "balance_transactions={}"), "dispute: balance_transactions is not a list"},
		{"transactions that are ids", disputeOf("dp_1", `balance_transactions=["txn_1"]`), "dispute: balance_transactions: the object is not a JSON object"},
		{"a transaction without an amount", disputeOf("dp_1", `balance_transactions=[{"id":"txn_1"}]`), "dispute: balance_transactions: amount is missing"},
		{"a transaction without an id", disputeOf("dp_1", `balance_transactions=[{"amount":-1}]`), "dispute: balance_transactions: there is no usable id"},
		{"a transaction with decimals", disputeOf("dp_1", `balance_transactions=[{"id":"txn_1","amount":-12.5}]`), "dispute: balance_transactions: amount is not a plain JSON integer"},
		{"the one negative amount without an opposite", disputeOf("dp_1", `balance_transactions=[{"id":"txn_1","amount":-9223372036854775808}]`),
			"dispute: balance_transactions: amount is more money than there is: sums would overflow"},
		{"a due date in words", disputeOf("dp_1", `evidence_details={"due_by":"tomorrow"}`), "dispute: evidence_details: due_by is not a time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ev := Decode(body("evt_1", "x", 0, tt.object))
			if ev.Verdict != VerdictMalformed || ev.Reason != tt.reason {
				t.Errorf("Decode = %q, %q; want %q, %q", ev.Verdict, ev.Reason, VerdictMalformed, tt.reason)
			}
			if ev.Fact.ID != "" {
				t.Errorf("there is a fact: %+v", ev.Fact)
			}
		})
	}
	t.Run("whatever is malformed outside", func(t *testing.T) {
		b := strings.Replace(string(body("evt_1", "x", 0, intentOf("pi_1"))), `"livemode":false,`, "", 1)
		if ev := Decode([]byte(b)); ev.Verdict != VerdictMalformed || ev.Reason != "there is no usable livemode" {
			t.Errorf("Decode = %q, %q", ev.Verdict, ev.Reason)
		}
	})
	t.Run("a second object in data", func(t *testing.T) {
		b := strings.Replace(string(body("evt_1", "x", 0, intentOf("pi_1"))), `"data":{`, `"data":{"object":null,`, 1)
		if ev := Decode([]byte(b)); ev.Verdict != VerdictMalformed || ev.Reason != "data: the key object stands there twice" {
			t.Errorf("Decode = %q, %q", ev.Verdict, ev.Reason)
		}
	})
}

// What the bodies of other API versions, other programs and other minds look
// like, and still say.
func TestDecodeTakes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		object string
		check  func(f Fact) bool
	}{
		{"an amount that a float would round", intentOf("pi_1", "amount_received=9007199254740993"),
			func(f Fact) bool { return f.Sticky.Received == Minor(9007199254740993) }},
		{"the largest amount there is", intentOf("pi_1", "amount_received=10000000000000000"),
			func(f Fact) bool { return f.Sticky.Received == Minor(maxAmountMinor) }},
		{"an expanded charge", intentOf("pi_1", `latest_charge={"id":"ch_9","object":"charge","amount":"x"}`),
			func(f Fact) bool { return f.Charge() == "ch_9" }},
		{"no charge", intentOf("pi_1", "latest_charge=null"), func(f Fact) bool { return f.Charge() == "" }},
		{"a charge that is an empty string", intentOf("pi_1", `latest_charge=""`), func(f Fact) bool { return f.Charge() == "" }},
		{"the list of charges from before latest_charge", intentOf("pi_1", "latest_charge=-",
			`charges={"object":"list","data":[{"id":"ch_2","object":"charge"},{"id":"ch_1","object":"charge"}]}`),
			func(f Fact) bool { return f.Charge() == "ch_2" }},
		{"an empty list of charges", intentOf("pi_1", "latest_charge=-", `charges={"object":"list","data":[]}`),
			func(f Fact) bool { return f.Charge() == "" }},
		{"upper-case currency", intentOf("pi_1", "currency=EUR"), func(f Fact) bool { return f.Snapshot.Currency == "eur" }},
		{"metadata that PHP left empty", intentOf("pi_1", "metadata=[ ]"), func(f Fact) bool { return f.OrderName() == "" }},
		{"metadata of null", intentOf("pi_1", "metadata=null"), func(f Fact) bool { return f.OrderName() == "" }},
		{"a named order", intentOf("pi_1", `metadata={"order_id":"ORD-1","note":"a\u0000b\ud83d"}`),
			func(f Fact) bool { return f.OrderName() == "ORD-1" }},
		{"a named order in another case is none", intentOf("pi_1", `metadata={"Order_ID":"ORD-1"}`), func(f Fact) bool { return f.OrderName() == "" }},
		{"an order named by a number does not speak", intentOf("pi_1", `metadata={"order_id":1042}`), func(f Fact) bool { return f.OrderName() == "" }},
		{"an empty name does not speak", intentOf("pi_1", `metadata={"order_id":""}`), func(f Fact) bool { return f.OrderName() == "" }},
		{"a name of 256 bytes does not speak", intentOf("pi_1", `metadata={"order_id":"`+strings.Repeat("x", 256)+`"}`),
			func(f Fact) bool { return f.OrderName() == "" }},
		{"a name of 255 bytes speaks", intentOf("pi_1", `metadata={"order_id":"`+strings.Repeat("x", 255)+`"}`),
			func(f Fact) bool { return len(f.OrderName()) == 255 }},
		{"a name with a line end does not speak", intentOf("pi_1", `metadata={"order_id":"ORD\n1"}`), func(f Fact) bool { return f.OrderName() == "" }},
		{"a name with half a character does not speak", intentOf("pi_1", `metadata={"order_id":"ORD\ud83d"}`), func(f Fact) bool { return f.OrderName() == "" }},
		{"the key of our own call", refundOf("re_1", `metadata={"order_id":"ORD-1","paidonce_operation":"po_1"}`),
			func(f Fact) bool { return f.Operation() == "po_1" && f.OrderName() == "ORD-1" }},
		{"a payment intent carries its session's key, and is not what the call made", intentOf("pi_1", `metadata={"paidonce_operation":"po_1"}`),
			func(f Fact) bool { return f.Operation() == "" }},
		{"a name in another script", intentOf("pi_1", `metadata={"order_id":"注文-1"}`), func(f Fact) bool { return f.OrderName() == "注文-1" }},
		{"a key in another case is another key", intentOf("pi_1", "Amount_received=5000", "STATUS=canceled"),
			func(f Fact) bool { return f.Sticky.Received == Minor(1250) && f.Snapshot.Status == "succeeded" }},
		{"a key that we do not use twice", intentOf("pi_1", "x=1", "x=2"), func(f Fact) bool { return f.ID == "pi_1" }},
		{"an invoice from before 2025", intentOf("pi_1", "invoice=in_1"), func(f Fact) bool { return f.Invoice() }},
		{"a status nobody knows proves nothing", intentOf("pi_1", "status=requires_magic", "currency=-"),
			func(f Fact) bool { return f.Rank.Class == classUnseen && !f.Sticky.Succeeded }},

		{"a charge of 2012", object("charge", "ch_1", "paid=true", "amount=1250", "currency=usd", "refunded=false", "fee=0"),
			func(f Fact) bool { return f.Rank.Class == classChargeCaptured && f.Sticky.Captured == Minor(1250) }},
		{"a refunded charge of 2012", object("charge", "ch_1", "paid=true", "amount=1250", "currency=usd", "refunded=true"),
			func(f Fact) bool { return f.Snapshot.Refunded == Minor(1250) }},
		{"a failed charge of 2012", object("charge", "ch_1", "paid=false", "amount=1250", "currency=usd"),
			func(f Fact) bool { return f.Rank.Class == classChargeAttempt && f.Snapshot.Failed }},
		{"a captured charge without amount_captured", chargeOf("ch_1", "amount_captured=-"),
			func(f Fact) bool { return f.Sticky.Captured == Minor(1250) }},
		{"a charge that says succeeded and not paid", chargeOf("ch_1", "paid=false"), func(f Fact) bool { return f.Rank.Class == classUnseen }},
		{"a charge without a payment intent", chargeOf("py_1", "payment_intent=null"), func(f Fact) bool { return f.PaymentIntent() == "" && f.ID == "py_1" }},
		{"an expanded payment intent", chargeOf("ch_1", `payment_intent={"id":"pi_9"}`), func(f Fact) bool { return f.PaymentIntent() == "pi_9" }},

		{"a paid session without a status is complete", sessionOf("cs_1", "status=-"), func(f Fact) bool { return f.Sticky.Complete }},
		{"an unpaid session without a status proves nothing", sessionOf("cs_1", "status=-", "payment_status=unpaid"),
			func(f Fact) bool { return f.Rank.Class == classUnseen && !f.Sticky.Complete }},
		{"a session without a mode sells something", sessionOf("cs_1", "mode=-"), func(f Fact) bool { return f.Sticky.Mode == modePayment }},
		{"a session without a mode and with a subscription", sessionOf("cs_1", "mode=-", "subscription=sub_1"), func(f Fact) bool { return f.Invoice() }},
		{"a session without a mode and with a setup intent", sessionOf("cs_1", "mode=-", "setup_intent=seti_1"),
			func(f Fact) bool { return f.Sticky.Mode == modeSetup && f.Invoice() }},
		{"a payment status nobody knows", sessionOf("cs_1", "payment_status=magic"), func(f Fact) bool { return f.Sticky.PaymentStatus == "" }},
		{"a reference", sessionOf("cs_1", "client_reference_id=ORD-1"), func(f Fact) bool { return f.Reference() == "ORD-1" }},
		{"a reference with a control character does not speak", sessionOf("cs_1", `client_reference_id="ORD\u0007"`), func(f Fact) bool { return f.Reference() == "" }},
		{"a Payment Link", sessionOf("cs_1", "payment_link=plink_1"), func(f Fact) bool { return f.PaymentLink() == "plink_1" }},
		{"customer details of a strange type", sessionOf("cs_1", "customer_details=7"), func(f Fact) bool { return f.ID == "cs_1" }},

		{"a refund without a currency", refundOf("re_1", "currency=-"), func(f Fact) bool { return f.Snapshot.Currency == "" }},
		{"a refund without a status proves nothing", refundOf("re_1", "status=null"), func(f Fact) bool { return f.Rank.Class == classUnseen }},
		{"a refund with the prefix of a bank's", refundOf("pyr_1", "charge=py_1"), func(f Fact) bool { return f.Charge() == "py_1" }},

		{"a dispute whose evidence is a string", disputeOf("dp_1", `evidence="Here is some evidence"`), func(f Fact) bool { return f.ID == "dp_1" }},
		{"a dispute from before the list of transactions", disputeOf("dp_1", "balance_transactions=-"), func(f Fact) bool { return !f.Sticky.Listed }},
		{"a dispute with an empty list", disputeOf("dp_1", "balance_transactions=[]"),
			func(f Fact) bool { return f.Sticky.Listed && f.Sticky.Transactions == nil }},
		{"a due date", disputeOf("dp_1", `evidence_details={"due_by":1780531199}`), func(f Fact) bool { return f.Snapshot.DueBy == 1780531199000 }},
		{"a transaction listed twice", disputeOf("dp_1", `balance_transactions=[{"id":"txn_1","amount":-5},{"id":"txn_1","amount":-5}]`),
			func(f Fact) bool {
				return len(f.Sticky.Transactions) == 1 && f.Sticky.Transactions[0].Currency == "eur"
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := mustDecode(t, body("evt_1", "x", 0, tt.object))
			if !tt.check(f) {
				t.Errorf("the fact is %+v", f)
			}
			raw, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			var back Fact
			if err := json.Unmarshal(raw, &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, f) {
				t.Errorf("the fact came back from JSON as\n%+v; want\n%+v", back, f)
			}
		})
	}
}

func TestDecodeSaysWhatTheEventIsAbout(t *testing.T) {
	ev := Decode(body("evt_1", "invoice_payment.paid", 3, object("invoice_payment", "inpay_1", "invoice=in_1",
		`payment={"type":"payment_intent","payment_intent":"pi_1"}`)))
	if ev.ID != "evt_1" || ev.ObjectKind != "invoice_payment" || ev.ObjectID != "inpay_1" {
		t.Errorf("event %s is about the %s %s", ev.ID, ev.ObjectKind, ev.ObjectID)
	}
	want := Fact{Kind: KindPaymentIntent, ID: "pi_1", Rank: Rank{Created: (second + 3) * 1000, Event: "evt_1"}, Sticky: Sticky{Invoice: "in_1"}}
	if !reflect.DeepEqual(ev.Fact, want) || !ev.Fact.Invoice() {
		t.Errorf("fact = %+v; want %+v", ev.Fact, want)
	}
	ev = Decode(body("evt_2", "checkout.session.completed", 0,
		sessionOf("cs_1", `customer_details={"email":"buyer@example.com","name":"B. Uyer"}`)))
	if want := (Customer{Email: "buyer@example.com", Name: "B. Uyer"}); ev.Customer != want {
		t.Errorf("customer = %+v; want %+v", ev.Customer, want)
	}
	raw, err := json.Marshal(ev.Fact)
	if err != nil || strings.Contains(string(raw), "uyer") {
		t.Errorf("the fact holds personal data: %s, %v", raw, err)
	}
}
