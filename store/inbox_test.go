package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func mustAdd(t testing.TB, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if added, err := s.AddEvent(context.Background(), newEvent(id)); err != nil || added.Duplicate {
			t.Fatalf("AddEvent(%s) = %+v, %v", id, added, err)
		}
	}
}

func mustClaim(t testing.TB, s *Store, want int) []Claim {
	t.Helper()
	claims, err := s.ClaimEvents(context.Background(), 64)
	if err != nil || len(claims) != want {
		t.Fatalf("ClaimEvents = %d claims, %v, want %d", len(claims), err, want)
	}
	return claims
}

// end finishes a claim as ignored, which needs no look at the body.
func end(s *Store, c Claim) error {
	return s.ApplyEvents(context.Background(), []Decoded{{Claim: c, Ignored: "test"}})[0]
}

func TestOneEventIsOneRowHoweverConcurrent(t *testing.T) {
	ids, copies := 100, 50
	if testing.Short() {
		ids, copies = 10, 20
	}
	s := openTest(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh := map[string]int{}
	start := make(chan struct{})
	for i := range ids {
		for range copies {
			wg.Go(func() {
				<-start
				id := fmt.Sprintf("evt_%d", i)
				added, err := s.AddEvent(t.Context(), newEvent(id))
				if err != nil {
					t.Errorf("AddEvent: %v", err)
				}
				if !added.Duplicate {
					mu.Lock()
					fresh[id]++
					mu.Unlock()
				}
			})
		}
	}
	close(start)
	wg.Wait()
	if n := count(t, s, `SELECT count(*) FROM events WHERE deliveries = ?`, copies); n != ids {
		t.Errorf("%d rows with %d deliveries, want %d", n, copies, ids)
	}
	for id, n := range fresh {
		if n != 1 {
			t.Errorf("%s was new %d times", id, n)
		}
	}
}

func TestABodyUnderAFreshIDIsADuplicateWhereIDsAreNotSigned(t *testing.T) {
	s := openTest(t)
	e := newEvent("guid-1")
	e.Scope, e.Source, e.BodyHash = "github:gh:-", "gh", "abc"
	if _, err := s.AddEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e.ID = "guid-2"
	added, err := s.AddEvent(t.Context(), e)
	if err != nil || !added.Duplicate || added.ID != "guid-1" {
		t.Errorf("AddEvent = %+v, %v, want a duplicate of guid-1", added, err)
	}
	e.Scope, e.Source = "github:other:-", "other"
	if added, err := s.AddEvent(t.Context(), e); err != nil || added.Duplicate {
		t.Errorf("the same body at another source = %+v, %v, want a new row", added, err)
	}
}

func TestFinishNeedsTheCurrentLease(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stall   time.Duration
		reclaim bool
		want    error
	}{
		{"in time", 0, false, nil},
		{"late, nobody else came", 2 * leaseTime, false, nil},
		{"late, and replaced", 2 * leaseTime, true, ErrLeaseLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
			var mu sync.Mutex
			s := openTest(t, func(o *Options) {
				o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
			})
			mustAdd(t, s, "evt_1")
			c := mustClaim(t, s, 1)[0]
			mustClaim(t, s, 0) // the lease holds
			mu.Lock()
			now = now.Add(tt.stall)
			mu.Unlock()
			if tt.reclaim {
				mustClaim(t, s, 1)
			}
			if err := end(s, c); !errors.Is(err, tt.want) {
				t.Errorf("finish = %v, want %v", err, tt.want)
			}
			if err := s.RetryEvent(t.Context(), c, errors.New("late"), true); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("retry of a finished or replaced claim = %v, want ErrLeaseLost", err)
			}
			done := count(t, s, `SELECT count(*) FROM events WHERE status = 'done'`)
			if want := map[bool]int{true: 0, false: 1}[tt.reclaim]; done != want {
				t.Errorf("%d events done, want %d", done, want)
			}
		})
	}
}

func TestOnlyTheRowsOwnFailuresCount(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	mustAdd(t, s, "evt_1")
	fail := func(counted bool) {
		t.Helper()
		now = now.Add(2 * time.Hour)
		if err := s.RetryEvent(t.Context(), mustClaim(t, s, 1)[0], errors.New(strings.Repeat("é", 300)), counted); err != nil {
			t.Fatal(err)
		}
	}
	for range 30 {
		fail(false)
	}
	for range maxAttempts - 1 {
		fail(true)
	}
	e, err := s.FindEvent(t.Context(), "", "evt_1")
	if err != nil || e.Status != "pending" || e.Verdict != "retrying" || e.Attempts != maxAttempts-1 {
		t.Fatalf("before the last attempt: %+v, %v", e, err)
	}
	if len(e.LastError) > maxErrorText || !strings.HasPrefix(e.LastError, "éé") {
		t.Errorf("last_error has %d bytes", len(e.LastError))
	}
	fail(true)
	e, err = s.FindEvent(t.Context(), "", "evt_1")
	if err != nil || e.Status != "quarantined" || e.Verdict != "too_many_attempts" {
		t.Errorf("after the last attempt: %+v, %v", e, err)
	}
	if e, err = s.RequeueEvent(t.Context(), "", "evt_1"); err != nil || e.Status != "pending" || e.Attempts != 0 {
		t.Errorf("requeue = %+v, %v", e, err)
	}
	mustClaim(t, s, 1)
}

