package payment

// A Checkout Session: class open < complete, expired. It is complete or
// expired for good; being both is a contradiction.
const (
	classSessionOpen = 1
	classSessionOver = 2
)

const (
	modePayment      = "payment"
	modeSetup        = "setup"
	modeSubscription = "subscription"

	paymentPaid        = "paid"
	paymentNotRequired = "no_payment_required"
	paymentUnpaid      = "unpaid"
)

// session reads a checkout.session.
//
// Bodies from before the `status` field say only by payment_status "paid" that
// they are complete; any other session without a known status is unseen, since
// "unpaid" and "no_payment_required" are also what an open one says.
//
// That a delayed payment failed is the one thing that Stripe tells by the
// event's type: the session stays complete and unpaid, as it was. The type
// counts here only for a session that is just that, and it moves no money.
func (r *reader) session(ev Event) Fact {
	f := r.newFact(ev, KindSession)
	snap, sticky := &f.Snapshot, &f.Sticky
	snap.Status = r.text("status")
	snap.Amount = r.amount("amount_total")
	snap.Subtotal = r.amount("amount_subtotal")
	if details := r.object("total_details"); details != nil {
		snap.Discount = details.amount("amount_discount")
		r.within("total_details", details)
	}
	sticky.Mode = r.text("mode")
	sticky.PaymentStatus = maxPaymentStatus("", r.text("payment_status"))
	sticky.PaymentIntent = r.ref("payment_intent")
	sticky.PaymentLink = r.ref("payment_link")
	sticky.Reference = r.reference()
	if sticky.Mode == "" {
		// Older than the field, or cut short: what it is tied to tells.
		switch {
		case r.ref("subscription") != "":
			sticky.Mode = modeSubscription
		case r.ref("setup_intent") != "":
			sticky.Mode = modeSetup
		default:
			sticky.Mode = modePayment
		}
	}

	if snap.Status == "" && sticky.PaymentStatus == paymentPaid {
		snap.Status = "complete"
	}
	switch snap.Status {
	case "open":
		f.Rank.Class = classSessionOpen
	case "complete":
		f.Rank.Class = classSessionOver
		sticky.Complete = true
		sticky.AsyncFailed = sticky.PaymentStatus == paymentUnpaid &&
			ev.Type == "checkout.session.async_payment_failed"
	case "expired":
		f.Rank.Class = classSessionOver
		sticky.Expired = true
	}
	if f.paidSession() && snap.Amount.Minor > 0 {
		r.needCurrency(f)
	}
	if f.paidSession() || f.freeSession() {
		sticky.ProvenAt = ev.Created
	}
	return f
}

// customer reads who bought. No rule needs it, so what cannot be read is nobody
// and no reason to refuse the body.
func (r *reader) customer() Customer {
	quiet := *r
	details := quiet.object("customer_details")
	if details == nil {
		return Customer{}
	}
	email, _ := unquote(details.raw("email"))
	name, _ := unquote(details.raw("name"))
	return Customer{Email: email, Name: name}
}

// maxPaymentStatus is the further one of two payment statuses. Words we do not
// know are none.
func maxPaymentStatus(a, b string) string {
	rank := func(s string) int {
		switch s {
		case paymentUnpaid:
			return 1
		case paymentNotRequired:
			return 2
		case paymentPaid:
			return 3
		default:
			return 0
		}
	}
	switch {
	case rank(a) >= rank(b) && rank(a) > 0:
		return a
	case rank(b) > 0:
		return b
	default:
		return ""
	}
}

// paidSession reports whether the session proves money: a subscription's money
// is its invoice's.
func (f Fact) paidSession() bool {
	return f.Kind == KindSession && f.Sticky.Mode == modePayment && f.Sticky.PaymentStatus == paymentPaid
}

// freeSession reports whether the session was completed with nothing to pay.
// no_payment_required alone does not say so: it is also "later".
func (f Fact) freeSession() bool {
	return f.Kind == KindSession && f.Sticky.Mode == modePayment && f.Sticky.Complete &&
		(f.Sticky.PaymentStatus == paymentPaid || f.Sticky.PaymentStatus == paymentNotRequired) &&
		f.Snapshot.Amount == Minor(0)
}
