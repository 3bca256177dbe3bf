package payment

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const testScope = "stripe:self:test"

// second is where the test events' clock starts: created is second + n.
const second = 1750000000

// body writes a signed body: an event about an object, created n seconds on.
func body(id, eventType string, n int64, object string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2025-08-27.basil","created":%d,
		"livemode":false,"pending_webhooks":1,"request":{"id":null,"idempotency_key":null},
		"type":%q,"data":{"object":%s}}`, id, second+n, eventType, object)
}

// object writes an object of a kind from its members: pairs of key and raw
// value, a string value without quotes if it is a word.
func object(kind, id string, members ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%q,"object":%q`, id, kind)
	for _, m := range members {
		key, value, _ := strings.Cut(m, "=")
		if !strings.ContainsAny(value[:1], `"{[0123456789-`) && value != "true" && value != "false" && value != "null" {
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&b, `,%q:%s`, key, value)
	}
	b.WriteString("}")
	return b.String()
}

// The objects of one payment of 12.50 EUR, as Stripe writes them; members given
// after the id come first, and what is given is not written again.
func sessionOf(id string, members ...string) string {
	return object("checkout.session", id, defaults(members, "mode=payment", "status=complete", "payment_status=paid",
		"amount_total=1250", "amount_subtotal=1250", "currency=eur", "payment_intent=pi_1")...)
}

func intentOf(id string, members ...string) string {
	return object("payment_intent", id, defaults(members, "status=succeeded", "amount=1250", "amount_received=1250",
		"currency=eur", "latest_charge=ch_1")...)
}

func chargeOf(id string, members ...string) string {
	return object("charge", id, defaults(members, "status=succeeded", "paid=true", "captured=true", "amount=1250",
		"amount_captured=1250", "amount_refunded=0", "currency=eur", "payment_intent=pi_1")...)
}

func refundOf(id string, members ...string) string {
	return object("refund", id, defaults(members, "status=succeeded", "amount=1250", "currency=eur", "charge=ch_1",
		"payment_intent=pi_1")...)
}

func disputeOf(id string, members ...string) string {
	return object("dispute", id, defaults(members, "status=needs_response", "amount=1250", "currency=eur", "charge=ch_1",
		"payment_intent=pi_1", `balance_transactions=[{"id":"txn_1","amount":-1250,"currency":"eur","fee":1500,"net":-2750}]`)...)
}

// defaults adds those members whose key is not given. A given "key=-" leaves
// the key out.
func defaults(given []string, usual ...string) []string {
	members := slices.Clone(given)
	for _, m := range usual {
		key, _, _ := strings.Cut(m, "=")
		if !slices.ContainsFunc(given, func(g string) bool { return strings.HasPrefix(g, key+"=") }) {
			members = append(members, m)
		}
	}
	return slices.DeleteFunc(members, func(m string) bool { return strings.HasSuffix(m, "=-") })
}

// at is a body of a type that the rules do not look at, n seconds on. Its id is
// made of what it says, so that the same call is the same event.
func at(n int64, object string) []byte {
	return body(fmt.Sprintf("evt_%d_%x", n, sum(object)), "test.event", n, object)
}

func sum(s string) (h uint32) {
	for _, c := range []byte(s) {
		h = h*31 + uint32(c)
	}
	return h
}

// mustDecode decodes a body that yields a fact.
func mustDecode(t testing.TB, body []byte) Fact {
	t.Helper()
	ev := Decode(body)
	if ev.Verdict != "" {
		t.Fatalf("Decode = %s: %s\n%s", ev.Verdict, ev.Reason, body)
	}
	ev.Fact.Scope = testScope
	return ev.Fact
}

// learn merges bodies in the given order, as the store does.
func learn(t testing.TB, bodies ...[]byte) []Fact {
	t.Helper()
	var facts []Fact
	for _, b := range bodies {
		seen := mustDecode(t, b)
		i := slices.IndexFunc(facts, func(f Fact) bool { return f.ID == seen.ID })
		if i < 0 {
			merged, _, _ := MergeEvent(nil, seen)
			facts = append(facts, merged)
			continue
		}
		facts[i], _, _ = MergeEvent(&facts[i], seen)
	}
	return facts
}

// permutations calls f with every order of 0..n-1, or with 120 of them when
// there are more.
func permutations(n int, f func(order []int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	left := 120
	var walk func(k int)
	walk = func(k int) {
		if left == 0 {
			return
		}
		if k == n {
			left--
			f(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			walk(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	walk(0)
}

// summary writes an outcome in a few lines that a test can state.
func summary(o Outcome) string {
	var b strings.Builder
	b.WriteString(string(o.Status))
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"received", o.ReceivedMinor},
		{"refunded", o.RefundedMinor},
		{"refund_pending", o.RefundPendingMinor},
		{"charged_back", o.ChargedBackMinor},
		{"suspense", o.SuspenseMinor},
	} {
		if n.value != 0 {
			fmt.Fprintf(&b, " %s %d", n.name, n.value)
		}
	}
	line := func(title string, parts []string) {
		if len(parts) > 0 {
			fmt.Fprintf(&b, "\n%s: %s", title, strings.Join(parts, ", "))
		}
	}
	var attention, ops, books []string
	for _, a := range o.Attention {
		attention = append(attention, a.Word+" "+a.Cause)
	}
	for _, op := range o.Operations {
		ops = append(ops, op.Name)
	}
	for _, x := range o.Balances {
		books = append(books, fmt.Sprintf("%s %s %d %s", x.Object, x.Account, x.AmountMinor, x.Currency))
	}
	line("attention", attention)
	line("operations", ops)
	line("books", books)
	return b.String()
}
