package handler

import (
	"testing"
	"time"

	"paidonce/store"
)

func TestRejectsInARowAreThoseSinceTheLastAcceptedDelivery(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	reject := func(source, code string) func(*rejects) {
		return func(r *rejects) { r.add(Reject{At: at, Source: source, Code: code, Reason: "why " + code}) }
	}
	accept := func(source string) func(*rejects) {
		return func(r *rejects) { r.accepted(source, at.Add(time.Second)) }
	}
	bad, github := reject("stripe", "bad_signature"), reject("github", "bad_signature")
	now, later := store.At(at), store.At(at.Add(time.Second))
	for _, tt := range []struct {
		name string
		did  []func(*rejects)
		want store.RejectsSeen
	}{
		{"nothing yet", nil, store.RejectsSeen{}},
		{"three of one source", []func(*rejects){bad, bad, reject("stripe", "wrong_mode")},
			store.RejectsSeen{Source: "stripe", InARow: 3, LastAt: now, LastReason: "why wrong_mode"}},
		{"one accepted between", []func(*rejects){bad, bad, accept("stripe"), bad},
			store.RejectsSeen{Source: "stripe", InARow: 1, LastAt: now, LastReason: "why bad_signature", AcceptedAt: later}},
		{"one accepted last", []func(*rejects){bad, bad, accept("stripe")}, store.RejectsSeen{AcceptedAt: later}},
		{"another source's does not count", []func(*rejects){github, github, accept("stripe"), github, bad},
			store.RejectsSeen{Source: "github", InARow: 3, LastAt: now, LastReason: "why bad_signature", AcceptedAt: later}},
		{"what is no delivery", []func(*rejects){reject("", "unknown_source"), reject("stripe", "method_not_allowed")}, store.RejectsSeen{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRejects()
			for _, do := range tt.did {
				do(r)
			}
			if got := r.inARow(); got != tt.want {
				t.Errorf("got %+v; want %+v", got, tt.want)
			}
		})
	}
}

func TestRejectsInARowOutliveTheRing(t *testing.T) {
	r := newRejects()
	for range keptRejects + 50 {
		r.add(Reject{Source: "stripe", Code: "bad_signature"})
	}
	if got := r.inARow().InARow; got != keptRejects+50 {
		t.Errorf("%d in a row; want all of them", got)
	}
}

// TestADeliveryThatIsTakenEndsTheRow goes through the listener: what the alert
// is told is what senders met.
func TestADeliveryThatIsTakenEndsTheRow(t *testing.T) {
	w := newWorld(t)
	body := testEvent("evt_1")
	test := w.signed(body)
	test.Set("User-Agent", "paidonce-send/1")
	bad := func() { w.post("stripe", stripeHeader(w.clock.Now(), body, "whsec_other"), body) }
	for i, step := range []struct {
		name   string
		do     func()
		inARow int
		at     store.Time // AcceptedAt
	}{
		{"two are refused", func() { bad(); bad() }, 2, 0},
		{"our own test event is taken", func() { w.post("stripe", test, body) }, 2, 0},
		{"the sender's is taken", func() { w.stripe("stripe", body) }, 0, store.At(w.clock.Now())},
		{"one is refused again", bad, 1, store.At(w.clock.Now())},
		{"a known one is taken", func() { w.stripe("stripe", body) }, 0, store.At(w.clock.Now())},
	} {
		step.do()
		if got := w.h.RejectsInARow(); got.InARow != step.inARow || got.AcceptedAt != step.at {
			t.Errorf("step %d, %s: %+v; want %d in a row, accepted at %v", i, step.name, got, step.inARow, step.at)
		}
	}
}
