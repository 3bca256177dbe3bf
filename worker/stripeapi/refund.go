package stripeapi

import (
	"context"
	"maps"

	"github.com/stripe/stripe-go/v82"

	"paidonce/store"
	"paidonce/store/payment"
)

// RefundPayment asks for a refund under the key of the claim. Done means that
// the refund exists, whatever its status: Answer.Ref is its id, and a refund
// that has failed or was canceled already has that status in Answer.Code.
func (c *Client) RefundPayment(ctx context.Context, claim store.EffectClaim, call store.RefundCall) store.Answer {
	if e := findable(claim, call.Metadata); e != nil {
		return e.answer()
	}
	if call.PaymentIntent == "" && call.Charge == "" || call.AmountMinor <= 0 {
		// Without an amount Stripe would refund whatever is left.
		return refused(codeInvalidBody, "stripe: create the refund: the body names no payment, or no amount").answer()
	}
	req := request{name: "create the refund", object: "refund", mutates: true, key: claim.Key}
	p := &stripe.RefundCreateParams{
		Params: writeParams(call.Account, req), Amount: stripe.Int64(call.AmountMinor), Metadata: maps.Clone(call.Metadata),
	}
	if call.PaymentIntent != "" {
		p.PaymentIntent = stripe.String(call.PaymentIntent)
	} else {
		p.Charge = stripe.String(call.Charge)
	}
	if call.Reason != "" {
		p.Reason = stripe.String(call.Reason)
	}
	var r *stripe.Refund
	h, e := c.call(ctx, req, func(ctx context.Context) (err error) {
		r, err = c.api.V1Refunds.Create(ctx, p)
		return err
	})
	if e != nil {
		return e.answer()
	}
	return refundAnswer(r, h)
}

// FindRefund looks for the refund that the claim's calls may have made, among
// those of its payment: by metadata.paidonce_operation. Absent is said only of
// a complete list; a look-up that fails says Again, since nothing is known.
func (c *Client) FindRefund(ctx context.Context, claim store.EffectClaim, call store.RefundCall) store.Answer {
	if e := findable(claim, call.Metadata); e != nil {
		return e.answer()
	}
	if call.PaymentIntent == "" && call.Charge == "" {
		return refused(codeInvalidBody, "stripe: find the refund: the body names no payment").answer()
	}
	var found *stripe.Refund
	h, e := each(ctx, c, "find the refund", call.Account, func(ctx context.Context, page stripe.ListParams) stripe.Seq2[*stripe.Refund, error] {
		p := &stripe.RefundListParams{ListParams: page}
		if call.PaymentIntent != "" {
			p.PaymentIntent = stripe.String(call.PaymentIntent)
		} else {
			p.Charge = stripe.String(call.Charge)
		}
		return c.api.V1Refunds.List(ctx, p)
	}, func(r *stripe.Refund) bool {
		if r.Metadata[payment.OperationMetadata] != claim.BaseKey {
			return true
		}
		found = r
		return refundFailed(r) // of two, the one that gives the money back
	})
	switch {
	case e != nil:
		return e.nothingKnown().answer()
	case found == nil:
		return store.Answer{Outcome: store.OutcomeAbsent, Status: 200, RequestID: h.requestID}
	}
	return refundAnswer(found, h)
}

func refundFailed(r *stripe.Refund) bool {
	return r.Status == stripe.RefundStatusFailed || r.Status == stripe.RefundStatusCanceled
}

func refundAnswer(r *stripe.Refund, h head) store.Answer {
	a := store.Answer{Outcome: store.OutcomeDone, Status: 200, Ref: r.ID, RequestID: h.requestID}
	if refundFailed(r) {
		a.Code = string(r.Status)
	}
	a.Body = summary{
		Object: r.Object, ID: r.ID, Status: string(r.Status), Amount: r.Amount, Currency: string(r.Currency), Replayed: h.replayed,
	}.bytes()
	return a
}
