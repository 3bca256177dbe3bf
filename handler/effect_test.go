package handler

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

// paidWorld is a stripeWorld in which ORD-1 is paid: 12.50 EUR by pi_T1.
func paidWorld(t testing.TB) *stripeWorld {
	t.Helper()
	w := newStripeWorld(t)
	w.call("POST", "/v1/orders", plainOrder)
	w.stripe("stripe", testEvent("evt_1"))
	w.work()
	return w
}

func TestTheSameRequestIDTenTimesAtOnceIsOneRefund(t *testing.T) {
	w := paidWorld(t)
	const body = `{"amount_minor":500,"payment":"pi_T1","reason":"requested_by_customer","request_id":"r-1"}`
	var waits []func() got
	for range 10 {
		waits = append(waits, w.begin("POST", "/v1/orders/ORD-1/refund", body))
	}
	for _, wait := range waits {
		g := wait()
		if g.status != 202 || g.field(t, "id") != "1" || g.field(t, "operation") != "refund.request:r-1" || g.field(t, "kind") != "stripe" {
			t.Errorf("%d %s; want 202 with effect 1", g.status, g.body)
		}
	}
	if effects := storetest.Effects(t, w.s, "ORD-1"); len(effects) != 1 {
		t.Errorf("%d effects: %+v", len(effects), effects)
	}
	var call store.RefundCall
	if err := json.Unmarshal(w.claim().Body, &call); err != nil || call.AmountMinor != 500 || call.PaymentIntent != "pi_T1" || call.Reason != "requested_by_customer" {
		t.Errorf("%+v, %v", call, err)
	}
}

func TestWhatCannotGoBackIsRefused(t *testing.T) {
	w := paidWorld(t)
	w.call("POST", "/v1/orders", `{"id":"KWD","total_minor":1500,"currency":"kwd"}`)
	w.stripe("stripe", []byte(strings.NewReplacer("evt_1", "evt_2", "ORD-1", "KWD", "pi_T1", "pi_T2", "ch_T1", "ch_T2", `"eur"`, `"kwd"`, "1250", "1500").Replace(string(testEvent("evt_1")))))
	w.work()
	w.call("POST", "/v1/orders", strings.Replace(plainOrder, "ORD-1", "UNPAID", 1))
	if g := w.call("POST", "/v1/orders/ORD-1/refund", `{"amount_minor":500,"request_id":"r-1"}`); g.status != 202 {
		t.Fatal(g.body)
	}
	for _, tt := range []struct {
		name, order, body string
		status            int
		code              string // or the effect's status
		field             string // of a 422
	}{
		{"the same request", "ORD-1", `{"amount_minor":500,"request_id":"r-1"}`, 202, "pending", ""},
		{"another amount under its id", "ORD-1", `{"amount_minor":501,"request_id":"r-1"}`, 409, "request_conflict", ""},
		{"all of it under its id", "ORD-1", `{"request_id":"r-1"}`, 409, "request_conflict", ""},
		{"another reason under its id", "ORD-1", `{"amount_minor":500,"reason":"duplicate","request_id":"r-1"}`, 409, "request_conflict", ""},
		{"more than is left", "ORD-1", `{"amount_minor":751,"request_id":"r-2"}`, 409, "not_refundable", ""},
		{"an order without money", "UNPAID", `{"request_id":"r-2"}`, 409, "not_refundable", ""},
		{"three decimals, of which the last is not 0", "KWD", `{"amount_minor":105,"request_id":"r-2"}`, 422, "invalid", "amount_minor"},
		{"three decimals, of which the last is 0", "KWD", `{"amount_minor":110,"request_id":"r-2"}`, 202, "pending", ""},
		{"no request id", "ORD-1", `{"amount_minor":1}`, 422, "invalid", "request_id"},
		{"no body", "ORD-1", "", 400, "malformed", ""},
		{"nothing of it", "ORD-1", `{"amount_minor":0,"request_id":"r-2"}`, 422, "invalid", "amount_minor"},
		{"less than nothing", "ORD-1", `{"amount_minor":-1,"request_id":"r-2"}`, 422, "invalid", "amount_minor"},
		{"an amount in words", "ORD-1", `{"amount_minor":"5.00","request_id":"r-2"}`, 422, "invalid", "amount_minor"},
		{"an amount with a fraction", "ORD-1", `{"amount_minor":5.0,"request_id":"r-2"}`, 422, "invalid", "amount_minor"},
		{"a reason that Stripe does not know", "ORD-1", `{"reason":"because","request_id":"r-2"}`, 422, "invalid", "reason"},
		{"a misspelt field", "ORD-1", `{"amount":500,"request_id":"r-2"}`, 422, "invalid", "amount"},
		{"a payment of another order", "ORD-1", `{"payment":"pi_T2","request_id":"r-2"}`, 404, "not_found", ""},
		{"nobody's order", "nobody", `{"request_id":"r-2"}`, 404, "not_found", ""},
		{"the rest", "ORD-1", `{"request_id":"r-2"}`, 202, "pending", ""},
		{"when nothing is left", "ORD-1", `{"request_id":"r-3"}`, 409, "not_refundable", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := w.call("POST", "/v1/orders/"+tt.order+"/refund", tt.body)
			if g.status != tt.status || g.code() != tt.code {
				t.Fatalf("%d %s; want %d %s", g.status, g.body, tt.status, tt.code)
			}
			if tt.field != "" && g.problems(t)[tt.field] == "" {
				t.Errorf("%s; want a problem with %s", g.body, tt.field)
			}
		})
	}
}

