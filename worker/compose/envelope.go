package compose

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"paidonce/store"
)

// envelopeVersion is the version of the shape in the package comment.
const envelopeVersion = 1

type envelope struct {
	Type      string     `json:"type"`
	Timestamp store.Time `json:"timestamp"`
	Version   int        `json:"version"`
	Data      contents   `json:"data"`
}

// contents ends in what envelope splices the payload onto.
type contents struct {
	Order     *store.Order    `json:"order"`
	Operation Operation       `json:"operation"`
	Event     *store.EventRef `json:"event"`
	Alert     *store.Alert    `json:"alert,omitempty"`
}

// envelope is the body of http and exec effects, made once for all of them.
// Nobody writes to it.
func (o *occasion) envelope() (body []byte, failed string) {
	if o.body == nil && o.bodyFailed == "" {
		o.body, o.bodyFailed = o.newEnvelope()
	}
	return bytes.Clone(o.body), o.bodyFailed
}

func (o *occasion) newEnvelope() (body []byte, failed string) {
	body, err := plainJSON(envelope{
		Type: o.Operation.Name, Timestamp: o.Operation.OccurredAt, Version: envelopeVersion,
		Data: contents{Order: o.Order, Operation: o.Operation, Event: o.Event, Alert: o.Alert},
	})
	if err != nil {
		return nil, "the body cannot be written as JSON"
	}
	if !o.raw {
		return body, ""
	}
	// A json.RawMessage would be compacted, and so be other bytes than those
	// that were received: a receiver may want to hash or to store them.
	body = bytes.TrimSuffix(body, []byte("}}"))
	if json.Valid(o.payload) && utf8.Valid(o.payload) {
		body = append(body, `,"payload":`...)
		body = append(body, o.payload...)
	} else {
		body = append(body, `,"payload":"`...)
		body = base64.StdEncoding.AppendEncode(body, o.payload)
		body = append(body, `","payload_encoding":"base64"`...)
	}
	return append(body, "}}"...), ""
}

// plainJSON is v as JSON, without the escapes that only HTML needs, as the API
// writes it.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
