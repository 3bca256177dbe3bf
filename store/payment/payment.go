// Package payment is the money rules: what an event says of a Stripe object,
// how two such statements merge into one fact, and what an order's facts come
// to. It is pure: no SQL, no clock, no I/O, and it imports nothing of ours, so
// the same events give the same result in any order and any number of times
// (promise P4 of design.md).
//
// Data flows one way:
//
//	body ─Decode─▶ Event{Fact} ─Merge─▶ Fact ─Group─▶ payments ─Derive─▶ status, numbers, entries, operations
//
// The package store owns the tables around these functions; it decides nothing
// about money itself.
package payment

// Millis is an instant in milliseconds since 1970, UTC. Stripe's seconds are
// multiplied on the way in.
type Millis = int64

// Kind is the kind of a Stripe object that the rules understand. It is the
// object's own `object` field, never its id's prefix (py_, pyr_ and du_ exist).
type Kind string

const (
	KindSession       Kind = "session" // checkout.session
	KindPaymentIntent Kind = "payment_intent"
	KindCharge        Kind = "charge"
	KindRefund        Kind = "refund"
	KindDispute       Kind = "dispute"
)

// Status is what an order has come to (design.md §5, Derive 5).
type Status string

const (
	StatusAwaitingPayment   Status = "awaiting_payment"
	StatusProcessing        Status = "processing"
	StatusAuthorized        Status = "authorized"
	StatusPaymentFailed     Status = "payment_failed"
	StatusExpired           Status = "expired"
	StatusCanceled          Status = "canceled"
	StatusPaid              Status = "paid"
	StatusPartiallyRefunded Status = "partially_refunded"
	StatusRefundPending     Status = "refund_pending"
	StatusRefunded          Status = "refunded"
	StatusDisputed          Status = "disputed"
	StatusChargedBack       Status = "charged_back"
)

// Policy says which amount an order accepts (design.md §5, Derive 2).
type Policy string

const (
	PolicyExact    Policy = "exact"
	PolicyAtLeast  Policy = "at_least"
	PolicyAny      Policy = "any"
	PolicySubtotal Policy = "subtotal"
)

// Verdict is the judgement on one payment, and on the events that brought it.
type Verdict string

const (
	VerdictApplied          Verdict = "applied"           // nothing stands in the way (accepted, or no money yet, or undecided)
	VerdictUnlinked         Verdict = "unlinked"          // no order claims it
	VerdictAmountMismatch   Verdict = "amount_mismatch"   // money in the right currency that the policy does not accept
	VerdictCurrencyMismatch Verdict = "currency_mismatch" // money in another currency
	VerdictOrderConflict    Verdict = "order_conflict"    // those that speak name different orders, or another payment intent than the registered one
	VerdictContradiction    Verdict = "contradiction"     // facts that cannot both be true at Stripe
)

// Account is an account of the books. Money in is positive, money out negative.
type Account string

const (
	AccountSales    Account = "sales"
	AccountRefunds  Account = "refunds"
	AccountDisputes Account = "disputes"
	AccountSuspense Account = "suspense" // money that no order counts: unlinked or not accepted
)

// Order is what Derive must know of a registered order: the shop's side only,
// nothing that was derived before.
type Order struct {
	Tenant, ID    string
	TotalMinor    int64
	Currency      string // lower case
	Policy        Policy
	AllowDiscount bool
	PaymentIntent string              // registered: money comes from this one only; "" is any
	ClosedAt      Millis              // the shop closed it; 0 is open
	FulfilAt      Millis              // a person ran order.paid by hand; 0 is never
	Accepted      map[PaymentKey]bool // payments that a person counted as they are
}

// PaymentKey names a payment: the scope and the object that stands for it in
// the books, which is its payment intent, else its charge, else its session.
type PaymentKey struct{ Scope, Object string }

// Name is an order id that a fact speaks, and where it stands.
type Name struct {
	Order  string // the id as written in metadata or client_reference_id
	By     string // "metadata.order_id" or "client_reference_id"
	Object string // the Stripe object that says so
}

// Attention is a reason for a person to look at an order. Cause identifies
// what it is about (sorted object ids), so that an acknowledged attention
// comes back when something new causes it; Detail says it in words, with
// amounts, and without personal data.
type Attention struct {
	Word   string `json:"word"`
	Cause  string `json:"cause"`
	Detail string `json:"detail"`
	DueAt  Millis `json:"due_at,omitempty"` // dispute_needs_response
}

// Balance is what one object's derived amount in one account comes to. The
// store writes the difference to the entries it already has, per
// (scope, object, account, order, currency). A balance of zero may be left out.
type Balance struct {
	Scope, Object string
	Account       Account
	AmountMinor   int64
	Currency      string
	OccurredAt    Millis // of the proof
}

// Operation is a business act that should exist (design.md §5, Derive 6).
type Operation struct {
	Name       string // "order.paid", "refund.succeeded:re_1"
	OccurredAt Millis
}

// Payment is one payment as derived: a payment intent with its charges,
// sessions, refunds and disputes (or a charge or a session alone).
type Payment struct {
	Key                                  PaymentKey
	Objects                              []string // the ids of its facts, sorted
	Currency                             string
	ReceivedMinor, RefundedMinor         int64
	RefundPendingMinor, ChargedBackMinor int64
	Accepted                             bool
	Verdict                              Verdict
	Reason                               string // in words, with expected and actual amounts
}

// Outcome is what an order's facts come to. The numbers are in the order's
// currency.
type Outcome struct {
	Status             Status
	ReceivedMinor      int64
	RefundedMinor      int64
	RefundPendingMinor int64
	ChargedBackMinor   int64
	SuspenseMinor      int64
	DueMinor           int64
	PaidAt             Millis // earliest occurred_at among the proofs; 0 is never
	ProviderPayment    string // the first accepted payment's object; "" is none
	Attention          []Attention
	Balances           []Balance
	Operations         []Operation
	Payments           []Payment
	// DueReceived: what is due was ever received, refunds and disputes aside:
	// stock is taken. FullyRefunded: all of it went back: stock returns.
	DueReceived, FullyRefunded bool
}
