package store

import (
	"context"
	"database/sql"
	"fmt"
)

// invariants are queries whose rows are each a broken promise, told in words.
var invariants = []struct{ name, query string }{
	{"integrity", `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'`},
	{"foreign keys", `SELECT "table" || ' row ' || coalesce(rowid, '?') || ' points to nothing in ' || parent FROM pragma_foreign_key_check`},
	{"books equal orders", `
		SELECT o.tenant || '/' || o.order_id || ': ' || printf('received %d, refunded %d, charged back %d, suspense %d',
				o.received_minor, o.refunded_minor, o.charged_back_minor, o.suspense_minor)
			|| printf(' but the books say %d, %d, %d, %d', e.sales, -e.refunds, -e.disputes, e.suspense)
		FROM orders o JOIN (
			SELECT o.id,
				coalesce(sum(n.amount_minor) FILTER (WHERE n.account = 'sales'), 0) AS sales,
				coalesce(sum(n.amount_minor) FILTER (WHERE n.account = 'refunds'), 0) AS refunds,
				coalesce(sum(n.amount_minor) FILTER (WHERE n.account = 'disputes'), 0) AS disputes,
				coalesce(sum(n.amount_minor) FILTER (WHERE n.account = 'suspense' AND n.currency = o.currency), 0) AS suspense
			FROM orders o LEFT JOIN entries n ON n.order_id = o.id GROUP BY o.id) e ON e.id = o.id
		WHERE (o.received_minor, o.refunded_minor, o.charged_back_minor, o.suspense_minor)
			IS NOT (e.sales, -e.refunds, -e.disputes, e.suspense)`},
	{"sales are in the order's currency", `
		SELECT o.order_id || ': ' || n.account || ' in ' || n.currency FROM entries n JOIN orders o ON o.id = n.order_id
		WHERE n.account <> 'suspense' AND n.currency <> o.currency`},
	{"money that no order claims stands in suspense", `
		SELECT object || ' stands in ' || account || ' of no order: ' || sum(amount_minor) FROM entries
		WHERE order_id IS NULL AND account <> 'suspense' GROUP BY scope, object, account HAVING sum(amount_minor) <> 0`},
	{"event counts", `
		SELECT printf('%s %s: %d counted, %d there', status, verdict, sum(counted), sum(there)) FROM (
			SELECT status, verdict, n AS counted, 0 AS there FROM event_counts
			UNION ALL SELECT status, verdict, 0, count(*) FROM events GROUP BY status, verdict
			UNION ALL SELECT 'watched', verdict, watched, 0 FROM event_counts
			UNION ALL SELECT 'watched', verdict, 0, sum(watched) FROM events GROUP BY verdict)
		GROUP BY status, verdict HAVING sum(counted) <> sum(there)`},
	{"a paid order has paid_at and received what it says", `
		SELECT order_id || ' is ' || status FROM orders
		WHERE status IN ('paid', 'partially_refunded', 'refunded', 'disputed', 'charged_back') AND paid_at IS NULL`},
	{"order.paid was recorded for what is paid", `
		SELECT o.order_id FROM orders o WHERE o.status = 'paid' AND o.closed_at IS NULL AND o.charged_back_minor = 0
			AND NOT EXISTS (SELECT 1 FROM operations p WHERE p.order_id = o.id AND p.name = 'order.paid')`},
	{"an order holds all of its items or none, as its money says", `
		SELECT o.tenant || '/' || o.order_id || printf(' is %s and holds %d of %d × ', o.status, held, sold) || sku FROM (
			SELECT id, sku, sum(sold) AS sold, sum(held) AS held FROM (
				SELECT o.id, json_extract(i.value, '$.sku') AS sku, json_extract(i.value, '$.quantity') AS sold, 0 AS held
				FROM orders o, json_each(o.items) i
				UNION ALL SELECT order_id, sku, 0, quantity FROM stock_moves)
			GROUP BY id, sku) x JOIN orders o ON o.id = x.id
		WHERE CASE
			WHEN o.paid_at IS NULL THEN held <> 0
			WHEN o.status = 'refunded' THEN held NOT IN (0, sold)
			ELSE held <> sold END`},
	{"stock is what was counted less what was taken since", `
		SELECT s.tenant || '/' || s.sku || printf(': %d on hand, but %d were counted and %d taken since', s.on_hand, s.counted, taken)
		FROM (
			SELECT s.tenant, s.sku, coalesce(sum(m.quantity), 0) AS taken
			FROM stock s LEFT JOIN (stock_moves m JOIN orders o ON o.id = m.order_id)
				ON m.sku = s.sku AND o.tenant = s.tenant AND m.id > s.counted_after
			GROUP BY s.tenant, s.sku) x JOIN stock s ON s.tenant = x.tenant AND s.sku = x.sku
		WHERE s.on_hand <> s.counted - taken`},
	{"attention holds nothing that was acknowledged", `
		SELECT o.order_id || ': ' || k.word || ' of ' || k.cause FROM orders o, json_each(o.attention) a
		JOIN acks k ON k.order_id = o.id AND k.word = json_extract(a.value, '$.word') AND k.cause = json_extract(a.value, '$.cause')`},
	{"effect counts", `
		SELECT printf('%s: %d counted, %d there', status, sum(counted), sum(there)) FROM (
			SELECT status, n AS counted, 0 AS there FROM effect_counts
			UNION ALL SELECT status, 0, count(*) FROM effects GROUP BY status)
		GROUP BY status HAVING sum(counted) <> sum(there)`},
	{"no effect without its cause", `
		SELECT 'effect ' || e.id || ' of ' || e.operation FROM effects e WHERE
			(e.kind <> 'stripe' AND e.order_id IS NOT NULL
				AND NOT EXISTS (SELECT 1 FROM operations p WHERE p.order_id = e.order_id AND p.name = e.operation))
			OR (e.order_id IS NULL AND e.event IS NULL AND e.subject NOT LIKE 'alert:%')`},
	{"one at a time in a lane", `
		SELECT subject || ' to ' || target || ': ' || count(*) || ' under way' FROM effects
		WHERE status = 'sending' GROUP BY subject, target HAVING count(*) > 1`},
	{"what is done was tried, learned or resolved", `
		SELECT 'effect ' || id FROM effects WHERE status = 'done' AND reason = ''
			AND NOT EXISTS (SELECT 1 FROM effect_attempts a WHERE a.effect = effects.id AND a.outcome = 'done')`},
	{"an order shows its failed effects or a person has seen them", `
		SELECT o.order_id || ': effect ' || e.id FROM effects e JOIN orders o ON o.id = e.order_id
		WHERE e.status = 'failed'
			AND NOT EXISTS (SELECT 1 FROM json_each(o.attention) a WHERE json_extract(a.value, '$.cause') = e.id || '/' || e.attempts)
			AND NOT EXISTS (SELECT 1 FROM acks k WHERE k.order_id = o.id AND k.cause = e.id || '/' || e.attempts)`},
	{"a finished event has an end", `
		SELECT event_id || ' is ' || status FROM events WHERE status <> 'pending' AND done_at IS NULL`},
}

// CheckInvariants looks for broken promises in the whole file and returns one
// line for each. It reads every table: for doctor and for tests.
func (s *Store) CheckInvariants(ctx context.Context) ([]string, error) {
	var broken []string
	err := s.read(ctx, func(q querier) error {
		for _, inv := range invariants {
			rows, err := q.query(inv.query)
			lines, err := collect(rows, err, func(r *sql.Rows, line *sql.NullString) error { return r.Scan(line) })
			if err != nil {
				return fmt.Errorf("check %q: %w", inv.name, err)
			}
			for _, l := range lines {
				broken = append(broken, inv.name+": "+l.String)
			}
		}
		return nil
	})
	return broken, err
}
