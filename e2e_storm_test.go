package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/worker/stripefake"
)

var stormOrders = flag.Int("storm.orders", 0, "how many orders go through TestStorm; 0 is 200, or 12 with -short")

// TestStorm: orders go through the whole life (registered with a Checkout
// Session, paid, told, fulfilled, some refunded) while everything goes wrong
// at once: Stripe's API fails in every way it can, deliveries are dropped,
// doubled, late, out of order and lose their answers, the shop's own app fails
// and loses answers, and the service is killed. In the end each order was
// fulfilled once and each refund made once, the books equal Stripe's own ledger
// to the cent, and nothing is left unknown.
func TestStorm(t *testing.T) {
	orders := *stormOrders
	switch {
	case orders != 0:
	case testing.Short():
		orders = 12
	default:
		orders = 200
	}
	const seed = 42
	fake := stripefake.NewServer(stripefake.ServerConfig{
		Now: time.Now, Key: "sk_test_fake", Config: stripefake.Config{Seed: seed},
		Delivery: stripefake.DeliveryConfig{
			Concurrency: 8, Shuffle: seed,
			Backoff: func(n int) time.Duration { return min(100*time.Millisecond<<min(n, 5), time.Second) },
			Fault:   stripefake.RandomDeliveryFaults(seed, stripefake.DeliveryChances{Drop: 0.1, Double: 0.2, Late: 0.2, LoseAnswer: 0.1}),
		},
	})
	fake.Fault(stripefake.RandomFaults(seed, map[stripefake.FaultKind]float64{
		stripefake.ClosedBefore: 0.03, stripefake.ClosedAfter: 0.05, stripefake.ErrorBefore: 0.02, stripefake.ErrorAfter: 0.03,
		stripefake.GatewayBefore: 0.03, stripefake.GatewayAfter: 0.04, stripefake.TooManyRequests: 0.05, stripefake.BrokenAfter: 0.03,
	}))
	stripe := httptest.NewServer(fake)
	t.Cleanup(func() {
		fake.Close()
		stripe.CloseClientConnections()
		stripe.Close()
	})
	app := newFlakyApp(seed)
	shop := httptest.NewServer(app)
	t.Cleanup(shop.Close)

	ctx, d := startDemoWith(t, func(*testing.T, string) (string, map[string]string) {
		return fmt.Sprintf("[[effect]]\nname = \"app\"\non = [\"order.paid\", \"order.refunded\", \"refund.succeeded\"]\ndo = \"http\"\nurl = %q\n", shop.URL),
			map[string]string{"STRIPE_API_KEY": "sk_test_fake", "STRIPE_API_BASE": stripe.URL}
	})
	point := func() { fake.SetWebhook("http://"+d.public+"/webhooks/stripe", d.secret) }
	point()
	fake.Start(ctx)

	// The service is killed while the storm goes on. Whoever calls it waits for
	// its return, as a shop does.
	var up sync.RWMutex
	call := func(method, path string, in, out any) int {
		for {
			up.RLock()
			status, err := d.api(ctx, method, path, in, out)
			up.RUnlock()
			if err == nil && status != http.StatusServiceUnavailable {
				return status
			}
			if ctx.Err() != nil {
				return 0
			}
		}
	}
	type sold struct {
		id      string
		total   int64
		refunds map[string]int64 // by request id
	}
	all := make([]sold, orders)
	work := make(chan int)
	var wg sync.WaitGroup
	for w := range 8 {
		dice := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for i := range work {
				o := sold{id: fmt.Sprintf("S-%d", i), total: 500 + int64(i), refunds: map[string]int64{}}
				all[i] = o
				url := ""
				for url == "" && ctx.Err() == nil {
					var got struct {
						CheckoutURL string `json:"checkout_url"`
					}
					switch status := call(http.MethodPost, "/v1/orders", map[string]any{"id": o.id, "total_minor": o.total, "currency": "eur",
						"checkout": map[string]any{"success_url": "https://shop.example/thanks"}}, &got); status {
					case 200, 201, 202:
						url = got.CheckoutURL
					default:
						t.Errorf("register %s: %d", o.id, status)
						return
					}
				}
				session := url[strings.LastIndex(url, "/")+1:]
				if err := fake.Do(func(a *stripefake.Account) error {
					_, err := a.PaySession(session, stripefake.Card)
					return err
				}); err != nil {
					t.Errorf("pay %s in %s: %v", o.id, session, err)
				}
				if i%4 != 0 {
					continue
				}
				// Two refunds of equal amounts, each asked for several times.
				for r := range 2 {
					id, amount := fmt.Sprintf("%s-r%d", o.id, r), int64(100)
					o.refunds[id] = amount
					for asked := 0; asked < 1+dice.IntN(3); {
						switch status := call(http.MethodPost, "/v1/orders/"+o.id+"/refund", map[string]any{"request_id": id, "amount_minor": amount}, nil); status {
						case http.StatusAccepted:
							asked++
						case http.StatusConflict: // not paid yet: its event is late or was dropped
							if err := fake.Drain(ctx); err == nil {
								resendDropped(fake)
							}
						default:
							t.Errorf("refund %s: %d", id, status)
							return
						}
					}
				}
			}
		})
	}
	kills := 0
	for i := range orders {
		if i > 0 && i%(orders/4+1) == 0 {
			up.Lock()
			d.kill()
			kills++
			if err := d.start(ctx, demoChild{}); err != nil {
				t.Fatal(err)
			}
			point()
			up.Unlock()
		}
		work <- i
	}
	close(work)
	wg.Wait()
	if t.Failed() {
		return
	}

	// The storm ends; what Stripe dropped is sent again, as its dashboard does.
	fake.Fault(nil)
	app.calm()
	settle, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	quiet := func() (string, bool) {
		resendDropped(fake)
		if err := fake.Drain(settle); err != nil {
			return err.Error(), false
		}
		var st store.Stats
		if status := call(http.MethodGet, "/v1/stats", nil, &st); status != http.StatusOK {
			return fmt.Sprint("stats: ", status), false
		}
		pending := int64(0)
		for _, n := range st.Events["pending"] {
			pending += n
		}
		open := st.Effects["pending"] + st.Effects["sending"] + st.Effects["unknown"] + st.Effects["held"]
		return fmt.Sprintf("%d events and %d effects are open: %v", pending, open, st.Effects), pending+open == 0
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for calm := 0; calm < 3; {
		why, ok := quiet()
		if calm++; !ok {
			calm = 0
		}
		select {
		case <-tick.C:
		case <-settle.Done():
			t.Fatal("the storm does not settle: " + why)
		}
	}
	var sales, refunds int64
	for _, o := range all {
		detail := d.detail(ctx, t, o.id)
		var given int64
		for _, amount := range o.refunds {
			given += amount
		}
		if detail.ReceivedMinor != o.total || detail.RefundedMinor != given || len(detail.Attention) != 0 {
			t.Errorf("%s: received %d of %d, refunded %d of %d, attention %v", o.id, detail.ReceivedMinor, o.total, detail.RefundedMinor, given, detail.Attention)
		}
		sales, refunds = sales+detail.ReceivedMinor, refunds+detail.RefundedMinor
		made := 0
		for _, e := range detail.Effects {
			switch {
			case e.Status != "done" && !(e.Operation == "order.paid" && e.Status == "canceled"):
				t.Errorf("%s: effect %s is %s: %s", o.id, e.Operation, e.Status, e.LastError)
			case strings.HasPrefix(e.Operation, store.OperationRefund):
				made++
				base, _, _ := strings.Cut(strings.TrimPrefix(e.IdempotencyKey, "po_"), "_")
				if n := len(fake.RefundsWith("paidonce_operation", "po_"+base)); n != 1 {
					t.Errorf("%s: Stripe made %d refunds of %s", o.id, n, e.Operation)
				}
			case e.Operation == "order.paid" && e.Status == "done":
				if n := app.times(e.IdempotencyKey); n == 0 {
					t.Errorf("%s: the app never took %s", o.id, e.Operation)
				}
			}
		}
		if made != len(o.refunds) {
			t.Errorf("%s: %d refund effects; want %d", o.id, made, len(o.refunds))
		}
	}
	if keys, operations := app.seen(); keys != operations {
		t.Errorf("the app saw %d keys for %d operations", keys, operations)
	}
	var truth, back int64
	for _, m := range fake.Ledger().Payments {
		truth, back = truth+m.Received, back+m.Refunded
	}
	if truth != sales || back != refunds {
		t.Errorf("Stripe's ledger has %d in and %d out, the books %d and %d", truth, back, sales, refunds)
	}
	if err := fake.Check(); err != nil {
		t.Error(err)
	}
	checkFile(t, d, func(s *store.Store) {
		books, err := s.Books(ctx, 0, 0)
		if err != nil || len(books.Closing) != 1 || books.Closing[0].SalesMinor != truth || books.Closing[0].RefundsMinor != -back || books.Closing[0].SuspenseMinor != 0 {
			t.Errorf("the books close with %+v, %v; Stripe's ledger has %d in and %d out", books.Closing, err, truth, back)
		}
	})
	t.Logf("%d orders, %d kills, %d refunds, %d calls of the app", orders, kills, len(fake.Ledger().Payments), app.calls())
}

