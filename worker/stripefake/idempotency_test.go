package stripefake_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"paidonce/worker/stripefake"
)

// refund refunds part of an intent under a key.
func (w *world) refund(t *testing.T, intent, key string, amount int64) answer {
	t.Helper()
	return w.call(t, "POST", "/v1/refunds", fmt.Sprintf("payment_intent=%s&amount=%d", intent, amount), "Idempotency-Key: "+key)
}

func TestIdempotencyKeys(t *testing.T) {
	for _, tt := range []struct {
		name     string
		again    func(t *testing.T, w *world, intent string) answer // after a refund of 100 under the key k
		status   int
		kind     string // of the error
		replayed bool
		refunds  int
	}{
		{"the same key and parameters", func(t *testing.T, w *world, intent string) answer { return w.refund(t, intent, "k", 100) }, 200, "", true, 1},
		{"the parameters in another order", func(t *testing.T, w *world, intent string) answer {
			return w.call(t, "POST", "/v1/refunds", "amount=100&payment_intent="+intent, "Idempotency-Key: k")
		}, 200, "", true, 1},
		{"blanks around the key", func(t *testing.T, w *world, intent string) answer { return w.refund(t, intent, " k ", 100) }, 200, "", true, 1},
		{"another key", func(t *testing.T, w *world, intent string) answer { return w.refund(t, intent, "l", 100) }, 200, "", false, 2},
		{"no key", func(t *testing.T, w *world, intent string) answer {
			return w.call(t, "POST", "/v1/refunds", "amount=100&payment_intent="+intent)
		}, 200, "", false, 2},
		{"other parameters", func(t *testing.T, w *world, intent string) answer { return w.refund(t, intent, "k", 101) }, 400, "idempotency_error", false, 1},
		{"other parameters that are also wrong", func(t *testing.T, w *world, intent string) answer { return w.refund(t, intent, "k", -1) }, 400, "idempotency_error", false, 1},
		{"another path", func(t *testing.T, w *world, intent string) answer {
			return w.call(t, "POST", "/v1/payment_intents/"+intent+"/cancel", "", "Idempotency-Key: k")
		}, 400, "idempotency_error", false, 1},
		{"another path that takes the same parameters", func(t *testing.T, w *world, intent string) answer {
			w.call(t, "POST", "/v1/checkout/sessions/"+w.open(t, "A2").ID+"/expire", "", "Idempotency-Key: e")
			return w.call(t, "POST", "/v1/checkout/sessions/"+w.open(t, "A3").ID+"/expire", "", "Idempotency-Key: e")
		}, 400, "idempotency_error", false, 1},
		{"a key of 256 characters", func(t *testing.T, w *world, intent string) answer {
			return w.refund(t, intent, strings.Repeat("k", 256), 100)
		}, 400, "invalid_request_error", false, 1},
		{"a day less a second later", func(t *testing.T, w *world, intent string) answer {
			w.clock.advance(24*time.Hour - time.Second)
			return w.refund(t, intent, "k", 100)
		}, 200, "", true, 1},
		{"a day later, when the key is forgotten", func(t *testing.T, w *world, intent string) answer {
			w.clock.advance(24 * time.Hour)
			return w.refund(t, intent, "k", 100)
		}, 200, "", false, 2},
		{"a day later, with other parameters", func(t *testing.T, w *world, intent string) answer {
			w.clock.advance(24 * time.Hour)
			return w.refund(t, intent, "k", 7)
		}, 200, "", false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			_, intent := w.paid(t, "A1")
			first := w.refund(t, intent, "k", 100)
			got := tt.again(t, w, intent)
			if got.status != tt.status {
				t.Fatalf("%d %s, want %d", got.status, got.body, tt.status)
			}
			if tt.kind != "" {
				got.has(t, `"type":"`+tt.kind+`"`)
			}
			if replayed := got.header.Get("Idempotent-Replayed") == "true"; replayed != tt.replayed {
				t.Errorf("replayed %t", replayed)
			}
			if tt.replayed && (got.body != first.body || got.header.Get("Original-Request") != first.header.Get("Request-Id")) {
				t.Errorf("replayed %s of %s, the first was %s of %s", got.body, got.header.Get("Original-Request"), first.body, first.header.Get("Request-Id"))
			}
			if n := len(w.RefundsWith("none", "")); n != tt.refunds {
				t.Errorf("%d refunds, want %d", n, tt.refunds)
			}
		})
	}
}