func TestBackoffGrowsToAnHourAndNeverOverflows(t *testing.T) {
	for failures, want := range map[int64]time.Duration{
		0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 12: time.Hour,
		33: time.Hour, 40: time.Hour, 63: time.Hour, 64: time.Hour, 200: time.Hour, -1: time.Second,
	} {
		for range 100 {
			if d := backoff(failures); d < want/2 || d > want {
				t.Fatalf("backoff(%d) = %v, want %v to %v", failures, d, want/2, want)
			}
		}
	}
}

// crash forgets s as a dead process would: no release of claims, no goodbye.
func crash(t *testing.T, s *Store) Options {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.opt
}

func TestAfterACrashWhatWasInHandRunsAlone(t *testing.T) {
	s := openTest(t)
	mustAdd(t, s, "evt_1", "evt_2", "evt_3")
	claims, err := s.ClaimEvents(t.Context(), 2)
	if err != nil || len(claims) != 2 {
		t.Fatal(claims, err)
	}
	o := crash(t, s)
	if s, err = Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if c := mustClaim(t, s, 1)[0]; c.ID != "evt_3" {
		t.Errorf("the batch took %s, want evt_3 alone", c.ID)
	}
	alone, err := s.ClaimSuspect(t.Context())
	if err != nil || len(alone) != 1 || alone[0].ID != "evt_1" || alone[0].Attempts != 0 {
		t.Fatalf("ClaimSuspect = %+v, %v, want evt_1 without an attempt: it was in company", alone, err)
	}
	if err := end(s, claims[0]); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the dead process's claim finishes with %v, want ErrLeaseLost", err)
	}

	// It dies again and again with evt_1 alone in hand: now evt_1 pays.
	now := time.Now()
	for i := range maxAttempts {
		o = crash(t, s)
		o.Now = func() time.Time { return now }
		if s, err = Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Hour) // past the backoff
		if i == maxAttempts-1 {
			break
		}
		for {
			alone, err = s.ClaimSuspect(t.Context())
			if err != nil || len(alone) != 1 {
				t.Fatalf("crash %d: ClaimSuspect = %+v, %v", i, alone, err)
			}
			if alone[0].ID == "evt_1" {
				break
			}
			if err := end(s, alone[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer s.Close()
	e, err := s.FindEvent(t.Context(), "", "evt_1")
	if err != nil || e.Verdict != "too_many_attempts" {
		t.Errorf("evt_1 = %+v, %v, want too_many_attempts", e, err)
	}
	if e, err := s.FindEvent(t.Context(), "", "evt_2"); err != nil || e.Status != "done" || e.Attempts != 0 {
		t.Errorf("evt_2 = %+v, %v, want done without an attempt", e, err)
	}
	if e, err := s.FindEvent(t.Context(), "", "evt_3"); err != nil || e.Status == "quarantined" {
		t.Errorf("evt_3 = %+v, %v, want it to be healthy", e, err)
	}
}

func TestAClaimReadsItsIndexAlone(t *testing.T) {
	s := openTest(t)
	var plan []string
	err := s.read(t.Context(), func(q querier) error {
		rows, err := q.query(`EXPLAIN QUERY PLAN SELECT id FROM events WHERE status = 'pending' AND suspect = 0 AND due_at <= 1 ORDER BY due_at, id LIMIT 64`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var a, b, c int
			var line string
			if err := rows.Scan(&a, &b, &c, &line); err != nil {
				return err
			}
			plan = append(plan, line)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan) != 1 || !strings.Contains(plan[0], "SEARCH events USING COVERING INDEX events_due") {
		t.Errorf("plan is %q, want one search of events_due and no sort", plan)
	}
}

func TestRowIDsAreNeverReused(t *testing.T) {
	s := openTest(t)
	mustAdd(t, s, "evt_1", "evt_2")
	err := s.w.write(t.Context(), "delete", func(tx *Tx) error {
		_, err := tx.exec(`DELETE FROM payloads`)
		if err == nil {
			_, err = tx.exec(`DELETE FROM events`)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, "evt_3")
	if c := mustClaim(t, s, 1)[0]; c.Row != 3 {
		t.Errorf("row %d, want 3 (cases.md B67)", c.Row)
	}
}

func TestAnEmptyBodyIsABody(t *testing.T) {
	s := openTest(t)
	e := newEvent("evt_1")
	e.Body = nil
	if _, err := s.AddEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if c := mustClaim(t, s, 1)[0]; c.PayloadGone || len(c.Body) != 0 {
		t.Errorf("claim %+v, want an empty payload that is there", c)
	}
}

func TestAnEventOfAForeignAccountIsNeverRead(t *testing.T) {
	for _, tt := range []struct {
		tenant, scope string
		read          bool
	}{
		{mainTenant, "stripe:self:test", true},
		{"acct_1", "stripe:acct_1:test", true},
		{ForeignTenant + "acct_2", "stripe:acct_2:test", false},
		{mainTenant, "github:gh:-", false},
	} {
		if got := (Claim{Tenant: tt.tenant, Scope: tt.scope}).IgnoredUnread(); (got == "") != tt.read {
			t.Errorf("%s in %s: %q", tt.tenant, tt.scope, got)
		}
	}
}

func TestReadyDoesNotKeepThoseWhoCannotWait(t *testing.T) {
	s := openTest(t)
	release := blockWriter(t, s)
	first := make(chan error, 1)
	go func() { first <- s.Ready(t.Context()) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ready(ctx); err == nil {
		t.Error("Ready with an ended context while the writer is busy = nil")
	}
	release()
	if err := <-first; err != nil {
		t.Errorf("Ready = %v", err)
	}
}
