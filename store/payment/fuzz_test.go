package payment

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"
)

// seeds are bodies that come close to every branch of the decoders.
func seeds() [][]byte {
	return [][]byte{
		at(0, sessionOf("cs_1", "payment_link=plink_1", "client_reference_id=ORD-1", `total_details={"amount_discount":5}`)),
		at(0, sessionOf("cs_1", "status=expired", "payment_status=unpaid", "mode=-", "subscription=sub_1")),
		body("evt_1", "checkout.session.async_payment_failed", 3, sessionOf("cs_1", "payment_status=unpaid")),
		at(0, intentOf("pi_1", `metadata={"order_id":"ORD-1"}`)),
		at(0, intentOf("pi_1", "status=requires_payment_method", "amount_received=0", "last_payment_error={}")),
		at(0, intentOf("pi_1", "status=canceled", "latest_charge=-", `charges={"data":[{"id":"ch_1"}]}`)),
		at(0, chargeOf("ch_1", "amount_refunded=200", `payment_intent={"id":"pi_1"}`)),
		at(0, chargeOf("ch_1", "captured=false", "amount_captured=0", "payment_intent=null")),
		at(0, refundOf("re_1", "amount=200")),
		returned("evt_9", 0),
		at(0, disputeOf("dp_1", "status=lost", "amount=1300", `evidence_details={"due_by":1780531199}`)),
		at(0, object("invoice_payment", "inpay_1", "invoice=in_1", `payment={"payment_intent":"pi_1"}`)),
		[]byte(`{"id":"evt_1","object":"v2.core.event","type":"v2.core.event_ping","livemode":false,"created":"2026-01-01T00:00:00Z"}`),
		[]byte(`{"id":"evt_1","id":"evt_2","type":"x","livemode":null,"data":{"object":[]}}`),
	}
}

func FuzzParseEnvelope(f *testing.F) {
	for _, body := range seeds() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e := ParseEnvelope(body)
		if e.Malformed != "" {
			if e.ID != "" && !json.Valid(body) {
				t.Errorf("an id came out of what is no JSON: %+v", e)
			}
			return
		}
		var top map[string]json.RawMessage
		if err := json.Unmarshal(body, &top); err != nil {
			t.Fatalf("encoding/json does not read a body that is not malformed: %v", err)
		}
		var id, typ string
		var livemode bool
		for key, into := range map[string]any{"id": &id, "type": &typ, "livemode": &livemode} {
			if err := json.Unmarshal(top[key], into); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
		}
		if id != e.ID || typ != e.Type || livemode != e.Livemode || !e.HasLivemode {
			t.Errorf("ParseEnvelope = %+v; encoding/json reads %q, %q, %v", e, id, typ, livemode)
		}
		if e.ID == "" || len(e.ID) > maxIDBytes || !utf8.ValidString(e.ID) || e.Created < 0 {
			t.Errorf("ParseEnvelope = %+v", e)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, body := range seeds() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ev := Decode(body)
		fact := ev.Fact
		if (ev.Verdict == "") != (fact.ID != "") || (ev.Verdict == "") != (ev.Reason == "") {
			t.Fatalf("verdict %q, reason %q, fact %q", ev.Verdict, ev.Reason, fact.ID)
		}
		if ev.Envelope != ParseEnvelope(body) {
			t.Errorf("the envelope is %+v; ParseEnvelope says %+v", ev.Envelope, ParseEnvelope(body))
		}
		if ev.Verdict != "" {
			return
		}
		raw, err := json.Marshal(fact)
		if err != nil {
			t.Fatal(err)
		}
		var back Fact
		if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, fact) {
			t.Errorf("the fact came back from JSON as %+v, %v; want %+v", back, err, fact)
		}
		order := &Order{TotalMinor: 1250, Currency: fact.Snapshot.Currency, Policy: PolicyAny}
		status := Derive(order, []Fact{fact}, nil).Status
		if fact.Rank.Class == classUnseen && !fact.paidSession() && status != StatusAwaitingPayment {
			t.Errorf("a body that proves nothing makes the order %s: %+v", status, fact)
		}
	})
}

func FuzzMergeDerive(f *testing.F) {
	all := seeds()
	for i := range all {
		f.Add(all[i], all[(i+3)%len(all)], all[(i+5)%len(all)], int64(1250), uint8(i))
	}
	policies := []Policy{PolicyExact, PolicyAtLeast, PolicyAny, PolicySubtotal}
	f.Fuzz(func(t *testing.T, x, y, z []byte, total int64, options uint8) {
		var seen []Fact
		for _, body := range [][]byte{x, y, z} {
			if ev := Decode(body); ev.Verdict == "" {
				ev.Fact.Scope = testScope
				seen = append(seen, ev.Fact)
			}
		}
		if len(seen) == 0 {
			return
		}
		one := func(i int) Fact { // the same object, as the laws ask for
			f := seen[i%len(seen)]
			f.ID = "x_1"
			return f
		}
		checkMergeLaws(t, one(0), one(1), one(2))

		merge := func(facts []Fact) []Fact {
			var merged []Fact
			for _, f := range facts {
				if i := slices.IndexFunc(merged, func(g Fact) bool { return g.ID == f.ID }); i >= 0 {
					merged[i] = Merge(merged[i], f)
				} else {
					merged = append(merged, f)
				}
			}
			return merged
		}
		facts := merge(seen)
		order := &Order{
			Tenant: "main", ID: "ORD-1", TotalMinor: total, Currency: "eur",
			Policy: policies[options%4], AllowDiscount: options&4 != 0,
		}
		if options&8 != 0 {
			order.ClosedAt = 1
		}
		if options&16 != 0 {
			order.Accepted = map[PaymentKey]bool{KeyOf(Group(facts)[0]): true}
		}
		out := Derive(order, facts, nil)
		slices.Reverse(seen)
		if again := Derive(order, merge(append(seen, seen...)), nil); !reflect.DeepEqual(again, out) {
			t.Errorf("from the other end the order comes to\n%+v\nwant\n%+v", again, out)
		}
		if !slices.ContainsFunc(facts, huge) {
			checkBooks(t, facts, order, out)
		}
	})
}

// huge reports whether a fact's amounts may reach the end of int64, where sums
// stop instead of turning their sign.
func huge(f Fact) bool {
	const limit = 1 << 56
	for _, a := range []Amount{f.Snapshot.Amount, f.Snapshot.Refunded, f.Sticky.Received, f.Sticky.Captured} {
		if a.Minor > limit {
			return true
		}
	}
	return slices.ContainsFunc(f.Sticky.Transactions, func(x Transaction) bool { return x.Amount > limit || x.Amount < -limit })
}
