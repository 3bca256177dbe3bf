package payment

import (
	"math"
	"slices"
)

// tally is one payment counted up: what its facts come to before anybody asks
// which order they belong to.
type tally struct {
	Payment
	facts                                         []Fact // by id
	sessions, intents, charges, refunds, disputes []Fact // the same, by kind

	// settled: a body proves what was paid, be it nothing (a free session).
	settled bool
	free    bool
	// contradiction says which facts cannot both be true; "" is none.
	contradiction string
	// provenAt is the earliest event that proves the money; 0 is never.
	provenAt Millis
	// due is what the payment had to bring, once it is accepted; difference says
	// whether an amount that was not accepted is too low (-1) or too high (1).
	due        int64
	difference int
	// lines are what the books say of it: in the account named when the payment
	// is accepted, in suspense when it is not.
	lines []Balance
	// counted are the refunds that gave money back, with the amount of each.
	counted map[string]int64
}

// newTally counts a group up.
func newTally(group []Fact) *tally {
	t := &tally{facts: group}
	t.Key = KeyOf(group)
	for _, f := range group {
		t.Objects = append(t.Objects, f.ID)
		switch f.Kind {
		case KindSession:
			t.sessions = append(t.sessions, f)
		case KindPaymentIntent:
			t.intents = append(t.intents, f)
		case KindCharge:
			t.charges = append(t.charges, f)
		case KindRefund:
			t.refunds = append(t.refunds, f)
		case KindDispute:
			t.disputes = append(t.disputes, f)
		}
	}
	t.findContradiction()
	t.countReceived()
	t.countRefunds()
	t.countDisputes()
	return t
}

// findContradiction looks for facts that cannot both be true at Stripe.
func (t *tally) findContradiction() {
	for _, f := range t.facts {
		switch {
		case f.Sticky.Clash:
			t.contradiction = f.ID + " was seen as objects of different kinds"
		case f.Sticky.Complete && f.Sticky.Expired:
			t.contradiction = f.ID + " was both complete and expired"
		case f.Sticky.Succeeded && f.Sticky.Canceled:
			t.contradiction = f.ID + " was both succeeded and canceled"
		}
	}
}

// countReceived applies rule 1: the amount_received of a succeeded payment
// intent; until that is known, what was captured of its charges; until that is
// known, the amount_total of a paid session. A free session brings nothing, and
// proves it.
func (t *tally) countReceived() {
	var sources []Fact
	sum := func(facts []Fact, amount func(f Fact) Amount) {
		if t.settled {
			return
		}
		for _, f := range facts {
			if a := amount(f); a.Known {
				t.settled = true
				t.ReceivedMinor = add(t.ReceivedMinor, a.Minor)
				sources = append(sources, f)
			}
		}
	}
	sum(t.intents, func(f Fact) Amount {
		if f.Sticky.Succeeded {
			return f.Sticky.Received
		}
		return Amount{}
	})
	sum(t.charges, func(f Fact) Amount {
		if f.Rank.Class == classChargeCaptured {
			return f.Sticky.Captured
		}
		return Amount{}
	})
	sum(t.sessions, func(f Fact) Amount {
		if f.paidSession() {
			return f.Snapshot.Amount
		}
		return Amount{}
	})
	if !t.settled || t.ReceivedMinor == 0 {
		for _, f := range t.sessions {
			if f.freeSession() {
				t.settled, t.free = true, true
				sources = append(sources, f)
			}
		}
	}
	t.Currency = t.findCurrency(sources)
	for _, facts := range [][]Fact{t.intents, t.charges, t.sessions} {
		for _, f := range facts {
			t.provenAt = earliest(t.provenAt, f.Sticky.ProvenAt)
		}
	}
	if t.ReceivedMinor != 0 {
		t.book(t.Key.Object, AccountSales, t.ReceivedMinor, t.Currency, t.provenAt)
	}
}

// findCurrency is the currency of what brought the money, else of the first
// object that names one, the more telling kinds first.
func (t *tally) findCurrency(sources []Fact) string {
	for _, facts := range [][]Fact{sources, t.intents, t.charges, t.sessions, t.refunds, t.disputes} {
		for _, f := range facts {
			if f.Snapshot.Currency != "" {
				return f.Snapshot.Currency
			}
		}
	}
	return ""
}

// captured is what can be refunded at most, if that is known. It is nothing
// where a hold was let go: Stripe shows that as a refund too, and no money
// moves.
func (t *tally) captured() Amount {
	if t.settled {
		return Minor(t.ReceivedMinor)
	}
	for _, f := range t.intents {
		if f.Sticky.Canceled {
			return Minor(0)
		}
	}
	for _, f := range t.charges {
		if f.Rank.Class == classChargeHold {
			return Minor(0)
		}
	}
	return Amount{}
}

