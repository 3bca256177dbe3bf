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
)

// Outbox is what the effect workers need of the store.
type Outbox interface {
	ClaimEffects(ctx context.Context, target string, limit int) ([]store.EffectClaim, error)
	FinishEffect(ctx context.Context, c store.EffectClaim, a store.Answer) error
	NextEffectIn(ctx context.Context, target string) (time.Duration, bool, error)
	ReleaseExpired(ctx context.Context) (int, error)
	FanOutWaiting(ctx context.Context, limit int) (more bool, err error)
	ClockWentBack(ctx context.Context, by time.Duration) error
}

// Sender makes one call to the outside world for an effect, and tells what it
// came to. It keeps to EffectTimeout of its kind by itself.
type Sender interface {
	Send(ctx context.Context, c store.EffectClaim) store.Answer
}

// EffectsConfig is what main decides for the effect workers.
type EffectsConfig struct {
	Senders map[string]Sender // by target
	Log     *slog.Logger
	Now     func() time.Time
	// InFlight is how many calls to one target are under way at once, each of
	// another lane; 0 is 4.
	InFlight int
	// Poll is how often the outbox is looked at without being woken; 0 is one
	// second.
	Poll time.Duration
	// Testpoint, when set, is called around a call, so that a test can end the
	// process there.
	Testpoint func(point string)
}

// Effects carries out what the outbox holds: a loop for each target, so that a
// slow receiver delays nobody but itself. A call is made outside any
// transaction, between a claim that is on disk and a settle that asks for the
// claim's lease back; a process that dies in between leaves an effect of
// unknown outcome, and the store's rules say what that means for its kind.
type Effects struct {
	cfg    EffectsConfig
	outbox Outbox
	wakes  map[string]chan struct{}
}

// NewEffects returns effect workers that have not begun.
func NewEffects(cfg EffectsConfig) *Effects {
	if cfg.InFlight == 0 {
		cfg.InFlight = 4
	}
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	if cfg.Testpoint == nil {
		cfg.Testpoint = func(string) {}
	}
	e := &Effects{cfg: cfg, wakes: map[string]chan struct{}{}}
	for target := range cfg.Senders {
		e.wakes[target] = make(chan struct{}, 1)
	}
	return e
}

// Wake says that there may be work. It never blocks.
func (e *Effects) Wake() {
	for _, wake := range e.wakes {
		signal(wake)
	}
}

func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Run works on the outbox until stop is done, waits for the calls that are under
// way, and returns nil. When work ends, the calls are cut off, and their outcome
// is written down as what it then is. It is given the outbox only now, since
// that one has to know whom to wake before it opens. Run is called once.
func (e *Effects) Run(stop, work context.Context, outbox Outbox) error {
	e.outbox = outbox
	var wg sync.WaitGroup
	for target, sender := range e.cfg.Senders {
		wg.Go(func() { e.serve(stop, work, target, sender) })
	}
	wg.Go(func() { e.keep(stop, work) })
	wg.Wait()
	if work.Err() != nil {
		return context.Cause(work)
	}
	return nil
}

// serve is the loop of one target.
func (e *Effects) serve(stop, work context.Context, target string, sender Sender) {
	wake := e.wakes[target]
	slots := make(chan struct{}, e.cfg.InFlight)
	var calls sync.WaitGroup
	defer calls.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		select {
		case <-stop.Done():
		case <-wake:
		case <-timer.C:
		}
		if stop.Err() != nil || work.Err() != nil {
			return
		}
		delay := e.cfg.Poll
		free := cap(slots) - len(slots)
		claims, err := e.claim(work, target, free)
		switch {
		case work.Err() != nil:
			return
		case err != nil:
			failures++
			delay = min(e.cfg.Poll<<min(failures-1, 5), 30*time.Second)
			e.cfg.Log.ErrorContext(work, "worker: effects not claimed", "target", target, "err", err, "failures", failures, "next", delay)
		default:
			failures = 0
		}
		for _, c := range claims {
			slots <- struct{}{}
			calls.Go(func() {
				e.call(work, c, sender)
				<-slots
				signal(wake) // a slot is free, and perhaps a lane
			})
		}
		if err == nil && len(claims) < free { // else the next slot to be free wakes us
			if wait, ok, err := e.outbox.NextEffectIn(work, target); err == nil && ok {
				delay = min(delay, max(wait, time.Millisecond))
			}
		}
		timer.Reset(delay)
	}
}

