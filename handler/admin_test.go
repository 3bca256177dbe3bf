package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/store/storetest"
)

func TestAdminNeedsTheToken(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		name, authorization string
		status              int
	}{
		{"the token", "Bearer " + adminToken, 200},
		{"bearer in small letters", "bearer " + adminToken, 200},
		{"nothing", "", 401},
		{"an empty token", "Bearer ", 401},
		{"the scheme alone", "Bearer", 401},
		{"another token", "Bearer " + adminToken + "x", 401},
		{"part of the token", "Bearer " + adminToken[:5], 401},
		{"another scheme", "Basic " + adminToken, 401},
		{"no scheme", adminToken, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			if tt.authorization != "" {
				h.Set("Authorization", tt.authorization)
			}
			g := w.do("GET", w.admin+"/v1/stats", h, nil)
			if g.status != tt.status {
				t.Errorf("%d %s; want %d", g.status, g.body, tt.status)
			}
			if tt.status == 401 && (g.code() != "unauthorized" || g.header.Get("WWW-Authenticate") != "Bearer") {
				t.Errorf("%s, WWW-Authenticate %q", g.body, g.header.Get("WWW-Authenticate"))
			}
		})
	}
	for _, path := range []string{"/", "/v1/orders", "/v1/nothing", "/metrics", "/webhooks/stripe", "/healthz/"} {
		if g := w.do("GET", w.admin+path, nil, nil); g.status != 401 {
			t.Errorf("%s without the token: %d; want 401", path, g.status)
		}
	}
	if g := w.do("GET", w.admin+"/healthz", nil, nil); g.status != 200 || g.code() != "ok" {
		t.Errorf("healthz: %d %s", g.status, g.body)
	}
	if g := w.do("GET", w.admin+"/readyz", nil, nil); g.status != 200 || g.code() != "ready" {
		t.Errorf("readyz: %d %s", g.status, g.body)
	}
	if n := strings.Count(w.log.String(), "without the token"); n != 1 {
		t.Errorf("%d lines about the token; want one", n)
	}
}

func TestAdminRoutes(t *testing.T) {
	w := newWorld(t)
	w.call("POST", "/v1/orders", `{"id":"A/1","total_minor":1250,"currency":"eur"}`)
	for _, tt := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/v1/orders", 200, "", ""},
		{"HEAD", "/v1/orders", 200, "", ""},
		{"GET", "/v1/orders/A%2F1", 200, "awaiting_payment", ""},
		{"GET", "/v1/orders/A/1", 404, "not_found", ""},
		{"GET", "/v1/orders/A1", 404, "not_found", ""},
		{"GET", "/v1/orders/", 404, "not_found", ""},
		{"POST", "/v1/orders/", 404, "not_found", ""},
		{"GET", "//v1/orders", 404, "not_found", ""},
		{"GET", "/v1//orders", 404, "not_found", ""},
		{"GET", "/v1/orders/..", 404, "not_found", ""},
		{"GET", "/v1", 404, "not_found", ""},
		{"GET", "/", 404, "not_found", ""},
		{"POST", "/webhooks/stripe", 404, "not_found", ""},
		{"DELETE", "/v1/orders", 405, "method_not_allowed", "GET, HEAD, POST"},
		{"POST", "/v1/orders/A%2F1", 405, "method_not_allowed", "GET, HEAD, PATCH"},
		{"GET", "/v1/orders/A%2F1/link", 405, "method_not_allowed", "POST"},
		{"GET", "/v1/events/evt_1/requeue", 405, "method_not_allowed", "POST"},
		{"GET", "/v1/effects", 200, "", ""},
		{"GET", "/v1/effects/1", 404, "not_found", ""},
		{"POST", "/v1/effects", 405, "method_not_allowed", "GET, HEAD"},
		{"GET", "/v1/effects/1/retry", 405, "method_not_allowed", "POST"},
		{"GET", "/v1/orders/A%2F1/refund", 405, "method_not_allowed", "POST"},
		{"PATCH", "/v1/orders/A%2F1/cancel", 405, "method_not_allowed", "POST"},
		{"POST", "/v1/stats", 405, "method_not_allowed", "GET, HEAD"},
		{"POST", "/healthz", 405, "method_not_allowed", "GET, HEAD"},
		{"POST", "/readyz", 405, "method_not_allowed", "GET, HEAD"},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			g := w.call(tt.method, tt.path, "")
			if g.status != tt.status || g.header.Get("Allow") != tt.allow {
				t.Errorf("%d, Allow %q, %s; want %d, %q", g.status, g.header.Get("Allow"), g.body, tt.status, tt.allow)
			}
			if tt.code != "" && g.code() != tt.code {
				t.Errorf("%s; want %s", g.body, tt.code)
			}
		})
	}
}

