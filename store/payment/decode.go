package payment

import "strings"

// Event is what a body comes to.
type Event struct {
	Envelope
	Verdict    string // "": Fact is set; else VerdictIgnored or VerdictMalformed
	Reason     string // why there is no fact, in words without the body's data
	ObjectKind string // data.object.object; "" when there is none
	ObjectID   string // data.object.id; "" when there is no usable one
	Fact       Fact   // its Scope is "" until the store sets it
	Customer   Customer
}

// What Decode says of a body that yields no fact.
const (
	VerdictIgnored   = "ignored"
	VerdictMalformed = "malformed"
)

// Customer is who bought, as a session says. It is no part of the fact: facts
// hold no personal data.
type Customer struct{ Email, Name string }

// Decode reads the fact that a body states about the object it carries. The
// object's own `object` field decides what it is, and its own fields decide
// what they prove: the event's type proves nothing (but see session.go for the
// one failure that Stripe tells by type alone), nor does an id's prefix.
//
// A body is ignored when it carries no object, or one that none of the rules
// want. It is malformed when its envelope is, or when an object that the rules
// want lacks an id, repeats a key that they read, or holds a value of another
// type than they need.
func Decode(body []byte) Event {
	envelope, data := parseEnvelope(body)
	ev := Event{Envelope: envelope}
	if ev.Malformed != "" {
		return ev.without(VerdictMalformed, ev.Malformed)
	}
	if ev.v2() {
		return ev.without(VerdictIgnored, "an event of the second API carries no object")
	}
	if absent(data) {
		return ev.without(VerdictIgnored, "the event carries no object")
	}
	outer := readObject(data)
	raw := outer.raw("object")
	if outer.err != "" {
		return ev.without(VerdictMalformed, "data: "+outer.err)
	}
	if raw == nil {
		return ev.without(VerdictIgnored, "the event carries no object")
	}
	r := readObject(raw)
	ev.ObjectKind = r.text("object")
	if r.err != "" {
		return ev.without(VerdictMalformed, "data.object: "+r.err)
	}
	ev.ObjectID, _ = usableID(r.raw("id"))

	var fact Fact
	switch ev.ObjectKind {
	case "checkout.session":
		fact = r.session(ev)
		ev.Customer = r.customer()
	case "payment_intent":
		fact = r.intent(ev)
	case "charge":
		fact = r.charge(ev)
	case "refund":
		previous := outer.object("previous_attributes")
		fact = r.refund(ev, previous)
		r.within("previous_attributes", previous)
		r.within("data", outer)
	case "dispute":
		fact = r.dispute(ev)
	case "invoice_payment":
		fact = r.invoicePayment(ev)
		if r.err == "" && fact.ID == "" {
			return ev.without(VerdictIgnored, "an invoice was paid without a payment intent")
		}
	default:
		return ev.without(VerdictIgnored, ignoredKind(ev.ObjectKind))
	}
	if fact.ID == "" {
		r.blame("there is no usable id")
	}
	if r.err != "" {
		return ev.without(VerdictMalformed, ev.ObjectKind+": "+r.err)
	}
	if ev.Created == 0 {
		return ev.without(VerdictMalformed, "there is no created: nobody knows when it was so")
	}
	if why := contradiction(ev.Type, ev.ObjectKind, fact); why != "" {
		return ev.without(VerdictMalformed, ev.ObjectKind+": "+why)
	}
	ev.Fact = fact
	return ev
}

// without says that no fact follows from the event.
func (ev Event) without(verdict, reason string) Event {
	ev.Verdict, ev.Reason = verdict, reason
	return ev
}

// ignoredKind says why an object is ignored. Its kind is named only if it looks
// like one of Stripe's words, as the reason is shown and logged.
func ignoredKind(kind string) string {
	if kind == "" {
		return "the object does not say what it is"
	}
	if !stripeWord(kind) {
		return "no rule wants an object of this kind"
	}
	return "no rule wants an object of the kind " + kind
}

// stripeWord reports whether s looks like one of Stripe's words, and so may be
// repeated in a reason.
func stripeWord(s string) bool {
	return len(s) <= 60 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") == ""
}

// newFact starts the fact of the object in r: what every kind has.
func (r *reader) newFact(ev Event, kind Kind) Fact {
	f := Fact{Kind: kind, ID: ev.ObjectID, Rank: Rank{Created: ev.Created, Event: ev.ID}}
	f.Snapshot.Currency = r.currency("currency")
	name, operation := r.ours()
	if name != "" {
		f.Snapshot.OrderID = name
		f.Sticky.OrderIDs = []string{name}
	}
	f.Sticky.Operation = operation
	return f
}

// needCurrency refuses money that does not say in which currency it is.
func (r *reader) needCurrency(f Fact) {
	if f.Snapshot.Currency == "" {
		r.blame("there is an amount without its currency")
	}
}