// countRefunds applies rule 3: refunds that succeeded, plus what a charge's
// amount_refunded shows beyond all refunds that are known by themselves and
// beyond the release of what was never captured. Together they cannot exceed
// what was captured: what does is such a release.
func (t *tally) countRefunds() {
	t.counted = make(map[string]int64)
	limit := t.captured()
	room := func(n int64) int64 {
		if limit.Known {
			n = min(n, limit.Minor-t.RefundedMinor)
		}
		return max(n, 0)
	}
	for _, f := range t.refunds {
		if f.Snapshot.Released {
			continue
		}
		switch {
		case f.Snapshot.Status == refundSucceeded:
			if other := f.Snapshot.Currency; other != "" && other != t.Currency {
				// Stripe refunds in the charge's currency. Should it ever not,
				// the money is not lost sight of, but it is no order's either.
				t.bookSuspense(f.ID, -f.Snapshot.Amount.Minor, other, f.Sticky.ProvenAt)
				continue
			}
			n := room(f.Snapshot.Amount.Minor)
			if n == 0 {
				continue
			}
			t.counted[f.ID] = n
			t.RefundedMinor = add(t.RefundedMinor, n)
			t.book(f.ID, AccountRefunds, -n, t.Currency, f.Sticky.ProvenAt)
		case f.underWay():
			t.RefundPendingMinor = add(t.RefundPendingMinor, f.Snapshot.Amount.Minor)
		}
	}
	for _, c := range t.charges {
		n := room(t.unexplained(c))
		if n == 0 {
			continue
		}
		t.RefundedMinor = add(t.RefundedMinor, n)
		t.book(c.ID, AccountRefunds, -n, t.Currency, c.Rank.Created)
	}
}

// unexplained is what a charge shows as refunded beyond the refunds that are
// known, whatever became of those: amount_refunded may still hold one that
// failed since.
func (t *tally) unexplained(c Fact) int64 {
	n := c.Snapshot.Refunded.Minor
	switch c.Rank.Class {
	case classChargeCaptured:
		if c.Snapshot.Amount.Known {
			n -= max(0, c.Snapshot.Amount.Minor-c.Sticky.Captured.Minor)
		}
	case classUnseen:
		if !t.settled {
			return 0 // it may be the release of a hold
		}
	default:
		return 0 // nothing was captured
	}
	for _, f := range t.refunds {
		known := f.Rank.Class != classUnseen && !f.Snapshot.Released
		if known && (f.Sticky.Charge == c.ID || f.Sticky.Charge == "") {
			n = add(n, -f.Snapshot.Amount.Minor)
		}
	}
	return n
}

// countDisputes applies rule 4: what disputes have taken and not returned,
// whatever their verdict. What they took beyond what the payment brought is
// booked apart, in suspense.
func (t *tally) countDisputes() {
	limit := t.ReceivedMinor
	for _, f := range t.disputes {
		taken := int64(0)
		for currency, n := range disputeMoney(f, t.Currency) {
			if currency == t.Currency {
				taken = add(taken, -n)
			} else if n != 0 {
				t.bookSuspense(f.ID, n, currency, disputeMovedAt(f))
			}
		}
		if taken == 0 {
			continue
		}
		within := min(max(taken, 0), limit-t.ChargedBackMinor)
		t.ChargedBackMinor += within
		if within != 0 {
			t.book(f.ID, AccountDisputes, -within, t.Currency, disputeMovedAt(f))
		}
		if taken != within {
			t.bookSuspense(f.ID, within-taken, t.Currency, disputeMovedAt(f))
		}
	}
}

// disputeMoney is what a dispute has moved, by currency; money out is negative.
// A transaction in another currency than the payment's (the account settles in
// it) counts as the dispute's own amount, if that is in the payment's.
//
// A body from before the list of transactions moves the dispute's own amount
// once it is lost. A list that is there and empty moves nothing.
func disputeMoney(f Fact, currency string) map[string]int64 {
	own := f.Snapshot.Currency
	if own == "" {
		own = currency
	}
	money := make(map[string]int64)
	if !f.Sticky.Listed && f.Snapshot.Status == disputeLost {
		money[own] = -f.Snapshot.Amount.Minor
	}
	for _, x := range f.Sticky.Transactions {
		in := x.Currency
		if in == "" {
			in = own
		}
		n := x.Amount
		if in != currency && own == currency {
			in = own
			switch {
			case n < 0:
				n = -f.Snapshot.Amount.Minor
			case n > 0:
				n = f.Snapshot.Amount.Minor
			}
		}
		money[in] = add(money[in], n)
	}
	return money
}

// disputeMovedAt is when a dispute's money is taken to have moved: when it
// opened, as far as that is known.
func disputeMovedAt(f Fact) Millis {
	if f.Sticky.ProvenAt != 0 {
		return f.Sticky.ProvenAt
	}
	return f.Rank.Created
}

// lost reports whether a dispute of the payment was lost.
func (t *tally) lost() bool {
	return slices.ContainsFunc(t.disputes, func(f Fact) bool { return f.Snapshot.Status == disputeLost })
}

// openDisputes are the disputes that still run.
func (t *tally) openDisputes() []Fact {
	var open []Fact
	for _, f := range t.disputes {
		if f.isOpen() {
			open = append(open, f)
		}
	}
	return open
}

// fullyRefunded reports whether all that the payment brought went back.
func (t *tally) fullyRefunded() bool {
	return t.ReceivedMinor > 0 && t.RefundedMinor >= t.ReceivedMinor
}

// left is what remains of the payment.
func (t *tally) left() int64 { return t.ReceivedMinor - t.RefundedMinor - t.ChargedBackMinor }

func (t *tally) book(object string, account Account, amount int64, currency string, at Millis) {
	t.lines = append(t.lines, Balance{
		Scope: t.Key.Scope, Object: object, Account: account,
		AmountMinor: amount, Currency: currency, OccurredAt: at,
	})
}

func (t *tally) bookSuspense(object string, amount int64, currency string, at Millis) {
	t.book(object, AccountSuspense, amount, currency, at)
}

// add adds without wrapping around: amounts near the end of int64 come from
// bodies, and a sum of them must not turn its sign.
func add(a, b int64) int64 {
	const most, least = math.MaxInt64, -math.MaxInt64
	switch {
	case b > 0 && a > most-b:
		return most
	case b < 0 && a < least-b:
		return least
	}
	return a + b
}
