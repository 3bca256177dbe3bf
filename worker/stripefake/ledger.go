package stripefake

import (
	"maps"
	"slices"
	"strings"
)

// MoveKind says why money moved.
type MoveKind string

const (
	moveCharge  MoveKind = "charge"  // in, from the customer
	moveRefund  MoveKind = "refund"  // out to the customer, or back from a refund that failed
	moveDispute MoveKind = "dispute" // out to the bank, or back
)

// Move is money that moved, in the currency of the payment. Fees are no moves,
// nor is a hold.
type Move struct {
	Payment, Object string // the payment's intent, or the charge that is its own
	Kind            MoveKind
	Amount          int64 // money in is positive
	Currency        string
	At              int64
}

// Money is what truly happened to the money of one payment.
type Money struct {
	Payment, Currency string
	Received          int64
	ReceivedAt        int64 // when the first of it came; 0 is never
	Refunded          int64 // arrived at the customer, and not come back since
	Pending           int64 // refunds under way
	Taken             int64 // by disputes, and not returned
	OpenDispute       bool  // a chargeback waits for its verdict
	Lost              bool  // a chargeback was lost
}

// Ledger is everything that happened to the account's money.
type Ledger struct {
	Moves    []Move
	Payments []Money // by payment, sorted
}

// Of is the money of one payment; nothing, when it brought none.
func (l Ledger) Of(payment string) Money {
	i, ok := slices.BinarySearchFunc(l.Payments, payment, func(m Money, id string) int {
		switch {
		case m.Payment < id:
			return -1
		case m.Payment > id:
			return 1
		}
		return 0
	})
	if !ok {
		return Money{Payment: payment}
	}
	return l.Payments[i]
}

// book notes money that moved.
func (a *Account) book(kind MoveKind, c *Charge, object string, amount int64) {
	a.ledger.Moves = append(a.ledger.Moves, Move{
		Payment: c.Payment(), Object: object, Kind: kind, Amount: amount, Currency: c.Currency, At: a.now,
	})
}

// bookRefund notes a refund that arrived, or with a negative amount one that
// came back.
func (a *Account) bookRefund(r *Refund, amount int64) {
	a.book(moveRefund, a.charges[r.Charge], r.ID, -amount)
}

// Ledger is what has happened so far. Amounts that moved come from the moves,
// not from the objects, so that Check can hold one against the other.
func (a *Account) Ledger() Ledger {
	byPayment := make(map[string]*Money)
	at := func(id, currency string) *Money {
		if byPayment[id] == nil {
			byPayment[id] = &Money{Payment: id, Currency: currency}
		}
		return byPayment[id]
	}
	for _, m := range a.ledger.Moves {
		p := at(m.Payment, m.Currency)
		switch m.Kind {
		case moveCharge:
			p.Received += m.Amount
			if p.ReceivedAt == 0 {
				p.ReceivedAt = m.At
			}
		case moveRefund:
			p.Refunded -= m.Amount
		case moveDispute:
			p.Taken -= m.Amount
		}
	}
	for _, id := range a.order {
		if r := a.refunds[id]; r != nil && (r.Status == RefundPending || r.Status == RefundNeedsAction) {
			c := a.charges[r.Charge]
			at(c.Payment(), c.Currency).Pending += r.Amount
		}
		if d := a.disputes[id]; d != nil {
			c := a.charges[d.Charge]
			p := at(c.Payment(), c.Currency)
			p.OpenDispute = p.OpenDispute || d.Open()
			p.Lost = p.Lost || d.Status == DisputeLost
		}
	}
	l := Ledger{Moves: slices.Clone(a.ledger.Moves)}
	for _, p := range byPayment {
		l.Payments = append(l.Payments, *p)
	}
	slices.SortFunc(l.Payments, func(x, y Money) int {
		if x.Payment < y.Payment {
			return -1
		}
		return 1
	})
	return l
}

// Sum is what happened to the money of one currency.
type Sum struct {
	Currency                           string
	Received, Refunded, Pending, Taken int64
}

// Sums are the payments' money added up, by currency, sorted.
func (l Ledger) Sums() []Sum {
	byCurrency := map[string]Sum{}
	for _, m := range l.Payments {
		s := byCurrency[m.Currency]
		byCurrency[m.Currency] = Sum{m.Currency, s.Received + m.Received, s.Refunded + m.Refunded, s.Pending + m.Pending, s.Taken + m.Taken}
	}
	return slices.SortedFunc(maps.Values(byCurrency), func(x, y Sum) int { return strings.Compare(x.Currency, y.Currency) })
}
