package store_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"paidonce/store"
	"paidonce/store/storetest"
)

func TestACommandKnowsWhetherServeRuns(t *testing.T) {
	o := storetest.Options(t.TempDir(), storetest.NewClock())
	if store.Serving(o.Path) {
		t.Error("nobody has ever served it")
	}
	if _, err := os.Stat(o.Path + ".lock"); err == nil {
		t.Error("to ask made a lock file")
	}
	s, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if !store.Serving(o.Path) {
				t.Error("it is being served")
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		wg.Go(func() {
			if store.Serving(o.Path) {
				t.Error("its serve has ended: those who ask at once see each other")
			}
		})
	}
	wg.Wait()
}

// A command that asks whether serve runs holds the lock for a moment, in which
// serve may start.
func TestAStartIsNotRefusedForOneWhoAsks(t *testing.T) {
	o := storetest.Options(t.TempDir(), storetest.NewClock())
	asking := flock.New(o.Path + ".lock")
	if ok, err := asking.TryRLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	time.AfterFunc(30*time.Millisecond, func() { _ = asking.Close() })
	s, err := store.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
