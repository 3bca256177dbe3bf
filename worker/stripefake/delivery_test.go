package stripefake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"

	"paidonce/worker/stripefake"
)

const hookSecret = "whsec_fake_secret"

// receiver is a shop's webhook endpoint.
type receiver struct {
	*httptest.Server
	answer func(n int) int // the status of the nth answer, from 1; nil is 200

	mu     sync.Mutex
	bodies []string
	heads  []http.Header
}

func newReceiver(t *testing.T, answer func(n int) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.bodies = append(r.bodies, string(body))
		r.heads = append(r.heads, req.Header.Clone())
		n := len(r.bodies)
		r.mu.Unlock()
		if r.answer != nil {
			w.WriteHeader(r.answer(n))
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// got are the types, ids and pending_webhooks of what came.
func (r *receiver) got(t *testing.T) (types, ids []string, pending []int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.bodies {
		var e struct {
			ID, Type        string
			PendingWebhooks int `json:"pending_webhooks"`
		}
		allow(t, json.Unmarshal([]byte(body), &e))
		types, ids, pending = append(types, e.Type), append(ids, e.ID), append(pending, e.PendingWebhooks)
	}
	return types, ids, pending
}

// at once is a backoff for tests.
func atOnce(int) time.Duration { return 0 }

// hooked is a world that delivers to a receiver.
func hooked(t *testing.T, r *receiver, delivery stripefake.DeliveryConfig) *world {
	t.Helper()
	if delivery.Backoff == nil {
		delivery.Backoff = atOnce
	}
	return newWorld(t, func(c *stripefake.ServerConfig) {
		c.WebhookURL, c.WebhookSecret, c.Delivery = r.URL+"/webhooks/stripe", hookSecret, delivery
	})
}

func sale(t *testing.T, w *world) { w.paid(t, "A1") } // four events

var saleTypes = []string{"payment_intent.created", "charge.succeeded", "payment_intent.succeeded", "checkout.session.completed"}

func TestDeliveriesAreSignedAsStripes(t *testing.T) {
	r := newReceiver(t, nil)
	w := hooked(t, r, stripefake.DeliveryConfig{})
	w.SetWebhook(r.URL+"/webhooks/stripe", "whsec_old", hookSecret)
	w.Start(t.Context())
	sale(t, w)
	allow(t, w.Drain(t.Context()))
	for i, body := range r.bodies {
		header := r.heads[i].Get("Stripe-Signature")
		for _, secret := range []string{"whsec_old", hookSecret} { // while it is rolled
			allow(t, webhook.ValidatePayloadIgnoringTolerance([]byte(body), header, secret))
		}
		if webhook.ValidatePayloadIgnoringTolerance([]byte(body), header, "whsec_other") == nil {
			t.Error("another secret is valid")
		}
		if !strings.HasPrefix(header, fmt.Sprintf("t=%d,v1=", w.clock.Now().Unix())) || strings.Count(header, ",v0=") != 1 {
			t.Errorf("header %q", header)
		}
		if r.heads[i].Get("Content-Type") != "application/json; charset=utf-8" || !strings.HasPrefix(r.heads[i].Get("User-Agent"), "Stripe/1.0") {
			t.Errorf("headers %v", r.heads[i])
		}
	}
	if types, _, _ := r.got(t); !slices.Equal(types, saleTypes) {
		t.Errorf("delivered %v", types)
	}
}

func TestDeliveriesAreTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answer   func(n int) int
		delivery stripefake.DeliveryConfig
		received int
		drained  bool
		open     int // events that are not acknowledged in the end
	}{
		{"nothing is wrong", nil, stripefake.DeliveryConfig{}, 4, true, 0},
		{"204 is enough", func(int) int { return 204 }, stripefake.DeliveryConfig{}, 4, true, 0},
		{"503 at first", func(n int) int { return map[bool]int{true: 503, false: 200}[n <= 3] }, stripefake.DeliveryConfig{}, 7, true, 0},
		{"a redirect is a failure", func(n int) int { return map[bool]int{true: 302, false: 200}[n == 1] }, stripefake.DeliveryConfig{}, 5, true, 0},
		{"400 is a failure", func(n int) int { return map[bool]int{true: 400, false: 200}[n == 1] }, stripefake.DeliveryConfig{}, 5, true, 0},
		{"never, and it is given up", func(int) int { return 500 }, stripefake.DeliveryConfig{MaxAttempts: 3}, 12, false, 4},
		{"several at once", func(n int) int { return map[bool]int{true: 503, false: 200}[n <= 3] }, stripefake.DeliveryConfig{Concurrency: 4}, 7, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReceiver(t, tt.answer)
			w := hooked(t, r, tt.delivery)
			w.Start(t.Context())
			sale(t, w)
			if err := w.Drain(t.Context()); (err == nil) != tt.drained {
				t.Errorf("drained: %v", err)
			}
			types, _, _ := r.got(t)
			if len(types) != tt.received {
				t.Errorf("%d deliveries, want %d: %v", len(types), tt.received, types)
			}
			for _, want := range saleTypes {
				if !slices.Contains(types, want) {
					t.Errorf("no %s", want)
				}
			}
			failed, _ := ids(t, w.call(t, "GET", "/v1/events", "delivery_success=false"))
			fine, _ := ids(t, w.call(t, "GET", "/v1/events", "delivery_success=true"))
			if len(failed) != tt.open || len(fine) != 4-tt.open {
				t.Errorf("%d events failed and %d delivered, want %d and %d", len(failed), len(fine), tt.open, 4-tt.open)
			}
			log := w.DeliveryLog()
			if len(log) != tt.received {
				t.Errorf("%d records", len(log))
			}
			acked := 0
			for _, rec := range log {
				if rec.Acked {
					acked++
				}
				if rec.Acked != (rec.Status/100 == 2) || rec.Attempt < 1 || rec.Endpoint != "we_configured" {
					t.Errorf("record %+v", rec)
				}
			}
			if acked != 4-tt.open {
				t.Errorf("%d acknowledged", acked)
			}
		})
	}
}

