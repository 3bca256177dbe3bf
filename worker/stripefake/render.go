package stripefake

import "cmp"

// What the objects look like in JSON, without fields that say the same in every
// body of this model and that no program of a shop's reads.

func (s *Session) id() string        { return s.ID }
func (pi *Intent) id() string        { return pi.ID }
func (c *Charge) id() string         { return c.ID }
func (r *Refund) id() string         { return r.ID }
func (d *Dispute) id() string        { return d.ID }
func (in *Invoice) id() string       { return in.ID }
func (p *invoicePayment) id() string { return p.payment }

// text is a string, or null when there is none.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// labels is a metadata map; without any it is an empty one, never null.
func labels(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// list is an embedded list object.
func list(url string, items []any) map[string]any {
	if items == nil {
		items = []any{}
	}
	return map[string]any{"object": "list", "data": items, "has_more": false, "total_count": len(items), "url": url}
}

func (m Method) name() string {
	if m == Debit {
		return "sepa_debit"
	}
	return "card"
}

func (s *Session) methodNames() []string {
	if len(s.methods) == 0 {
		return []string{s.method.name()}
	}
	var names []string
	for _, m := range s.methods {
		names = append(names, m.name())
	}
	return names
}

func (s *Session) render(a *Account) map[string]any {
	o := map[string]any{
		"id": s.ID, "object": "checkout.session", "livemode": a.cfg.Livemode,
		"created": s.Created, "expires_at": s.ExpiresAt, "mode": s.Mode, "status": s.Status, "payment_status": s.PaymentStatus,
		"amount_subtotal": s.Pricing.Subtotal, "amount_total": s.Pricing.Total(), "currency": s.Currency,
		"total_details": map[string]any{
			"amount_discount": s.Pricing.Discount, "amount_shipping": s.Pricing.Shipping, "amount_tax": s.Pricing.Tax,
		},
		"automatic_tax":       map[string]any{"enabled": s.Pricing.Tax > 0, "status": nil},
		"client_reference_id": text(s.Reference), "metadata": labels(s.Metadata), "payment_link": text(s.Link),
		"payment_intent": text(s.Intent), "setup_intent": nil, "subscription": text(s.Subscription),
		"payment_method_types": s.methodNames(), "payment_method_options": map[string]any{},
		"customer": nil, "customer_email": text(s.Email), "customer_details": nil,
		"cancel_url": "https://shop.example/cancel", "success_url": "https://shop.example/thanks", "url": nil,
		"locale": nil, "recovered_from": nil, "shipping_options": []any{}, "after_expiration": nil,
	}
	if s.SuccessURL != "" {
		o["success_url"], o["cancel_url"] = s.SuccessURL, text(s.CancelURL)
	}
	switch s.Status {
	case SessionComplete:
		o["customer_details"] = map[string]any{
			"email": cmp.Or(s.Email, "buyer@example.com"), "name": "A. Buyer", "phone": nil, "tax_exempt": "none", "tax_ids": []any{}, "address": nil,
		}
	case SessionOpen:
		o["url"] = "https://checkout.stripe.com/c/pay/" + s.ID
	}
	if a.basil() {
		o["invoice"] = text(s.Invoice)
		o["ui_mode"] = "hosted"
		o["adaptive_pricing"] = map[string]any{"enabled": true}
		o["customer_creation"] = "if_required"
	}
	return o
}

func (pi *Intent) render(a *Account) map[string]any {
	o := map[string]any{
		"id": pi.ID, "object": "payment_intent", "livemode": a.cfg.Livemode, "created": pi.Created,
		"amount": pi.Amount, "amount_capturable": pi.Capturable, "amount_received": pi.Received, "currency": pi.Currency,
		"status": pi.Status, "metadata": labels(pi.Metadata),
		"canceled_at": nil, "cancellation_reason": text(pi.CancellationReason),
		"capture_method": "automatic", "confirmation_method": "automatic", "client_secret": pi.ID + "_secret_model",
		"customer": nil, "description": nil, "last_payment_error": nil, "next_action": nil, "processing": nil,
		"payment_method": nil, "payment_method_types": []string{pi.method.name()}, "payment_method_options": map[string]any{},
		"receipt_email": nil, "review": nil, "setup_future_usage": nil, "shipping": nil,
		"statement_descriptor": nil, "transfer_data": nil, "transfer_group": nil,
	}
	if pi.CanceledAt != 0 {
		o["canceled_at"] = pi.CanceledAt
	}
	if len(pi.Charges) > 0 && pi.Status != IntentNeedsMethod {
		o["payment_method"] = "pm_" + pi.method.name()
	}
	switch {
	case pi.manual:
		o["capture_method"] = "manual"
	case a.basil():
		o["capture_method"] = "automatic_async"
	}
	if pi.failed != "" {
		o["last_payment_error"] = map[string]any{
			"type": "card_error", "code": "card_declined", "decline_code": pi.failed, "charge": pi.LatestCharge(),
			"message": "Your card was declined.",
		}
	}
	if pi.Status == IntentNeedsAction {
		o["next_action"] = map[string]any{"type": "use_stripe_sdk", "use_stripe_sdk": map[string]any{}}
	}
	if a.basil() {
		o["latest_charge"] = text(pi.LatestCharge())
		o["amount_details"] = map[string]any{"tip": map[string]any{}}
		return o
	}
	o["invoice"] = text(pi.Invoice)
	var charges []any // the newest first
	for i := len(pi.Charges) - 1; i >= 0; i-- {
		charges = append(charges, a.charges[pi.Charges[i]].render(a))
	}
	o["charges"] = list("/v1/charges?payment_intent="+pi.ID, charges)
	return o
}

func (in *Invoice) render(a *Account) map[string]any {
	o := map[string]any{
		"id": in.ID, "object": "invoice", "livemode": a.cfg.Livemode, "created": in.Created, "currency": in.Currency,
		"amount_due": in.Amount, "amount_paid": int64(0), "amount_remaining": in.Amount, "total": in.Amount, "subtotal": in.Amount,
		"status": "open", "attempt_count": 1, "attempted": true, "billing_reason": "subscription_cycle",
		"collection_method": "charge_automatically", "customer": "cus_model", "metadata": labels(nil),
		"lines": list("/v1/invoices/"+in.ID+"/lines", nil), "next_payment_attempt": nil,
	}
	if in.Paid {
		o["status"], o["amount_paid"], o["amount_remaining"] = "paid", in.Amount, int64(0)
	}
	if a.basil() {
		o["parent"] = map[string]any{
			"type": "subscription_details", "quote_details": nil,
			"subscription_details": map[string]any{"subscription": in.Subscription, "metadata": labels(nil)},
		}
		return o
	}
	o["subscription"], o["payment_intent"], o["paid"] = in.Subscription, text(in.Intent), in.Paid
	o["charge"] = nil
	if pi := a.intents[in.Intent]; pi != nil {
		o["charge"] = text(pi.LatestCharge())
	}
	return o
}

func (p *invoicePayment) render(a *Account) map[string]any {
	return map[string]any{
		"id": p.payment, "object": "invoice_payment", "livemode": a.cfg.Livemode, "created": p.Created, "currency": p.Currency,
		"amount_paid": p.Amount, "amount_requested": p.Amount, "invoice": p.ID, "is_default": true, "status": "paid",
		"payment":            map[string]any{"type": "payment_intent", "payment_intent": p.Intent},
		"status_transitions": map[string]any{"canceled_at": nil, "paid_at": a.now},
	}
}
