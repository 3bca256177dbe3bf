package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"paidonce/store"
)

// TestWhatIsSentAgainCountsOnce: a sender does what Stripe does, and sends again
// until it is told 200. Between two attempts the service is killed, or stopped
// in good order, at a random moment: so an event may be stored and its answer
// lost, or be applied and its end lost. However often each was sent, there is
// one row, and its order is paid once.
func TestWhatIsSentAgainCountsOnce(t *testing.T) {
	rounds, fresh := 10, 60
	if testing.Short() {
		rounds, fresh = 2, 20
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	ctx, d := startDemo(t)
	type delivery struct {
		event, order string
		body         []byte
		sent         int
	}
	var all []*delivery
	var open []*delivery // those that got no 200 so far
	// attempt sends each delivery once, and keeps those that must be sent again.
	attempt := func(ctx context.Context, batch []*delivery) (left []*delivery) {
		todo := make(chan *delivery, len(batch))
		for _, x := range batch {
			todo <- x
		}
		close(todo)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for x := range todo {
					x.sent++
					r, err := d.post(ctx, x.body)
					switch {
					case err == nil && r.code == http.StatusOK:
						continue
					case err == nil && r.code != http.StatusServiceUnavailable:
						t.Errorf("%s: answer %v; want 200, 503 or none", x.event, r)
					}
					mu.Lock()
					left = append(left, x)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return left
	}
	kills := 0
	for round := range rounds {
		for range fresh {
			s, err := d.register(ctx)
			if err != nil {
				t.Fatal(err)
			}
			x := &delivery{order: s.order}
			x.event, x.body = s.paid(d)
			all, open = append(all, x), append(open, x)
		}
		ended := make(chan struct{})
		after := time.Duration(rng.IntN(120)) * time.Millisecond
		go func() {
			defer close(ended)
			<-time.After(after)
			if round%3 == 2 {
				d.stop()
				return
			}
			d.kill()
		}()
		open = attempt(ctx, open)
		<-ended
		if round%3 != 2 {
			kills++
		}
		if err := d.start(ctx, demoChild{}); err != nil {
			t.Fatal(err)
		}
	}
	if open = attempt(ctx, open); len(open) != 0 {
		t.Errorf("%d events are not taken by a service that nobody disturbs", len(open))
	}
	again, stored := 0, 0
	for _, x := range all {
		e, err := d.settled(ctx, x.event)
		if err != nil { // each lost one takes its ten seconds: one is enough
			t.Fatalf("%s was acknowledged: %v", x.event, err)
		}
		if e.Status != "done" || e.Verdict != "applied" || e.Attempts >= 10 || e.Deliveries > int64(x.sent) {
			t.Errorf("%s, sent %d times: %+v; want it applied", x.event, x.sent, e)
		}
		o, err := d.order(ctx, x.order)
		if err != nil || o.Status != "paid" || o.ReceivedMinor != 1250 || o.paidTimes() != 1 || len(o.Entries) != 1 {
			t.Errorf("%s: %+v, %v; want it paid once", x.order, o, err)
		}
		if x.sent > 1 {
			again++
		}
		if e.Deliveries > 1 {
			stored++
		}
	}
	t.Logf("%d kills, %d stops: of %d events %d were sent again, %d of them stood in the file already", kills, rounds-kills, len(all), again, stored)
	checkFile(t, d, func(s *store.Store) {
		st, err := s.Stats(context.Background())
		if err != nil || st.Quarantined != 0 || st.Events["done"]["applied"] != int64(len(all)) {
			t.Errorf("%+v, %v; want %d rows, all applied", st.Events, err, len(all))
		}
	})
}
