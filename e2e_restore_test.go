package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
	"paidonce/worker/stripefake"
)

// beside runs fn on the service's file as a command does.
func (s *lossyShop) beside(ctx context.Context, t *testing.T, fn func(st *store.Store) error) {
	t.Helper()
	o := storetest.Options(s.dir, storetest.NewClock())
	o.Mode, o.Now = store.Client, time.Now
	st, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := fn(st); err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

// TestRestoreOfLastNightsBackup: the disk is lost, and with it a day of orders,
// payments and refunds. After the restore, one reconciliation and the release no
// payment is missing, no refund was made twice, and the shop's app was told
// again under the same keys only.
func TestRestoreOfLastNightsBackup(t *testing.T) {
	orders := 8
	app := newFlakyApp(1)
	app.calm()
	shop := httptest.NewServer(app)
	t.Cleanup(shop.Close)
	ctx, s := newLossyShop(t, func(stripefake.DeliveryRequest) bool { return false },
		fmt.Sprintf("[[effect]]\nname = \"app\"\non = [\"order.paid\", \"refund.succeeded\"]\ndo = \"http\"\nurl = %q\n", shop.URL))
	pay := func(first, beyond int) {
		t.Helper()
		for i := first; i < beyond; i++ {
			s.payOne(ctx, t, i)
		}
		if err := s.fake.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		s.quiet(ctx, t)
	}
	refund := func(order, request string) store.EffectDetail {
		t.Helper()
		var e store.EffectDetail
		if status, err := s.api(ctx, http.MethodPost, "/v1/orders/"+order+"/refund", map[string]any{"request_id": request, "amount_minor": 100}, &e); err != nil || status != http.StatusAccepted {
			t.Fatalf("refund %s: %d, %v", request, status, err)
		}
		return e
	}
	rest := func(id string) store.EffectDetail {
		t.Helper()
		var e store.EffectDetail
		for {
			if status, err := s.api(ctx, http.MethodGet, "/v1/effects/"+id, nil, &e); err != nil || status != http.StatusOK {
				t.Fatalf("effect %s: %d, %v", id, status, err)
			}
			if e.Status == "done" || e.Status == "failed" {
				return e
			}
		}
	}

	pay(0, orders/2)
	rest(refund("R-0", "before").ID)
	backup := filepath.Join(t.TempDir(), "night.db")
	s.beside(ctx, t, func(st *store.Store) error {
		_, err := st.Backup(ctx, backup, func(int, int) {})
		return err
	})
	// The day after: of this the backup knows nothing.
	pay(orders/2, orders)
	day := rest(refund("R-0", "day").ID)
	rest(refund("R-5", "day").ID)
	if err := s.fake.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	s.quiet(ctx, t)
	want := s.told(ctx, t, orders)
	s.settled(ctx, t)
	told := app.keys()
	s.stop()

	if _, err := store.Restore(ctx, store.RestoreOptions{Path: filepath.Join(s.dir, "paidonce.db"), From: backup, Env: "sandbox", Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	if err := s.start(ctx, demoChild{}); err != nil {
		t.Fatal(err)
	}
	s.point()
	for i := orders / 2; i < orders; i++ { // the shop registers again what it sold since
		s.register(ctx, t, i, nil)
	}
	again := refund("R-0", "day") // and asks again for a refund that it does not know to have been made
	r := s.reconcile(ctx, t)
	s.quiet(ctx, t)
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	if calls := app.calls(); calls != told {
		t.Errorf("before the release the app was called %d times; want %d", calls, told)
	}
	s.beside(ctx, t, func(st *store.Store) error {
		_, err := st.Release(ctx)
		return err
	})
	if e := rest(again.ID); e.Status != "done" || e.IdempotencyKey != day.IdempotencyKey || e.ProviderRef != day.ProviderRef {
		t.Errorf("the refund asked for again is %s, %s; want %s under %s", e.Status, e.ProviderRef, day.ProviderRef, day.IdempotencyKey)
	}
	s.settled(ctx, t)
	got := s.told(ctx, t, orders)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("restored %s\nbefore   %s", got[i], want[i])
		}
	}
	for _, key := range []string{day.IdempotencyKey} {
		if n := len(s.fake.RefundsWith("paidonce_operation", key)); n != 1 {
			t.Errorf("Stripe made %d refunds of %s", n, key)
		}
	}
	// What was told again is told under its old key, by which the app knows it.
	if keys, calls := app.keys(), app.calls(); keys != told || calls <= told {
		t.Errorf("the app saw %d keys in %d calls; %d keys before the restore", keys, calls, told)
	}
	if err := s.fake.Check(); err != nil {
		t.Error(err)
	}
	if again := s.reconcile(ctx, t); !again.Agrees() {
		t.Errorf("the next run: %s; %+v", again.Summary, again.Differences)
	}
	checkFile(t, s.demo, nil)
}

// keys is how many different keys the app was called with.
func (f *flakyApp) keys() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.took {
		if strings.HasPrefix(key, "po_") {
			n++
		}
	}
	return n
}

// settled waits until no effect is under way.
func (s *lossyShop) settled(ctx context.Context, t *testing.T) {
	t.Helper()
	for {
		var st store.Stats
		if status, err := s.api(ctx, http.MethodGet, "/v1/stats", nil, &st); err != nil || status != http.StatusOK {
			t.Fatalf("stats: %d, %v", status, err)
		}
		if st.Effects["pending"]+st.Effects["sending"]+st.Effects["unknown"] == 0 {
			return
		}
	}
}

// register registers order i; out is what the service answers.
func (s *lossyShop) register(ctx context.Context, t *testing.T, i int, checkout map[string]any) (url string) {
	t.Helper()
	var got struct {
		CheckoutURL string `json:"checkout_url"`
	}
	in := map[string]any{
		"id": fmt.Sprintf("R-%d", i), "total_minor": 1000 + int64(i), "currency": []string{"eur", "usd"}[i%2],
		"items": []map[string]any{{"sku": "mug", "name": "Mug", "quantity": 1, "unit_minor": 1000 + int64(i)}}}
	if checkout != nil {
		in["checkout"] = checkout
	}
	if status, err := s.api(ctx, http.MethodPost, "/v1/orders", in, &got); err != nil || status >= 300 {
		t.Fatalf("register: %d, %v", status, err)
	}
	return got.CheckoutURL
}

// payOne registers order i and has it paid by card; it returns its charge.
func (s *lossyShop) payOne(ctx context.Context, t *testing.T, i int) (charge string) {
	t.Helper()
	url := s.register(ctx, t, i, map[string]any{"success_url": "https://shop.example/thanks"})
	if err := s.fake.Do(func(a *stripefake.Account) error {
		paid, err := a.PaySession(url[strings.LastIndex(url, "/")+1:], stripefake.Card)
		if err != nil {
			return err
		}
		intent, _ := a.FindIntent(paid.Intent)
		charge = intent.LatestCharge()
		return nil
	}); err != nil {
		t.Fatalf("pay %q: %v", url, err)
	}
	return charge
}
