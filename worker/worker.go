// Package worker works on what the inbox holds: it claims events by lease,
// decodes them, and hands them to the store, which merges, derives and writes
// each in one transaction. It owns the loops and their ends; it decides
// nothing about money and writes nothing by itself.
//
// The rule that makes it safe: a claim is a number, and every finish asks for
// it back (store.ErrLeaseLost). So a worker that hangs, is cut off or comes
// back late changes nothing (promise P6), and a crash at any point leaves an
// event either done with all its consequences or pending with none.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
)

// Inbox is what the worker needs of the store.
type Inbox interface {
	ClaimEvents(ctx context.Context, limit int) ([]store.Claim, error)
	ClaimSuspect(ctx context.Context) ([]store.Claim, error)
	ApplyEvents(ctx context.Context, events []store.Decoded) []error
	RetryEvent(ctx context.Context, c store.Claim, cause error, counted bool) error
	FlushTimings(ctx context.Context) error
}

// Config is what main decides for the worker.
type Config struct {
	Inbox Inbox
	Log   *slog.Logger
	// Batch is how many events one claim takes; 0 is 64 (speed.md).
	Batch int
	// Loops is how many batches are in hand at once; 0 is 2: one decodes
	// while the other one's events are written.
	Loops int
	// Poll is how often the inbox is looked at without being woken, for rows
	// that come due and for what commands put in; 0 is one second.
	Poll time.Duration
}

// Worker works on the inbox until it is told to stop.
type Worker struct {
	cfg  Config
	wake chan struct{}
	// alone is held for reading by a batch, and for writing by one event that
	// was in hand when an earlier process died: nothing else is in hand then.
	alone sync.RWMutex
}

// New returns a Worker that has not begun.
func New(cfg Config) *Worker {
	if cfg.Batch == 0 {
		cfg.Batch = 64
	}
	if cfg.Loops == 0 {
		cfg.Loops = 2
	}
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	return &Worker{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Wake says that there may be work. It never blocks.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run works until stop is done, finishes what is in hand, and returns nil.
// When work ends, as main makes it do after the grace period, it lets go of
// what is in hand: the leases expire, or the next start releases them.
func (w *Worker) Run(stop, work context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, w.cfg.Loops+1)
	for i := range w.cfg.Loops {
		wg.Go(func() { errs[i] = w.loop(stop, work, w.wake, "events", w.pass) })
	}
	// Suspects come up at start only, or when one of them is retried: a poll
	// finds them.
	wg.Go(func() { errs[w.cfg.Loops] = w.loop(stop, work, nil, "suspects", w.passSuspect) })
	wg.Wait()
	return errors.Join(errs...)
}

// loop runs pass at once, when woken, and every Poll; again at once while pass
// says that there may be more. A failing pass waits longer each time.
func (w *Worker) loop(stop, work context.Context, wake <-chan struct{}, name string, pass func(context.Context) (more bool, err error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	flush := 0
	for failures := 0; ; {
		select {
		case <-stop.Done():
		case <-wake:
		case <-timer.C:
		}
		if stop.Err() != nil { // select picks at random when several are ready
			return nil
		}
		delay := w.cfg.Poll
		switch more, err := pass(work); {
		case work.Err() != nil:
			return context.Cause(work)
		case err != nil:
			failures++
			delay = min(w.cfg.Poll<<min(failures-1, 5), 30*time.Second)
			w.cfg.Log.ErrorContext(work, "worker: pass failed", "loop", name, "err", err, "failures", failures, "next", delay)
		case more:
			failures, delay = 0, 0
			w.Wake() // another loop may help
		default:
			failures = 0
			if flush++; flush%2 == 0 {
				if err := w.cfg.Inbox.FlushTimings(work); err != nil {
					w.cfg.Log.WarnContext(work, "worker: timings not written", "err", err)
				}
			}
		}
		timer.Reset(delay)
	}
}

// pass claims one batch and works on it.
func (w *Worker) pass(ctx context.Context) (more bool, err error) {
	w.alone.RLock()
	defer w.alone.RUnlock()
	claims, err := w.cfg.Inbox.ClaimEvents(ctx, w.cfg.Batch)
	if err != nil || len(claims) == 0 {
		return false, err
	}
	w.work(ctx, claims)
	return len(claims) == w.cfg.Batch, nil
}

// passSuspect works on one event that was in hand when a process died, with
// nothing else in hand.
func (w *Worker) passSuspect(ctx context.Context) (more bool, err error) {
	w.alone.Lock()
	defer w.alone.Unlock()
	claims, err := w.cfg.Inbox.ClaimSuspect(ctx)
	if err != nil || len(claims) == 0 {
		return false, err
	}
	w.work(ctx, claims)
	return true, nil
}

// work decodes claims, has them applied, and gives back those that failed. A
// row that fails delays none of its neighbours.
func (w *Worker) work(ctx context.Context, claims []store.Claim) {
	events := make([]store.Decoded, 0, len(claims))
	for _, c := range claims {
		d, err := decode(c)
		if err != nil {
			w.retry(ctx, c, err)
			continue
		}
		events = append(events, d)
	}
	for i, err := range w.cfg.Inbox.ApplyEvents(ctx, events) {
		if err != nil {
			w.retry(ctx, events[i].Claim, err)
		}
	}
}

// retry gives c back. Whether the attempt counts is decided here, once: the
// row is to blame unless the machine is.
func (w *Worker) retry(ctx context.Context, c store.Claim, cause error) {
	if errors.Is(cause, store.ErrLeaseLost) {
		w.cfg.Log.InfoContext(ctx, "worker: lease lost, nothing changed", "event", c.ID)
		return
	}
	counted := !store.Transient(cause)
	attrs := []any{"event", c.ID, "err", cause, "counted", counted, "attempt", c.Attempts + 1}
	var p *store.PanicError
	if errors.As(cause, &p) {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	w.cfg.Log.WarnContext(ctx, "worker: event failed", attrs...)
	err := w.cfg.Inbox.RetryEvent(ctx, c, cause, counted)
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		// The lease runs out, or the next start releases it: nothing is lost.
		w.cfg.Log.ErrorContext(ctx, "worker: event not given back", "event", c.ID, "err", err)
	}
}

// decode reads the body of a claimed event. A panic in here is the row's.
func decode(c store.Claim) (d store.Decoded, err error) {
	defer func() {
		if p := recover(); p != nil {
			pe := &store.PanicError{What: "decode", Value: fmt.Sprintf("%T", p), Stack: debug.Stack()}
			if re, ok := p.(runtime.Error); ok {
				pe.Value = re.Error()
			}
			err = pe
		}
	}()
	d.Claim = c
	if c.PayloadGone {
		return d, nil
	}
	if d.Ignored = c.IgnoredUnread(); d.Ignored != "" {
		return d, nil
	}
	d.Event = payment.Decode(c.Body)
	return d, nil
}
