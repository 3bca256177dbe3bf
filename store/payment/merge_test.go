package payment

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
)

// Each row of the merge table of design.md §5: bodies of one object, merged in
// every order and with every one of them repeated, come to the same fact.
func TestMergeRanks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bodies [][]byte
		check  func(f Fact) bool
	}{
		{"a complete session outranks a later open one", [][]byte{
			at(0, sessionOf("cs_1")), at(9, sessionOf("cs_1", "status=open", "payment_status=unpaid", "payment_intent=null")),
		}, func(f Fact) bool {
			return f.Snapshot.Status == "complete" && f.paidSession() && f.PaymentIntent() == "pi_1" && !f.Sticky.Expired
		}},
		{"an expired session outranks a later open one", [][]byte{
			at(0, sessionOf("cs_1", "status=expired", "payment_status=unpaid")), at(9, sessionOf("cs_1", "status=open", "payment_status=unpaid")),
		}, func(f Fact) bool { return f.Snapshot.Status == "expired" }},
		{"complete and expired are both remembered", [][]byte{
			at(0, sessionOf("cs_1", "status=expired", "payment_status=unpaid")), at(9, sessionOf("cs_1")),
		}, func(f Fact) bool { return f.Sticky.Complete && f.Sticky.Expired }},
		{"a paid session stays paid", [][]byte{
			at(0, sessionOf("cs_1")), at(9, sessionOf("cs_1", "payment_status=unpaid")),
		}, func(f Fact) bool { return f.paidSession() && f.Sticky.ProvenAt == second*1000 }},
		{"a failed delayed payment is remembered", [][]byte{
			body("evt_1", "checkout.session.async_payment_failed", 0, sessionOf("cs_1", "payment_status=unpaid")),
			at(9, sessionOf("cs_1", "payment_status=unpaid")),
		}, func(f Fact) bool { return f.Sticky.AsyncFailed }},
		{"ids of a session are learned for good", [][]byte{
			at(0, sessionOf("cs_1", "payment_link=plink_1", "client_reference_id=ORD-1")), at(9, sessionOf("cs_1")),
		}, func(f Fact) bool { return f.PaymentLink() == "plink_1" && f.Reference() == "ORD-1" }},

		{"processing and failing again follow the clock", [][]byte{
			at(0, intentOf("pi_1", "status=requires_payment_method")),
			at(1, intentOf("pi_1", "status=processing")),
			at(2, intentOf("pi_1", "status=requires_payment_method", "last_payment_error={}")),
		}, func(f Fact) bool { return f.Snapshot.Failed && f.Snapshot.Status == "requires_payment_method" }},
		{"a new attempt follows a failure by the clock", [][]byte{
			at(2, intentOf("pi_1", "status=requires_payment_method", "last_payment_error={}")),
			at(3, intentOf("pi_1", "status=requires_action")),
		}, func(f Fact) bool { return !f.Snapshot.Failed && f.Snapshot.Status == "requires_action" }},
		{"on one second processing follows waiting", [][]byte{
			at(0, intentOf("pi_1", "status=requires_action")), at(0, intentOf("pi_1", "status=processing")),
		}, func(f Fact) bool { return f.Snapshot.Status == "processing" }},
		{"on one second a failure follows processing", [][]byte{
			at(0, intentOf("pi_1", "status=requires_payment_method", "last_payment_error={}")), at(0, intentOf("pi_1", "status=processing")),
		}, func(f Fact) bool { return f.Snapshot.Failed }},
		{"a hold outranks a later processing", [][]byte{
			at(0, intentOf("pi_1", "status=requires_capture")), at(9, intentOf("pi_1", "status=processing")),
		}, func(f Fact) bool { return f.Snapshot.Status == "requires_capture" }},
		{"success outranks a later hold", [][]byte{
			at(0, intentOf("pi_1")), at(9, intentOf("pi_1", "status=requires_capture", "amount_received=0")),
		}, func(f Fact) bool { return f.Snapshot.Status == "succeeded" && f.Sticky.Received == Minor(1250) }},
		{"success outranks a later processing (B25)", [][]byte{
			at(100, intentOf("pi_1")), at(101, intentOf("pi_1", "status=processing", "amount_received=0")),
		}, func(f Fact) bool { return f.Snapshot.Status == "succeeded" }},
		{"success outranks processing on one second (B25)", [][]byte{
			at(100, intentOf("pi_1")), at(100, intentOf("pi_1", "status=processing", "amount_received=0")),
		}, func(f Fact) bool { return f.Snapshot.Status == "succeeded" }},
		{"the highest amount_received counts", [][]byte{
			at(0, intentOf("pi_1", "amount_received=1300")), at(9, intentOf("pi_1")),
		}, func(f Fact) bool { return f.Sticky.Received == Minor(1300) }},
		{"succeeded and canceled are both remembered", [][]byte{
			at(0, intentOf("pi_1")), at(9, intentOf("pi_1", "status=canceled")),
		}, func(f Fact) bool { return f.Sticky.Succeeded && f.Sticky.Canceled }},
		{"an intent that only an invoice told of is outranked by anything", [][]byte{
			at(9, object("invoice_payment", "inpay_1", "invoice=in_1", `payment={"payment_intent":"pi_1"}`)), at(0, intentOf("pi_1")),
		}, func(f Fact) bool { return f.Invoice() && f.Snapshot.Status == "succeeded" }},
		{"an unknown status is outranked by anything", [][]byte{
			at(9, intentOf("pi_1", "status=requires_magic")), at(0, intentOf("pi_1", "status=processing")),
		}, func(f Fact) bool { return f.Snapshot.Status == "processing" }},
		{"the earliest proof stays", [][]byte{
			at(5, intentOf("pi_1")), at(3, intentOf("pi_1", "x=1")), at(1, intentOf("pi_1", "status=processing")),
		}, func(f Fact) bool { return f.Sticky.ProvenAt == (second+3)*1000 && f.Rank.Created == (second+5)*1000 }},
		{"a later name of the order replaces the first, which is remembered", [][]byte{
			at(0, intentOf("pi_1", `metadata={"order_id":"ORD-1"}`)), at(9, intentOf("pi_1", `metadata={"order_id":"ORD-2"}`)),
		}, func(f Fact) bool {
			return f.OrderName() == "ORD-2" && reflect.DeepEqual(f.Sticky.OrderIDs, []string{"ORD-1", "ORD-2"})
		}},
		{"a later body without a name takes none away", [][]byte{
			at(0, intentOf("pi_1", `metadata={"order_id":"ORD-1"}`)), at(9, intentOf("pi_1", `metadata={}`)),
		}, func(f Fact) bool { return f.OrderName() == "ORD-1" }},

		{"a capture outranks a later hold", [][]byte{
			at(0, chargeOf("ch_1")), at(9, chargeOf("ch_1", "captured=false", "amount_captured=0")),
		}, func(f Fact) bool { return f.Rank.Class == classChargeCaptured && f.Sticky.Captured == Minor(1250) }},
		{"a hold outranks a later pending", [][]byte{
			at(0, chargeOf("ch_1", "captured=false")), at(9, chargeOf("ch_1", "status=pending")),
		}, func(f Fact) bool { return f.Rank.Class == classChargeHold }},
		{"on one second the higher amount_refunded is the later", [][]byte{
			at(0, chargeOf("ch_1", "amount_refunded=300")), at(0, chargeOf("ch_1", "amount_refunded=200")), at(0, chargeOf("ch_1")),
		}, func(f Fact) bool { return f.Snapshot.Refunded == Minor(300) }},
		{"amount_refunded may go down later", [][]byte{
			at(0, chargeOf("ch_1", "amount_refunded=300")), at(5, chargeOf("ch_1")),
		}, func(f Fact) bool { return f.Snapshot.Refunded == Minor(0) }},

		{"a failed refund outranks a later success", [][]byte{
			at(0, refundOf("re_1", "status=failed")), at(9, refundOf("re_1")),
		}, func(f Fact) bool { return f.Snapshot.Status == "failed" && f.Sticky.Succeeded }},
		{"a canceled refund outranks a later pending", [][]byte{
			at(0, refundOf("re_1", "status=canceled")), at(9, refundOf("re_1", "status=pending")),
		}, func(f Fact) bool { return f.Snapshot.Status == "canceled" }},
		{"on one second pending, requires_action, succeeded", [][]byte{
			at(0, refundOf("re_1", "status=pending")), at(0, refundOf("re_1", "status=requires_action")), at(0, refundOf("re_1")),
		}, func(f Fact) bool { return f.Snapshot.Status == "succeeded" }},
		{"on one second pending, requires_action", [][]byte{
			at(0, refundOf("re_1", "status=requires_action")), at(0, refundOf("re_1", "status=pending")),
		}, func(f Fact) bool { return f.Snapshot.Status == "requires_action" }},
		{"a refund that needs action after it succeeded, by the clock", [][]byte{
			at(0, refundOf("re_1")), at(1, refundOf("re_1", "status=requires_action")),
		}, func(f Fact) bool { return f.Snapshot.Status == "requires_action" }},
		{"on one second, what the bank returned follows success", [][]byte{
			at(0, refundOf("re_1")), returned("evt_9", 0),
		}, func(f Fact) bool { return f.Snapshot.Status == "requires_action" && f.Sticky.Succeeded }},

		{"a real dispute outranks a later inquiry", [][]byte{
			at(0, disputeOf("dp_1")), at(9, disputeOf("dp_1", "status=warning_under_review", "balance_transactions=[]")),
		}, func(f Fact) bool { return f.Snapshot.Status == "needs_response" && len(f.Sticky.Transactions) == 1 }},
		{"a verdict outranks a later review", [][]byte{
			at(0, disputeOf("dp_1", "status=won")), at(9, disputeOf("dp_1", "status=under_review")),
		}, func(f Fact) bool { return f.Snapshot.Status == "won" }},
		{"a lost dispute can be turned", [][]byte{
			at(0, disputeOf("dp_1", "status=lost")), at(9, disputeOf("dp_1", "status=won")),
		}, func(f Fact) bool { return f.Snapshot.Status == "won" }},
		{"a closed inquiry outranks a real one, whatever the clock", [][]byte{
			at(0, disputeOf("dp_1", "status=warning_closed")), at(9, disputeOf("dp_1")),
		}, func(f Fact) bool { return f.Snapshot.Status == "warning_closed" }},
		{"transactions are joined by their ids", [][]byte{
			at(0, disputeOf("dp_1")),
			at(1, disputeOf("dp_1", `balance_transactions=[{"id":"txn_2","amount":50,"currency":"eur"}]`)),
			at(2, disputeOf("dp_1", `balance_transactions=[{"id":"txn_2","amount":50,"currency":"eur"},{"id":"txn_1","amount":-1250,"currency":"eur"}]`)),
		}, func(f Fact) bool {
			return reflect.DeepEqual(f.Sticky.Transactions, []Transaction{{"txn_1", -1250, "eur"}, {"txn_2", 50, "eur"}})
		}},
		{"one id of two kinds is a clash", [][]byte{
			at(0, intentOf("pi_1")), at(9, chargeOf("pi_1")),
		}, func(f Fact) bool { return f.Sticky.Clash }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := learn(t, tt.bodies...)[0]
			if !tt.check(want) {
				t.Errorf("the fact is %+v", want)
			}
			// An event's id decides last, so it must not be what decided here.
			for _, ids := range []string{"abc", "cba"} {
				var fact *Fact
				for i, b := range tt.bodies {
					seen := mustDecode(t, b)
					seen.Rank.Event = "evt_" + ids[i:i+1]
					merged, _, _ := MergeEvent(fact, seen)
					fact = &merged
				}
				if !tt.check(*fact) {
					t.Errorf("with the event ids %s the fact is %+v", ids, *fact)
				}
			}
			permutations(len(tt.bodies), func(order []int) {
				var bodies [][]byte
				for _, i := range order {
					bodies = append(bodies, tt.bodies[i])
				}
				bodies = append(bodies, bodies...)
				if got := learn(t, bodies...)[0]; !reflect.DeepEqual(got, want) {
					t.Errorf("in the order %v the fact is\n%+v; want\n%+v", order, got, want)
				}
			})
		})
	}
}