// resendDropped sends again what was never acknowledged.
func resendDropped(fake *stripefake.Server) {
	delivered := map[string]bool{}
	for _, r := range fake.DeliveryLog() {
		delivered[r.Event] = delivered[r.Event] || r.Acked
	}
	for _, e := range fake.Events() {
		if !delivered[e.ID] {
			_ = fake.Resend(e.ID) // it may be on its way by now
		}
	}
}

// detail is an order with everything.
func (d *demo) detail(ctx context.Context, t *testing.T, id string) store.OrderDetail {
	t.Helper()
	var o store.OrderDetail
	if status, err := d.api(ctx, http.MethodGet, "/v1/orders/"+id, nil, &o); status != http.StatusOK || err != nil {
		t.Fatalf("order %s: %d, %v", id, status, err)
	}
	return o
}

// flakyApp is a shop's own app that fails and loses answers.
type flakyApp struct {
	mu    sync.Mutex
	dice  *rand.Rand
	fair  bool
	took  map[string]int    // how often it took a key
	says  map[string]string // key → body: what it stands for
	total int
}

func newFlakyApp(seed uint64) *flakyApp {
	return &flakyApp{dice: rand.New(rand.NewPCG(seed, 0xa99)), took: map[string]int{}, says: map[string]string{}}
}

func (f *flakyApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut off: nothing came
	}
	key := r.Header.Get("Idempotency-Key")
	f.mu.Lock()
	f.total++
	roll := f.dice.Float64()
	if f.fair {
		roll = 1
	}
	switch {
	case roll < 0.1: // it fails before the work
	default:
		if was, known := f.says[key]; known && was != string(body) {
			f.took["two bodies under "+key]++
		}
		f.took[key]++
		f.says[key] = string(body)
	}
	f.mu.Unlock()
	switch {
	case roll < 0.1:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case roll < 0.2:
		panic(http.ErrAbortHandler)
	case roll < 0.25:
		w.WriteHeader(http.StatusInternalServerError) // after the work
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (f *flakyApp) calm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fair = true
}

func (f *flakyApp) times(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.took[key]
}

func (f *flakyApp) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// seen counts the keys that came, and the different bodies behind them: an
// operation under two keys, or two under one, makes the numbers differ.
func (f *flakyApp) seen() (keys, operations int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bodies := map[string]bool{}
	for _, b := range f.says {
		bodies[b] = true
	}
	return len(f.took), len(bodies)
}
