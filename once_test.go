package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// startDemo starts the real service in a process of its own, on a file in a
// directory of the test's, and ends it with the test.
func startDemo(t *testing.T) (context.Context, *demo) {
	t.Helper()
	t.Setenv(runMain, "1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	d, err := newDemo(&app{process: process{now: time.Now, stdout: io.Discard}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.start(ctx, demoChild{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	return ctx, d
}

// checkFile stops the service and looks for broken promises in what it left.
func checkFile(t *testing.T, d *demo, look func(s *store.Store)) {
	t.Helper()
	d.stop()
	o := storetest.Options(d.dir, storetest.NewClock())
	o.Mode = store.Client
	s, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Check(t, s)
	if look != nil {
		look(s)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestCopiesAtOnceCountOnce: 100 ids, 50 copies of each, all at once.
func TestCopiesAtOnceCountOnce(t *testing.T) {
	ids, copies := 100, 50
	if testing.Short() {
		ids, copies = 5, 20
	}
	ctx, d := startDemo(t)
	type delivery struct{ body []byte }
	var all []delivery
	events, orders := make([]string, ids), make([]string, ids)
	for i := range ids {
		s, err := d.register(ctx)
		if err != nil {
			t.Fatal(err)
		}
		id, body := s.paid(d)
		events[i], orders[i] = id, s.order
		for range copies {
			all = append(all, delivery{body})
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	todo := make(chan delivery, len(all))
	for _, x := range all {
		todo <- x
	}
	close(todo)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for x := range todo {
				if r, err := d.post(ctx, x.body); err != nil || r.code != http.StatusOK {
					t.Errorf("answer %v, %v; want 200", r, err)
				}
			}
		})
	}
	wg.Wait()
	for i, id := range events {
		e, err := d.settled(ctx, id)
		if err != nil || e.Verdict != "applied" || e.Deliveries != int64(copies) {
			t.Errorf("%s: %+v, %v; want applied with %d deliveries", id, e, err, copies)
		}
		o, err := d.order(ctx, orders[i])
		if err != nil || o.Status != "paid" || o.ReceivedMinor != 1250 || o.paidTimes() != 1 || len(o.Entries) != 1 {
			t.Errorf("%s: %+v, %v; want it paid once", orders[i], o, err)
		}
	}
	checkFile(t, d, func(s *store.Store) {
		page, err := s.ListEvents(ctx, store.EventFilter{Limit: 200})
		if err != nil || len(page.Items) != ids {
			t.Errorf("%d rows, %v; want %d", len(page.Items), err, ids)
		}
	})
}

// TestKillsLoseNothingAndDoubleNothing: kill -9 at random moments under load.
func TestKillsLoseNothingAndDoubleNothing(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 3
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	ctx, d := startDemo(t)
	var mu sync.Mutex
	acked := map[string]string{} // event → order
	for range rounds {
		round, cancel := context.WithCancel(ctx)
		got := make(chan struct{}, 1<<16)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for round.Err() == nil {
					s, err := d.register(round)
					if err != nil {
						return
					}
					id, body := s.paid(d)
					if r, err := d.post(round, body); err == nil && r.code == http.StatusOK {
						mu.Lock()
						acked[id] = s.order
						mu.Unlock()
						got <- struct{}{}
					}
				}
			})
		}
		// At any moment, but not before some were acknowledged: a slow machine
		// must not make the test an empty one.
		for range 1 + rng.IntN(120) {
			select {
			case <-got:
			case <-ctx.Done():
				t.Fatal("the service acknowledges nothing")
			}
		}
		<-time.After(time.Duration(rng.IntN(5000)) * time.Microsecond)
		d.kill()
		cancel()
		wg.Wait()
		if err := d.start(ctx, demoChild{}); err != nil {
			t.Fatal(err)
		}
	}
	for id, order := range acked {
		e, err := d.settled(ctx, id)
		if err != nil {
			t.Fatalf("%s was acknowledged: %v", id, err)
		}
		if e.Status != "done" || e.Verdict != "applied" {
			t.Errorf("%s was acknowledged and is %+v", id, e)
		}
		o, err := d.order(ctx, order)
		if err != nil || o.Status != "paid" || o.ReceivedMinor != 1250 || o.paidTimes() != 1 || len(o.Entries) != 1 {
			t.Errorf("%s: %+v, %v; want it paid once", order, o, err)
		}
	}
	if len(acked) < rounds {
		t.Errorf("only %d events were acknowledged in %d rounds", len(acked), rounds)
	}
	t.Logf("%d acknowledged events survived %d kills", len(acked), rounds)
	checkFile(t, d, func(s *store.Store) {
		st, err := s.Stats(ctx)
		if err != nil || st.Quarantined != 0 {
			t.Errorf("%d rows quarantined by the kills, %v", st.Quarantined, err)
		}
	})
}