func (e *Effects) claim(ctx context.Context, target string, limit int) ([]store.EffectClaim, error) {
	if limit == 0 {
		return nil, nil
	}
	return e.outbox.ClaimEffects(ctx, target, limit)
}

// call makes one call and writes down what it came to.
func (e *Effects) call(work context.Context, c store.EffectClaim, sender Sender) {
	e.cfg.Testpoint("effect:claimed")
	// The lease is three times what an attempt may take. A call that is cut
	// off before it ends is never made a second time beside itself.
	ctx, cancel := context.WithTimeout(work, store.EffectLease(c.Kind)*5/6)
	a := e.send(ctx, c, sender)
	cancel()
	e.cfg.Testpoint("effect:sent")
	attrs := []any{"effect", c.Row, "operation", c.Operation, "target", c.Target, "attempt", c.Attempt, "outcome", string(a.Outcome)}
	if a.Outcome == store.OutcomeDone {
		e.cfg.Log.InfoContext(work, "worker: effect done", attrs...)
	} else {
		e.cfg.Log.WarnContext(work, "worker: effect not done", append(attrs, "status", a.Status, "err", a.Error)...)
	}
	for wait := 100 * time.Millisecond; ; wait = min(wait*2, 5*time.Second) {
		// Also when work has ended: what is known of a call is worth a write.
		err := e.outbox.FinishEffect(context.WithoutCancel(work), c, a)
		switch {
		case err == nil:
			return
		case errors.Is(err, store.ErrLeaseLost):
			e.cfg.Log.InfoContext(work, "worker: lease lost, nothing changed", "effect", c.Row)
			return
		case !store.Transient(err) || work.Err() != nil:
			// The lease runs out, or the next start releases it.
			e.cfg.Log.ErrorContext(work, "worker: outcome not written down", "effect", c.Row, "err", err)
			return
		}
		e.cfg.Log.WarnContext(work, "worker: outcome not written down yet", "effect", c.Row, "err", err)
		select {
		case <-work.Done():
		case <-time.After(wait):
		}
	}
}

// send guards against a sender that panics: what it did is then unknown.
func (e *Effects) send(ctx context.Context, c store.EffectClaim, sender Sender) (a store.Answer) {
	defer func() {
		if p := recover(); p != nil {
			what := fmt.Sprintf("%T", p) // not its text: that may hold anything
			if re, ok := p.(runtime.Error); ok {
				what = re.Error()
			}
			e.cfg.Log.ErrorContext(ctx, "worker: sender panicked", "effect", c.Row, "err", what, "stack", string(debug.Stack()))
			a = store.Answer{Outcome: store.OutcomeUnknown, Error: "the sender panicked: " + what}
		}
	}()
	return sender.Send(ctx, c)
}

// keep does what is nobody's target: leases that ran out, operations that
// commands recorded, a clock that was set back.
func (e *Effects) keep(stop, work context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	last := e.cfg.Now()
	for {
		select {
		case <-stop.Done():
		case <-timer.C:
		}
		if stop.Err() != nil || work.Err() != nil {
			return
		}
		delay := e.cfg.Poll
		now := e.cfg.Now()
		if back := setBack(last, now); back > 0 {
			e.cfg.Log.WarnContext(work, "worker: the clock was set back", "by", back.Round(time.Second))
			if err := e.outbox.ClockWentBack(work, back); err != nil {
				e.cfg.Log.ErrorContext(work, "worker: clock not followed", "err", err)
				now = last // again next time
			}
		}
		last = now
		if n, err := e.outbox.ReleaseExpired(work); err != nil {
			e.cfg.Log.WarnContext(work, "worker: expired leases not released", "err", err)
		} else if n > 0 {
			e.cfg.Log.WarnContext(work, "worker: leases ran out", "effects", n)
		}
		more, err := e.outbox.FanOutWaiting(work, 100)
		if err != nil {
			e.cfg.Log.WarnContext(work, "worker: recorded operations not queued", "err", err)
		}
		if more {
			delay = 0
		}
		timer.Reset(delay)
	}
}

// setBack is by how much the wall clock fell behind the monotonic one between
// two readings; 0 is not by much. A test's clock has no monotonic part, and is
// never set back.
func setBack(last, now time.Time) time.Duration {
	back := now.Sub(last) - now.Round(0).Sub(last.Round(0))
	if back < 5*time.Second {
		return 0
	}
	return back
}
