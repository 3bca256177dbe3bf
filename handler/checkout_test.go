package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/store/storetest"
)

// stripeWorld is a world with a Stripe key. Nobody carries its effects out but
// the test.
type stripeWorld struct {
	*world
	queued chan struct{} // there may be an effect to carry out
}

func newStripeWorld(t testing.TB) *stripeWorld {
	t.Helper()
	queued := make(chan struct{}, 1)
	s, clock := storetest.Open(t, func(o *store.Options) {
		o.StripeKey = "sk_test"
		o.Queued = func() {
			select {
			case queued <- struct{}{}:
			default:
			}
		}
	})
	w := &stripeWorld{&world{t: t, s: s, clock: clock}, queued}
	w.start(func(c *Config) { c.Store = s })
	return w
}

// claim waits until there is a call to Stripe to make, and takes it.
func (w *stripeWorld) claim() store.EffectClaim {
	w.t.Helper()
	for range w.queued {
		if claims := storetest.Claim(w.t, w.s, store.StripeTarget); len(claims) == 1 {
			return claims[0]
		}
	}
	return store.EffectClaim{}
}

// opened is the answer of a session that Stripe has opened.
func opened(id string) store.Answer {
	return store.Answer{Outcome: store.OutcomeDone, Ref: id,
		Result: json.RawMessage(`{"session":"` + id + `","url":"https://pay.example/` + id + `","expires_at":"2026-12-02T09:00:00Z"}`)}
}

// begin makes an admin request beside the test, and returns what waits for its
// answer.
func (w *world) begin(method, path, body string) func() got {
	w.t.Helper()
	type result struct {
		got
		err error
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.admin+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+adminToken)
	answered := make(chan result, 1)
	go func() {
		resp, err := client.Do(r)
		if err != nil {
			answered <- result{err: err}
			return
		}
		b, err := io.ReadAll(resp.Body)
		answered <- result{got{resp.StatusCode, resp.Header, string(b)}, errors.Join(err, resp.Body.Close())}
	}()
	return func() got {
		w.t.Helper()
		a := <-answered
		if a.err != nil {
			w.t.Fatal(a.err)
		}
		w.seen.WriteString(a.body)
		w.check(method, path, a.got)
		return a.got
	}
}

const (
	withCheckout = `{"id":"ORD-1","total_minor":1250,"currency":"eur","checkout":{"success_url":"https://shop.example/thanks","cancel_url":"https://shop.example/cart"}}`
	plainOrder   = `{"id":"ORD-1","total_minor":1250,"currency":"eur"}`
)

func refuses(code string) store.Answer {
	return store.Answer{Outcome: store.OutcomeRefused, Status: 400, Code: code, Error: "no such thing"}
}

func TestAnAnswerWaitsForWhatStripeSays(t *testing.T) {
	const urls = `{"success_url":"https://shop.example/thanks"}`
	for _, tt := range []struct {
		name       string
		before     string // an order that is there
		path, body string
		answer     store.Answer
		status     int
		code       string // or the order's status
		url        string // checkout_url
	}{
		{"a registration has its URL", "", "/v1/orders", withCheckout, opened("cs_1"), 201, "awaiting_payment", "https://pay.example/cs_1"},
		{"a registration that Stripe refuses", "", "/v1/orders", withCheckout, refuses("url_invalid"), 502, "stripe_refused", ""},
		{"a registration whose payment is under way", "", "/v1/orders", withCheckout, refuses("payment_under_way"), 409, "payment_under_way", ""},
		{"a session has its URL", plainOrder, "/v1/orders/ORD-1/checkout", urls, opened("cs_2"), 200, "awaiting_payment", "https://pay.example/cs_2"},
		{"a session that Stripe refuses", plainOrder, "/v1/orders/ORD-1/checkout", urls, refuses("url_invalid"), 502, "stripe_refused", ""},
		{"a session of an order that is paid meanwhile", plainOrder, "/v1/orders/ORD-1/checkout", urls, refuses("order_paid"), 409, "order_paid", ""},
		{"a session while a payment is under way", plainOrder, "/v1/orders/ORD-1/checkout", urls, refuses("payment_under_way"), 409, "payment_under_way", ""},
		{"an order is closed", strings.Replace(plainOrder, "}", `,"payment_intent":"pi_1"}`, 1), "/v1/orders/ORD-1/cancel", "", store.Answer{Outcome: store.OutcomeDone}, 200, "canceled", ""},
		{"an order that is paid meanwhile is not closed", strings.Replace(plainOrder, "}", `,"payment_intent":"pi_1"}`, 1), "/v1/orders/ORD-1/cancel", "{}", refuses("order_paid"), 409, "order_paid", ""},
		{"an order is not closed while its payment is under way", strings.Replace(plainOrder, "}", `,"payment_intent":"pi_1"}`, 1), "/v1/orders/ORD-1/cancel", "", refuses("payment_under_way"), 409, "payment_under_way", ""},
		{"an order whose close Stripe refuses", strings.Replace(plainOrder, "}", `,"payment_intent":"pi_1"}`, 1), "/v1/orders/ORD-1/cancel", "", refuses("401"), 502, "stripe_refused", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newStripeWorld(t)
			if tt.before != "" {
				w.call("POST", "/v1/orders", tt.before)
			}
			wait := w.begin("POST", tt.path, tt.body)
			storetest.Finish(t, w.s, w.claim(), tt.answer)
			g := wait()
			if g.status != tt.status || g.code() != tt.code {
				t.Fatalf("%d %s; want %d %s", g.status, g.body, tt.status, tt.code)
			}
			if url := g.field(t, "checkout_url"); url != tt.url {
				t.Errorf("checkout_url %q; want %q", url, tt.url)
			}
			if (tt.status == 201) != (g.header.Get("Location") != "") {
				t.Errorf("%d with Location %q", g.status, g.header.Get("Location"))
			}
			if tt.status == 502 {
				for _, part := range []string{"effect 1 ", "refused: ", "no such thing", "`paidonce effects show 1`", "`paidonce effects retry 1`"} {
					if !strings.Contains(g.body, part) {
						t.Errorf("%s lacks %q", g.body, part)
					}
				}
			}
			if strings.Contains(w.log.String(), "level=ERROR") {
				t.Errorf("what Stripe says is no error of ours: %s", w.log.String())
			}
		})
	}
}

