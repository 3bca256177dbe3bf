package stripefake

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Start delivers webhooks until ctx is done or the server is closed. While it
// runs, or after Close, another Start does nothing.
func (s *Server) Start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.post
	if p.running || p.closed {
		return
	}
	ctx, p.stop = context.WithCancel(ctx)
	p.running = true
	wake := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.changed.Broadcast()
	})
	var carriers sync.WaitGroup
	for range p.cfg.Concurrency {
		carriers.Go(func() { s.carry(ctx) })
	}
	p.done.Go(func() {
		carriers.Wait()
		wake()
		s.mu.Lock()
		defer s.mu.Unlock()
		p.running = false
		p.changed.Broadcast()
	})
}

// Close ends the deliveries and all calls that a fault holds, and waits until
// the deliveries have ended. The API itself goes on answering.
func (s *Server) Close() {
	s.close()
	s.mu.Lock()
	p := &s.post
	p.closed = true
	if p.stop != nil {
		p.stop()
	}
	s.mu.Unlock()
	p.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range p.waiting {
		d.timer.Stop()
	}
	p.cfg.Client.CloseIdleConnections()
}

// RetryNow makes every delivery that waits for its next attempt due, in the
// order of the events.
func (s *Server) RetryNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*delivery
	for d := range s.post.waiting {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *delivery) int {
		if a.Number != b.Number {
			return a.Number - b.Number
		}
		return a.copy - b.copy
	})
	for _, d := range list {
		s.post.ready(d)
	}
}

// ReleaseHeld sends what DeliveryFault.Hold has kept back.
func (s *Server) ReleaseHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.post
	p.due, p.held = append(p.due, p.held...), nil
	p.changed.Broadcast()
}

// Resend sends an event to every endpoint that wants it once more, dropped or
// acknowledged or not, as a person can in the Dashboard.
func (s *Server) Resend(event string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, known := s.events[event]
	if !known {
		return missing("event", event, "id")
	}
	e := s.account.events[i]
	for _, end := range s.endpoints {
		if end.wants(e.Type) {
			s.post.number++
			s.post.due = append(s.post.due, &delivery{DeliveryRequest: DeliveryRequest{e, end.id, s.post.number}})
		}
	}
	s.post.changed.Broadcast()
	return nil
}

// Drain waits until every delivery but those dropped or held has been
// acknowledged. It is an error if one has been given up, if ctx ends first, or
// if nobody delivers.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.post
	wake := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.changed.Broadcast()
	})
	defer wake()
	for {
		left := len(p.due) + len(p.late) + len(p.waiting) + p.flying
		switch {
		case left == 0 && len(p.failed) > 0:
			return fmt.Errorf("drain deliveries: %d given up, the first %s", len(p.failed), p.failed[0].Event)
		case left == 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("drain deliveries: %d left: %w", left, context.Cause(ctx))
		case !p.running:
			return fmt.Errorf("drain deliveries: %d left, and nobody delivers: call Start", left)
		case left == len(p.late):
			p.due, p.late = p.late, nil
			p.changed.Broadcast()
			continue
		}
		p.changed.Wait()
	}
}
