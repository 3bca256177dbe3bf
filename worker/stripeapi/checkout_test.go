package stripeapi_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/store"
)

const createSession = "POST /v1/checkout/sessions"

func TestASessionIsOpenedAsItsBodySays(t *testing.T) {
	bare := store.CheckoutCall{
		SuccessURL: "https://shop.example/ok", Currency: "JPY", Lines: []store.CheckoutLine{{Name: "Order X", UnitMinor: 0, Quantity: 1}},
		Metadata: metadata(), Account: "acct_1",
	}
	carried := "&metadata[order_id]=ORD-1&metadata[paidonce_operation]=" + opKey +
		"&payment_intent_data[metadata][order_id]=ORD-1&payment_intent_data[metadata][paidonce_operation]=" + opKey
	for _, tt := range []struct {
		name, form string
		call       store.CheckoutCall
	}{
		{"with everything", "mode=payment&success_url=https://shop.example/thanks?s={CHECKOUT_SESSION_ID}&cancel_url=https://shop.example/cart" +
			"&customer_email=buyer@example.com&client_reference_id=ORD-1" + carried +
			"&line_items[0][price_data][currency]=eur&line_items[0][price_data][unit_amount]=1000&line_items[0][price_data][product_data][name]=E-book&line_items[0][quantity]=1" +
			"&line_items[1][price_data][currency]=eur&line_items[1][price_data][unit_amount]=125&line_items[1][price_data][product_data][name]=Tea+%26+%C3%9C&line_items[1][quantity]=2", checkoutCall()},
		{"with what must be there", "mode=payment&success_url=https://shop.example/ok" + carried +
			"&line_items[0][price_data][currency]=jpy&line_items[0][price_data][unit_amount]=0&line_items[0][price_data][product_data][name]=Order+X&line_items[0][quantity]=1", bare},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStub(t, always(reply{body: ownSession("cs_1", "open")}))
			c, log := newClient(t, s.url)
			claim := claimOf(t, "checkout.open:1", tt.call)
			claim.Key = opKey + "_2"
			a := c.Send(t.Context(), claim)
			if a.Outcome != store.OutcomeDone || a.Ref != "cs_1" || a.Status != 200 || a.Code != "" {
				t.Errorf("got %+v", a)
			}
			if want := `{"session":"cs_1","url":"https://checkout.stripe.com/c/pay/cs_1#MARKfragment","expires_at":"2026-12-02T12:00:00.000Z"}`; string(a.Result) != want {
				t.Errorf("the result is %s, want %s", a.Result, want)
			}
			g := s.got()[0]
			want, err := url.ParseQuery(tt.form)
			if err != nil {
				t.Fatal(err)
			}
			if g.route() != createSession || !maps.EqualFunc(g.form, want, slices.Equal) {
				t.Errorf("got %s\n%v, want\n%v", g.route(), g.form, want)
			}
			if g.header.Get("Idempotency-Key") != opKey+"_2" || g.header.Get("Stripe-Account") != tt.call.Account {
				t.Errorf("got key %q, account %q", g.header.Get("Idempotency-Key"), g.header.Get("Stripe-Account"))
			}
			checkSecrecy(t, a, log)
		})
	}
}