func TestDeliveryFaults(t *testing.T) {
	only := func(eventType string, f stripefake.DeliveryFault) func(stripefake.DeliveryRequest) stripefake.DeliveryFault {
		return func(r stripefake.DeliveryRequest) stripefake.DeliveryFault {
			if r.Event.Type == eventType {
				return f
			}
			return stripefake.DeliveryFault{}
		}
	}
	t.Run("an event that never comes", func(t *testing.T) {
		r := newReceiver(t, nil)
		w := hooked(t, r, stripefake.DeliveryConfig{Fault: only("charge.succeeded", stripefake.DeliveryFault{Drop: true})})
		w.Start(t.Context())
		sale(t, w)
		allow(t, w.Drain(t.Context()))
		types, _, _ := r.got(t)
		if slices.Contains(types, "charge.succeeded") || len(types) != 3 {
			t.Errorf("delivered %v", types)
		}
		got := w.call(t, "GET", "/v1/events", "delivery_success=false")
		got.has(t, `"type":"charge.succeeded"`, `"pending_webhooks":1`)
		log := w.DeliveryLog()
		if log[0].Type != "charge.succeeded" || log[0].Attempt != 0 || !strings.Contains(log[0].String(), "dropped") {
			t.Errorf("the first record is %s", log[0])
		}
		allow(t, w.Resend(w.Events()[1].ID), w.Drain(t.Context()))
		if list, _ := ids(t, w.call(t, "GET", "/v1/events", "delivery_success=false")); len(list) != 0 {
			t.Errorf("sent again by hand, and still pending: %v", list)
		}
		if w.Resend("evt_no") == nil {
			t.Error("an event that never was can be sent")
		}
	})
	t.Run("doubled", func(t *testing.T) {
		r := newReceiver(t, nil)
		w := hooked(t, r, stripefake.DeliveryConfig{Fault: only("charge.succeeded", stripefake.DeliveryFault{Copies: 2})})
		w.Start(t.Context())
		sale(t, w)
		allow(t, w.Drain(t.Context()))
		types, got, _ := r.got(t)
		if want := []string{saleTypes[0], saleTypes[1], saleTypes[1], saleTypes[1], saleTypes[2], saleTypes[3]}; !slices.Equal(types, want) || got[1] != got[2] || got[2] != got[3] {
			t.Errorf("delivered %v as %v", types, got)
		}
	})
	t.Run("late by two", func(t *testing.T) {
		r := newReceiver(t, nil)
		w := hooked(t, r, stripefake.DeliveryConfig{Fault: only(saleTypes[0], stripefake.DeliveryFault{Late: 2})})
		sale(t, w)
		w.Start(t.Context())
		allow(t, w.Drain(t.Context()))
		types, _, _ := r.got(t)
		if at := slices.Index(types, saleTypes[0]); at < 2 || len(types) != 4 {
			t.Errorf("delivered %v", types)
		}
	})
	t.Run("later than anything else", func(t *testing.T) {
		r := newReceiver(t, nil)
		w := hooked(t, r, stripefake.DeliveryConfig{Fault: only(saleTypes[0], stripefake.DeliveryFault{Late: 1000})})
		w.Start(t.Context())
		sale(t, w)
		allow(t, w.Drain(t.Context()))
		if types, _, _ := r.got(t); len(types) != 4 || types[3] != saleTypes[0] {
			t.Errorf("delivered %v", types)
		}
	})
	t.Run("held until it is let go", func(t *testing.T) {
		r := newReceiver(t, nil)
		w := hooked(t, r, stripefake.DeliveryConfig{Fault: only(saleTypes[3], stripefake.DeliveryFault{Hold: true})})
		w.Start(t.Context())
		sale(t, w)
		allow(t, w.Drain(t.Context()))
		if types, _, _ := r.got(t); !slices.Equal(types, saleTypes[:3]) {
			t.Errorf("delivered %v", types)
		}
		w.ReleaseHeld()
		allow(t, w.Drain(t.Context()))
		if types, _, _ := r.got(t); !slices.Equal(types, saleTypes) {
			t.Errorf("delivered %v", types)
		}
	})
	t.Run("the answer is lost", func(t *testing.T) {
		r := newReceiver(t, nil)
		w := hooked(t, r, stripefake.DeliveryConfig{Fault: only(saleTypes[1], stripefake.DeliveryFault{LoseAnswer: true})})
		w.Start(t.Context())
		sale(t, w)
		allow(t, w.Drain(t.Context()))
		types, _, _ := r.got(t)
		n := 0
		for _, typ := range types {
			if typ == saleTypes[1] {
				n++
			}
		}
		if n != 2 || len(types) != 5 {
			t.Errorf("delivered %v", types)
		}
	})
	t.Run("shuffled", func(t *testing.T) {
		orders := map[string]bool{}
		for seed := range uint64(6) {
			r := newReceiver(t, nil)
			w := hooked(t, r, stripefake.DeliveryConfig{Shuffle: seed/2 + 1})
			sale(t, w)
			w.paid(t, "A2")
			w.Start(t.Context())
			allow(t, w.Drain(t.Context()))
			types, _, _ := r.got(t)
			if len(types) != 8 {
				t.Errorf("delivered %v", types)
			}
			orders[strings.Join(types, " ")] = true
		}
		if len(orders) < 2 || len(orders) > 3 {
			t.Errorf("three seeds, twice each, gave %d orders", len(orders))
		}
	})
}

