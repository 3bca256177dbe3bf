package payment

import (
	"cmp"
	"slices"
	"strings"
)

// Derive is what an order comes to: its status, its numbers, the entries of the
// books and the operations that should exist. It knows no clock and no previous
// state, so it gives the same for the same facts, in whatever order and however
// often they were learned.
//
// linked are the facts of all payments that this one order claims. conflicted
// are those of payments that name this order among others: they make an
// attention and move nothing here. With o nil, linked is what no order claims,
// and all of its money stands in suspense.
//
// Money without a currency (a refund that names none, of a payment nobody knows
// yet) is in no account until its payment is learned.
func Derive(o *Order, linked, conflicted []Fact) Outcome {
	d := derivation{order: o}
	for _, group := range Group(linked) {
		t := newTally(group)
		t.judge(o)
		d.payments = append(d.payments, t)
		if t.Accepted {
			d.accepted = append(d.accepted, t)
		}
	}
	slices.SortFunc(d.accepted, compareByProof)
	for _, t := range d.accepted {
		if !t.fullyRefunded() {
			d.live = append(d.live, t)
		}
	}
	d.out.Balances = balances(d.payments)
	for _, t := range d.payments {
		d.out.Payments = append(d.out.Payments, t.Payment)
	}
	if o != nil {
		d.count()
		d.out.Status = d.status()
		d.out.Operations = d.operations()
		d.out.Attention = d.attention(Group(conflicted))
	}
	return d.out
}

// derivation is one order's payments while they are counted together.
type derivation struct {
	order    *Order
	payments []*tally // all that the order claims
	accepted []*tally // those that it counts, the first paid first
	live     []*tally // of these, those that are not fully refunded
	out      Outcome
}

// compareByProof puts payments in the order in which the money came, by
// Stripe's word, not by when it was learned.
func compareByProof(a, b *tally) int {
	never := func(t *tally) int {
		if t.provenAt == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(never(a), never(b)),
		cmp.Compare(a.provenAt, b.provenAt),
		strings.Compare(a.Key.Scope, b.Key.Scope),
		strings.Compare(a.Key.Object, b.Key.Object),
	)
}

// count fills in the order's numbers.
func (d *derivation) count() {
	out := &d.out
	for _, t := range d.accepted {
		out.ReceivedMinor = add(out.ReceivedMinor, t.ReceivedMinor)
		out.RefundedMinor = add(out.RefundedMinor, t.RefundedMinor)
		out.RefundPendingMinor = add(out.RefundPendingMinor, t.RefundPendingMinor)
		out.ChargedBackMinor = add(out.ChargedBackMinor, t.ChargedBackMinor)
		out.PaidAt = earliest(out.PaidAt, t.provenAt)
	}
	for _, b := range out.Balances {
		if b.Account == AccountSuspense && b.Currency == d.order.Currency {
			out.SuspenseMinor = add(out.SuspenseMinor, b.AmountMinor)
		}
	}
	out.DueMinor = d.order.TotalMinor
	switch {
	case len(d.live) > 0:
		out.DueMinor = d.live[0].due
	case len(d.accepted) > 0:
		out.DueMinor = d.accepted[0].due
	}
	if len(d.accepted) > 0 {
		out.ProviderPayment = d.accepted[0].Key.Object
		out.DueReceived = true // to accept a payment is to say that it brought what was due
	}
	out.FullyRefunded = len(d.live) == 0 && len(d.accepted) > 0
}
