package store

import (
	"encoding/json"
	"time"
)

// The kinds of effects.
const (
	KindHTTP   = "http"
	KindEmail  = "email"
	KindExec   = "exec"
	KindStripe = "stripe"
)

// StripeTarget is the target of effects that call Stripe. No [[effect]] may
// have this name.
const StripeTarget = "stripe"

// Outcome is what one call to the outside world came to, as far as the caller
// can tell. The four that every sender shares; what happens next is decided by
// the store alone, from the kind of the effect and this word.
type Outcome string

const (
	// OutcomeDone: it happened, and the answer says so.
	OutcomeDone Outcome = "done"
	// OutcomeAgain: it failed in a way that can get better, and the same key
	// with the same body may go out again.
	OutcomeAgain Outcome = "again"
	// OutcomeUnknown: it may have happened. Stripe: look it up (a 500 with a
	// JSON error is replayed for its key). Mail: at most one more. exec: a
	// person decides.
	OutcomeUnknown Outcome = "unknown"
	// OutcomeAbsent: it was looked up (EffectClaim.LookUp) and is not there.
	OutcomeAbsent Outcome = "absent"
	// OutcomeRefused: it did not happen, and will not under this body.
	OutcomeRefused Outcome = "refused"
)

// MaxAnswerBody is how much of an answer is kept for the operator, in bytes.
const MaxAnswerBody = 1024

// Answer is what came back from one call.
type Answer struct {
	Outcome    Outcome
	Status     int             // HTTP or SMTP status, or exit code; 0 is none
	Code       string          // what the other side calls it: "charge_already_refunded"; for people and for callers that decide
	Error      string          // what went wrong, for people: at most 200 bytes, no secret, no URL, no customer's data
	RetryAfter time.Duration   // as the receiver asked, not yet capped; 0 is not asked
	Ref        string          // what it is called there: re_…, cs_…
	RequestID  string          // the other side's request id (Stripe's req_…)
	Body       []byte          // the answer as it came, at most MaxAnswerBody, shown to the operator as inert text
	Result     json.RawMessage // what a caller needs of it: CheckoutResult; nil is nothing
}

// EffectClaim is an effect that a worker may carry out until its lease is
// taken by another claim.
type EffectClaim struct {
	Row, Lease   int64
	Key          string // the idempotency key of this call, with its generation
	BaseKey      string // the same without the generation: metadata.paidonce_operation
	Operation    string
	Kind, Target string
	Body         []byte // frozen before the first try
	Attempt      int64  // of this effect, from 1
	FirstTriedAt Time   // 0 on the first try
	CreatedAt    Time
	LookUp       bool     // stripe: do not call, find out whether it happened
	Sessions     []string // stripe, checkout.open and order.cancel: sessions of the order that may still be open
	Order        string   // the order's id; "" without one
}

// RefundCall is the frozen body of a refund.
type RefundCall struct {
	Account       string            `json:"account,omitempty"` // a connected account: Stripe-Account
	PaymentIntent string            `json:"payment_intent,omitempty"`
	Charge        string            `json:"charge,omitempty"` // where there is no payment intent
	AmountMinor   int64             `json:"amount_minor"`
	Currency      string            `json:"currency"`         // for people: Stripe takes the payment's
	Reason        string            `json:"reason,omitempty"` // duplicate, fraudulent, requested_by_customer
	Metadata      map[string]string `json:"metadata"`         // paidonce_operation, order_id
}

// CheckoutCall is the frozen body of a Checkout Session. Before it opens, the
// sessions in EffectClaim.Sessions are expired.
type CheckoutCall struct {
	Account    string            `json:"account,omitempty"`
	SuccessURL string            `json:"success_url"`
	CancelURL  string            `json:"cancel_url,omitempty"`
	Currency   string            `json:"currency"`
	Lines      []CheckoutLine    `json:"lines"`
	Email      string            `json:"customer_email,omitempty"`
	Reference  string            `json:"client_reference_id,omitempty"`
	Metadata   map[string]string `json:"metadata"` // paidonce_operation, order_id: on the session and on its payment intent
}

// CheckoutLine is one line of a Checkout Session.
type CheckoutLine struct {
	Name      string `json:"name"`
	UnitMinor int64  `json:"unit_minor"`
	Quantity  int64  `json:"quantity"`
}

// CheckoutResult is the Answer.Result of an opened session.
type CheckoutResult struct {
	Session   string `json:"session"`
	URL       string `json:"url"`
	ExpiresAt Time   `json:"expires_at"`
}

// CancelCall is the frozen body of order.cancel: Stripe is asked about each,
// and what is still open is expired or canceled. One that has brought money,
// or is bringing it, refuses the whole (Code order_paid or payment_under_way).
type CancelCall struct {
	Account        string   `json:"account,omitempty"`
	PaymentIntents []string `json:"payment_intents,omitempty"`
}

// MailCall is the frozen body of an email. The Message-ID is made of the
// effect's key, and Date of the effect's CreatedAt, so that every attempt is
// the same mail.
type MailCall struct {
	From    string `json:"from"` // RFC 5322 address, of MAIL_FROM
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
}

// Occasion is what effects are made of: an operation of an order, an event of a
// raw route, or an alert.
type Occasion struct {
	Operation  string // order.paid, refund.succeeded:re_1; SOURCE:TYPE for a raw event; alert.NAME:N
	OccurredAt Time   // when it was proven, by its cause
	At         Time   // the instant of the transaction that queues it
	Order      *Order // nil for raw events and alerts
	Event      *EventRef
	Payload    []byte // the event as received, raw events only
	Alert      *Alert
}

// EventRef names the event that caused something; nil is a person's act.
type EventRef struct {
	Scope      string `json:"scope"`
	ID         string `json:"id"`
	Source     string `json:"source"`
	Type       string `json:"type"`
	OccurredAt Time   `json:"occurred_at"`
}

// Composed is one effect of an occasion, with its frozen body.
type Composed struct {
	Target string
	Kind   string
	Body   []byte
	// Failed, when not empty, says why there is no body, such as a template
	// that fails: the effect is then a failed one, and the event is none the
	// worse for it.
	Failed string
}

// Compose says what an occasion becomes for each configured target. It is pure:
// no clock, no I/O. main hands it to a store that serves.
type Compose func(Occasion) []Composed

// Alert is what a person should know. It never holds a customer's data.
type Alert struct {
	Name    string      `json:"name"`  // quarantined, unlinked, effect_failed, …
	State   string      `json:"state"` // firing | reminder | resolved
	Since   Time        `json:"since"`
	Count   int64       `json:"count"`   // of what it is about, at this time
	Summary string      `json:"summary"` // one sentence
	Next    string      `json:"next"`    // what happens if nobody does anything
	Command string      `json:"command"` // what to run
	Items   []AlertItem `json:"items"`   // the newest, at most 10
}

// AlertItem is one of the things that an alert is about.
type AlertItem struct {
	Order  string `json:"order,omitempty"`
	Event  string `json:"event,omitempty"`
	Effect string `json:"effect,omitempty"`
	Amount string `json:"amount,omitempty"` // major units and currency: "12.50 EUR"
	At     Time   `json:"at"`
	Text   string `json:"text"`
}
