package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// receiver is the world outside, in memory: it counts what reaches it.
type receiver struct {
	mu       sync.Mutex
	calls    []received
	inFlight map[string]int // by order: its lane
	most     map[string]int
	answer   func(ctx context.Context, c store.EffectClaim) store.Answer
}

type received struct {
	at                    time.Time
	order, operation, key string
	outcome               store.Outcome
}

func newReceiver(answer func(ctx context.Context, c store.EffectClaim) store.Answer) *receiver {
	return &receiver{inFlight: map[string]int{}, most: map[string]int{}, answer: answer}
}

func (r *receiver) Send(ctx context.Context, c store.EffectClaim) store.Answer {
	r.mu.Lock()
	r.inFlight[c.Order]++
	r.most[c.Order] = max(r.most[c.Order], r.inFlight[c.Order])
	i := len(r.calls)
	r.calls = append(r.calls, received{at: time.Now(), order: c.Order, operation: c.Operation, key: c.Key})
	r.mu.Unlock()
	a := r.answer(ctx, c)
	r.mu.Lock()
	r.inFlight[c.Order]--
	r.calls[i].outcome = a.Outcome
	r.mu.Unlock()
	return a
}

func (r *receiver) of(order string) (calls []received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.order == order {
			calls = append(calls, c)
		}
	}
	return calls
}

var (
	fine = store.Answer{Outcome: store.OutcomeDone, Status: 204}
	down = store.Answer{Outcome: store.OutcomeAgain, Status: 503, Error: "answered 503"}
)