// sessions in every state that can stand in the way of the next one. Those of
// a bank, a voucher and a hold are complete and unpaid.
var inTheWay = []struct {
	name   string
	routes map[string][]reply
	code   string // of the refusal; "" is none
	again  bool
	asked  []string
}{
	{name: "is open, and is expired",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "open", "unpaid")), "POST /v1/checkout/sessions/cs_0/expire": ok(sessionBody("cs_0", "expired", "unpaid"))},
		asked:  []string{"GET /v1/checkout/sessions/cs_0", "POST /v1/checkout/sessions/cs_0/expire"}},
	{name: "has expired", routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "expired", "unpaid"))},
		asked: []string{"GET /v1/checkout/sessions/cs_0"}},
	{name: "was paid", routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "paid", "pi_0"))}, code: "order_paid",
		asked: []string{"GET /v1/checkout/sessions/cs_0"}},
	{name: "was free", routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "no_payment_required"))}, code: "order_paid"},
	{name: "is complete, and its bank is at work",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "unpaid", "pi_0")), "GET /v1/payment_intents/pi_0": ok(intentBody("pi_0", "processing"))}, code: "payment_under_way"},
	{name: "is complete, and its bank has paid",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "unpaid", "pi_0")), "GET /v1/payment_intents/pi_0": ok(intentBody("pi_0", "succeeded"))}, code: "order_paid"},
	{name: "is complete, and its bank has refused",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "unpaid", "pi_0")), "GET /v1/payment_intents/pi_0": ok(intentBody("pi_0", "requires_payment_method"))}},
	{name: "is complete, and its voucher can be paid",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "unpaid", "pi_0")), "GET /v1/payment_intents/pi_0": ok(intentBody("pi_0", "requires_action"))}, code: "payment_under_way"},
	{name: "is complete, and holds the money",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "unpaid", "pi_0")), "GET /v1/payment_intents/pi_0": ok(intentBody("pi_0", "requires_capture"))}, code: "payment_under_way"},
	{name: "is complete, and nothing more is known", routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "unpaid"))}, code: "payment_under_way"},
	{name: "is in a state of a later time", routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "paused", "unpaid"))}, again: true},
	{name: "is paid in a way of a later time", routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "complete", "half_paid"))}, again: true},
	{name: "is paid between the look and the expiry",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": {{body: sessionBody("cs_0", "open", "unpaid")}, {body: sessionBody("cs_0", "complete", "paid", "pi_0")}},
			"POST /v1/checkout/sessions/cs_0/expire": {stripeError(400, "invalid_request_error", "")}}, code: "order_paid"},
	{name: "runs out between the look and the expiry",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": {{body: sessionBody("cs_0", "open", "unpaid")}, {body: sessionBody("cs_0", "expired", "unpaid")}},
			"POST /v1/checkout/sessions/cs_0/expire": {stripeError(400, "invalid_request_error", "")}}},
	{name: "has been paid and is not complete yet",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "open", "unpaid", "pi_0")), "GET /v1/payment_intents/pi_0": ok(intentBody("pi_0", "succeeded")),
			"POST /v1/checkout/sessions/cs_0/expire": {stripeError(400, "invalid_request_error", "")}}, code: "order_paid"},
	{name: "is being paid and is not complete yet",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "open", "unpaid", "pi_0")), "GET /v1/payment_intents/pi_0": ok(intentBody("pi_0", "processing")),
			"POST /v1/checkout/sessions/cs_0/expire": {stripeError(400, "invalid_request_error", "")}}, code: "payment_under_way"},
	{name: "cannot be expired at the moment",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "open", "unpaid")), "POST /v1/checkout/sessions/cs_0/expire": {stripeError(400, "invalid_request_error", "")}}, again: true},
	{name: "cannot be expired since Stripe fails: what is repeated harms nobody",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "open", "unpaid")), "POST /v1/checkout/sessions/cs_0/expire": {stripeError(500, "api_error", "")}}, again: true},
	{name: "is not expired by a 200 that says it is open",
		routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "open", "unpaid")), "POST /v1/checkout/sessions/cs_0/expire": ok(sessionBody("cs_0", "open", "unpaid"))}, again: true},
	{name: "cannot be read", routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": {html(502)}}, again: true},
	{name: "is answered as another one", routes: map[string][]reply{"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_9", "expired", "unpaid"))}, again: true},
	{name: "does not exist", routes: map[string][]reply{}, code: "resource_missing"},
}

