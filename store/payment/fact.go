package payment

import (
	"encoding/json"
	"reflect"
)

// Fact is what is known of one Stripe object: the snapshot with the highest
// rank that was seen, and the sticky parts of all that were seen. It holds ids,
// statuses, amounts, currencies and due dates, and no personal data. The store
// keeps facts as JSON; the round trip loses nothing.
type Fact struct {
	Scope    string   `json:"scope,omitzero"` // provider:account:mode; the store sets it
	Kind     Kind     `json:"kind"`
	ID       string   `json:"id"`
	Rank     Rank     `json:"rank"`
	Snapshot Snapshot `json:"snapshot"`
	Sticky   Sticky   `json:"sticky"`
}

// Rank orders the snapshots of one object (design.md §5, Merge): class, then
// the event's created, then the subrank, then the event's id. Classes and
// subranks are each kind's own and stand beside its decoder. created comes
// second, since Stripe's clock is only right where Stripe moves both ways.
type Rank struct {
	Class   int    `json:"class"`
	Created Millis `json:"created"`
	Sub     int64  `json:"sub,omitzero"`
	Event   string `json:"event"`
}

// classUnseen is the class of a body that says nothing the rules can use: a
// status we do not know, or only an id. Whatever else is seen outranks it.
const classUnseen = 0

// Amount is an amount in minor units that a body may be silent about. The zero
// Amount is unknown.
type Amount struct {
	Minor int64
	Known bool
}

// Minor is the known amount n.
func Minor(n int64) Amount { return Amount{Minor: n, Known: true} }

// MarshalJSON writes the number, or null.
func (a Amount) MarshalJSON() ([]byte, error) {
	if !a.Known {
		return []byte("null"), nil
	}
	return json.Marshal(a.Minor)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Amount) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*a = Amount{}
		return nil
	}
	a.Known = true
	return json.Unmarshal(raw, &a.Minor)
}

// maxAmount is the larger of two amounts; an unknown one is smaller than any.
func maxAmount(a, b Amount) Amount {
	if !a.Known || b.Known && b.Minor > a.Minor {
		return b
	}
	return a
}

// Snapshot is the part of a fact that moves as a whole, by rank.
type Snapshot struct {
	Status   string `json:"status,omitzero"`   // Stripe's word
	Amount   Amount `json:"amount,omitzero"`   // amount; amount_total of a session
	Subtotal Amount `json:"subtotal,omitzero"` // session: amount_subtotal
	Discount Amount `json:"discount,omitzero"` // session: total_details.amount_discount
	Refunded Amount `json:"refunded,omitzero"` // charge: amount_refunded, cumulative
	Currency string `json:"currency,omitzero"` // lower case
	// LatestCharge is a payment intent's newest attempt.
	LatestCharge string `json:"latest_charge,omitzero"`
	// OrderID is metadata.order_id.
	OrderID string `json:"order_id,omitzero"`
	// Failed: the last attempt failed (payment intent, charge).
	Failed bool `json:"failed,omitzero"`
	// Released: a refund that only let go of what was never captured.
	Released bool `json:"released,omitzero"`
	// DueBy is when a dispute must be answered.
	DueBy Millis `json:"due_by,omitzero"`
}

