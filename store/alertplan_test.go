package store

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// planner asks SQLite how it would answer each query before it passes it on.
type planner struct {
	querier
	t     *testing.T
	plans map[string][]string // query → steps
	asked *int
}

func (p planner) query(query string, args ...any) (*sql.Rows, error) {
	rows, err := p.querier.query("EXPLAIN QUERY PLAN "+query, args...)
	steps, err := collect(rows, err, func(r *sql.Rows, step *string) error {
		var id, parent, unused int
		return r.Scan(&id, &parent, &unused, step)
	})
	if err != nil {
		p.t.Errorf("explain %s: %v", query, err)
	}
	p.plans[query] = steps
	*p.asked++
	return p.querier.query(query, args...)
}

// scans finds the steps that read a whole table; those through one of the
// partial indexes read only what lies open.
var scans = regexp.MustCompile(`^SCAN (\S+)(?: USING (?:COVERING )?INDEX (\S+))?`)

// small are tables of a handful of rows, functions that yield JSON, and the
// bounded windows that are read before.
var small = regexp.MustCompile(`^(alerts|findings|meta|event_counts|effect_counts|a|json_each|\(?subquery|CONSTANT)`)

// TestNoAlertReadsAWholeTable looks at how SQLite answers every question of a
// check, when there is something to find and when it is told.
func TestNoAlertReadsAWholeTable(t *testing.T) {
	s := openTest(t)
	now := At(time.Now())
	s.installed = 1
	s.w.fullAt.Store(int64(now))
	const order = `INSERT INTO orders (tenant, order_id, status, total_minor, currency, amount_policy, allow_discount, registered, created_at, updated_at, attention)
		VALUES ('main', ?, 'paid', 1250, 'eur', 'exact', 0, '', 1, 1, ?)`
	attention := func(word, cause string) string {
		return fmt.Sprintf(`[{"word":%q,"cause":%q,"detail":"d"}]`, word, cause)
	}
	err := s.w.write(t.Context(), "fill", func(tx *Tx) error {
		for i, verdict := range append([]string{"unlinked", "new"}, quarantineVerdicts...) {
			status := map[string]string{"unlinked": "done", "new": "pending"}[verdict]
			if status == "" {
				status = "quarantined"
			}
			if _, err := tx.insert(`INSERT INTO events (source_scope, event_id, object_id, source, tenant, via, type, api_version, status, verdict, watched, due_at, occurred_at, received_at, done_at)
				VALUES ('s', ?, 'pi_1', 's', 'main', 'webhook', 't', '', ?, ?, ?, 1, 1, 1, CASE ? WHEN 'pending' THEN NULL ELSE 1 END)`,
				fmt.Sprint(i), status, verdict, verdict == "unlinked", status); err != nil {
				return err
			}
			tx.count(status, verdict, 1)
			tx.watch(false, verdict == "unlinked")
		}
		for i := range 2 {
			if _, err := tx.insert(`INSERT INTO events (source_scope, event_id, source, tenant, via, type, api_version, status, verdict, due_at, occurred_at, received_at, done_at, deliveries)
				VALUES ('s', ?1, 's', 'main', 'reconcile', 't', '', 'done', 'applied', ?2, ?3, ?2, ?2, 0)`, fmt.Sprint("r", i), now-Time(time.Hour.Milliseconds()), now+1e10); err != nil {
				return err
			}
		}
		for _, name := range []string{AlertEndpoint, AlertClock, AlertReconcile, AlertBackup, AlertWAL} {
			if _, err := tx.insert(`INSERT INTO findings (name, thing, text, at) VALUES (?, 't', 'text', 1)`, name); err != nil {
				return err
			}
		}
		for _, word := range []string{attentionOversold, attentionDispute, AttentionEffectFailed} {
			if _, err := tx.insert(order, word, attention(word, "1/1")); err != nil {
				return err
			}
		}
		for i, status := range []string{"failed", "pending", "sending", "unknown", "held"} {
			if _, err := tx.insert(`INSERT INTO effects (subject, operation, target, kind, key, body, status, attempts, failures, due_at, created_at, occurred_at, done_at)
				VALUES ('event:1', ?, 'app', 'http', ?, x'', ?, 9, 9, CASE WHEN ? IN ('pending', 'sending') THEN 1 END, 1, 1, CASE ? WHEN 'failed' THEN 1 END)`,
				status, fmt.Sprint(i), status, status, status); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p := planner{t: t, plans: map[string][]string{}, asked: new(int)}
	rules := AlertRules{Pending: time.Minute, Rejects: RejectsSeen{Source: "s", InARow: 5}}
	err = s.read(t.Context(), func(q querier) error {
		p.querier = q
		if _, err := alertStates(p); err != nil {
			return err
		}
		for _, c := range conditions() {
			before := *p.asked
			f, err := c.find(s, p, now, rules)
			if err != nil || f.count == 0 || len(f.things) == 0 {
				t.Errorf("%s: found %+v, %v; want something", c.name, f, err)
			}
			if *p.asked == before && c.name != AlertRejects && c.name != AlertDiskFull {
				t.Errorf("%s asked nothing", c.name)
			}
			if _, err := c.items(s, p, f.things); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for query, steps := range p.plans {
		for _, step := range steps {
			m := scans.FindStringSubmatch(step)
			if m == nil || small.MatchString(m[1]) {
				continue
			}
			switch m[2] {
			case "events_open", "events_due", "effects_open", "effects_failed", "orders_attention":
			default:
				t.Errorf("%s\nin %s", step, strings.Join(strings.Fields(query), " "))
			}
		}
	}
	if len(p.plans) < 15 {
		t.Errorf("only %d questions were looked at", len(p.plans))
	}
}
