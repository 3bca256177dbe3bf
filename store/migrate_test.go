package store

import (
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"paidonce/schema"
)

func TestAFileFromBeforeStockIsBroughtAlong(t *testing.T) {
	o := openTest(t).opt
	o.Path = filepath.Join(t.TempDir(), "old.db")
	db, err := openPool(o, false)
	if err != nil {
		t.Fatal(err)
	}
	run(t, db, `PRAGMA application_id = 1885432164`)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, schema.FS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	const items = `[{"sku":"ebook","quantity":2,"unit_minor":0},{"sku":"ebook","quantity":1,"unit_minor":0},{"sku":"mug","quantity":1,"unit_minor":0}]`
	run(t, db, `INSERT INTO orders (id, tenant, order_id, status, total_minor, currency, amount_policy, allow_discount, items, registered, created_at, updated_at,
			received_minor, refunded_minor, paid_at) VALUES
		(1, 'main', 'PAID', 'paid', 700, 'eur', 'exact', 0, '`+items+`', 'x', 1, 1, 700, 0, 1),
		(2, 'main', 'OPEN', 'awaiting_payment', 700, 'eur', 'exact', 0, '`+items+`', 'x', 1, 1, 0, 0, NULL),
		(3, 'main', 'BACK', 'refunded', 700, 'eur', 'exact', 0, '`+items+`', 'x', 1, 1, 700, 700, 1)`)
	run(t, db, `INSERT INTO operations (order_id, name, occurred_at, recorded_at) VALUES (1, 'order.paid', 1, 1)`)
	run(t, db, `INSERT INTO entries (scope, object, account, seq, order_id, amount_minor, currency, occurred_at, recorded_at) VALUES
		('s', 'pi_1', 'sales', 1, 1, 700, 'eur', 1, 1), ('s', 'pi_3', 'sales', 1, 3, 700, 'eur', 1, 1), ('s', 're_3', 'refunds', 1, 3, -700, 'eur', 1, 1)`)
	run(t, db, `INSERT INTO facts (scope, object_id, kind, tenant, body, payment_intent, created_at, updated_at) VALUES
		('s', 'pi_a', 'payment_intent', 'main', '{"sticky":{}}', NULL, 1, 1),
		('s', 'pi_b', 'payment_intent', 'main', '{"sticky":{"invoice":"in_1"}}', NULL, 1, 1),
		('s', 'ch_b', 'charge', 'main', '{"sticky":{"payment_intent":"pi_b"}}', 'pi_b', 1, 1),
		('s', 'cs_c', 'session', 'main', '{"sticky":{"mode":"setup"}}', NULL, 1, 1)`)
	for i, object := range []string{"pi_a", "pi_b", "ch_b", "cs_c"} {
		if _, err := db.ExecContext(t.Context(), `
			INSERT INTO events (source_scope, event_id, source, tenant, via, type, api_version, object_id, status, verdict, due_at, occurred_at, received_at, done_at)
			VALUES ('s', ?, 'stripe', 'main', 'webhook', 't', '', ?, 'done', 'unlinked', 1, 1, 1, 1)`, i, object); err != nil {
			t.Fatal(err)
		}
	}
	run(t, db, `INSERT INTO event_counts (status, verdict, n) VALUES ('done', 'unlinked', 4)`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	broken, err := s.CheckInvariants(t.Context())
	if err != nil || len(broken) > 0 {
		t.Errorf("after the migration: %v, %q", err, broken)
	}
	st, err := s.Stats(t.Context())
	if err != nil || st.Unlinked != 1 || st.Events["done"]["unlinked"] != 4 {
		t.Errorf("stats %+v, %v; want one of four unlinked events to look at: pi_a", st, err)
	}
	var held int64
	if err := s.reads.QueryRowContext(t.Context(), `SELECT coalesce(sum(quantity), 0) FROM stock_moves`).Scan(&held); err != nil || held != 4 {
		t.Errorf("orders hold %d, %v; want the 4 items of the paid one", held, err)
	}
}
