package stripeapi_test

import (
	"slices"
	"strings"
	"testing"

	"paidonce/store"
)

func TestAnOrderIsClosedOnlyAfterEverythingWasAskedAbout(t *testing.T) {
	session := func(id string) string { return "GET /v1/checkout/sessions/" + id }
	expire := func(id string) string { return "POST /v1/checkout/sessions/" + id + "/expire" }
	intent := func(id string) string { return "GET /v1/payment_intents/" + id }
	cancel := func(id string) string { return "POST /v1/payment_intents/" + id + "/cancel" }
	open, expired := ok(sessionBody("cs_1", "open", "unpaid")), ok(sessionBody("cs_1", "expired", "unpaid"))
	refusal := []reply{stripeError(400, "invalid_request_error", "payment_intent_unexpected_state")}
	for _, tt := range []struct {
		name     string
		sessions []string
		intents  []string
		routes   map[string][]reply
		want     store.Outcome
		code     string
		asked    []string
		body     string
	}{
		{name: "nothing is there", want: store.OutcomeDone, body: `{"object":"order.cancel"}`},
		{name: "an open session and an intent that waits are ended", sessions: []string{"cs_1"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): open, intent("pi_1"): ok(intentBody("pi_1", "requires_payment_method")), expire("cs_1"): expired, cancel("pi_1"): ok(intentBody("pi_1", "canceled"))},
			want:   store.OutcomeDone, asked: []string{session("cs_1"), intent("pi_1"), expire("cs_1"), cancel("pi_1")}, body: `{"object":"order.cancel","expired":1,"canceled":1}`},
		{name: "what has ended is left alone", sessions: []string{"cs_1"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): expired, intent("pi_1"): ok(intentBody("pi_1", "canceled"))},
			want:   store.OutcomeDone, asked: []string{session("cs_1"), intent("pi_1")}},
		{name: "an intent that asks for its buyer is canceled", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_action")), cancel("pi_1"): ok(intentBody("pi_1", "canceled"))}, want: store.OutcomeDone},
		{name: "an intent to be confirmed is canceled", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_confirmation")), cancel("pi_1"): ok(intentBody("pi_1", "canceled"))}, want: store.OutcomeDone},
		{name: "a hold is let go", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_capture")), cancel("pi_1"): ok(intentBody("pi_1", "canceled"))}, want: store.OutcomeDone},
		{name: "a hold that only its session knows of is let go", sessions: []string{"cs_1"},
			routes: map[string][]reply{session("cs_1"): ok(sessionBody("cs_1", "complete", "unpaid", "pi_1")), intent("pi_1"): ok(intentBody("pi_1", "requires_capture")), cancel("pi_1"): ok(intentBody("pi_1", "canceled"))},
			want:   store.OutcomeDone, asked: []string{session("cs_1"), intent("pi_1"), cancel("pi_1")}},
		{name: "what is named twice is asked about once", sessions: []string{"cs_1", "cs_1"}, intents: []string{"pi_1", "pi_1"},
			routes: map[string][]reply{session("cs_1"): ok(sessionBody("cs_1", "complete", "unpaid", "pi_1")), intent("pi_1"): ok(intentBody("pi_1", "canceled"))},
			want:   store.OutcomeDone, asked: []string{session("cs_1"), intent("pi_1")}},

		{name: "an intent was paid: the open session stays", sessions: []string{"cs_1"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): open, intent("pi_1"): ok(intentBody("pi_1", "succeeded"))},
			want:   store.OutcomeRefused, code: "order_paid", asked: []string{session("cs_1"), intent("pi_1")}},
		{name: "the last of them was paid: the first stays", sessions: []string{"cs_1", "cs_2"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): open, session("cs_2"): ok(sessionBody("cs_2", "complete", "paid", "pi_2")), intent("pi_1"): ok(intentBody("pi_1", "requires_payment_method"))},
			want:   store.OutcomeRefused, code: "order_paid", asked: []string{session("cs_1"), session("cs_2"), intent("pi_1")}},
		{name: "a free session is complete", sessions: []string{"cs_1"}, routes: map[string][]reply{session("cs_1"): ok(sessionBody("cs_1", "complete", "no_payment_required"))}, want: store.OutcomeRefused, code: "order_paid"},
		{name: "a bank is at work: the open session stays", sessions: []string{"cs_1"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): open, intent("pi_1"): ok(intentBody("pi_1", "processing"))},
			want:   store.OutcomeRefused, code: "payment_under_way", asked: []string{session("cs_1"), intent("pi_1")}},
		{name: "a bank is at work behind a session", sessions: []string{"cs_1"},
			routes: map[string][]reply{session("cs_1"): ok(sessionBody("cs_1", "complete", "unpaid", "pi_1")), intent("pi_1"): ok(intentBody("pi_1", "processing"))},
			want:   store.OutcomeRefused, code: "payment_under_way"},
		{name: "a session is complete and nothing more is known", sessions: []string{"cs_1"}, routes: map[string][]reply{session("cs_1"): ok(sessionBody("cs_1", "complete", "unpaid"))}, want: store.OutcomeRefused, code: "payment_under_way"},
		{name: "one was paid and one is under way: it is paid", intents: []string{"pi_1", "pi_2", "pi_3"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "processing")), intent("pi_2"): ok(intentBody("pi_2", "succeeded")), intent("pi_3"): ok(intentBody("pi_3", "processing"))},
			want:   store.OutcomeRefused, code: "order_paid"},

		{name: "the intent ends with its session", sessions: []string{"cs_1"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): ok(sessionBody("cs_1", "open", "unpaid", "pi_1")), expire("cs_1"): expired, cancel("pi_1"): refusal,
				intent("pi_1"): {{body: intentBody("pi_1", "requires_payment_method")}, {body: intentBody("pi_1", "canceled")}}},
			want: store.OutcomeDone, asked: []string{session("cs_1"), intent("pi_1"), expire("cs_1"), cancel("pi_1"), intent("pi_1")}},
		{name: "the intent is paid between the look and the end", intents: []string{"pi_1"},
			routes: map[string][]reply{cancel("pi_1"): refusal, intent("pi_1"): {{body: intentBody("pi_1", "requires_payment_method")}, {body: intentBody("pi_1", "succeeded")}}},
			want:   store.OutcomeRefused, code: "order_paid"},
		{name: "the intent begins to be paid between the look and the end", intents: []string{"pi_1"},
			routes: map[string][]reply{cancel("pi_1"): refusal, intent("pi_1"): {{body: intentBody("pi_1", "requires_payment_method")}, {body: intentBody("pi_1", "processing")}}},
			want:   store.OutcomeRefused, code: "payment_under_way"},
		{name: "the session is paid between the look and the end", sessions: []string{"cs_1"},
			routes: map[string][]reply{session("cs_1"): {{body: sessionBody("cs_1", "open", "unpaid")}, {body: sessionBody("cs_1", "complete", "paid", "pi_1")}}, expire("cs_1"): {stripeError(400, "invalid_request_error", "")}},
			want:   store.OutcomeRefused, code: "order_paid"},
		{name: "the intent is a session's that nobody told of, and ends with it", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_payment_method")), cancel("pi_1"): refusal,
				"GET /v1/checkout/sessions": ok(listBody(false, sessionBody("cs_1", "open", "unpaid", "pi_1"))), expire("cs_1"): expired},
			want: store.OutcomeDone, asked: []string{intent("pi_1"), cancel("pi_1"), intent("pi_1"), "GET /v1/checkout/sessions", expire("cs_1")}},
		{name: "the intent is one of a session that has expired", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_payment_method")), cancel("pi_1"): refusal, "GET /v1/checkout/sessions": ok(listBody(false, sessionBody("cs_1", "expired", "unpaid", "pi_1")))},
			want:   store.OutcomeDone},
		{name: "the intent is a voucher that can be paid after its session", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_action")), cancel("pi_1"): refusal, "GET /v1/checkout/sessions": ok(listBody(false, sessionBody("cs_1", "complete", "unpaid", "pi_1")))},
			want:   store.OutcomeRefused, code: "payment_intent_unexpected_state"},
		{name: "the intent cannot be canceled, and nobody knows why", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_payment_method")), cancel("pi_1"): refusal, "GET /v1/checkout/sessions": ok(listBody(false))},
			want:   store.OutcomeRefused, code: "payment_intent_unexpected_state"},

		{name: "one cannot be read: nothing is changed", sessions: []string{"cs_1"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): open, intent("pi_1"): {html(502)}}, want: store.OutcomeAgain, asked: []string{session("cs_1"), intent("pi_1")}},
		{name: "one does not exist: nothing is changed", sessions: []string{"cs_1"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): open}, want: store.OutcomeRefused, code: "resource_missing", asked: []string{session("cs_1"), intent("pi_1")}},
		{name: "one is in a state of a later time: nothing is changed", sessions: []string{"cs_1"}, intents: []string{"pi_1"},
			routes: map[string][]reply{session("cs_1"): open, intent("pi_1"): ok(intentBody("pi_1", "requires_moonlight"))}, want: store.OutcomeAgain, asked: []string{session("cs_1"), intent("pi_1")}},
		{name: "a session is in a state of a later time", sessions: []string{"cs_1"}, routes: map[string][]reply{session("cs_1"): ok(sessionBody("cs_1", "paused", "unpaid"))}, want: store.OutcomeAgain},
		{name: "a 500 of Stripe's is tried again: a second time harms nobody", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_capture")), cancel("pi_1"): {stripeError(500, "api_error", "")}}, want: store.OutcomeAgain, code: "api_error"},
		{name: "a 200 that says it was not canceled", intents: []string{"pi_1"},
			routes: map[string][]reply{intent("pi_1"): ok(intentBody("pi_1", "requires_capture")), cancel("pi_1"): ok(intentBody("pi_1", "requires_capture"))}, want: store.OutcomeAgain},
		{name: "an id would lead elsewhere", sessions: []string{"../refunds"}, want: store.OutcomeRefused, code: "invalid_body"},
		{name: "an id is empty, and would list all", intents: []string{""}, want: store.OutcomeRefused, code: "invalid_body"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, again := range []bool{false, true} { // its own look-up
				s := newStub(t, byRoute(tt.routes))
				c, log := newClient(t, s.url)
				claim := withSessions(claimOf(t, "order.cancel:1", store.CancelCall{Account: "acct_1", PaymentIntents: tt.intents}), tt.sessions...)
				if again {
					claim = lookUp(claim)
				}
				a := c.Send(t.Context(), claim)
				if a.Outcome != tt.want || a.Code != tt.code {
					t.Errorf("got %s %q, want %s %q: %s", a.Outcome, a.Code, tt.want, tt.code, a.Error)
				}
				if (a.Error == "") != (tt.want == store.OutcomeDone) {
					t.Errorf("the error is %q", a.Error)
				}
				if tt.asked != nil && !slices.Equal(s.routes(), tt.asked) {
					t.Errorf("the calls were %v, want %v", s.routes(), tt.asked)
				}
				if tt.body != "" && string(a.Body) != tt.body {
					t.Errorf("the body is %s, want %s", a.Body, tt.body)
				}
				for _, g := range s.got() {
					object := strings.Split(g.path, "/")
					want := ""
					if g.method == "POST" {
						want = opKey + ":" + object[len(object)-2]
						if again {
							want += ":2"
						}
					}
					if g.header.Get("Idempotency-Key") != want || g.header.Get("Stripe-Account") != "acct_1" {
						t.Errorf("%s has key %q, want %q, account %q", g.route(), g.header.Get("Idempotency-Key"), want, g.header.Get("Stripe-Account"))
					}
				}
				checkSecrecy(t, a, log)
			}
		})
	}
}
