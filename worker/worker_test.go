package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func body(event, order string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","created":1750000000,"livemode":false,"type":"payment_intent.succeeded",
		"data":{"object":{"id":"pi_%s","object":"payment_intent","amount":1250,"amount_received":1250,"currency":"eur","status":"succeeded","metadata":{"order_id":%q}}}}`, event, order, order)
}

// realTime opens a store whose clock is the bubble's.
func realTime(o *store.Options) { o.Now = time.Now }

func TestAnEventIsWorkedOnWhenWokenAndWhenNobodyWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := storetest.Open(t, realTime)
		storetest.Register(t, s, "A", 1250, "eur")
		storetest.Register(t, s, "B", 1250, "eur")
		w := New(Config{Inbox: s, Log: quiet})
		stop, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(stop, t.Context()) }()
		synctest.Wait()

		add := func(event, order string) {
			if _, err := s.AddEvent(t.Context(), storetest.NewEvent(body(event, order))); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		add("evt_1", "A")
		w.Wake()
		synctest.Wait()
		if o := storetest.Order(t, s, "A"); o.Status != "paid" || time.Since(start) != 0 {
			t.Errorf("woken: %s after %v, want paid at once", o.Status, time.Since(start))
		}
		add("evt_2", "B")
		time.Sleep(time.Second) // of the bubble: nobody wakes, the poll comes
		synctest.Wait()
		if o := storetest.Order(t, s, "B"); o.Status != "paid" {
			t.Errorf("not woken: %s after a second, want paid", o.Status)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil after a stop", err)
		}
	})
}

// fakeInbox hands out what a test wants and notes what comes back.
type fakeInbox struct {
	mu       sync.Mutex
	batches  [][]store.Claim
	suspects [][]store.Claim
	apply    func([]store.Decoded) []error
	inHand   int
	retried  map[string]bool // event → counted
	claims   int
	claimErr error
}

func (f *fakeInbox) take(from *[][]store.Claim) ([]store.Claim, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims++
	if f.claimErr != nil || len(*from) == 0 {
		return nil, f.claimErr
	}
	claims := (*from)[0]
	*from = (*from)[1:]
	f.inHand += len(claims)
	return claims, nil
}

func (f *fakeInbox) ClaimEvents(context.Context, int) ([]store.Claim, error) {
	return f.take(&f.batches)
}
func (f *fakeInbox) ClaimSuspect(context.Context) ([]store.Claim, error) { return f.take(&f.suspects) }
func (f *fakeInbox) FlushTimings(context.Context) error                  { return nil }
func (f *fakeInbox) ApplyEvents(_ context.Context, events []store.Decoded) []error {
	errs := f.apply(events)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inHand -= len(events)
	return errs
}
func (f *fakeInbox) RetryEvent(_ context.Context, c store.Claim, _ error, counted bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.retried == nil {
		f.retried = map[string]bool{}
	}
	f.retried[c.ID] = counted
	return nil
}

func claim(id string) store.Claim {
	return store.Claim{ID: id, Scope: "stripe:self:test", Body: []byte(body(id, "A"))}
}

func TestOnlyARowsOwnFailureCounts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		retried bool
		counted bool
	}{
		{"nothing failed", nil, false, false},
		{"the lease was lost", store.ErrLeaseLost, false, false},
		{"the database did not take it", &store.Problem{Code: store.CodeUnavailable}, true, false},
		{"a shutdown", context.Canceled, true, false},
		{"an unexpected error", errors.New("boom"), true, true},
		{"a panic", &store.PanicError{What: "apply", Value: "boom"}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakeInbox{batches: [][]store.Claim{{claim("evt_1"), claim("evt_2")}}}
			f.apply = func(events []store.Decoded) []error {
				errs := make([]error, len(events))
				errs[0] = tt.err
				return errs
			}
			if _, err := New(Config{Inbox: f, Log: quiet}).pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			counted, retried := f.retried["evt_1"]
			if retried != tt.retried || counted != tt.counted {
				t.Errorf("retried %v, counted %v; want %v, %v", retried, counted, tt.retried, tt.counted)
			}
			if _, ok := f.retried["evt_2"]; ok {
				t.Error("a neighbour was given back")
			}
		})
	}
}

// Not in a bubble: a loop that waits for the mutex would stop its clock.
func TestASuspectIsAloneInHand(t *testing.T) {
	f := &fakeInbox{}
	for i := range 50 {
		f.batches = append(f.batches, []store.Claim{claim(fmt.Sprintf("evt_%d", i))})
		if i%10 == 0 {
			f.suspects = append(f.suspects, []store.Claim{claim(fmt.Sprintf("suspect_%d", i))})
		}
	}
	stop, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	left := 55
	f.apply = func(events []store.Decoded) []error {
		for range 100 { // let others come
			runtime.Gosched()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if strings.HasPrefix(events[0].ID, "suspect") && f.inHand != 1 {
			t.Errorf("%d events in hand beside %s", f.inHand-1, events[0].ID)
		}
		if left--; left == 0 {
			cancel()
		}
		return make([]error, len(events))
	}
	if err := New(Config{Inbox: f, Log: quiet, Batch: 1, Loops: 4, Poll: time.Millisecond}).Run(stop, t.Context()); err != nil {
		t.Fatal(err)
	}
	if left != 0 {
		t.Errorf("%d events are left", left)
	}
}

func TestAStopFinishesWhatIsInHandAndTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop, cancel := context.WithCancel(t.Context())
		f := &fakeInbox{batches: [][]store.Claim{{claim("evt_1")}, {claim("evt_2")}}}
		finished := 0
		f.apply = func(events []store.Decoded) []error {
			cancel() // the signal comes while the event is in hand
			finished++
			return make([]error, len(events))
		}
		if err := New(Config{Inbox: f, Log: quiet, Batch: 1, Loops: 1}).Run(stop, t.Context()); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if finished != 1 || len(f.batches) != 1 {
			t.Errorf("%d finished, %d left; want the one in hand finished and the other left", finished, len(f.batches))
		}
	})
}

func TestAFailingInboxIsAskedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeInbox{claimErr: errors.New("locked")}
		w := New(Config{Inbox: f, Log: quiet, Loops: 1})
		stop, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := w.Run(stop, t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.claims < 20 || f.claims > 60 { // two loops, every 30 s in the end
			t.Errorf("asked %d times in ten minutes", f.claims)
		}
	})
}

func TestASourceThatIsNotStripeHasNoOrders(t *testing.T) {
	d, err := decode(store.Claim{ID: "x", Scope: "github:gh:-", Body: []byte(`{"data":{}}`)})
	if err != nil || d.Ignored == "" {
		t.Errorf("decode = %+v, %v, want it ignored", d, err)
	}
}
