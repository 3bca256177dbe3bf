// Package handler is the HTTP side of paidonce: the public listener, where
// senders post webhooks, and the admin listener, where the shop and its
// operator read and act. It owns signatures, answers and limits; it owns no
// state that must survive, and decides nothing about money.
//
// The rules that make it safe:
//
//   - The body is verified as the bytes that came, before anything reads them.
//     What is not signed leaves no row, only a count and a line in the log.
//   - A signed body is answered 200 after [Inbox.AddEvent] has returned nil,
//     which is after the COMMIT, and 503 whenever that is not known. It is
//     never answered 400: what cannot be used is kept, for a person to see.
//   - A handler writes nothing to the response by itself. It returns an answer
//     or an error, and one function turns the error into what the caller may
//     see and what the log must say. So no half-written answer exists, and no
//     internal text leaves the process.
//   - No secret and no body is ever logged or shown.
package handler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"paidonce/store"
)

// Inbox is what the public listener needs of the store.
type Inbox interface {
	// AddEvent returns nil when the event, or its repeat, is on disk.
	AddEvent(ctx context.Context, e store.NewEvent) (store.Added, error)
	// ObserveAck notes how long the answer to a stored webhook took.
	ObserveAck(d time.Duration)
	// Ready says whether a write reaches the disk.
	Ready(ctx context.Context) error
}

// Orders is what the admin API does with orders.
type Orders interface {
	RegisterOrder(ctx context.Context, n store.NewOrder) (o store.Order, created bool, err error)
	EditOrder(ctx context.Context, tenant, id string, change store.NewOrder) (store.Order, error)
	LinkOrder(ctx context.Context, tenant, id, object string) (store.Order, error)
	AcceptPayment(ctx context.Context, tenant, id, object string) (store.Order, error)
	AckAttention(ctx context.Context, tenant, id, word, note string) (store.Order, error)
	FulfilOrder(ctx context.Context, tenant, id string) (store.Order, error)
	ForgetOrder(ctx context.Context, tenant, id string) (store.Order, error)
	FindOrder(ctx context.Context, tenant, id string) (store.OrderDetail, error)
	ListOrders(ctx context.Context, f store.OrderFilter) (store.Page[store.Order], error)
}

// Effects is what the admin API does with effects, and with what only Stripe can
// do, which is one.
type Effects interface {
	FindEffect(ctx context.Context, id string) (store.EffectDetail, error)
	ListEffects(ctx context.Context, f store.EffectFilter) (store.Page[store.Effect], error)
	RetryEffect(ctx context.Context, id string) (store.EffectDetail, error)
	ResolveEffect(ctx context.Context, id, outcome, note string) (store.EffectDetail, error)
	// AwaitEffect returns an effect once it has come to an end or waits for a
	// person, or as it stands when ctx is done.
	AwaitEffect(ctx context.Context, id string) (store.EffectDetail, error)
	RequestRefund(ctx context.Context, tenant, id string, r store.RefundRequest) (store.Effect, error)
	RequestCheckout(ctx context.Context, tenant, id string, urls *store.Checkout) (store.Effect, error)
	// RequestCancel returns no effect when Stripe need not be asked.
	RequestCancel(ctx context.Context, tenant, id string) (store.Order, *store.Effect, error)
}

// Events is what the admin API does with events.
type Events interface {
	FindEvent(ctx context.Context, scope, id string) (store.Event, error)
	ListEvents(ctx context.Context, f store.EventFilter) (store.Page[store.Event], error)
	RequeueEvent(ctx context.Context, scope, id string) (store.Event, error)
	DismissEvent(ctx context.Context, scope, id, note string) (store.Event, error)
	Stats(ctx context.Context) (store.Stats, error)
}

// Store is all of them; *store.Store is one.
type Store interface {
	Inbox
	Orders
	Effects
	Reconciliation
	Events
}

// Config is what main decides for the handler. All of it must be set.
type Config struct {
	Store   Store
	Sources []Source
	Wake    func() // called after a commit that left work to do; must not block
	Now     func() time.Time
	Log     *slog.Logger
	Token   Secret // of the admin listener, from NewToken or LoadToken
}

// Handler answers both listeners. Its methods may be called from any goroutine.
type Handler struct {
	store   Store
	sources map[string]*configured
	wake    func()
	now     func() time.Time
	log     *slog.Logger
	token   [32]byte // SHA-256 of the admin token
	bodies  *gate
	rejects *rejects
	quiet   *quiet
	routes  []route
	serving context.Context // done when draining begins
	drain   context.CancelFunc
}

// New checks cfg and returns a Handler. The error joins everything that is
// wrong; it names sources and holds no secret.
func New(cfg Config) (*Handler, error) {
	if cfg.Store == nil || cfg.Wake == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("handler: Store, Wake, Now and Log must be set")
	}
	h := &Handler{
		store: cfg.Store, sources: map[string]*configured{}, wake: cfg.Wake, now: cfg.Now, log: cfg.Log,
		rejects: newRejects(), quiet: newQuiet(cfg.Log),
	}
	h.serving, h.drain = context.WithCancel(background)
	var errs []error
	if cfg.Token.empty() {
		errs = append(errs, errors.New("the admin token is empty"))
	}
	h.token = cfg.Token.sum()
	largest := int64(0)
	for _, s := range cfg.Sources {
		c, err := s.configure()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("source %q: %w", s.Name, err))
		case h.sources[s.Name] != nil:
			errs = append(errs, fmt.Errorf("source %q: there are two of this name", s.Name))
		default:
			h.sources[s.Name] = c
			largest = max(largest, c.maxBody)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	h.bodies = newGate(largest)
	h.routes = h.adminRoutes()
	return h, nil
}

// SetDraining makes the Handler refuse new webhooks and be not ready, for the
// time between the decision to stop and the end of the listeners. What is in
// hand is finished, and who waits for Stripe is told that it is under way.
// There is no way back.
func (h *Handler) SetDraining() { h.drain() }

func (h *Handler) draining() bool { return h.serving.Err() != nil }

// NewServer returns a server for h with bounds on everything a stranger can
// make it wait for. Headers and body of a request must arrive within 30
// seconds; then there are 30 more until the answer must be written, of which
// the store takes at most twice commitWait, and Stripe stripeWait.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		// The clock of WriteTimeout starts with the end of the headers, so it
		// has to hold the slowest body as well.
		WriteTimeout:   60 * time.Second,
		IdleTimeout:    120 * time.Second,
		MaxHeaderBytes: 64 << 10,
		// `OPTIONS *` would be answered past h.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
