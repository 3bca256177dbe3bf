package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/worker/stripefake"
)

// paidAtStripe starts the service beside a Stripe of its own, with one order
// that was paid there.
func paidAtStripe(t *testing.T) (context.Context, *demo, *stripeOutside, string) {
	t.Helper()
	out := &stripeOutside{}
	ctx, d := startDemoWith(t, out.setUp)
	d.world = &demoWorld{stripe: out.fake}
	s, err := d.register(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.payAtStripe(ctx, s.order); err != nil {
		t.Fatal(err)
	}
	for _, e := range out.fake.Events() {
		if _, err := d.settled(ctx, e.ID); err != nil {
			t.Fatal(err)
		}
	}
	return ctx, d, out, s.order
}

// askRefund asks the service for a refund and returns its effect.
func (d *demo) askRefund(ctx context.Context, t *testing.T, order, request string, amount int64) store.Effect {
	t.Helper()
	var e store.Effect
	status, err := d.api(ctx, http.MethodPost, "/v1/orders/"+order+"/refund", map[string]any{"request_id": request, "amount_minor": amount}, &e)
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("refund %s: %d, %v", request, status, err)
	}
	return e
}

// TestTwoRequestsAreTwoRefundsAndOneRequestIsOne: across restarts, after an
// answer was lost, and with a person who asks again and again.
func TestTwoRequestsAreTwoRefundsAndOneRequestIsOne(t *testing.T) {
	ctx, d, out, order := paidAtStripe(t)
	out.fake.FaultNext("POST /v1/refunds",
		stripefake.Fault{Kind: stripefake.ClosedAfter},   // the answer of r-1 is lost
		stripefake.Fault{Kind: stripefake.GatewayBefore}) // and its second try comes to nothing
	first := d.askRefund(ctx, t, order, "r-1", 400)
	for i := range 10 {
		if e := d.askRefund(ctx, t, order, "r-1", 400); e.ID != first.ID || e.IdempotencyKey != first.IdempotencyKey {
			t.Fatalf("asked again it is %+v; was %+v", e, first)
		}
		if i == 3 {
			d.kill()
			if err := d.start(ctx, demoChild{}); err != nil {
				t.Fatal(err)
			}
		}
		if i == 6 {
			if err := d.restart(ctx, demoChild{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	second := d.askRefund(ctx, t, order, "r-2", 400) // as much as the first
	if _, err := d.effectsDone(ctx, order, 2); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{}
	for _, e := range []store.Effect{first, second} {
		made := out.fake.RefundsWith("paidonce_operation", e.IdempotencyKey)
		if len(made) != 1 || made[0].Amount != 400 {
			t.Errorf("%s: Stripe made %+v; want one of 400", e.Operation, made)
			continue
		}
		refs[made[0].ID] = true
	}
	if len(refs) != 2 {
		t.Errorf("%d refunds", len(refs))
	}
	var again struct{ Error struct{ Code string } }
	status, err := d.api(ctx, http.MethodPost, "/v1/orders/"+order+"/refund", map[string]any{"request_id": "r-1", "amount_minor": 401}, &again)
	if status != http.StatusConflict || err != nil {
		t.Errorf("the same request for another amount: %d, %v; want 409", status, err)
	}
	checkFile(t, d, nil)
}

// TestAJSON500IsLookedUpBeforeAnythingElse: Stripe replays a 500 for its key,
// whether the work was done or not.
func TestAJSON500IsLookedUpBeforeAnythingElse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault stripefake.FaultKind
		// generation is what the key has behind it in the end.
		generation string
		slow       bool // two look-ups, ten seconds apart
	}{
		{"the work was done", stripefake.ErrorAfter, "", false},
		{"nothing was done", stripefake.ErrorBefore, "_2", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.slow && testing.Short() {
				t.Skip("it waits ten seconds between two look-ups")
			}
			ctx, d, out, order := paidAtStripe(t)
			out.fake.FaultNext("POST /v1/refunds", stripefake.Fault{Kind: tt.fault})
			asked := d.askRefund(ctx, t, order, "r-1", 500)
			e := d.effectAtRest(ctx, t, order)
			if e.Status != "done" || e.IdempotencyKey != asked.IdempotencyKey+tt.generation {
				t.Errorf("%s under %s; want done under %s%s", e.Status, e.IdempotencyKey, asked.IdempotencyKey, tt.generation)
			}
			made := out.fake.RefundsWith("paidonce_operation", asked.IdempotencyKey)
			if len(made) != 1 || made[0].ID != e.ProviderRef {
				t.Errorf("Stripe made %+v, and the effect tells of %s", made, e.ProviderRef)
			}
			var story []string
			for _, a := range e.History {
				story = append(story, fmt.Sprint(a.Outcome, " ", a.LookUp))
			}
			want := "unknown false, done true"
			if tt.slow {
				want = "unknown false, absent true, absent true, done false"
			}
			got := strings.Join(story, ", ")
			if !tt.slow && e.Reason == "learned from Stripe's event" {
				want = "unknown false" // its webhook was faster than the look-up
			}
			if got != want {
				t.Errorf("its attempts were %s; want %s", got, want)
			}
		})
	}
}
