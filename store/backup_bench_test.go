package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// BenchmarkBackup is what a backup costs those who send meanwhile: the p99 of
// accepts by 16 senders without one and beside one, of a file with 200,000 done
// events, in one run. The promise is a ratio of at most 3:
//
//	go test ./store -run '^$' -bench Backup -benchtime 1x
func BenchmarkBackup(b *testing.B) {
	clock := storetest.NewClock()
	o := storetest.Options(b.TempDir(), clock)
	o.Now = time.Now
	s, err := store.Open(ctx, o)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	storetest.Fill(b, o.Path, 200_000)
	if s, err = store.Open(ctx, o); err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	o.Mode = store.Client
	beside, err := store.Open(ctx, o)
	if err != nil {
		b.Fatal(err)
	}
	defer beside.Close()
	serial := new(atomic.Int64)
	// load sends until during has ended, and returns the p99 in milliseconds.
	load := func(during func()) float64 {
		var mu sync.Mutex
		var took []time.Duration
		stop, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for stop.Err() == nil {
					n := serial.Add(1)
					e := storetest.NewEvent(pays(fmt.Sprint("evt_load", n), fmt.Sprint("pi_load", n), 1))
					begin := time.Now()
					if _, err := s.AddEvent(ctx, e); err != nil {
						b.Error(err)
						return
					}
					mu.Lock()
					took = append(took, time.Since(begin))
					mu.Unlock()
				}
			})
		}
		during()
		cancel()
		wg.Wait()
		slices.Sort(took)
		return float64(took[len(took)*99/100].Microseconds()) / 1000
	}
	for b.Loop() {
		var alone time.Duration
		with := load(func() {
			begin := time.Now()
			if _, err := beside.Backup(ctx, o.Path+".copy", quietly); err != nil {
				b.Error(err)
			}
			alone = time.Since(begin)
		})
		without := load(func() { time.Sleep(alone) })
		b.ReportMetric(without, "p99-ms-without")
		b.ReportMetric(with, "p99-ms-beside")
		b.ReportMetric(with/without, "ratio")
		b.ReportMetric(alone.Seconds(), "backup-s")
	}
}
