package stripefake

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Event is one Event object: a copy of an object as it was when it changed.
// Created has whole seconds, so it orders little.
type Event struct {
	ID, Type string
	Object   string // the id in data.object
	Created  int64

	head, tail string
}

// Body is the delivery's body. pending_webhooks counts the deliveries that have
// not succeeded yet, so two deliveries of one event differ.
func (e Event) Body(pending int) []byte {
	return []byte(e.head + strconv.Itoa(pending) + e.tail)
}

func (e Event) String() string { return fmt.Sprintf("%s of %s at %d", e.Type, e.Object, e.Created) }

// Events are all events so far, in the order in which they came about.
func (a *Account) Events() []Event { return a.events }

// cause is who makes an object change: events tell it by their request.
type cause bool

const (
	byStripe cause = false // the bank, or time: no request
	byCaller cause = true  // a call of the API, by the shop or by the buyer's page
)

// request is the call of the shop that is being carried out: the events that it
// makes name it and its idempotency key. Its id is empty between the calls.
type request struct{ id, key string }

// object is what events carry.
type object interface {
	id() string
	render(a *Account) map[string]any
}

// send makes an event of the object as it is now. previous has the old values
// of what changed, where Stripe tells them.
func (a *Account) send(eventType string, o object, who cause, previous map[string]any) {
	data := map[string]any{"object": o.render(a)}
	if previous != nil {
		data["previous_attributes"] = previous
	}
	request := map[string]any{"id": nil, "idempotency_key": nil}
	switch {
	case a.request.id != "":
		request = map[string]any{"id": a.request.id, "idempotency_key": text(a.request.key)}
	case who == byCaller:
		request = map[string]any{"id": a.newID("req_"), "idempotency_key": a.newID("key-")}
	}
	e := Event{ID: a.newID("evt_"), Type: eventType, Object: o.id(), Created: a.now}
	if eventType == a.late.eventType {
		e.Created += a.late.seconds
		a.late.eventType = ""
	}
	a.events = append(a.events, a.envelope(e, mustMarshal(data), mustMarshal(request)))
}

// envelope writes what stands around data, in the order of Stripe's bodies.
func (a *Account) envelope(e Event, data, request []byte) Event {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%q,"object":"event",`, e.ID)
	if a.cfg.Connected != "" {
		fmt.Fprintf(&b, `"account":%q,`, a.cfg.Connected)
	}
	fmt.Fprintf(&b, `"api_version":%q,"created":%d,"data":%s,"livemode":%t,"pending_webhooks":`, a.cfg.APIVersion, e.Created, data, a.cfg.Livemode)
	e.head = b.String()
	e.tail = fmt.Sprintf(`,"request":%s,"type":%q}`, request, e.Type)
	return e
}

// mustMarshal writes what render made: maps, lists, strings, numbers and
// booleans, which always marshal.
func mustMarshal(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// Lag makes the created of the next event of a type later than the change that
// it tells of: the clocks of Stripe's machines are not one clock.
func (a *Account) Lag(eventType string, seconds int64) {
	a.late.eventType, a.late.seconds = eventType, min(max(seconds, 0), maxLag)
}

// Repeat sends a second Event object for the change that an event told of, as
// Stripe says may happen: the same copy of the object under another id.
func (a *Account) Repeat(eventID string) error {
	for _, e := range a.events {
		if e.ID != eventID {
			continue
		}
		again := e
		again.ID = a.newID("evt_")
		again.head = strings.Replace(e.head, e.ID, again.ID, 1)
		a.events = append(a.events, again)
		return nil
	}
	return refuse("resource_missing", "no such event: %s", eventID)
}