func TestEffectsAreListedAndShown(t *testing.T) {
	w := paidWorld(t)
	for i := range 3 {
		w.call("POST", "/v1/orders/ORD-1/refund", fmt.Sprintf(`{"amount_minor":100,"request_id":"r-%d"}`, i+1))
	}
	storetest.Finish(t, w.s, w.claim(), store.Answer{Outcome: store.OutcomeDone, Ref: "re_1"})
	storetest.Finish(t, w.s, w.claim(), store.Answer{Outcome: store.OutcomeRefused, Status: 402, Code: "charge_disputed", Error: "it is disputed",
		RequestID: "req_9", Body: []byte("{\"error\":\"\x1b[2J\xff\"}")})
	ids := func(query string) string {
		t.Helper()
		g := w.call("GET", "/v1/effects"+query, "")
		var page store.Page[store.Effect]
		if err := json.Unmarshal([]byte(g.body), &page); err != nil || g.status != 200 {
			t.Fatalf("%s: %d %s, %v", query, g.status, g.body, err)
		}
		var all []string
		for _, e := range page.Items {
			all = append(all, e.ID)
		}
		if page.NextCursor != "" {
			all = append(all, "…"+page.NextCursor)
		}
		return strings.Join(all, " ")
	}
	for _, tt := range []struct{ query, want string }{
		{"", "3 2 1"},
		{"?status=done", "1"},
		{"?status=failed", "2"},
		{"?status=held", ""},
		{"?kind=stripe", "3 2 1"},
		{"?kind=http", ""},
		{"?target=stripe&status=pending", "3"},
		{"?target=app", ""},
		{"?order=ORD-1", "3 2 1"},
		{"?order=ORD-2", ""},
		{"?order=ORD-1&tenant=acct_B", ""},
	} {
		if got := ids(tt.query); got != tt.want {
			t.Errorf("%s: %q; want %q", tt.query, got, tt.want)
		}
	}
	first := ids("?limit=2")
	cursor, ok := strings.CutPrefix(first, "3 2 …")
	if !ok || ids("?limit=2&cursor="+cursor) != "1" {
		t.Errorf("page by page: %q, and no end", first)
	}
	for _, query := range []string{"?status=new", "?kind=sms", "?limit=0", "?limit=201", "?stats=done", "?cursor=x%20y", "?status=done&status=failed"} {
		if g := w.call("GET", "/v1/effects"+query, ""); g.status != 422 {
			t.Errorf("%s: %d %s; want 422", query, g.status, g.body)
		}
	}

	g := w.call("GET", "/v1/effects/2", "")
	var d store.EffectDetail
	if err := json.Unmarshal([]byte(g.body), &d); err != nil || g.status != 200 {
		t.Fatalf("%d %s, %v", g.status, g.body, err)
	}
	if d.Status != "failed" || d.Order != "ORD-1" || d.LastError != "it is disputed" || len(d.History) != 1 || d.History[0].Code != "charge_disputed" ||
		d.History[0].RequestID != "req_9" || d.History[0].IdempotencyKey != d.IdempotencyKey || len(d.Acts) != 1 || d.Acts[0].Act != "refund" || d.Next == "" {
		t.Errorf("%s", g.body)
	}
	if !strings.Contains(g.body, `\u001b[2J`) || !strings.Contains(d.History[0].Answer, "\uFFFD") {
		t.Errorf("what came back is not inert: %s", g.body)
	}
	var call store.RefundCall
	if err := json.Unmarshal(d.Body, &call); err != nil || call.AmountMinor != 100 {
		t.Errorf("body %s, %v", d.Body, err)
	}
	if order := w.call("GET", "/v1/orders/ORD-1", ""); strings.Count(order.body, `"idempotency_key"`) != 3 {
		t.Errorf("the order shows %s", order.field(t, "effects"))
	}
}

