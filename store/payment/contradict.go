package payment

import "strings"

// families says which kind of object stands in an event, by the beginning of
// its type; the longest beginning counts. Stripe renders the object at the
// moment of the event, so an event never carries another kind, nor an object
// that is not in the state which its type names (stripe.md §3.1).
var families = []struct{ prefix, object string }{
	{"checkout.session.", "checkout.session"},
	{"payment_intent.", "payment_intent"},
	{"charge.dispute.", "dispute"},
	{"charge.refund.", "refund"},
	{"charge.disputed", ""}, // retired: a charge or a dispute
	{"charge.", "charge"},
	{"refund.", "refund"},
	{"invoice_payment.", "invoice_payment"},
}

// contradiction says how an event's type and its object contradict each other;
// "" is that they do not. A body that contradicts itself proves nothing: it is
// kept for a person, and no fact is taken from it. What the type does not
// speak of is not looked at: a later state under an earlier type's name is how
// a fetched copy looks.
func contradiction(eventType, object string, f Fact) string {
	for _, family := range families {
		if !strings.HasPrefix(eventType, family.prefix) {
			continue
		}
		if family.object != "" && family.object != object {
			return "the type speaks of a " + family.object + ", the object is a " + object
		}
		break
	}
	status := f.Snapshot.Status
	if status == "" {
		return "" // a body from before the field
	}
	fits := true
	switch eventType {
	case "payment_intent.succeeded":
		fits = status == intentSucceeded
	case "payment_intent.canceled":
		fits = status == intentCanceled
	case "charge.succeeded":
		fits = status == chargeSucceeded
	case "charge.captured":
		fits = status == chargeSucceeded && f.Rank.Class != classChargeHold
	case "charge.pending":
		fits = status == chargePending
	case "charge.failed":
		fits = status == chargeFailed
	case "refund.failed":
		fits = status == refundFailed
	case "charge.dispute.closed":
		fits = !f.isOpen() && status != "warning_needs_response" && status != "warning_under_review"
	case "charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated":
		fits = !f.isInquiry() || len(f.Sticky.Transactions) > 0
	case "checkout.session.completed", "checkout.session.async_payment_succeeded", "checkout.session.async_payment_failed":
		fits = status == "complete"
	case "checkout.session.expired":
		fits = status == "expired"
	}
	if fits {
		return ""
	}
	if !stripeWord(status) {
		status = "in a state of its own" // what stands there is not repeated
	}
	return "the type says " + eventType + ", the object is " + status
}