// returned is a refund that went from succeeded back to requires_action.
func returned(id string, n int64) []byte {
	return []byte(`{"id":"` + id + `","object":"event","livemode":false,"type":"refund.updated","created":` +
		string(mustJSON(second+n)) + `,"data":{"object":` + refundOf("re_1", "status=requires_action") +
		`,"previous_attributes":{"status":"succeeded"}}}`)
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func TestMergeEventTellsWhatChanged(t *testing.T) {
	succeeded := body("evt_5", "x", 5, intentOf("pi_1"))
	for _, tt := range []struct {
		name        string
		stored      []byte // nil: first sight
		seen        []byte
		want        Change
		changedRank bool
	}{
		{"first sight", nil, succeeded, Changed, true},
		{"the same event again", succeeded, succeeded, Duplicate, false},
		{"a later event with the same content", succeeded, body("evt_6", "x", 6, intentOf("pi_1")), Duplicate, true},
		{"another event of the same second with the same content", succeeded, body("evt_7", "x", 5, intentOf("pi_1")), Duplicate, true},
		{"the same, of a lower id", succeeded, body("evt_4", "x", 5, intentOf("pi_1")), Duplicate, false},
		{"an earlier event of a lower class", succeeded, body("evt_4", "x", 4, intentOf("pi_1", "status=processing", "amount_received=0")), Stale, false},
		{"a later event of a lower class", succeeded, body("evt_6", "x", 6, intentOf("pi_1", "status=processing", "amount_received=0")), Stale, false},
		{"a later event with other content", succeeded, body("evt_6", "x", 6, intentOf("pi_1", "latest_charge=ch_2")), Changed, true},
		{"an event of a lower class with the same snapshot", body("evt_5", "x", 5, chargeOf("ch_1")),
			body("evt_6", "x", 6, chargeOf("ch_1", "captured=false", "amount_captured=0")), Stale, false},
		{"an event of lower rank that adds an id", succeeded, body("evt_4", "x", 4, intentOf("pi_1", "status=processing", "invoice=in_1")), Changed, false},
		{"an earlier proof of the same", succeeded, body("evt_4", "x", 4, intentOf("pi_1")), Changed, false},
		{"a hold becomes a capture of nothing", body("evt_1", "x", 0, chargeOf("ch_1", "captured=false", "amount_captured=0")),
			body("evt_2", "x", 0, chargeOf("ch_1", "amount_captured=0")), Changed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stored *Fact
			if tt.stored != nil {
				f := mustDecode(t, tt.stored)
				stored = &f
			}
			seen := mustDecode(t, tt.seen)
			merged, change, changedRank := MergeEvent(stored, seen)
			if change != tt.want || changedRank != tt.changedRank {
				t.Errorf("change, changedRank = %d, %v; want %d, %v", change, changedRank, tt.want, tt.changedRank)
			}
			if stored != nil && !reflect.DeepEqual(merged, Merge(seen, *stored)) {
				t.Errorf("merged = %+v", merged)
			}
		})
	}
}

