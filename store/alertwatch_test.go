package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// listed takes in an event as a reconciliation lists it.
func listed(t *testing.T, s *store.Store, clock *storetest.Clock, ids ...string) {
	t.Helper()
	run, err := s.BeginRun(ctx, store.RunRequest{Reason: store.RunScheduled,
		Sources: []store.ReconcileSource{{Name: "stripe", Scope: "stripe:self:test", Tenant: "main"}},
		Types:   map[string][][]string{"stripe": {{"payment_intent.succeeded"}}}})
	if err != nil {
		t.Fatal(err)
	}
	page := store.EventPage{}
	for _, id := range ids {
		e := storetest.NewEvent(intent(id, "pi_"+id, "succeeded", clock.Now().Unix(), 1250, ""))
		e.Via = "reconcile"
		page.Events, page.Last = append(page.Events, e), id
	}
	if _, _, err := s.TakePage(ctx, run.ID, run.Sweeps[0], page); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FinishRun(ctx, run.ID, nil); err != nil {
		t.Fatal(err)
	}
	storetest.Work(t, s)
}

// alerts are what a check tells of the named alerts.
func alerts(t *testing.T, s *store.Store, names ...string) (told []string) {
	t.Helper()
	all, err := s.CheckAlerts(ctx, store.AlertRules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if slices.Contains(names, a.Name) {
			told = append(told, fmt.Sprint(a.Name, " ", a.State, " ", a.Count))
		}
	}
	return told
}

// TestWhatNoWebhookBroughtIsTold: an event that reconciliation found, and that no
// webhook brings within ten minutes, is told of; one whose webhook comes late is
// not.
func TestWhatNoWebhookBroughtIsTold(t *testing.T) {
	s, clock := storetest.Open(t)
	clock.Advance(time.Hour)
	listed(t, s, clock, "evt_lost", "evt_late")
	if got := alerts(t, s, store.AlertUndelivered); len(got) != 0 {
		t.Errorf("at once: %v", got)
	}
	storetest.Deliver(t, s, intent("evt_late", "pi_evt_late", "succeeded", clock.Now().Unix(), 1250, ""))
	clock.Advance(11 * time.Minute)
	if got := alerts(t, s, store.AlertUndelivered); !slices.Equal(got, []string{"undelivered firing 1"}) {
		t.Errorf("after eleven minutes: %v", got)
	}
	clock.Advance(25 * time.Hour)
	if got := alerts(t, s, store.AlertUndelivered); !slices.Equal(got, []string{"undelivered resolved 0"}) {
		t.Errorf("a day later: %v", got)
	}
}

// TestSilenceIsToldOf: nothing has come for a day, while Stripe had events. A
// quiet shop is no reason to tell.
func TestSilenceIsToldOf(t *testing.T) {
	s, clock := storetest.Open(t)
	storetest.Deliver(t, s, intent("evt_1", "pi_1", "succeeded", clock.Now().Unix(), 1250, ""))
	clock.Advance(30 * time.Hour)
	if got := alerts(t, s, store.AlertSilence); len(got) != 0 {
		t.Errorf("in a quiet shop: %v", got)
	}
	listed(t, s, clock, "evt_2")
	if got := alerts(t, s, store.AlertSilence); !slices.Equal(got, []string{"silence firing 1"}) {
		t.Errorf("while Stripe has events: %v", got)
	}
	storetest.Deliver(t, s, intent("evt_3", "pi_3", "succeeded", clock.Now().Unix(), 1250, ""))
	if got := alerts(t, s, store.AlertSilence); !slices.Equal(got, []string{"silence resolved 0"}) {
		t.Errorf("after a webhook: %v", got)
	}
}

// TestFindingsAreToldOnceAndEnd: what a watch found is told, not again while it
// is the same, and its end.
func TestFindingsAreToldOnceAndEnd(t *testing.T) {
	s, clock := storetest.Open(t)
	find := func(found ...store.Finding) {
		t.Helper()
		if err := s.Find(ctx, store.AlertEndpoint, found); err != nil {
			t.Fatal(err)
		}
	}
	find(store.Finding{Thing: "we_1", Text: "it is disabled"})
	if got := alerts(t, s, store.AlertEndpoint); !slices.Equal(got, []string{"endpoint firing 1"}) {
		t.Errorf("told %v", got)
	}
	clock.Advance(10 * time.Minute)
	find(store.Finding{Thing: "we_1", Text: "it is disabled"})
	if got := alerts(t, s, store.AlertEndpoint); len(got) != 0 {
		t.Errorf("told again: %v", got)
	}
	find(store.Finding{Thing: "we_1", Text: "it is disabled"}, store.Finding{Thing: "we_2", Text: "too"})
	if got := alerts(t, s, store.AlertEndpoint); !slices.Equal(got, []string{"endpoint firing 2"}) {
		t.Errorf("one more: %v", got)
	}
	find()
	if got := alerts(t, s, store.AlertEndpoint); !slices.Equal(got, []string{"endpoint resolved 0"}) {
		t.Errorf("at the end: %v", got)
	}
}
