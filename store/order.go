package store

import (
	"encoding/json"
	"time"

	"paidonce/store/payment"
)

// Time is an instant in integer milliseconds, UTC, as it stands in the file. In
// JSON it is RFC 3339 with milliseconds; the zero Time is null and is left out
// where a field says omitzero.
type Time int64

// At turns t into what the file keeps.
func At(t time.Time) Time { return Time(t.UnixMilli()) }

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// String is RFC 3339 with milliseconds, UTC; "" for the zero Time.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.Std().Format("2006-01-02T15:04:05.000Z")
}

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(t.String())
}

// UnmarshalJSON implements json.Unmarshaler: it reads what MarshalJSON wrote.
func (t *Time) UnmarshalJSON(b []byte) error {
	*t = 0
	if string(b) == "null" {
		return nil
	}
	var at time.Time
	if err := json.Unmarshal(b, &at); err != nil {
		return err
	}
	*t = At(at)
	return nil
}

// Item is one line of what an order sells.
type Item struct {
	SKU       string `json:"sku"`
	Name      string `json:"name,omitempty"`
	Quantity  int64  `json:"quantity"`
	UnitMinor int64  `json:"unit_minor"`
}

// Customer is who bought. It stands in the orders table alone.
type Customer struct {
	Email string `json:"email,omitempty"`
	Name  string `json:"name,omitempty"`
}

// Order is an order as the API and the CLI show it (design.md §7). Amounts are
// minor units of Currency.
type Order struct {
	Tenant             string            `json:"tenant"`
	ID                 string            `json:"id"`
	Status             payment.Status    `json:"status"`
	Attention          []string          `json:"attention"` // words, acknowledged ones left out
	TotalMinor         int64             `json:"total_minor"`
	Currency           string            `json:"currency"`
	AmountPolicy       payment.Policy    `json:"amount_policy"`
	AllowDiscount      bool              `json:"allow_discount"`
	ReceivedMinor      int64             `json:"received_minor"`
	RefundedMinor      int64             `json:"refunded_minor"`
	RefundPendingMinor int64             `json:"refund_pending_minor"`
	ChargedBackMinor   int64             `json:"charged_back_minor"`
	SuspenseMinor      int64             `json:"suspense_minor"`
	PaymentIntent      string            `json:"payment_intent,omitempty"`
	Refs               []string          `json:"refs"` // registered, linked and learned Stripe ids
	Items              []Item            `json:"items"`
	Customer           Customer          `json:"customer"`
	Metadata           map[string]string `json:"metadata"`
	CheckoutURL        string            `json:"checkout_url,omitempty"`
	CreatedAt          Time              `json:"created_at"`
	PaidAt             Time              `json:"paid_at,omitzero"`
	UpdatedAt          Time              `json:"updated_at"`
}

// Entry is one line of the books.
type Entry struct {
	Account     string `json:"account"`
	Object      string `json:"object"`
	AmountMinor int64  `json:"amount_minor"` // money in is positive
	Currency    string `json:"currency"`
	OccurredAt  Time   `json:"occurred_at"`
	Event       string `json:"event,omitempty"` // the sender's event id; "" for a person's act
}

// FactView is a fact as an operator sees it.
type FactView struct {
	Scope     string       `json:"scope"`
	ID        string       `json:"id"`
	Kind      payment.Kind `json:"kind"`
	Version   int64        `json:"version"`
	Fact      payment.Fact `json:"fact"`
	UpdatedAt Time         `json:"updated_at"`
}

// OperationView is an operation that was recorded for an order.
type OperationView struct {
	Name       string `json:"name"`
	OccurredAt Time   `json:"occurred_at"`
	RecordedAt Time   `json:"recorded_at"`
}

// TimelineItem is one thing that happened to an order: an event, an entry, a
// stock move, an operation or a person's act, told in words.
type TimelineItem struct {
	At    Time   `json:"at"`   // when paidonce learned or did it
	Kind  string `json:"kind"` // event | entry | stock | operation | effect | act
	ID    string `json:"id"`   // event id, object, sku, operation name, effect id or act
	Text  string `json:"text"`
	Event string `json:"event,omitempty"`
}

// OrderDetail is an order with everything that explains it.
type OrderDetail struct {
	Order
	AttentionDetail []payment.Attention `json:"attention_detail"`
	Payments        []PaymentView       `json:"payments"`
	Timeline        []TimelineItem      `json:"timeline"`
	Entries         []Entry             `json:"entries"`
	Operations      []OperationView     `json:"operations"`
	Effects         []Effect            `json:"effects"`
	Facts           []FactView          `json:"facts"`
}

// PaymentView is one payment of an order, as derived.
type PaymentView struct {
	Scope              string          `json:"scope"`
	ID                 string          `json:"id"` // what orders accept takes as PAYMENT
	Objects            []string        `json:"objects"`
	Currency           string          `json:"currency"`
	ReceivedMinor      int64           `json:"received_minor"`
	RefundedMinor      int64           `json:"refunded_minor"`
	RefundPendingMinor int64           `json:"refund_pending_minor"`
	ChargedBackMinor   int64           `json:"charged_back_minor"`
	Accepted           bool            `json:"accepted"`
	Verdict            payment.Verdict `json:"verdict"`
	Reason             string          `json:"reason,omitempty"`
}

// NewOrder is a registration. Nil pointers are absent fields, so that an edit
// changes only what it names.
type NewOrder struct {
	ID            string            `json:"id"`
	Tenant        string            `json:"tenant"`
	TotalMinor    *int64            `json:"total_minor"`
	Currency      *string           `json:"currency"`
	AmountPolicy  *string           `json:"amount_policy"`
	AllowDiscount *bool             `json:"allow_discount"`
	PaymentIntent *string           `json:"payment_intent"`
	Refs          []string          `json:"refs"`
	Items         []Item            `json:"items"`
	Customer      *Customer         `json:"customer"`
	Metadata      map[string]string `json:"metadata"`
	Checkout      *Checkout         `json:"checkout"`
}

// Checkout is where a Checkout Session sends the buyer back to.
type Checkout struct {
	SuccessURL string `json:"success_url"`
	CancelURL  string `json:"cancel_url,omitempty"`
}

// OrderFilter selects orders for ListOrders. Empty fields select all.
type OrderFilter struct {
	Tenant    string
	Status    string
	Attention string // a word, or "any"
	Query     string // an order id, an e-mail, any Stripe id
	Limit     int    // 1 to 200; 0 is 50
	Cursor    string
}

// Page is one page of a list, newest first.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"`
}
