package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
	"paidonce/worker/stripefake"
)

// lossyShop is a real service beside a fake Stripe whose deliveries get lost.
type lossyShop struct {
	*demo
	fake *stripefake.Server
}

// newLossyShop starts both. lose says which deliveries are never sent.
func newLossyShop(t *testing.T, lose func(stripefake.DeliveryRequest) bool, toml ...string) (context.Context, *lossyShop) {
	t.Helper()
	fake := stripefake.NewServer(stripefake.ServerConfig{
		Now: time.Now, Key: "sk_test_fake", Config: stripefake.Config{Seed: 7},
		Delivery: stripefake.DeliveryConfig{Fault: func(r stripefake.DeliveryRequest) stripefake.DeliveryFault {
			return stripefake.DeliveryFault{Drop: lose(r)}
		}},
	})
	stripe := httptest.NewServer(fake)
	t.Cleanup(func() {
		fake.Close()
		stripe.CloseClientConnections()
		stripe.Close()
	})
	ctx, d := startDemoWith(t, func(*testing.T, string) (string, map[string]string) {
		return "[stock]\nlow = 1\n" + strings.Join(toml, ""), map[string]string{"STRIPE_API_KEY": "sk_test_fake", "STRIPE_API_BASE": stripe.URL}
	})
	o := storetest.Options(d.dir, storetest.NewClock())
	o.Mode = store.Client
	beside, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := beside.SetStock(ctx, "main", "mug", 1000); err != nil {
		t.Error(err)
	}
	if err := beside.Close(); err != nil {
		t.Error(err)
	}
	s := &lossyShop{demo: d, fake: fake}
	s.point()
	fake.Start(ctx)
	return ctx, s
}

// point tells Stripe where the service is.
func (s *lossyShop) point() { s.fake.SetWebhook("http://"+s.public+"/webhooks/stripe", s.secret) }

// sell registers orders, has them paid, some given back and some disputed.
func (s *lossyShop) sell(ctx context.Context, t *testing.T, orders int) {
	t.Helper()
	do := func(f func(a *stripefake.Account) error) {
		t.Helper()
		if err := s.fake.Do(f); err != nil {
			t.Fatal(err)
		}
	}
	for i := range orders {
		url := s.register(ctx, t, i, map[string]any{"success_url": "https://shop.example/thanks"})
		session := url[strings.LastIndex(url, "/")+1:]
		do(func(a *stripefake.Account) error {
			if i%10 == 9 {
				return a.ExpireSession(session)
			}
			paid, err := a.PaySession(session, stripefake.Card)
			if err != nil {
				return err
			}
			intent, _ := a.FindIntent(paid.Intent)
			switch i % 5 {
			case 1:
				_, err = a.Refund(intent.LatestCharge(), 400, false)
			case 2:
				_, err = a.Refund(intent.LatestCharge(), a.Refundable(intent.LatestCharge()), false)
			case 3:
				_, err = a.ChargeBack(intent.LatestCharge(), 500)
			}
			return err
		})
	}
	if err := s.fake.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}

// reconcile has the service do it and returns the report.
func (s *lossyShop) reconcile(ctx context.Context, t *testing.T) store.RunReport {
	t.Helper()
	var r store.RunReport
	status, err := s.api(ctx, http.MethodPost, "/v1/reconcile", nil, &r)
	for err == nil && status < 300 && !r.Over() {
		status, err = s.api(ctx, http.MethodGet, fmt.Sprintf("/v1/reconcile/%d", r.ID), nil, &r)
	}
	if err != nil || status != http.StatusOK || r.Error != "" {
		t.Fatalf("reconcile: %d, %v, %q", status, err, r.Error)
	}
	return r
}

// told is what a shop can see of its orders, without times and ids.
func (s *lossyShop) told(ctx context.Context, t *testing.T, orders int) []string {
	t.Helper()
	var all []string
	for i := range orders {
		o := s.detail(ctx, t, fmt.Sprintf("R-%d", i))
		books := map[string]int64{}
		for _, e := range o.Entries {
			books[string(e.Account)+" "+e.Currency] += e.AmountMinor
		}
		b, err := json.Marshal(map[string]any{"id": o.ID, "status": o.Status, "received": o.ReceivedMinor, "refunded": o.RefundedMinor,
			"pending": o.RefundPendingMinor, "charged_back": o.ChargedBackMinor, "suspense": o.SuspenseMinor, "attention": o.Attention, "books": books})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b))
	}
	return all
}

