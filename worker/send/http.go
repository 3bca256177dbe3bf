package send

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"paidonce/store"
)

// httpTimeout is how long a call may take, from the name lookup to the last
// byte (design.md §6).
const httpTimeout = 10 * time.Second

// HTTPConfig is what main decides for one target of kind http.
type HTTPConfig struct {
	// URL is http or https, with a host and without a fragment. Userinfo is
	// sent as basic authentication.
	URL string
	// Secret signs each call by Standard Webhooks: whsec_ and the base64 of 24
	// to 64 bytes. "" signs nothing.
	Secret string
	// UserAgent is "paidonce/VERSION"; "" is "paidonce/dev".
	UserAgent string
	// Now is the clock, for webhook-timestamp and dates in Retry-After.
	Now func() time.Time
	// Timeout is for the whole call; 0 is 10 s.
	Timeout time.Duration
	// Transport is for tests; nil is a transport of this sender's own.
	Transport http.RoundTripper
}

// HTTP sends effects to one URL. It is safe for concurrent use.
type HTTP struct {
	target    httpTarget
	signer    *standardwebhooks.Webhook // nil: nothing is signed
	userAgent string
	now       func() time.Time
	timeout   time.Duration
	transport http.RoundTripper
}

// NewHTTP returns a sender for one target. Its errors hold no part of the URL
// or the secret.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	target, err := parseHTTPTarget(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("http effect: %w", err)
	}
	h := &HTTP{target: target, userAgent: cfg.UserAgent, now: cfg.Now, timeout: cfg.Timeout, transport: cfg.Transport}
	if cfg.Secret != "" {
		if h.signer, err = newSigner(cfg.Secret); err != nil {
			return nil, fmt.Errorf("http effect: %w", err)
		}
	}
	if h.now == nil {
		return nil, fmt.Errorf("http effect: %w", errNoClock)
	}
	if h.userAgent == "" {
		h.userAgent = "paidonce/dev"
	}
	if hasControl(h.userAgent) {
		return nil, errors.New("http effect: the user agent holds control characters")
	}
	if h.timeout <= 0 {
		h.timeout = httpTimeout
	}
	if h.transport == nil {
		h.transport = newTransport()
	}
	return h, nil
}

// newTransport is for calls to one host that the operator wrote. No proxy is
// taken from the environment, and nothing is unpacked.
func newTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext,
		Protocols:              &protocols,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    4,
		MaxConnsPerHost:        64,
		IdleConnTimeout:        3 * time.Second, // under the 5 s after which Node closes: a connection closed under a call costs an attempt
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Send posts c.Body, byte for byte, and judges the answer:
//
//   - 2xx is done, whatever its body.
//   - 408, 409, 425, 429, 5xx, and no answer at all: again. The receiver knows
//     the key, so even a call that arrived may go out again.
//   - 410 is refused for good, Code "gone". So is a redirect, which is never
//     followed: only the operator can mend the url. So is every other status.
//
// webhook-id and Idempotency-Key are c.Key, the same on every attempt;
// webhook-timestamp and webhook-signature are of this attempt.
func (h *HTTP) Send(ctx context.Context, c store.EffectClaim) store.Answer {
	call, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	req, err := h.request(call, c)
	if err != nil {
		return failed(store.OutcomeRefused, err.Error())
	}
	// The transport alone, without http.Client: that one follows redirects, and
	// fails on a Location that it cannot read although there is an answer.
	resp, err := h.transport.RoundTrip(req)
	if err != nil {
		return failed(store.OutcomeAgain, h.target.place+": "+netFailure(ctx, h.timeout, err))
	}
	defer resp.Body.Close()
	a := h.judge(resp)
	a.Body = readAnswer(resp.Body)
	return a
}

func (h *HTTP) request(ctx context.Context, c store.EffectClaim) (*http.Request, error) {
	if c.Key == "" || hasControl(c.Key) {
		return nil, errors.New("the key of the effect cannot be sent as a header")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.target.url, bytes.NewReader(c.Body))
	if err != nil {
		return nil, errors.New("the request cannot be made")
	}
	// Without it the transport would repeat a call by itself, since there is an
	// Idempotency-Key.
	req.GetBody = nil
	if user := h.target.user; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	at := h.now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", h.userAgent)
	req.Header.Set("Idempotency-Key", c.Key)
	req.Header.Set(standardwebhooks.HeaderWebhookID, c.Key)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	if h.signer != nil {
		signature, err := h.signer.Sign(c.Key, at, c.Body)
		if err != nil {
			return nil, errors.New("the call cannot be signed")
		}
		req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	}
	return req, nil
}

func (h *HTTP) judge(resp *http.Response) store.Answer {
	status := resp.StatusCode
	a := store.Answer{Outcome: store.OutcomeRefused, Status: status}
	said := fmt.Sprintf("%s answered %d", h.target.place, status)
	if text := http.StatusText(status); text != "" {
		said += " " + text
	}
	switch {
	case status >= 200 && status < 300:
		a.Outcome, said = store.OutcomeDone, ""
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status >= 500 && status < 600:
		a.Outcome = store.OutcomeAgain
		a.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), h.now())
	case status == http.StatusGone:
		a.Code = "gone"
		said += ": nothing more is sent"
	case status >= 300 && status < 400:
		said += ": redirects are not followed, set the url to where it leads"
	}
	a.Error = cutText(said)
	return a
}

// readAnswer keeps the beginning of an answer, and reads a little more so that
// the connection can serve the next call. What cannot be read is left out: the
// status has been said already.
func readAnswer(body io.Reader) []byte {
	kept, err := io.ReadAll(io.LimitReader(body, store.MaxAnswerBody))
	if err == nil {
		_, _ = io.CopyN(io.Discard, body, 16<<10)
	}
	return kept
}
