package main

import (
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/store"
)

// TestALockOfThreeSecondsIsWaitedFor: another program holds the write lock for
// three seconds. All senders wait, none is told a lie, and each gets its 200
// once the file is free.
func TestALockOfThreeSecondsIsWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("holds the lock for three seconds")
	}
	ctx, d := startDemo(t)
	const senders = 16
	sales := make([]*sale, senders)
	for i := range sales {
		var err error
		if sales[i], err = d.register(ctx); err != nil {
			t.Fatal(err)
		}
	}
	release, err := store.HoldLock(ctx, filepath.Join(d.dir, defaultDB))
	if err != nil {
		t.Fatal(err)
	}
	var free atomic.Bool
	var wg sync.WaitGroup
	events := make([]string, senders)
	for i, s := range sales {
		wg.Go(func() {
			var body []byte
			events[i], body = s.paid(d)
			r, err := d.post(ctx, body)
			if early := !free.Load(); err != nil || r.code != http.StatusOK || early {
				t.Errorf("answer %v, %v, before the file was free: %t; want 200 afterwards", r, err, early)
			}
		})
	}
	<-time.After(3 * time.Second) // what the test is about
	free.Store(true)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for i, s := range sales {
		e, err := d.settled(ctx, events[i])
		if err != nil || e.Verdict != "applied" || e.Attempts != 0 || e.Deliveries != 1 {
			t.Errorf("%s: %+v, %v; want it applied at the first attempt", events[i], e, err)
		}
		o, err := d.order(ctx, s.order)
		if err != nil || o.Status != "paid" || o.paidTimes() != 1 {
			t.Errorf("%s: %+v, %v; want it paid once", s.order, o, err)
		}
	}
	checkFile(t, d, nil)
}
