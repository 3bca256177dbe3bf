package stripeapi_test

import (
	"errors"
	"testing"

	"paidonce/store"
	"paidonce/worker/stripeapi"
)

func TestWhatCannotBeCarriedOutIsRefusedBeforeAnythingIsSent(t *testing.T) {
	refund := func(f func(*store.RefundCall)) store.EffectClaim {
		call := refundCall()
		f(&call)
		return claimOf(t, "refund.request:R1", call)
	}
	checkout := func(f func(*store.CheckoutCall)) store.EffectClaim {
		call := checkoutCall()
		f(&call)
		return claimOf(t, "checkout.open:1", call)
	}
	claim := func(c store.EffectClaim, f func(*store.EffectClaim)) store.EffectClaim {
		f(&c)
		return c
	}
	for _, tt := range []struct {
		name  string
		claim store.EffectClaim
		code  string
	}{
		{"an operation of no call", claimOf(t, "order.paid", refundCall()), "unknown_operation"},
		{"an operation that only begins like one", claimOf(t, "refund.requested:R1", refundCall()), "unknown_operation"},
		{"a body that is not JSON", claim(claimOf(t, "refund.request:R1", nil), func(c *store.EffectClaim) { c.Body = []byte("{") }), "invalid_body"},
		{"a body that is empty", claim(claimOf(t, "order.cancel:1", nil), func(c *store.EffectClaim) { c.Body = nil }), "invalid_body"},
		{"no key, under which nobody could try again", claim(claimOf(t, "refund.request:R1", refundCall()), func(c *store.EffectClaim) { c.Key = "" }), "invalid_body"},
		{"no key for a session", claim(claimOf(t, "checkout.open:1", checkoutCall()), func(c *store.EffectClaim) { c.Key = "" }), "invalid_body"},
		{"a key with a line break", claim(claimOf(t, "refund.request:R1", refundCall()), func(c *store.EffectClaim) { c.Key = "po_1\nX: y" }), "invalid_body"},
		{"no base key: any object without metadata would be found", claim(refund(func(c *store.RefundCall) { c.Metadata = nil }), func(c *store.EffectClaim) { c.BaseKey = "" }), "invalid_body"},
		{"a refund that could not be found again", refund(func(c *store.RefundCall) { c.Metadata = map[string]string{"order_id": "ORD-1"} }), "invalid_body"},
		{"a session that could not be found again", checkout(func(c *store.CheckoutCall) { c.Metadata["paidonce_operation"] = "po_other" }), "invalid_body"},
		{"a refund of nothing", refund(func(c *store.RefundCall) { c.PaymentIntent = "" }), "invalid_body"},
		{"a refund without an amount, which would be all there is", refund(func(c *store.RefundCall) { c.AmountMinor = 0 }), "invalid_body"},
		{"a look-up of a refund of nothing, which would list all", lookUp(refund(func(c *store.RefundCall) { c.PaymentIntent = "" })), "invalid_body"},
		{"a look-up of what could not be found", lookUp(checkout(func(c *store.CheckoutCall) { c.Metadata = nil })), "invalid_body"},
		{"a look-up without a time, which would list all", claim(lookUp(claimOf(t, "checkout.open:1", checkoutCall())), func(c *store.EffectClaim) { c.CreatedAt, c.FirstTriedAt = 0, 0 }), "invalid_body"},
		{"a session without a page to return to", checkout(func(c *store.CheckoutCall) { c.SuccessURL = "" }), "invalid_body"},
		{"a session that sells nothing", checkout(func(c *store.CheckoutCall) { c.Lines = nil }), "invalid_body"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStub(t, always(html(502)))
			c, log := newClient(t, s.url)
			a := c.Send(t.Context(), tt.claim)
			if a.Outcome != store.OutcomeRefused || a.Code != tt.code || a.Error == "" || len(s.got()) != 0 {
				t.Errorf("got %+v, and %v went out", a, s.routes())
			}
			checkSecrecy(t, a, log)
		})
	}
}

func TestAnOrderIsNotClosedWithoutAKey(t *testing.T) {
	s := newStub(t, byRoute(map[string][]reply{
		"GET /v1/checkout/sessions/cs_1": ok(sessionBody("cs_1", "open", "unpaid")), "POST /v1/checkout/sessions/cs_1/expire": ok(sessionBody("cs_1", "expired", "unpaid")),
	}))
	c, _ := newClient(t, s.url)
	claim := withSessions(claimOf(t, "order.cancel:1", store.CancelCall{}), "cs_1")
	claim.Key = ""
	if a := c.Send(t.Context(), claim); a.Outcome != store.OutcomeRefused || len(s.got()) != 1 {
		t.Errorf("got %s after %v", a.Outcome, s.routes())
	}
}

func TestAnObjectIsReadAsItIsNow(t *testing.T) {
	s := newStub(t, byRoute(map[string][]reply{
		"GET /v1/checkout/sessions/cs_1": ok(sessionBody("cs_1", "complete", "paid", "pi_1")), "GET /v1/payment_intents/pi_1": ok(intentBody("pi_1", "succeeded")),
		"GET /v1/refunds/re_1": ok(refundBody("re_1", "pending")), "GET /v1/disputes/du_1": ok(`{"id":"du_1","object":"dispute","status":"lost"}`),
	}))
	c, _ := newClient(t, s.url)
	session, err := c.RetrieveSession(t.Context(), "acct_1", "cs_1")
	if err != nil || session.PaymentIntent.ID != "pi_1" || string(session.LastResponse.RawJSON) != sessionBody("cs_1", "complete", "paid", "pi_1") {
		t.Errorf("got %v, %v", session, err)
	}
	if pi, err := c.RetrievePaymentIntent(t.Context(), "acct_1", "pi_1"); err != nil || pi.Status != "succeeded" {
		t.Errorf("got %v, %v", pi, err)
	}
	if r, err := c.RetrieveRefund(t.Context(), "acct_1", "re_1"); err != nil || r.Status != "pending" {
		t.Errorf("got %v, %v", r, err)
	}
	if d, err := c.RetrieveDispute(t.Context(), "acct_1", "du_1"); err != nil || d.Status != "lost" {
		t.Errorf("got %v, %v", d, err)
	}
	for _, g := range s.got() {
		if g.header.Get("Stripe-Account") != "acct_1" || g.header.Get("Idempotency-Key") != "" {
			t.Errorf("%s has account %q, key %q", g.route(), g.header.Get("Stripe-Account"), g.header.Get("Idempotency-Key"))
		}
	}
}

func TestAnObjectThatCannotBeReadIsAnErrorOfWords(t *testing.T) {
	s := newStub(t, byRoute(nil))
	c, log := newClient(t, s.url)
	read := map[string]func() error{
		"session": func() error { _, err := c.RetrieveSession(t.Context(), "", "cs_1"); return err },
		"intent":  func() error { _, err := c.RetrievePaymentIntent(t.Context(), "", "pi_1"); return err },
		"refund":  func() error { _, err := c.RetrieveRefund(t.Context(), "", "re_1"); return err },
		"dispute": func() error { _, err := c.RetrieveDispute(t.Context(), "", "du_1"); return err },
	}
	for what, f := range read {
		var e *stripeapi.Error
		if err := f(); !errors.As(err, &e) || e.Status != 404 || e.Code != "resource_missing" || e.Outcome != store.OutcomeRefused {
			t.Errorf("%s: got %v", what, err)
		} else {
			checkSecrecy(t, store.Answer{Error: err.Error()}, log)
		}
	}
}
