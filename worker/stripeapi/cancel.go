package stripeapi

import (
	"context"
	"slices"

	"github.com/stripe/stripe-go/v82"

	"paidonce/store"
)

// CancelPayment makes sure that nobody can pay for an order any more: every
// session of claim.Sessions and every payment intent of the body is asked about
// first. If one has brought money, the whole is refused with Code order_paid, if
// one is bringing it, with payment_under_way, and nothing is changed. Only then
// are open sessions expired and intents canceled, those that hold money too. It
// may be called any number of times, and is its own look-up.
func (c *Client) CancelPayment(ctx context.Context, claim store.EffectClaim, call store.CancelCall) store.Answer {
	open, intents, e := c.survey(ctx, claim, call)
	if e != nil {
		return e.harmless().answer()
	}
	for _, s := range open {
		if e := c.endSession(ctx, claim, call.Account, s); e != nil {
			return e.harmless().answer()
		}
	}
	for _, pi := range intents {
		if e := c.endIntent(ctx, claim, call.Account, pi); e != nil {
			return e.harmless().answer()
		}
	}
	return store.Answer{
		Outcome: store.OutcomeDone, Status: 200,
		Body: summary{Object: "order.cancel", Expired: len(open), Canceled: len(intents)}.bytes(),
	}
}

// survey reads everything by which the order could be paid, and returns what is
// still open of it. It changes nothing.
func (c *Client) survey(ctx context.Context, claim store.EffectClaim, call store.CancelCall) (open []*stripe.CheckoutSession, intents []*stripe.PaymentIntent, e *Error) {
	var paid, underWay *Error
	ids := slices.Clone(call.PaymentIntents)
	for _, id := range distinct(claim.Sessions) {
		s, _, e := c.session(ctx, call.Account, id)
		if e != nil {
			return nil, nil, e
		}
		switch s.Status {
		case stripe.CheckoutSessionStatusOpen:
			open = append(open, s)
		case stripe.CheckoutSessionStatusExpired:
		case stripe.CheckoutSessionStatusComplete:
			intent, e := completed(s)
			switch {
			case e == nil:
				ids = append(ids, intent)
			case e.Code == codeOrderPaid:
				paid = e
			case e.Code == codePaymentUnderWay:
				underWay = e
			default:
				return nil, nil, e
			}
		default:
			return nil, nil, unknownStatus("the session")
		}
	}
	for _, id := range distinct(ids) {
		pi, e := c.intent(ctx, call.Account, id)
		if e != nil {
			return nil, nil, e
		}
		switch pi.Status {
		case stripe.PaymentIntentStatusSucceeded:
			paid = orderPaid(pi.ID)
		case stripe.PaymentIntentStatusProcessing:
			underWay = paymentUnderWay(pi.ID)
		case stripe.PaymentIntentStatusCanceled:
		case stripe.PaymentIntentStatusRequiresPaymentMethod, stripe.PaymentIntentStatusRequiresConfirmation,
			stripe.PaymentIntentStatusRequiresAction, stripe.PaymentIntentStatusRequiresCapture:
			intents = append(intents, pi)
		default:
			return nil, nil, unknownStatus("the payment intent")
		}
	}
	if paid != nil {
		return nil, nil, paid
	}
	return open, intents, underWay
}

// endIntent cancels an intent. nil says that nobody can pay it.
func (c *Client) endIntent(ctx context.Context, claim store.EffectClaim, account string, pi *stripe.PaymentIntent) *Error {
	req := request{name: "cancel the payment intent", object: intentObject, id: pi.ID, about: true, mutates: true, key: stepKey(claim, pi.ID)}
	p := &stripe.PaymentIntentCancelParams{Params: writeParams(account, req)}
	_, e := c.call(ctx, req, func(ctx context.Context) error {
		after, err := c.api.V1PaymentIntents.Cancel(ctx, pi.ID, p)
		if err == nil && after.Status != stripe.PaymentIntentStatusCanceled {
			return errOtherAnswer
		}
		return err
	})
	if e == nil || e.Outcome != store.OutcomeRefused || e.Status == 0 {
		return e
	}
	now, again := c.intent(ctx, account, pi.ID)
	if again != nil {
		return again
	}
	switch now.Status {
	case stripe.PaymentIntentStatusCanceled: // it ended with its session
		return nil
	case stripe.PaymentIntentStatusSucceeded:
		return orderPaid(now.ID)
	case stripe.PaymentIntentStatusProcessing:
		return paymentUnderWay(now.ID)
	}
	return c.endThroughSession(ctx, claim, account, now, e)
}

// endThroughSession is for an intent that Stripe does not cancel because it is
// a Checkout Session's: it ends with that one. refusal is what Stripe said.
func (c *Client) endThroughSession(ctx context.Context, claim store.EffectClaim, account string, pi *stripe.PaymentIntent, refusal *Error) *Error {
	var sessions []*stripe.CheckoutSession
	_, e := each(ctx, c, "find the intent's session", account, func(ctx context.Context, page stripe.ListParams) stripe.Seq2[*stripe.CheckoutSession, error] {
		return c.api.V1CheckoutSessions.List(ctx, &stripe.CheckoutSessionListParams{ListParams: page, PaymentIntent: stripe.String(pi.ID)})
	}, func(s *stripe.CheckoutSession) bool {
		sessions = append(sessions, s)
		return true
	})
	if e != nil {
		return e
	}
	if len(sessions) == 0 {
		return refusal
	}
	for _, s := range sessions {
		if s.Status == stripe.CheckoutSessionStatusComplete && pi.Status != stripe.PaymentIntentStatusRequiresPaymentMethod {
			return refusal // a voucher can be paid after its session is over
		}
		if e := c.endSession(ctx, claim, account, s); e != nil {
			return e
		}
	}
	return nil
}

// distinct is ids without repetitions, in their order.
func distinct(ids []string) []string {
	var out []string
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