func TestANewSessionOpensOnlyWhenTheOldOnesAreOver(t *testing.T) {
	for _, tt := range inTheWay {
		t.Run("the old one "+tt.name, func(t *testing.T) {
			routes := maps.Clone(tt.routes)
			routes[createSession] = ok(ownSession("cs_1", "open"))
			s := newStub(t, byRoute(routes))
			c, log := newClient(t, s.url)
			a := c.Send(t.Context(), withSessions(claimOf(t, "checkout.open:2", checkoutCall()), "cs_0"))
			want := store.OutcomeDone
			switch {
			case tt.code != "":
				want = store.OutcomeRefused
			case tt.again:
				want = store.OutcomeAgain
			}
			if a.Outcome != want || want == store.OutcomeRefused && a.Code != tt.code {
				t.Errorf("got %s %q, want %s %q: %s", a.Outcome, a.Code, want, tt.code, a.Error)
			}
			asked := s.routes()
			if opened := asked[len(asked)-1] == createSession; opened != (want == store.OutcomeDone) {
				t.Errorf("the calls were %v", asked)
			}
			if tt.asked != nil && !slices.Equal(asked[:len(tt.asked)], tt.asked) {
				t.Errorf("the calls were %v, want %v", asked, tt.asked)
			}
			checkSecrecy(t, a, log)
		})
	}
}

func TestExpiringASessionSaysTheSame(t *testing.T) {
	for _, tt := range inTheWay {
		t.Run("one that "+tt.name, func(t *testing.T) {
			s := newStub(t, byRoute(tt.routes))
			c, log := newClient(t, s.url)
			a := c.ExpireCheckout(t.Context(), claimOf(t, "checkout.open:2", nil), "acct_1", "cs_0")
			want := store.OutcomeDone
			switch {
			case tt.code != "":
				want = store.OutcomeRefused
			case tt.again:
				want = store.OutcomeAgain
			}
			if a.Outcome != want || want == store.OutcomeRefused && a.Code != tt.code || want == store.OutcomeDone && a.Ref != "cs_0" {
				t.Errorf("got %+v, want %s %q", a, want, tt.code)
			}
			for _, g := range s.got() {
				if g.header.Get("Stripe-Account") != "acct_1" {
					t.Errorf("%s went to account %q", g.route(), g.header.Get("Stripe-Account"))
				}
			}
			checkSecrecy(t, a, log)
		})
	}
}

// An expiry that failed must not be answered from Stripe's memory when it is
// tried again: so each attempt has a key of its own.
func TestEachAttemptExpiresUnderAKeyOfItsOwn(t *testing.T) {
	s := newStub(t, byRoute(map[string][]reply{
		"GET /v1/checkout/sessions/cs_0": ok(sessionBody("cs_0", "open", "unpaid")), "POST /v1/checkout/sessions/cs_0/expire": {html(502)},
		"GET /v1/checkout/sessions/cs_9": ok(sessionBody("cs_9", "open", "unpaid")), "POST /v1/checkout/sessions/cs_9/expire": {html(502)},
	}))
	c, _ := newClient(t, s.url)
	for attempt := range int64(3) {
		for _, id := range []string{"cs_0", "cs_9"} {
			claim := withSessions(claimOf(t, "checkout.open:2", checkoutCall()), id)
			claim.Attempt = attempt + 1
			c.Send(t.Context(), claim)
		}
	}
	var keys []string
	for _, g := range s.got() {
		if g.method == "POST" {
			keys = append(keys, strings.TrimPrefix(g.header.Get("Idempotency-Key"), opKey))
		}
	}
	if want := []string{":cs_0", ":cs_9", ":cs_0:2", ":cs_9:2", ":cs_0:3", ":cs_9:3"}; !slices.Equal(keys, want) {
		t.Errorf("the keys were %v, want %v", keys, want)
	}
}

func TestTheSessionThatThisEffectHasOpenedIsNotExpired(t *testing.T) {
	s := newStub(t, byRoute(map[string][]reply{
		"GET /v1/checkout/sessions/cs_1": ok(ownSession("cs_1", "open")), createSession: ok(ownSession("cs_1", "open")),
	}))
	c, _ := newClient(t, s.url)
	a := c.Send(t.Context(), withSessions(claimOf(t, "checkout.open:1", checkoutCall()), "cs_1"))
	if a.Outcome != store.OutcomeDone || a.Ref != "cs_1" || slices.Contains(s.routes(), "POST /v1/checkout/sessions/cs_1/expire") {
		t.Errorf("got %s %s by %v", a.Outcome, a.Ref, s.routes())
	}
}

