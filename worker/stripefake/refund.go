package stripefake

import (
	"maps"
	"slices"
)

// The states of a refund.
const (
	RefundPending     = "pending"
	RefundNeedsAction = "requires_action"
	RefundSucceeded   = "succeeded"
	RefundFailed      = "failed"
	RefundCanceled    = "canceled"
)

// reasonRelease marks a refund that only lets go of a hold.
const reasonRelease = "expired_uncaptured_charge"

// Refund is a refund of a charge. It carries no metadata of the payment.
type Refund struct {
	ID, Charge, Intent, Status, Currency string
	Created, Amount                      int64
	Reason, FailureReason                string
	Metadata                             map[string]string
}

// active reports whether the refund holds its amount: the money is with the
// customer, or on its way.
func (r Refund) active() bool { return r.Status != RefundFailed && r.Status != RefundCanceled }

func (a *Account) newRefund(c *Charge, amount int64, status string) *Refund {
	prefix := "re_"
	if c.method == Debit {
		prefix = "pyr_"
	}
	r := &Refund{
		ID: a.created(a.newID(prefix)), Charge: c.ID, Intent: c.Intent, Status: status, Created: a.now,
		Amount: amount, Currency: c.Currency,
	}
	a.refunds[r.ID] = r
	c.Refunds = append(c.Refunds, r.ID)
	return r
}

// Refundable is what can still be refunded of a charge: what was captured, less
// what has gone back or is on its way.
func (a *Account) Refundable(charge string) int64 {
	c := a.charges[charge]
	if c == nil {
		return 0
	}
	return c.AmountCaptured - a.activeRefunds(c)
}

// activeRefunds is what refunds to the customer hold of a charge.
func (a *Account) activeRefunds(c *Charge) int64 {
	var n int64
	for _, id := range c.Refunds {
		if r := a.refunds[id]; r.active() && r.Reason != reasonRelease {
			n += r.Amount
		}
	}
	return n
}

// Refund gives part or all of a charge back. With pending true the bank takes
// its time, else it is done at once.
func (a *Account) Refund(charge string, amount int64, pending bool) (Refund, error) {
	return a.RefundCharge(charge, RefundParams{Amount: amount, Pending: pending})
}

// RefundParams are what a refund is made with.
type RefundParams struct {
	Amount   int64
	Pending  bool // the bank takes its time
	Reason   string
	Metadata map[string]string
}

// RefundCharge is Refund with a reason and with metadata of the refund's own.
func (a *Account) RefundCharge(charge string, p RefundParams) (Refund, error) {
	amount, pending := p.Amount, p.Pending
	c, err := find(a.charges, charge)
	switch {
	case err != nil:
		return Refund{}, err
	case !c.Captured:
		return Refund{}, refuse("charge_not_refundable", "%s was not captured", charge)
	case a.Refundable(charge) == 0:
		return Refund{}, refuse("charge_already_refunded", "%s has already been refunded", charge)
	case amount <= 0 || amount > a.Refundable(charge):
		return Refund{}, refuse("amount_too_large", "Refund amount (%d) is greater than unrefunded amount on charge (%d)", amount, a.Refundable(charge))
	case c.method == Card && a.chargedBack(c):
		// A bank debit can be refunded and disputed: the customer is paid twice.
		return Refund{}, refuse("charge_disputed", "%s has been charged back", charge)
	}
	status := RefundSucceeded
	if pending {
		status = RefundPending
	}
	r := a.newRefund(c, amount, status)
	r.Reason, r.Metadata = p.Reason, maps.Clone(p.Metadata)
	if !pending {
		a.bookRefund(r, amount)
	}
	a.tellRefund("refund.created", r, byCaller, nil)
	a.showRefunds(c, "charge.refunded", byCaller)
	return *r, nil
}

// showRefunds brings amount_refunded up to what the charge's refunds are now,
// and says so if that is a change.
func (a *Account) showRefunds(c *Charge, event string, who cause) {
	shown := a.activeRefunds(c) + c.released
	if !a.cfg.FailureLowers {
		shown = max(shown, c.AmountRefunded)
	}
	before := *c
	c.AmountRefunded = shown
	if shown == before.AmountRefunded && event != "charge.refunded" {
		return
	}
	changed := map[string]any{"amount_refunded": before.AmountRefunded}
	if before.fullyRefunded() != c.fullyRefunded() {
		changed["refunded"] = before.fullyRefunded()
	}
	a.send(event, c, who, changed)
}

// fullyRefunded is the charge's own word for it: true as soon as refunds that
// are under way add up to it.
func (c Charge) fullyRefunded() bool { return c.AmountRefunded >= c.Amount }

// tellRefund sends what is sent about a refund's change. Accounts of before
// 2024-10-28 hear of few refunds by themselves, and then by another name; later
// ones hear of a change by both names.
func (a *Account) tellRefund(event string, r *Refund, who cause, previous map[string]any) {
	if a.basil() {
		a.send(event, r, who, previous)
	}
	if event != "refund.created" {
		a.send("charge.refund.updated", r, who, previous)
	}
}

// RefundNeedsAction is a refund that waits for the customer's bank details.
func (a *Account) RefundNeedsAction(id string) error {
	return a.moveRefund(id, RefundNeedsAction, "refund.updated", RefundPending)
}

// RefundSucceeds is a refund under way that arrives, or that arrives after all
// when its bank had returned it.
func (a *Account) RefundSucceeds(id string) error {
	return a.moveRefund(id, RefundSucceeded, "refund.updated", RefundPending, RefundNeedsAction)
}

// RefundFails is a refund that the bank cannot carry out, be it weeks after it
// had succeeded: the money is back in the balance.
func (a *Account) RefundFails(id string) error {
	return a.moveRefund(id, RefundFailed, "refund.failed", RefundPending, RefundNeedsAction, RefundSucceeded)
}

// RefundReturnedByBank takes a refund that had succeeded back to waiting.
func (a *Account) RefundReturnedByBank(id string) error {
	return a.moveRefund(id, RefundNeedsAction, "refund.updated", RefundSucceeded)
}

// RefundCanceled ends a refund that nobody answered.
func (a *Account) RefundCanceled(id string) error {
	return a.moveRefund(id, RefundCanceled, "refund.updated", RefundPending, RefundNeedsAction)
}

// moveRefund is every change of a refund after its beginning.
func (a *Account) moveRefund(id, to, event string, from ...string) error {
	r, err := find(a.refunds, id)
	if err != nil {
		return err
	}
	if !slices.Contains(from, r.Status) || r.Reason == reasonRelease {
		return refuse("refund_unexpected_state", "%s cannot become %s, it is %s", id, to, r.Status)
	}
	c := a.charges[r.Charge]
	previous := map[string]any{"status": r.Status}
	switch {
	case r.Status == RefundSucceeded:
		a.bookRefund(r, -r.Amount)
	case to == RefundSucceeded:
		a.bookRefund(r, r.Amount)
	}
	r.Status = to
	if to == RefundFailed {
		r.FailureReason = "expired_or_canceled_card"
		previous["failure_reason"] = nil
	}
	a.tellRefund(event, r, byStripe, previous)
	if !r.active() {
		a.showRefunds(c, "charge.updated", byStripe)
	}
	return nil
}

// TouchRefund changes a refund's metadata.
func (a *Account) TouchRefund(id string) error {
	r, err := find(a.refunds, id)
	if err != nil {
		return err
	}
	before := r.Metadata
	r.Metadata = maps.Clone(labels(before))
	r.Metadata["note"] += "."
	a.tellRefund("refund.updated", r, byCaller, map[string]any{"metadata": labels(before)})
	return nil
}
