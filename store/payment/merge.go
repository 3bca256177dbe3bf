package payment

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Change is what an event did to a fact.
type Change int

const (
	Changed   Change = iota // the fact says something new
	Duplicate               // another event, the same content
	Stale                   // the event's snapshot ranks below what is stored and adds nothing
)

// Merge joins two facts of the same object (same Scope and ID): the snapshot of
// the higher rank, the union of the sticky parts. It is associative,
// commutative and idempotent, so facts do not depend on the order or the number
// of the events that made them.
//
// If the kinds differ, which Stripe never does, one of them wins by a fixed
// order and the fact is marked as a clash, which Derive takes for a
// contradiction.
func Merge(a, b Fact) Fact {
	if compareSnapshots(a, b) < 0 {
		a, b = b, a
	}
	a.Scope = max(a.Scope, b.Scope)
	a.Sticky = mergeSticky(a.Sticky, b.Sticky)
	a.Sticky.Clash = a.Sticky.Clash || a.Kind != b.Kind
	return a
}

// MergeEvent merges what an event says into the stored fact, nil at first
// sight. changedRank says that the merge is to be saved even where it is a
// Duplicate: the rank rose, by another event with the same content. Were it not
// saved, a third event between the two would pass for the newest.
func MergeEvent(stored *Fact, seen Fact) (merged Fact, change Change, changedRank bool) {
	if stored == nil {
		return seen, Changed, true
	}
	merged = Merge(*stored, seen)
	changedRank = merged.Rank != stored.Rank
	switch {
	case !merged.sameContent(*stored):
		change = Changed
	case seen.Snapshot != stored.Snapshot || seen.Rank.Class != stored.Rank.Class:
		change = Stale
	default:
		change = Duplicate
	}
	return merged, change, changedRank
}

// compareSnapshots is the total order of snapshots. The contents come last, so
// that even two bodies under one event id, which cannot be, merge the same way
// from both sides.
func compareSnapshots(a, b Fact) int {
	if c := cmp.Or(
		strings.Compare(string(a.Kind), string(b.Kind)),
		cmp.Compare(a.Rank.Class, b.Rank.Class),
		cmp.Compare(a.Rank.Created, b.Rank.Created),
		cmp.Compare(a.Rank.Sub, b.Rank.Sub),
		strings.Compare(a.Rank.Event, b.Rank.Event),
	); c != 0 || a.Snapshot == b.Snapshot {
		return c
	}
	// A Snapshot is strings, numbers and booleans: it always marshals.
	x, _ := json.Marshal(a.Snapshot)
	y, _ := json.Marshal(b.Snapshot)
	return bytes.Compare(x, y)
}

func mergeSticky(a, b Sticky) Sticky {
	return Sticky{
		Mode:          max(a.Mode, b.Mode),
		PaymentStatus: maxPaymentStatus(a.PaymentStatus, b.PaymentStatus),
		AsyncFailed:   a.AsyncFailed || b.AsyncFailed,
		Complete:      a.Complete || b.Complete,
		Expired:       a.Expired || b.Expired,
		Succeeded:     a.Succeeded || b.Succeeded,
		Canceled:      a.Canceled || b.Canceled,
		Received:      maxAmount(a.Received, b.Received),
		Captured:      maxAmount(a.Captured, b.Captured),
		PaymentIntent: max(a.PaymentIntent, b.PaymentIntent),
		Charge:        max(a.Charge, b.Charge),
		PaymentLink:   max(a.PaymentLink, b.PaymentLink),
		Reference:     max(a.Reference, b.Reference),
		Invoice:       max(a.Invoice, b.Invoice),
		OrderIDs:      union(a.OrderIDs, b.OrderIDs),
		Operation:     max(a.Operation, b.Operation),
		Listed:        a.Listed || b.Listed,
		Transactions:  unionTransactions(a.Transactions, b.Transactions),
		ProvenAt:      earliest(a.ProvenAt, b.ProvenAt),
		Clash:         a.Clash || b.Clash,
	}
}

// earliest is the smaller of two instants; 0 is never.
func earliest(a, b Millis) Millis {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// union joins two sorted sets. The result is nil when it is empty, so that
// equal sets are equal values.
func union(a, b []string) []string {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// unionTransactions joins two sets by id. A balance transaction never changes
// at Stripe; if one did, the order of amounts and currencies would decide.
func unionTransactions(a, b []Transaction) []Transaction {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Transaction) int {
		return cmp.Or(strings.Compare(x.ID, y.ID), cmp.Compare(x.Amount, y.Amount), strings.Compare(x.Currency, y.Currency))
	})
	return slices.CompactFunc(all, func(x, y Transaction) bool { return x.ID == y.ID })
}
