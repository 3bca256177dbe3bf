package payment

// A refund: class pending, requires_action, succeeded < failed, canceled.
// Stripe moves both ways below the last two: a bank that returns the money
// takes a refund from succeeded back to requires_action.
const (
	classRefundUnderWay = 1 // or succeeded
	classRefundOff      = 2

	subRefundNeedsAction = 1
	subRefundSucceeded   = 2
	subRefundReturned    = 3
)

const (
	refundPending     = "pending"
	refundNeedsAction = "requires_action"
	refundSucceeded   = "succeeded"
	refundFailed      = "failed"
	refundCanceled    = "canceled"
)

// refund reads a refund; previous holds the attributes before the change, nil
// where the event has none. A refund without a status proves nothing: its
// charge's amount_refunded stands for it.
func (r *reader) refund(ev Event, previous *reader) Fact {
	f := r.newFact(ev, KindRefund)
	snap, sticky := &f.Snapshot, &f.Sticky
	snap.Status = r.text("status")
	snap.Amount = r.amount("amount")
	if !snap.Amount.Known {
		r.blame("there is no amount")
	}
	snap.Released = r.text("reason") == "expired_uncaptured_charge"
	sticky.PaymentIntent = r.ref("payment_intent")
	sticky.Charge = r.ref("charge")

	switch snap.Status {
	case refundPending:
		f.Rank.Class = classRefundUnderWay
	case refundNeedsAction:
		f.Rank.Class = classRefundUnderWay
		f.Rank.Sub = subRefundNeedsAction
		if previous != nil && previous.text("status") == refundSucceeded {
			f.Rank.Sub = subRefundReturned
			sticky.Succeeded = true
		}
	case refundSucceeded:
		f.Rank.Class = classRefundUnderWay
		f.Rank.Sub = subRefundSucceeded
		sticky.Succeeded = true
		sticky.ProvenAt = ev.Created
	case refundFailed, refundCanceled:
		f.Rank.Class = classRefundOff
	}
	return f
}

// underWay reports whether the refund may still succeed.
func (f Fact) underWay() bool {
	return f.Snapshot.Status == refundPending || f.Snapshot.Status == refundNeedsAction
}