func TestAnEffectIsRetriedAndResolved(t *testing.T) {
	w := paidWorld(t)
	w.call("POST", "/v1/orders/ORD-1/refund", `{"amount_minor":100,"request_id":"r-1"}`)
	c := w.claim()
	act := func(name, path, body string, status int, code string) {
		t.Helper()
		if g := w.call("POST", path, body); g.status != status || g.code() != code {
			t.Errorf("%s: %d %s; want %d %s", name, g.status, g.body, status, code)
		}
	}
	act("retry while it is sent", "/v1/effects/1/retry", "", 409, "in_flight")
	act("resolve while it is sent", "/v1/effects/1/resolve", `{"outcome":"done"}`, 409, "in_flight")
	storetest.Finish(t, w.s, c, refuses("lock_timeout"))
	act("retry with a field", "/v1/effects/1/retry", `{"now":true}`, 422, "invalid")
	act("retry of nothing", "/v1/effects/99/retry", "", 404, "not_found")
	act("retry of no number", "/v1/effects/x/retry", "", 404, "not_found")
	act("retry", "/v1/effects/1/retry", "", 200, "unknown")
	c = w.claim()
	if !c.LookUp {
		t.Errorf("%+v; want it looked up first", c)
	}
	storetest.Finish(t, w.s, c, refuses("lock_timeout"))
	act("resolve without an outcome", "/v1/effects/1/resolve", `{"note":"x"}`, 422, "invalid")
	act("resolve without a body", "/v1/effects/1/resolve", "", 400, "malformed")
	act("resolve as something else", "/v1/effects/1/resolve", `{"outcome":"failed"}`, 422, "invalid")
	act("a note that is too long", "/v1/effects/1/resolve", `{"outcome":"done","note":"`+strings.Repeat("x", 501)+`"}`, 422, "invalid")
	act("resolve", "/v1/effects/1/resolve", `{"outcome":"canceled","note":"paid in cash"}`, 200, "canceled")
	act("resolve again", "/v1/effects/1/resolve", `{"outcome":"done"}`, 409, "not_resolvable")
	act("retry of what is canceled", "/v1/effects/1/retry", "", 409, "not_retryable")
	if g := w.call("GET", "/v1/effects/1", ""); !strings.Contains(g.body, "paid in cash") || !strings.Contains(g.body, `"actor":"api"`) {
		t.Errorf("what a person did is not told: %s", g.body)
	}
	if g := w.call("GET", "/v1/stats", ""); !strings.Contains(g.body, `"canceled":1`) {
		t.Errorf("stats: %s", g.body)
	}
}

// TestEveryProblemHasItsStatus reads the store's codes: one without a status
// would be "internal error".
func TestEveryProblemHasItsStatus(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../store/problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil || statuses[store.Code(code)] < 400 {
				t.Errorf("%s (%q) has no status", spec.Names[0], code)
			}
			n++
		}
		return true
	})
	if n < 10 {
		t.Errorf("%d codes found", n)
	}
}