func TestRegisterOrder(t *testing.T) {
	w := newWorld(t)
	const full = `{"id":"ORD-1","total_minor":1250,"currency":"EUR","amount_policy":"at_least","allow_discount":true,
		"payment_intent":"pi_1","refs":["cs_1"],"items":[{"sku":"ebook","name":"A book","quantity":1,"unit_minor":1250}],
		"customer":{"email":"ada@example.com","name":"Ada"},"metadata":{"cart":"7"}}`
	g := w.call("POST", "/v1/orders", full)
	if g.status != 201 || g.header.Get("Location") != "/v1/orders/ORD-1" {
		t.Fatalf("%d %s, Location %q; want 201", g.status, g.body, g.header.Get("Location"))
	}
	var o store.Order
	if err := json.Unmarshal([]byte(g.body), &o); err != nil {
		t.Fatal(err)
	}
	if o.CreatedAt == 0 || o.UpdatedAt == 0 {
		t.Errorf("created at %s, updated at %s", o.CreatedAt, o.UpdatedAt)
	}
	if o.Tenant != "main" || o.TotalMinor != 1250 || o.Currency != "eur" || o.AmountPolicy != payment.PolicyAtLeast || !o.AllowDiscount ||
		o.PaymentIntent != "pi_1" || !slices.Equal(o.Refs, []string{"cs_1", "pi_1"}) || len(o.Items) != 1 || o.Items[0].SKU != "ebook" ||
		o.Customer.Email != "ada@example.com" || o.Metadata["cart"] != "7" || o.Status != payment.StatusAwaitingPayment {
		t.Errorf("order %+v", o)
	}
	if g := w.call("POST", "/v1/orders", full); g.status != 200 {
		t.Errorf("the same again: %d %s; want 200", g.status, g.body)
	}
	if g := w.call("POST", "/v1/orders", strings.Replace(full, "1250", "1251", 1)); g.status != 409 || g.code() != "order_conflict" {
		t.Errorf("other content: %d %s; want 409 order_conflict", g.status, g.body)
	}
	if g := w.call("PATCH", "/v1/orders/ORD-1", `{"items":[],"customer":{}}`); g.status != 200 || g.field(t, "items") != "[]" ||
		g.field(t, "customer") != "{}" || g.field(t, "total_minor") != "1250" || g.field(t, "allow_discount") != "true" {
		t.Errorf("an edit: %d %s; want what it names changed, and no more", g.status, g.body)
	}
	if g := w.call("POST", "/v1/orders", `{"total_minor":0,"currency":"eur"}`); g.status != 201 || g.field(t, "id") == "" {
		t.Errorf("without an id: %d %s; want 201 and an id", g.status, g.body)
	}
	for _, tt := range []struct {
		name, path, body string
		status           int
		location         string
	}{
		{"another tenant in the URL", "/v1/orders?tenant=acct_B", `{"id":"a b","total_minor":1,"currency":"eur"}`, 201, "/v1/orders/a%20b?tenant=acct_B"},
		{"the same one in the body", "/v1/orders", `{"id":"a b","tenant":"acct_B","total_minor":1,"currency":"eur"}`, 200, ""},
		{"in both", "/v1/orders?tenant=acct_B", `{"id":"a b","tenant":"acct_B","total_minor":1,"currency":"eur"}`, 200, ""},
		{"two that differ", "/v1/orders?tenant=acct_C", `{"id":"a b","tenant":"acct_B","total_minor":1,"currency":"eur"}`, 422, ""},
	} {
		if g := w.call("POST", tt.path, tt.body); g.status != tt.status || g.header.Get("Location") != tt.location {
			t.Errorf("%s: %d %s, Location %q; want %d, %q", tt.name, g.status, g.body, g.header.Get("Location"), tt.status, tt.location)
		}
	}
}

