package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/worker/stripefake"
)

// stripeWorld is a world whose serve has a key for a fake Stripe that delivers
// nothing.
func stripeWorld(t *testing.T) (*world, *stripefake.Server) {
	t.Helper()
	fake := stripefake.NewServer(stripefake.ServerConfig{Now: time.Now, Key: "sk_test_fake"})
	server := httptest.NewServer(fake)
	t.Cleanup(func() {
		fake.Close()
		server.Close()
	})
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"], w.env["STRIPE_API_KEY"], w.env["STRIPE_API_BASE"] = "whsec_test", "sk_test_fake", server.URL
	return w, fake
}

func charge(t *testing.T, fake *stripefake.Server, order string) {
	t.Helper()
	if err := fake.Do(func(a *stripefake.Account) error {
		_, err := a.ChargeDirectly(1250, "eur", map[string]string{"order_id": order})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestReconcileTellsAndExits: what is missing is told without being brought in
// by --dry-run, and brought in without; both exit with 1, and a run that finds
// nothing with 0.
func TestReconcileTellsAndExits(t *testing.T) {
	w, fake := stripeWorld(t)
	w.serve()
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur")
	w.must("reconcile")
	charge(t, fake, "A1")

	exit, stdout, stderr := w.run("reconcile", "--dry-run")
	if exit != 1 || !strings.Contains(stdout, "1 event at Stripe, 0 here, 1 missing; 1 payment, sums differ") ||
		!strings.Contains(stdout, "missing     evt_") || !strings.Contains(stderr, "`paidonce reconcile` brings in") {
		t.Errorf("dry run: exit %d\n%s\n%s", exit, stdout, stderr)
	}
	if strings.Contains(w.must("orders", "show", "A1"), "paid ") {
		t.Error("the dry run has brought it in")
	}
	exit, stdout, stderr = w.run("reconcile")
	if exit != 1 || !strings.Contains(stdout, "1 missing and brought in; 1 payment, sums equal") || !strings.Contains(stdout, "brought in  evt_") {
		t.Errorf("run: exit %d\n%s\n%s", exit, stdout, stderr)
	}
	var o store.OrderDetail
	if w.mustJSON(&o, "orders", "show", "A1"); o.Status != "paid" {
		t.Errorf("A1 is %s", o.Status)
	}
	var r store.RunReport
	w.mustJSON(&r, "reconcile", "--since", "1h")
	if !r.Agrees() || r.EventsSeen != 1 || len(r.Sums) != 1 || r.Sums[0].StripeMinor != 1250 || r.Sums[0].BooksMinor != 1250 {
		t.Errorf("the last run: %+v", r)
	}
	wantParts(t, "stats", w.must("stats"), "last reconcile")
	for _, args := range [][]string{{"reconcile", "--since", "tomorrow"}, {"reconcile", "--since", "2999-01-01"}, {"reconcile", "now"}} {
		if exit, _, _ := w.run(args...); exit != 2 {
			t.Errorf("%v: exit %d", args, exit)
		}
	}
}

func TestReconcileWithoutServeOrKeySaysWhatToDo(t *testing.T) {
	w := newShop(t)
	w.env["STRIPE_WEBHOOK_SECRET"] = "whsec_test"
	if exit, _, stderr := w.run("reconcile"); exit != 1 || !strings.Contains(stderr, "serve is not running") {
		t.Errorf("without serve: exit %d, %s", exit, stderr)
	}
	if exit, _, stderr := w.run("reconcile", "--dry-run"); exit != 1 || !strings.Contains(stderr, "STRIPE_API_KEY") {
		t.Errorf("without a key: exit %d, %s", exit, stderr)
	}
	w.serve()
	if exit, _, stderr := w.run("reconcile"); exit != 1 || !strings.Contains(stderr, "STRIPE_API_KEY") {
		t.Errorf("serve without a key: exit %d, %s", exit, stderr)
	}
}

// TestBackupRestorePurgeAtTheCommandLine walks the way that the README tells.
func TestBackupRestorePurgeAtTheCommandLine(t *testing.T) {
	w := newShop(t)
	w.env["STRIPE_WEBHOOK_SECRET"] = "whsec_test"
	w.sellA1()
	wantParts(t, "backup", w.must("backup", "night.db"), "night.db: ", " 1 event, checked")
	if exit, _, stderr := w.run("backup", defaultDB); exit != 1 || !strings.Contains(stderr, "the service's own") {
		t.Errorf("backup onto itself: exit %d, %s", exit, stderr)
	}
	w.must("orders", "add", "--id", "A2", "--total", "1", "--currency", "eur")
	out := w.must("restore", "night.db")
	wantParts(t, "restore", out, "restored from", "was there before", "Next:", "paidonce restore --release")
	if exit, _, _ := w.run("orders", "show", "A2"); exit != 1 {
		t.Error("the order of since is still there")
	}
	aside, err := filepath.Glob(defaultDB + ".before-restore-*")
	if err != nil || len(aside) != 1 {
		t.Errorf("put aside: %v, %v", aside, err)
	}
	wantParts(t, "release", w.must("restore", "--release"), "looked up at Stripe", "left to you")
	w.serve()
	if exit, _, stderr := w.run("restore", "night.db"); exit != 1 || !strings.Contains(stderr, "in use") || !strings.Contains(stderr, "stop it first") {
		t.Errorf("while serve runs: exit %d, %s", exit, stderr)
	}
	for _, args := range [][]string{{"restore"}, {"restore", "a", "b"}, {"restore", "--release", "x"}, {"backup"}, {"purge", "x"}} {
		if exit, _, _ := w.run(args...); exit != 2 {
			t.Errorf("%v: exit %d", args, exit)
		}
	}
	var plan store.PurgePlan
	w.mustJSON(&plan, "purge", "--dry-run")
	if plan.Payloads != 0 || !plan.Shrinks {
		t.Errorf("plan %+v", plan)
	}
	w.now = time.Now().AddDate(0, 0, 40)
	wantParts(t, "purge", w.must("purge"), "1 (", "gone")
	w.mustJSON(&plan, "purge", "--dry-run")
	if plan.Payloads != 0 {
		t.Errorf("after the purge: %+v", plan)
	}
	if st, err := os.Stat("night.db"); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", st, err)
	}
}
