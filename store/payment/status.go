package payment

// status applies rule 5: the first line that matches. The order of the lines is
// the rule.
func (d *derivation) status() Status {
	s := d.signals()
	switch {
	case d.disputed():
		return StatusDisputed
	case d.lostAll():
		return StatusChargedBack
	case len(d.live) == 0 && len(d.accepted) > 0:
		return StatusRefunded
	case d.anyLive(func(t *tally) bool { return t.RefundedMinor > 0 }):
		return StatusPartiallyRefunded
	case d.anyLive(func(t *tally) bool { return t.RefundPendingMinor > 0 }):
		return StatusRefundPending
	case len(d.live) > 0:
		return StatusPaid
	case s.hold:
		return StatusAuthorized
	case s.processing:
		return StatusProcessing
	case d.closed():
		return StatusCanceled
	case s.failed && !s.alive:
		return StatusPaymentFailed
	case s.sessions > 0 && s.expired == s.sessions:
		return StatusExpired
	default:
		return StatusAwaitingPayment
	}
}

func (d *derivation) closed() bool { return d.order.ClosedAt != 0 }

func (d *derivation) anyLive(is func(t *tally) bool) bool {
	for _, t := range d.live {
		if is(t) {
			return true
		}
	}
	return false
}

// openDispute reports whether a dispute runs over money that the order holds.
func (d *derivation) openDispute() bool {
	return d.anyLive(func(t *tally) bool { return len(t.openDisputes()) > 0 })
}

// disputed: on an order that the shop closed, or whose payment went back, an
// open dispute is a reason to look, but it revives nothing (cases.md B26).
func (d *derivation) disputed() bool { return !d.closed() && d.openDispute() }

// lostAll reports whether disputes were lost and nothing is left of the money.
func (d *derivation) lostAll() bool {
	if !d.anyLive((*tally).lost) {
		return false
	}
	var left int64
	for _, t := range d.live {
		left = add(left, t.left())
	}
	return left <= 0
}

// signals are what attempts say that have brought no money (yet).
type signals struct {
	hold       bool // the bank holds the money for the shop to capture
	processing bool // the bank works on it
	failed     bool // an attempt failed
	alive      bool // something may still bring the money by itself or by the buyer
	sessions   int
	expired    int // of the sessions
}

// signals looks at the order's payments, but for those that cannot become
// its money: of another currency, of another payment intent than the
// registered one, or in contradiction with themselves.
func (d *derivation) signals() signals {
	var s signals
	for _, t := range d.payments {
		if t.Verdict == VerdictContradiction || t.Verdict == VerdictOrderConflict || !t.inCurrency(d.order) {
			continue
		}
		for _, f := range t.sessions {
			s.sessions++
			if f.Sticky.Expired {
				s.expired++
			}
		}
		if !t.settled {
			s.attempt(t)
		}
	}
	return s
}

// attempt adds a payment that no body proves any money of.
func (s *signals) attempt(t *tally) {
	failed, over := false, false
	for _, f := range t.intents {
		switch f.Snapshot.Status {
		case intentNeedsMethod:
			failed = failed || f.Snapshot.Failed
			s.alive = s.alive || !f.Snapshot.Failed
		case intentNeedsConfirmation, intentNeedsAction:
			s.alive = true
		case intentProcessing:
			s.processing, s.alive = true, true
		case intentHold:
			s.hold, s.alive = true, true
		case intentCanceled, intentSucceeded:
			failed = failed || f.Snapshot.Failed
			over = true
		}
	}
	for _, f := range t.charges {
		switch {
		case f.Snapshot.Failed:
			s.failed = true
		case f.Rank.Class == classChargeHold && !over:
			// The charge tells of the hold before its intent does. A hold that
			// was let go shows as refunded.
			if f.Snapshot.Refunded.Minor < max(f.Snapshot.Amount.Minor, 1) {
				s.hold, s.alive = true, true
			}
		}
	}
	for _, f := range t.sessions {
		switch {
		case f.Sticky.AsyncFailed:
			failed = true
		case f.Snapshot.Status == "open":
			s.alive = true
		}
	}
	for _, f := range t.sessions {
		waits := f.Sticky.Complete && f.Sticky.Mode == modePayment && f.Sticky.PaymentStatus == paymentUnpaid
		if waits && !failed && !over {
			s.processing = true
		}
	}
	s.failed = s.failed || failed
}
