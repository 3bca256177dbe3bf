package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

func purge(t *testing.T, s *store.Store, before time.Time) *store.Purge {
	t.Helper()
	p := s.BeginPurge(store.At(before))
	for more := true; more; {
		var err error
		if more, err = p.Step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func hasPayload(t *testing.T, s *store.Store, id string) bool {
	t.Helper()
	return len(storetest.Event(t, s, id).Payload) > 0
}

// TestPurgeKeepsWhatIsNotDoneWith: payloads of old, done events go; pending,
// quarantined, watched unlinked and recent ones stay, and so does every row, so
// that a repeat is a duplicate for ever (cases.md B19).
func TestPurgeKeepsWhatIsNotDoneWith(t *testing.T) {
	s, clock := storetest.Open(t, fan("app"))
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Register(t, s, "ORD-2", 9999, "eur")
	clock.Advance(time.Minute)
	old := paysFor("evt_old", "pi_1", "ORD-1", opened+1)
	storetest.Deliver(t, s, old,
		paysFor("evt_wrong", "pi_2", "ORD-2", opened+2),
		paysFor("evt_unlinked", "pi_3", "ORD-none", opened+3))
	storetest.Work(t, s)
	for _, c := range storetest.Claim(t, s, "app") {
		storetest.Finish(t, s, c, done)
	}
	if _, err := s.AddEvent(ctx, storetest.NewEvent(paysFor("evt_pending", "pi_4", "ORD-1", opened+4))); err != nil { // nobody works on it
		t.Fatal(err)
	}
	clock.Advance(40 * 24 * time.Hour)
	if _, err := s.AddEvent(ctx, storetest.NewEvent(paysFor("evt_new", "pi_1", "ORD-1", opened+5))); err != nil {
		t.Fatal(err)
	}
	cutoff := clock.Now().AddDate(0, 0, -30)

	plan, err := s.PlanPurge(ctx, store.At(cutoff))
	if err != nil || plan.Payloads != 1 || plan.Effects != 1 || plan.Kept.Pending != 1 || plan.Kept.Quarantined != 1 || plan.Kept.Unlinked != 1 || plan.PayloadBytes == 0 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if !hasPayload(t, s, "evt_old") {
		t.Error("the plan has let a payload go")
	}
	p := purge(t, s, cutoff)
	if p.Payloads != 1 || p.Effects != 1 {
		t.Errorf("%d payloads and %d effects went", p.Payloads, p.Effects)
	}
	for id, want := range map[string]bool{"evt_old": false, "evt_wrong": true, "evt_unlinked": true, "evt_pending": true, "evt_new": true} {
		if got := hasPayload(t, s, id); got != want {
			t.Errorf("%s has a payload: %t", id, got)
		}
	}
	if _, err := s.RequeueEvent(ctx, "stripe:self:test", "evt_old"); err == nil || !strings.Contains(fmt.Sprint(err), "purged") {
		t.Errorf("requeue of a purged event: %v", err)
	}
	effect := storetest.Effects(t, s, "ORD-1")[0]
	d, err := s.FindEffect(ctx, effect.ID)
	if err != nil || strings.Contains(string(d.Body), "order.paid") {
		t.Errorf("what was sent is still there: %s, %v", d.Body, err)
	}
	if _, err := s.RetryEffect(ctx, effect.ID); err == nil {
		t.Error("an effect without a body was sent again")
	}
	if got, err := s.AddEvent(ctx, storetest.NewEvent(old)); err != nil || !got.Duplicate {
		t.Error("the purged event was taken for a new one")
	}
	if again := purge(t, s, cutoff); again.Payloads+again.Effects != 0 {
		t.Errorf("a second purge let %d go", again.Payloads+again.Effects)
	}
}

// TestPurgeGivesSpaceBack: after a purge of many payloads the file is smaller,
// by steps that are each small.
func TestPurgeGivesSpaceBack(t *testing.T) {
	clock := storetest.NewClock()
	dir := t.TempDir()
	o := storetest.Options(dir, clock)
	s, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	pad := strings.Repeat("x", 20_000)
	for i := range 300 {
		storetest.Deliver(t, s, strings.Replace(paysFor(fmt.Sprint("evt_", i), fmt.Sprint("pi_", i), "ORD-none", opened+1), `"metadata":{`, `"pad":"`+pad+`","metadata":{`, 1))
	}
	storetest.Work(t, s)
	page, err := s.ListEvents(ctx, store.EventFilter{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Items {
		if _, err := s.DismissEvent(ctx, "stripe:self:test", e.ID, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "paidonce.db")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(31 * 24 * time.Hour)
	s = reopen(t, path, clock)
	p := purge(t, s, clock.Now().AddDate(0, 0, -30))
	storetest.Check(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if p.Payloads != 200 || after.Size() > before.Size()/2 {
		t.Errorf("%d payloads went, and the file went from %d to %d bytes", p.Payloads, before.Size(), after.Size())
	}
}
