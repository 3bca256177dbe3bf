package stripefake

import "slices"

// The states of a dispute.
const (
	InquiryNeedsResponse = "warning_needs_response"
	InquiryUnderReview   = "warning_under_review"
	InquiryClosed        = "warning_closed"
	DisputeNeedsResponse = "needs_response"
	DisputeUnderReview   = "under_review"
	DisputePrevented     = "prevented"
	DisputeWon           = "won"
	DisputeLost          = "lost"
)

// disputeFee is what Stripe takes for a dispute besides its amount.
const disputeFee = 1500

// Dispute is a bank's question about a charge (an inquiry: warning_*), or a
// chargeback, which takes the money first.
type Dispute struct {
	ID, Charge, Intent, Status, Currency string
	Created, Amount, DueBy               int64
	Transactions                         []Transaction

	evidence string
}

// Transaction is a balance transaction: money that left or came back, in the
// currency of the balance.
type Transaction struct {
	ID, Currency string
	Amount, Fee  int64
	Created      int64
}

// Open reports whether it is a chargeback without a verdict.
func (d Dispute) Open() bool {
	return d.Status == DisputeNeedsResponse || d.Status == DisputeUnderReview
}

// withdrawn reports whether the dispute has the money now. The amounts do not
// tell: out and back again may be at two rates.
func (d Dispute) withdrawn() bool {
	return len(d.Transactions)%2 == 1
}

// chargedBack reports whether a chargeback of the charge runs or was lost.
func (a *Account) chargedBack(c *Charge) bool {
	return slices.ContainsFunc(c.Disputes, func(id string) bool {
		d := a.disputes[id]
		return d.Open() || d.Status == DisputeLost
	})
}

// Inquire opens an inquiry: no money moves.
func (a *Account) Inquire(charge string, amount int64) (Dispute, error) {
	d, err := a.newDispute(charge, amount, InquiryNeedsResponse)
	if err != nil {
		return Dispute{}, err
	}
	a.send("charge.dispute.created", d, byStripe, nil)
	return *d, nil
}

// ChargeBack opens a chargeback: the money leaves at once. The amount may be part
// of the charge, and may exceed it where currencies moved meanwhile.
func (a *Account) ChargeBack(charge string, amount int64) (Dispute, error) {
	d, err := a.newDispute(charge, amount, DisputeNeedsResponse)
	if err != nil {
		return Dispute{}, err
	}
	if !a.cfg.BareDisputes {
		a.move(d, -1)
	}
	a.send("charge.dispute.created", d, byStripe, nil)
	if a.cfg.BareDisputes {
		a.move(d, -1)
	}
	a.send("charge.dispute.funds_withdrawn", d, byStripe, nil)
	return *d, nil
}

func (a *Account) newDispute(charge string, amount int64, status string) (*Dispute, error) {
	c, err := find(a.charges, charge)
	if err != nil {
		return nil, err
	}
	if !c.Captured {
		return nil, refuse("charge_not_captured", "%s has taken nothing to dispute", charge)
	}
	// Exchange rates move by a few per cent, not by half.
	if amount <= 0 || amount > c.AmountCaptured+c.AmountCaptured/10+1 {
		return nil, refuse("amount_too_large", "%d cannot be disputed of %s", amount, charge)
	}
	for _, id := range c.Disputes {
		switch a.disputes[id].Status {
		case InquiryClosed, DisputePrevented, DisputeWon:
		default:
			return nil, refuse("charge_disputed", "%s of %s is not over", id, charge)
		}
	}
	prefix := "dp_"
	if c.method == Debit {
		prefix = "du_"
	}
	d := &Dispute{
		ID: a.created(a.newID(prefix)), Charge: c.ID, Intent: c.Intent, Status: status, Currency: c.Currency,
		Created: a.now, Amount: amount, DueBy: a.now + 7*86400,
	}
	a.disputes[d.ID] = d
	c.Disputes = append(c.Disputes, d.ID)
	return d, nil
}

// move books the dispute's amount out (-1) or back (+1). The balance may be in
// another currency, at the rate of the day.
func (a *Account) move(d *Dispute, sign int64) {
	t := Transaction{ID: a.newID("txn_"), Amount: sign * d.Amount, Currency: d.Currency, Created: a.now}
	if sign < 0 {
		t.Fee = disputeFee
	}
	if s := a.cfg.Settlement; s != "" && s != d.Currency {
		t.Currency = s
		t.Amount = sign * max(1, d.Amount*(80+a.now%40)/100)
	}
	d.Transactions = append(d.Transactions, t)
	a.book(moveDispute, a.charges[d.Charge], d.ID, sign*d.Amount)
}

