package stripefake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"paidonce/worker/stripefake"
)

func TestFaults(t *testing.T) {
	const route = "POST /v1/refunds"
	for _, tt := range []struct {
		name     string
		fault    stripefake.Fault
		status   int // 0 is no answer
		body     string
		done     int // refunds by then
		status2  int // of the same call again
		replayed bool
		done2    int
	}{
		{"none", stripefake.Fault{}, 200, `"object":"refund"`, 1, 200, true, 1},
		{"the connection closes before the work", stripefake.Fault{Kind: stripefake.ClosedBefore}, 0, "", 0, 200, false, 1},
		{"the answer is lost", stripefake.Fault{Kind: stripefake.ClosedAfter}, 0, "", 1, 200, true, 1},
		{"500, nothing happened, kept for its key", stripefake.Fault{Kind: stripefake.ErrorBefore}, 500, `"type":"api_error"`, 0, 500, true, 0},
		{"500 after the commit, kept for its key", stripefake.Fault{Kind: stripefake.ErrorAfter}, 500, `"type":"api_error"`, 1, 500, true, 1},
		{"a proxy's 502, nothing happened", stripefake.Fault{Kind: stripefake.GatewayBefore}, 502, "<html>", 0, 200, false, 1},
		{"a proxy's 502 after the commit", stripefake.Fault{Kind: stripefake.GatewayAfter}, 502, "<html>", 1, 200, true, 1},
		{"429", stripefake.Fault{Kind: stripefake.TooManyRequests, RetryAfter: "7"}, 429, `"code":"rate_limit"`, 0, 200, false, 1},
		{"half the JSON after the work", stripefake.Fault{Kind: stripefake.BrokenAfter}, 200, "{", 1, 200, true, 1},
		{"whatever the test says", stripefake.Fault{Kind: stripefake.Answered, Status: 418, ContentType: "text/plain", Body: "tea"}, 418, "tea", 0, 200, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			_, intent := w.paid(t, "A1")
			w.FaultNext(route, tt.fault)
			params := "amount=100&payment_intent=" + intent
			got, err := w.try(t, "POST", "/v1/refunds", params, "Idempotency-Key: k")
			if (err != nil) != (tt.status == 0) || got.status != tt.status {
				t.Fatalf("%d %s, %v, want %d", got.status, got.body, err, tt.status)
			}
			got.has(t, tt.body)
			if broken := tt.fault.Kind == stripefake.BrokenAfter; broken == json.Valid([]byte(got.body)) && tt.status == 200 {
				t.Errorf("is the JSON broken? %s", got.body)
			}
			if tt.fault.RetryAfter != got.header.Get("Retry-After") {
				t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
			}
			if n := len(w.RefundsWith("none", "")); n != tt.done {
				t.Errorf("%d refunds after the fault, want %d", n, tt.done)
			}
			again := w.call(t, "POST", "/v1/refunds", params, "Idempotency-Key: k")
			if again.status != tt.status2 || (again.header.Get("Idempotent-Replayed") == "true") != tt.replayed {
				t.Errorf("again: %d, replayed %q, %s", again.status, again.header.Get("Idempotent-Replayed"), again.body)
			}
			if n := len(w.RefundsWith("none", "")); n != tt.done2 {
				t.Errorf("%d refunds in the end, want %d", n, tt.done2)
			}
			if w.FaultsLeft() != 0 {
				t.Error("the fault never came")
			}
		})
	}
}

// What a caller sees through stripe-go, over connections that were in use
// before: net/http repeats requests of its own accord there, and must not.
func TestAFaultIsOneFailedCall(t *testing.T) {
	for _, kind := range []stripefake.FaultKind{stripefake.ClosedBefore, stripefake.ClosedAfter} {
		w := newWorld(t)
		_, intent := w.paid(t, "A1") // a connection is in use now
		w.FaultNext("POST /v1/refunds", stripefake.Fault{Kind: kind})
		w.FaultNext("GET /v1/payment_intents/{id}", stripefake.Fault{Kind: kind})
		params := &stripe.RefundCreateParams{PaymentIntent: stripe.String(intent)}
		params.SetIdempotencyKey("k")
		if r, err := w.client.V1Refunds.Create(t.Context(), params); err == nil {
			t.Errorf("%s: refunded %+v", kind, r)
		} else if _, isStripe := errors.AsType[*stripe.Error](err); isStripe {
			t.Errorf("%s: %v", kind, err)
		}
		if pi, err := w.client.V1PaymentIntents.Retrieve(t.Context(), intent, nil); err == nil {
			t.Errorf("%s: retrieved %+v", kind, pi)
		}
		if _, err := w.client.V1PaymentIntents.Retrieve(t.Context(), intent, nil); err != nil {
			t.Errorf("%s: the next call: %v", kind, err)
		}
	}
}

