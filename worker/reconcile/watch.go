package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"paidonce/store"
	"paidonce/worker/stripeapi"
)

// Watcher is what keeps what the watch has found, for the alerts.
type Watcher interface {
	Find(ctx context.Context, name string, found []store.Finding) error
}

// Endpoints is what tells how the webhook endpoints are configured at Stripe.
type Endpoints interface {
	WebhookEndpoints(ctx context.Context) ([]stripeapi.Endpoint, store.Time, error)
}

const (
	// clockOff is how far this machine's clock may be from Stripe's: at five
	// minutes webhooks are refused.
	clockOff = time.Minute
	// unreachedFor is how long Stripe may not be asked with success.
	unreachedFor = time.Hour
	// oldVersion: bodies of API versions before it have shapes of their own
	// (stripe.md §3.1); they are read, but refunds are known from charges only.
	oldVersion = "2022-11-15"
)

// needed are the types without which the state of orders is late or wrong. An
// endpoint that lacks one works only by reconciliation.
var needed = []string{
	"checkout.session.completed", "checkout.session.async_payment_succeeded", "checkout.session.async_payment_failed",
	"payment_intent.succeeded", "payment_intent.payment_failed", "charge.refunded", "refund.failed",
	"charge.dispute.created", "charge.dispute.closed",
}

// watch looks at what is around the webhooks: the endpoints as Stripe has them,
// and the clock. With a key that may not read endpoints it looks at none.
func (r *Reconciler) watch(ctx context.Context) {
	if r.cfg.Watcher == nil || r.cfg.Endpoints == nil {
		return
	}
	endpoints, date, err := r.cfg.Endpoints.WebhookEndpoints(ctx)
	if err != nil {
		r.cfg.Log.DebugContext(ctx, "reconcile: endpoints not read", "err", err)
		return
	}
	r.find(ctx, store.AlertClock, ClockFindings(r.cfg.Now(), date))
	var found []store.Finding
	for _, src := range r.cfg.Sources {
		found = append(found, EndpointFindings(src, endpoints)...)
	}
	r.find(ctx, store.AlertEndpoint, found)
}

func (r *Reconciler) find(ctx context.Context, name string, found []store.Finding) {
	if r.cfg.Watcher == nil {
		return
	}
	if err := r.cfg.Watcher.Find(ctx, name, found); err != nil && ctx.Err() == nil {
		r.cfg.Log.WarnContext(ctx, "reconcile: what was found is not noted", "alert", name, "err", err)
	}
}

// ClockFindings says how far this machine's clock is from Stripe's, if it is too
// far; date 0 is unknown.
func ClockFindings(now time.Time, date store.Time) []store.Finding {
	if date == 0 {
		return nil
	}
	off, way := now.Sub(date.Std()), "ahead of"
	if off < 0 {
		off, way = -off, "behind"
	}
	if off <= clockOff {
		return nil
	}
	// In steps, so that a clock that drifts is not news each time.
	return []store.Finding{{Thing: "clock", Text: fmt.Sprintf("it is more than %s %s Stripe's", clockStep(off), way)}}
}

func clockStep(off time.Duration) string {
	step := clockOff
	for _, s := range []time.Duration{5 * time.Minute, time.Hour, 24 * time.Hour} {
		if off > s {
			step = s
		}
	}
	return strings.TrimSuffix(strings.TrimSuffix(step.String(), "0s"), "0m")
}

// EndpointFindings says what is wrong with the endpoints that lead to a source:
// those whose address ends with its path. Several are fine: one event through
// both is one row.
func EndpointFindings(src Source, endpoints []stripeapi.Endpoint) []store.Finding {
	var found []store.Finding
	leading := 0
	for _, e := range endpoints {
		if !strings.HasSuffix(e.URL, "/webhooks/"+src.Name) {
			continue
		}
		leading++
		var wrong []string
		if e.Status != "enabled" {
			wrong = append(wrong, "it is disabled")
		}
		if e.Livemode != src.Live {
			wrong = append(wrong, "it is of the other mode")
		}
		if e.APIVersion != "" && e.APIVersion < oldVersion {
			wrong = append(wrong, "its API version is of before "+oldVersion+": make a new endpoint with a later one")
		}
		if missing := missingTypes(e.EnabledEvents); len(missing) > 0 {
			wrong = append(wrong, "it does not send "+strings.Join(missing, ", "))
		}
		if len(wrong) > 0 {
			found = append(found, store.Finding{Thing: e.ID, Text: strings.Join(wrong, "; ")})
		}
	}
	if leading == 0 && src.Live {
		// In a sandbox `stripe listen` brings events without an endpoint.
		found = append(found, store.Finding{Thing: "source " + src.Name, Text: "no endpoint at Stripe ends with /webhooks/" + src.Name})
	}
	return found
}

func missingTypes(enabled []string) []string {
	if slices.Contains(enabled, "*") {
		return nil
	}
	var missing []string
	for _, t := range needed {
		if !slices.Contains(enabled, t) {
			missing = append(missing, t)
		}
	}
	return missing
}
