package payment

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// benchBody is a payment_intent.succeeded of 3 KB, pretty-printed as Stripe
// sends it.
func benchBody(tb testing.TB) []byte {
	tb.Helper()
	object := intentOf("pi_3PgafyB7WZ01zgkW0jsxAJo3", `metadata={"order_id":"ORD-1"}`, "amount_capturable=0",
		`amount_details={"tip":{}}`, "application=null", `automatic_payment_methods={"allow_redirects":"always","enabled":true}`,
		"canceled_at=null", "cancellation_reason=null", "capture_method=automatic_async", "client_secret=pi_3Pgafy_secret_test",
		"confirmation_method=automatic", "created=1750000000", "customer=null", "description=null", "last_payment_error=null",
		"livemode=false", "next_action=null", "payment_method=pm_1PgafyB7WZ01zgkW",
		`payment_method_options={"card":{"installments":null,"network":null,"request_three_d_secure":"automatic"},"link":{"persistent_token":null}}`,
		`payment_method_types=["card","link"]`, "processing=null", "receipt_email=null", "review=null", "setup_future_usage=null",
		`shipping={"address":{"city":"Berlin","country":"DE","line1":"Street 1","line2":null,"postal_code":"10115","state":null},`+
			`"carrier":null,"name":"Example Buyer","phone":null,"tracking_number":null}`,
		"source=null", `statement_descriptor="`+strings.Repeat("x", 900)+`"`, "transfer_data=null", "transfer_group=null")
	var b bytes.Buffer
	if err := json.Indent(&b, body("evt_3PgafyB7WZ01zgkW0Xq1", "payment_intent.succeeded", 0, object), "", "  "); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func BenchmarkParseEnvelope(b *testing.B) {
	body := benchBody(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if e := ParseEnvelope(body); e.Malformed != "" {
			b.Fatal(e.Malformed)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	body := benchBody(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if ev := Decode(body); ev.Verdict != "" {
			b.Fatal(ev.Reason)
		}
	}
}

// What ParseEnvelope would be with the standard library.
func BenchmarkUnmarshalFiveFields(b *testing.B) {
	body := benchBody(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var e struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Account  string `json:"account"`
			Livemode bool   `json:"livemode"`
			Created  int64  `json:"created"`
		}
		if err := json.Unmarshal(body, &e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMergeEvent(b *testing.B) {
	stored := mustDecode(b, at(0, intentOf("pi_1")))
	seen := mustDecode(b, at(9, intentOf("pi_1", "status=processing")))
	b.ReportAllocs()
	for b.Loop() {
		MergeEvent(&stored, seen)
	}
}

func BenchmarkDerive(b *testing.B) {
	facts := learn(b, at(0, sessionOf("cs_1")), at(0, intentOf("pi_1")), at(0, chargeOf("ch_1")), at(1, refundOf("re_1", "amount=200")))
	order := &Order{TotalMinor: 1250, Currency: "eur", Policy: PolicyExact}
	b.ReportAllocs()
	for b.Loop() {
		Derive(order, facts, nil)
	}
}
