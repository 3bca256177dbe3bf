package stripeapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
	"paidonce/worker/stripeapi"
)

const page502 = "<html><head><title>502 Bad Gateway</title></head><body>MARK</body></html>"

func html(status int) reply {
	return reply{status: status, header: map[string]string{"Content-Type": "text/html"}, body: page502}
}

// policy is the table of what an answer means: for a call that changes
// something. A look-up of whose answer nothing is known is made again.
var policy = []struct {
	name       string
	answer     reply
	want       store.Outcome
	code       string
	retryAfter time.Duration
}{
	{name: "the connection ends before an answer", answer: reply{hangUp: true}, want: store.OutcomeAgain},
	{name: "the connection ends in a 200", answer: reply{body: refundBody("re_1", "succeeded"), cut: true}, want: store.OutcomeAgain},
	{name: "the connection ends in a 500", answer: reply{status: 500, body: `{"error":{"type":"api_error"}}`, cut: true}, want: store.OutcomeAgain},
	{name: "a 200 whose JSON is broken", answer: reply{body: refundBody("re_1", "succeeded")[:40]}, want: store.OutcomeAgain},
	{name: "a 200 that is empty", answer: reply{}, want: store.OutcomeAgain},
	{name: "a 200 with an empty object", answer: reply{body: `{}`}, want: store.OutcomeAgain},
	{name: "a 200 with null", answer: reply{body: `null`}, want: store.OutcomeAgain},
	{name: "a 200 with another object", answer: reply{body: intentBody("pi_1", "succeeded")}, want: store.OutcomeAgain},
	{name: "a 200 with an object that has no id", answer: reply{body: `{"object":"refund","status":"succeeded"}`}, want: store.OutcomeAgain},
	{name: "a 200 with an error in it", answer: reply{body: `{"error":{"type":"api_error"}}`}, want: store.OutcomeAgain},
	{name: "a 200 in HTML", answer: reply{header: map[string]string{"Content-Type": "text/html"}, body: page502}, want: store.OutcomeAgain},
	{name: "a 202 with the object", answer: reply{status: 202, body: refundBody("re_1", "succeeded")}, want: store.OutcomeAgain},
	{name: "a redirect without a body", answer: reply{status: 302, header: map[string]string{"Location": "/elsewhere"}}, want: store.OutcomeAgain},
	{name: "a redirect with the object in it", answer: reply{status: 307, header: map[string]string{"Location": "/elsewhere"}, body: refundBody("re_1", "succeeded")}, want: store.OutcomeAgain},
	{name: "a redirect to nowhere", answer: reply{status: 301, header: map[string]string{"Location": "http://%zz"}, body: refundBody("re_1", "succeeded")}, want: store.OutcomeAgain},
	{name: "a 409 for a key in use", answer: stripeError(409, "invalid_request_error", "idempotency_key_in_use"), want: store.OutcomeAgain, code: "idempotency_key_in_use"},
	{name: "a 409 for a key in use, as an idempotency_error", answer: stripeError(409, "idempotency_error", "idempotency_key_in_use"), want: store.OutcomeAgain, code: "idempotency_key_in_use"},
	{name: "a 409 without a code", answer: stripeError(409, "invalid_request_error", ""), want: store.OutcomeAgain, code: "invalid_request_error"},
	{name: "a 429 without a code", answer: stripeError(429, "invalid_request_error", ""), want: store.OutcomeAgain, code: "invalid_request_error"},
	{name: "a lock that could not be had, under another status", answer: stripeError(400, "invalid_request_error", "lock_timeout"), want: store.OutcomeAgain, code: "lock_timeout"},
	{name: "a 408 of Stripe's", answer: stripeError(408, "invalid_request_error", ""), want: store.OutcomeAgain, code: "invalid_request_error"},
	{name: "a 429 with Retry-After in seconds", answer: after(stripeError(429, "invalid_request_error", "rate_limit"), "7"), want: store.OutcomeAgain, code: "rate_limit", retryAfter: 7 * time.Second},
	{name: "a 429 with Retry-After as a date", answer: after(stripeError(429, "invalid_request_error", "rate_limit"), now.Add(90*time.Second).Format(http.TimeFormat)), want: store.OutcomeAgain, code: "rate_limit", retryAfter: 90 * time.Second},
	{name: "a 429 for an object that is locked", answer: stripeError(429, "invalid_request_error", "lock_timeout"), want: store.OutcomeAgain, code: "lock_timeout"},
	{name: "a 429 in HTML, with Retry-After", answer: after(html(429), "3"), want: store.OutcomeAgain, retryAfter: 3 * time.Second},
	{name: "a 400 in HTML", answer: html(400), want: store.OutcomeAgain},
	{name: "a 403 in HTML", answer: html(403), want: store.OutcomeAgain},
	{name: "a 404 in HTML", answer: html(404), want: store.OutcomeAgain},
	{name: "a 500 in HTML", answer: html(500), want: store.OutcomeAgain},
	{name: "a 502 in HTML", answer: html(502), want: store.OutcomeAgain},
	{name: "a 503 in HTML, with Retry-After", answer: after(html(503), "30"), want: store.OutcomeAgain, retryAfter: 30 * time.Second},
	{name: "a 504 in plain text", answer: reply{status: 504, body: "upstream MARK timed out"}, want: store.OutcomeAgain},
	{name: "a 500 that is empty", answer: reply{status: 500}, want: store.OutcomeAgain},
	{name: "a 500 in JSON without an error", answer: reply{status: 500, body: `{"message":"MARK"}`}, want: store.OutcomeAgain},
	{name: "a 500 in JSON with another kind of error", answer: reply{status: 500, body: `{"error":"MARK"}`}, want: store.OutcomeAgain},
	{name: "a 404 in JSON whose error has no type", answer: reply{status: 404, body: `{"error":{"message":"MARK"}}`}, want: store.OutcomeAgain},
	{name: "a 500 of Stripe's", answer: stripeError(500, "api_error", ""), want: store.OutcomeUnknown, code: "api_error"},
	{name: "a 500 of Stripe's that says to retry", answer: with(stripeError(500, "api_error", ""), "Stripe-Should-Retry", "true"), want: store.OutcomeUnknown, code: "api_error"},
	{name: "a 503 of Stripe's", answer: after(stripeError(503, "api_error", ""), "30"), want: store.OutcomeUnknown, code: "api_error"},
	{name: "a 424 of Stripe's", answer: stripeError(424, "api_error", ""), want: store.OutcomeUnknown, code: "api_error"},
	{name: "other parameters under a used key", answer: stripeError(400, "idempotency_error", ""), want: store.OutcomeRefused, code: "idempotency_error"},
	{name: "other parameters under a used key, with a code", answer: stripeError(400, "idempotency_error", "another_word"), want: store.OutcomeRefused, code: "idempotency_error"},
	{name: "a key that Stripe does not accept", answer: stripeError(401, "invalid_request_error", ""), want: store.OutcomeAgain, code: "invalid_request_error"},
	{name: "a key that may not do this", answer: stripeError(403, "invalid_request_error", "more_permissions_required"), want: store.OutcomeAgain, code: "more_permissions_required"},
	{name: "a charge that has been refunded", answer: stripeError(400, "invalid_request_error", "charge_already_refunded"), want: store.OutcomeRefused, code: "charge_already_refunded"},
	{name: "a refusal without a code", answer: stripeError(400, "invalid_request_error", ""), want: store.OutcomeRefused, code: "invalid_request_error"},
	{name: "a payment that does not exist", answer: stripeError(404, "invalid_request_error", "resource_missing"), want: store.OutcomeRefused, code: "resource_missing"},
	{name: "a card that is declined", answer: stripeError(402, "card_error", "card_declined"), want: store.OutcomeRefused, code: "card_declined"},
	{name: "a code that is a sentence", answer: stripeError(400, "invalid_request_error", "MARK was <here>"), want: store.OutcomeRefused, code: "invalid_request_error"},
}

