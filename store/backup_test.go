package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// paysFor is a succeeded payment intent of 1250 EUR cents for an order.
func paysFor(event, id, order string, created int64) string {
	return strings.ReplaceAll(intent(event, id, "succeeded", created, 1250, ""), "ORD-1", order)
}

func quietly(int, int) {}

// reopen opens the file at path as serve would.
func reopen(t *testing.T, path string, clock *storetest.Clock, change ...func(*store.Options)) *store.Store {
	t.Helper()
	o := storetest.Options(filepath.Dir(path), clock)
	o.Path = path
	for _, f := range change {
		f(&o)
	}
	s, err := store.Open(ctx, o)
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

// TestBackupUnderLoad: accepts go on while it is made; the copy opens alone, is
// whole, and has every event that was acknowledged before it began.
func TestBackupUnderLoad(t *testing.T) {
	clock := storetest.NewClock()
	dir := t.TempDir()
	o := storetest.Options(dir, clock)
	s, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var acked atomic.Int64
	stop, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; stop.Err() == nil; i++ {
				e := storetest.NewEvent(pays(fmt.Sprintf("evt_%d_%d", w, i), fmt.Sprintf("pi_%d_%d", w, i), 1))
				if _, err := s.AddEvent(ctx, e); err != nil {
					t.Error(err)
					return
				}
				acked.Add(1)
			}
		})
	}
	for acked.Load() < 400 {
		time.Sleep(time.Millisecond)
	}
	before := acked.Load()
	file := filepath.Join(dir, "copy.db")
	info, err := s.Backup(ctx, file, quietly)
	after := acked.Load()
	cancel()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if info.Events < before || after == before {
		t.Errorf("the copy has %d events; %d were acknowledged before it, %d when it was done", info.Events, before, after)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "copy.db") && e.Name() != "copy.db" {
			t.Errorf("%s is left over", e.Name())
		}
	}
	st, err := os.Stat(file)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	// Alone, in another directory, as serve opens it.
	alone := filepath.Join(t.TempDir(), "alone.db")
	if b, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(alone, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := reopen(t, alone, clock)
	storetest.Check(t, c)
	if held, err := c.HeldSince(ctx); err != nil || held == 0 {
		t.Errorf("held since %v, %v: a copy that is put in place by hand must send nothing", held, err)
	}
}

