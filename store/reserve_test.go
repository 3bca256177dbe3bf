package store

import (
	"os"
	"testing"
	"time"
)

// TestAFullDiskIsToldOf: with no room left webhooks are refused; the alert takes
// the reserve, and webhooks do not; when there is room for the reserve again,
// they are taken.
func TestAFullDiskIsToldOf(t *testing.T) {
	now := time.Now()
	s := openTest(t, func(o *Options) { o.Now = func() time.Time { return now } })
	if st, err := os.Stat(s.spare.path); err != nil || st.Size() != reserveBytes {
		t.Fatalf("reserve: %v, %v", st, err)
	}
	mustAdd(t, s, "evt_1")
	if err := s.LimitPages(t.Context(), 1); err != nil { // not one page more
		t.Fatal(err)
	}
	big := newEvent("evt_2")
	big.Body = make([]byte, 60<<10)
	if _, err := s.AddEvent(t.Context(), big); err == nil {
		t.Fatal("there was room")
	}
	states := []string{}
	check := func() {
		t.Helper()
		told, err := s.CheckAlerts(t.Context(), AlertRules{})
		for _, a := range told {
			states = append(states, a.Name+" "+a.State)
		}
		if err != nil {
			t.Logf("alerts: %v", err) // of this test's limit, which no reserve lifts
		}
	}
	check()
	s.spare.release()
	if _, err := os.Stat(s.spare.path); !os.IsNotExist(err) {
		t.Errorf("the reserve is still there: %v", err)
	}
	if err := s.LimitPages(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	// No room for the reserve: what there is, is for alerts.
	if err := os.Mkdir(s.spare.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddEvent(t.Context(), newEvent("evt_3")); err == nil {
		t.Error("a webhook took the room of the alerts")
	}
	check()
	if err := os.Remove(s.spare.path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddEvent(t.Context(), newEvent("evt_4")); err == nil {
		t.Error("it was tried again within the second")
	}
	now = now.Add(2 * time.Second)
	if _, err := s.AddEvent(t.Context(), newEvent("evt_5")); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	if st, err := os.Stat(s.spare.path); err != nil || st.Size() != reserveBytes {
		t.Errorf("the reserve was not made again: %v", err)
	}
	check()
	if len(states) != 2 || states[0] != "disk_full firing" || states[1] != "disk_full resolved" {
		t.Errorf("told %v", states)
	}
}
