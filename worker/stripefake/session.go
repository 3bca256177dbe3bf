package stripefake

import (
	"maps"
	"slices"
)

// The states of a Checkout Session, and of its payment.
const (
	SessionOpen     = "open"
	SessionComplete = "complete"
	SessionExpired  = "expired"

	SessionUnpaid = "unpaid"
	SessionPaid   = "paid"
	SessionFree   = "no_payment_required"
)

// Pricing is how a session's total comes about.
type Pricing struct{ Subtotal, Discount, Shipping, Tax int64 }

// Total is what the buyer pays.
func (p Pricing) Total() int64 { return p.Subtotal - p.Discount + p.Shipping + p.Tax }

// Session is a checkout.session.
type Session struct {
	ID, Mode, Status, PaymentStatus string
	Created, ExpiresAt              int64
	Pricing                         Pricing
	Currency                        string
	Intent, Link, Reference         string // ids; Reference is client_reference_id
	Metadata                        map[string]string
	Subscription, Invoice           string
	SuccessURL, CancelURL, Email    string // Email is what the shop filled in for the buyer
	Lines                           []Line

	method  Method
	methods []Method // those that the buyer may choose; nil is method alone
	manual  bool
	// intentMetadata is payment_intent_data.metadata: what the intent will
	// carry. The session's own metadata is not copied to it.
	intentMetadata map[string]string
}

// Method is a way to pay.
type Method int

const (
	Card Method = iota
	// Debit is a bank debit: the session completes unpaid, and the bank says
	// days later whether the money came.
	Debit
)

// Line is one line of a session, in minor units a piece.
type Line struct {
	Name         string
	Unit, Number int64
}

// SessionParams are what a session is opened with. With Link it is the visit
// of a buyer to a Payment Link: Metadata and IntentMetadata are then the
// link's, the same for every buyer, and Reference is whatever the buyer's URL
// said.
type SessionParams struct {
	Pricing        Pricing
	Currency       string
	Method         Method
	Manual         bool // capture_method manual
	Link           string
	Reference      string
	Metadata       map[string]string
	IntentMetadata map[string]string

	Lines                        []Line // for people: Pricing is what counts
	SuccessURL, CancelURL, Email string
	ExpiresAt                    int64    // in seconds; 0 is a day from now
	Methods                      []Method // what the buyer may choose from; nil is Method alone
}

// OpenSession opens a Checkout Session in mode payment. Nothing is sent: an
// open session makes no event.
func (a *Account) OpenSession(p SessionParams) (Session, error) {
	switch {
	case p.Pricing.Total() < 0 || p.Pricing.Subtotal < 0 || p.Pricing.Discount < 0 || p.Pricing.Shipping < 0 || p.Pricing.Tax < 0:
		return Session{}, refuse("parameter_invalid_integer", "a session cannot cost less than nothing")
	case p.Currency == "":
		return Session{}, refuse("parameter_missing", "a session needs a currency")
	case p.Manual && p.Method == Debit:
		return Session{}, refuse("parameter_unknown", "a bank debit cannot be held")
	}
	s := &Session{
		ID: a.created(a.newID(a.sessionPrefix())), Mode: "payment", Status: SessionOpen, PaymentStatus: SessionUnpaid,
		Created: a.now, ExpiresAt: a.now + 86400, Pricing: p.Pricing, Currency: p.Currency,
		Link: p.Link, Reference: p.Reference, Metadata: maps.Clone(p.Metadata),
		SuccessURL: p.SuccessURL, CancelURL: p.CancelURL, Email: p.Email, Lines: slices.Clone(p.Lines),
		method: p.Method, methods: slices.Clone(p.Methods), manual: p.Manual, intentMetadata: maps.Clone(p.IntentMetadata),
	}
	if p.ExpiresAt != 0 {
		s.ExpiresAt = p.ExpiresAt
	}
	a.sessions[s.ID] = s
	if p.Pricing.Total() == 0 {
		s.PaymentStatus = SessionFree
		return *s, nil
	}
	if !a.basil() {
		a.makeIntent(s)
	}
	return *s, nil
}

