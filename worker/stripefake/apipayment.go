package stripefake

import (
	"errors"
	"fmt"
)

func (a *Account) allIntents() map[string]*Intent   { return a.intents }
func (a *Account) allCharges() map[string]*Charge   { return a.charges }
func (a *Account) allDisputes() map[string]*Dispute { return a.disputes }

// shown is an object as events and the API both show it.
func showIntent(a *Account, pi *Intent) map[string]any  { return pi.render(a) }
func showCharge(a *Account, c *Charge) map[string]any   { return c.render(a) }
func showDispute(a *Account, d *Dispute) map[string]any { return d.render(a) }

const intentKind = "payment_intent"

func (c *call) retrieveIntent() work {
	return one(c, intentKind, (*Account).allIntents, nil, showIntent)
}

func (c *call) listIntents() work {
	created := c.form.span("created")
	return listOf(c, intentKind, (*Account).allIntents, func(pi *Intent) bool { return created.has(pi.Created) }, showIntent)
}

func (c *call) cancelIntent() work {
	reason := c.form.oneOf("cancellation_reason", "duplicate", "fraudulent", "requested_by_customer", "abandoned")
	return one(c, intentKind, (*Account).allIntents, func(a *Account) error {
		return withIntent(a, c.id, a.CancelIntent(c.id, reason))
	}, showIntent)
}

func (c *call) captureIntent() work {
	amount, chosen := c.form.integer("amount_to_capture")
	return one(c, intentKind, (*Account).allIntents, func(a *Account) error {
		if !chosen {
			amount = a.intents[c.id].Capturable
		}
		return withIntent(a, c.id, a.Capture(c.id, amount))
	}, showIntent)
}

// withIntent puts the payment intent into the error that its state causes, as
// Stripe does: whole, with its client_secret.
func withIntent(a *Account, id string, err error) error {
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok || refusal.Code != "payment_intent_unexpected_state" {
		return err
	}
	e := asAPIError(err)
	e.paymentIntent = a.intents[id].render(a)
	return e
}

func (c *call) retrieveCharge() work {
	return one(c, "charge", (*Account).allCharges, nil, showCharge)
}

func (c *call) listCharges() work {
	created, intent := c.form.span("created"), c.form.text("payment_intent")
	return listOf(c, "charge", (*Account).allCharges, func(ch *Charge) bool {
		return created.has(ch.Created) && fits(intent, ch.Intent)
	}, showCharge)
}

func (c *call) retrieveDispute() work {
	return one(c, "dispute", (*Account).allDisputes, nil, showDispute)
}

func (c *call) listDisputes() work {
	created, intent, charge := c.form.span("created"), c.form.text("payment_intent"), c.form.text("charge")
	return listOf(c, "dispute", (*Account).allDisputes, func(d *Dispute) bool {
		return created.has(d.Created) && fits(intent, d.Intent) && fits(charge, d.Charge)
	}, showDispute)
}

func (c *call) retrieveAccount() work {
	return func(a *Account) (any, error) {
		id := a.cfg.Connected
		if id == "" || c.account == "" {
			id = "acct_fake" + fmt.Sprint(a.cfg.Seed)
		}
		return map[string]any{
			"id": id, "object": "account", "country": "DE", "default_currency": "eur", "email": nil, "type": "standard",
			"charges_enabled": true, "payouts_enabled": true, "details_submitted": true, "metadata": labels(nil),
		}, nil
	}
}

// retrieveBalance is what came in less what went out, by the payments' currency.
// The fake pays nothing out and books no fees.
func (c *call) retrieveBalance() work {
	return func(a *Account) (any, error) {
		available := []any{}
		for _, sum := range a.Ledger().Sums() {
			available = append(available, map[string]any{
				"amount": sum.Received - sum.Refunded - sum.Taken, "currency": sum.Currency, "source_types": map[string]any{"card": sum.Received - sum.Refunded - sum.Taken},
			})
		}
		return map[string]any{"object": "balance", "livemode": a.cfg.Livemode, "available": available, "pending": []any{}}, nil
	}
}
