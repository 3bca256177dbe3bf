package stripeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"runtime/debug"

	"paidonce/store"
)

// request is what one call is, as far as its answer has to be judged.
type request struct {
	name    string // for people: "create the refund"
	object  string // what a success answers: "refund", "list"
	id      string // of the object that the call is about; "" is a new one, or a list
	about   bool   // there must be an id
	mutates bool
	key     string // the idempotency key, of a call that mutates
}

// doubt is what a call comes to when nobody can say how far it got. Reading is
// done again.
func (r request) doubt() store.Outcome {
	if r.mutates {
		return store.OutcomeUnknown
	}
	return store.OutcomeAgain
}

// head is what every answer of Stripe's begins with, and what only a list has.
type head struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	HasMore bool   `json:"has_more"`
	Data    []struct {
		ID string `json:"id"`
	} `json:"data"`

	requestID string
	replayed  bool // answered before, under the same key
	date      string
	body      []byte // as it came
}

var (
	usableID = regexp.MustCompile(`^[A-Za-z0-9_]{1,120}$`)
	// usableKey is what Stripe takes as a key: at most 255 characters. Without
	// one the library would make up its own, another one at each attempt.
	usableKey = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)
)

// call makes one call: within its own time limit, shielded from panics, and
// done only if the answer is the object that was asked for.
func (c *Client) call(ctx context.Context, r request, do func(context.Context) error) (head, *Error) {
	if r.about && !usableID.MatchString(r.id) {
		// An empty id would turn "retrieve this" into "list all".
		return head{}, refused(codeInvalidBody, "stripe: %s: the id cannot be one of Stripe's", r.name)
	}
	if r.mutates && !usableKey.MatchString(r.key) {
		return head{}, refused(codeInvalidBody, "stripe: %s: the idempotency key cannot be one", r.name)
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	x := &exchange{}
	err := c.shield(limited, r, func() error { return do(withExchange(limited, x)) })
	var h head
	if err == nil {
		h, err = readHead(r, x)
	}
	if err == nil {
		return h, nil
	}
	e := c.judge(ctx, r, x, err)
	c.log.InfoContext(ctx, "stripeapi: call failed", "call", r.name, "outcome", string(e.Outcome),
		"type", e.Type, "code", e.Code, "status", e.Status, "request_id", e.RequestID)
	return head{}, e
}

// readHead checks that a success is one. The library takes any JSON below
// status 400 for the object, a redirect's too; and an empty list that is no
// list would prove that something did not happen.
func readHead(r request, x *exchange) (head, error) {
	var h head
	if x.status != http.StatusOK || json.Unmarshal(x.body, &h) != nil || h.Object != r.object {
		return head{}, errOtherAnswer
	}
	if r.object == "list" {
		if h.Data == nil || h.HasMore && len(h.Data) == 0 {
			return head{}, errOtherAnswer
		}
		for _, d := range h.Data {
			if !usableID.MatchString(d.ID) {
				return head{}, errOtherAnswer
			}
		}
	} else if !usableID.MatchString(h.ID) || r.about && h.ID != r.id {
		return head{}, errOtherAnswer
	}
	h.requestID = word(x.header.Get("Request-Id"))
	h.replayed = x.header.Get("Idempotent-Replayed") == "true"
	h.date, h.body = x.header.Get("Date"), x.body
	return h, nil
}

// shield turns a panic into an error.
func (c *Client) shield(ctx context.Context, r request, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			what := fmt.Sprintf("%T", p) // not its text: that may hold anything
			if re, ok := p.(runtime.Error); ok {
				what = re.Error()
			}
			c.log.ErrorContext(ctx, "stripeapi: the library panicked", "call", r.name, "err", what, "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return do()
}
