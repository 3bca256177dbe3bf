package stripeapi

import (
	"context"

	"github.com/stripe/stripe-go/v82"

	"paidonce/store"
)

// ExpireCheckout closes a session, so that nobody can pay there any more. One
// that has expired is done too. One that has brought money, or is bringing it,
// is refused: Code order_paid or payment_under_way. It may be called any number
// of times.
func (c *Client) ExpireCheckout(ctx context.Context, claim store.EffectClaim, account, session string) store.Answer {
	s, h, e := c.session(ctx, account, session)
	if e == nil {
		e = c.endSession(ctx, claim, account, s)
	}
	if e != nil {
		return e.harmless().answer()
	}
	return store.Answer{
		Outcome: store.OutcomeDone, Status: 200, Ref: s.ID, RequestID: h.requestID,
		Body: summary{Object: s.Object, ID: s.ID, Status: string(stripe.CheckoutSessionStatusExpired)}.bytes(),
	}
}

// endSession closes a session that was read just now. nil says that nothing can
// be paid there.
func (c *Client) endSession(ctx context.Context, claim store.EffectClaim, account string, s *stripe.CheckoutSession) *Error {
	if s.Status != stripe.CheckoutSessionStatusOpen {
		return c.ended(ctx, account, s)
	}
	req := request{name: "expire the session", object: sessionObject, id: s.ID, about: true, mutates: true, key: stepKey(claim, s.ID)}
	p := &stripe.CheckoutSessionExpireParams{Params: writeParams(account, req)}
	_, e := c.call(ctx, req, func(ctx context.Context) error {
		after, err := c.api.V1CheckoutSessions.Expire(ctx, s.ID, p)
		if err == nil && after.Status != stripe.CheckoutSessionStatusExpired {
			return errOtherAnswer
		}
		return err
	})
	if e == nil || e.Outcome != store.OutcomeRefused || e.Status == 0 {
		return e
	}
	// The buyer was faster, or it ran out by itself.
	now, _, again := c.session(ctx, account, s.ID)
	if again != nil {
		return again
	}
	if now.Status != stripe.CheckoutSessionStatusOpen {
		return c.ended(ctx, account, now)
	}
	if now.PaymentIntent != nil {
		// Paid for, and not complete yet.
		pi, again := c.intent(ctx, account, now.PaymentIntent.ID)
		if again != nil {
			return again
		}
		switch pi.Status {
		case stripe.PaymentIntentStatusSucceeded:
			return orderPaid(now.ID)
		case stripe.PaymentIntentStatusProcessing, stripe.PaymentIntentStatusRequiresCapture:
			return paymentUnderWay(now.ID)
		}
	}
	return e.unless(store.OutcomeRefused, store.OutcomeAgain)
}

// ended is what a session that is not open any more has come to: nil if that
// was nothing.
func (c *Client) ended(ctx context.Context, account string, s *stripe.CheckoutSession) *Error {
	switch s.Status {
	case stripe.CheckoutSessionStatusExpired:
		return nil
	case stripe.CheckoutSessionStatusComplete:
	default:
		return unknownStatus("the session")
	}
	intent, e := completed(s)
	if e != nil {
		return e
	}
	return c.settled(ctx, account, intent)
}

// completed is what a complete session says of its money: that it was paid, or
// which intent knows more.
func completed(s *stripe.CheckoutSession) (intent string, e *Error) {
	switch s.PaymentStatus {
	case stripe.CheckoutSessionPaymentStatusPaid, stripe.CheckoutSessionPaymentStatusNoPaymentRequired:
		return "", orderPaid(s.ID) // a free one too: the order is served by it
	case stripe.CheckoutSessionPaymentStatusUnpaid:
	default:
		return "", unknownStatus("the session")
	}
	if s.PaymentIntent == nil {
		return "", paymentUnderWay(s.ID)
	}
	return s.PaymentIntent.ID, nil
}

// settled is what the intent of a session that is complete and unpaid has come
// to: that of a bank debit, a voucher or a hold. nil if that was nothing.
func (c *Client) settled(ctx context.Context, account, intent string) *Error {
	pi, e := c.intent(ctx, account, intent)
	if e != nil {
		return e
	}
	switch pi.Status {
	case stripe.PaymentIntentStatusSucceeded:
		return orderPaid(pi.ID)
	case stripe.PaymentIntentStatusCanceled, stripe.PaymentIntentStatusRequiresPaymentMethod:
		return nil // the bank has refused, and this session cannot be used again
	}
	return paymentUnderWay(pi.ID)
}

func orderPaid(object string) *Error {
	return refused(codeOrderPaid, "stripe: %s has been paid", word(object))
}

func paymentUnderWay(object string) *Error {
	return refused(codePaymentUnderWay, "stripe: a payment is under way in %s", word(object))
}

// unknownStatus is an object in a state that this version does not know: no
// money is risked on a guess.
func unknownStatus(what string) *Error {
	return &Error{Outcome: store.OutcomeAgain, Status: 200, text: "stripe: " + what + " is in a state that is not known here"}
}
