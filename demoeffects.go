package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"paidonce/store"
	"paidonce/worker/stripefake"
)

// demoKilledOutside kills the service after the outside world has done what was
// asked and before that is written down: once at the shop's app, and once at
// Stripe.
func demoKilledOutside(ctx context.Context, d *demo) (string, bool, error) {
	killed := make(chan struct{}, 1)
	kill := func() {
		d.kill()
		killed <- struct{}{}
	}
	await := func() error {
		select {
		case <-killed:
			return d.start(ctx, demoChild{})
		case <-time.After(20 * time.Second):
			return errors.New("the service did not call")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s, err := d.register(ctx)
	if err != nil {
		return "", false, err
	}
	d.world.app.answers(func(c demoCall, w http.ResponseWriter, _ *http.Request) {
		if c.order == s.order && c.n == 1 {
			kill()
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if err := d.payAtStripe(ctx, s.order); err != nil {
		return "", false, err
	}
	if err := await(); err != nil {
		return "", false, err
	}
	calls, keys, err := d.world.app.took(ctx, s.order, 2)
	if err != nil {
		return "", false, err
	}
	d.world.app.answers(nil)
	hold := make(chan struct{})
	defer close(hold)
	d.world.stripe.FaultNext("POST /v1/refunds", stripefake.Fault{WaitAfter: hold, OnWait: func() { go kill() }})
	// The service may die before it answers.
	_, _ = d.api(ctx, http.MethodPost, "/v1/orders/"+s.order+"/refund", map[string]any{"request_id": "demo", "amount_minor": 500}, nil)
	if err := await(); err != nil {
		return "", false, err
	}
	effects, err := d.effectsDone(ctx, s.order, 2)
	if err != nil {
		return "", false, err
	}
	refunds := 0
	for _, e := range d.world.stripe.Events() {
		if e.Type == "refund.created" {
			refunds++
		}
	}
	return fmt.Sprintf("the app was called %d× under %d key, Stripe made %d refund, %d effects done", len(calls), keys, refunds, effects),
		keys == 1 && refunds == 1 && effects == 2, nil
}

// payAtStripe has a buyer pay the order at the fake Stripe, and delivers what
// Stripe sends of it.
func (d *demo) payAtStripe(ctx context.Context, order string) error {
	told := len(d.world.stripe.Events())
	err := d.world.stripe.Do(func(a *stripefake.Account) error {
		named := map[string]string{"order_id": order}
		session, err := a.OpenSession(stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 1250}, Currency: "eur", Metadata: named, IntentMetadata: named})
		if err == nil {
			_, err = a.PaySession(session.ID, stripefake.Card)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range d.world.stripe.Events()[told:] {
		if _, err := d.post(ctx, e.Body(1)); err != nil && e.Type != "checkout.session.completed" {
			return err // the last one may find the service killed by what the first has made
		}
	}
	return nil
}

// effectsDone waits until an order has n effects and all of them are done.
func (d *demo) effectsDone(ctx context.Context, order string, n int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var page store.Page[store.Effect]
		if _, err := d.api(ctx, http.MethodGet, "/v1/effects?order="+order, nil, &page); err != nil {
			return 0, err
		}
		done := 0
		for _, e := range page.Items {
			if e.Status == "done" {
				done++
			}
		}
		if done >= n {
			return done, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return done, fmt.Errorf("%d of %d effects of %s are done", done, n, order)
		}
	}
}

// demoPatience is the row of a receiver that makes one wait. It takes as long
// as a call may take, so it runs beside the other rows, on a service of its
// own.
type demoPatience struct {
	ended    chan struct{}
	happened string
	ok       bool
	err      error
}

// begin starts the row.
func (p *demoPatience) begin(ctx context.Context, a *app, dir string) {
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		p.happened, p.ok, p.err = p.show(ctx, a, dir)
	}()
}

// run waits for its end.
func (p *demoPatience) run(ctx context.Context, _ *demo) (string, bool, error) {
	select {
	case <-p.ended:
		return p.happened, p.ok, p.err
	case <-ctx.Done():
		return "", false, context.Cause(ctx)
	}
}

func (p *demoPatience) show(ctx context.Context, a *app, dir string) (string, bool, error) {
	dir = filepath.Join(dir, "patience")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", false, err
	}
	d, err := newDemo(a, dir)
	if err != nil {
		return "", false, err
	}
	w, err := newDemoWorld(a.now)
	if err != nil {
		return "", false, err
	}
	defer w.end()
	d.world = w
	if err := w.use(d); err != nil {
		return "", false, err
	}
	if err := d.start(ctx, demoChild{}); err != nil {
		return "", false, err
	}
	defer d.stop()
	var patient string // the order whose call is put off
	w.app.answers(func(c demoCall, w http.ResponseWriter, r *http.Request) {
		switch {
		case c.order != patient || c.n > 2:
			w.WriteHeader(http.StatusNoContent)
		case c.n == 1:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			<-r.Context().Done() // it never answers: the caller has to give up
		}
	})
	pay := func() (time.Duration, *sale, error) {
		s, err := d.register(ctx)
		if err != nil {
			return 0, nil, err
		}
		if patient == "" {
			patient = s.order // before anything of it is sent
		}
		_, body := s.paid(d)
		start := time.Now()
		r, err := d.post(ctx, body)
		if err == nil && r.code != http.StatusOK {
			err = fmt.Errorf("the webhook was answered %s", r)
		}
		return time.Since(start), s, err
	}
	_, s, err := pay()
	if err != nil {
		return "", false, err
	}
	if _, _, err := w.app.took(ctx, s.order, 2); err != nil {
		return "", false, err
	}
	answered, _, err := pay() // while the call hangs
	if err != nil {
		return "", false, err
	}
	if _, err := d.effectsDone(ctx, s.order, 1); err != nil {
		return "", false, err
	}
	calls, _, err := w.app.took(ctx, s.order, 3)
	if err != nil {
		return "", false, err
	}
	if len(calls) != 3 {
		return "", false, fmt.Errorf("%d calls", len(calls))
	}
	waited, gaveUp := calls[1].at.Sub(calls[0].at), calls[2].at.Sub(calls[1].at)
	return fmt.Sprintf("waited %.1f s, gave up after %.0f s, done at the third try; a webhook meanwhile: 200 in %d ms", waited.Seconds(), gaveUp.Seconds(), answered.Milliseconds()),
		waited >= 2*time.Second && gaveUp >= 10*time.Second && answered < 5*time.Second, nil
}
