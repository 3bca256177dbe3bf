package stripefake

import (
	"context"
	"sync"
	"time"
)

// ServerConfig is what a Server is like.
type ServerConfig struct {
	Account *Account // nil is a new one, of Config
	Config  Config

	// Now moves the account's clock at every call and delivery, never back.
	// nil leaves it to [Account.Advance] alone.
	Now func() time.Time
	// Key is the API key that is accepted; "" accepts any.
	Key string
	// PendingRefunds: refunds made through the API start pending, those of
	// cards too, and [Account.RefundSucceeds] or RefundFails ends them. Those
	// of bank debits always do.
	PendingRefunds bool

	// WebhookURL and WebhookSecret make the first webhook endpoint; "" is
	// none. [Server.SetWebhook] sets it later.
	WebhookURL, WebhookSecret string
	Delivery                  DeliveryConfig
}

// Server is Stripe over HTTP: the API, the page on which a buyer pays, and the
// webhook deliveries. It is safe for concurrent use; it has no other state than
// its Account, the idempotency keys, the endpoints and their deliveries.
type Server struct {
	cfg     ServerConfig
	closing context.Context // of what waits in calls
	close   context.CancelFunc

	mu       sync.Mutex // over everything below, and the account
	account  *Account
	ticked   int64 // the clock at the last look for what has run out
	keys     keyring
	requests int
	events   map[string]int // an event's place in account.events
	noticed  int            // how many of account.events have been handed to deliveries

	fault    func(FaultRequest) Fault
	queued   map[string][]Fault
	calls    int
	attempts map[string]int

	endpoints []*endpoint
	post      post
}

// NewServer makes a server that serves at once, as an http.Handler; deliveries
// begin with [Server.Start].
func NewServer(cfg ServerConfig) *Server {
	if cfg.Account == nil {
		if cfg.Config.Start == 0 && cfg.Now != nil {
			cfg.Config.Start = cfg.Now().Unix()
		}
		cfg.Account = New(cfg.Config)
	}
	s := &Server{
		cfg: cfg, account: cfg.Account, keys: keyring{}, events: map[string]int{}, noticed: len(cfg.Account.events),
		queued: map[string][]Fault{}, attempts: map[string]int{},
	}
	for i, e := range s.account.events {
		s.events[e.ID] = i
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.post.init(&s.mu, cfg.Delivery)
	if cfg.WebhookURL != "" {
		s.SetWebhook(cfg.WebhookURL, cfg.WebhookSecret)
	}
	return s
}

// Do gives f the account, for everything that people and banks do: it holds the
// server's lock, so f must not call the server. The events that f causes are
// delivered. f's error is returned as it is.
func (s *Server) Do(f func(a *Account) error) error { return s.with(request{}, f) }

// with is every use of the account: the clock first, the deliveries after.
func (s *Server) with(req request, f func(a *Account) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	s.account.request = req
	defer func() {
		s.account.request = request{}
		s.tick() // f may have moved the clock
		s.notice()
	}()
	return f(s.account)
}

// tick brings the clock up to Now, and ends what has run out by then. It is
// called outside requests: what time does is nobody's call.
func (s *Server) tick() {
	a := s.account
	if s.cfg.Now != nil {
		a.Advance(s.cfg.Now().Unix() - a.now)
	}
	if a.now == s.ticked {
		return
	}
	s.ticked = a.now
	a.ExpireDue()
	s.keys.prune(a.now)
}

// notice hands the events that are new to deliveries.
func (s *Server) notice() {
	for ; s.noticed < len(s.account.events); s.noticed++ {
		e := s.account.events[s.noticed]
		s.events[e.ID] = s.noticed
		s.deliver(e)
	}
}

// clock is the account's time.
func (s *Server) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	s.notice()
	return time.Unix(s.account.now, 0)
}
