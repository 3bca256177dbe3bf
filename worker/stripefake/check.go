package stripefake

import (
	"errors"
	"fmt"
)

// Check looks for states that no account at Stripe can be in, and holds the
// objects against the ledger. It returns every one that it finds.
func (a *Account) Check() error {
	var wrong []error
	blame := func(id, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s: %s", id, fmt.Sprintf(format, args...)))
	}
	ledger := a.Ledger()
	for _, id := range a.order {
		switch {
		case a.sessions[id] != nil:
			a.checkSession(a.sessions[id], blame)
		case a.intents[id] != nil:
			a.checkIntent(a.intents[id], blame)
			if pi := a.intents[id]; pi.Received != ledger.Of(id).Received {
				blame(id, "received %d, the ledger says %d", pi.Received, ledger.Of(id).Received)
			}
		case a.charges[id] != nil:
			a.checkCharge(a.charges[id], blame)
		}
	}
	a.checkLedger(ledger, blame)
	for _, e := range a.events {
		if e.Created < a.cfg.Start || e.Created > a.now+maxLag {
			blame(e.ID, "was created at %d, outside its account's time", e.Created)
		}
	}
	return errors.Join(wrong...)
}

// maxLag is how far the clocks of events may be apart.
const maxLag = 5

type blameFunc func(id, format string, args ...any)

func (a *Account) checkSession(s *Session, blame blameFunc) {
	pi := a.intents[s.Intent]
	switch {
	case s.Pricing.Total() < 0:
		blame(s.ID, "costs less than nothing")
	case s.Mode == "payment" && s.Status == SessionComplete && s.PaymentStatus != SessionFree && pi == nil:
		blame(s.ID, "is complete without an intent")
	case s.PaymentStatus == SessionPaid && s.Mode == "payment" && pi.Status != IntentSucceeded:
		blame(s.ID, "is paid and its intent is %s", pi.Status)
	case s.Status == SessionExpired && pi != nil && pi.Status != IntentCanceled:
		blame(s.ID, "is expired and its intent is %s", pi.Status)
	case pi != nil && pi.Session != s.ID:
		blame(s.ID, "has an intent that does not know it")
	}
}

func (a *Account) checkIntent(pi *Intent, blame blameFunc) {
	latest := a.charges[pi.LatestCharge()]
	switch {
	case pi.Received > pi.Amount:
		blame(pi.ID, "received %d of %d", pi.Received, pi.Amount)
	case (pi.Status == IntentSucceeded) != (pi.Received > 0):
		blame(pi.ID, "is %s and received %d", pi.Status, pi.Received)
	case (pi.Status == IntentHold) != (pi.Capturable > 0):
		blame(pi.ID, "is %s and holds %d", pi.Status, pi.Capturable)
	case pi.Status == IntentSucceeded && (latest == nil || latest.AmountCaptured != pi.Received):
		blame(pi.ID, "received %d and its charge says otherwise", pi.Received)
	case pi.Status == IntentProcessing && (latest == nil || latest.Status != ChargePending):
		blame(pi.ID, "is processing nothing")
	}
	for _, id := range pi.Charges {
		if c := a.charges[id]; c.Captured && c != latest {
			blame(pi.ID, "took money in an attempt before its last")
		}
	}
}

func (a *Account) checkCharge(c *Charge, blame blameFunc) {
	refunds := a.activeRefunds(c)
	switch {
	case c.AmountCaptured > c.Amount:
		blame(c.ID, "captured %d of %d", c.AmountCaptured, c.Amount)
	case c.Captured && c.Status != ChargeSucceeded:
		blame(c.ID, "is captured and %s", c.Status)
	case c.Captured != (c.AmountCaptured > 0):
		blame(c.ID, "captured %t with %d", c.Captured, c.AmountCaptured)
	case refunds > c.AmountCaptured:
		blame(c.ID, "refunds of %d on %d", refunds, c.AmountCaptured)
	case c.AmountRefunded > c.Amount:
		blame(c.ID, "amount_refunded %d of %d", c.AmountRefunded, c.Amount)
	case c.AmountRefunded < refunds:
		blame(c.ID, "amount_refunded %d with refunds of %d", c.AmountRefunded, refunds)
	}
}

// checkLedger holds the moves against what refunds and disputes have become.
func (a *Account) checkLedger(ledger Ledger, blame blameFunc) {
	refunded, taken := make(map[string]int64), make(map[string]int64)
	for _, r := range a.refunds {
		if r.Status == RefundSucceeded && r.Reason != reasonRelease {
			refunded[a.charges[r.Charge].Payment()] += r.Amount
		}
	}
	for _, d := range a.disputes {
		for i, t := range d.Transactions { // out, back, out …
			if (t.Amount < 0) != (i%2 == 0) {
				blame(d.ID, "moved its money the same way twice")
			}
		}
		if d.withdrawn() {
			taken[a.charges[d.Charge].Payment()] += d.Amount
		}
	}
	for _, m := range ledger.Payments {
		switch {
		case m.Refunded != refunded[m.Payment]:
			blame(m.Payment, "refunded %d, the refunds say %d", m.Refunded, refunded[m.Payment])
		case m.Taken != taken[m.Payment]:
			blame(m.Payment, "disputes took %d, they say %d", m.Taken, taken[m.Payment])
		case m.Refunded+m.Pending > m.Received:
			blame(m.Payment, "refunds of %d on %d", m.Refunded+m.Pending, m.Received)
		case m.Received < 0 || m.Refunded < 0 || m.Pending < 0 || m.Taken < 0:
			blame(m.Payment, "less than nothing: %+v", m)
		}
	}
}
