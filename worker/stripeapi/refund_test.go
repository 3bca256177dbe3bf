package stripeapi_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"paidonce/store"
)

func TestARefundIsAskedForAsItsBodySays(t *testing.T) {
	both := refundCall()
	both.Charge = "ch_1"
	ofCharge := refundCall()
	ofCharge.PaymentIntent, ofCharge.Charge, ofCharge.Reason = "", "py_1", ""
	connected := refundCall()
	connected.Account = "acct_1"
	const common = "amount=500&metadata[order_id]=ORD-1&metadata[paidonce_operation]=" + opKey
	for _, tt := range []struct {
		name, form, account string
		call                store.RefundCall
	}{
		{"of a payment intent", common + "&payment_intent=pi_1&reason=requested_by_customer", "", refundCall()},
		{"of a charge, where there is no payment intent", common + "&charge=py_1", "", ofCharge},
		{"of a payment intent, where both are known: Stripe takes one", common + "&payment_intent=pi_1&reason=requested_by_customer", "", both},
		{"of a connected account's payment", common + "&payment_intent=pi_1&reason=requested_by_customer", "acct_1", connected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStub(t, always(reply{body: refundBody("re_1", "succeeded")}))
			c, log := newClient(t, s.url)
			claim := claimOf(t, "refund.request:R1", tt.call)
			claim.Key = opKey + "_2" // a later generation is a new key under the same name
			a := c.Send(t.Context(), claim)
			want := store.Answer{
				Outcome: store.OutcomeDone, Status: 200, Ref: "re_1", RequestID: "req_1",
				Body: []byte(`{"object":"refund","id":"re_1","status":"succeeded","amount":500,"currency":"eur"}`),
			}
			if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", want) {
				t.Errorf("got %+v, want %+v", a, want)
			}
			g := s.got()[0]
			wantForm, err := url.ParseQuery(tt.form)
			if err != nil {
				t.Fatal(err)
			}
			if g.route() != "POST /v1/refunds" || !maps.EqualFunc(g.form, wantForm, slices.Equal) {
				t.Errorf("got %s %v, want %v", g.route(), g.form, wantForm)
			}
			if g.header.Get("Idempotency-Key") != opKey+"_2" || g.header.Get("Stripe-Account") != tt.account {
				t.Errorf("got key %q for account %q", g.header.Get("Idempotency-Key"), g.header.Get("Stripe-Account"))
			}
			checkSecrecy(t, a, log)
		})
	}
}

func TestEveryAttemptIsTheSameRequest(t *testing.T) {
	for name, claim := range map[string]store.EffectClaim{
		"refund":  claimOf(t, "refund.request:R1", refundCall()),
		"session": claimOf(t, "checkout.open:1", checkoutCall()),
	} {
		s := newStub(t, always(html(502)))
		c, _ := newClient(t, s.url)
		for attempt := range int64(3) {
			claim.Attempt, claim.FirstTriedAt = attempt+1, store.At(now)
			c.Send(t.Context(), claim)
		}
		first := s.got()[0]
		for _, g := range s.got()[1:] {
			if g.route() != first.route() || !maps.EqualFunc(g.form, first.form, slices.Equal) || g.header.Get("Idempotency-Key") != first.header.Get("Idempotency-Key") {
				t.Errorf("%s: got %v, first %v", name, g, first)
			}
		}
	}
}

func TestARefundThatExistsIsDoneWhateverItsStatus(t *testing.T) {
	for _, tt := range []struct{ status, code string }{
		{"succeeded", ""}, {"pending", ""}, {"requires_action", ""}, {"failed", "failed"}, {"canceled", "canceled"},
	} {
		t.Run(tt.status, func(t *testing.T) {
			made := newStub(t, always(with(reply{body: refundBody("re_1", tt.status)}, "Idempotent-Replayed", "true")))
			found := newStub(t, always(reply{body: listBody(false, refundBody("re_1", tt.status))}))
			for s, claim := range map[*stub]store.EffectClaim{
				made: claimOf(t, "refund.request:R1", refundCall()), found: lookUp(claimOf(t, "refund.request:R1", refundCall())),
			} {
				c, log := newClient(t, s.url)
				a := c.Send(t.Context(), claim)
				if a.Outcome != store.OutcomeDone || a.Code != tt.code || a.Ref != "re_1" || a.Error != "" {
					t.Errorf("got %+v", a)
				}
				if replayed := strings.Contains(string(a.Body), `"replayed":true`); replayed != (s == made) {
					t.Errorf("the body says %s", a.Body)
				}
				checkSecrecy(t, a, log)
			}
		})
	}
}

