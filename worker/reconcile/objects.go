package reconcile

import (
	"context"
	"encoding/json"
	"errors"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/worker/stripeapi"
)

// objects is the object pass and the sums: what Stripe lists of the run's span
// is compared with the facts and the books; what differs, and what is due for a
// look, is fetched by id. If that brought something in, the sums are made again.
func (r *Reconciler) objects(ctx context.Context, run store.Run, sources []store.ReconcileSource) error {
	differ, err := r.sums(ctx, run, sources)
	if err != nil {
		return err
	}
	limit := perRun
	if run.Everything {
		limit = perRunAsked
	}
	due, err := r.cfg.Store.Checkups(ctx, sources, run.Everything, limit)
	if err != nil {
		return err
	}
	changed, asked := false, map[string]bool{}
	for _, c := range append(due, differ...) {
		if asked[c.Object] {
			continue
		}
		asked[c.Object] = true
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		brought, err := r.check(ctx, run.ID, c)
		if err != nil {
			return err
		}
		changed = changed || brought
	}
	if !changed {
		return nil
	}
	r.settle(ctx)
	_, err = r.sums(ctx, run, sources)
	return err
}

// check fetches one object and hands it to the store; of money that no order
// claims also its sessions, one of which may name the order.
func (r *Reconciler) check(ctx context.Context, run int64, c store.Checkup) (brought bool, err error) {
	account := c.Source.Account
	object, err := attempts(ctx, func() (store.ObjectCopy, error) { return r.cfg.Stripe.Fetch(ctx, account, c.Kind, c.Object) })
	switch {
	case errors.Is(err, stripeapi.ErrGone):
		return false, r.cfg.Store.CopyGone(ctx, run, c)
	case err != nil:
		return false, err
	}
	copies := []store.ObjectCopy{object}
	if c.Why == store.WhyUnlinked {
		sessions, err := attempts(ctx, func() ([]store.ObjectCopy, error) { return r.cfg.Stripe.SessionsOf(ctx, account, c.Object) })
		if err != nil {
			return false, err
		}
		copies = append(copies, sessions...)
	}
	for _, o := range copies {
		if o.Date == 0 {
			o.Date = store.At(r.cfg.Now())
		}
		how, err := r.cfg.Store.TakeCopy(ctx, run, c, o)
		if err != nil {
			return false, err
		}
		brought = brought || how == store.ComparedDiffers
	}
	return brought, nil
}

// moneyKinds are the objects whose amounts make up the sums.
var moneyKinds = []payment.Kind{payment.KindCharge, payment.KindRefund, payment.KindDispute}

// sums lists what Stripe created in the run's span and compares it with the
// books. It returns what is worth fetching.
func (r *Reconciler) sums(ctx context.Context, run store.Run, sources []store.ReconcileSource) ([]store.Checkup, error) {
	if err := r.cfg.Store.ClearSums(ctx, run.ID); err != nil {
		return nil, err
	}
	var differ []store.Checkup
	span := stripeapi.Span{Since: run.Since, Until: run.Until}
	for _, src := range sources {
		for _, kind := range moneyKinds {
			for after, more := "", true; more; {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				page, err := attempts(ctx, func() (stripeapi.Page, error) {
					return r.cfg.Stripe.ListObjects(ctx, src.Account, kind, span, after)
				})
				if err != nil {
					return nil, err
				}
				listed := r.listed(kind, page)
				found, err := r.cfg.Store.Compare(ctx, run.ID, src, listed)
				if err != nil {
					return nil, err
				}
				if differ = append(differ, found...); len(differ) > perRunAsked {
					differ = differ[:perRunAsked]
				}
				if more = page.More; more {
					after = page.IDs[len(page.IDs)-1]
				}
			}
		}
	}
	return differ, nil
}

func (r *Reconciler) listed(kind payment.Kind, page stripeapi.Page) []store.Listed {
	date := page.Date
	if date == 0 {
		date = store.At(r.cfg.Now())
	}
	var out []store.Listed
	for i, raw := range page.Items {
		var made struct {
			Created int64 `json:"created"`
		}
		_ = json.Unmarshal(raw, &made) // what has none is of 1970, and looks like it
		out = append(out, store.Listed{Copy: stripeapi.CopyOf(kind, page.IDs[i], raw, date), Created: store.Time(made.Created * 1000)})
	}
	return out
}
