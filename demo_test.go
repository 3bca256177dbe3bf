package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// TestTheDemoShowsTheFailureTable runs what `paidonce demo` runs: real
// processes, real kills.
func TestTheDemoShowsTheFailureTable(t *testing.T) {
	if testing.Short() {
		t.Skip("kills twenty processes; TestARowOfTheDemo is the small version")
	}
	t.Setenv(runMain, "1") // the demo starts this binary as its child
	w := newWorld(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	exit, stdout, stderr := w.run("demo", "--once", "--json")
	var rows []demoRow
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || exit != 0 {
		t.Fatalf("exit %d, %v\n%s%s", exit, err, stdout, stderr)
	}
	if len(rows) != len(demoRows(&demoPatience{})) {
		t.Errorf("%d rows, want %d", len(rows), len(demoRows(&demoPatience{})))
	}
	for _, r := range rows {
		if !r.OK || r.Happened == "" {
			t.Errorf("%s: %s → %s", r.Situation, r.Expected, r.Happened)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("it left %v behind, %v", left, err)
	}
}

func TestARowOfTheDemo(t *testing.T) {
	t.Setenv(runMain, "1")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d, err := newDemo(&app{process: process{now: time.Now, stdout: os.Stdout}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.stop()
	if d.world, err = newDemoWorld(time.Now); err != nil {
		t.Fatal(err)
	}
	defer d.world.end()
	if err := d.world.use(d); err != nil {
		t.Fatal(err)
	}
	if err := d.start(ctx, demoChild{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range demoRows(&demoPatience{})[:5] { // with a kill inside a transaction
		happened, ok, err := r.run(ctx, d)
		if err != nil || !ok {
			t.Errorf("%s: %s → %s, %v", r.Situation, r.Expected, happened, err)
		}
	}
	// A row that can fail: the same look at an order that nobody paid.
	if s, err := d.register(ctx); err != nil {
		t.Error(err)
	} else if o, err := d.order(ctx, s.order); err != nil || o.Status == "paid" || o.paidTimes() != 0 {
		t.Errorf("an order that nobody paid is %s, %v", o.Status, err)
	}
}

func TestTheDemosChildWorksForNobodyElse(t *testing.T) {
	for _, tt := range []struct{ name, stdin, mark string }{
		{"nothing on stdin", "", ""},
		{"a directory without a mark", `{"dir":"."}`, ""},
		{"an empty nonce", `{"dir":".","nonce":""}`, "\n"},
		{"another nonce", `{"dir":".","nonce":"aaaaaaaaaaaaaaaaaaaaaaaaaa"}`, "bbbbbbbbbbbbbbbbbbbbbbbbbb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.mark != "" {
				w.write(demoMark, tt.mark)
			}
			w.in = tt.stdin
			exit, stdout, stderr := w.run("demo-child")
			if exit != 1 || !strings.Contains(stderr, "`paidonce demo`") {
				t.Errorf("exit %d\n%s%s", exit, stdout, stderr)
			}
			if _, err := os.Stat(defaultDB); err == nil {
				t.Error("it made a database")
			}
		})
	}
}
