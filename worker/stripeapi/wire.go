package stripeapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

// maxAnswer is the largest answer that is read, in bytes: a page of a hundred
// sessions is far below it.
const maxAnswer = 8 << 20

var (
	errHeldBack = errors.New("held back by the limit on requests")
	errTooLarge = errors.New("the answer is too large")
)

// exchange is one request and what came back, as it was on the wire. The
// library tells neither status nor headers of an answer that it cannot read.
type exchange struct {
	sent   bool
	status int // 0: no answer
	header http.Header
	body   []byte // whole, or nil
	err    error  // why there is no whole answer
}

type exchangeKey struct{}

// wire is the way out of every request: it waits for its turn, makes exactly
// one request of it, and writes down what came back.
type wire struct {
	next  http.RoundTripper
	limit *rate.Limiter
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		x = &exchange{}
	}
	resp, err := w.roundTrip(req, x)
	x.err = err
	return resp, err
}

func (w *wire) roundTrip(req *http.Request, x *exchange) (*http.Response, error) {
	ctx := req.Context()
	if err := w.limit.Wait(ctx); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errHeldBack // its turn would come after its time
	}
	req = req.Clone(ctx)
	// With it net/http would repeat a request that has an Idempotency-Key.
	req.GetBody = nil
	// The output of uname, with this machine's name.
	req.Header.Del("X-Stripe-Client-User-Agent")
	x.sent = true
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	x.status, x.header = resp.StatusCode, resp.Header
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errTooLarge
	}
	if err != nil {
		return nil, err
	}
	x.body = body
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// newTransport is for calls to one host. No proxy is taken from the
// environment: who could set one could read the key's traffic.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    4,
		MaxConnsPerHost:        16,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// withExchange is a context by which wire finds x.
func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}