func TestBackupRefusesTheServicesOwnFiles(t *testing.T) {
	s, _ := storetest.Open(t)
	dir := t.TempDir()
	o := storetest.Options(dir, storetest.NewClock())
	own, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(o.Path, link); err != nil {
		t.Fatal(err)
	}
	hard := filepath.Join(dir, "hard.db")
	if err := os.Link(o.Path, hard); err != nil {
		t.Fatal(err)
	}
	linkedDir := filepath.Join(t.TempDir(), "d")
	if err := os.Symlink(dir, linkedDir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{o.Path, o.Path + "-wal", o.Path + "-shm", o.Path + ".lock", o.Path + ".token", link, hard, filepath.Join(linkedDir, "paidonce.db"), dir} {
		if _, err := own.Backup(ctx, path, quietly); err == nil {
			t.Errorf("a backup to %s was made", path)
		}
	}
	if _, err := s.Backup(ctx, filepath.Join(dir, "no", "such", "x.db"), quietly); err == nil {
		t.Error("a backup into a directory that is not there was made")
	}
	storetest.Check(t, own)
}

// TestABackupThatBreaksOffLeavesTheOldOne.
func TestABackupThatBreaksOffLeavesTheOldOne(t *testing.T) {
	s, _ := storetest.Open(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "b.db")
	if err := os.WriteFile(file, []byte("the old one"), 0o600); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Backup(stopped, file, quietly); err == nil {
		t.Fatal("it was made")
	}
	b, err := os.ReadFile(file)
	entries, derr := os.ReadDir(dir)
	if err != nil || derr != nil || string(b) != "the old one" || len(entries) != 1 {
		t.Errorf("%q, %v; %v, %v", b, err, entries, derr)
	}
}

// shopAndBackup is a shop with a backup of the state when ORD-1 was paid, whose
// effects were queued and not sent; by the time of the restore all were sent,
// and ORD-2 was paid.
func shopAndBackup(t *testing.T) (path, backup string, clock *storetest.Clock) {
	t.Helper()
	clock = storetest.NewClock()
	dir := t.TempDir()
	o := storetest.Options(dir, clock)
	fanAll(&o)
	s, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Minute)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Register(t, s, "ORD-2", 1250, "eur")
	storetest.Deliver(t, s, paysFor("evt_1", "pi_1", "ORD-1", opened+60))
	storetest.Work(t, s)
	backup = filepath.Join(t.TempDir(), "night.db")
	if _, err := s.Backup(ctx, backup, quietly); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	for _, target := range []string{"t-http", "t-email", "t-exec"} {
		for _, c := range storetest.Claim(t, s, target) {
			storetest.Finish(t, s, c, done)
		}
	}
	storetest.Deliver(t, s, paysFor("evt_2", "pi_2", "ORD-2", opened+3600))
	storetest.Work(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	return o.Path, backup, clock
}

func fanAll(o *store.Options) {
	o.Targets = []string{"t-http", "t-email", "t-exec"}
	o.Compose = func(oc store.Occasion) (all []store.Composed) {
		if oc.Order == nil {
			return nil
		}
		for _, k := range []string{store.KindHTTP, store.KindEmail, store.KindExec} {
			all = append(all, store.Composed{Target: "t-" + k, Kind: k, Body: []byte(`{}`)})
		}
		return all
	}
}

func effectsOf(t *testing.T, s *store.Store, order string) []string {
	t.Helper()
	var all []string
	for _, e := range storetest.Effects(t, s, order) {
		all = append(all, e.Kind+" "+e.Status)
	}
	return all
}

// TestRestoreHoldsAndRelease: after a restore nothing goes out, neither what was
// pending in the backup nor what is learned again. Release sends the calls under
// their old keys, and leaves mails and programs of the gap to a person.
func TestRestoreHoldsAndRelease(t *testing.T) {
	path, backup, clock := shopAndBackup(t)
	old := reopen(t, path, clock, fanAll)
	keys := map[string]string{}
	for _, e := range slices.Concat(storetest.Effects(t, old, "ORD-1"), storetest.Effects(t, old, "ORD-2")) {
		keys[e.Order+" "+e.Kind] = e.IdempotencyKey
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := store.Restore(ctx, store.RestoreOptions{Path: path, From: backup, Env: "sandbox", Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if info.Events != 1 || info.Held != 3 || info.BackupAt == 0 || info.Aside == "" {
		t.Errorf("restored: %+v", info)
	}
	s := reopen(t, path, clock, fanAll)
	clock.Advance(time.Minute)
	// The gap is fetched: ORD-2's payment is learned again.
	storetest.Deliver(t, s, paysFor("evt_2", "pi_2", "ORD-2", opened+3600))
	storetest.Work(t, s)
	for _, order := range []string{"ORD-1", "ORD-2"} {
		if got := effectsOf(t, s, order); !slices.Equal(got, []string{"http held", "email held", "exec held"}) {
			t.Errorf("%s: %v", order, got)
		}
	}
	// A person may send one ahead of the rest.
	first := storetest.Effects(t, s, "ORD-1")[1]
	if _, err := s.RetryEffect(ctx, first.ID); err != nil {
		t.Errorf("retry: %v", err)
	}
	clock.Advance(time.Minute)
	r, err := s.Release(ctx)
	if err != nil || r.HTTP != 2 || r.Left != 3 || r.New != 0 || len(r.Items) != 3 {
		t.Errorf("released %+v, %v", r, err)
	}
	if got := effectsOf(t, s, "ORD-1"); !slices.Equal(got, []string{"http pending", "email pending", "exec held"}) {
		t.Errorf("ORD-1: %v", got)
	}
	if got := effectsOf(t, s, "ORD-2"); !slices.Equal(got, []string{"http pending", "email held", "exec held"}) {
		t.Errorf("ORD-2: %v", got)
	}
	for _, e := range slices.Concat(storetest.Effects(t, s, "ORD-1"), storetest.Effects(t, s, "ORD-2")) {
		if keys[e.Order+" "+e.Kind] != e.IdempotencyKey {
			t.Errorf("%s of %s has another key than before the restore", e.Kind, e.Order)
		}
	}
	// What happens now goes out as ever.
	storetest.Register(t, s, "ORD-3", 1250, "eur")
	storetest.Deliver(t, s, paysFor("evt_3", "pi_3", "ORD-3", clock.Now().Unix()))
	storetest.Work(t, s)
	if got := effectsOf(t, s, "ORD-3"); !slices.Equal(got, []string{"http pending", "email pending", "exec pending"}) {
		t.Errorf("ORD-3: %v", got)
	}
	storetest.Check(t, s)
}

// TestWhatHappensWhileHeldGoesOutOnRelease: a mail about a payment that came
// after the restore has gone to nobody.
func TestWhatHappensWhileHeldGoesOutOnRelease(t *testing.T) {
	path, backup, clock := shopAndBackup(t)
	if _, err := store.Restore(ctx, store.RestoreOptions{Path: path, From: backup, Env: "sandbox", Now: clock.Now}); err != nil {
		t.Fatal(err)
	}
	s := reopen(t, path, clock, fanAll)
	clock.Advance(time.Minute)
	storetest.Register(t, s, "ORD-3", 1250, "eur")
	storetest.Deliver(t, s, paysFor("evt_3", "pi_3", "ORD-3", clock.Now().Unix()))
	storetest.Work(t, s)
	if got := effectsOf(t, s, "ORD-3"); !slices.Equal(got, []string{"http held", "email held", "exec held"}) {
		t.Errorf("while held: %v", got)
	}
	if r, err := s.Release(ctx); err != nil || r.New != 2 {
		t.Errorf("released %+v, %v", r, err)
	}
	if got := effectsOf(t, s, "ORD-3"); !slices.Equal(got, []string{"http pending", "email pending", "exec pending"}) {
		t.Errorf("after the release: %v", got)
	}
}

func TestRestoreRefuses(t *testing.T) {
	path, backup, clock := shopAndBackup(t)
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.db")
	damaged := slices.Clone(whole)
	for i := 3 * 4096; i < len(damaged)-4096; i++ {
		damaged[i] ^= 0x5a
	}
	if err := os.WriteFile(broken, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	inUse := filepath.Join(t.TempDir(), "in-use.db")
	if err := os.WriteFile(inUse, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inUse+"-wal", []byte("something"), 0o600); err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, from, env, want string }{
		{"garbage", garbage, "sandbox", "database"},
		{"damaged", broken, "sandbox", ""},
		{"not there", filepath.Join(t.TempDir(), "x.db"), "sandbox", "no such file"},
		{"itself", path, "sandbox", "the database itself"},
		{"a copy in use", inUse, "sandbox", "-wal"},
		{"of the other mode", backup, "live", "INTEGRATION_ENV"},
	} {
		_, err := store.Restore(ctx, store.RestoreOptions{Path: path, From: tt.from, Env: tt.env, Now: clock.Now})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(was) {
		t.Errorf("the database has changed (%v)", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), ".part-") || strings.Contains(e.Name(), "before-restore") {
			t.Errorf("%s is left over", e.Name())
		}
	}
	serving := reopen(t, path, clock)
	if _, err := store.Restore(ctx, store.RestoreOptions{Path: path, From: backup, Env: "sandbox", Now: clock.Now}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("while it is served: %v", err)
	}
	_ = serving
}

type diedAt struct{}

// TestARestoreMayDieAnywhere: after a death at each of its points the name has a
// whole database, the old or the new one, and what was acknowledged in the old
// one is in the old one, also with a -wal that a crash left beside it.
func TestARestoreMayDieAnywhere(t *testing.T) {
	for _, point := range []string{"restore:copied", "restore:prepared", "restore:wal-aside", "restore:aside", ""} {
		t.Run(point, func(t *testing.T) {
			path, backup, clock := shopAndBackup(t)
			crashedWithWAL(t, path, clock)
			func() {
				defer func() {
					if p := recover(); p != nil && p != (diedAt{}) {
						panic(p)
					}
				}()
				_, err := store.Restore(ctx, store.RestoreOptions{Path: path, From: backup, Env: "sandbox", Now: clock.Now, Testpoint: func(at string) {
					if at == point {
						panic(diedAt{})
					}
				}})
				if err != nil {
					t.Error(err)
				}
			}()
			s := reopen(t, path, clock)
			storetest.Check(t, s)
			page, err := s.ListEvents(ctx, store.EventFilter{})
			if err != nil {
				t.Fatal(err)
			}
			held, err := s.HeldSince(ctx)
			if err != nil {
				t.Fatal(err)
			}
			want, isNew := 3, false // evt_1, evt_2, and one that was in the -wal alone
			if point == "" {
				want, isNew = 1, true
			}
			if len(page.Items) != want || (held != 0) != isNew {
				t.Errorf("%d events, held since %v; want %d", len(page.Items), held, want)
			}
		})
	}
}

// crashedWithWAL leaves the database as a crash does: an acknowledged event is in
// the -wal alone.
func crashedWithWAL(t *testing.T, path string, clock *storetest.Clock) {
	t.Helper()
	o := storetest.Options(filepath.Dir(path), clock)
	o.Path, o.Log = path, slog.New(slog.DiscardHandler)
	s, err := store.Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Deliver(t, s, paysFor("evt_wal", "pi_wal", "ORD-9", opened+60))
	saved := map[string][]byte{}
	for _, end := range []string{"", "-wal"} {
		if saved[end], err = os.ReadFile(path + end); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for end, b := range saved {
		if err := os.WriteFile(path+end, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path + "-shm"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if st, err := os.Stat(path + "-wal"); err != nil || st.Size() == 0 {
		t.Fatalf("no -wal: %v", err)
	}
}

// TestRestoreOntoALostDisk: no database, and a -wal of nobody's beside the name.
func TestRestoreOntoALostDisk(t *testing.T) {
	_, backup, clock := shopAndBackup(t)
	path := filepath.Join(t.TempDir(), "paidonce.db")
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.WriteFile(path+end, []byte(strings.Repeat("stale", 10_000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	info, err := store.Restore(ctx, store.RestoreOptions{Path: path, From: backup, Env: "sandbox", Now: clock.Now})
	if err != nil || info.Aside != "" {
		t.Fatalf("%+v, %v", info, err)
	}
	s := reopen(t, path, clock)
	storetest.Check(t, s)
	if _, err := os.Stat(path + "-wal.stale"); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
}

// TestARefundAfterARestoreIsLookedUpFirst: what is asked again after a restore
// may have been done before it. Neither the release nor a person's retry sends
// it blindly.
func TestARefundAfterARestoreIsLookedUpFirst(t *testing.T) {
	for _, how := range []string{"release", "retry"} {
		path, backup, clock := shopAndBackup(t)
		if _, err := store.Restore(ctx, store.RestoreOptions{Path: path, From: backup, Env: "sandbox", Now: clock.Now}); err != nil {
			t.Fatal(err)
		}
		s := reopen(t, path, clock, fanAll, func(o *store.Options) { o.StripeKey = "sk_test" })
		e, err := s.RequestRefund(ctx, "", "ORD-1", asks(500, "r-1"))
		if err != nil || e.Status != "held" {
			t.Fatalf("asked while held: %s, %v", e.Status, err)
		}
		if how == "release" {
			_, err = s.Release(ctx)
		} else {
			_, err = s.RetryEffect(ctx, e.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		if c := storetest.ClaimOne(t, s, store.StripeTarget); !c.LookUp {
			t.Errorf("%s: it goes out without a look-up", how)
		}
	}
}
