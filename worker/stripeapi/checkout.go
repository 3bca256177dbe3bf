package stripeapi

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v82"

	"paidonce/store"
	"paidonce/store/payment"
)

// lookBack is how much earlier than its first known try a session may have been
// opened: after a restore the file does not know of tries that were made since
// the backup. A session older than a day has ended anyway.
const lookBack = 25 * time.Hour

// OpenCheckout opens a Checkout Session under the key of the claim, after it
// has closed every session of claim.Sessions, so that never two can be paid. If
// one of those has brought money, or is bringing it, nothing is opened: Code
// order_paid or payment_under_way. Answer.Ref is the session's id, Answer.Result
// a store.CheckoutResult.
func (c *Client) OpenCheckout(ctx context.Context, claim store.EffectClaim, call store.CheckoutCall) store.Answer {
	if e := findable(claim, call.Metadata); e != nil {
		return e.answer()
	}
	if call.SuccessURL == "" || len(call.Lines) == 0 {
		return refused(codeInvalidBody, "stripe: open the session: the body has no success_url, or no lines").answer()
	}
	for _, id := range claim.Sessions {
		s, _, e := c.session(ctx, call.Account, id)
		if e == nil && s.Metadata[payment.OperationMetadata] == claim.BaseKey && s.Status == stripe.CheckoutSessionStatusOpen {
			continue // this very effect has opened it: the key gives it back
		}
		if e == nil {
			e = c.endSession(ctx, claim, call.Account, s)
		}
		if e != nil {
			return e.harmless().answer()
		}
	}
	var s *stripe.CheckoutSession
	req := request{name: "open the session", object: sessionObject, mutates: true, key: claim.Key}
	h, e := c.call(ctx, req, func(ctx context.Context) (err error) {
		s, err = c.api.V1CheckoutSessions.Create(ctx, checkoutParams(req, call))
		return err
	})
	if e != nil {
		return e.answer()
	}
	return checkoutAnswer(s, h)
}

// checkoutParams is the session as Stripe is asked for it. It is a function of
// the key and the frozen body alone: another value would be another request
// under the same key. So there is no expires_at.
func checkoutParams(r request, call store.CheckoutCall) *stripe.CheckoutSessionCreateParams {
	p := &stripe.CheckoutSessionCreateParams{
		Params:     writeParams(call.Account, r),
		Mode:       stripe.String(string(stripe.CheckoutSessionModePayment)),
		SuccessURL: stripe.String(call.SuccessURL),
		Metadata:   maps.Clone(call.Metadata),
		// A session's metadata is not copied to its payment intent.
		PaymentIntentData: &stripe.CheckoutSessionCreatePaymentIntentDataParams{Metadata: maps.Clone(call.Metadata)},
	}
	for _, field := range []struct {
		to   **string
		text string
	}{{&p.CancelURL, call.CancelURL}, {&p.CustomerEmail, call.Email}, {&p.ClientReferenceID, call.Reference}} {
		if field.text != "" {
			*field.to = stripe.String(field.text)
		}
	}
	for _, line := range call.Lines {
		p.LineItems = append(p.LineItems, &stripe.CheckoutSessionCreateLineItemParams{
			Quantity: stripe.Int64(line.Quantity),
			PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
				Currency: stripe.String(strings.ToLower(call.Currency)), UnitAmount: stripe.Int64(line.UnitMinor),
				ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: stripe.String(line.Name)},
			},
		})
	}
	return p
}

// FindCheckout looks for the session that the claim's calls may have opened,
// among all since then: by metadata.paidonce_operation. What it finds is read
// once more, for its url. Absent is said only of a complete list; a look-up that
// fails says Again, since nothing is known. Answer.Code is the status of a
// session that is not open any more.
func (c *Client) FindCheckout(ctx context.Context, claim store.EffectClaim, call store.CheckoutCall) store.Answer {
	if e := findable(claim, call.Metadata); e != nil {
		return e.answer()
	}
	since := claim.CreatedAt
	if claim.FirstTriedAt != 0 && (since == 0 || claim.FirstTriedAt < since) {
		since = claim.FirstTriedAt
	}
	if since == 0 {
		return refused(codeInvalidBody, "stripe: find the session: the effect has no time").answer()
	}
	from := since.Std().Add(-lookBack).Unix()
	found := ""
	h, e := each(ctx, c, "find the session", call.Account, func(ctx context.Context, page stripe.ListParams) stripe.Seq2[*stripe.CheckoutSession, error] {
		return c.api.V1CheckoutSessions.List(ctx, &stripe.CheckoutSessionListParams{
			ListParams: page, CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: from},
		})
	}, func(s *stripe.CheckoutSession) bool {
		if s.Metadata[payment.OperationMetadata] != claim.BaseKey {
			return true
		}
		found = s.ID
		return false
	})
	switch {
	case e != nil:
		return e.nothingKnown().answer()
	case found == "":
		return store.Answer{Outcome: store.OutcomeAbsent, Status: 200, RequestID: h.requestID}
	}
	s, h, e := c.session(ctx, call.Account, found)
	if e != nil {
		return e.nothingKnown().answer()
	}
	return checkoutAnswer(s, h)
}

func checkoutAnswer(s *stripe.CheckoutSession, h head) store.Answer {
	a := store.Answer{Outcome: store.OutcomeDone, Status: 200, Ref: s.ID, RequestID: h.requestID}
	if s.Status != stripe.CheckoutSessionStatusOpen {
		a.Code = word(string(s.Status))
	}
	a.Body = summary{
		Object: s.Object, ID: s.ID, Status: string(s.Status), PaymentStatus: string(s.PaymentStatus),
		Amount: s.AmountTotal, Currency: string(s.Currency), Replayed: h.replayed,
	}.bytes()
	result, err := json.Marshal(store.CheckoutResult{Session: s.ID, URL: s.URL, ExpiresAt: store.At(time.Unix(s.ExpiresAt, 0))})
	if err != nil {
		return refused(codeInvalidBody, "stripe: open the session: its result cannot be written").answer()
	}
	a.Result = result
	return a
}
