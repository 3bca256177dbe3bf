package store

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"paidonce/store/payment"
)

// openVerdicts is the WHERE of events_open, word for word, so that SQLite
// takes that index.
const openVerdicts = `verdict IN ('unlinked', 'amount_mismatch', 'currency_mismatch', 'order_conflict', 'contradiction',
	'malformed', 'too_many_attempts')`

var quarantineVerdicts = []string{"amount_mismatch", "currency_mismatch", "order_conflict", "contradiction", "malformed", "too_many_attempts"}

// findQuarantined finds all quarantined events. One that is run again and
// quarantined again is another thing: its lease went up.
func (s *Store) findQuarantined(q querier, _ Time, _ AlertRules) (finding, error) {
	var f finding
	if _, err := one(q, `SELECT coalesce(sum(n), 0) FROM event_counts WHERE status = 'quarantined'`, nil, &f.count); err != nil || f.count == 0 {
		return f, err
	}
	for _, verdict := range quarantineVerdicts {
		rows, err := q.query(`SELECT id, lease FROM events INDEXED BY events_open WHERE `+openVerdicts+` AND verdict = ? ORDER BY id DESC LIMIT ?`,
			verdict, alertWindow)
		more, err := collect(rows, err, scanThing)
		if err != nil {
			return f, err
		}
		f.things = append(f.things, more...)
	}
	return f.newest(), nil
}

// newest puts the things in sequence and keeps the newest. While all of them
// are there, they are the better count: the counter is as of the last commit.
func (f finding) newest() finding {
	slices.SortFunc(f.things, func(a, b thing) int { return cmp.Or(cmp.Compare(b.row, a.row), cmp.Compare(a.mark, b.mark)) })
	if len(f.things) < alertWindow {
		f.count = int64(len(f.things))
		return f
	}
	f.things = f.things[:alertWindow]
	f.count = max(f.count, alertWindow)
	return f
}

func scanThing(r *sql.Rows, t *thing) error { return r.Scan(&t.row, &t.mark) }

// findUnlinked finds watched money that nobody has claimed for a day, where
// the shop wants to know. Where there is none at all, as in a shop that sells
// subscriptions only, the counter says so; else only the newest alertScan
// unlinked events are read. What lies beyond counts as older than a day: where
// more than that come in a day, people are told early, and never too late.
func (s *Store) findUnlinked(q querier, now Time, _ AlertRules) (finding, error) {
	var f finding
	if s.opt.Unlinked == "ignore" {
		return f, nil
	}
	var watched int64
	if _, err := one(q, `SELECT watched FROM event_counts WHERE status = 'done' AND verdict = 'unlinked'`, nil, &watched); err != nil || watched == 0 {
		return f, err
	}
	const newest = `(SELECT id, watched, received_at FROM events INDEXED BY events_open WHERE ` + openVerdicts + ` AND verdict = 'unlinked'
		ORDER BY id DESC LIMIT ?)`
	since := now - Time(alertUnlinkedAfter.Milliseconds())
	var seen, young, old int64
	if _, err := one(q, `SELECT count(*), coalesce(sum(watched AND received_at > ?), 0), coalesce(sum(watched AND received_at <= ?), 0) FROM `+newest,
		[]any{since, since, alertScan}, &seen, &young, &old); err != nil {
		return f, err
	}
	f.count = old
	if seen == alertScan {
		f.count = max(old, watched-young)
	}
	if old == 0 {
		return f, nil
	}
	rows, err := q.query(`SELECT id, '' FROM `+newest+` WHERE watched AND received_at <= ? ORDER BY id DESC LIMIT ?`, alertScan, since, alertWindow)
	f.things, err = collect(rows, err, scanThing)
	return f, err
}