func TestPendingWebhooksCountEndpoints(t *testing.T) {
	fine, broken := newReceiver(t, nil), newReceiver(t, func(int) int { return 500 })
	w := hooked(t, fine, stripefake.DeliveryConfig{MaxAttempts: 2})
	made := w.call(t, "POST", "/v1/webhook_endpoints", "enabled_events[]=charge.succeeded&url="+strings.ReplaceAll(broken.URL, ":", "%3A"))
	if made.status != 200 {
		t.Fatal(made.body)
	}
	sale(t, w)
	w.Start(t.Context())
	if err := w.Drain(t.Context()); err == nil {
		t.Error("drained, and one endpoint has not acknowledged")
	}
	if _, _, pending := fine.got(t); !slices.Equal(pending, []int{1, 2, 1, 1}) {
		t.Errorf("pending_webhooks %v", pending)
	}
	if types, _, pending := broken.got(t); len(types) != 2 || types[0] != "charge.succeeded" || pending[1] != 1 {
		t.Errorf("the other endpoint got %v with pending_webhooks %v", types, pending)
	}
	var e struct{ ID string }
	allow(t, json.Unmarshal([]byte(made.body), &e))
	w.call(t, "DELETE", "/v1/webhook_endpoints/"+e.ID, "")
	if list, _ := ids(t, w.call(t, "GET", "/v1/events", "delivery_success=false")); len(list) != 0 {
		t.Errorf("the endpoint is gone, and %v wait for it", list)
	}
	allow(t, w.Drain(t.Context()))
}