func TestARefusalIsNoFault(t *testing.T) {
	w := newWorld(t)
	w.FaultNext("POST /v1/refunds", stripefake.Fault{Kind: stripefake.ErrorAfter})
	if got := w.call(t, "POST", "/v1/refunds", "charge=ch_no"); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAnAnswerThatWaits(t *testing.T) {
	w := newWorld(t)
	_, intent := w.paid(t, "A1")
	release, waits := make(chan struct{}), make(chan struct{})
	w.FaultNext("POST /v1/refunds", stripefake.Fault{WaitAfter: release, OnWait: func() { close(waits) }})
	got := make(chan answer, 1)
	go func() {
		a, err := w.try(t, "POST", "/v1/refunds", "payment_intent="+intent, "Idempotency-Key: k")
		if err != nil {
			t.Error(err)
		}
		got <- a
	}()
	<-waits
	if n := len(w.RefundsWith("none", "")); n != 1 {
		t.Fatalf("%d refunds while the answer waits", n)
	}
	again := w.call(t, "POST", "/v1/refunds", "payment_intent="+intent, "Idempotency-Key: k")
	if again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s", again.status, again.body)
	}
	close(release)
	if a := <-got; a.status != 200 || a.body != again.body {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestACallerThatGivesUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(w *world, cancel context.CancelFunc)
	}{
		{"hangs up", func(_ *world, cancel context.CancelFunc) { cancel() }},
		{"is let go when the server closes", func(w *world, _ context.CancelFunc) { w.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			_, intent := w.paid(t, "A1")
			arrived := make(chan struct{})
			w.FaultNext("POST /v1/refunds", stripefake.Fault{WaitBefore: make(chan struct{}), OnWait: func() { close(arrived) }})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			params := &stripe.RefundCreateParams{PaymentIntent: stripe.String(intent)}
			params.SetIdempotencyKey("k")
			failed := make(chan error, 1)
			go func() {
				_, err := w.client.V1Refunds.Create(ctx, params)
				failed <- err
			}()
			<-arrived
			tt.end(w, cancel)
			if err := <-failed; err == nil {
				t.Error("a call that nobody let go on was answered")
			}
			// The server learns a moment later that its caller is gone.
			for {
				got := w.call(t, "POST", "/v1/refunds", "payment_intent="+intent, "Idempotency-Key: k")
				if got.status == http.StatusConflict {
					continue
				}
				if got.status != 200 || got.header.Get("Idempotent-Replayed") != "" {
					t.Errorf("%d %s: want a first refund", got.status, got.body)
				}
				break
			}
		})
	}
}

func TestFaultsAreToldAboutTheirCall(t *testing.T) {
	w := newWorld(t)
	var seen []string
	w.Fault(func(r stripefake.FaultRequest) stripefake.Fault {
		seen = append(seen, fmt.Sprint(r.Number, " ", r.Route, " ", r.Path, " ", r.Params.Get("charge"), " ", r.Key, " ", r.Attempt))
		return stripefake.Fault{}
	})
	w.call(t, "POST", "/v1/refunds", "charge=ch_1", "Idempotency-Key: k")
	w.call(t, "POST", "/v1/refunds", "charge=ch_1", "Idempotency-Key: k")
	w.call(t, "GET", "/v1/refunds/re_1", "")
	w.call(t, "GET", "/v1/nothing", "")
	w.call(t, "GET", "/v1/refunds", "", "Authorization: Bearer other")
	want := "1 POST /v1/refunds /v1/refunds ch_1 k 1, 2 POST /v1/refunds /v1/refunds ch_1 k 2, 3 GET /v1/refunds/{id} /v1/refunds/re_1   0"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestFaultsOfARouteThatIsNot(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a fault that can never come was taken")
		}
	}()
	newWorld(t).FaultNext("POST /v1/refund", stripefake.Fault{})
}

func TestRandomFaultsFollowTheirSeed(t *testing.T) {
	draw := func(seed uint64) (list string, kinds map[stripefake.FaultKind]int) {
		f := stripefake.RandomFaults(seed, map[stripefake.FaultKind]float64{stripefake.ClosedAfter: .25, stripefake.ErrorAfter: .25})
		kinds = map[stripefake.FaultKind]int{}
		for range 400 {
			k := f(stripefake.FaultRequest{}).Kind
			kinds[k]++
			list += k.String() + " "
		}
		return list, kinds
	}
	first, kinds := draw(1)
	if second, _ := draw(1); second != first {
		t.Error("one seed gave two sequences")
	}
	if other, _ := draw(2); other == first {
		t.Error("two seeds gave one sequence")
	}
	if len(kinds) != 3 || min(kinds[stripefake.ClosedAfter], kinds[stripefake.ErrorAfter]) < 60 || kinds[stripefake.NoFault] < 150 {
		t.Errorf("drew %v", kinds)
	}
}

func TestRetryAfterIsWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", time.Second: "1", 1500 * time.Millisecond: "2", time.Minute: "60"} {
		if got := stripefake.RetryAfter(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
