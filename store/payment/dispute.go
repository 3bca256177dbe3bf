package payment

// A dispute: class warning_* < needs_response, under_review < closed by a
// verdict. A verdict can be turned (a lost one is won after all), so there
// created decides.
const (
	classDisputeInquiry = 1
	classDisputeOpen    = 2
	classDisputeClosed  = 3
)

const (
	disputeNeedsResponse = "needs_response"
	disputeUnderReview   = "under_review"
	disputeWon           = "won"
	disputeLost          = "lost"
	disputePrevented     = "prevented"
	inquiryNeedsResponse = "warning_needs_response"
	inquiryUnderReview   = "warning_under_review"
	inquiryClosed        = "warning_closed"
)

// dispute reads a dispute.
func (r *reader) dispute(ev Event) Fact {
	f := r.newFact(ev, KindDispute)
	snap, sticky := &f.Snapshot, &f.Sticky
	snap.Status = r.text("status")
	snap.Amount = r.amount("amount")
	if !snap.Amount.Known {
		r.blame("there is no amount")
	}
	sticky.PaymentIntent = r.ref("payment_intent")
	sticky.Charge = r.ref("charge")
	if details := r.object("evidence_details"); details != nil {
		if raw := details.raw("due_by"); raw != nil {
			due, ok := secondsMillis(raw)
			if !ok {
				details.blame("due_by is not a time")
			}
			snap.DueBy = due
		}
		r.within("evidence_details", details)
	}
	sticky.Transactions, sticky.Listed = r.transactions(snap.Currency)

	switch snap.Status {
	case inquiryNeedsResponse, inquiryUnderReview:
		f.Rank.Class = classDisputeInquiry
	case disputeNeedsResponse, disputeUnderReview:
		f.Rank.Class = classDisputeOpen
		sticky.ProvenAt = ev.Created
	case disputeWon, disputeLost:
		f.Rank.Class = classDisputeClosed
		sticky.ProvenAt = ev.Created
	case disputePrevented, inquiryClosed:
		f.Rank.Class = classDisputeClosed
	}
	return f
}

// transactions reads balance_transactions, and whether the list is there. A
// transaction that names no currency is in the dispute's.
func (r *reader) transactions(currency string) (list []Transaction, listed bool) {
	elements, listed := r.elements("balance_transactions")
	for _, raw := range elements {
		e := readObject(raw)
		t := Transaction{Amount: e.signed("amount").Minor, Currency: e.currency("currency")}
		if e.raw("amount") == nil {
			e.blame("amount is missing")
		}
		var ok bool
		if t.ID, ok = usableID(e.raw("id")); !ok {
			e.blame("there is no usable id")
		}
		if t.Currency == "" {
			t.Currency = currency
		}
		r.within("balance_transactions", e)
		list = append(list, t)
	}
	return unionTransactions(nil, list), listed
}

// isOpen reports whether the dispute is a real one that still runs.
func (f Fact) isOpen() bool {
	return f.Snapshot.Status == disputeNeedsResponse || f.Snapshot.Status == disputeUnderReview
}

// isInquiry reports whether it is a question of the bank's that moves no money.
func (f Fact) isInquiry() bool {
	return f.Snapshot.Status == inquiryNeedsResponse || f.Snapshot.Status == inquiryUnderReview
}
