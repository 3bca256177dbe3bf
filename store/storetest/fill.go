package storetest

import (
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver, for rows that no API would make this fast
)

// Fill puts n done events into the file at path, which no process serves, as a
// shop of some years has them: four for each paid order, with its fact, its entry
// in the books, its operation and an effect that is done. They have no payloads.
// It keeps every promise that CheckInvariants looks at.
func Fill(t testing.TB, path string, n int) {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file://"+(&url.URL{Path: abs}).EscapedPath()+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(-200000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	const at = "1700000000000" // ms, of the first; the others follow a millisecond apart
	const step = 50_000
	orders := max(n/4, 1)
	for first := 1; first <= orders; first += step {
		last := min(first+step-1, orders)
		rows := fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)`, first, last)
		events := fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)`, (first-1)*4+1, last*4)
		for _, insert := range []string{
			rows + ` INSERT INTO orders (id, tenant, order_id, status, total_minor, currency, amount_policy, allow_discount, provider_payment,
				received_minor, customer, registered, created_at, paid_at, updated_at)
				SELECT i, 'main', 'BIG-' || i, 'paid', 1250, 'eur', 'exact', 0, 'pi_big' || i, 1250, '{"email":"c' || i || '@example.com"}', '', AT + i, AT + i, AT + i FROM n`,
			rows + ` INSERT INTO facts (id, scope, object_id, kind, tenant, body, order_id, created_at, updated_at)
				SELECT i, 'stripe:self:test', 'pi_big' || i, 'payment_intent', 'main',
					'{"kind":"payment_intent","id":"pi_big' || i || '","rank":{"class":3,"created":AT,"event":"evt_big' || (i * 4) || '"},"snapshot":{"status":"succeeded","amount":1250,"currency":"eur","order_id":"BIG-' || i || '"},"sticky":{"succeeded":true,"received":1250,"order_ids":["BIG-' || i || '"],"proven_at":AT}}',
					i, AT + i, AT + i FROM n`,
			rows + ` INSERT INTO fact_names (tenant, name, fact) SELECT 'main', 'BIG-' || i, i FROM n`,
			events + ` INSERT INTO events (id, source_scope, event_id, source, tenant, via, type, api_version, object_id, status, verdict, merged, order_id, due_at, occurred_at, received_at, done_at)
				SELECT i, 'stripe:self:test', 'evt_big' || i, 'stripe', 'main', 'webhook', 'payment_intent.succeeded', '', 'pi_big' || ((i + 3) / 4), 'done',
					CASE WHEN i % 4 = 0 THEN 'applied' ELSE 'duplicate' END, i % 4 = 0, (i + 3) / 4, AT + i, AT + i, AT + i, AT + i FROM n`,
			rows + ` INSERT INTO entries (scope, object, account, seq, order_id, amount_minor, currency, occurred_at, recorded_at, event)
				SELECT 'stripe:self:test', 'pi_big' || i, 'sales', 1, i, 1250, 'eur', AT + i, AT + i, i * 4 FROM n`,
			rows + ` INSERT INTO operations (order_id, name, occurred_at, recorded_at, event, fanned_out) SELECT i, 'order.paid', AT + i, AT + i, i * 4, 1 FROM n`,
			rows + ` INSERT INTO effects (id, subject, order_id, event, operation, target, kind, key, body, status, attempts, occurred_at, created_at, done_at)
				SELECT i, 'order:main/BIG-' || i, i, i * 4, 'order.paid', 'app', 'http', 'po_big' || i, x'', 'done', 1, AT + i, AT + i, AT + i FROM n`,
			rows + ` INSERT INTO effect_attempts (effect, n, key, started_at, finished_at, outcome) SELECT i, 1, 'po_big' || i, AT, AT, 'done' FROM n`,
		} {
			if _, err := db.Exec(strings.ReplaceAll(insert, "AT", at)); err != nil {
				t.Fatalf("fill: %v in %s", err, insert)
			}
		}
	}
	if _, err := db.Exec(`
		INSERT INTO event_counts (status, verdict, n) SELECT status, verdict, count(*) FROM events WHERE event_id LIKE 'evt_big%' GROUP BY status, verdict
		ON CONFLICT (status, verdict) DO UPDATE SET n = n + excluded.n`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
}
