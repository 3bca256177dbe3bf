package stripefake

// Invoice is an invoice of a subscription, paid by a payment intent of its own.
// To a shop that sells orders it is another program's money.
type Invoice struct {
	ID, Intent, Subscription, Currency string
	Created, Amount                    int64
	Paid                               bool

	payment string // the invoice_payment that ties the intent to it, since basil
}

// Subscribe is a buyer who takes out a subscription in a session of that mode,
// whose own payment_intent stays null, and pays its first invoice.
func (a *Account) Subscribe(amount int64, currency string) (Invoice, error) {
	if amount <= 0 || currency == "" {
		return Invoice{}, refuse("parameter_invalid_integer", "a subscription needs a price above zero and a currency")
	}
	subscription := a.newID("sub_")
	in, err := a.bill(subscription, amount, currency)
	if err != nil {
		return Invoice{}, err
	}
	s := &Session{
		ID: a.created(a.newID(a.sessionPrefix())), Mode: "subscription", Status: SessionComplete, PaymentStatus: SessionPaid,
		Created: a.now, ExpiresAt: a.now + 86400, Pricing: Pricing{Subtotal: amount}, Currency: currency,
		Subscription: subscription, Invoice: in.ID,
	}
	a.sessions[s.ID] = s
	a.send("checkout.session.completed", s, byStripe, nil)
	return in, nil
}

// Renew bills the next period of an invoice's subscription.
func (a *Account) Renew(invoice string) (Invoice, error) {
	in, err := find(a.invoices, invoice)
	if err != nil {
		return Invoice{}, err
	}
	return a.bill(in.Subscription, in.Amount, in.Currency)
}

// bill makes an invoice and collects it.
func (a *Account) bill(subscription string, amount int64, currency string) (Invoice, error) {
	in := &Invoice{ID: a.created(a.newID("in_")), Subscription: subscription, Currency: currency, Created: a.now, Amount: amount}
	if a.basil() {
		in.payment = a.newID("inpay_")
	}
	a.invoices[in.ID] = in
	pi := a.newIntent(IntentParams{Amount: amount, Currency: currency})
	pi.Invoice, in.Intent = in.ID, pi.ID
	a.send("payment_intent.created", pi, byStripe, nil)
	err := a.Succeed(pi.ID)
	return *in, err
}

// invoicePaid settles the invoice of an intent that succeeded, if it has one.
func (a *Account) invoicePaid(pi *Intent) {
	in := a.invoices[pi.Invoice]
	if in == nil {
		return
	}
	in.Paid = true
	a.send("invoice.paid", in, byStripe, nil)
	a.send("invoice.payment_succeeded", in, byStripe, nil)
	if in.payment != "" {
		a.send("invoice_payment.paid", (*invoicePayment)(in), byStripe, nil)
	}
}

// invoicePayment is an invoice seen as its invoice_payment.
type invoicePayment Invoice
