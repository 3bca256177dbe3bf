package payment

// A payment intent: class requires_*, processing < requires_capture <
// succeeded, canceled. Below a hold Stripe moves both ways (a bank refuses,
// the buyer tries again), so there created decides, and on the same second how
// far the attempt got.
const (
	classIntentPending = 1
	classIntentHold    = 2
	classIntentOver    = 3

	subIntentProcessing = 1
	subIntentFailed     = 2
)

const (
	intentNeedsMethod       = "requires_payment_method"
	intentNeedsConfirmation = "requires_confirmation"
	intentNeedsAction       = "requires_action"
	intentProcessing        = "processing"
	intentHold              = "requires_capture"
	intentSucceeded         = "succeeded"
	intentCanceled          = "canceled"
)

// intent reads a payment_intent.
func (r *reader) intent(ev Event) Fact {
	f := r.newFact(ev, KindPaymentIntent)
	snap, sticky := &f.Snapshot, &f.Sticky
	snap.Status = intentStatus(r.text("status"))
	snap.Amount = r.amount("amount")
	snap.LatestCharge = r.ref("latest_charge")
	if snap.LatestCharge == "" {
		snap.LatestCharge = r.firstOfList("charges")
	}
	sticky.Received = r.amount("amount_received")
	sticky.Invoice = r.ref("invoice")
	failed := r.object("last_payment_error") != nil

	switch snap.Status {
	case intentNeedsMethod:
		f.Rank.Class = classIntentPending
		snap.Failed = failed
		if failed {
			f.Rank.Sub = subIntentFailed
		}
	case intentNeedsConfirmation, intentNeedsAction:
		f.Rank.Class = classIntentPending
	case intentProcessing:
		f.Rank.Class = classIntentPending
		f.Rank.Sub = subIntentProcessing
	case intentHold:
		f.Rank.Class = classIntentHold
	case intentSucceeded:
		f.Rank.Class = classIntentOver
		sticky.Succeeded = true
		sticky.ProvenAt = ev.Created
		r.needCurrency(f)
	case intentCanceled:
		f.Rank.Class = classIntentOver
		sticky.Canceled = true
		snap.Failed = failed
	}
	return f
}

// intentStatus gives the words of API versions before 2019-02-11 their
// successors.
func intentStatus(word string) string {
	switch word {
	case "requires_source":
		return intentNeedsMethod
	case "requires_source_action":
		return intentNeedsAction
	default:
		return word
	}
}

// firstOfList reads the id of the newest element of a list object, as `charges`
// was before latest_charge. Without one it is "".
func (r *reader) firstOfList(name string) string {
	list := r.object(name)
	if list == nil {
		return ""
	}
	id := ""
	if elements, _ := list.elements("data"); len(elements) > 0 {
		newest := readObject(elements[0])
		id, _ = usableID(newest.raw("id"))
		r.within(name, newest)
	}
	r.within(name, list)
	return id
}

// invoicePayment reads an invoice_payment, which ties a payment intent to an
// invoice. It becomes a fact of that intent which says nothing but this. A
// zero ID says that it ties none.
func (r *reader) invoicePayment(ev Event) Fact {
	f := Fact{Kind: KindPaymentIntent, Rank: Rank{Class: classUnseen, Created: ev.Created, Event: ev.ID}}
	f.Sticky.Invoice = r.ref("invoice")
	if payment := r.object("payment"); payment != nil && f.Sticky.Invoice != "" {
		f.ID = payment.ref("payment_intent")
		r.within("payment", payment)
	}
	return f
}
