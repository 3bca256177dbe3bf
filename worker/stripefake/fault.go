package stripefake

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// FaultKind is a way in which one call of the API goes wrong.
type FaultKind int

const (
	NoFault FaultKind = iota
	// ClosedBefore: the connection ends before the work. Nothing happened.
	ClosedBefore
	// ClosedAfter: the work is done, and the connection ends inside the answer.
	ClosedAfter
	// ErrorBefore: 500 with Stripe's JSON. Nothing happened, and yet the key
	// will answer with this 500 for as long as it lives.
	ErrorBefore
	// ErrorAfter: the same 500, replayed for its key, but the work is done. A
	// call that Stripe refuses has no work, and gets its refusal.
	ErrorAfter
	// GatewayBefore: a proxy's 502 in HTML. Nothing happened.
	GatewayBefore
	// GatewayAfter: the same, but the work is done.
	GatewayAfter
	// TooManyRequests: 429 with Retry-After, decided before idempotency keys.
	TooManyRequests
	// BrokenAfter: the work is done, and the 200 carries half of its JSON.
	BrokenAfter
	// Answered: Fault.Status, Fault.ContentType and Fault.Body as they are,
	// instead of the work. The key is not touched.
	Answered
)

var faultNames = [...]string{
	"none", "closed before", "closed after", "error before", "error after", "gateway before", "gateway after",
	"too many requests", "broken after", "answered",
}

func (k FaultKind) String() string {
	if k < 0 || int(k) >= len(faultNames) {
		return fmt.Sprintf("FaultKind(%d)", int(k))
	}
	return faultNames[k]
}

// Fault is what goes wrong with one call. The zero Fault is none.
type Fault struct {
	Kind FaultKind
	// RetryAfter is TooManyRequests' header, as it is; "" is none.
	RetryAfter string
	// WaitBefore holds the call before the work until it is closed; its key is
	// in use meanwhile. If the caller hangs up or the server closes first,
	// nothing happens.
	WaitBefore <-chan struct{}
	// WaitAfter holds the answer, whatever it is, until it is closed. The work
	// is done and its key answers.
	WaitAfter <-chan struct{}
	// OnWait, if not nil, is called each time the call begins to wait: by then
	// its key is taken, or its work is done.
	OnWait func()

	Status            int    // Answered
	ContentType, Body string // Answered
}

// FaultRequest is the call that a Fault is asked for.
type FaultRequest struct {
	Route   string // "POST /v1/refunds", "GET /v1/refunds/{id}", as in the route table
	Path    string
	Params  url.Values // a copy
	Key     string     // Idempotency-Key; "" is none
	Account string     // Stripe-Account
	Number  int        // of this call among all that reached a route, from 1
	Attempt int        // of this key, from 1; 0 without a key
}

// Fault sets what decides about every call that is authorized and has a route;
// nil is no faults. fault may be called by several calls at once. It runs
// outside the server's lock, and may use the server.
func (s *Server) Fault(fault func(FaultRequest) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// FaultNext queues faults for the next calls of a route ("POST /v1/refunds"),
// one for each, before the function of [Server.Fault] is asked. An unknown route
// panics: a fault that never comes would prove nothing.
func (s *Server) FaultNext(route string, faults ...Fault) {
	if !slices.ContainsFunc(operations(), func(r operation) bool { return r.name() == route }) {
		panic("stripefake: no route " + route)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued[route] = append(s.queued[route], faults...)
}

// FaultsLeft is how many faults of FaultNext have not come yet.
func (s *Server) FaultsLeft() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, list := range s.queued {
		n += len(list)
	}
	return n
}

// RandomFaults gives each call a fault by chance: chances are between 0 and 1
// for each kind, and together at most 1. One seed gives one sequence.
func RandomFaults(seed uint64, chances map[FaultKind]float64) func(FaultRequest) Fault {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0xfa17))
	kinds := slices.Sorted(maps.Keys(chances))
	return func(FaultRequest) Fault {
		mu.Lock()
		defer mu.Unlock()
		at := rng.Float64()
		for _, kind := range kinds {
			if at -= chances[kind]; at < 0 {
				return Fault{Kind: kind}
			}
		}
		return Fault{}
	}
}

// faultOf decides about a call.
func (s *Server) faultOf(route string, c *call) Fault {
	s.mu.Lock()
	s.calls++
	attempt := 0
	if c.key != "" {
		s.attempts[c.key]++
		attempt = s.attempts[c.key]
	}
	req := FaultRequest{
		Route: route, Path: c.path, Params: cloneValues(c.form.values), Key: c.key, Account: c.account, Number: s.calls, Attempt: attempt,
	}
	fault := s.fault
	if list := s.queued[route]; len(list) > 0 {
		s.queued[route] = list[1:]
		s.mu.Unlock()
		return list[0]
	}
	s.mu.Unlock()
	if fault == nil {
		return Fault{}
	}
	return fault(req)
}

func cloneValues(v url.Values) url.Values {
	out := make(url.Values, len(v))
	for name, list := range v {
		out[name] = slices.Clone(list)
	}
	return out
}

func tooMany(f Fault) *apiError {
	e := &apiError{
		status: http.StatusTooManyRequests, kind: kindInvalid, code: "rate_limit",
		message: "Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits.",
		header:  map[string]string{"Stripe-Rate-Limited-Reason": "global-rate"},
	}
	if f.RetryAfter != "" {
		e.header["Retry-After"] = f.RetryAfter
	}
	return e
}

// RetryAfter writes a duration as the header does: whole seconds, at least 1.
func RetryAfter(d time.Duration) string {
	return fmt.Sprint(max(1, int64((d+time.Second-1)/time.Second)))
}

func internalError() *apiError {
	return &apiError{
		status: http.StatusInternalServerError, kind: kindAPI,
		message: "An unknown error occurred. Please try again later.",
	}
}

func badGateway() reply {
	return reply{
		status: http.StatusBadGateway, header: map[string]string{"Content-Type": "text/html"},
		body: []byte("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"),
	}
}
