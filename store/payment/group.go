package payment

import (
	"cmp"
	"slices"
	"strings"
)

// node is an object in its scope: ids mean nothing across scopes.
type node struct{ scope, id string }

// Group sorts facts into payments: a payment intent with all that belongs to
// it. Each object belongs to the payment intent that it names itself. One that
// names none belongs where its charge does, and a charge that names none to the
// payment intent that others tie to it: as its latest charge, or in a refund or
// dispute that names both. If those disagree, nobody's word counts. So no
// payment has two payment intents, and one mistaken pointer joins nothing that
// has a word of its own.
//
// The result does not depend on the order of facts: payments stand in the order
// of their keys, the facts of one in the order of their ids.
func Group(facts []Fact) [][]Fact {
	owners := chargeOwners(facts)
	groups := make(map[node][]Fact)
	for _, f := range facts {
		at := node{f.Scope, f.anchor(owners)}
		groups[at] = append(groups[at], f)
	}
	sorted := make([][]Fact, 0, len(groups))
	for _, g := range groups {
		slices.SortFunc(g, func(a, b Fact) int { return strings.Compare(a.ID, b.ID) })
		sorted = append(sorted, g)
	}
	slices.SortFunc(sorted, func(a, b []Fact) int { return compareKeys(KeyOf(a), KeyOf(b)) })
	return sorted
}

// chargeOwners finds the payment intent of each charge: what the charge says,
// else what the others say if they agree. "" is a charge that they disagree on.
func chargeOwners(facts []Fact) map[node]string {
	owners := make(map[node]string)
	for _, f := range facts {
		charge, intent := f.Charge(), f.PaymentIntent()
		if f.Kind == KindPaymentIntent {
			intent = f.ID
		}
		if charge == "" || intent == "" {
			continue
		}
		at := node{f.Scope, charge}
		if other, ok := owners[at]; ok && other != intent {
			intent = ""
		}
		owners[at] = intent
	}
	for _, f := range facts {
		if f.Kind == KindCharge && f.PaymentIntent() != "" {
			owners[node{f.Scope, f.ID}] = f.PaymentIntent()
		}
	}
	return owners
}

// anchor is the object that a fact's payment is named by.
func (f Fact) anchor(owners map[node]string) string {
	if f.Kind == KindPaymentIntent {
		return f.ID
	}
	if intent := f.PaymentIntent(); intent != "" {
		return intent
	}
	charge := f.Charge()
	if f.Kind == KindCharge {
		charge = f.ID
	}
	if charge != "" {
		return cmp.Or(owners[node{f.Scope, charge}], charge)
	}
	return f.ID
}

func compareKeys(a, b PaymentKey) int {
	return cmp.Or(strings.Compare(a.Scope, b.Scope), strings.Compare(a.Object, b.Object))
}

// KeyOf names the payment that group is: by its payment intent, even one that
// is only pointed to, else its charge, else its session, else the refund or
// dispute that stands alone. So the same money learned twice is one entry.
func KeyOf(group []Fact) PaymentKey {
	var key PaymentKey
	for _, f := range group {
		key.Scope = f.Scope
	}
	owners := chargeOwners(group)
	for _, f := range group {
		// All facts of one payment have the same anchor. Of a set that is not
		// one payment, the smallest names it.
		if at := f.anchor(owners); key.Object == "" || at < key.Object {
			key.Object = at
		}
	}
	return key
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