// randomFact makes a fact from so few values that ties of every length happen.
func randomFact(r *rand.Rand) Fact {
	word := func(words ...string) string { return words[r.IntN(len(words))] }
	flag := func() bool { return r.IntN(3) == 0 }
	amount := func() Amount { return []Amount{{}, Minor(0), Minor(5), Minor(9)}[r.IntN(4)] }
	f := Fact{
		Scope: testScope,
		Kind:  []Kind{KindSession, KindPaymentIntent, KindCharge, KindRefund, KindDispute}[r.IntN(5)],
		ID:    "x_1",
		Rank: Rank{
			Class: r.IntN(3), Created: Millis(r.IntN(3)), Sub: int64(r.IntN(2)), Event: word("evt_1", "evt_2", "evt_3"),
		},
		Snapshot: Snapshot{
			Status: word("", "open", "succeeded", "canceled", "lost"), Amount: amount(), Subtotal: amount(), Refunded: amount(),
			Currency: word("", "eur", "usd"), LatestCharge: word("", "ch_1"), OrderID: word("", "ORD-1", "ORD-2"),
			Failed: flag(), DueBy: Millis(r.IntN(2)),
		},
		Sticky: Sticky{
			Mode: word("", "payment", "setup"), PaymentStatus: word("", "unpaid", "no_payment_required", "paid"),
			AsyncFailed: flag(), Complete: flag(), Expired: flag(), Succeeded: flag(), Canceled: flag(),
			Received: amount(), Captured: amount(), PaymentIntent: word("", "pi_1", "pi_2"), Charge: word("", "ch_1"),
			PaymentLink: word("", "plink_1"), Reference: word("", "ORD-1"), Invoice: word("", "in_1"),
			Listed: flag(), ProvenAt: Millis(r.IntN(3)), Clash: flag(),
		},
	}
	if f.Snapshot.OrderID != "" {
		f.Sticky.OrderIDs = []string{f.Snapshot.OrderID}
	}
	for _, id := range []string{"txn_1", "txn_2"} {
		if flag() {
			f.Sticky.Transactions = append(f.Sticky.Transactions, Transaction{id, int64(r.IntN(3) - 1), word("eur", "usd")})
		}
	}
	return f
}

// checkMergeLaws checks what makes arrival irrelevant.
func checkMergeLaws(t *testing.T, a, b, c Fact) {
	t.Helper()
	if got := Merge(a, a); !reflect.DeepEqual(got, a) {
		t.Errorf("Merge(a, a) = %+v; want a = %+v", got, a)
	}
	if ab, ba := Merge(a, b), Merge(b, a); !reflect.DeepEqual(ab, ba) {
		t.Errorf("Merge(a, b) = %+v; Merge(b, a) = %+v", ab, ba)
	}
	if x, y := Merge(Merge(a, b), c), Merge(a, Merge(b, c)); !reflect.DeepEqual(x, y) {
		t.Errorf("Merge(Merge(a, b), c) = %+v; Merge(a, Merge(b, c)) = %+v", x, y)
	}
	ab := Merge(a, b)
	if got := Merge(ab, b); !reflect.DeepEqual(got, ab) {
		t.Errorf("merging b a second time gives %+v; want %+v", got, ab)
	}
}

func TestMergeIsAssociativeCommutativeIdempotent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		checkMergeLaws(t, randomFact(r), randomFact(r), randomFact(r))
		if t.Failed() {
			return
		}
	}
}
