package payment

import "fmt"

// judge applies rule 2: whether the order counts the payment, and if not, why.
// It sets Accepted, Verdict, Reason and what was due.
func (t *tally) judge(o *Order) {
	t.Verdict = VerdictApplied
	if o == nil {
		t.Verdict, t.Reason = VerdictUnlinked, "no order claims it"
		return
	}
	byHand := t.acceptedByHand(o)
	switch {
	case t.contradiction != "" && !byHand:
		t.Verdict, t.Reason = VerdictContradiction, t.contradiction
	case !byHand && t.foreignIntent(o):
		t.Verdict = VerdictOrderConflict
		t.Reason = fmt.Sprintf("the order takes money from %s only, this is %s", o.PaymentIntent, t.Key.Object)
	case !t.settled:
		// No money yet.
	case !t.inCurrency(o):
		t.Verdict = VerdictCurrencyMismatch
		t.Reason = fmt.Sprintf("received %s, expected %s", t.receivedText(), FormatMinor(o.TotalMinor, o.Currency))
	default:
		t.applyPolicy(o)
		if !t.Accepted && byHand {
			// A person counts what there is as all that was due.
			t.Accepted, t.due = true, t.ReceivedMinor
			t.Verdict, t.Reason, t.difference = VerdictApplied, "", 0
		}
	}
}

// acceptedByHand reports whether a person counted this payment. A payment's key
// moves from its session to its payment intent when that is learned; the
// person's word stands for whichever of its objects was named.
func (t *tally) acceptedByHand(o *Order) bool {
	if o.Accepted[t.Key] {
		return true
	}
	for _, id := range t.Objects {
		if o.Accepted[PaymentKey{t.Key.Scope, id}] {
			return true
		}
	}
	return false
}

// foreignIntent reports whether the order was registered with another payment
// intent. A session whose intent is not known yet is not foreign before money
// shows: its intent may be the one.
func (t *tally) foreignIntent(o *Order) bool {
	if o.PaymentIntent == "" {
		return false
	}
	hasIntent := len(t.intents) > 0
	for _, f := range t.facts {
		hasIntent = hasIntent || f.PaymentIntent() != ""
	}
	return t.Key.Object != o.PaymentIntent && (hasIntent || t.settled)
}

// inCurrency reports whether the payment is in the order's currency. Nothing,
// in no currency, is.
func (t *tally) inCurrency(o *Order) bool {
	return t.Currency == o.Currency || t.Currency == "" && t.ReceivedMinor == 0
}

// applyPolicy judges a settled payment in the order's currency by its amount.
func (t *tally) applyPolicy(o *Order) {
	due := o.TotalMinor
	var ok bool
	switch o.Policy {
	case PolicyAtLeast:
		ok = t.ReceivedMinor >= due
		t.explain(o, "at least ", due)
	case PolicyAny:
		due = t.ReceivedMinor
		ok = t.ReceivedMinor > 0 || t.free
		t.explain(o, "more than ", 0)
		t.difference = -1
	case PolicySubtotal:
		s, known := t.pricedSession()
		if !known {
			t.Reason = "the amount is judged when the session is known"
			return
		}
		due = s.Snapshot.Amount.Minor
		ok = t.applySubtotal(o, s)
	default: // exact; a policy nobody knows is the strictest
		ok = t.ReceivedMinor == due
		t.explain(o, "", due)
	}
	if ok {
		t.Accepted, t.due = true, due
		t.Reason, t.difference = "", 0
		return
	}
	t.Verdict = VerdictAmountMismatch
}

// explain says what was received and what was expected.
func (t *tally) explain(o *Order, how string, expected int64) {
	t.Reason = fmt.Sprintf("received %s, expected %s%s", t.receivedText(), how, FormatMinor(expected, o.Currency))
	t.difference = sign(t.ReceivedMinor - expected)
}

func (t *tally) receivedText() string { return FormatMinor(t.ReceivedMinor, t.Currency) }

// pricedSession is the session that says how the amount came about, a complete
// one before others.
func (t *tally) pricedSession() (best Fact, ok bool) {
	for _, f := range t.sessions {
		if !f.Snapshot.Subtotal.Known || !f.Snapshot.Amount.Known {
			continue
		}
		if !ok || f.Sticky.Complete && !best.Sticky.Complete {
			best, ok = f, true
		}
	}
	return best, ok
}

// applySubtotal judges by what the order's lines come to: tax and shipping may
// be added, a discount needs the order's leave, and the money must be the
// session's total to the last unit.
//
// The parts are not added up to the total: an inclusive tax stands in
// total_details and is not added, and nothing in the session says which it is.
// A total below the subtotal is a discount, whatever total_details says.
func (t *tally) applySubtotal(o *Order, s Fact) bool {
	subtotal, total := s.Snapshot.Subtotal.Minor, s.Snapshot.Amount.Minor
	discount := max(s.Snapshot.Discount.Minor, subtotal-total)
	switch {
	case s.Snapshot.Currency != "" && s.Snapshot.Currency != o.Currency:
		t.Reason = fmt.Sprintf("the session is in another currency than %s", FormatMinor(o.TotalMinor, o.Currency))
		t.difference = 0
	case subtotal != o.TotalMinor:
		t.Reason = fmt.Sprintf("the session's subtotal is %s, expected %s",
			FormatMinor(subtotal, o.Currency), FormatMinor(o.TotalMinor, o.Currency))
		t.difference = sign(subtotal - o.TotalMinor)
	case discount > 0 && !o.AllowDiscount:
		t.Reason = fmt.Sprintf("a discount of %s, which the order does not allow", FormatMinor(discount, o.Currency))
		t.difference = -1
	case t.ReceivedMinor != total:
		t.explain(o, "the session's total of ", total)
	default:
		return true
	}
	return false
}

func sign(n int64) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
