package stripeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stripe/stripe-go/v82"

	"paidonce/store"
)

// The codes of refusals that Stripe has no word for. The first two are the
// store's: the buyer was faster, and nothing failed.
const (
	codeOrderPaid        = string(store.CodeOrderPaid)
	codePaymentUnderWay  = string(store.CodePaymentUnderWay)
	codeIdempotency      = "idempotency_error"
	codeInvalidBody      = "invalid_body"
	codeUnknownOperation = "unknown_operation"
)

// maxErrorText is the longest Answer.Error, in bytes (store.Answer).
const maxErrorText = 200

// Error is a call that has no answer to work with, and what that means.
type Error struct {
	Outcome    store.Outcome // again, unknown or refused
	Status     int           // HTTP; 0 is no answer
	Type, Code string        // Stripe's words; Code may be one of ours
	Param      string        // the name of the parameter that Stripe minds
	RequestID  string        // req_…
	RetryAfter time.Duration // as Stripe asked; 0 is not asked

	text string
}

// Error says what went wrong, in at most 200 bytes and without anybody's data.
func (e *Error) Error() string { return e.text }

// refused is a refusal of our own making.
func refused(code, format string, args ...any) *Error {
	return &Error{Outcome: store.OutcomeRefused, Code: code, text: cutText(fmt.Sprintf(format, args...))}
}

// unless replaces an outcome: for calls whose failure means less than it would
// mean of another one.
func (e *Error) unless(what, instead store.Outcome) *Error {
	if e == nil || e.Outcome != what {
		return e
	}
	out := *e
	out.Outcome = instead
	return &out
}

// harmless is the failure of a call that may be made any number of times: it
// is made again, whatever became of it.
func (e *Error) harmless() *Error { return e.unless(store.OutcomeUnknown, store.OutcomeAgain) }

// nothingKnown is the failure of a look-up.
func (e *Error) nothingKnown() *Error {
	return e.harmless().unless(store.OutcomeRefused, store.OutcomeAgain)
}

// answer is the error as the outbox keeps it.
func (e *Error) answer() store.Answer {
	a := store.Answer{
		Outcome: e.Outcome, Status: e.Status, Code: e.Code, Error: e.text, RetryAfter: e.RetryAfter, RequestID: e.RequestID,
	}
	if e.Type != "" {
		a.Body = summary{Error: &summaryError{Type: e.Type, Code: e.Code, Param: e.Param}}.bytes()
	}
	return a
}

// errPanicked is a panic of the library, recovered.
var errPanicked = errors.New("the library panicked")

// errOtherAnswer is a success without the object that was asked for.
var errOtherAnswer = errors.New("not the object that was asked for")

// judge is what a failed call means: the one place where the outbox policy for
// calls to Stripe is read off an answer. outer is the caller's context, without
// the call's own time limit.
func (c *Client) judge(outer context.Context, r request, x *exchange, err error) *Error {
	e := &Error{Outcome: store.OutcomeAgain, Status: x.status, RequestID: word(x.header.Get("Request-Id"))}
	said := ""
	var se *stripe.Error
	switch {
	case errors.Is(err, errPanicked):
		// Where, nobody knows: before the request, or after its answer.
		e.Outcome, said = r.doubt(), "the library panicked"
	case x.status == 0 && !x.sent && x.err == nil:
		said = "the request could not be made"
	case x.status == 0:
		said = noAnswer(x.err, errors.Is(outer.Err(), context.Canceled))
	case errors.As(err, &se) && se.Type != "":
		said = e.fromStripe(r, se)
	case x.status >= 200 && x.status < 300:
		// Stripe did it, or says so: the key tells, when it goes out again.
		said = fmt.Sprintf("answered %d, and the answer cannot be read", x.status)
		if x.err != nil {
			said = fmt.Sprintf("answered %d, and then: %s", x.status, noAnswer(x.err, errors.Is(outer.Err(), context.Canceled)))
		}
	case x.status >= 300 && x.status < 400:
		said = fmt.Sprintf("answered %d: redirects are not followed", x.status)
	default:
		// Stripe's own errors are JSON. This is a proxy's, or a load balancer's.
		said = fmt.Sprintf("answered %d, without an error of Stripe's", x.status)
	}
	if e.Outcome == store.OutcomeAgain {
		e.RetryAfter = retryAfter(x.header.Get("Retry-After"), c.now())
	}
	e.text = cutText("stripe: " + r.name + ": " + said)
	return e
}

// fromStripe reads an error that Stripe itself has answered.
func (e *Error) fromStripe(r request, se *stripe.Error) string {
	e.Type, e.Code, e.Param = word(string(se.Type)), word(string(se.Code)), word(se.Param)
	said := strings.Join(strings.Fields(fmt.Sprintf("answered %d %s %s %s", e.Status, e.Type, e.Code, e.Param)), " ")
	switch {
	case e.Status == http.StatusUnauthorized:
		// Nothing was executed, and the operator can mend it.
		said += ": Stripe does not accept the key, check STRIPE_API_KEY"
	case e.Status == http.StatusForbidden:
		said += ": the key may not do this, check its rights and its account"
	case e.Status == http.StatusConflict, e.Status == http.StatusTooManyRequests,
		e.Status == http.StatusRequestTimeout, e.Status == http.StatusTooEarly,
		se.Code == stripe.ErrorCodeLockTimeout, se.Code == stripe.ErrorCodeIdempotencyKeyInUse, se.Code == stripe.ErrorCodeRateLimit:
		// Decided before the call was executed, so that its key is free.
	case e.Status >= 500, e.Status == http.StatusFailedDependency:
		// Executed to an unknown point, and replayed for this key.
		e.Outcome = r.doubt()
	case se.Type == stripe.ErrorTypeIdempotency:
		// Other parameters under a key that was used: a mistake of ours, and a
		// new key would hide it.
		e.Outcome, e.Code = store.OutcomeRefused, codeIdempotency
	default:
		e.Outcome = store.OutcomeRefused
	}
	if e.Code == "" {
		e.Code = e.Type
	}
	return said
}

var words = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// word is s if it can be nothing but a name; a sentence, an address or an
// e-mail is "".
func word(s string) string {
	if words.MatchString(s) {
		return s
	}
	return ""
}

// cutText cuts s at maxErrorText bytes, between characters.
func cutText(s string) string {
	if len(s) <= maxErrorText {
		return s
	}
	n := maxErrorText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