// SubmitEvidence answers the bank.
func (a *Account) SubmitEvidence(id string) error {
	d, err := find(a.disputes, id)
	if err != nil {
		return err
	}
	switch d.Status {
	case InquiryNeedsResponse:
		return a.moveDispute(d, InquiryUnderReview, "charge.dispute.updated")
	case DisputeNeedsResponse:
		return a.moveDispute(d, DisputeUnderReview, "charge.dispute.updated")
	}
	return refuse("dispute_unexpected_state", "%s takes no evidence, it is %s", id, d.Status)
}

// Escalate makes an inquiry a chargeback.
func (a *Account) Escalate(id string) error {
	d, err := a.disputeIn(id, "escalate", InquiryNeedsResponse, InquiryUnderReview)
	if err != nil {
		return err
	}
	a.move(d, -1)
	if err := a.moveDispute(d, DisputeNeedsResponse, "charge.dispute.updated"); err != nil {
		return err
	}
	a.send("charge.dispute.funds_withdrawn", d, byStripe, nil)
	return nil
}

// CloseInquiry ends an inquiry without a chargeback.
func (a *Account) CloseInquiry(id string) error {
	d, err := a.disputeIn(id, "be closed", InquiryNeedsResponse, InquiryUnderReview)
	if err != nil {
		return err
	}
	return a.moveDispute(d, InquiryClosed, "charge.dispute.closed")
}

// Prevent ends an inquiry because the network settled it before a chargeback.
func (a *Account) Prevent(id string) error {
	d, err := a.disputeIn(id, "be prevented", InquiryNeedsResponse, InquiryUnderReview)
	if err != nil {
		return err
	}
	return a.moveDispute(d, DisputePrevented, "charge.dispute.closed")
}

// Win gives the money back, unless it is back already.
func (a *Account) Win(id string) error {
	d, err := a.disputeIn(id, "be won", DisputeNeedsResponse, DisputeUnderReview)
	if err != nil {
		return err
	}
	returned := d.withdrawn()
	if returned {
		a.move(d, +1)
	}
	if err := a.moveDispute(d, DisputeWon, "charge.dispute.closed"); err != nil {
		return err
	}
	if returned {
		a.send("charge.dispute.funds_reinstated", d, byStripe, nil)
	}
	return nil
}

// Lose leaves the money where it is; if it was back already, it leaves again.
func (a *Account) Lose(id string) error {
	d, err := a.disputeIn(id, "be lost", DisputeNeedsResponse, DisputeUnderReview)
	if err != nil {
		return err
	}
	taken := !d.withdrawn()
	if taken {
		a.move(d, -1)
	}
	if err := a.moveDispute(d, DisputeLost, "charge.dispute.closed"); err != nil {
		return err
	}
	if taken {
		a.send("charge.dispute.funds_withdrawn", d, byStripe, nil)
	}
	return nil
}

// ReinstateFunds gives the money back and leaves the verdict as it is: one that
// is open is reversed early, one that was lost stays lost and is paid all the
// same.
func (a *Account) ReinstateFunds(id string) error {
	d, err := a.disputeIn(id, "be reinstated", DisputeNeedsResponse, DisputeUnderReview, DisputeLost)
	if err != nil {
		return err
	}
	if !d.withdrawn() {
		return refuse("dispute_unexpected_state", "the money of %s is back already", id)
	}
	a.move(d, +1)
	a.send("charge.dispute.funds_reinstated", d, byStripe, nil)
	return nil
}

// Turn makes a lost dispute a won one.
func (a *Account) Turn(id string) error {
	d, err := a.disputeIn(id, "be turned", DisputeLost)
	if err != nil {
		return err
	}
	returned := d.withdrawn()
	if returned {
		a.move(d, +1)
	}
	if err := a.moveDispute(d, DisputeWon, "charge.dispute.updated"); err != nil {
		return err
	}
	if returned {
		a.send("charge.dispute.funds_reinstated", d, byStripe, nil)
	}
	return nil
}

// TouchDispute adds to the evidence without sending it to the bank.
func (a *Account) TouchDispute(id string) error {
	d, err := find(a.disputes, id)
	if err != nil {
		return err
	}
	before := d.evidence
	d.evidence += "."
	a.send("charge.dispute.updated", d, byCaller, map[string]any{"evidence": map[string]any{"uncategorized_text": text(before)}})
	return nil
}

func (a *Account) disputeIn(id, what string, states ...string) (*Dispute, error) {
	d, err := find(a.disputes, id)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(states, d.Status) {
		return nil, refuse("dispute_unexpected_state", "%s cannot %s, it is %s", id, what, d.Status)
	}
	return d, nil
}

func (a *Account) moveDispute(d *Dispute, to, event string) error {
	previous := map[string]any{"status": d.Status}
	d.Status = to
	a.send(event, d, byStripe, previous)
	return nil
}
