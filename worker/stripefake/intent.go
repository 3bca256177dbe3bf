package stripefake

import "maps"

// The states of a payment intent.
const (
	IntentNeedsMethod = "requires_payment_method"
	IntentNeedsAction = "requires_action"
	IntentProcessing  = "processing"
	IntentHold        = "requires_capture"
	IntentSucceeded   = "succeeded"
	IntentCanceled    = "canceled"
)

// Intent is a payment_intent: one payment, in as many attempts as it takes.
type Intent struct {
	ID, Status, Currency         string
	Created                      int64
	Amount, Capturable, Received int64
	Charges                      []string // one for each attempt, the newest last
	Session, Invoice             string
	CancellationReason           string
	CanceledAt                   int64
	Metadata                     map[string]string

	method Method
	manual bool
	failed string // the code of the last attempt's failure
}

// LatestCharge is the newest attempt; "" before there is one.
func (pi Intent) LatestCharge() string {
	if len(pi.Charges) == 0 {
		return ""
	}
	return pi.Charges[len(pi.Charges)-1]
}

// IntentParams are what a payment intent is made with.
type IntentParams struct {
	Amount   int64
	Currency string
	Method   Method
	Manual   bool
	Metadata map[string]string
}

// CreateIntent makes a payment intent without a session, for a shop with a
// payment page of its own.
func (a *Account) CreateIntent(p IntentParams) (Intent, error) {
	switch {
	case p.Amount <= 0:
		return Intent{}, refuse("parameter_invalid_integer", "an intent needs an amount above zero")
	case p.Currency == "":
		return Intent{}, refuse("parameter_missing", "an intent needs a currency")
	case p.Manual && p.Method == Debit:
		return Intent{}, refuse("parameter_unknown", "a bank debit cannot be held")
	}
	pi := a.newIntent(p)
	a.send("payment_intent.created", pi, byCaller, nil)
	return *pi, nil
}

func (a *Account) newIntent(p IntentParams) *Intent {
	pi := &Intent{
		ID: a.created(a.newID("pi_")), Status: IntentNeedsMethod, Created: a.now, Amount: p.Amount, Currency: p.Currency,
		Metadata: maps.Clone(p.Metadata), method: p.Method, manual: p.Manual,
	}
	a.intents[pi.ID] = pi
	return pi
}

// awaitsBuyer finds an intent that the buyer can still confirm: its session,
// if it has one, must be open.
func (a *Account) awaitsBuyer(id string) (*Intent, error) {
	pi, err := find(a.intents, id)
	if err != nil {
		return nil, err
	}
	if pi.Status != IntentNeedsMethod && pi.Status != IntentNeedsAction {
		return nil, refuse("payment_intent_unexpected_state", "%s cannot be confirmed, it is %s", id, pi.Status)
	}
	if s := a.sessions[pi.Session]; s != nil && s.Status != SessionOpen {
		return nil, refuse("payment_intent_unexpected_state", "%s cannot be confirmed, its session is %s", id, s.Status)
	}
	return pi, nil
}

// RequireAction is a bank that wants to see the buyer (3D Secure).
func (a *Account) RequireAction(id string) error {
	pi, err := a.awaitsBuyer(id)
	if err != nil {
		return err
	}
	if pi.Status == IntentNeedsAction {
		return refuse("payment_intent_unexpected_state", "%s already waits for its buyer", id)
	}
	pi.Status, pi.failed = IntentNeedsAction, ""
	a.send("payment_intent.requires_action", pi, byCaller, nil)
	return nil
}

// Process hands a bank debit to the bank.
func (a *Account) Process(id string) error {
	pi, err := a.awaitsBuyer(id)
	if err != nil {
		return err
	}
	if pi.method != Debit {
		return refuse("payment_intent_unexpected_state", "a card payment such as %s is decided at once", id)
	}
	c := a.newCharge(pi, ChargePending)
	pi.Status, pi.failed = IntentProcessing, ""
	a.send("charge.pending", c, byCaller, nil)
	a.send("payment_intent.processing", pi, byCaller, nil)
	return nil
}

// Succeed is money that arrives: a card that is charged at once, or a bank
// debit whose bank has paid.
func (a *Account) Succeed(id string) error {
	pi, err := find(a.intents, id)
	if err != nil {
		return err
	}
	var c *Charge
	switch {
	case pi.Status == IntentProcessing:
		c = a.charges[pi.LatestCharge()]
		c.Status = ChargeSucceeded
	case pi.method == Debit:
		return refuse("payment_intent_unexpected_state", "%s has not been processed", id)
	case pi.manual:
		return refuse("payment_intent_unexpected_state", "%s is held, not charged", id)
	default:
		if _, err := a.awaitsBuyer(id); err != nil {
			return err
		}
		c = a.newCharge(pi, ChargeSucceeded)
	}
	who := byCaller
	if pi.Status == IntentProcessing {
		who = byStripe
	}
	c.Captured, c.AmountCaptured = true, c.Amount
	pi.Status, pi.Received, pi.failed = IntentSucceeded, pi.Amount, ""
	a.book(moveCharge, c, c.ID, c.Amount)
	a.send("charge.succeeded", c, who, nil)
	a.send("payment_intent.succeeded", pi, who, nil)
	a.invoicePaid(pi)
	if who == byStripe {
		a.paymentArrived(pi.Session, true)
	}
	return nil
}

