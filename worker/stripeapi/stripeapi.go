// Package stripeapi makes paidonce's calls to Stripe: refunds, Checkout
// Sessions, and the closing of an order that nobody is to pay any more.
//
// It owns how a call goes out and what its answer means. One function judges
// every answer, by the policy of the outbox: an Outcome never says more than is
// known. Done is said only on Stripe's own word, with the object in the answer;
// Again where nothing happened, or where the same key with the same parameters
// may go out again; Unknown where only a look-up can tell; Refused where it did
// not happen and will not. What makes that safe is the idempotency key: every
// call that changes something carries one that was on disk before the call, or,
// where the call is harmless a second time (an expiry, a cancellation), one
// that is made of it.
//
// It never retries: what happens next is the store's decision. It never follows
// a redirect, never takes a proxy from the environment, and never sends the
// machine's name. No text of an Answer, an error or a log line holds the key, an
// address, or what Stripe's messages say, since those quote customers.
package stripeapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v82"
	"golang.org/x/time/rate"

	"paidonce/store"
)

// What a Config leaves out.
const (
	defaultRate = 20
	rateBurst   = 5
)

// Config is what main decides for the calls to Stripe.
type Config struct {
	// Key is the secret or restricted API key. That it is one of this
	// environment is main's check.
	Key Key
	// Base is where Stripe is; "" is https://api.stripe.com. Anything else is
	// accepted on loopback only.
	Base string
	// Transport is for tests; nil is a transport of this client's own.
	Transport http.RoundTripper
	// Now is the clock, for a date in Retry-After.
	Now func() time.Time
	// Timeout is for one call, and for the whole of Send; 0 is
	// store.EffectTimeout of kind stripe.
	Timeout time.Duration
	// Rate is how many requests go out in a second at most; 0 is 20. Stripe
	// allows a test account 25.
	Rate float64
	// Log hears of failed calls: type, code, status and request id, nothing
	// else. nil is silence.
	Log *slog.Logger
}

// Client calls Stripe. It is safe for concurrent use.
type Client struct {
	api     *stripe.Client
	raw     stripe.Backend // for what is read byte for byte
	key     Key
	now     func() time.Time
	timeout time.Duration
	log     *slog.Logger
}

// New returns a client that has called nobody yet. Its errors hold no part of
// the key or the base.
func New(cfg Config) (*Client, error) {
	base, err := checkBase(cfg.Base)
	if err != nil {
		return nil, fmt.Errorf("stripe: %w", err)
	}
	switch {
	case cfg.Key.reveal == nil:
		return nil, errors.New("stripe: the key is not set")
	case cfg.Now == nil:
		return nil, errors.New("stripe: Now is not set")
	case !(cfg.Rate >= 0): // NaN too
		return nil, errors.New("stripe: the rate is below 0")
	case cfg.Timeout < 0:
		return nil, errors.New("stripe: the timeout is below 0")
	}
	if cfg.Rate == 0 {
		cfg.Rate = defaultRate
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = store.EffectTimeout(store.KindStripe)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport()
	}
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL: stripe.String(base),
		HTTPClient: &http.Client{
			Transport:     &wire{next: cfg.Transport, limit: rate.NewLimiter(rate.Limit(cfg.Rate), rateBurst)},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		// The library's retries skip what should be retried, retry what should
		// not, and sleep through the end of a context.
		MaxNetworkRetries: stripe.Int64(0),
		EnableTelemetry:   stripe.Bool(false),
		// Its logger prints whole error objects, with customers in them; nil
		// would be its default one.
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return &Client{
		api: stripe.NewClient(cfg.Key.reveal(), stripe.WithBackends(backends)),
		raw: backends.API, key: cfg.Key,
		now: cfg.Now, timeout: cfg.Timeout, log: cfg.Log,
	}, nil
}
