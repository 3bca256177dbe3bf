package stripeapi

import (
	"encoding/json"

	"paidonce/store"
)

// summary is what is kept of an answer for the operator: named fields, none of
// which can hold a customer's data, a client_secret or an address.
type summary struct {
	Object        string        `json:"object,omitempty"`
	ID            string        `json:"id,omitempty"`
	Status        string        `json:"status,omitempty"`
	PaymentStatus string        `json:"payment_status,omitempty"`
	Amount        int64         `json:"amount,omitempty"` // minor units
	Currency      string        `json:"currency,omitempty"`
	Replayed      bool          `json:"replayed,omitempty"` // answered before, under the same key
	Expired       int           `json:"expired,omitempty"`  // how many sessions
	Canceled      int           `json:"canceled,omitempty"` // how many payment intents
	Error         *summaryError `json:"error,omitempty"`
}

type summaryError struct {
	Type  string `json:"type"`
	Code  string `json:"code,omitempty"`
	Param string `json:"param,omitempty"`
}

// bytes is the summary as JSON. Every text in it went through word, so that it
// stays far below store.MaxAnswerBody.
func (s summary) bytes() []byte {
	s.Object, s.ID, s.Status = word(s.Object), word(s.ID), word(s.Status)
	s.PaymentStatus, s.Currency = word(s.PaymentStatus), word(s.Currency)
	b, err := json.Marshal(s)
	if err != nil || len(b) > store.MaxAnswerBody {
		return nil
	}
	return b
}