// findPending finds the events that wait for longer than they may, the longest
// waiting first.
func (s *Store) findPending(q querier, now Time, rules AlertRules) (finding, error) {
	var f finding
	if rules.Pending <= 0 {
		return f, nil
	}
	const due = `SELECT * FROM (SELECT id, received_at FROM events INDEXED BY events_due WHERE status = 'pending' AND suspect = ? ORDER BY due_at, id LIMIT ?)`
	const late = ` FROM (` + due + ` UNION ALL ` + due + `) WHERE received_at < ?`
	args := []any{0, alertScan, 1, alertScan, now - Time(rules.Pending.Milliseconds())}
	if _, err := one(q, `SELECT count(*)`+late, args, &f.count); err != nil || f.count == 0 {
		return f, err
	}
	rows, err := q.query(`SELECT id, '', received_at`+late+` ORDER BY received_at, id LIMIT ?`, append(args, alertItems)...)
	f.things, err = collect(rows, err, func(r *sql.Rows, t *thing) error {
		err := r.Scan(&t.row, &t.mark, &t.at)
		t.detail = tellWait(now - t.at)
		return err
	})
	return f, err
}

// openEvent is what an item says of an event.
type openEvent struct {
	id, scope, object, verdict string
	receivedAt, doneAt         Time
	attempts                   int64
	order                      string
}

// eventItems shows events: with the order that they belong to, and what their
// object says of money.
func eventItems(text func(openEvent, thing) (string, Time)) func(*Store, querier, []thing) ([]AlertItem, error) {
	return func(_ *Store, q querier, things []thing) ([]AlertItem, error) {
		var items []AlertItem
		for _, th := range things {
			var e openEvent
			ok, err := one(q, `
				SELECT e.event_id, e.source_scope, coalesce(e.object_id, ''), e.verdict, e.received_at, coalesce(e.done_at, 0), e.attempts,
					coalesce(o.order_id, '')
				FROM events e LEFT JOIN orders o ON o.id = e.order_id WHERE e.id = ?`, []any{th.row},
				&e.id, &e.scope, &e.object, &e.verdict, &e.receivedAt, &e.doneAt, &e.attempts, &e.order)
			if err != nil {
				return nil, fmt.Errorf("event row %d: %w", th.row, err)
			}
			if !ok {
				continue
			}
			item := AlertItem{Order: plain(e.order), Event: plain(e.id)}
			if item.Amount, err = factAmount(q, e.scope, e.object); err != nil {
				return nil, err
			}
			item.Text, item.At = text(e, th)
			items = append(items, item)
		}
		return items, nil
	}
}

// factAmount is what a Stripe object says of money: what a payment intent
// received or a charge took, and else its amount. "" is nothing.
func factAmount(q querier, scope, object string) (string, error) {
	if object == "" {
		return "", nil
	}
	var body []byte
	ok, err := one(q, `SELECT body FROM facts WHERE object_id = ? AND scope = ?`, []any{object, scope}, &body)
	if err != nil || !ok {
		return "", err
	}
	var f payment.Fact
	if err := json.Unmarshal(body, &f); err != nil {
		return "", fmt.Errorf("fact of %s: %w", plain(object), err)
	}
	for _, a := range []payment.Amount{f.Sticky.Received, f.Sticky.Captured, f.Snapshot.Amount} {
		if a.Known && a.Minor != 0 && f.Snapshot.Currency != "" {
			return payment.FormatMinor(a.Minor, f.Snapshot.Currency), nil
		}
	}
	return "", nil
}

func quarantinedText(e openEvent, _ thing) (string, Time) {
	at := e.doneAt
	if at == 0 {
		at = e.receivedAt
	}
	return e.verdict + ": " + rules[e.verdict], at
}

func unlinkedText(e openEvent, _ thing) (string, Time) { return rules["unlinked"], e.receivedAt }

func pendingText(e openEvent, th thing) (string, Time) {
	text := "waits for " + th.detail
	if e.verdict == "retrying" {
		text += "; its last try failed"
	}
	return text, e.receivedAt
}

// findRejects finds the source whose deliveries are refused one after the
// other. A process that has just begun has refused and accepted nothing: what
// was told before it stands.
func findRejects(_ *Store, _ querier, _ Time, rules AlertRules) (finding, error) {
	r := rules.Rejects
	if r.InARow < alertRejectsInARow {
		return finding{unknown: r.AcceptedAt == 0}, nil
	}
	return finding{count: int64(r.InARow), things: []thing{{at: r.LastAt, mark: r.Source, detail: r.LastReason}}}, nil
}

func rejectItems(_ *Store, _ querier, things []thing) ([]AlertItem, error) {
	var items []AlertItem
	for _, th := range things {
		items = append(items, AlertItem{At: th.at, Text: plain("source " + th.mark + ": " + th.detail)})
	}
	return items, nil
}
