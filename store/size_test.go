package store_test

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

var manyEvents = flag.Int("size.events", 20_000, "how many done events the larger file of BenchmarkSize has")

// BenchmarkSize is what each look at the file costs, of one with 1,000 done
// events and of one with many. The promise is for -size.events=1000000: ready in
// under a second, and all others at most half as long again.
func BenchmarkSize(b *testing.B) {
	for _, n := range []int{1000, *manyEvents} {
		clock := storetest.NewClock()
		o := storetest.Options(b.TempDir(), clock)
		s, err := store.Open(ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		storetest.Fill(b, o.Path, n)
		b.Run(fmt.Sprintf("ready/events=%d", n), func(b *testing.B) {
			for b.Loop() {
				s, err := store.Open(ctx, o)
				if err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(s.Ready(ctx), s.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
		if s, err = store.Open(ctx, o); err != nil {
			b.Fatal(err)
		}
		for _, look := range looks() {
			b.Run(fmt.Sprintf("%s/events=%d", look.name, n), func(b *testing.B) {
				for b.Loop() {
					if err := look.run(s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

type look struct {
	name string
	run  func(s *store.Store) error
}

func looks() []look {
	list := func(f store.EventFilter) func(s *store.Store) error {
		return func(s *store.Store) error { _, err := s.ListEvents(ctx, f); return err }
	}
	orders := func(f store.OrderFilter) func(s *store.Store) error {
		return func(s *store.Store) error { _, err := s.ListOrders(ctx, f); return err }
	}
	effects := func(f store.EffectFilter) func(s *store.Store) error {
		return func(s *store.Store) error { _, err := s.ListEffects(ctx, f); return err }
	}
	return []look{
		{"stats", func(s *store.Store) error { _, err := s.Stats(ctx); return err }},
		{"events", list(store.EventFilter{})},
		{"events pending", list(store.EventFilter{Status: "pending"})},
		{"events quarantined", list(store.EventFilter{Status: "quarantined"})},
		{"events unlinked", list(store.EventFilter{Verdict: "unlinked"})},
		{"events ignored", list(store.EventFilter{Verdict: "ignored"})},
		{"events of a type", list(store.EventFilter{Type: "charge.dispute.closed"})},
		{"events of a source", list(store.EventFilter{Source: "github"})},
		{"events of an order", list(store.EventFilter{Order: "BIG-7"})},
		{"orders", orders(store.OrderFilter{})},
		{"orders disputed", orders(store.OrderFilter{Status: "disputed"})},
		{"orders attention", orders(store.OrderFilter{Attention: "any"})},
		{"orders by email", orders(store.OrderFilter{Query: "c7@example.com"})},
		{"order", func(s *store.Store) error { _, err := s.FindOrder(ctx, "main", "BIG-7"); return err }},
		{"event", func(s *store.Store) error { _, err := s.FindEvent(ctx, "", "evt_big28"); return err }},
		{"effects", effects(store.EffectFilter{})},
		{"effects failed", effects(store.EffectFilter{Status: "failed"})},
		{"effects done", effects(store.EffectFilter{Status: "done"})},
		{"effects of a kind", effects(store.EffectFilter{Kind: "stripe"})},
		{"effects of a target", effects(store.EffectFilter{Target: "mail"})},
		{"entries", func(s *store.Store) error { _, err := s.ListEntries(ctx, store.EntryFilter{Limit: 50}); return err }},
		{"alerts", func(s *store.Store) error { _, err := s.CheckAlerts(ctx, store.AlertRules{}); return err }},
		{"checkups", func(s *store.Store) error { _, err := s.Checkups(ctx, nil, false, 100); return err }},
		{"reports", func(s *store.Store) error { _, err := s.Reports(ctx, 20); return err }},
		{"purge plan", func(s *store.Store) error { _, err := s.PlanPurge(ctx, 1_800_000_000_000); return err }},
		{"purge", func(s *store.Store) error {
			p := s.BeginPurge(1_800_000_000_000)
			for more := true; more; {
				var err error
				if more, err = p.Step(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
		{"claim events", func(s *store.Store) error { _, err := s.ClaimEvents(ctx, 64); return err }},
		{"release expired", func(s *store.Store) error { _, err := s.ReleaseExpired(ctx); return err }},
		{"fan out waiting", func(s *store.Store) error { _, err := s.FanOutWaiting(ctx, 100); return err }},
		{"claim effects", func(s *store.Store) error { _, err := s.ClaimEffects(ctx, "app", 64); return err }},
	}
}

// TestAFilledFileKeepsEveryPromise: what the benchmarks and the plan test look
// at is a file as the service makes it.
func TestAFilledFileKeepsEveryPromise(t *testing.T) {
	clock := storetest.NewClock()
	path := filepath.Join(t.TempDir(), "paidonce.db")
	s := reopen(t, path, clock)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	storetest.Fill(t, path, 400)
	s = reopen(t, path, clock)
	storetest.Check(t, s)
	for _, look := range looks() {
		if err := look.run(s); err != nil {
			t.Errorf("%s: %v", look.name, err)
		}
	}
	if o := storetest.Order(t, s, "BIG-7"); o.ReceivedMinor != 1250 || len(o.Timeline) == 0 || len(o.Effects) != 1 {
		t.Errorf("%+v", o)
	}
}
