package stripefake

func (c *Charge) render(a *Account) map[string]any {
	o := map[string]any{
		"id": c.ID, "object": "charge", "livemode": a.cfg.Livemode, "created": c.Created,
		"amount": c.Amount, "amount_captured": c.AmountCaptured, "amount_refunded": c.AmountRefunded, "currency": c.Currency,
		"status": c.Status, "paid": c.Status == ChargeSucceeded, "captured": c.Captured, "refunded": c.fullyRefunded(),
		"disputed": len(c.Disputes) > 0, "payment_intent": text(c.Intent), "metadata": labels(c.Metadata),
		"balance_transaction": nil, "description": text(c.description), "customer": nil,
		"failure_code": nil, "failure_message": nil, "fraud_details": map[string]any{},
		"outcome":                map[string]any{"type": "authorized", "network_status": "approved_by_network", "reason": nil, "seller_message": "Payment complete."},
		"billing_details":        map[string]any{"address": nil, "email": nil, "name": nil, "phone": nil},
		"payment_method":         "pm_" + c.method.name(),
		"payment_method_details": c.methodDetails(),
		"receipt_email":          nil, "receipt_url": nil, "review": nil, "shipping": nil, "statement_descriptor": nil,
		"transfer_data": nil, "transfer_group": nil,
	}
	switch c.Status {
	case ChargeFailed:
		o["failure_code"], o["failure_message"] = "card_declined", "Your card was declined."
		o["outcome"] = map[string]any{"type": "issuer_declined", "network_status": "declined_by_network", "reason": c.failed, "seller_message": "The bank declined."}
	case ChargePending:
		o["outcome"] = nil
	}
	if c.Captured && !a.basil() { // later ones book it a little after the event
		o["balance_transaction"] = "txn_" + c.ID
	}
	if a.basil() {
		return o
	}
	o["invoice"] = text(c.Invoice)
	var refunds []any // the newest first
	for i := len(c.Refunds) - 1; i >= 0; i-- {
		refunds = append(refunds, a.refunds[c.Refunds[i]].render(a))
	}
	o["refunds"] = list("/v1/charges/"+c.ID+"/refunds", refunds)
	return o
}

func (c *Charge) methodDetails() map[string]any {
	if c.method == Debit {
		return map[string]any{"type": "sepa_debit", "sepa_debit": map[string]any{"bank_code": "37040044", "country": "DE", "last4": "3000"}}
	}
	return map[string]any{"type": "card", "card": map[string]any{
		"brand": "visa", "country": "DE", "exp_month": 8, "exp_year": 2030, "funding": "credit", "last4": "4242", "network": "visa",
	}}
}

func (r *Refund) render(a *Account) map[string]any {
	o := map[string]any{
		"id": r.ID, "object": "refund", "created": r.Created, "amount": r.Amount, "currency": r.Currency,
		"status": r.Status, "charge": r.Charge, "payment_intent": text(r.Intent), "metadata": labels(r.Metadata),
		"reason": text(r.Reason), "balance_transaction": nil, "receipt_number": nil,
		"source_transfer_reversal": nil, "transfer_reversal": nil,
	}
	if r.Status == RefundFailed {
		o["failure_reason"] = r.FailureReason
		o["failure_balance_transaction"] = "txn_f" + r.ID
	}
	if a.basil() {
		o["destination_details"] = map[string]any{"type": "card", "card": map[string]any{"type": "refund", "reference_status": "pending"}}
		if r.Status == RefundPending {
			o["pending_reason"] = "processing"
		}
	}
	return o
}

func (d *Dispute) render(a *Account) map[string]any {
	transactions := []any{}
	for _, t := range d.Transactions {
		category := "dispute"
		if t.Amount > 0 {
			category = "dispute_reversal"
		}
		transactions = append(transactions, map[string]any{
			"id": t.ID, "object": "balance_transaction", "amount": t.Amount, "fee": t.Fee, "net": t.Amount - t.Fee, "currency": t.Currency,
			"created": t.Created, "available_on": t.Created, "exchange_rate": nil, "fee_details": []any{},
			"reporting_category": category, "source": d.ID, "status": "available", "type": "adjustment",
		})
	}
	return map[string]any{
		"id": d.ID, "object": "dispute", "livemode": a.cfg.Livemode, "created": d.Created, "amount": d.Amount, "currency": d.Currency,
		"status": d.Status, "charge": d.Charge, "payment_intent": text(d.Intent), "reason": "general", "metadata": labels(nil),
		"balance_transactions": transactions,
		"evidence":             map[string]any{"uncategorized_text": text(d.evidence)},
		"evidence_details":     map[string]any{"due_by": d.DueBy, "has_evidence": d.evidence != "", "past_due": false, "submission_count": 0},
		"is_charge_refundable": d.Status == InquiryNeedsResponse || d.Status == InquiryUnderReview,
		"network_reason_code":  nil,
	}
}
