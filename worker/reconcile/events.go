package reconcile

import (
	"context"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/worker/stripeapi"
)

// events is the event pass: every list of the run to its end, page by page, and
// then coverage. fresh says that something new came in.
func (r *Reconciler) events(ctx context.Context, run store.Run) (fresh bool, err error) {
	for _, w := range run.Sweeps {
		if err := r.sweep(ctx, run.ID, w); err != nil {
			return false, err
		}
	}
	return len(run.Sweeps) > 0, r.cfg.Store.EndEvents(ctx, run.ID)
}

func (r *Reconciler) sweep(ctx context.Context, run int64, w store.Sweep) error {
	restarted := false
	for done := false; !done; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		page, err := attempts(ctx, func() (stripeapi.Page, error) {
			return r.cfg.Stripe.ListEvents(ctx, w.Source.Account, w.Types, stripeapi.Span{Since: w.Since, Until: w.Until}, w.After)
		})
		if err != nil && stripeapi.CursorGone(err) && w.After != "" && !restarted {
			// The event there is older now than what is listed, or was erased.
			restarted = true
			if w, err = r.cfg.Store.RestartSweep(ctx, w); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if w, done, err = r.cfg.Store.TakePage(ctx, run, w, pageOf(w.Source, page)); err != nil {
			return err
		}
		r.cfg.Wake() // the inbox need not wait for the last page
	}
	return nil
}

// pageOf makes deliveries of a page's events: each under the name and in the
// scope of the account whose list it stands in.
func pageOf(src store.ReconcileSource, page stripeapi.Page) store.EventPage {
	p := store.EventPage{More: page.More, Date: page.Date}
	for i, raw := range page.Items {
		p.Last = page.IDs[i]
		env := payment.ParseEnvelope(raw)
		if env.HasLivemode && env.Livemode != src.Live {
			continue // of the other mode: no key of ours lists those
		}
		p.Events = append(p.Events, store.NewEvent{
			Scope: src.Scope, ID: page.IDs[i], Source: src.Name, Tenant: src.Tenant, Via: "reconcile",
			Type: env.Type, APIVersion: env.APIVersion, OccurredAt: store.Time(env.Created), Body: raw,
		})
	}
	return p
}
