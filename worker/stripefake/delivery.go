package stripefake

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// DeliveryConfig is how webhooks are delivered.
type DeliveryConfig struct {
	// Concurrency is how many deliveries are under way at once; 0 is 1, which
	// delivers in order but for retries and faults.
	Concurrency int
	// Backoff is how long a delivery waits after its nth failed attempt; nil is
	// 100 ms, doubling to 5 s. [Server.RetryNow] ends all waiting.
	Backoff func(attempt int) time.Duration
	// MaxAttempts ends a delivery as failed; 0 never does.
	MaxAttempts int
	// Shuffle, a seed other than 0, takes the deliveries that are due in a
	// random sequence.
	Shuffle uint64
	// Fault decides about each delivery when its event comes about; nil is no
	// faults. It runs with the server's lock: it must not call the server.
	Fault func(DeliveryRequest) DeliveryFault
	// Client sends; nil is one with a timeout of 10 s, no proxy and no redirects.
	Client *http.Client
}

// delivery is an event on its way to an endpoint.
type delivery struct {
	DeliveryRequest
	fault    DeliveryFault
	copy     int
	attempts int
	due      int         // late ones: at this many attempts of all
	timer    *time.Timer // while it waits to be tried again
}

// post is all deliveries. The server's lock is over it.
type post struct {
	cfg     DeliveryConfig
	changed *sync.Cond
	rng     *rand.Rand

	due, late, held []*delivery
	waiting         map[*delivery]bool // for their next attempt
	failed          []*delivery        // given up
	flying          int
	attempts        int // of all
	number          int
	open            map[string]map[string]bool // event → endpoints that have not acknowledged it
	log             []DeliveryRecord

	running, closed bool
	stop            context.CancelFunc
	done            sync.WaitGroup
}

func (p *post) init(mu *sync.Mutex, cfg DeliveryConfig) {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 1
	}
	if cfg.Backoff == nil {
		cfg.Backoff = func(attempt int) time.Duration {
			return min(5*time.Second, 100*time.Millisecond<<min(attempt-1, 10))
		}
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{
			Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: cfg.Concurrency},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	p.cfg, p.changed = cfg, sync.NewCond(mu)
	p.waiting, p.open = map[*delivery]bool{}, map[string]map[string]bool{}
	if cfg.Shuffle != 0 {
		p.rng = rand.New(rand.NewPCG(cfg.Shuffle, 0x5fff1e))
	}
}

// pending is how many endpoints have not acknowledged an event.
func (p *post) pending(event string) int { return len(p.open[event]) }

// forget ends what an endpoint that is gone has not acknowledged.
func (p *post) forget(endpoint string) {
	for event, open := range p.open {
		if delete(open, endpoint); len(open) == 0 {
			delete(p.open, event)
		}
	}
	gone := func(d *delivery) bool { return d.Endpoint == endpoint }
	p.due, p.late = slices.DeleteFunc(p.due, gone), slices.DeleteFunc(p.late, gone)
	p.held, p.failed = slices.DeleteFunc(p.held, gone), slices.DeleteFunc(p.failed, gone)
	for d := range p.waiting {
		if gone(d) {
			d.timer.Stop()
			delete(p.waiting, d)
		}
	}
	p.changed.Broadcast()
}

// deliver sends an event on its way to every endpoint that wants it.
func (s *Server) deliver(e Event) {
	p := &s.post
	for _, end := range s.endpoints {
		if !end.wants(e.Type) {
			continue
		}
		p.number++
		d := delivery{DeliveryRequest: DeliveryRequest{e, end.id, p.number}}
		if p.cfg.Fault != nil {
			d.fault = p.cfg.Fault(d.DeliveryRequest)
		}
		if p.open[e.ID] == nil {
			p.open[e.ID] = map[string]bool{}
		}
		p.open[e.ID][end.id] = true
		if d.fault.Drop {
			p.log = append(p.log, d.record(s.account.now))
			continue
		}
		for d.copy = range 1 + max(d.fault.Copies, 0) {
			p.dispatch(new(d))
		}
	}
	p.changed.Broadcast()
}

func (p *post) dispatch(d *delivery) {
	switch {
	case d.fault.Hold:
		p.held = append(p.held, d)
	case d.fault.Late > 0:
		d.due = p.attempts + d.fault.Late
		p.late = append(p.late, d)
	default:
		p.due = append(p.due, d)
	}
}