func otherRefund(id string) string {
	return strings.Replace(refundBody(id, "succeeded"), opKey, "po_other", 1)
}

func TestALookUpFindsARefundByItsMetadata(t *testing.T) {
	ofCharge := refundCall()
	ofCharge.PaymentIntent, ofCharge.Charge, ofCharge.Account = "", "ch_1", "acct_1"
	bare := `{"id":"re_9","object":"refund","status":"succeeded","metadata":{}}`
	for _, tt := range []struct {
		name    string
		call    store.RefundCall
		pages   []reply
		want    store.Outcome
		ref     string
		queries []string
	}{
		{"among others", refundCall(), ok(listBody(false, bare, otherRefund("re_2"), refundBody("re_1", "succeeded"))), store.OutcomeDone, "re_1",
			[]string{"limit=100&payment_intent=pi_1"}},
		{"of a charge", ofCharge, ok(listBody(false, refundBody("re_1", "pending"))), store.OutcomeDone, "re_1", []string{"charge=ch_1&limit=100"}},
		{"on the second page", refundCall(), []reply{{body: listBody(true, otherRefund("re_3"), otherRefund("re_2"))}, {body: listBody(false, refundBody("re_1", "succeeded"))}},
			store.OutcomeDone, "re_1", []string{"limit=100&payment_intent=pi_1", "limit=100&payment_intent=pi_1&starting_after=re_2"}},
		{"the one that gives the money, beside one that failed", refundCall(), ok(listBody(false, refundBody("re_2", "failed"), refundBody("re_1", "succeeded"))), store.OutcomeDone, "re_1", nil},
		{"nothing but others", refundCall(), ok(listBody(false, bare, otherRefund("re_2"))), store.OutcomeAbsent, "", nil},
		{"an empty list", refundCall(), ok(listBody(false)), store.OutcomeAbsent, "", nil},
		{"an end of the list that cannot be read", refundCall(), []reply{{body: listBody(true, otherRefund("re_2"))}, html(502)}, store.OutcomeAgain, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStub(t, byRoute(map[string][]reply{"GET /v1/refunds": tt.pages}))
			c, log := newClient(t, s.url)
			claim := lookUp(claimOf(t, "refund.request:R1", tt.call))
			claim.Key = opKey + "_3"
			a := c.Send(t.Context(), claim)
			if a.Outcome != tt.want || a.Ref != tt.ref {
				t.Errorf("got %s %q: %s", a.Outcome, a.Ref, a.Error)
			}
			for i, g := range s.got() {
				if g.method != "GET" || g.header.Get("Idempotency-Key") != "" || g.header.Get("Stripe-Account") != tt.call.Account {
					t.Errorf("got %s, key %q, account %q", g.route(), g.header.Get("Idempotency-Key"), g.header.Get("Stripe-Account"))
				}
				if tt.queries != nil && g.form.Encode() != tt.queries[i] {
					t.Errorf("page %d was asked for by %s, want %s", i+1, g.form.Encode(), tt.queries[i])
				}
			}
			if tt.queries != nil && len(s.got()) != len(tt.queries) {
				t.Errorf("%d pages were read", len(s.got()))
			}
			checkSecrecy(t, a, log)
		})
	}
}

func TestALookUpThatDoesNotEndIsGivenUp(t *testing.T) {
	s := newStub(t, func(n int, _ got) reply { return reply{body: listBody(true, otherRefund(fmt.Sprint("re_", n)))} })
	c, _ := newClient(t, s.url)
	a := c.Send(t.Context(), lookUp(claimOf(t, "refund.request:R1", refundCall())))
	if a.Outcome != store.OutcomeAgain || len(s.got()) != 200 || !strings.Contains(a.Error, "too many") {
		t.Errorf("got %s after %d pages: %s", a.Outcome, len(s.got()), a.Error)
	}
}