// TestRequestsAreReadStrictly: what is wrong is named by field, all of it.
func TestRequestsAreReadStrictly(t *testing.T) {
	w := newWorld(t)
	w.call("POST", "/v1/orders", `{"id":"ORD-1","total_minor":1250,"currency":"eur"}`)
	const money = `"total_minor":1250,"currency":"eur"`
	type fields map[string]string // each with a part of its words
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		want                     fields
	}{
		{"no body", "POST", "/v1/orders", ``, 400, nil},
		{"no JSON", "POST", "/v1/orders", `total=1250`, 400, nil},
		{"half of it", "POST", "/v1/orders", `{"total_minor":1250`, 400, nil},
		{"something behind it", "POST", "/v1/orders", `{` + money + `} {}`, 400, nil},
		{"a list", "POST", "/v1/orders", `[]`, 400, nil},
		{"null", "POST", "/v1/orders", `null`, 400, nil},
		{"bytes that are no UTF-8", "POST", "/v1/orders", "{\"id\":\"\xff\"," + money + "}", 400, nil},
		{"nothing in it", "POST", "/v1/orders", `{}`, 422, fields{"total_minor": "required", "currency": "required"}},
		{"an unknown field", "POST", "/v1/orders", `{` + money + `,"total":12.5}`, 422, fields{"total": "knows"}},
		{"a field in capitals", "POST", "/v1/orders", `{` + money + `,"Currency":"usd"}`, 422, fields{"Currency": "knows"}},
		{"a field twice", "POST", "/v1/orders", `{` + money + `,"total_minor":1}`, 422, fields{"total_minor": "twice"}},
		{"a field twice, once with an escape", "POST", "/v1/orders", `{` + money + `,"total_mino\u0072":1}`, 422, fields{"total_minor": "twice"}},
		{"an unknown field with a very long name", "POST", "/v1/orders", `{` + money + `,"` + strings.Repeat("x", 300) + `":1}`, 422, fields{strings.Repeat("x", 64) + "…": "knows"}},
		{"an amount with an exponent", "POST", "/v1/orders", `{"total_minor":1e3,"currency":"eur"}`, 422, fields{"total_minor": "whole number"}},
		{"an amount with a fraction", "POST", "/v1/orders", `{"total_minor":12.0,"currency":"eur"}`, 422, fields{"total_minor": "whole number"}},
		{"an amount as a string", "POST", "/v1/orders", `{"total_minor":"12","currency":"eur"}`, 422, fields{"total_minor": "whole number"}},
		{"an amount beyond int64", "POST", "/v1/orders", `{"total_minor":9223372036854775808,"currency":"eur"}`, 422, fields{"total_minor": "whole number"}},
		{"minus nothing", "POST", "/v1/orders", `{"total_minor":-0,"currency":"eur"}`, 422, fields{"total_minor": "whole number"}},
		{"a negative amount", "POST", "/v1/orders", `{"total_minor":-1,"currency":"eur"}`, 422, fields{"total_minor": "negative"}},
		{"null for an amount", "POST", "/v1/orders", `{"total_minor":null,"currency":"eur"}`, 422, fields{"total_minor": "whole number"}},
		{"null for a text", "POST", "/v1/orders", `{` + money + `,"payment_intent":null}`, 422, fields{"payment_intent": "string"}},
		{"a number for a text", "POST", "/v1/orders", `{"total_minor":1250,"currency":978}`, 422, fields{"currency": "string"}},
		{"a text for a truth", "POST", "/v1/orders", `{` + money + `,"allow_discount":"yes"}`, 422, fields{"allow_discount": "true or false"}},
		{"an unknown currency and policy", "POST", "/v1/orders", `{"total_minor":1,"currency":"xyz","amount_policy":"about"}`, 422, fields{"currency": "", "amount_policy": "exact"}},
		{"all kinds at once", "POST", "/v1/orders", `{"id":1,"tenant":2,"total_minor":"3","currency":4,"amount_policy":5,"allow_discount":6,"payment_intent":7,` +
			`"refs":[8,"cs_1"],"items":[{"sku":9,"name":[],"quantity":1.5,"unit_minor":"1","colour":"red"}],"customer":{"email":10,"phone":""},"metadata":{"a":1}}`, 422,
			fields{"id": "string", "tenant": "string", "total_minor": "whole", "currency": "string", "amount_policy": "string", "allow_discount": "true",
				"payment_intent": "string", "refs[0]": "string", "items[0].sku": "string", "items[0].name": "string", "items[0].quantity": "whole",
				"items[0].unit_minor": "whole", "items[0].colour": "knows", "customer.email": "string", "customer.phone": "knows", "metadata": "strings"}},
		{"things that are no lists or objects", "POST", "/v1/orders", `{` + money + `,"refs":"cs_1","items":{},"customer":[],"metadata":"x"}`, 422,
			fields{"refs": "list", "items": "list", "customer": "object", "metadata": "object"}},
		{"an item that is no object", "POST", "/v1/orders", `{` + money + `,"items":["ebook"]}`, 422, fields{"items[0]": "object"}},
		{"a metadata key twice", "POST", "/v1/orders", `{` + money + `,"metadata":{"SECRETKEY":"1","SECRETKEY":"2"}}`, 422, fields{"metadata": "twice"}},
		{"a checkout", "POST", "/v1/orders", `{` + money + `,"checkout":{"success_url":"https://example.com"}}`, 422, fields{"checkout": "STRIPE_API_KEY"}},
		{"an edit of what stays", "PATCH", "/v1/orders/ORD-1", `{"id":"x","tenant":"x","payment_intent":"x","refs":[]}`, 422,
			fields{"id": "changed", "tenant": "changed", "payment_intent": "changed", "refs": "changed"}},
		{"an edit with null", "PATCH", "/v1/orders/ORD-1", `{"customer":null}`, 422, fields{"customer": "object"}},
		{"an edit with a wrong total", "PATCH", "/v1/orders/ORD-1", `{"total_minor":-5}`, 422, fields{"total_minor": "negative"}},
		{"a link without its object", "POST", "/v1/orders/ORD-1/link", `{}`, 422, fields{"object": "required"}},
		{"a link to a number", "POST", "/v1/orders/ORD-1/link", `{"object":1}`, 422, fields{"object": "string"}},
		{"a link without a body", "POST", "/v1/orders/ORD-1/link", ``, 400, nil},
		{"an acceptance of nothing", "POST", "/v1/orders/ORD-1/accept", `{"payment":""}`, 422, fields{"payment": "required"}},
		{"an acceptance with a note", "POST", "/v1/orders/ORD-1/accept", `{"payment":"pi_1","note":"x"}`, 422, fields{"note": "knows"}},
		{"a requeue with a field", "POST", "/v1/events/evt_1/requeue", `{"force":true}`, 422, fields{"force": "knows"}},
		{"a note that is no text", "POST", "/v1/events/evt_1/dismiss", `{"note":7}`, 422, fields{"note": "string"}},
		{"a limit of none", "GET", "/v1/orders?limit=0", ``, 422, fields{"limit": "1 to 200"}},
		{"a limit of too many", "GET", "/v1/events?limit=201", ``, 422, fields{"limit": "1 to 200"}},
		{"a limit that is a word", "GET", "/v1/orders?limit=all", ``, 422, fields{"limit": "1 to 200"}},
		{"a cursor of our own making", "GET", "/v1/orders?cursor=%21%21", ``, 422, fields{"cursor": "list"}},
		{"a status that is none", "GET", "/v1/orders?status=payed&attention=help", ``, 422, fields{"status": "awaiting_payment", "attention": "any"}},
		{"an event status that is none", "GET", "/v1/events?status=dead&verdict=lost", ``, 422, fields{"status": "quarantined", "verdict": "unlinked"}},
		{"a filter that is misspelt", "GET", "/v1/orders?state=paid", ``, 422, fields{"state": "parameter"}},
		{"a filter twice", "GET", "/v1/orders?status=paid&status=expired", ``, 422, fields{"status": "twice"}},
		{"a query that is none", "GET", "/v1/orders?%zz", ``, 400, nil},
		{"a scope where there is none", "GET", "/v1/events?scope=x", ``, 422, fields{"scope": "parameter"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := w.call(tt.method, tt.path, tt.body)
			code := "malformed"
			if tt.status == 422 {
				code = "invalid"
			}
			if g.status != tt.status || g.code() != code {
				t.Fatalf("%d %s; want %d %s", g.status, g.body, tt.status, code)
			}
			have := g.problems(t)
			for field, words := range tt.want {
				if text, ok := have[field]; !ok || !strings.Contains(text, words) {
					t.Errorf("%s: %q; want something with %q", field, text, words)
				}
			}
			if len(have) != len(tt.want) {
				t.Errorf("fields %v; want %v", have, tt.want)
			}
			if strings.Contains(g.body, "SECRETKEY") {
				t.Errorf("the answer says the shop's data: %s", g.body)
			}
		})
	}
	large := fmt.Sprintf("POST /v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", adminToken, maxRequest+1)
	if g := w.rawTo(w.admin, large); g.status != 413 || g.code() != "too_large" {
		t.Errorf("a body over 1 MiB: %d %s; want 413", g.status, g.body)
	}
	if g := w.call("POST", "/v1/orders", `{"total_minor":99999999,"currency":"eur","id":"a\u0000b"}`); g.status != 422 {
		t.Errorf("a NUL in the id: %d %s; want 422", g.status, g.body)
	}
	w.nothingHeld()
}