func with(r reply, name, value string) reply {
	h := map[string]string{name: value}
	for n, v := range r.header {
		h[n] = v
	}
	r.header = h
	return r
}

func after(r reply, value string) reply { return with(r, "Retry-After", value) }

func TestEveryAnswerMeansWhatThePolicySays(t *testing.T) {
	for _, tt := range policy {
		t.Run(tt.name, func(t *testing.T) {
			s := newStub(t, always(tt.answer))
			c, log := newClient(t, s.url)
			a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
			if a.Outcome != tt.want || a.Code != tt.code || a.RetryAfter != tt.retryAfter {
				t.Errorf("got %s, code %q, retry after %s, want %s, %q, %s: %s", a.Outcome, a.Code, a.RetryAfter, tt.want, tt.code, tt.retryAfter, a.Error)
			}
			wantStatus := tt.answer.status
			if wantStatus == 0 && !tt.answer.hangUp {
				wantStatus = 200
			}
			if a.Status != wantStatus {
				t.Errorf("got status %d, want %d", a.Status, wantStatus)
			}
			if a.Error == "" || a.Ref != "" || a.Result != nil {
				t.Errorf("a failed call says %+v", a)
			}
			if wantStatus != 0 && a.RequestID != "req_1" {
				t.Errorf("got request id %q", a.RequestID)
			}
			if n := len(s.got()); n != 1 {
				t.Errorf("%d requests went out, want 1: the store alone retries", n)
			}
			checkSecrecy(t, a, log)
		})
	}
}

