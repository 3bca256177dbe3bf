package payment

// A charge: class pending, failed < succeeded but not captured < captured. On
// the same second the higher amount_refunded is the later one.
const (
	classChargeAttempt  = 1
	classChargeHold     = 2
	classChargeCaptured = 3
)

const (
	chargeSucceeded = "succeeded"
	chargeFailed    = "failed"
	chargePending   = "pending"
)

// charge reads a charge. Bodies that lack a field because they are older than
// it are read by what their other fields say: `paid` for `status`, `refunded`
// for `amount_refunded`, and a charge without `captured` was captured, since
// holds came with that field.
func (r *reader) charge(ev Event) Fact {
	f := r.newFact(ev, KindCharge)
	snap, sticky := &f.Snapshot, &f.Sticky
	snap.Status = r.text("status")
	snap.Amount = r.amount("amount")
	snap.Refunded = r.amount("amount_refunded")
	sticky.PaymentIntent = r.ref("payment_intent")
	sticky.Invoice = r.ref("invoice")
	sticky.Captured = r.amount("amount_captured")
	paid, hasPaid := r.flag("paid")
	captured, hasCaptured := r.flag("captured")
	refunded, _ := r.flag("refunded")

	if snap.Status == "paid" { // its name before API version 2015-02-18
		snap.Status = chargeSucceeded
	}
	if snap.Status == "" && hasPaid {
		snap.Status = chargeFailed
		if paid {
			snap.Status = chargeSucceeded
		}
	}
	if refunded && !snap.Refunded.Known {
		snap.Refunded = snap.Amount
	}
	switch {
	case snap.Status == chargePending:
		f.Rank.Class = classChargeAttempt
	case snap.Status == chargeFailed:
		f.Rank.Class = classChargeAttempt
		snap.Failed = true
	case snap.Status != chargeSucceeded || hasPaid && !paid:
		f.Rank.Class = classUnseen
	case hasCaptured && !captured:
		f.Rank.Class = classChargeHold
	default:
		f.Rank.Class = classChargeCaptured
		if !sticky.Captured.Known {
			sticky.Captured = snap.Amount
		}
		if !sticky.Captured.Known {
			r.blame("a captured charge has no amount")
		}
		r.needCurrency(f)
		sticky.ProvenAt = ev.Created
	}
	f.Rank.Sub = snap.Refunded.Minor
	return f
}