func TestARefusalIsKeptForItsKeyAndAWrongParameterIsNot(t *testing.T) {
	w := newWorld(t)
	_, intent := w.paid(t, "A1")
	if got := w.refund(t, intent, "refused", 9999); got.status != 400 {
		t.Fatal(got.body)
	}
	got := w.refund(t, intent, "refused", 9999)
	if got.header.Get("Idempotent-Replayed") != "true" || got.status != 400 {
		t.Errorf("a refusal was not replayed: %d %s", got.status, got.body)
	}
	got.has(t, `"code":"amount_too_large"`)

	if got := w.call(t, "POST", "/v1/refunds", "payment_intent="+intent+"&amount=x", "Idempotency-Key: wrong"); got.status != 400 {
		t.Fatal(got.body)
	}
	if got := w.refund(t, intent, "wrong", 100); got.status != 200 || got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the key of a wrong parameter was not free: %d %s", got.status, got.body)
	}
}

func TestTimeForgetsKeysWithoutAClockOfItsOwn(t *testing.T) {
	w := newWorld(t, func(c *stripefake.ServerConfig) { c.Now = nil })
	_, intent := w.paid(t, "A1")
	open := w.open(t, "A2").ID
	w.refund(t, intent, "k", 100)
	allow(t, w.Do(func(a *stripefake.Account) error {
		a.Advance(24 * 3600)
		return nil
	}))
	if e := w.Events()[len(w.Events())-1]; e.Type != "checkout.session.expired" || e.Object != open {
		t.Errorf("the clock moved by a day, and the last event is %s", e)
	}
	if got := w.refund(t, intent, "k", 100); got.header.Get("Idempotent-Replayed") != "" {
		t.Error("the key is not forgotten")
	}
}

func TestGetsAndDeletesNeedNoKey(t *testing.T) {
	w := newWorld(t)
	_, intent := w.paid(t, "A1")
	for range 2 {
		got := w.call(t, "GET", "/v1/payment_intents/"+intent, "", "Idempotency-Key: k")
		if got.header.Get("Idempotent-Replayed") != "" || got.status != 200 {
			t.Errorf("%d %v", got.status, got.header)
		}
	}
}

func TestAKeyInUse(t *testing.T) {
	w := newWorld(t)
	_, intent := w.paid(t, "A1")
	release, arrived := make(chan struct{}), make(chan struct{})
	w.FaultNext("POST /v1/refunds", stripefake.Fault{WaitBefore: release, OnWait: func() { close(arrived) }})
	first := make(chan answer, 1)
	go func() {
		a, err := w.try(t, "POST", "/v1/refunds", "amount=100&payment_intent="+intent, "Idempotency-Key: k")
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	<-arrived
	if got := w.refund(t, intent, "k", 101); got.status != http.StatusBadRequest {
		t.Errorf("other parameters: %d %s", got.status, got.body)
	}
	got := w.refund(t, intent, "k", 100)
	if got.status != http.StatusConflict {
		t.Errorf("%d %s, want 409", got.status, got.body)
	}
	got.has(t, `"code":"idempotency_key_in_use"`)
	if n := len(w.RefundsWith("none", "")); n != 0 {
		t.Errorf("%d refunds before the first call goes on", n)
	}
	close(release)
	done := <-first
	if done.status != 200 {
		t.Fatalf("%d %s", done.status, done.body)
	}
	if again := w.refund(t, intent, "k", 100); again.body != done.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s", again.status, again.body)
	}
	if n := len(w.RefundsWith("none", "")); n != 1 {
		t.Errorf("%d refunds", n)
	}
}

func TestTheEventsOfACallNameIt(t *testing.T) {
	w := newWorld(t)
	_, intent := w.paid(t, "A1")
	before := len(w.Events())
	params := &stripe.RefundCreateParams{PaymentIntent: stripe.String(intent)}
	params.SetIdempotencyKey("po-1")
	r := must[*stripe.Refund](t)(w.client.V1Refunds.Create(t.Context(), params))
	caused := w.Events()[before:]
	if len(caused) == 0 {
		t.Fatal("a refund made no event")
	}
	for _, e := range caused {
		want := fmt.Sprintf(`"request":{"id":%q,"idempotency_key":"po-1"}`, r.LastResponse.RequestID)
		if !strings.Contains(string(e.Body(0)), want) {
			t.Errorf("%s: no %s in %s", e, want, e.Body(0))
		}
	}
}
