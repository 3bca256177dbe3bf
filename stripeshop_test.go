package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/worker"
)

// stripeSender is Stripe, as far as a serve sees it.
type stripeSender func(c store.EffectClaim) store.Answer

func (s stripeSender) Send(_ context.Context, c store.EffectClaim) store.Answer { return s(c) }

// servedBy makes the world's database one with a Stripe key, and carries out its
// effects as serve does, until the test ends. Without an answer nobody carries
// them out, but the file is served all the same.
func (w *world) servedBy(answer stripeSender) *store.Store {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(w.t.Context(), store.Options{
		Path: defaultDB, Mode: store.Serve, Env: "sandbox", Unlinked: "watch", StripeKey: "sk_test", Targets: []string{store.StripeTarget},
		Now: time.Now, Log: log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	stop, stopNow := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	if answer == nil {
		ended <- nil
	} else {
		e := worker.NewEffects(worker.EffectsConfig{Log: log, Now: time.Now, Poll: 5 * time.Millisecond,
			Senders: map[string]worker.Sender{store.StripeTarget: answer}})
		go func() { ended <- e.Run(stop, context.Background(), s) }()
	}
	w.t.Cleanup(func() {
		stopNow()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

// newStripeShop is a shop whose serve had a Stripe key and has ended.
func newStripeShop(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	s, err := store.Open(t.Context(), store.Options{Path: defaultDB, Mode: store.Serve, Env: "sandbox", StripeKey: "sk_test",
		Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// agrees answers everything as Stripe does on a good day.
func agrees(c store.EffectClaim) store.Answer {
	switch a := (store.Answer{Outcome: store.OutcomeDone, Status: 200, RequestID: "req_1"}); c.Operation[:3] {
	case "ref":
		a.Ref = "re_1"
		return a
	case "che":
		a.Ref = "cs_1"
		a.Result = json.RawMessage(`{"session":"cs_1","url":"https://pay.example/cs_1","expires_at":"2026-12-02T09:00:00Z"}`)
		return a
	default:
		return a
	}
}

func refusesWith(code, text string) stripeSender {
	return func(store.EffectClaim) store.Answer {
		return store.Answer{Outcome: store.OutcomeRefused, Status: 400, Code: code, Error: text}
	}
}
