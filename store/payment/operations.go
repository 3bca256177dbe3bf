package payment

import (
	"cmp"
	"slices"
)

// operations applies rule 6: the business acts that should exist by now. They
// are in the order of what proves them, so that effects in one lane follow the
// story; on the same instant in the order of the list below.
func (d *derivation) operations() []Operation {
	var ops []Operation
	should := func(name string, at Millis) {
		ops = append(ops, Operation{Name: name, OccurredAt: at})
	}
	switch d.out.Status {
	case StatusProcessing:
		should("order.processing", d.latest(KindSession, KindPaymentIntent))
	case StatusPaymentFailed:
		should("order.payment_failed", d.latest(KindSession, KindPaymentIntent, KindCharge))
	case StatusExpired:
		should("order.expired", d.latest(KindSession))
	}
	if d.closed() {
		should("order.canceled", d.order.ClosedAt)
	}
	switch {
	case d.order.FulfilAt != 0 && !d.gone():
		should("order.paid", d.order.FulfilAt)
	case d.covered() && !d.openDispute() && !d.closed():
		should("order.paid", d.coveredSince())
	}
	for _, t := range d.payments {
		for _, f := range t.disputes {
			if opened(f) {
				should("dispute.opened:"+f.ID, f.Sticky.ProvenAt)
			}
		}
		for _, f := range t.refunds {
			switch {
			case f.Snapshot.Status == refundFailed:
				should("refund.failed:"+f.ID, f.Rank.Created)
			case t.counted[f.ID] > 0:
				should("refund.succeeded:"+f.ID, f.Sticky.ProvenAt)
			}
		}
		for _, f := range t.disputes {
			if f.Rank.Class == classDisputeClosed {
				should("dispute.closed:"+f.ID+":"+f.Snapshot.Status, f.Rank.Created)
			}
		}
	}
	if d.out.Status == StatusRefunded {
		should("order.refunded", d.latest(KindRefund, KindCharge))
	}
	slices.SortStableFunc(ops, func(a, b Operation) int { return cmp.Compare(a.OccurredAt, b.OccurredAt) })
	return ops
}

// covered reports whether money that is accepted and not given back covers what
// is due. A free session covers an order with nothing due.
func (d *derivation) covered() bool {
	if len(d.live) == 0 {
		return false
	}
	var left int64
	for _, t := range d.live {
		left = add(left, t.left())
	}
	return left >= d.out.DueMinor
}

// coveredSince is when the first of the money came that the order still holds.
func (d *derivation) coveredSince() Millis {
	for _, t := range d.live {
		if t.left() > 0 {
			return t.provenAt
		}
	}
	return d.live[0].provenAt // free
}

// gone reports whether all the money that there was went back: then a person's
// word to fulfil has lost its reason.
func (d *derivation) gone() bool {
	return d.out.Status == StatusRefunded || d.out.Status == StatusChargedBack
}

// opened reports whether a dispute is or was a real one. An inquiry that was
// closed, and a dispute that was prevented, never took the shop to account.
func opened(f Fact) bool {
	return f.isOpen() || f.Snapshot.Status == disputeWon || f.Snapshot.Status == disputeLost
}

// latest is the newest event among the facts of some kinds: when a status that
// rests on all of them came about.
func (d *derivation) latest(kinds ...Kind) Millis {
	var at Millis
	for _, t := range d.payments {
		for _, f := range t.facts {
			if slices.Contains(kinds, f.Kind) {
				at = max(at, f.Rank.Created)
			}
		}
	}
	return at
}