// work does what the worker does, without its loops.
func (w *world) work() {
	w.t.Helper()
	ctx := context.Background()
	claims, err := w.s.ClaimEvents(ctx, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	var events []store.Decoded
	for _, c := range claims {
		events = append(events, store.Decoded{Claim: c, Event: payment.Decode(c.Body)})
	}
	for i, err := range w.s.ApplyEvents(ctx, events) {
		if err != nil {
			w.t.Fatalf("apply %s: %v", events[i].ID, err)
		}
	}
}

// TestAnOrderFromRegistrationToPaid goes through both listeners.
func TestAnOrderFromRegistrationToPaid(t *testing.T) {
	w := newWorld(t)
	w.call("POST", "/v1/orders", `{"id":"ORD-1","total_minor":1250,"currency":"eur"}`)
	w.stripe("stripe", testEvent("evt_1"))
	w.work()
	g := w.call("GET", "/v1/orders/ORD-1", "")
	if g.status != 200 || g.code() != "paid" || g.field(t, "received_minor") != "1250" {
		t.Fatalf("%d %s; want it paid", g.status, g.body)
	}
	for _, name := range []string{"timeline", "entries", "effects", "facts", "operations", "payments"} {
		if part := g.field(t, name); part == "" || part[0] != '[' {
			t.Errorf("%s is %q", name, part)
		}
	}
	if g := w.call("GET", "/v1/events/evt_1", ""); g.status != 200 || g.code() != "done" || g.field(t, "order") != "ORD-1" ||
		!strings.Contains(g.body, string(testEvent("evt_1"))) {
		t.Errorf("event: %d %s; want it done, with the body as it came", g.status, g.body)
	}
	if g := w.call("PATCH", "/v1/orders/ORD-1", `{"total_minor":1}`); g.status != 409 || g.code() != "order_paid" {
		t.Errorf("an edit of a paid order: %d %s; want 409 order_paid", g.status, g.body)
	}
	if g := w.call("POST", "/v1/orders/ORD-1/accept", `{"payment":"pi_T1"}`); g.status != 409 || g.code() != "nothing_to_accept" {
		t.Errorf("an acceptance of what counts: %d %s; want 409 nothing_to_accept", g.status, g.body)
	}
	if g := w.call("POST", "/v1/events/evt_1/dismiss", `{"note":"x"}`); g.status != 409 || g.code() != "not_dismissible" {
		t.Errorf("a dismissal of a done event: %d %s; want 409 not_dismissible", g.status, g.body)
	}
	wakes := w.wakes.Load()
	if g := w.call("POST", "/v1/events/evt_1/requeue", ""); g.status != 200 || g.code() != "pending" || w.wakes.Load() != wakes+1 {
		t.Errorf("a requeue: %d %s, %d wakes; want it pending and the worker awake", g.status, g.body, w.wakes.Load()-wakes)
	}
	w.work()
	if g := w.call("GET", "/v1/orders/ORD-1", ""); g.field(t, "received_minor") != "1250" {
		t.Errorf("after the requeue %s; want 1250 once", g.body)
	}
	if g := w.call("GET", "/v1/stats", ""); g.status != 200 || g.field(t, "quarantined") != "0" || !strings.Contains(g.body, `"applied":1`) {
		t.Errorf("stats: %d %s", g.status, g.body)
	}
}

func TestAPersonDecides(t *testing.T) {
	w := newWorld(t)
	w.call("POST", "/v1/orders", `{"id":"ORD-1","total_minor":9900,"currency":"eur"}`)
	w.call("POST", "/v1/orders", `{"id":"ORD-2","total_minor":700,"currency":"eur"}`)
	w.stripe("stripe", testEvent("evt_1")) // 1250 for ORD-1
	loose := strings.NewReplacer("evt_1", "evt_2", "pi_T1", "pi_T2", "ch_T1", "ch_T2", "1250", "700", `"order_id":"ORD-1"`, "").Replace(string(testEvent("evt_1")))
	w.stripe("stripe", []byte(loose))
	w.work()
	if g := w.call("GET", "/v1/events?status=quarantined&verdict=amount_mismatch&source=stripe&type=payment_intent.succeeded&order=ORD-1", ""); g.status != 200 || !strings.Contains(g.body, "evt_1") || strings.Contains(g.body, "evt_2") {
		t.Errorf("quarantined: %d %s", g.status, g.body)
	}
	if g := w.call("GET", "/v1/orders?attention=any", ""); !strings.Contains(g.body, `"ORD-1"`) || strings.Contains(g.body, `"ORD-2"`) {
		t.Errorf("attention: %s", g.body)
	}
	if g := w.call("POST", "/v1/orders/ORD-1/accept", `{"payment":"pi_T1"}`); g.status != 200 || g.code() != "paid" {
		t.Errorf("accept: %d %s; want it paid", g.status, g.body)
	}
	if g := w.call("POST", "/v1/orders/ORD-2/link", `{"object":"pi_nobody"}`); g.status != 404 || g.code() != "not_found" {
		t.Errorf("a link to what nobody knows: %d %s", g.status, g.body)
	}
	if g := w.call("POST", "/v1/orders/ORD-2/link", `{"object":"pi_T2"}`); g.status != 200 || g.code() != "paid" {
		t.Errorf("link: %d %s; want it paid", g.status, g.body)
	}
	if g := w.call("GET", "/v1/orders?status=paid&q=ORD-2", ""); !strings.Contains(g.body, `"ORD-2"`) || strings.Contains(g.body, `"ORD-1"`) {
		t.Errorf("search: %s", g.body)
	}
	w.stripe("stripe", []byte("hello"))
	w.work()
	id := hashID([]byte("hello"))
	g := w.call("POST", "/v1/events/"+url.PathEscape(id)+"/dismiss", `{"note":"a test of ours"}`)
	if g.status != 200 || g.field(t, "verdict") != "ignored" || !strings.Contains(g.field(t, "reason"), "a test of ours") {
		t.Errorf("dismiss: %d %s", g.status, g.body)
	}
	if g := w.call("GET", "/v1/events/"+id, ""); g.field(t, "payload_encoding") != "base64" {
		t.Errorf("a body that is no JSON: %s", g.body)
	}
	for _, path := range []string{"/v1/orders/nobody", "/v1/events/nobody"} {
		if g := w.call("GET", path, ""); g.status != 404 || g.code() != "not_found" {
			t.Errorf("%s: %d %s", path, g.status, g.body)
		}
	}
	if g := w.call("GET", "/v1/orders/ORD-1?tenant=acct_B", ""); g.status != 404 {
		t.Errorf("another tenant's order of the same id: %d %s", g.status, g.body)
	}
}

func TestAnEventIDInTwoScopesIsAmbiguous(t *testing.T) {
	w := newWorld(t)
	body := []byte(`{"id":"evt_1","type":"t","livemode":false}`)
	other := []byte(`{"id":"evt_1","type":"t","livemode":false,"account":"acct_B"}`)
	w.stripe("stripe", body)
	w.stripe("connect", other)
	for _, path := range []string{"/v1/events/evt_1", "/v1/events/evt_1/requeue"} {
		method := map[bool]string{true: "POST", false: "GET"}[strings.HasSuffix(path, "requeue")]
		if g := w.call(method, path, ""); g.status != 409 || g.code() != "ambiguous" {
			t.Errorf("%s: %d %s; want 409 ambiguous", path, g.status, g.body)
		}
		if g := w.call(method, path+"?scope=stripe:acct_B:test", ""); g.status != 200 || g.field(t, "scope") != "stripe:acct_B:test" {
			t.Errorf("%s with a scope: %d %s", path, g.status, g.body)
		}
	}
}

func TestListsPage(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.call("POST", "/v1/orders", fmt.Sprintf(`{"id":"ORD-%d","total_minor":1,"currency":"eur"}`, i))
		w.stripe("stripe", testEvent(fmt.Sprintf("evt_%d", i)))
	}
	for _, path := range []string{"/v1/orders", "/v1/events"} {
		var ids []string
		for cursor := ""; ; {
			g := w.call("GET", path+"?limit=2&cursor="+url.QueryEscape(cursor), "")
			if g.status != 200 {
				t.Fatalf("%s: %d %s", path, g.status, g.body)
			}
			var page struct {
				Items      []struct{ ID string }
				NextCursor string `json:"next_cursor"`
			}
			if err := json.Unmarshal([]byte(g.body), &page); err != nil {
				t.Fatal(err)
			}
			for _, it := range page.Items {
				ids = append(ids, it.ID)
			}
			if cursor = page.NextCursor; cursor == "" || len(ids) > 5 {
				break
			}
		}
		if len(ids) != 5 || !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("%s: %v; want five, the newest first", path, ids)
		}
	}
	if g := w.call("GET", "/v1/orders?tenant=acct_B", ""); g.body != `{"items":[]}`+"\n" {
		t.Errorf("an empty list is %s", g.body)
	}
}