// TestReconcileFindsAllThatWasLost: Stripe loses a third of all deliveries, and
// every delivery of some orders. After one reconciliation the orders, the books
// and the stock are those of a shop that lost nothing; a second one finds
// nothing.
func TestReconcileFindsAllThatWasLost(t *testing.T) {
	orders := 40
	if testing.Short() {
		orders = 10
	}
	nothing := func(stripefake.DeliveryRequest) bool { return false }
	ctx, whole := newLossyShop(t, nothing)
	whole.sell(ctx, t, orders)
	whole.quiet(ctx, t)
	want := whole.told(ctx, t, orders)
	if r := whole.reconcile(ctx, t); r.EventsNew != 0 || !r.Agrees() {
		t.Fatalf("without loss: %s; %+v", r.Summary, r.Differences)
	}

	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(1, 2))
	ctx, lossy := newLossyShop(t, func(r stripefake.DeliveryRequest) bool {
		mu.Lock()
		defer mu.Unlock()
		return dice.Float64() < 0.3 || strings.Contains(string(r.Event.Body(0)), `"R-4"`) || strings.Contains(string(r.Event.Body(0)), `"R-7"`)
	})
	lossy.sell(ctx, t, orders)
	r := lossy.reconcile(ctx, t)
	if r.EventsNew == 0 || r.Agrees() || r.DifferenceCount < r.EventsNew {
		t.Fatalf("with loss: %s", r.Summary)
	}
	for _, sum := range r.Sums {
		if sum.StripeMinor != sum.BooksMinor {
			t.Errorf("%+v", sum)
		}
	}
	if len(r.Sums) == 0 || !strings.Contains(r.Summary, "missing and brought in") || !strings.Contains(r.Summary, "sums equal") {
		t.Errorf("summary %q, sums %+v", r.Summary, r.Sums)
	}
	lossy.quiet(ctx, t)
	got := lossy.told(ctx, t, orders)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("with loss    %s\nwithout loss %s", got[i], want[i])
		}
	}
	if again := lossy.reconcile(ctx, t); !again.Agrees() || again.EventsNew != 0 {
		t.Errorf("the second run: %s; %+v", again.Summary, again.Differences)
	}
	if err := lossy.fake.Check(); err != nil {
		t.Error(err)
	}
	if a, b := whole.onHand(ctx, t), lossy.onHand(ctx, t); a != b {
		t.Errorf("on hand %d with loss, %d without", b, a)
	}
	t.Log(r.Summary)
}

// onHand is how many mugs are left.
func (s *lossyShop) onHand(ctx context.Context, t *testing.T) (left int64) {
	t.Helper()
	checkFile(t, s.demo, func(st *store.Store) {
		lines, err := st.ListStock(ctx, "main")
		if err != nil || len(lines) != 1 {
			t.Fatalf("stock: %+v, %v", lines, err)
		}
		left = lines[0].OnHand
	})
	return left
}

// quiet waits until nothing is pending.
func (s *lossyShop) quiet(ctx context.Context, t *testing.T) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var st store.Stats
		if status, err := s.api(ctx, http.MethodGet, "/v1/stats", nil, &st); err != nil || status != http.StatusOK {
			t.Fatalf("stats: %d, %v", status, err)
		}
		if st.Events["pending"]["new"]+st.Events["pending"]["retrying"] == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("it does not get quiet")
		case <-tick.C:
		}
	}
}

// TestAKillOnAnyPageLosesNothing: nothing is delivered at all, and the service is
// killed while Stripe answers each page in turn. In the end every order is paid,
// once.
func TestAKillOnAnyPageLosesNothing(t *testing.T) {
	orders := 70
	if testing.Short() {
		orders = 40
	}
	ctx, s := newLossyShop(t, func(stripefake.DeliveryRequest) bool { return true })
	for i := range orders {
		s.payOne(ctx, t, i)
	}
	kills := 0
	for page := 1; page <= 4; page++ {
		killed := make(chan struct{})
		hold := make(chan struct{})
		s.fake.FaultNext("GET /v1/events", stripefake.Fault{}, stripefake.Fault{WaitAfter: hold, OnWait: func() {
			go func() {
				s.kill()
				close(killed)
			}()
		}})
		if err := s.askForRun(ctx, t); err != nil {
			t.Fatal(err)
		}
		select {
		case <-killed:
			kills++
		case <-time.After(20 * time.Second):
			t.Fatal("no second page was asked for")
		}
		close(hold)
		s.fake.Fault(nil)
		if err := s.start(ctx, demoChild{}); err != nil {
			t.Fatal(err)
		}
	}
	s.reconcile(ctx, t)
	s.quiet(ctx, t)
	for i := range orders {
		if o := s.detail(ctx, t, fmt.Sprintf("R-%d", i)); o.Status != "paid" || o.ReceivedMinor != 1000+int64(i) {
			t.Errorf("%s is %s, received %d", o.ID, o.Status, o.ReceivedMinor)
		}
	}
	if r := s.reconcile(ctx, t); !r.Agrees() {
		t.Errorf("in the end: %s; %+v", r.Summary, r.Differences)
	}
	t.Logf("%d kills", kills)
	checkFile(t, s.demo, nil)
}

// askForRun asks for a run, as a command does, and does not wait for it.
func (s *lossyShop) askForRun(ctx context.Context, t *testing.T) error {
	t.Helper()
	var err error
	s.beside(ctx, t, func(st *store.Store) error {
		_, err = st.RequestRun(ctx, 0, "cli")
		return nil
	})
	return err
}