// Sticky is the part of a fact that is a union over all bodies: what was true
// once stays true.
type Sticky struct {
	Mode          string `json:"mode,omitzero"`           // session: payment, setup, subscription
	PaymentStatus string `json:"payment_status,omitzero"` // session: unpaid < no_payment_required < paid
	AsyncFailed   bool   `json:"async_failed,omitzero"`   // session: its delayed payment failed
	Complete      bool   `json:"complete,omitzero"`       // session: was complete
	Expired       bool   `json:"expired,omitzero"`        // session: was expired
	Succeeded     bool   `json:"succeeded,omitzero"`      // payment intent, refund: was succeeded
	Canceled      bool   `json:"canceled,omitzero"`       // payment intent: was canceled
	Received      Amount `json:"received,omitzero"`       // payment intent: highest amount_received
	Captured      Amount `json:"captured,omitzero"`       // charge: highest amount_captured

	PaymentIntent string   `json:"payment_intent,omitzero"`
	Charge        string   `json:"charge,omitzero"` // refund, dispute
	PaymentLink   string   `json:"payment_link,omitzero"`
	Reference     string   `json:"reference,omitzero"` // session: client_reference_id
	Invoice       string   `json:"invoice,omitzero"`
	OrderIDs      []string `json:"order_ids,omitzero"` // every metadata.order_id ever seen, sorted
	// Operation is metadata.paidonce_operation: the key of our own call that
	// made the object.
	Operation string `json:"operation,omitzero"`

	// Listed: a dispute's body carried the list of balance transactions, be it
	// empty. Transactions are all that were ever listed, sorted by id.
	Listed       bool          `json:"listed,omitzero"`
	Transactions []Transaction `json:"transactions,omitzero"`

	// ProvenAt is the created of the earliest event that proved what the object
	// is for: money received, a refund succeeded, a dispute opened. 0 is never.
	ProvenAt Millis `json:"proven_at,omitzero"`
	// Clash: bodies of different kinds carry this id.
	Clash bool `json:"clash,omitzero"`
}

// Transaction is a dispute's balance transaction: money that left (negative) or
// came back.
type Transaction struct {
	ID       string `json:"id"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// OperationMetadata is the metadata key under which our own calls to Stripe
// carry their idempotency key, without its generation: what they made is
// recognised by it, whoever tells of it first.
const OperationMetadata = "paidonce_operation"

// PaymentIntent is the payment intent that a session, charge, refund or dispute
// points to; "" when it points to none.
func (f Fact) PaymentIntent() string {
	if f.Kind == KindPaymentIntent {
		return ""
	}
	return f.Sticky.PaymentIntent
}

// Charge is the charge that a refund or dispute points to, and a payment
// intent's latest one.
func (f Fact) Charge() string {
	switch f.Kind {
	case KindRefund, KindDispute:
		return f.Sticky.Charge
	case KindPaymentIntent:
		return f.Snapshot.LatestCharge
	default:
		return ""
	}
}

// Operation is the key of our own call that made the object, of the kinds that
// we make: a refund, a session. Its payment intent and its charges carry the
// session's.
func (f Fact) Operation() string {
	if f.Kind == KindRefund || f.Kind == KindSession {
		return f.Sticky.Operation
	}
	return ""
}

// OrderName is the metadata.order_id of the snapshot. If that one is silent,
// what an older one said still stands; "" when none ever spoke.
func (f Fact) OrderName() string {
	if f.Snapshot.OrderID == "" && len(f.Sticky.OrderIDs) > 0 {
		return f.Sticky.OrderIDs[0]
	}
	return f.Snapshot.OrderID
}

// Reference is a session's client_reference_id.
func (f Fact) Reference() string { return f.Sticky.Reference }

// PaymentLink is the Payment Link that a session was made from.
func (f Fact) PaymentLink() string { return f.Sticky.PaymentLink }

// Invoice reports whether the object belongs to an invoice or a subscription,
// or moves no money by nature (a session in setup mode). If any fact of a
// payment says so, nobody needs to watch the payment while it is unlinked.
func (f Fact) Invoice() bool {
	if f.Kind == KindSession {
		return f.Sticky.Mode == modeSubscription || f.Sticky.Mode == modeSetup
	}
	return f.Sticky.Invoice != ""
}

// sameContent reports whether two facts say the same, whichever events said it.
func (f Fact) sameContent(g Fact) bool {
	f.Rank, g.Rank = Rank{Class: f.Rank.Class}, Rank{Class: g.Rank.Class}
	return reflect.DeepEqual(f, g)
}
