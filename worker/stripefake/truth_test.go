package stripefake_test

import (
	"cmp"
	"slices"
	"strings"

	"paidonce/worker/stripefake"
)

// truth is one payment as the events that were sent tell of it.
type truth struct {
	key       string
	ids       []string // every object that belongs to it
	names     []string // the order ids that it speaks
	session   *stripefake.Session
	intent    *stripefake.Intent
	charges   []stripefake.Charge
	refunds   []stripefake.Refund
	disputes  []stripefake.Dispute
	money     stripefake.Money
	free      bool
	freeAt    int64
	ambiguous bool
}

func (p truth) currency() string {
	switch {
	case p.intent != nil:
		return p.intent.Currency
	case len(p.charges) > 0:
		return p.charges[0].Currency
	}
	return p.session.Currency
}

func (p truth) settled() bool { return p.money.Received > 0 || p.free }

func (p truth) paidAt() int64 {
	if p.free {
		return p.freeAt
	}
	return p.money.ReceivedAt
}

// back is what disputes have taken of what the payment brought.
func (p truth) back() int64 { return min(p.money.Taken, p.money.Received) }

func (p truth) left() int64 { return p.money.Received - p.money.Refunded - p.back() }

func (p truth) fullyRefunded() bool {
	return p.money.Received > 0 && p.money.Refunded >= p.money.Received
}

// truths are the payments that the life's events tell of.
func truths(l stripefake.Life) []truth {
	a := l.Account
	told := map[string][]stripefake.Event{} // by object
	for _, e := range l.Events {
		told[e.Object] = append(told[e.Object], e)
	}
	byKey := map[string]*truth{}
	at := func(key string) *truth {
		if byKey[key] == nil {
			byKey[key] = &truth{key: key, money: l.Ledger.Of(key)}
		}
		return byKey[key]
	}
	for id, events := range told {
		if s, ok := a.FindSession(id); ok {
			p := at(cmp.Or(s.Intent, id))
			p.session = &s
			p.free = s.Mode == "payment" && s.Status == stripefake.SessionComplete && s.Pricing.Total() == 0
			p.freeAt = events[0].Created
			p.ids = append(p.ids, id)
			if s.Link == "" {
				p.names = append(p.names, s.Metadata["order_id"], s.Reference)
			}
		}
		if pi, ok := a.FindIntent(id); ok {
			p := at(id)
			p.intent, p.ambiguous = &pi, outOfOrder(events)
			p.ids = append(append(p.ids, id), pi.Charges...)
			p.names = append(p.names, pi.Metadata["order_id"])
		}
		if c, ok := a.FindCharge(id); ok {
			p := at(c.Payment())
			p.charges = append(p.charges, c)
			p.ids = append(p.ids, id)
			p.names = append(p.names, c.Metadata["order_id"])
		}
		if r, ok := a.FindRefund(id); ok {
			c, _ := a.FindCharge(r.Charge)
			p := at(c.Payment())
			p.refunds = append(p.refunds, r)
			p.ids = append(p.ids, id)
		}
		if d, ok := a.FindDispute(id); ok {
			c, _ := a.FindCharge(d.Charge)
			p := at(c.Payment())
			p.disputes = append(p.disputes, d)
			p.ids = append(p.ids, id)
		}
	}
	var all []truth
	for _, p := range byKey {
		// A Classic account tells of a refund under way by amount_refunded
		// alone: whoever listens takes it for done.
		for _, c := range p.charges {
			for _, id := range c.Refunds {
				if r, _ := a.FindRefund(id); len(told[id]) == 0 && r.Status == stripefake.RefundPending {
					p.money.Pending -= r.Amount
					p.money.Refunded += r.Amount
				}
			}
		}
		if p.session != nil && p.session.Link != "" {
			p.names = nil
		}
		p.names = slices.DeleteFunc(p.names, func(n string) bool { return n == "" })
		all = append(all, *p)
	}
	slices.SortFunc(all, func(x, y truth) int { return strings.Compare(x.key, y.key) })
	return all
}

// outOfOrder reports whether nobody can tell which of an intent's events came
// last: below a hold Stripe moves both ways, and of one second only a failure
// stands out before processing, and that before all else.
func outOfOrder(events []stripefake.Event) bool {
	rank := map[string]int{"payment_intent.processing": 1, "payment_intent.payment_failed": 2}
	for i := range events[1:] {
		a, b := events[i], events[i+1]
		if a.Created > b.Created || a.Created == b.Created && rank[a.Type] > rank[b.Type] {
			return true
		}
	}
	return false
}
