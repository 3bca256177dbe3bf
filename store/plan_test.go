package store_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

// grows are the tables that grow with a shop's life.
var grows = regexp.MustCompile(`^SCAN (e|events|p|payloads|o|orders|f|facts|n|fact_names|entries|operations|effects|effect_attempts|a|refs|r|acts|stock_moves|m|audit|timings|checkups|c)( USING (COVERING )?INDEX (\w+))?$`)

// open are the indexes that hold only what waits for something.
var openIndexes = []string{"events_due", "events_open", "events_waiting", "events_watched", "events_undelivered", "effects_due", "effects_lane",
	"effects_open", "effects_failed", "effects_purge", "orders_attention", "operations_waiting", "runs_running", "runs_requested", "checkups_due"}

// TestNoQueryReadsAWholeTable: a shop's whole life, all lists, and the steps that
// go on in the background; then SQLite is asked how it answers each of their
// statements. The books by day, and a check of the whole file, read all there is
// by their nature.
func TestNoQueryReadsAWholeTable(t *testing.T) {
	clock := storetest.NewClock()
	path := filepath.Join(t.TempDir(), "paidonce.db")
	s := reopen(t, path, clock)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	storetest.Fill(t, path, 400)
	s = reopen(t, path, clock, fanAll)
	queries := map[string]bool{}
	store.Watch(s, func(query string) { queries[query] = true })
	clock.Advance(time.Minute)
	storetest.Register(t, s, "ORD-1", 1250, "eur", func(n *store.NewOrder) {
		n.Items, n.Refs = []store.Item{{SKU: "mug", Quantity: 1}}, []string{"cs_1"}
	})
	storetest.Deliver(t, s, paysFor("evt_1", "pi_1", "ORD-1", opened+1), paysFor("evt_2", "pi_2", "none", opened+2), "{}")
	for _, target := range []string{"t-http", "t-email", "t-exec"} {
		for _, c := range storetest.Claim(t, s, target) {
			storetest.Finish(t, s, c, done)
		}
	}
	listed(t, s, clock, "evt_3")
	if _, err := s.Checkups(ctx, []store.ReconcileSource{{Name: "stripe", Scope: "stripe:self:test", Tenant: "main"}}, true, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ExplainEvent(ctx, "stripe:self:test", "evt_1"); err != nil {
		t.Fatal(err)
	}
	for _, look := range looks() {
		if err := look.run(s); err != nil {
			t.Fatalf("%s: %v", look.name, err)
		}
	}
	clock.Advance(60 * 24 * time.Hour)
	if _, err := s.CheckAlerts(ctx, store.AlertRules{Pending: time.Minute}); err != nil {
		t.Fatal(err)
	}
	purge(t, s, clock.Now().AddDate(0, 0, -30))
	if _, err := s.Release(ctx); err != nil {
		t.Fatal(err)
	}
	for _, query := range store.Watch(s, nil) {
		queries[query] = true
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for query := range queries {
		if strings.HasPrefix(query, "PRAGMA") || !regexp.MustCompile(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)`).MatchString(query) {
			continue
		}
		for _, step := range planOf(t, db, query) {
			m := grows.FindStringSubmatch(step)
			if m == nil || slices.Contains(openIndexes, m[4]) {
				continue
			}
			// The newest of a table, without a filter, ends after a page.
			if flat := strings.Join(strings.Fields(query), " "); !regexp.MustCompile(`ORDER BY (\w+\.)?(id|occurred_at, (n\.)?id)( DESC)? LIMIT`).MatchString(flat) || strings.Count(flat, "?") > 2 {
				t.Errorf("%s\nin %s", step, flat)
			}
		}
	}
	if len(queries) < 150 {
		t.Errorf("only %d statements were looked at", len(queries))
	}
}

func planOf(t *testing.T, db *sql.DB, query string) (steps []string) {
	t.Helper()
	rows, err := db.Query("EXPLAIN QUERY PLAN "+query, nulls(query)...)
	if err != nil {
		t.Errorf("explain %s: %v", query, err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	return steps
}

// nulls are as many arguments as a query has parameters.
func nulls(query string) []any {
	if numbered := regexp.MustCompile(`\?(\d+)`).FindAllStringSubmatch(query, -1); len(numbered) > 0 {
		most := 0
		for _, m := range numbered {
			n := 0
			_, _ = fmt.Sscan(m[1], &n)
			most = max(most, n)
		}
		return make([]any, most)
	}
	return make([]any, strings.Count(query, "?"))
}
