package stripefake

import "fmt"

func (a *Account) allRefunds() map[string]*Refund { return a.refunds }

func showRefund(a *Account, r *Refund) map[string]any { return r.render(a) }

// createRefund reads what is to be refunded: of a payment intent or of a charge,
// part of it or whatever is left.
func (c *call) createRefund() work {
	f := &c.form
	intent, charge := f.text("payment_intent"), f.text("charge")
	switch {
	case intent == "" && charge == "":
		f.refuse("parameter_missing", "charge", "One of the following params should be provided for this request: payment_intent or charge.")
	case intent != "" && charge != "":
		f.refuse("parameters_exclusive", "charge", "You may only specify one of these parameters: payment_intent, charge.")
	}
	amount, partly := f.integer("amount")
	if partly && amount < 1 {
		f.refuse("parameter_invalid_integer", "amount", "Invalid positive integer")
	}
	p := RefundParams{
		Amount: amount, Reason: f.oneOf("reason", "duplicate", "fraudulent", "requested_by_customer"), Metadata: f.labels("metadata"),
	}
	expand := f.list("expand")
	return func(a *Account) (any, error) {
		ch, err := a.refundable(intent, charge)
		if err != nil {
			return nil, err
		}
		p.Pending = c.server.cfg.PendingRefunds || ch.method == Debit
		if !partly {
			p.Amount = a.Refundable(ch.ID)
		}
		if unit := smallestUnit(ch.Currency); p.Amount%unit != 0 {
			return nil, &apiError{status: 400, kind: kindInvalid, code: "parameter_invalid_integer", param: "amount",
				message: fmt.Sprintf("Amounts in %s must be a multiple of %d.", ch.Currency, unit)}
		}
		r, err := a.RefundCharge(ch.ID, p)
		if err != nil {
			e := asAPIError(err)
			if e.code == "amount_too_large" {
				e.param = "amount"
			}
			return nil, e
		}
		return c.expanded(a, a.refunds[r.ID].render(a), expand, "")
	}
}

// refundable is the charge that a refund is of.
func (a *Account) refundable(intent, charge string) (*Charge, error) {
	if charge != "" {
		if c := a.charges[charge]; c != nil {
			return c, nil
		}
		return nil, missing("charge", charge, "charge")
	}
	pi := a.intents[intent]
	if pi == nil {
		return nil, missing(intentKind, intent, intentKind)
	}
	if pi.Status != IntentSucceeded {
		return nil, refuse("payment_intent_unexpected_state", "This PaymentIntent (%s) does not have a successful charge to refund.", pi.ID)
	}
	return a.charges[pi.LatestCharge()], nil
}

func (c *call) retrieveRefund() work {
	return one(c, "refund", (*Account).allRefunds, nil, showRefund)
}

func (c *call) listRefunds() work {
	created, intent, charge := c.form.span("created"), c.form.text("payment_intent"), c.form.text("charge")
	return listOf(c, "refund", (*Account).allRefunds, func(r *Refund) bool {
		return created.has(r.Created) && fits(intent, r.Intent) && fits(charge, r.Charge)
	}, showRefund)
}
