package stripeapi

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"paidonce/store"
	"paidonce/store/payment"
)

// Send carries one effect out, or with claim.LookUp finds out whether it has
// happened, within the time limit of one call:
//
//   - refund.request:… with a store.RefundCall: RefundPayment, FindRefund.
//   - checkout.open:… with a store.CheckoutCall: OpenCheckout, FindCheckout.
//   - order.cancel:… with a store.CancelCall: CancelPayment, which is its own
//     look-up.
//
// A claim that cannot be carried out is refused before anything is sent: Code
// unknown_operation or invalid_body.
func (c *Client) Send(ctx context.Context, claim store.EffectClaim) store.Answer {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	switch name, _, _ := strings.Cut(claim.Operation, ":"); name {
	case store.OperationRefund:
		if claim.LookUp {
			return withBody(ctx, claim, c.FindRefund)
		}
		return withBody(ctx, claim, c.RefundPayment)
	case store.OperationOpenCheckout:
		if claim.LookUp {
			return withBody(ctx, claim, c.FindCheckout)
		}
		return withBody(ctx, claim, c.OpenCheckout)
	case store.OperationCancelOrder:
		return withBody(ctx, claim, c.CancelPayment)
	}
	return refused(codeUnknownOperation, "stripe: no call of Stripe's goes by the name of this operation").answer()
}

// withBody reads the frozen body and hands it on.
func withBody[T any](ctx context.Context, claim store.EffectClaim, call func(context.Context, store.EffectClaim, T) store.Answer) store.Answer {
	var body T
	if err := json.Unmarshal(claim.Body, &body); err != nil {
		return refused(codeInvalidBody, "stripe: the body of the effect cannot be read").answer()
	}
	return call(ctx, claim, body)
}

// findable refuses a call whose result could not be found again by its
// metadata: after a lost answer nobody could tell whether it happened.
func findable(claim store.EffectClaim, metadata map[string]string) *Error {
	if claim.BaseKey == "" || metadata[payment.OperationMetadata] != claim.BaseKey {
		return refused(codeInvalidBody, "stripe: metadata.%s of the body is not the key of the effect", payment.OperationMetadata)
	}
	return nil
}

// stepKey is the key of a call that an effect makes about one object beside its
// own: an expiry, a cancellation. Each attempt has its own: Stripe would replay
// a refusal or a 500 of an earlier one, although the object has moved on. What
// keeps a second call harmless is the object's state, and not the key.
func stepKey(claim store.EffectClaim, object string) string {
	if claim.Key == "" {
		return "" // which no call goes out with
	}
	key := claim.Key + ":" + object
	if claim.Attempt > 1 {
		key += ":" + strconv.FormatInt(claim.Attempt, 10)
	}
	return key
}
