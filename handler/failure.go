package handler

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"

	"paidonce/store"
)

// failure is an error that was made for the caller: status, code, message and
// fields are what it may see. reason and cause are for the operator.
type failure struct {
	status  int
	code    string
	message string
	fields  []store.FieldProblem
	allow   string // 405: what the path does take
	cause   error  // logged, never shown
	reason  string // logged and counted; from a fixed set of words
	source  string // whose webhook it is about, for the log
}

func (f *failure) Error() string {
	text := f.code + ": " + f.message
	if f.reason != "" {
		text += " (" + f.reason + ")"
	}
	return text
}

func (f *failure) Unwrap() error { return f.cause }

// The messages of a refused signature are the same whatever is wrong with it:
// only the operator, who reads the log, is told (cases.md B71).

func missingSignature(reason string) error {
	return &failure{status: http.StatusUnauthorized, code: "missing_signature", message: "the request is not signed", reason: reason}
}

func badSignature(reason string) error {
	return &failure{status: http.StatusUnauthorized, code: "bad_signature", message: "the signature is not one of ours", reason: reason}
}

func wrongTimestamp() error {
	return &failure{status: http.StatusUnauthorized, code: "timestamp_out_of_tolerance",
		message: "the signed timestamp is more than 300 seconds from now", reason: "timestamp out of tolerance"}
}

func wrongAccount() error {
	return &failure{status: http.StatusForbidden, code: "wrong_account", message: "this event belongs to another account", reason: "event of another account"}
}

func wrongMode() error {
	return &failure{status: http.StatusForbidden, code: "wrong_mode", message: "this event is of the other mode, test or live", reason: "event of the other mode"}
}

func tooLarge(most int64) *failure {
	return &failure{status: http.StatusRequestEntityTooLarge, code: "too_large",
		message: fmt.Sprintf("the body is larger than %d bytes", most), reason: "body too large"}
}

func malformed(message string) *failure {
	return &failure{status: http.StatusBadRequest, code: "malformed", message: message}
}

func notFound() error {
	return &failure{status: http.StatusNotFound, code: string(store.CodeNotFound), message: "there is nothing here"}
}

func methodNotAllowed(allow string) error {
	return &failure{status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: "this path takes " + allow, allow: allow}
}

// unavailable is 503. It does not say that nothing was stored.
func unavailable(message, reason string, cause error) error {
	return &failure{status: http.StatusServiceUnavailable, code: string(store.CodeUnavailable), message: message, reason: reason, cause: cause}
}

// invalid is 422 with every problem by field.
func invalid(fields []store.FieldProblem) error {
	words := make([]string, len(fields))
	for i, f := range fields {
		words[i] = f.Field + ": " + f.Problem
	}
	return &failure{status: http.StatusUnprocessableEntity, code: string(store.CodeInvalid),
		message: "invalid request: " + strings.Join(words, "; "), fields: fields}
}

// statuses are the HTTP statuses of what the store says to its callers.
var statuses = map[store.Code]int{
	store.CodeNotFound:         http.StatusNotFound,
	store.CodeInvalid:          http.StatusUnprocessableEntity,
	store.CodeOrderConflict:    http.StatusConflict,
	store.CodeOrderPaid:        http.StatusConflict,
	store.CodeAmbiguous:        http.StatusConflict,
	store.CodePayloadGone:      http.StatusConflict,
	store.CodeNotDismissible:   http.StatusConflict,
	store.CodeNothingToAccept:  http.StatusConflict,
	store.CodeAlreadyFulfilled: http.StatusConflict,
	store.CodeNotFulfillable:   http.StatusConflict,
	store.CodeNoStripeKey:      http.StatusConflict,
	store.CodeRequestConflict:  http.StatusConflict,
	store.CodeNotRefundable:    http.StatusConflict,
	store.CodeOrderClosed:      http.StatusConflict,
	store.CodePaymentUnderWay:  http.StatusConflict,
	store.CodeInFlight:         http.StatusConflict,
	store.CodeNotRetryable:     http.StatusConflict,
	store.CodeNotResolvable:    http.StatusConflict,
	CodeEffectCanceled:         http.StatusConflict,
	CodeStripeRefused:          http.StatusBadGateway,
	store.CodeUnavailable:      http.StatusServiceUnavailable,
}

// asFailure turns any error into what the caller may see of it. What was not
// made for the caller is "internal error".
func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	if p, ok := store.AsProblem(err); ok && statuses[p.Code] != 0 {
		return &failure{status: statuses[p.Code], code: string(p.Code), message: p.Message, fields: p.Fields, cause: err}
	}
	if store.Transient(err) {
		return &failure{status: http.StatusServiceUnavailable, code: string(store.CodeUnavailable),
			message: "the database did not answer in time; try again", cause: err}
	}
	return &failure{status: http.StatusInternalServerError, code: "internal", message: "internal error", cause: err}
}

// endpoint answers a request, by returning an answer or an error. It may use w
// to bound the body, and for nothing else.
type endpoint func(w http.ResponseWriter, r *http.Request) (answer, error)

// serve makes an http.Handler of e. All that leaves a listener passes here:
// this is the one function that turns errors into answers and log lines.
func (h *Handler) serve(listener string, e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := contain(e, w, r)
		if err != nil {
			f := asFailure(err)
			h.logFailure(listener, r, f)
			a = f.answer()
		}
		a.write(w)
	})
}

// logFailure says what an operator should know. Refused webhooks have been
// counted and logged where their source was known, and what a caller of the
// admin API does wrong is told to that caller.
func (h *Handler) logFailure(listener string, r *http.Request, f *failure) {
	var p *panicError
	var sp *store.PanicError
	switch {
	case errors.As(f.cause, &p):
		h.log.ErrorContext(r.Context(), "handler: panic contained", "listener", listener, "status", f.status, "err", p, "stack", string(p.stack))
	case errors.As(f.cause, &sp):
		h.log.ErrorContext(r.Context(), "handler: panic contained", "listener", listener, "status", f.status, "err", sp, "stack", string(sp.Stack))
	case f.status == http.StatusServiceUnavailable:
		level := slog.LevelWarn // heals by itself
		if f.cause != nil && !store.Transient(f.cause) {
			level = slog.LevelError
		}
		h.quiet.say(level, "503 on the "+listener+" listener", f.reason, f.source, "status", f.status, "err", shortText(f.cause))
	case f.code == string(CodeStripeRefused): // the worker told of it, and its order shows it
	case f.status >= http.StatusInternalServerError:
		h.log.ErrorContext(r.Context(), "handler: request failed", "listener", listener, "status", f.status, "err", shortText(f.cause))
	}
}

// maxErrorText is where foreign error text is cut (P10).
const maxErrorText = 200

func shortText(err error) string {
	if err == nil {
		return ""
	}
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// panicError is a panic that was contained: one request must not end the
// process. What was thrown is not kept, as it may be a body; a runtime error
// tells of our code alone.
type panicError struct {
	value string
	stack []byte
}

func (p *panicError) Error() string { return "panic: " + p.value }

func contain(e endpoint, w http.ResponseWriter, r *http.Request) (a answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			p := &panicError{value: fmt.Sprintf("%T", v), stack: debug.Stack()}
			if re, ok := v.(runtime.Error); ok {
				p.value = re.Error()
			}
			err = p
		}
	}()
	return e(w, r)
}