// The wait ends with the service, the request does not: the same POST again
// gives what came of it.
func TestADrainingServiceLetsGoOfThoseWhoWait(t *testing.T) {
	for _, tt := range []struct {
		name, path, body string
		before           string
	}{
		{"a registration", "/v1/orders", withCheckout, ""},
		{"a session", "/v1/orders/ORD-1/checkout", "", withCheckout},
		{"a close", "/v1/orders/ORD-1/cancel", "", withCheckout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newStripeWorld(t)
			if tt.before != "" {
				wait := w.begin("POST", "/v1/orders", tt.before)
				storetest.Finish(t, w.s, w.claim(), opened("cs_1"))
				wait()
			}
			wait := w.begin("POST", tt.path, tt.body)
			c := w.claim() // it is waited for
			w.h.SetDraining()
			g := wait()
			if g.status != 202 || g.code() != "awaiting_payment" {
				t.Fatalf("%d %s; want 202", g.status, g.body)
			}
			if strings.Contains(tt.path, "cancel") {
				if again := w.call("POST", tt.path, tt.body); again.status != 202 {
					t.Errorf("again: %d %s; want 202", again.status, again.body)
				}
				return
			}
			// The session before, if any, is as good as closed.
			if !strings.Contains(g.body, `"checkout_url":null`) {
				t.Errorf("%s; want checkout_url null", g.body)
			}
			if again := w.call("POST", tt.path, tt.body); again.status != 202 || !strings.Contains(again.body, `"checkout_url":null`) {
				t.Errorf("the same while it is under way: %d %s; want 202", again.status, again.body)
			}
			storetest.Finish(t, w.s, c, opened("cs_2"))
			if again := w.call("POST", "/v1/orders", withCheckout); again.status != 200 || again.field(t, "checkout_url") != "https://pay.example/cs_2" {
				t.Errorf("the registration again: %d %s; want 200 with the URL", again.status, again.body)
			}
			if n := len(storetest.Effects(t, w.s, "ORD-1")); n != 1 && tt.before == "" || n != 2 && tt.before != "" {
				t.Errorf("%d sessions", n)
			}
		})
	}
}