// TestADyingClientTakesNothingAlong: connections that are reset right after a
// whole event was sent (cases.md B61).
func TestADyingClientTakesNothingAlong(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 60
	}
	ctx, d := startDemo(t)
	events := make(chan string, n)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range n / 32 {
				i := d.number()
				s := &sale{order: fmt.Sprintf("reset-%d", i), intent: fmt.Sprintf("pi_reset%d", i)}
				id, body := s.paid(d)
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.public)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = fmt.Fprintf(conn, "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s", d.sign(body), len(body), body)
				<-time.After(rand.N(20 * time.Millisecond))
				err = errors.Join(err, conn.(*net.TCPConn).SetLinger(0), conn.Close())
				if err != nil {
					t.Error(err)
				}
				events <- id
			}
		})
	}
	wg.Wait()
	close(events)
	for range 50 {
		s, err := d.register(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, body := s.paid(d)
		if r, err := d.post(ctx, body); err != nil || r.code != http.StatusOK {
			t.Errorf("a normal sender gets %v, %v", r, err)
		}
	}
	stored := 0
	for id := range events {
		_, known, err := d.event(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if !known {
			continue // it died before the server had read it
		}
		stored++
		if e, err := d.settled(ctx, id); err != nil || e.Deliveries != 1 || e.Verdict != "unlinked" {
			t.Errorf("%s: %+v, %v; want it worked on once", id, e, err)
		}
	}
	t.Logf("%d of %d events of dying clients were stored", stored, n)
	if release, err := store.HoldLock(ctx, filepath.Join(d.dir, defaultDB)); err != nil {
		t.Errorf("another program gets no lock: %v", err)
	} else if err := release(); err != nil {
		t.Error(err)
	}
	checkFile(t, d, nil)
}

// TestAnEventFindsItsOrderWheneverThatIsRegistered: before, in the same
// instant, and after, the order ends paid at once, without a retry.
func TestAnEventFindsItsOrderWheneverThatIsRegistered(t *testing.T) {
	n := 100
	if testing.Short() {
		n = 10
	}
	ctx, d := startDemo(t)
	for i := range n {
		k := d.number()
		s := &sale{order: fmt.Sprintf("race-%d", k), intent: fmt.Sprintf("pi_race%d", k)}
		id, body := s.paid(d)
		post := func() {
			if r, err := d.post(ctx, body); err != nil || r.code != http.StatusOK {
				t.Errorf("post: %v, %v", r, err)
			}
		}
		register := func() {
			status, err := d.api(ctx, http.MethodPost, "/v1/orders", map[string]any{"id": s.order, "total_minor": 1250, "currency": "eur"}, nil)
			if err != nil || status != http.StatusCreated {
				t.Errorf("register: %d, %v", status, err)
			}
		}
		switch i % 3 {
		case 0: // together
			var wg sync.WaitGroup
			wg.Go(post)
			wg.Go(register)
			wg.Wait()
		case 1: // the event long before
			post()
			if _, err := d.settled(ctx, id); err != nil {
				t.Error(err)
			}
			register()
		default:
			register()
			post()
		}
		e, err := d.settled(ctx, id)
		o, err2 := d.order(ctx, s.order)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if o.Status != "paid" || e.Verdict != "applied" || e.Attempts != 0 || o.paidTimes() != 1 {
			t.Errorf("round %d: order %s, event %s after %d attempts", i, o.Status, e.Verdict, e.Attempts)
		}
	}
	checkFile(t, d, nil)
}

// TestALockedFileIsWaitedForAndThenSaid: another program holds the write lock
// until the first sender has been told 503.
func TestALockedFileIsWaitedForAndThenSaid(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the service gives up, 5 to 8 s; the store's own test has a small version")
	}
	ctx, d := startDemo(t)
	release, err := store.HoldLock(ctx, filepath.Join(d.dir, defaultDB))
	if err != nil {
		t.Fatal(err)
	}
	s := &sale{order: "locked", intent: "pi_locked"}
	_, body := s.paid(d)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.public+"/webhooks/stripe", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", d.sign(body))
	resp, err := (&http.Client{Timeout: 12 * time.Second}).Do(req) // the contract is 8 s
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("while it is locked: %d, Retry-After %q; want 503 with one", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	if code := d.get(t, d.public, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz %d while the file is locked, want 200", code)
	}
	if code := d.get(t, d.admin, "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz %d while the file is locked, want 503", code)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if r, err := d.post(ctx, body); err != nil || r.code != http.StatusOK {
		t.Errorf("once it is free: %v, %v; want 200", r, err)
	}
	checkFile(t, d, nil)
}

// get returns the status of a path.
func (d *demo) get(t *testing.T, host, path string) int {
	t.Helper()
	resp, err := d.client.Get("http://" + host + path)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestAFullDiskIsSaidAndHeals fills a small file system where one may be
// mounted, and a small file elsewhere.
func TestAFullDiskIsSaidAndHeals(t *testing.T) {
	t.Setenv(runMain, "1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	unmount, small := mountSmall(t, dir)
	defer unmount()
	d, err := newDemo(&app{process: process{now: time.Now, stdout: io.Discard}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.start(ctx, demoChild{}); err != nil {
		t.Fatal(err)
	}
	defer d.stop()
	filler := filepath.Join(dir, "filler")
	if small {
		fill(t, filler)
	} else if err := d.limitPages(1); err != nil {
		t.Fatal(err)
	}
	acked := map[string]bool{}
	refused := 0
	post := func(n int) {
		s := &sale{order: fmt.Sprintf("full-%d", n), intent: fmt.Sprintf("pi_full%d", n)}
		id, body := s.event(d, "processing", 0, func(event, _ map[string]any) { event["padding"] = strings.Repeat("x", 300<<10) })
		switch r, err := d.post(ctx, body); {
		case err != nil:
			t.Fatal(err)
		case r.code == http.StatusOK:
			acked[id] = true
		case r.code == http.StatusServiceUnavailable:
			refused++
		default:
			t.Errorf("answer %v", r)
		}
	}
	for n := range 10 {
		post(n)
	}
	if refused == 0 {
		t.Error("a full disk refused nothing")
	}
	if code := d.get(t, d.public, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz %d on a full disk, want 200", code)
	}
	if small {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	} else if err := d.limitPages(0); err != nil {
		t.Fatal(err)
	}
	before := refused
	for n := range 3 {
		post(100 + n)
	}
	if refused != before {
		t.Error("it still refuses after there is room again")
	}
	for id := range acked {
		if _, err := d.settled(ctx, id); err != nil {
			t.Errorf("%s was acknowledged: %v", id, err)
		}
	}
	checkFile(t, d, func(s *store.Store) {
		page, err := s.ListEvents(ctx, store.EventFilter{Limit: 200})
		if err != nil || len(page.Items) != len(acked) {
			t.Errorf("%d rows, %v; want the %d that got a 200", len(page.Items), err, len(acked))
		}
	})
}
