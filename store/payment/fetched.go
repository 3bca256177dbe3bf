package payment

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// fetchedPrefix begins the type of a copy that was fetched.
const fetchedPrefix = "fetched."

// Fetched makes an event out of an object that was fetched by its id, so that
// it takes the one path that events take (design.md §5, Merge): the type is
// fetched.OBJECT, the id fetch:OBJECT_ID:DATE, and created is the API's Date,
// in whole seconds. word is the object's own `object`; raw is the object as it
// came, and is not changed.
func Fetched(word, objectID, account string, live bool, at Millis, raw []byte) (id, eventType string, body []byte) {
	id = "fetch:" + objectID + ":" + strconv.FormatInt(at/1000, 10)
	eventType = fetchedPrefix + word
	text := func(s string) []byte {
		b, _ := json.Marshal(s) // a string always marshals
		return b
	}
	var b bytes.Buffer
	b.WriteString(`{"id":`)
	b.Write(text(id))
	b.WriteString(`,"object":"event","type":`)
	b.Write(text(eventType))
	if account != "" {
		b.WriteString(`,"account":`)
		b.Write(text(account))
	}
	b.WriteString(`,"livemode":` + strconv.FormatBool(live) + `,"created":` + strconv.FormatInt(at/1000, 10) + `,"data":{"object":`)
	b.Write(raw)
	b.WriteString(`}}`)
	return id, eventType, b.Bytes()
}

// IsFetched reports whether a type is that of a fetched copy: of our own
// making, and so nothing that a raw route can ask for.
func IsFetched(eventType string) bool { return strings.HasPrefix(eventType, fetchedPrefix) }

// Unfinished reports whether the object is in a state that it should leave by
// itself or by somebody's act: if nothing is heard of it, it is worth a look.
func (f Fact) Unfinished() bool {
	switch f.Kind {
	case KindSession:
		return f.Snapshot.Status == "open" ||
			f.Rank.Class == classSessionOver && f.Sticky.Mode == modePayment && f.Sticky.PaymentStatus == paymentUnpaid && !f.Sticky.AsyncFailed && !f.Sticky.Expired
	case KindPaymentIntent:
		return f.Rank.Class == classIntentPending || f.Rank.Class == classIntentHold
	case KindCharge:
		return f.Snapshot.Status == chargePending
	case KindRefund:
		return f.underWay()
	case KindDispute:
		return f.isOpen() || f.isInquiry()
	}
	return false
}

// Idle reports whether nothing has happened to the object yet: an open session,
// an intent that waits for a way to pay and has seen none fail.
func (f Fact) Idle() bool {
	switch f.Kind {
	case KindSession:
		return f.Snapshot.Status == "open"
	case KindPaymentIntent:
		return (f.Snapshot.Status == intentNeedsMethod || f.Snapshot.Status == intentNeedsConfirmation) && !f.Snapshot.Failed
	}
	return false
}

// Tied reports whether two statements about one object cannot be ranked: they
// differ, and only their events' ids decided which one stands.
func Tied(a, b Fact) bool {
	return a.Kind == b.Kind && a.Rank.Class == b.Rank.Class && a.Rank.Class != classUnseen && a.Rank.Created == b.Rank.Created &&
		a.Rank.Sub == b.Rank.Sub && a.Rank.Event != b.Rank.Event && a.Snapshot != b.Snapshot
}

// Money is what the object by itself has moved, by currency, in minor units:
// money in is positive. A charge brings what was captured of it, a refund takes
// its amount once it has succeeded, a dispute what its balance transactions
// say. Other objects move nothing: their charges do.
func (f Fact) Money() map[string]int64 {
	money := map[string]int64{}
	switch f.Kind {
	case KindCharge:
		if f.Rank.Class == classChargeCaptured {
			money[f.Snapshot.Currency] = f.Sticky.Captured.Minor
		}
	case KindRefund:
		if f.Snapshot.Status == refundSucceeded && !f.Snapshot.Released {
			money[f.Snapshot.Currency] = -f.Snapshot.Amount.Minor
		}
	case KindDispute:
		money = disputeMoney(f, f.Snapshot.Currency)
	}
	for currency, n := range money {
		if n == 0 {
			delete(money, currency)
		}
	}
	return money
}

// BooksObject is the object under which the money of f stands in the books: a
// charge's is that of its payment.
func (f Fact) BooksObject() string {
	if f.Kind == KindCharge && f.Sticky.PaymentIntent != "" {
		return f.Sticky.PaymentIntent
	}
	return f.ID
}

// Told is the state in a word or two, for a person.
func (f Fact) Told() string {
	said := f.Snapshot.Status
	if f.Kind == KindSession && f.Sticky.PaymentStatus != "" {
		said += " and " + f.Sticky.PaymentStatus
	}
	if !stripeWord(strings.ReplaceAll(said, " ", "")) || said == "" {
		return "in a state of its own"
	}
	return said
}

// IsFetchID reports whether an event id is that of a fetched copy.
func IsFetchID(id string) bool { return strings.HasPrefix(id, "fetch:") }
