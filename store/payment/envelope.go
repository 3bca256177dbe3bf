package payment

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Envelope is the outside of a signed body: who it is, what it is about, when
// it happened. The event's `request` and `pending_webhooks` are never read: the
// first was a string once, the second changes between deliveries.
type Envelope struct {
	ID         string // "" when the body has no usable one: the caller then uses a hash of the body
	Object     string // "event", "v2.core.event"; "" in bodies of 2012
	Type       string
	Account    string // a connected account's; "" is the source's own
	APIVersion string
	Livemode   bool
	// HasLivemode says that a boolean livemode was there. Without it nobody
	// knows whether the money is real.
	HasLivemode bool
	Created     Millis // 0 when the body does not say
	// Malformed says why the body cannot be used, in words without its data;
	// "" is usable. The other fields then hold what could still be read.
	Malformed string
}

// maxIDBytes bounds what is taken for an id or a name. Stripe's own limit for
// ids is 255 characters, and all of them are ASCII.
const maxIDBytes = 255

// ParseEnvelope reads the outside of a signed body. It never fails: Malformed
// says why a body cannot be used. It passes over the body once, checking all of
// its syntax and building nothing, because it stands between a delivery and its
// answer.
//
// Only keys in their exact case count. A key we use that stands there twice
// makes the body malformed, as two readers could see two different events; if
// it is the id, there is no usable id.
func ParseEnvelope(body []byte) Envelope {
	e, _ := parseEnvelope(body)
	return e
}

// parseEnvelope also returns the raw `data` member, nil when there is none.
func parseEnvelope(body []byte) (e Envelope, data []byte) {
	var raw struct{ id, object, typ, account, apiVersion, livemode, created, data []byte }
	var twice string
	var sameID bool
	slot := func(name []byte) *[]byte {
		switch string(name) { // does not allocate
		case "id":
			return &raw.id
		case "object":
			return &raw.object
		case "type":
			return &raw.typ
		case "account":
			return &raw.account
		case "api_version":
			return &raw.apiVersion
		case "livemode":
			return &raw.livemode
		case "created":
			return &raw.created
		case "data":
			return &raw.data
		}
		return nil
	}
	err := members(body, func(name []byte) bool {
		return slot(name) != nil
	}, func(name, value []byte) {
		switch at := slot(name); {
		case *at == nil:
			*at = value
		case string(name) == "id":
			sameID = true
			twice = "id"
		case twice == "":
			twice = string(name)
		}
	})
	if err != nil {
		// Nothing of such a body is used: what stands before the place where
		// it breaks is as doubtful as the rest.
		return Envelope{Malformed: "the body is not one JSON object"}, nil
	}

	blame := func(why string) {
		if e.Malformed == "" {
			e.Malformed = why
		}
	}
	if !utf8.Valid(body) {
		blame("the body is not valid UTF-8")
	}
	if twice != "" {
		blame("the key " + twice + " stands there twice")
	}
	var ok bool
	if e.ID, ok = usableID(raw.id); !ok || sameID {
		e.ID = ""
		blame("there is no usable id")
	}
	if e.Type, ok = usableID(raw.typ); !ok {
		blame("there is no usable type")
	}
	if raw.object != nil {
		if e.Object, ok = usableID(raw.object); !ok || e.Object != "event" && !e.v2() {
			blame("the body is not an event")
		}
	}
	if !absent(raw.account) {
		if e.Account, ok = usableID(raw.account); !ok {
			blame("account is not a usable string")
		}
	}
	// Which version rendered the body changes nothing for the rules, so one
	// that cannot be read is not held against it.
	e.APIVersion, _ = usableID(raw.apiVersion)
	switch string(raw.livemode) {
	case "true", "false":
		e.Livemode, e.HasLivemode = string(raw.livemode) == "true", true
	default:
		blame("there is no usable livemode")
	}
	if raw.created != nil {
		if e.Created, ok = createdMillis(raw.created, e.v2()); !ok {
			blame("created is not a time")
		}
	}
	return e, raw.data
}

// v2 reports whether the event has the second API's shape: it names an object
// and carries no copy of it.
func (e Envelope) v2() bool { return strings.HasPrefix(e.Object, "v2.") }

// createdMillis reads the event's time: seconds as a plain integer, or RFC 3339
// in events of the second API.
func createdMillis(raw []byte, v2 bool) (Millis, bool) {
	if v2 && len(raw) > 0 && raw[0] == '"' {
		text, ok := unquote(raw)
		if !ok {
			return 0, false
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || t.Unix() < 0 {
			return 0, false
		}
		return t.UnixMilli(), true
	}
	return secondsMillis(raw)
}

// secondsMillis reads Stripe's seconds.
func secondsMillis(raw []byte) (Millis, bool) {
	seconds, ok := plainInteger(raw)
	if !ok || seconds < 0 || seconds > math.MaxInt64/1000 {
		return 0, false
	}
	return seconds * 1000, true
}