func TestADisabledEndpointGetsNothing(t *testing.T) {
	r := newReceiver(t, nil)
	w := hooked(t, r, stripefake.DeliveryConfig{})
	sale(t, w) // due, but nobody delivers yet
	w.call(t, "POST", "/v1/webhook_endpoints/we_configured", "disabled=true")
	w.paid(t, "A2")
	w.Start(t.Context())
	allow(t, w.Drain(t.Context()))
	if types, _, _ := r.got(t); len(types) != 0 {
		t.Errorf("delivered %v", types)
	}
	w.call(t, "POST", "/v1/webhook_endpoints/we_configured", "disabled=false")
	w.paid(t, "A3")
	allow(t, w.Drain(t.Context()))
	if types, _, _ := r.got(t); !slices.Equal(types, saleTypes) {
		t.Errorf("delivered %v", types)
	}
}

func TestAReceiverThatIsDown(t *testing.T) {
	down := newReceiver(t, nil)
	down.Close()
	waits := make(chan int, 100)
	w := hooked(t, down, stripefake.DeliveryConfig{Concurrency: 4, Backoff: func(n int) time.Duration {
		waits <- n
		return time.Hour
	}})
	w.Start(t.Context())
	sale(t, w)
	for range 4 {
		if n := <-waits; n != 1 {
			t.Errorf("waits after attempt %d", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Drain(ctx); err == nil {
		t.Error("drained")
	}
	up := newReceiver(t, nil)
	w.SetWebhook(up.URL, hookSecret)
	w.RetryNow()
	if err := w.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if types, _, _ := up.got(t); len(types) != 4 {
		t.Errorf("delivered %v", types)
	}
	for _, rec := range w.DeliveryLog()[:4] {
		if rec.Err == "" || strings.Contains(rec.Err, "webhooks/stripe") || rec.Status != 0 || rec.Acked {
			t.Errorf("%+v", rec)
		}
	}
}

func TestDrainNeedsSomebodyWhoDelivers(t *testing.T) {
	r := newReceiver(t, nil)
	w := hooked(t, r, stripefake.DeliveryConfig{})
	allow(t, w.Drain(t.Context())) // there is nothing
	sale(t, w)
	if err := w.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "Start") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.Start(ctx)
	allow(t, w.Drain(t.Context()))
	cancel()
	w.paid(t, "A2")
	for w.Drain(t.Context()) == nil { // until it has seen that ctx ended
		w.paid(t, "A3")
	}
	w.Start(t.Context())
	allow(t, w.Drain(t.Context()))
	w.Close()
	w.Start(t.Context())
	w.paid(t, "A4")
	if w.Drain(t.Context()) == nil {
		t.Error("a closed server delivers")
	}
}

func TestRandomDeliveriesAllArriveButTheDropped(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 8
	}
	r := newReceiver(t, func(n int) int { return map[bool]int{true: 503, false: 200}[n%7 == 0] })
	w := hooked(t, r, stripefake.DeliveryConfig{Concurrency: 3, Shuffle: 5, Fault: stripefake.RandomDeliveryFaults(3, stripefake.DeliveryChances{
		Drop: .1, Double: .2, Late: .2, LoseAnswer: .1,
	})})
	w.Start(t.Context())
	for i := range n {
		w.paid(t, fmt.Sprint("A", i))
	}
	allow(t, w.Drain(t.Context()))
	_, arrived, _ := r.got(t)
	dropped := map[string]bool{}
	for _, rec := range w.DeliveryLog() {
		if rec.Attempt == 0 {
			dropped[rec.Event] = true
		}
	}
	if len(dropped) == 0 || len(arrived) <= 4*n-len(dropped) {
		t.Errorf("%d dropped, %d arrived: the faults never came", len(dropped), len(arrived))
	}
	for _, e := range w.Events() {
		if slices.Contains(arrived, e.ID) == dropped[e.ID] {
			t.Errorf("%s: dropped %t", e, dropped[e.ID])
		}
	}
}