// bubble runs fn in a time bubble, with a store of its own whose clock is the
// bubble's, and effect workers for the given receivers.
func bubble(t *testing.T, receivers map[string]*receiver, poll time.Duration, fn func(t *testing.T, s *store.Store)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var targets []string
		senders := map[string]Sender{}
		for name, r := range receivers {
			targets, senders[name] = append(targets, name), r
		}
		slices.Sort(targets)
		var e *Effects
		o := storetest.Options(dir, nil)
		o.Now, o.Compose, o.Queued = time.Now, storetest.Fan(targets...), func() { e.Wake() }
		e = NewEffects(EffectsConfig{Senders: senders, Log: quiet, Now: time.Now, Poll: poll})
		s, err := store.Open(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		stop, stopNow := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- e.Run(stop, context.Background(), s) }()
		fn(t, s)
		stopNow()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		storetest.Check(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// pay delivers a payment for a registered order, as a webhook brings it.
func pay(t *testing.T, s *store.Store, order string) {
	t.Helper()
	total, eur := int64(1250), "eur"
	if _, _, err := s.RegisterOrder(context.Background(), store.NewOrder{ID: order, TotalMinor: &total, Currency: &eur}); err != nil {
		t.Fatal(err)
	}
	storetest.Deliver(t, s, fmt.Sprintf(`{"id":"evt_%s","object":"event","created":%d,"livemode":false,"type":"payment_intent.succeeded",
		"data":{"object":{"id":"pi_%s","object":"payment_intent","amount":1250,"amount_received":1250,"currency":"eur","status":"succeeded",
		"metadata":{"order_id":%q}}}}`, order, time.Now().Unix(), order, order))
}

func giveBack(t *testing.T, s *store.Store, order string, amount int) {
	t.Helper()
	storetest.Deliver(t, s, fmt.Sprintf(`{"id":"evt_r%s%d","object":"event","created":%d,"livemode":false,"type":"refund.updated",
		"data":{"object":{"id":"re_%s%d","object":"refund","amount":%d,"currency":"eur","status":"succeeded","payment_intent":"pi_%s"}}}`,
		order, amount, time.Now().Unix(), order, amount, amount, order))
}

func TestAReceiverThatIsDownForADayGetsThePlanAndLosesNothing(t *testing.T) {
	day, orders, fewest, most := 24*time.Hour, 40, 28, 36
	if testing.Short() {
		day, orders, fewest, most = 3*time.Hour, 4, 11, 14
	}
	var opens time.Time
	app := newReceiver(func(context.Context, store.EffectClaim) store.Answer {
		if time.Now().Before(opens) {
			time.Sleep(10 * time.Second) // it does not even answer: the call times out
			return down
		}
		return fine
	})
	crm := newReceiver(func(context.Context, store.EffectClaim) store.Answer { return fine })
	bubble(t, map[string]*receiver{"app": app, "crm": crm}, time.Minute, func(t *testing.T, s *store.Store) {
		opens = time.Now().Add(day)
		start := time.Now()
		pay(t, s, "first")
		synctest.Wait()
		giveBack(t, s, "first", 50)
		for i := range orders {
			before := time.Now()
			pay(t, s, fmt.Sprintf("ORD-%d", i))
			if waited := time.Since(before); waited != 0 {
				t.Fatalf("a webhook waited %v for the receiver", waited)
			}
			time.Sleep(30 * time.Minute)
		}
		time.Sleep(day + 2*time.Hour - time.Since(start))

		// The documented plan: at once, the seven quick ones, then 5 minutes
		// doubling to an hour, each with up to a tenth more, and the ten
		// seconds that the call itself takes.
		calls := app.of("first")
		plan := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
			5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour}
		if first := calls[0].at.Sub(start); first > time.Second {
			t.Errorf("first tried after %v; want at once", first)
		}
		tries := slices.IndexFunc(calls, func(c received) bool { return c.outcome == store.OutcomeDone }) + 1
		for i := 1; i < tries; i++ {
			want := plan[min(i, len(plan))-1]
			got := calls[i].at.Sub(calls[i-1].at) - 10*time.Second
			if got < want || got > want+want/10+time.Second {
				t.Errorf("try %d came %v after the one before; want %v to a tenth more", i+1, got, want)
			}
		}
		if tries < fewest || tries > most {
			t.Errorf("%d tries in %v; the plan makes %d to %d", tries, day, fewest, most)
		}
		for _, c := range calls[:tries] {
			if c.operation != "order.paid" || c.key != calls[0].key {
				t.Errorf("%+v before order.paid was through, whose key is %s", c, calls[0].key)
			}
		}
		if last := calls[len(calls)-1]; last.operation != "refund.succeeded:re_first50" || last.outcome != store.OutcomeDone {
			t.Errorf("the lane ends with %+v", last)
		}
		for _, r := range []*receiver{app, crm} {
			for order, most := range r.most {
				if most > 1 {
					t.Errorf("%d calls at once in the lane of %s", most, order)
				}
			}
		}
		for i := range orders {
			id := fmt.Sprintf("ORD-%d", i)
			for _, e := range storetest.Effects(t, s, id) {
				if e.Status != "done" {
					t.Errorf("effect of %s: %+v", id, e)
				}
			}
			if got := crm.of(id); len(got) != 1 {
				t.Errorf("the receiver that was up got %d calls for %s", len(got), id)
			}
			done := 0
			for _, c := range app.of(id) {
				if c.outcome == store.OutcomeDone {
					done++
				}
			}
			if done != 1 {
				t.Errorf("%s was taken %d times", id, done)
			}
		}
	})
}

func TestASlowReceiverDelaysNobodyElse(t *testing.T) {
	release := make(chan struct{})
	slow := newReceiver(func(ctx context.Context, _ store.EffectClaim) store.Answer {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return fine
	})
	quick := newReceiver(func(context.Context, store.EffectClaim) store.Answer { return fine })
	bubble(t, map[string]*receiver{"slow": slow, "quick": quick}, time.Second, func(t *testing.T, s *store.Store) {
		release = make(chan struct{}) // of the bubble
		for i := range 10 {
			pay(t, s, fmt.Sprint("ORD-", i))
		}
		synctest.Wait()
		if len(quick.calls) != 10 || len(slow.calls) != 4 {
			t.Errorf("%d calls to the quick one and %d to the slow one; want 10, and no more than 4 at once", len(quick.calls), len(slow.calls))
		}
		close(release)
		synctest.Wait()
		if len(slow.calls) != 10 {
			t.Errorf("%d calls to the slow one in the end; want 10", len(slow.calls))
		}
	})
}

func TestASenderThatPanicsOrHangsHasAnUnknownOutcome(t *testing.T) {
	bad := newReceiver(func(ctx context.Context, c store.EffectClaim) store.Answer {
		switch {
		case c.Attempt > 1:
			return fine
		case c.Order == "panics":
			panic("of a sender")
		default: // hangs, and hears nothing
			time.Sleep(10 * time.Minute)
		}
		return fine
	})
	bubble(t, map[string]*receiver{"bad": bad}, time.Second, func(t *testing.T, s *store.Store) {
		pay(t, s, "panics")
		pay(t, s, "hangs")
		time.Sleep(5 * time.Second)
		if e := storetest.Effects(t, s, "panics")[0]; e.Status != "done" || e.Attempts != 2 {
			t.Errorf("after a panic: %+v", e)
		}
		time.Sleep(40 * time.Second) // the lease is 30 s
		if e := storetest.Effects(t, s, "hangs")[0]; e.Status != "done" || e.Attempts != 2 {
			t.Errorf("beside a call that hangs: %+v", e)
		}
		time.Sleep(10 * time.Minute) // and the one that hung changes nothing when it comes back
		if e := storetest.Effects(t, s, "hangs")[0]; e.Status != "done" || e.Attempts != 2 {
			t.Errorf("after it came back: %+v", e)
		}
	})
}

func TestTheClockThatIsSetBackIsNoticed(t *testing.T) {
	base := time.Now()
	for _, tt := range []struct {
		name string
		now  time.Time // as the next reading
		want time.Duration
	}{
		{"a second later", base.Add(time.Second), 0},
		{"a clock without a monotonic part", base.Round(0).Add(-time.Hour), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := setBack(base, tt.now); got != tt.want {
				t.Errorf("set back by %v; want %v", got, tt.want)
			}
		})
	}
}