// The registration again tells how the order stands, not how its last session
// went, once there is nothing to pay.
func TestARegistrationAgainTellsHowTheOrderStands(t *testing.T) {
	setUp := func(t *testing.T, first store.Answer) *stripeWorld {
		w := newStripeWorld(t)
		wait := w.begin("POST", "/v1/orders", withCheckout)
		storetest.Finish(t, w.s, w.claim(), first)
		wait()
		return w
	}
	want := func(t *testing.T, w *stripeWorld, when string, status int, code, url string) {
		t.Helper()
		g := w.call("POST", "/v1/orders", withCheckout)
		if g.status != status || g.code() != code || g.field(t, "checkout_url") != url {
			t.Errorf("%s: %d %s; want %d %s, checkout_url %q", when, g.status, g.body, status, code, url)
		}
	}
	t.Run("paid", func(t *testing.T) {
		w := setUp(t, refuses("url_invalid"))
		want(t, w, "unpaid", 502, "stripe_refused", "")
		w.stripe("stripe", testEvent("evt_1"))
		w.work()
		want(t, w, "paid", 200, "paid", "null")
	})
	t.Run("put aside by a person", func(t *testing.T) {
		w := setUp(t, refuses("url_invalid"))
		if g := w.call("POST", "/v1/effects/1/resolve", `{"outcome":"canceled"}`); g.status != 200 {
			t.Fatal(g.body)
		}
		want(t, w, "without a session", 409, "effect_canceled", "")
	})
	t.Run("the session before stands", func(t *testing.T) {
		w := setUp(t, opened("cs_1"))
		wait := w.begin("POST", "/v1/orders/ORD-1/checkout", "")
		storetest.Finish(t, w.s, w.claim(), refuses("payment_under_way"))
		if g := wait(); g.status != 409 {
			t.Fatal(g.body)
		}
		want(t, w, "after a session that was not to be", 200, "awaiting_payment", "https://pay.example/cs_1")
	})
	t.Run("closed", func(t *testing.T) {
		w := setUp(t, refuses("url_invalid"))
		if g := w.call("POST", "/v1/orders/ORD-1/cancel", ""); g.status != 200 || g.code() != "canceled" {
			t.Fatal(g.body)
		}
		want(t, w, "closed", 200, "canceled", "null")
		if g := w.call("POST", "/v1/orders/ORD-1/cancel", ""); g.status != 200 || g.code() != "canceled" {
			t.Errorf("closed again: %d %s", g.status, g.body)
		}
		if g := w.call("POST", "/v1/orders/ORD-1/checkout", ""); g.status != 409 || g.code() != "order_closed" {
			t.Errorf("a session for it: %d %s; want 409 order_closed", g.status, g.body)
		}
	})
}

func TestWhatCannotBeAskedOfStripeIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, path, body string
		status           int
		code             string
		field            string // of a 422
	}{
		{"a session without an address", "/v1/orders/ORD-1/checkout", "", 422, "invalid", "success_url"},
		{"a session without an address to come back to", "/v1/orders/ORD-1/checkout", `{"cancel_url":"https://shop.example"}`, 422, "invalid", "success_url"},
		{"a session with an address that is none", "/v1/orders/ORD-1/checkout", `{"success_url":"javascript:alert(1)"}`, 422, "invalid", "success_url"},
		{"a session with another field", "/v1/orders/ORD-1/checkout", `{"url":"https://shop.example"}`, 422, "invalid", "url"},
		{"a session of nobody's order", "/v1/orders/nobody/checkout", `{"success_url":"https://shop.example"}`, 404, "not_found", ""},
		{"a session of another tenant's order", "/v1/orders/ORD-1/checkout?tenant=acct_B", "", 404, "not_found", ""},
		{"a body that is no object", "/v1/orders/ORD-1/checkout", "[]", 400, "malformed", ""},
		{"a registration without an address", "/v1/orders", `{"id":"ORD-2","total_minor":1,"currency":"eur","checkout":{}}`, 422, "invalid", "checkout.success_url"},
		{"a registration with a field of no use", "/v1/orders", `{"id":"ORD-2","total_minor":1,"currency":"eur","checkout":{"url":"https://shop.example"}}`, 422, "invalid", "checkout.url"},
		{"a registration with an address for a checkout", "/v1/orders", `{"id":"ORD-2","total_minor":1,"currency":"eur","checkout":"https://shop.example"}`, 422, "invalid", "checkout"},
		{"a close with a field", "/v1/orders/ORD-1/cancel", `{"now":true}`, 422, "invalid", "now"},
		{"a close of nobody's order", "/v1/orders/nobody/cancel", "", 404, "not_found", ""},
		{"a session of a paid order", "/v1/orders/PAID/checkout", `{"success_url":"https://shop.example"}`, 409, "order_paid", ""},
		{"a close of a paid order", "/v1/orders/PAID/cancel", "", 409, "order_paid", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newStripeWorld(t)
			w.call("POST", "/v1/orders", plainOrder)
			w.call("POST", "/v1/orders", strings.Replace(plainOrder, "ORD-1", "PAID", 1))
			w.stripe("stripe", bytes.ReplaceAll(testEvent("evt_1"), []byte("ORD-1"), []byte("PAID")))
			w.work()
			g := w.call("POST", tt.path, tt.body)
			if g.status != tt.status || g.code() != tt.code {
				t.Fatalf("%d %s; want %d %s", g.status, g.body, tt.status, tt.code)
			}
			if tt.field != "" && g.problems(t)[tt.field] == "" {
				t.Errorf("%s; want a problem with %s", g.body, tt.field)
			}
			if claims := storetest.Claim(t, w.s, store.StripeTarget); len(claims) != 0 {
				t.Errorf("queued all the same: %+v", claims)
			}
		})
	}
}