// TestWhatTheStoreSays has every code of the store, and what is none of the
// caller's business.
func TestWhatTheStoreSays(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{&store.Problem{Code: store.CodeNotFound, Message: "m"}, 404, "not_found"},
		{&store.Problem{Code: store.CodeInvalid, Message: "m", Fields: []store.FieldProblem{{Field: "f", Problem: "p"}}}, 422, "invalid"},
		{&store.Problem{Code: store.CodeOrderConflict, Message: "m"}, 409, "order_conflict"},
		{&store.Problem{Code: store.CodeOrderPaid, Message: "m"}, 409, "order_paid"},
		{&store.Problem{Code: store.CodeAmbiguous, Message: "m"}, 409, "ambiguous"},
		{&store.Problem{Code: store.CodePayloadGone, Message: "m"}, 409, "payload_gone"},
		{&store.Problem{Code: store.CodeNotDismissible, Message: "m"}, 409, "not_dismissible"},
		{&store.Problem{Code: store.CodeNothingToAccept, Message: "m"}, 409, "nothing_to_accept"},
		{&store.Problem{Code: store.CodeAlreadyFulfilled, Message: "m"}, 409, "already_fulfilled"},
		{&store.Problem{Code: store.CodeNotFulfillable, Message: "m"}, 409, "not_fulfillable"},
		{fmt.Errorf("x: BODYINNER: %w", &store.Problem{Code: store.CodeUnavailable, Message: "m"}), 503, "unavailable"},
		{&store.Problem{Code: "new_code", Message: "BODYINNER"}, 500, "internal"},
		{fmt.Errorf("read: BODYINNER: %w", context.DeadlineExceeded), 503, "unavailable"},
		{errors.New("constraint BODYINNER failed"), 500, "internal"},
		{&store.PanicError{What: "x", Value: "BODYINNER", Stack: []byte("a stack")}, 500, "internal"},
	} {
		t.Run(fmt.Sprint(tt.err), func(t *testing.T) {
			w := newFakeWorld(t, &fakeStore{find: func(context.Context, string, string) (store.OrderDetail, error) {
				return store.OrderDetail{}, tt.err
			}})
			g := w.call("GET", "/v1/orders/ORD-1", "")
			if g.status != tt.status || g.code() != tt.code || strings.Contains(g.body, "INNER") {
				t.Errorf("%d %s; want %d %s", g.status, g.body, tt.status, tt.code)
			}
			if tt.status >= 500 && !strings.Contains(w.log.String(), fmt.Sprintf("status=%d", tt.status)) {
				t.Errorf("log %q; want a line", w.log.String())
			}
			if tt.status < 500 && w.log.String() != "" {
				t.Errorf("log %q; want none", w.log.String())
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	var ready error
	var wait time.Duration
	w := newFakeWorld(t, &fakeStore{ready: func(ctx context.Context) error {
		deadline, _ := ctx.Deadline()
		wait = time.Until(deadline)
		return ready
	}})
	if g := w.do("GET", w.admin+"/readyz", nil, nil); g.status != 200 {
		t.Errorf("%d %s; want 200", g.status, g.body)
	}
	if wait <= 0 || wait > readyWait {
		t.Errorf("the store may take %v; want at most %v", wait, readyWait)
	}
	ready = errors.New("database or disk is full")
	g := w.do("GET", w.admin+"/readyz", nil, nil)
	if g.status != 503 || g.code() != "unavailable" || strings.Contains(g.body, "disk") {
		t.Errorf("%d %s; want 503 unavailable", g.status, g.body)
	}
	if !strings.Contains(w.log.String(), "disk is full") {
		t.Errorf("log %q; want the reason", w.log.String())
	}
}

// TestAFullDiskIs503AndHeals (cases.md B69).
func TestAFullDiskIs503AndHeals(t *testing.T) {
	s, clock := storetest.Open(t, func(o *store.Options) { o.MaxPages = 200 })
	w := &world{t: t, s: s, clock: clock}
	w.start(func(c *Config) { c.Store = s })
	pad := strings.Repeat("x", 20<<10)
	var ok int64
	full := false
	for i := range 60 {
		body := fmt.Appendf(nil, `{"id":"evt_%d","type":"t","livemode":false,"pad":%q}`, i, pad)
		switch g := w.stripe("stripe", body); {
		case g.status == 200 && !full:
			ok++
		case g.status == 503 && g.code() == "unavailable":
			full = true
		case g.status == 200: // a smaller page count may still fit
			ok++
		default:
			t.Fatalf("%d %s", g.status, g.body)
		}
	}
	if !full || ok == 0 {
		t.Fatalf("%d were taken, full: %v; want some and then none", ok, full)
	}
	if n := w.events(); n != ok {
		t.Errorf("%d rows for %d acknowledged events", n, ok)
	}
	if g := w.stripe("stripe", fmt.Appendf(nil, `{"id":"evt_0","type":"t","livemode":false,"pad":%q}`, pad)); g.status != 200 || g.code() != "duplicate" {
		t.Errorf("a duplicate, which needs no room: %d %s", g.status, g.body)
	}
}

func TestServerHasItsLimits(t *testing.T) {
	srv := NewServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if srv.ReadHeaderTimeout != 10*time.Second || srv.ReadTimeout != 30*time.Second || srv.IdleTimeout != 120*time.Second ||
		srv.MaxHeaderBytes != 64<<10 || srv.ErrorLog == nil {
		t.Errorf("server %+v", srv)
	}
	if srv.WriteTimeout < srv.ReadTimeout+2*commitWait+stripeWait {
		t.Errorf("an answer must be written %v after the headers; want time for the slowest body, the store and Stripe", srv.WriteTimeout)
	}
}