func TestNothingIsKnownAfterALookUpThatFails(t *testing.T) {
	claims := map[string]store.EffectClaim{
		"of a refund":  lookUp(claimOf(t, "refund.request:R1", refundCall())),
		"of a session": lookUp(claimOf(t, "checkout.open:1", checkoutCall())),
	}
	for _, tt := range policy {
		for which, claim := range claims {
			t.Run(which+": "+tt.name, func(t *testing.T) {
				s := newStub(t, always(tt.answer))
				c, log := newClient(t, s.url)
				a := c.Send(t.Context(), claim)
				if a.Outcome != store.OutcomeAgain || a.RetryAfter != 0 && tt.answer.header["Retry-After"] == "" {
					t.Errorf("got %s %q: %s", a.Outcome, a.Code, a.Error)
				}
				if n := len(s.got()); n != 1 {
					t.Errorf("%d requests went out, want 1", n)
				}
				checkSecrecy(t, a, log)
			})
		}
	}
}

// What cannot be read as a list proves nothing: least of all that something did
// not happen.
func TestAListThatIsNoneDoesNotProveAbsence(t *testing.T) {
	for _, tt := range []struct{ name, body string }{
		{"an empty object", `{}`},
		{"data without the word list", `{"data":[],"has_more":false}`},
		{"a list without data", `{"object":"list","has_more":false}`},
		{"a list whose data is null", `{"object":"list","data":null,"has_more":false}`},
		{"an empty page that promises more", `{"object":"list","data":[],"has_more":true}`},
		{"a page of things without ids", `{"object":"list","data":[{"object":"refund"}],"has_more":true}`},
		{"an array", `[]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, operation := range []string{"refund", "session"} {
				s := newStub(t, always(reply{body: tt.body}))
				c, log := newClient(t, s.url)
				claim := lookUp(claimOf(t, "refund.request:R1", refundCall()))
				if operation == "session" {
					claim = lookUp(claimOf(t, "checkout.open:1", checkoutCall()))
				}
				a := c.Send(t.Context(), claim)
				if a.Outcome != store.OutcomeAgain || len(s.got()) != 1 {
					t.Errorf("%s: got %s after %d requests: %s", operation, a.Outcome, len(s.got()), a.Error)
				}
				checkSecrecy(t, a, log)
			}
		})
	}
}

// roundTrip is a transport of a test's own.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAPanicBecomesAnUnknownOutcomeOfWhatChangesSomething(t *testing.T) {
	for _, tt := range []struct {
		name  string
		claim store.EffectClaim
		want  store.Outcome
	}{
		{"a refund", claimOf(t, "refund.request:R1", refundCall()), store.OutcomeUnknown},
		{"a session", claimOf(t, "checkout.open:1", checkoutCall()), store.OutcomeUnknown},
		{"a look-up", lookUp(claimOf(t, "refund.request:R1", refundCall())), store.OutcomeAgain},
		{"closing an order, which may be done again", withSessions(claimOf(t, "order.cancel:1", store.CancelCall{}), "cs_1"), store.OutcomeAgain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, log := newClient(t, "", func(cfg *stripeapi.Config) {
				cfg.Transport = roundTrip(func(*http.Request) (*http.Response, error) { panic("MARK") })
			})
			a := c.Send(t.Context(), tt.claim)
			if a.Outcome != tt.want || a.Error == "" {
				t.Errorf("got %s: %s", a.Outcome, a.Error)
			}
			if !strings.Contains(log.String(), "panicked") {
				t.Errorf("the log says %s", log)
			}
			if strings.Contains(log.String(), "MARK") {
				t.Errorf("the log has the text of the panic: %s", log)
			}
			log.Reset() // the stack has paths and @
			checkSecrecy(t, a, log)
		})
	}
}

func TestACallEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := newClient(t, "", func(cfg *stripeapi.Config) {
			cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
		})
		begin := time.Now()
		a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
		if a.Outcome != store.OutcomeAgain || time.Since(begin) != 20*time.Second {
			t.Errorf("got %s after %s: %s", a.Outcome, time.Since(begin), a.Error)
		}
		if !strings.Contains(a.Error, "no answer in time") {
			t.Errorf("the error says %q", a.Error)
		}
		checkSecrecy(t, a, log)
		begin = time.Now()
		if _, err := c.RetrieveRefund(t.Context(), "", "re_1"); err == nil || time.Since(begin) != 20*time.Second {
			t.Errorf("a reading beside Send got %v after %s", err, time.Since(begin))
		}
	})
}

func TestABodyThatNeverEndsEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := newClient(t, "", func(cfg *stripeapi.Config) {
			cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: untilDone{r.Context()}}, nil
			})
		})
		a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
		if a.Outcome != store.OutcomeAgain || a.Status != 200 {
			t.Errorf("got %s, status %d: %s", a.Outcome, a.Status, a.Error)
		}
		checkSecrecy(t, a, log)
	})
}

type untilDone struct{ ctx context.Context }

func (b untilDone) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, b.ctx.Err() }
func (untilDone) Close() error               { return nil }

func TestAnAnswerThatIsTooLargeIsNotKeptInMemory(t *testing.T) {
	read := 0
	c, log := newClient(t, "", func(cfg *stripeapi.Config) {
		cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: io.NopCloser(endless{&read})}, nil
		})
	})
	a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
	if a.Outcome != store.OutcomeAgain || read > 32<<20 {
		t.Errorf("got %s after %d bytes: %s", a.Outcome, read, a.Error)
	}
	checkSecrecy(t, a, log)
}

type endless struct{ read *int }

func (e endless) Read(p []byte) (int, error) { *e.read += len(p); return len(p), nil }

func TestACallThatIsCutOffMayBeMadeAgain(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := newStub(t, func(int, got) reply {
		close(arrived)
		<-release
		return reply{body: refundBody("re_1", "succeeded")}
	})
	defer close(release)
	c, log := newClient(t, s.url)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	a := c.Send(ctx, claimOf(t, "refund.request:R1", refundCall()))
	if a.Outcome != store.OutcomeAgain || !strings.Contains(a.Error, "cut off") {
		t.Errorf("got %s: %s", a.Outcome, a.Error)
	}
	checkSecrecy(t, a, log)
}

func TestNoWordOfANetworkErrorIsPassedOn(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"an error of any kind", errors.New("Get https://MARK?email=MARK@example.com failed")},
		{"an end in the middle", io.ErrUnexpectedEOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, log := newClient(t, "", func(cfg *stripeapi.Config) {
				cfg.Transport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, tt.err })
			})
			a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
			if a.Outcome != store.OutcomeAgain || a.Error == "" || a.Status != 0 {
				t.Errorf("got %+v", a)
			}
			checkSecrecy(t, a, log)
		})
	}
}

func TestAFailedCallIsLoggedByItsWordsAlone(t *testing.T) {
	s := newStub(t, always(stripeError(400, "invalid_request_error", "charge_disputed")))
	c, log := newClient(t, s.url)
	a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
	for _, want := range []string{"type=invalid_request_error", "code=charge_disputed", "status=400", "request_id=req_1"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log)
		}
	}
	if want := `{"error":{"type":"invalid_request_error","code":"charge_disputed","param":"amount"}}`; string(a.Body) != want {
		t.Errorf("the body is %s, want %s", a.Body, want)
	}
	checkSecrecy(t, a, log)
	checkSecrecy(t, c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall())), bytes.NewBuffer(nil))
}
