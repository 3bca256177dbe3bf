// Package storetest is what tests share to open a real store and to look for
// broken promises in it after each step. It is never part of the binary.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
)

// Clock is a clock that a test moves.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock starts at a fixed instant.
func NewClock() *Clock { return &Clock{t: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)} }

// Now is the injected clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// Options are what a test's store is opened with, on a file in dir.
func Options(dir string, clock *Clock) store.Options {
	return store.Options{
		Path:   filepath.Join(dir, "paidonce.db"),
		Env:    "sandbox",
		Scopes: map[string]string{"stripe": "stripe:self:test"},
		Now:    clock.Now,
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// Open opens a store in t.TempDir() and closes it, after a last Check, when
// the test ends.
func Open(t testing.TB, change ...func(*store.Options)) (*store.Store, *Clock) {
	t.Helper()
	clock := NewClock()
	o := Options(t.TempDir(), clock)
	for _, f := range change {
		f(&o)
	}
	s, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			Check(t, s)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, clock
}

// Check fails the test for every broken promise in the file.
func Check(t testing.TB, s *store.Store) {
	t.Helper()
	broken, err := s.CheckInvariants(context.Background())
	if err != nil {
		t.Errorf("check invariants: %v", err)
	}
	for _, line := range broken {
		t.Errorf("broken: %s", line)
	}
}

// Deliver stores events with the given bodies as if webhooks had brought them,
// and works until nothing is due. It fails the test if one is not stored, and
// returns what AddEvent said of each.
func Deliver(t testing.TB, s *store.Store, bodies ...string) []store.Added {
	t.Helper()
	var all []store.Added
	for _, body := range bodies {
		added, err := s.AddEvent(context.Background(), NewEvent(body))
		if err != nil {
			t.Fatalf("AddEvent: %v", err)
		}
		all = append(all, added)
	}
	Work(t, s)
	return all
}

// NewEvent is a verified delivery of body to the source "stripe".
func NewEvent(body string) store.NewEvent {
	env := payment.ParseEnvelope([]byte(body))
	if env.ID == "" {
		sum := sha256.Sum256([]byte(body))
		env.ID = "sha256:" + hex.EncodeToString(sum[:])
	}
	return store.NewEvent{Scope: "stripe:self:test", ID: env.ID, Source: "stripe", Tenant: "main", Via: "webhook",
		Type: env.Type, APIVersion: env.APIVersion, OccurredAt: store.Time(env.Created), Body: []byte(body)}
}

// Work applies what is due until nothing is, as the worker does, and fails the
// test when an event fails.
func Work(t testing.TB, s *store.Store) {
	t.Helper()
	for {
		claims, err := s.ClaimEvents(context.Background(), 64)
		if err != nil {
			t.Fatalf("ClaimEvents: %v", err)
		}
		if len(claims) == 0 {
			return
		}
		events := make([]store.Decoded, len(claims))
		for i, c := range claims {
			events[i] = store.Decoded{Claim: c, Event: payment.Decode(c.Body)}
		}
		for i, err := range s.ApplyEvents(context.Background(), events) {
			if err != nil {
				t.Fatalf("apply %s: %v", events[i].ID, err)
			}
		}
	}
}

// Register registers an order and fails the test if that is refused.
func Register(t testing.TB, s *store.Store, id string, total int64, currency string, change ...func(*store.NewOrder)) store.Order {
	t.Helper()
	n := store.NewOrder{ID: id, TotalMinor: &total, Currency: &currency}
	for _, f := range change {
		f(&n)
	}
	o, _, err := s.RegisterOrder(context.Background(), n)
	if err != nil {
		t.Fatalf("RegisterOrder(%s): %v", id, err)
	}
	return o
}

// Order returns an order with everything, and fails the test if it is not there.
func Order(t testing.TB, s *store.Store, id string) store.OrderDetail {
	t.Helper()
	o, err := s.FindOrder(context.Background(), "", id)
	if err != nil {
		t.Fatalf("FindOrder(%s): %v", id, err)
	}
	return o
}

// Event returns an event, and fails the test if it is not there.
func Event(t testing.TB, s *store.Store, id string) store.Event {
	t.Helper()
	e, err := s.FindEvent(context.Background(), "", id)
	if err != nil {
		t.Fatalf("FindEvent(%s): %v", id, err)
	}
	return e
}

// Fan is a Compose that sends every operation of an order, and no raw event,
// to each of the targets by http.
func Fan(targets ...string) store.Compose {
	return func(o store.Occasion) []store.Composed {
		if o.Order == nil {
			return nil
		}
		var all []store.Composed
		for _, target := range targets {
			all = append(all, store.Composed{Target: target, Kind: store.KindHTTP, Body: []byte(`{"type":"` + o.Operation + `"}`)})
		}
		return all
	}
}

// Claim claims what is due for a target, up to 100, and fails the test on an
// error.
func Claim(t testing.TB, s *store.Store, target string) []store.EffectClaim {
	t.Helper()
	claims, err := s.ClaimEffects(context.Background(), target, 100)
	if err != nil {
		t.Fatalf("ClaimEffects: %v", err)
	}
	return claims
}

// ClaimOne is Claim where exactly one effect must be due.
func ClaimOne(t testing.TB, s *store.Store, target string) store.EffectClaim {
	t.Helper()
	claims := Claim(t, s, target)
	if len(claims) != 1 {
		t.Fatalf("%d effects claimed for %s: %+v; want 1", len(claims), target, claims)
	}
	return claims[0]
}

// Finish writes down an answer, and fails the test if that is refused.
func Finish(t testing.TB, s *store.Store, c store.EffectClaim, a store.Answer) {
	t.Helper()
	if err := s.FinishEffect(context.Background(), c, a); err != nil {
		t.Fatalf("FinishEffect(%d): %v", c.Row, err)
	}
}

// Effects are all effects of an order, the oldest first.
func Effects(t testing.TB, s *store.Store, order string) []store.Effect {
	t.Helper()
	return Order(t, s, order).Effects
}