// Fail is one attempt that fails. The same intent can still succeed, but for
// one whose session completed before its bank refused.
func (a *Account) Fail(id, code string) error {
	pi, err := find(a.intents, id)
	if err != nil {
		return err
	}
	who := byCaller
	var c *Charge
	if pi.Status == IntentProcessing {
		who = byStripe
		c = a.charges[pi.LatestCharge()]
		c.Status = ChargeFailed
	} else {
		if _, err := a.awaitsBuyer(id); err != nil {
			return err
		}
		if pi.method == Debit {
			return refuse("payment_intent_unexpected_state", "%s has not been processed", id)
		}
		c = a.newCharge(pi, ChargeFailed)
	}
	c.failed = code
	pi.Status, pi.failed = IntentNeedsMethod, code
	a.send("charge.failed", c, who, nil)
	a.send("payment_intent.payment_failed", pi, who, nil)
	if who == byStripe {
		a.paymentArrived(pi.Session, false)
	}
	return nil
}

// Authorize holds the money for the shop to capture.
func (a *Account) Authorize(id string) error {
	pi, err := a.awaitsBuyer(id)
	if err != nil {
		return err
	}
	if !pi.manual {
		return refuse("payment_intent_unexpected_state", "%s is charged, not held", id)
	}
	c := a.newCharge(pi, ChargeSucceeded)
	pi.Status, pi.Capturable, pi.failed = IntentHold, pi.Amount, ""
	a.send("charge.succeeded", c, byCaller, nil)
	a.send("payment_intent.amount_capturable_updated", pi, byCaller, nil)
	return nil
}

// Capture takes up to the whole of a hold; the rest is let go.
func (a *Account) Capture(id string, amount int64) error {
	pi, err := find(a.intents, id)
	switch {
	case err != nil:
		return err
	case pi.Status != IntentHold:
		return refuse("payment_intent_unexpected_state", "%s cannot be captured, it is %s", id, pi.Status)
	case amount <= 0 || amount > pi.Capturable:
		return refuse("amount_too_large", "%d cannot be captured of the %d that %s holds", amount, pi.Capturable, id)
	}
	c := a.charges[pi.LatestCharge()]
	c.Captured, c.AmountCaptured = true, amount
	pi.Status, pi.Received, pi.Capturable = IntentSucceeded, amount, 0
	a.book(moveCharge, c, c.ID, amount)
	release := a.release(c)
	a.send("charge.captured", c, byCaller, map[string]any{"amount_captured": 0, "captured": false})
	a.send("payment_intent.succeeded", pi, byCaller, nil)
	if release != nil {
		a.send("refund.created", release, byCaller, nil)
	}
	// The session of a hold is paid now, and nothing says so: its events are over.
	if s := a.sessions[pi.Session]; s != nil && s.Status == SessionComplete {
		s.PaymentStatus = SessionPaid
	}
	return nil
}

// Cancel ends an intent that has brought no money. A hold is let go.
func (a *Account) Cancel(id string) error { return a.CancelIntent(id, "requested_by_customer") }

// CancelIntent is Cancel with the shop's reason; "" is none.
func (a *Account) CancelIntent(id, reason string) error {
	pi, err := find(a.intents, id)
	if err != nil {
		return err
	}
	switch pi.Status {
	case IntentNeedsMethod, IntentNeedsAction, IntentHold:
	default:
		return refuse("payment_intent_unexpected_state", "%s cannot be canceled, it is %s", id, pi.Status)
	}
	if s := a.sessions[pi.Session]; s != nil && s.Status == SessionOpen {
		return refuse("payment_intent_unexpected_state", "%s ends with its session: expire that one", id)
	}
	held := pi.Status == IntentHold
	a.cancel(pi, reason)
	if held {
		c := a.charges[pi.LatestCharge()]
		release := a.release(c)
		if c.AmountRefunded > 0 {
			a.send("charge.refunded", c, byCaller, map[string]any{"amount_refunded": 0, "refunded": false})
		}
		if release != nil {
			a.send("refund.created", release, byCaller, nil)
		}
	}
	return nil
}

// ExpireHold is a hold that nobody captured in time.
func (a *Account) ExpireHold(id string) error {
	pi, err := find(a.intents, id)
	if err != nil {
		return err
	}
	if pi.Status != IntentHold {
		return refuse("payment_intent_unexpected_state", "%s holds nothing, it is %s", id, pi.Status)
	}
	c := a.charges[pi.LatestCharge()]
	release := a.release(c)
	a.send("charge.expired", c, byStripe, nil)
	a.cancel(pi, "automatic")
	if release != nil {
		a.send("refund.created", release, byStripe, nil)
	}
	return nil
}

func (a *Account) cancel(pi *Intent, reason string) {
	pi.Status, pi.Capturable = IntentCanceled, 0
	pi.CancellationReason, pi.CanceledAt = reason, a.now
	a.send("payment_intent.canceled", pi, byStripe, nil)
}
