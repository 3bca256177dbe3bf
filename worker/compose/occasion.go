package compose

import (
	"strings"

	"paidonce/store"
)

// Operation is what happened, taken apart.
type Operation struct {
	Name       string     `json:"name"`              // as recorded: "dispute.closed:dp_1:won"
	Kind       string     `json:"kind"`              // "dispute.closed"; SOURCE:TYPE for a raw event
	Object     string     `json:"object,omitempty"`  // "dp_1"; the number of an alert
	Verdict    string     `json:"verdict,omitempty"` // "won"
	OccurredAt store.Time `json:"occurred_at"`
}

// String is the operation as recorded, which is also how a template prints it.
func (o Operation) String() string { return o.Name }

// parseOperation takes a name apart. An operation has a dot before its first
// colon, a raw event has none there: no source has a dot in its name.
func parseOperation(name string, at store.Time) Operation {
	o := Operation{Name: name, Kind: name, OccurredAt: at}
	kind, rest, ok := strings.Cut(name, ":")
	if !ok || !strings.Contains(kind, ".") {
		return o
	}
	o.Kind = kind
	o.Object, o.Verdict, _ = strings.Cut(rest, ":")
	return o
}

// occasion is an occasion for all its targets. What two of them would make in
// the same way is made once.
type occasion struct {
	Data
	payload []byte
	raw     bool

	body       []byte // of envelope
	bodyFailed string
}

func newOccasion(o store.Occasion) *occasion {
	return &occasion{
		Data:    Data{Order: o.Order, Operation: parseOperation(o.Operation, o.OccurredAt), Event: o.Event, Alert: o.Alert},
		payload: o.Payload,
		raw:     o.Order == nil && o.Alert == nil,
	}
}

// discreet returns text, cut to 200 bytes, unless it quotes the customer: a
// template error may print the value that it failed on.
func (o *occasion) discreet(text string) string {
	if o.Order != nil {
		c := o.Order.Customer
		for _, private := range []string{c.Email, c.Name} {
			if len(private) > 2 && strings.Contains(text, private) {
				return "a template failed on the customer's data"
			}
		}
	}
	return cut(text)
}

// cut shortens s to at most 200 bytes, between characters.
func cut(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