func TestWithoutAStripeKey(t *testing.T) {
	w := newWorld(t)
	if g := w.call("POST", "/v1/orders", withCheckout); g.status != 422 || !strings.Contains(g.problems(t)["checkout"], "STRIPE_API_KEY") {
		t.Errorf("a registration with checkout: %d %s; want 422 with checkout", g.status, g.body)
	}
	if g := w.call("GET", "/v1/orders/ORD-1", ""); g.status != 404 {
		t.Errorf("it is registered all the same: %s", g.body)
	}
	w.call("POST", "/v1/orders", plainOrder)
	if g := w.call("POST", "/v1/orders/ORD-1/checkout", `{"success_url":"https://shop.example"}`); g.status != 409 || g.code() != "no_stripe_key" {
		t.Errorf("a session: %d %s; want 409 no_stripe_key", g.status, g.body)
	}
	if g := w.call("POST", "/v1/orders/ORD-1/refund", `{"request_id":"r"}`); g.status != 409 || g.code() != "no_stripe_key" {
		t.Errorf("a refund: %d %s; want 409 no_stripe_key", g.status, g.body)
	}
	if g := w.call("POST", "/v1/orders/ORD-1/cancel", ""); g.status != 200 || g.code() != "canceled" {
		t.Errorf("a close: %d %s; nobody needs to be asked", g.status, g.body)
	}
}

// waiting is an effect that nobody carries out.
func waiting(ctx context.Context, id string) (store.EffectDetail, error) {
	<-ctx.Done()
	return store.EffectDetail{Effect: store.Effect{ID: id, Status: "pending"}}, nil
}

// What waits holds a connection and looks at the file: not for those who left,
// and not in the way of an orderly end.
func TestTheWaitEndsBeforeItsTime(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(h *Handler, leave context.CancelFunc)
		left bool
	}{
		{"the client leaves", func(_ *Handler, leave context.CancelFunc) { leave() }, true},
		{"the service shuts down", func(h *Handler, _ context.CancelFunc) { h.SetDraining() }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun, ended := make(chan struct{}), make(chan error, 1)
			w := newFakeWorld(t, &fakeStore{
				await: func(ctx context.Context, id string) (store.EffectDetail, error) {
					close(begun)
					d, err := waiting(ctx, id)
					ended <- ctx.Err()
					return d, err
				},
				find: func(context.Context, string, string) (store.OrderDetail, error) { return store.OrderDetail{}, nil },
			})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r, err := http.NewRequestWithContext(ctx, "POST", w.admin+"/v1/orders/ORD-1/checkout", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+adminToken)
			gone := make(chan error, 1)
			go func() {
				resp, err := client.Do(r)
				if err == nil {
					err = resp.Body.Close()
				}
				gone <- err
			}()
			<-begun
			tt.end(w.h, leave)
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the wait ended with %v; want %v, at once", err, context.Canceled)
			}
			if err := <-gone; errors.Is(err, context.Canceled) != tt.left {
				t.Error(err)
			}
		})
	}
}

func TestAnAnswerWaitsForTenSecondsAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, err := NewToken(adminToken)
		if err != nil {
			t.Fatal(err)
		}
		h, err := New(Config{
			Store: &fakeStore{await: waiting, find: func(ctx context.Context, _, id string) (store.OrderDetail, error) {
				return store.OrderDetail{Order: store.Order{ID: id, Status: payment.StatusAwaitingPayment, CheckoutURL: "https://pay.example/old"}}, ctx.Err()
			}},
			Wake: func() {}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Token: token,
		})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/orders/ORD-1/checkout", nil)
		r.Header.Set("Authorization", "Bearer "+adminToken)
		began, answer := time.Now(), httptest.NewRecorder()
		h.Admin().ServeHTTP(answer, r)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it waited %v", took)
		}
		if answer.Code != 202 || !strings.Contains(answer.Body.String(), `"checkout_url":null`) {
			t.Errorf("%d %s; want 202 with null", answer.Code, answer.Body)
		}
	})
}
