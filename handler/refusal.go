package handler

import (
	"fmt"

	"paidonce/store"
)

// What a caller is told when what it asked of Stripe came to nothing.
const (
	CodeStripeRefused  store.Code = "stripe_refused"  // Stripe, or the time that it was given
	CodeEffectCanceled store.Code = "effect_canceled" // a person
)

// Refusal says why an effect that a caller has waited for came to nothing; nil
// if it came to something or still may. Where the buyer was faster, it is
// CodeOrderPaid or CodePaymentUnderWay: nothing has failed, and the order tells
// the rest. It is the same for the API and for the commands.
func Refusal(d store.EffectDetail) *store.Problem {
	refuse := func(code store.Code, format string, args ...any) *store.Problem {
		return &store.Problem{Code: code, Message: fmt.Sprintf(format, args...)}
	}
	switch d.Status {
	case "failed":
		why := d.Reason
		if d.LastError != "" {
			why += ": " + d.LastError
		}
		return refuse(CodeStripeRefused, "Stripe did not do it: effect %s (%s) failed, %s: `paidonce effects show %s` tells what was sent and what came back, `paidonce effects retry %s` tries again",
			d.ID, d.Operation, why, d.ID, d.ID)
	case "canceled":
		if n := len(d.History); n > 0 {
			switch last := d.History[n-1]; store.Code(last.Code) {
			case store.CodeOrderPaid:
				return refuse(store.CodeOrderPaid, "Stripe says that order %s is paid: its event will tell", d.Order)
			case store.CodePaymentUnderWay:
				return refuse(store.CodePaymentUnderWay, "Stripe says that a payment of order %s is under way: its event will tell what comes of it", d.Order)
			}
		}
		return refuse(CodeEffectCanceled, "effect %s (%s) was canceled, %s: ask again", d.ID, d.Operation, d.Reason)
	}
	return nil
}