func (a *Account) sessionPrefix() string {
	if a.cfg.Livemode {
		return "cs_live_"
	}
	return "cs_test_"
}

// ConfirmSession is the buyer who presses "pay" in a session. It returns the
// payment intent, which by now is there in every API version; what becomes of
// the attempt is up to the intent.
func (a *Account) ConfirmSession(id string) (Intent, error) {
	s, err := find(a.sessions, id)
	switch {
	case err != nil:
		return Intent{}, err
	case s.Status != SessionOpen:
		return Intent{}, refuse("checkout_session_not_open", "%s is %s", id, s.Status)
	case s.PaymentStatus == SessionFree || s.Mode != "payment":
		return Intent{}, refuse("checkout_session_no_payment", "there is nothing to pay in %s", id)
	case s.Intent == "":
		a.makeIntent(s)
	}
	return *a.intents[s.Intent], nil
}

// makeIntent makes the payment intent of a session.
func (a *Account) makeIntent(s *Session) {
	pi := a.newIntent(IntentParams{Amount: s.Pricing.Total(), Currency: s.Currency, Method: s.method, Manual: s.manual, Metadata: s.intentMetadata})
	pi.Session = s.ID
	s.Intent = pi.ID
	a.send("payment_intent.created", pi, byCaller, nil)
}

// CompleteSession is the end of the buyer's visit: the intent has succeeded,
// is in the bank's hands, or holds the money. A free session completes by
// itself. It says nothing about money unless payment_status is paid.
func (a *Account) CompleteSession(id string) error {
	s, err := find(a.sessions, id)
	if err != nil {
		return err
	}
	if s.Status != SessionOpen {
		return refuse("checkout_session_not_open", "%s is %s", id, s.Status)
	}
	if s.PaymentStatus != SessionFree {
		if s.Intent == "" {
			return refuse("checkout_session_unpaid", "nobody has paid in %s", id)
		}
		switch pi := a.intents[s.Intent]; pi.Status {
		case IntentSucceeded:
			s.PaymentStatus = SessionPaid
		case IntentProcessing, IntentHold:
		default:
			return refuse("checkout_session_unpaid", "%s of %s is %s", pi.ID, id, pi.Status)
		}
	}
	s.Status = SessionComplete
	a.send("checkout.session.completed", s, byStripe, nil)
	return nil
}

// ExpireSession ends an open session, by the shop's call or by the time that
// passed. An attempt that has not come to anything ends with it.
func (a *Account) ExpireSession(id string) error {
	s, err := find(a.sessions, id)
	if err != nil {
		return err
	}
	if s.Status != SessionOpen {
		return refuse("checkout_session_not_open", "only an open session can expire, %s is %s", id, s.Status)
	}
	if s.Intent != "" {
		switch pi := a.intents[s.Intent]; pi.Status {
		case IntentSucceeded, IntentProcessing, IntentHold:
			return refuse("checkout_session_not_open", "%s of %s is %s", pi.ID, id, pi.Status)
		case IntentCanceled:
		default:
			a.cancel(pi, "automatic")
		}
	}
	s.Status = SessionExpired
	a.send("checkout.session.expired", s, byStripe, nil)
	return nil
}

// paymentArrived tells a session that completed unpaid what its bank says.
func (a *Account) paymentArrived(sessionID string, ok bool) {
	s := a.sessions[sessionID]
	if s == nil || s.Status != SessionComplete || s.method != Debit {
		return
	}
	if !ok {
		a.send("checkout.session.async_payment_failed", s, byStripe, nil)
		return
	}
	s.PaymentStatus = SessionPaid
	a.send("checkout.session.async_payment_succeeded", s, byStripe, nil)
}
