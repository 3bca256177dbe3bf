package stripefake

import "maps"

// The states of a charge.
const (
	ChargePending   = "pending"
	ChargeSucceeded = "succeeded"
	ChargeFailed    = "failed"
)

// Charge is one attempt of a payment intent, or a payment of its own from the
// time before there were intents.
type Charge struct {
	ID, Intent, Invoice, Status, Currency  string
	Created                                int64
	Amount, AmountCaptured, AmountRefunded int64
	Captured                               bool
	Refunds, Disputes                      []string
	Metadata                               map[string]string

	method      Method
	failed      string // the failure's code
	released    int64  // what was held and never captured, as far as amount_refunded shows it
	description string
}

// Payment is the object that stands for the charge's money: its intent, or the
// charge itself.
func (c Charge) Payment() string {
	if c.Intent != "" {
		return c.Intent
	}
	return c.ID
}

// newCharge makes the charge of a new attempt. It gets the intent's metadata of
// this moment, once.
func (a *Account) newCharge(pi *Intent, status string) *Charge {
	prefix := "ch_"
	if pi.method == Debit {
		prefix = "py_"
	}
	c := &Charge{
		ID: a.created(a.newID(prefix)), Intent: pi.ID, Invoice: pi.Invoice, Status: status, Created: a.now,
		Amount: pi.Amount, Currency: pi.Currency, Metadata: maps.Clone(pi.Metadata), method: pi.method,
	}
	a.charges[c.ID] = c
	pi.Charges = append(pi.Charges, c.ID)
	return c
}

// ChargeDirectly charges a card by the API of before payment intents.
func (a *Account) ChargeDirectly(amount int64, currency string, metadata map[string]string) (Charge, error) {
	if amount <= 0 || currency == "" {
		return Charge{}, refuse("parameter_invalid_integer", "a charge needs an amount above zero and a currency")
	}
	c := &Charge{
		ID: a.created(a.newID("ch_")), Status: ChargeSucceeded, Created: a.now, Amount: amount, AmountCaptured: amount,
		Captured: true, Currency: currency, Metadata: maps.Clone(metadata),
	}
	a.charges[c.ID] = c
	a.book(moveCharge, c, c.ID, amount)
	a.send("charge.succeeded", c, byCaller, nil)
	return *c, nil
}

// release lets go of what was held and not captured, and returns the refund
// that stands for it, where the account shows one. No money moves.
func (a *Account) release(c *Charge) *Refund {
	rest := c.Amount - c.AmountCaptured
	if rest == 0 || a.cfg.Release == ReleaseHidden {
		return nil
	}
	c.released = rest
	c.AmountRefunded += rest
	if a.cfg.Release == ReleaseAmount {
		return nil
	}
	r := a.newRefund(c, rest, RefundSucceeded)
	r.Reason = reasonRelease
	if !a.basil() { // there a refund has no events, and stands in its charge's list only
		return nil
	}
	return r
}

// TouchCharge changes what no rule reads, as when a balance transaction is
// booked some seconds after the charge.
func (a *Account) TouchCharge(id string) error {
	c, err := find(a.charges, id)
	if err != nil {
		return err
	}
	before := c.description
	c.description = before + "."
	a.send("charge.updated", c, byStripe, map[string]any{"description": text(before)})
	return nil
}
