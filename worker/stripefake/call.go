package stripefake

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// call is one request of the API.
type call struct {
	server            *Server
	method, path, id  string // id is what stands for {id} in the path
	base              string // where the caller reached the server
	key, account      string
	requestID         string
	form              form
	authorized, plain bool // plain: the body is a form, or there is none
}

// maxRequest is the largest body of a request, in bytes.
const maxRequest = 1 << 20

// ServeHTTP answers the API and the buyer's page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	if id, found := strings.CutPrefix(r.URL.Path, payPath); found {
		s.serveBuyer(w, r, id)
		return
	}
	c := s.newCall(r)
	out, cut := s.answer(r.Context(), c)
	if cut {
		hangUp(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Request-Id", c.requestID)
	h.Set("Stripe-Version", s.account.cfg.APIVersion)
	h.Set("Date", s.clock().UTC().Format(http.TimeFormat))
	if c.key != "" {
		h.Set("Idempotency-Key", c.key)
	}
	if c.account != "" {
		h.Set("Stripe-Account", c.account)
	}
	for name, value := range out.header {
		h.Set(name, value)
	}
	h.Set("Content-Length", strconv.Itoa(len(out.body)))
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body) // a caller that left is none of Stripe's business
}

func (s *Server) newCall(r *http.Request) *call {
	s.mu.Lock()
	s.requests++
	n := s.requests
	s.mu.Unlock()
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	c := &call{
		server: s, method: r.Method, path: r.URL.Path, base: scheme + r.Host,
		account: r.Header.Get("Stripe-Account"), requestID: "req_call" + strconv.Itoa(n) + "x" + strconv.FormatUint(s.account.cfg.Seed, 10),
		authorized: s.accepts(r),
	}
	if r.Method == http.MethodPost {
		c.key = r.Header.Get("Idempotency-Key")
	}
	c.plain = r.ParseForm() == nil && (r.ContentLength == 0 || strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"))
	c.form.values = r.Form
	return c
}

// accepts reports whether the request has the API key: as a bearer, or as the
// user of basic authentication.
func (s *Server) accepts(r *http.Request) bool {
	key, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		key, _, _ = r.BasicAuth()
	}
	return key != "" && key == cmp.Or(s.cfg.Key, key)
}

// errGone says that the caller left, or the server closes, while a call waited.
var errGone = errors.New("the caller is gone")

// answer carries a call out. cut says that the connection ends without an
// answer.
func (s *Server) answer(ctx context.Context, c *call) (out reply, cut bool) {
	op, fail := s.admit(c)
	if fail != nil {
		return fail.reply(c.requestID), false
	}
	f := s.faultOf(op.name(), c)
	switch f.Kind {
	case ClosedBefore:
		return reply{}, true
	case GatewayBefore:
		return badGateway(), s.wait(ctx, f, f.WaitAfter) != nil
	case TooManyRequests:
		return tooMany(f).reply(c.requestID), s.wait(ctx, f, f.WaitAfter) != nil
	case Answered:
		return reply{status: f.Status, header: map[string]string{"Content-Type": f.ContentType}, body: []byte(f.Body)}, s.wait(ctx, f, f.WaitAfter) != nil
	}
	out, err := s.execute(ctx, c, op, f)
	if err != nil || s.wait(ctx, f, f.WaitAfter) != nil {
		return reply{}, true
	}
	switch f.Kind {
	case ClosedAfter:
		return reply{}, true
	case GatewayAfter:
		return badGateway(), false
	case BrokenAfter:
		out.body = out.body[:len(out.body)/2]
	}
	return out, false
}

// wait holds a call until the channel is closed; a nil one does not hold it.
func (s *Server) wait(ctx context.Context, f Fault, until <-chan struct{}) error {
	if until == nil {
		return nil
	}
	if f.OnWait != nil {
		f.OnWait()
	}
	select {
	case <-until:
		return nil
	case <-ctx.Done():
	case <-s.closing.Done():
	}
	return errGone
}

// execute is a call behind all that can hold it off: its key, its parameters,
// its work.
func (s *Server) execute(ctx context.Context, c *call, op operation, f Fault) (reply, error) {
	if c.key != "" {
		stored, fail := s.takeKey(c)
		switch {
		case fail != nil:
			return fail.reply(c.requestID), nil
		case stored != nil:
			return *stored, nil
		}
	}
	c.form.checkNames(op.params)
	work := op.prepare(c)
	if c.form.wrong != nil {
		s.dropKey(c)
		return c.form.wrong.reply(c.requestID), nil
	}
	if err := s.wait(ctx, f, f.WaitBefore); err != nil {
		s.dropKey(c)
		return reply{}, err
	}
	var out reply
	_ = s.with(request{c.requestID, c.key}, func(a *Account) error {
		out = s.work(a, c, work, f)
		if c.key != "" {
			s.keys.keep(c.key, out)
		}
		return nil
	})
	return out, nil
}

// work does what a call asks for, and says so. It is called with the lock.
func (s *Server) work(a *Account, c *call, work work, f Fault) reply {
	if f.Kind == ErrorBefore {
		return internalError().reply(c.requestID)
	}
	o, err := work(a)
	switch {
	case err != nil:
		return asAPIError(err).reply(c.requestID)
	case f.Kind == ErrorAfter:
		return internalError().reply(c.requestID)
	}
	return reply{status: http.StatusOK, body: mustMarshal(o)}
}

func (s *Server) takeKey(c *call) (*reply, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick()
	s.notice()
	old, fail := s.keys.take(c, s.account.now)
	if old == nil {
		return nil, fail
	}
	r := old.reply
	r.header = map[string]string{"Idempotent-Replayed": "true", "Original-Request": old.requestID}
	return &r, nil
}

func (s *Server) dropKey(c *call) {
	if c.key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys.drop(c.key)
}

// hangUp ends the connection inside an answer. A byte has gone out by then:
// net/http would repeat a request with an Idempotency-Key by itself if a
// connection that it had used before closed without one, and one fault is to be
// one failed call for whoever makes it.
func hangUp(w http.ResponseWriter) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = buf.WriteString("HTTP/1.1 200")
	_ = buf.Flush()
	_ = conn.Close()
}
