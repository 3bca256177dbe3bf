package stripefake

import (
	"errors"
	"maps"
	"net/http"
)

// The types of Stripe's errors.
const (
	kindInvalid     = "invalid_request_error"
	kindIdempotency = "idempotency_error"
	kindAPI         = "api_error"
)

// apiError is an error as the API answers it.
type apiError struct {
	status         int
	kind, code     string
	param, message string
	paymentIntent  map[string]any // the object that is in the way, as Stripe adds it
	header         map[string]string
}

func (e *apiError) Error() string { return e.message }

// ownCodes are the words of refusals for which Stripe has no error code: its
// answer has a message alone.
var ownCodes = map[string]bool{
	"checkout_session_not_open": true, "checkout_session_no_payment": true, "checkout_session_unpaid": true,
	"refund_unexpected_state": true, "dispute_unexpected_state": true, "charge_not_captured": true, "unknown_act": true,
}

// asAPIError is what the API says to a refusal of the model.
func asAPIError(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		return &apiError{status: http.StatusInternalServerError, kind: kindAPI, message: "An unknown error occurred"}
	}
	e := &apiError{status: http.StatusBadRequest, kind: kindInvalid, code: refusal.Code, message: refusal.Message}
	if ownCodes[e.code] {
		e.code = ""
	}
	if e.code == "resource_missing" {
		e.status = http.StatusNotFound
	}
	return e
}

// missing says that there is no such object.
func missing(kind, id, param string) *apiError {
	return &apiError{
		status: http.StatusNotFound, kind: kindInvalid, code: "resource_missing", param: param,
		message: "No such " + kind + ": '" + id + "'",
	}
}

// reply is one answer.
type reply struct {
	status int
	header map[string]string
	body   []byte
}

func (e *apiError) reply(requestID string) reply {
	o := map[string]any{"type": e.kind, "message": e.message, "request_log_url": "https://dashboard.stripe.com/test/logs/" + requestID}
	if e.code != "" {
		o["code"], o["doc_url"] = e.code, "https://stripe.com/docs/error-codes/"+e.code
	}
	if e.param != "" {
		o["param"] = e.param
	}
	if e.paymentIntent != nil {
		o["payment_intent"] = e.paymentIntent
	}
	return reply{status: e.status, header: maps.Clone(e.header), body: mustMarshal(map[string]any{"error": o})}
}