func TestALookUpFindsASessionByItsMetadata(t *testing.T) {
	const list = "GET /v1/checkout/sessions"
	other := sessionBody("cs_8", "open", "unpaid")
	for _, tt := range []struct {
		name   string
		routes map[string][]reply
		want   store.Outcome
		code   string
		url    string
	}{
		{"that is open, and reads its url anew", map[string][]reply{list: ok(listBody(false, other, strings.Replace(ownSession("cs_1", "open"), "MARKfragment", "old", 1))), "GET /v1/checkout/sessions/cs_1": ok(ownSession("cs_1", "open"))},
			store.OutcomeDone, "", "https://checkout.stripe.com/c/pay/cs_1#MARKfragment"},
		{"that has expired meanwhile", map[string][]reply{list: ok(listBody(false, ownSession("cs_1", "open"))), "GET /v1/checkout/sessions/cs_1": ok(ownSession("cs_1", "expired"))},
			store.OutcomeDone, "expired", ""},
		{"on the second page", map[string][]reply{list: {{body: listBody(true, other)}, {body: listBody(false, ownSession("cs_1", "open"))}}, "GET /v1/checkout/sessions/cs_1": ok(ownSession("cs_1", "open"))},
			store.OutcomeDone, "", "https://checkout.stripe.com/c/pay/cs_1#MARKfragment"},
		{"and says so when it is not there", map[string][]reply{list: ok(listBody(false, other))}, store.OutcomeAbsent, "", ""},
		{"and knows nothing when the list breaks off", map[string][]reply{list: {{body: listBody(true, other)}, {hangUp: true}}}, store.OutcomeAgain, "", ""},
		{"and knows nothing when what it found cannot be read", map[string][]reply{list: ok(listBody(false, ownSession("cs_1", "open"))), "GET /v1/checkout/sessions/cs_1": {stripeError(404, "invalid_request_error", "resource_missing")}},
			store.OutcomeAgain, "resource_missing", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStub(t, byRoute(tt.routes))
			c, log := newClient(t, s.url)
			// Nothing is expired by a look-up.
			a := c.Send(t.Context(), withSessions(lookUp(claimOf(t, "checkout.open:1", checkoutCall())), "cs_0"))
			if a.Outcome != tt.want || a.Code != tt.code {
				t.Errorf("got %s %q: %s", a.Outcome, a.Code, a.Error)
			}
			if a.Outcome == store.OutcomeDone {
				if want := fmt.Sprintf(`{"session":"cs_1","url":%q,"expires_at":"2026-12-02T12:00:00.000Z"}`, tt.url); string(a.Result) != want || a.Ref != "cs_1" {
					t.Errorf("got %s %s, want %s", a.Ref, a.Result, want)
				}
			}
			for _, g := range s.got() {
				if g.method != "GET" {
					t.Errorf("a look-up made %s", g.route())
				}
			}
			checkSecrecy(t, a, log)
		})
	}
}

// After a restore the file may not know of a try that was made since the
// backup: the first that it knows of is not the first.
func TestALookUpGoesBackBehindTheFirstKnownTry(t *testing.T) {
	for _, tt := range []struct {
		name             string
		created, firstAt time.Time
		want             time.Time
	}{
		{"tried after it was queued", now, now.Add(time.Hour), now},
		{"tried before its row was made again", now, now.Add(-time.Hour), now.Add(-time.Hour)},
		{"not known to be tried", now, time.Time{}, now},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStub(t, always(reply{body: listBody(false)}))
			c, _ := newClient(t, s.url)
			claim := lookUp(claimOf(t, "checkout.open:1", checkoutCall()))
			claim.CreatedAt, claim.FirstTriedAt = store.At(tt.created), 0
			if !tt.firstAt.IsZero() {
				claim.FirstTriedAt = store.At(tt.firstAt)
			}
			if a := c.Send(t.Context(), claim); a.Outcome != store.OutcomeAbsent {
				t.Fatalf("got %s: %s", a.Outcome, a.Error)
			}
			if got, want := s.got()[0].form.Get("created[gte]"), fmt.Sprint(tt.want.Add(-25*time.Hour).Unix()); got != want {
				t.Errorf("it looked back to %s, want %s", got, want)
			}
		})
	}
}
