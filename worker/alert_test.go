package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// fakeAlerts answers each check with the next of a list, and notes when and
// under which rules it was asked.
type fakeAlerts struct {
	mu      sync.Mutex
	answers []func() ([]store.Alert, error)
	asked   []store.AlertRules
	at      []time.Duration
	start   time.Time
}

func (f *fakeAlerts) CheckAlerts(_ context.Context, rules store.AlertRules) ([]store.Alert, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, rules)
	f.at = append(f.at, time.Since(f.start))
	if len(f.answers) == 0 {
		return nil, nil
	}
	answer := f.answers[0]
	f.answers = f.answers[1:]
	return answer()
}

func TestAlertsAreCheckedAndLoggedWhateverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := &fakeAlerts{start: time.Now(), answers: []func() ([]store.Alert, error){
			func() ([]store.Alert, error) {
				return []store.Alert{{Name: "quarantined", State: "firing", Count: 3, Summary: "3 events are quarantined.", Command: "paidonce events list"}}, nil
			},
			func() ([]store.Alert, error) { return nil, errors.New("the disk is gone") },
			func() ([]store.Alert, error) {
				return []store.Alert{{Name: "pending", State: "reminder", Count: 1}}, errors.New("one of them failed")
			},
			func() ([]store.Alert, error) { return []store.Alert{{Name: "quarantined", State: "resolved"}}, nil },
		}}
		refused := 0
		a := NewAlerts(AlertsConfig{Store: f, Rules: store.AlertRules{Pending: time.Minute, Remind: time.Hour}, Log: slog.New(slog.NewTextHandler(&out, nil)),
			Rejects: func() store.RejectsSeen { refused++; return store.RejectsSeen{InARow: refused} }})
		stop, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(stop, t.Context()) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v; want nil after a stop", err)
		}
		// At once, then every 15 seconds, also after the first failure.
		if len(f.at) != 5 && len(f.at) != 4 || f.at[0] != 0 || f.at[1] != 15*time.Second || f.at[2] != 30*time.Second {
			t.Errorf("checked at %v", f.at)
		}
		for i, r := range f.asked {
			if r.Rejects.InARow != i+1 || r.Pending != time.Minute || r.Remind != time.Hour {
				t.Errorf("check %d was asked under %+v", i, r)
			}
		}
		for _, want := range []string{
			`level=WARN msg="worker: alert firing" alert=quarantined count=3 summary="3 events are quarantined."`,
			`level=ERROR msg="worker: alerts not checked" err="the disk is gone"`,
			`level=WARN msg="worker: alert reminder" alert=pending`,
			`err="one of them failed" failures=2`,
			`level=INFO msg="worker: alert resolved" alert=quarantined`,
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the log lacks %s:\n%s", want, out.String())
			}
		}
	})
}

func TestAlertsEndWithTheirGrace(t *testing.T) {
	gone := errors.New("the grace is over")
	work, cancel := context.WithCancelCause(t.Context())
	f := &fakeAlerts{answers: []func() ([]store.Alert, error){func() ([]store.Alert, error) { cancel(gone); return nil, context.Canceled }}}
	a := NewAlerts(AlertsConfig{Store: f, Log: quiet})
	if err := a.Run(t.Context(), work); !errors.Is(err, gone) {
		t.Errorf("Run = %v; want the cause of its end", err)
	}
}

// TestAnAlertGoesOutAsAnEffect is the whole way, with the real store.
func TestAnAlertGoesOutAsAnEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := storetest.Open(t, realTime, func(o *store.Options) {
			o.Targets = []string{"ops"}
			o.Compose = func(oc store.Occasion) []store.Composed {
				if oc.Alert == nil {
					return nil
				}
				return []store.Composed{{Target: "ops", Kind: store.KindHTTP, Body: []byte(oc.Alert.Name)}}
			}
		})
		a := NewAlerts(AlertsConfig{Store: s, Rules: store.AlertRules{Pending: 5 * time.Minute}, Log: quiet})
		stop, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(stop, t.Context()) }()
		synctest.Wait()
		if _, err := s.AddEvent(t.Context(), storetest.NewEvent(body("evt_1", "A"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Minute + 15*time.Second)
		synctest.Wait()
		if c := storetest.ClaimOne(t, s, "ops"); string(c.Body) != "pending" || c.Operation != "alert.pending:1" {
			t.Errorf("claimed %s: %s", c.Operation, c.Body)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
