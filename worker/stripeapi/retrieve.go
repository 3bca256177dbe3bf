package stripeapi

import (
	"context"

	"github.com/stripe/stripe-go/v82"
)

// RetrieveSession reads a Checkout Session as it is now. account is the
// connected account that has it; "" is the key's own. The object's bytes as
// they came are in LastResponse.RawJSON. The error is an *Error.
func (c *Client) RetrieveSession(ctx context.Context, account, id string) (*stripe.CheckoutSession, error) {
	s, _, e := c.session(ctx, account, id)
	if e != nil {
		return nil, e
	}
	return s, nil
}

// RetrievePaymentIntent is RetrieveSession for a payment intent.
func (c *Client) RetrievePaymentIntent(ctx context.Context, account, id string) (*stripe.PaymentIntent, error) {
	pi, e := c.intent(ctx, account, id)
	if e != nil {
		return nil, e
	}
	return pi, nil
}

// RetrieveRefund is RetrieveSession for a refund.
func (c *Client) RetrieveRefund(ctx context.Context, account, id string) (*stripe.Refund, error) {
	p := &stripe.RefundRetrieveParams{Params: readParams(account)}
	r, _, e := retrieve(ctx, c, "retrieve the refund", "refund", id, func(ctx context.Context) (*stripe.Refund, error) {
		return c.api.V1Refunds.Retrieve(ctx, id, p)
	})
	if e != nil {
		return nil, e
	}
	return r, nil
}

// RetrieveDispute is RetrieveSession for a dispute.
func (c *Client) RetrieveDispute(ctx context.Context, account, id string) (*stripe.Dispute, error) {
	p := &stripe.DisputeRetrieveParams{Params: readParams(account)}
	d, _, e := retrieve(ctx, c, "retrieve the dispute", "dispute", id, func(ctx context.Context) (*stripe.Dispute, error) {
		return c.api.V1Disputes.Retrieve(ctx, id, p)
	})
	if e != nil {
		return nil, e
	}
	return d, nil
}

func (c *Client) session(ctx context.Context, account, id string) (*stripe.CheckoutSession, head, *Error) {
	p := &stripe.CheckoutSessionRetrieveParams{Params: readParams(account)}
	return retrieve(ctx, c, "retrieve the session", sessionObject, id, func(ctx context.Context) (*stripe.CheckoutSession, error) {
		return c.api.V1CheckoutSessions.Retrieve(ctx, id, p)
	})
}

func (c *Client) intent(ctx context.Context, account, id string) (*stripe.PaymentIntent, *Error) {
	p := &stripe.PaymentIntentRetrieveParams{Params: readParams(account)}
	pi, _, e := retrieve(ctx, c, "retrieve the payment intent", intentObject, id, func(ctx context.Context) (*stripe.PaymentIntent, error) {
		return c.api.V1PaymentIntents.Retrieve(ctx, id, p)
	})
	return pi, e
}

// What the API calls these objects.
const (
	sessionObject = "checkout.session"
	intentObject  = "payment_intent"
)

func retrieve[T any](ctx context.Context, c *Client, name, object, id string, do func(context.Context) (T, error)) (T, head, *Error) {
	var out T
	h, e := c.call(ctx, request{name: name, object: object, id: id, about: true}, func(ctx context.Context) (err error) {
		out, err = do(ctx)
		return err
	})
	return out, h, e
}

// readParams are the parameters of a call that changes nothing: it needs no
// key. The library writes into parameters, so that each call has its own.
func readParams(account string) stripe.Params {
	return stripe.Params{StripeAccount: accountHeader(account)}
}

// writeParams are the parameters of a call that changes something.
func writeParams(account string, r request) stripe.Params {
	return stripe.Params{StripeAccount: accountHeader(account), IdempotencyKey: stripe.String(r.key)}
}
