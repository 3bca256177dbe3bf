package payment

import (
	"cmp"
	"slices"
	"strings"
)

// node is an object in its scope: ids mean nothing across scopes.
type node struct{ scope, id string }

// Group sorts facts into payments: those that point to each other, directly or
// through an object that is not known yet, are one. The result does not depend
// on the order of facts: payments by their key, the facts of one by their id.
func Group(facts []Fact) [][]Fact {
	parent := make(map[node]node)
	var root func(n node) node
	root = func(n node) node {
		if p, ok := parent[n]; ok && p != n {
			parent[n] = root(p)
			return parent[n]
		}
		parent[n] = n
		return n
	}
	for _, f := range facts {
		self := root(node{f.Scope, f.ID})
		for _, id := range []string{f.PaymentIntent(), f.Charge()} {
			if id != "" {
				parent[root(node{f.Scope, id})] = root(self)
			}
		}
	}
	byRoot := make(map[node][]Fact)
	for _, f := range facts {
		r := root(node{f.Scope, f.ID})
		byRoot[r] = append(byRoot[r], f)
	}
	groups := make([][]Fact, 0, len(byRoot))
	for _, g := range byRoot {
		slices.SortFunc(g, func(a, b Fact) int { return strings.Compare(a.ID, b.ID) })
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b []Fact) int { return compareKeys(KeyOf(a), KeyOf(b)) })
	return groups
}

func compareKeys(a, b PaymentKey) int {
	return cmp.Or(strings.Compare(a.Scope, b.Scope), strings.Compare(a.Object, b.Object))
}

// KeyOf names the payment that group is: by its payment intent, even one that
// is only pointed to, else its charge, else its session, else the refund or
// dispute that stands alone. So the same money learned twice is one entry.
func KeyOf(group []Fact) PaymentKey {
	var scope string
	// The smallest id of the best sort that there is.
	var best [4]string
	offer := func(sort int, id string) {
		if id != "" && (best[sort] == "" || id < best[sort]) {
			best[sort] = id
		}
	}
	for _, f := range group {
		scope = f.Scope
		offer(0, f.PaymentIntent())
		offer(1, f.Charge())
		switch f.Kind {
		case KindPaymentIntent:
			offer(0, f.ID)
		case KindCharge:
			offer(1, f.ID)
		case KindSession:
			offer(2, f.ID)
		default:
			offer(3, f.ID)
		}
	}
	return PaymentKey{Scope: scope, Object: cmp.Or(best[0], best[1], best[2], best[3])}
}

// intents are the payment intents of a group, known or pointed to, sorted.
func intents(group []Fact) []string {
	var ids []string
	for _, f := range group {
		if f.Kind == KindPaymentIntent {
			ids = union(ids, []string{f.ID})
		} else if id := f.PaymentIntent(); id != "" {
			ids = union(ids, []string{id})
		}
	}
	return ids
}

// Names returns the order ids that a payment speaks, sorted, each once with the
// first place where it stands. More than one is a conflict. It speaks none if
// a session of it was made from a Payment Link: there the buyer controls
// client_reference_id, and the link's metadata is copied to every buyer, so
// what stands on the payment intent and the charge is no name either.
func Names(group []Fact) []Name {
	if slices.ContainsFunc(group, func(f Fact) bool { return f.PaymentLink() != "" }) {
		return nil
	}
	var names []Name
	for _, f := range group {
		for _, id := range spoken(f) {
			names = append(names, Name{Order: id, By: byMetadata, Object: f.ID})
		}
		if ref := f.Reference(); ref != "" {
			names = append(names, Name{Order: ref, By: byReference, Object: f.ID})
		}
	}
	slices.SortFunc(names, func(a, b Name) int {
		return cmp.Or(strings.Compare(a.Order, b.Order), strings.Compare(a.By, b.By), strings.Compare(a.Object, b.Object))
	})
	return slices.CompactFunc(names, func(a, b Name) bool { return a.Order == b.Order })
}

const (
	byMetadata  = "metadata.order_id"
	byReference = "client_reference_id"
)

// spoken are the order ids that a fact's metadata speaks now: the snapshot's,
// or while that is silent all that were ever spoken.
func spoken(f Fact) []string {
	if f.Snapshot.OrderID != "" {
		return []string{f.Snapshot.OrderID}
	}
	return f.Sticky.OrderIDs
}

// RawNames returns every order id that a payment ever spoke, sorted, Payment
// Links or not: the orders that a change of the payment may concern.
func RawNames(group []Fact) []string {
	var names []string
	for _, f := range group {
		names = union(names, f.Sticky.OrderIDs)
		if ref := f.Reference(); ref != "" {
			names = union(names, []string{ref})
		}
	}
	return names
}

// Adoptable returns the session that makes an order of its own out of a payment
// that names none: one that was completed, sells something (mode payment, with
// an amount and a currency), and came from a Payment Link in adopt. With "*" in
// adopt any completed session will do.
func Adoptable(group []Fact, adopt []string) (session Fact, ok bool) {
	if len(adopt) == 0 || len(Names(group)) > 0 {
		return Fact{}, false
	}
	for _, f := range group {
		if f.Kind != KindSession || !f.Sticky.Complete || f.Sticky.Mode != modePayment {
			continue
		}
		if !f.Snapshot.Amount.Known || f.Snapshot.Currency == "" {
			continue
		}
		wanted := slices.Contains(adopt, "*") || f.PaymentLink() != "" && slices.Contains(adopt, f.PaymentLink())
		if wanted && (!ok || f.ID < session.ID) {
			session, ok = f, true
		}
	}
	return session, ok
}
