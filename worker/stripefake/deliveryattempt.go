package stripefake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// carry makes one attempt after the other.
func (s *Server) carry(ctx context.Context) {
	for {
		d, req := s.nextAttempt(ctx)
		if d == nil {
			return
		}
		status, err := s.attempt(req)
		s.settle(d, status, err)
	}
}

// nextAttempt waits for a delivery that is due; nil is the end.
func (s *Server) nextAttempt(ctx context.Context) (*delivery, *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.post
	for {
		for len(p.due) == 0 && ctx.Err() == nil {
			p.changed.Wait()
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		at := 0
		if p.rng != nil {
			at = p.rng.IntN(len(p.due))
		}
		d := p.due[at]
		p.due = slices.Delete(p.due, at, at+1)
		end := s.endpoint(d.Endpoint)
		if end == nil || end.disabled { // Stripe does not try such a one again either
			p.changed.Broadcast()
			continue
		}
		s.tick()
		s.notice()
		body := d.Event.Body(p.pending(d.Event.ID))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, end.url, bytes.NewReader(body))
		if err != nil {
			panic(err) // every URL was looked at when its endpoint got it
		}
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		req.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
		req.Header.Set("Stripe-Signature", sign(body, s.account.now, s.account.cfg.Livemode, end.secrets...))
		d.attempts++
		p.flying++
		return d, req
	}
}

// attempt sends one delivery, and returns the status of the answer.
func (s *Server) attempt(req *http.Request) (int, error) {
	resp, err := s.post.cfg.Client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the URL may have a query
		}
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, err
}

// maxErrText is how much of foreign error text is kept, in bytes.
const maxErrText = 200

// settle is the end of an attempt.
func (s *Server) settle(d *delivery, status int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.post
	p.flying--
	p.attempts++
	s.tick()
	s.notice()
	r := d.record(s.account.now)
	r.Status = status
	if err == nil && d.fault.LoseAnswer && d.attempts == 1 {
		r.Status, err = 0, errors.New("the answer was lost")
	}
	if err != nil {
		r.Err = err.Error()[:min(len(err.Error()), maxErrText)]
	}
	r.Acked = err == nil && status >= 200 && status < 300
	p.log = append(p.log, r)
	switch {
	case r.Acked:
		p.acknowledged(d)
	case p.cfg.MaxAttempts > 0 && d.attempts >= p.cfg.MaxAttempts:
		p.failed = append(p.failed, d)
	default:
		s.tryAgain(d)
	}
	p.late = slices.DeleteFunc(p.late, func(late *delivery) bool {
		if late.due > p.attempts {
			return false
		}
		p.due = append(p.due, late)
		return true
	})
	p.changed.Broadcast()
}

func (p *post) acknowledged(d *delivery) {
	if open := p.open[d.Event.ID]; open != nil {
		if delete(open, d.Endpoint); len(open) == 0 {
			delete(p.open, d.Event.ID)
		}
	}
	p.failed = slices.DeleteFunc(p.failed, func(f *delivery) bool { return f.Event.ID == d.Event.ID && f.Endpoint == d.Endpoint })
}

// tryAgain lets a delivery wait for its next attempt.
func (s *Server) tryAgain(d *delivery) {
	p := &s.post
	p.waiting[d] = true
	d.timer = time.AfterFunc(p.cfg.Backoff(d.attempts), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.ready(d)
	})
}

// ready ends the waiting of a delivery, unless something else has.
func (p *post) ready(d *delivery) {
	if p.waiting[d] {
		d.timer.Stop()
		delete(p.waiting, d)
		p.due = append(p.due, d)
		p.changed.Broadcast()
	}
}
