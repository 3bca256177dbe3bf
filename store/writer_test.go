package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// openTest opens a real store on a file of its own; change may alter options.
func openTest(t testing.TB, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{
		Path: filepath.Join(t.TempDir(), "paidonce.db"), Env: "sandbox",
		Scopes: map[string]string{"stripe": "stripe:self:test"},
		Now:    time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newEvent(id string) NewEvent {
	return NewEvent{Scope: "stripe:self:test", ID: id, Source: "stripe", Tenant: mainTenant, Via: "webhook",
		Type: "payment_intent.succeeded", OccurredAt: 1_750_000_000_000, Body: []byte(`{"id":"` + id + `"}`)}
}

func count(t testing.TB, s *Store, query string, args ...any) int {
	t.Helper()
	var n int
	err := s.read(context.Background(), func(q querier) error {
		_, err := one(q, query, args, &n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// blockWriter keeps the writer inside a transaction until the returned func is
// called, so that what comes meanwhile is one group.
func blockWriter(t *testing.T, s *Store) (release func()) {
	t.Helper()
	in, out := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- s.w.write(context.Background(), "block", func(*Tx) error { close(in); <-out; return nil })
	}()
	<-in
	return func() {
		close(out)
		if err := <-done; err != nil {
			t.Errorf("blocking write: %v", err)
		}
	}
}

func TestNeighboursOfAFailedWriteAreCommitted(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name  string
		plain bool
		bad   func(*Tx) error
	}{
		{"it fails before it wrote", false, func(*Tx) error { return boom }},
		{"it fails after it wrote", false, func(tx *Tx) error {
			if _, err := addEvent(tx, newEvent("evt_bad")); err != nil {
				return err
			}
			return boom
		}},
		{"it fails halfway without a savepoint", true, func(tx *Tx) error {
			if _, err := addEvent(tx, newEvent("evt_bad")); err != nil {
				return err
			}
			return boom
		}},
		{"it panics after it wrote", false, func(tx *Tx) error {
			if _, err := addEvent(tx, newEvent("evt_bad")); err != nil {
				return err
			}
			panic(boom)
		}},
		{"a statement of its own breaks a rule of the schema", false, func(tx *Tx) error {
			if _, err := addEvent(tx, newEvent("evt_bad")); err != nil {
				return err
			}
			_, err := tx.exec(`UPDATE events SET status = 'lost' WHERE event_id = 'evt_bad'`)
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := openTest(t)
			release := blockWriter(t, s)
			var wg sync.WaitGroup
			errs := make([]error, 20)
			for i := range errs {
				o := &op{what: "neighbour", run: func(tx *Tx) error {
					_, err := addEvent(tx, newEvent(fmt.Sprintf("evt_%d", i)))
					return err
				}, plain: i%2 == 0, done: make(chan struct{})}
				if i == 10 {
					o.what, o.run, o.plain = "bad", tt.bad, tt.plain
				}
				if err := s.w.put(o); err != nil {
					t.Fatal(err)
				}
				wg.Go(func() { errs[i] = s.w.await(t.Context(), o) })
			}
			release()
			wg.Wait()
			for i, err := range errs {
				if (err != nil) != (i == 10) {
					t.Errorf("write %d: %v", i, err)
				}
			}
			if n := count(t, s, `SELECT count(*) FROM events`); n != 19 {
				t.Errorf("%d rows, want 19", n)
			}
			if n := count(t, s, `SELECT count(*) FROM payloads`); n != 19 {
				t.Errorf("%d payloads, want 19", n)
			}
			if n := count(t, s, `SELECT coalesce(sum(n), 0) FROM event_counts`); n != 19 {
				t.Errorf("%d counted, want 19", n)
			}
		})
	}
}

func TestAGroupSharesOneTransaction(t *testing.T) {
	s := openTest(t)
	release := blockWriter(t, s)
	instants := make([]Time, 50)
	var wg sync.WaitGroup
	for i := range instants {
		o := &op{what: "look", run: func(tx *Tx) error { instants[i] = tx.now; return nil }, done: make(chan struct{})}
		if err := s.w.put(o); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := s.w.await(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	release()
	wg.Wait()
	for _, at := range instants {
		if at != instants[0] {
			t.Fatalf("two instants in one group: %v and %v", instants[0], at)
		}
	}
}

func TestAWaiterThatGivesUpGetsNoLie(t *testing.T) {
	s := openTest(t)
	release := blockWriter(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.AddEvent(ctx, newEvent("evt_1"))
	if p, ok := AsProblem(err); !ok || p.Code != CodeUnavailable {
		t.Errorf("AddEvent = %v, want unavailable", err)
	}
	release()
	if added, err := s.AddEvent(t.Context(), newEvent("evt_1")); err != nil || added.Duplicate {
		t.Errorf("AddEvent again = %+v, %v, want a new row: the first was taken out of the queue", added, err)
	}
}

func TestAFullQueueIsAnAnswer(t *testing.T) {
	s := openTest(t)
	release := blockWriter(t, s)
	noop := func(*Tx) error { return nil }
	var full error
	for range queueSize + 1 {
		if full = s.w.put(&op{what: "fill", run: noop, done: make(chan struct{})}); full != nil {
			break
		}
	}
	release()
	if p, ok := AsProblem(full); !ok || p.Code != CodeUnavailable || !strings.Contains(full.Error(), "queue is full") {
		t.Errorf("put into a full queue = %v, want unavailable", full)
	}
}

func TestAfterCloseNothingIsTaken(t *testing.T) {
	s := openTest(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.AddEvent(t.Context(), newEvent("evt_1"))
	if p, ok := AsProblem(err); !ok || p.Code != CodeUnavailable {
		t.Errorf("AddEvent after Close = %v, want unavailable", err)
	}
}

func TestDiskFullIsUnavailableAndHeals(t *testing.T) {
	s := openTest(t, func(o *Options) { o.MaxPages = 160 })
	big := newEvent("evt_0")
	big.Body = make([]byte, 60<<10)
	var stored int
	var err error
	for i := range 20 {
		big.ID = fmt.Sprintf("evt_%d", i)
		if _, err = s.AddEvent(t.Context(), big); err != nil {
			break
		}
		stored++
	}
	if p, ok := AsProblem(err); !ok || p.Code != CodeUnavailable || !Transient(err) {
		t.Fatalf("AddEvent on a full disk = %v, want unavailable", err)
	}
	if n := count(t, s, `SELECT count(*) FROM events`); n != stored {
		t.Errorf("%d rows, want the %d that were acknowledged", n, stored)
	}
	if err := s.Ready(t.Context()); err == nil {
		t.Error("Ready = nil while there is no room for an event")
	}
	if err := s.w.write(t.Context(), "free space", func(tx *Tx) error { return tx.raw("PRAGMA max_page_count = 100000") }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddEvent(t.Context(), big); err != nil {
		t.Errorf("AddEvent after the disk has room again: %v", err)
	}
	s.ready.at = time.Time{} // as if a second had passed
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("Ready after the disk has room again: %v", err)
	}
	if n := count(t, s, `SELECT count(*) FROM events e JOIN payloads p ON p.event = e.id`); n != stored+1 {
		t.Errorf("%d rows with a payload, want %d", n, stored+1)
	}
}

// lockFile makes another program hold the write lock.
func lockFile(t *testing.T, s *Store) (release func()) {
	t.Helper()
	db, err := openPool(s.opt, false)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "COMMIT"); err != nil {
			t.Error(err)
		}
		if err := errors.Join(conn.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestALockThatIsLetGoInTimeIsWaitedFor(t *testing.T) {
	s := openTest(t)
	release := lockFile(t, s)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := s.AddEvent(t.Context(), newEvent(fmt.Sprintf("evt_%d", i))); err != nil {
				t.Errorf("AddEvent: %v", err)
			}
		})
	}
	held := time.NewTimer(300 * time.Millisecond)
	if !testing.Short() {
		held.Reset(3 * time.Second)
	}
	<-held.C
	release()
	wg.Wait()
	if n := count(t, s, `SELECT count(*) FROM events`); n != 20 {
		t.Errorf("%d rows, want 20", n)
	}
}

func TestALockThatStaysIsUnavailableAndHeals(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the whole busy timeout of 5 s")
	}
	s := openTest(t)
	release := lockFile(t, s)
	_, err := s.AddEvent(t.Context(), newEvent("evt_1"))
	if p, ok := AsProblem(err); !ok || p.Code != CodeUnavailable || !Transient(err) {
		t.Errorf("AddEvent = %v, want unavailable", err)
	}
	release()
	if _, err := s.AddEvent(t.Context(), newEvent("evt_1")); err != nil {
		t.Errorf("AddEvent after the lock is gone: %v", err)
	}
}
