package store

import (
	"errors"
	"fmt"
)

// Problem is an error that was made for the caller: a code to decide on and a
// message to show. It never holds a secret or a customer's data. Everything
// else that the store returns is internal and must not leave the process.
type Problem struct {
	Code    Code
	Message string
	Fields  []FieldProblem // CodeInvalid: every problem, by field
}

// Code is what a caller decides on.
type Code string

const (
	CodeNotFound         Code = "not_found"         // no such order, event or object
	CodeInvalid          Code = "invalid"           // a field is wrong; Fields says which and why
	CodeOrderConflict    Code = "order_conflict"    // the order exists with other content, or an id belongs to another order
	CodeOrderPaid        Code = "order_paid"        // a paid order cannot be edited or closed
	CodeAmbiguous        Code = "ambiguous"         // the event id exists in several scopes
	CodePayloadGone      Code = "payload_gone"      // the payload was purged: nothing to run again
	CodeNotDismissible   Code = "not_dismissible"   // neither unlinked nor quarantined
	CodeNothingToAccept  Code = "nothing_to_accept" // that payment holds no money in suspense for this order
	CodeAlreadyFulfilled Code = "already_fulfilled" // order.paid is recorded, and happens once
	CodeNotFulfillable   Code = "not_fulfillable"   // the order's money went back
	CodeNoStripeKey      Code = "no_stripe_key"     // only Stripe can do it, and there is no key
	CodeRequestConflict  Code = "request_conflict"  // the request id was used for something else
	CodeNotRefundable    Code = "not_refundable"    // more than is left, or nothing
	CodeOrderClosed      Code = "order_closed"      // the shop closed the order
	CodePaymentUnderWay  Code = "payment_under_way" // the buyer or the bank is at it
	CodeInFlight         Code = "in_flight"         // the effect is being sent right now
	CodeNotRetryable     Code = "not_retryable"     // the effect must not be sent again
	CodeNotResolvable    Code = "not_resolvable"    // the effect has its end already
	CodeUnavailable      Code = "unavailable"       // not committed, or not known to be: try again
)

// FieldProblem is what is wrong with one field of a request.
type FieldProblem struct {
	Field   string `json:"field"`
	Problem string `json:"problem"`
}

func (p *Problem) Error() string { return p.Message }

// ErrLeaseLost says that an event was claimed again, or finished, since the
// claim that the caller holds. Nothing was changed (P6).
var ErrLeaseLost = errors.New("lease lost: the event was claimed again or is finished")

// ErrTooNew says that the file was written by a newer paidonce.
var ErrTooNew = errors.New("the database is newer than this program")

// problem makes a Problem.
func problem(code Code, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...)}
}

// AsProblem finds the Problem in err.
func AsProblem(err error) (*Problem, bool) {
	var p *Problem
	ok := errors.As(err, &p)
	return p, ok
}
