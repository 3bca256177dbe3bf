package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"paidonce/store/payment"
)

// moment is a line of the timeline and where it stands among those of its kind.
type moment struct {
	TimelineItem
	row int64
}

// addHistory fills in entries, operations and the timeline: every event that
// speaks of the order's payments, be they its own or in conflict, with verdict
// and reason; every entry, stock move, operation and effect; and every act of a
// person.
func (d *OrderDetail) addHistory(q querier, row int64) error {
	d.Entries, d.Operations, d.Timeline = []Entry{}, []OperationView{}, []TimelineItem{}
	var line []moment
	for _, part := range []struct {
		name string
		read func(q querier, row int64) ([]moment, error)
	}{
		{"events and acts", d.eventsAndActs}, {"entries", d.addEntries}, {"stock", stockHistory}, {"operations", d.addOperations}, {"effects", d.effectHistory},
	} {
		more, err := part.read(q, row)
		if err != nil {
			return fmt.Errorf("%s of order %s: %w", part.name, d.ID, err)
		}
		line = append(line, more...)
	}
	// In one instant a cause stands before what it caused.
	rank := map[string]int{"act": 0, "event": 1, "entry": 2, "stock": 3, "operation": 4, "effect": 5}
	slices.SortStableFunc(line, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(a.row, b.row))
	})
	for _, m := range line {
		d.Timeline = append(d.Timeline, m.TimelineItem)
	}
	return nil
}

// eventsAndActs reads the events, by order and by object (a repeat that came
// before the order did belongs to none), and what people did with either.
func (d *OrderDetail) eventsAndActs(q querier, row int64) ([]moment, error) {
	objects := [][2]string{}
	for _, f := range d.Facts {
		objects = append(objects, [2]string{f.Scope, f.ID})
	}
	rows, err := q.query(`
		WITH mine (id) AS (
			SELECT id FROM events WHERE order_id = ?1
			UNION SELECT e.id FROM json_each(?2) k CROSS JOIN events e
				ON e.source_scope = json_extract(k.value, '$[0]') AND e.object_id = json_extract(k.value, '$[1]'))
		SELECT e.event_id, e.type, e.status, e.verdict, e.reason, coalesce(e.done_at, e.received_at), e.id
		FROM mine CROSS JOIN events e ON e.id = mine.id ORDER BY e.id`, row, jsonText(objects))
	ids := []int64{}
	line, err := collect(rows, err, func(r *sql.Rows, m *moment) error {
		var e Event
		if err := r.Scan(&e.ID, &e.Type, &e.Status, &e.Verdict, &e.Reason, &m.At, &m.row); err != nil {
			return err
		}
		text := e.Type + ": " + e.Status + ", " + e.Verdict
		if e.Reason != "" {
			text += " (" + e.Reason + ")"
		}
		m.Kind, m.ID, m.Event, m.Text = "event", e.ID, e.ID, text
		ids = append(ids, m.row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows, err = q.query(`
		SELECT at, actor, act, object, note, id FROM acts WHERE order_id = ?1
		UNION SELECT at, actor, act, object, note, id FROM acts WHERE event IN (SELECT value FROM json_each(?2)) ORDER BY id`, row, jsonText(ids))
	acts, err := collect(rows, err, func(r *sql.Rows, m *moment) error {
		var actor, object, note string
		if err := r.Scan(&m.At, &actor, &m.ID, &object, &note, &m.row); err != nil {
			return err
		}
		m.Kind = "act"
		m.Text = strings.Join(slices.DeleteFunc([]string{m.ID, object, "by " + actor}, func(s string) bool { return s == "" }), " ")
		if note != "" {
			m.Text += ": " + note
		}
		return nil
	})
	return append(line, acts...), err
}

func (d *OrderDetail) addEntries(q querier, row int64) ([]moment, error) {
	rows, err := q.query(`
		SELECT n.account, n.object, n.amount_minor, n.currency, n.occurred_at, coalesce(e.event_id, ''), n.recorded_at, n.id
		FROM entries n LEFT JOIN events e ON e.id = n.event WHERE n.order_id = ? ORDER BY n.id`, row)
	return collect(rows, err, func(r *sql.Rows, m *moment) error {
		var e Entry
		if err := r.Scan(&e.Account, &e.Object, &e.AmountMinor, &e.Currency, &e.OccurredAt, &e.Event, &m.At, &m.row); err != nil {
			return err
		}
		d.Entries = append(d.Entries, e)
		m.Kind, m.ID, m.Event = "entry", e.Object, e.Event
		m.Text = e.Account + " " + payment.FormatMinor(e.AmountMinor, e.Currency) + " for " + e.Object
		return nil
	})
}

func (d *OrderDetail) addOperations(q querier, row int64) ([]moment, error) {
	rows, err := q.query(`
		SELECT o.name, o.occurred_at, o.recorded_at, coalesce(e.event_id, ''), o.id
		FROM operations o LEFT JOIN events e ON e.id = o.event WHERE o.order_id = ? ORDER BY o.id`, row)
	return collect(rows, err, func(r *sql.Rows, m *moment) error {
		var o OperationView
		if err := r.Scan(&o.Name, &o.OccurredAt, &o.RecordedAt, &m.Event, &m.row); err != nil {
			return err
		}
		d.Operations = append(d.Operations, o)
		m.At, m.Kind, m.ID, m.Text = o.RecordedAt, "operation", o.Name, "recorded "+o.Name
		return nil
	})
}

// effectHistory tells where each effect stands, at the time it came there.
func (d *OrderDetail) effectHistory(q querier, row int64) ([]moment, error) {
	rows, err := q.query(`SELECT id, operation, target, kind, status, reason, attempts, coalesce(done_at, tried_at, created_at)
		FROM effects WHERE order_id = ? ORDER BY id`, row)
	return collect(rows, err, func(r *sql.Rows, m *moment) error {
		var operation, target, kind, status, reason string
		var attempts int64
		if err := r.Scan(&m.row, &operation, &target, &kind, &status, &reason, &attempts, &m.At); err != nil {
			return err
		}
		m.Kind, m.ID = "effect", strconv.FormatInt(m.row, 10)
		m.Text = fmt.Sprintf("effect %d, %s to %s (%s): %s", m.row, operation, target, kind, status)
		if attempts > 1 {
			m.Text += fmt.Sprintf(" after %d attempts", attempts)
		}
		if reason != "" {
			m.Text += ", " + reason
		}
		return nil
	})
}

func stockHistory(q querier, row int64) ([]moment, error) {
	rows, err := q.query(`
		SELECT m.at, m.sku, m.quantity, m.short, coalesce(e.event_id, ''), m.id
		FROM stock_moves m LEFT JOIN events e ON e.id = m.event WHERE m.order_id = ? ORDER BY m.id`, row)
	return collect(rows, err, func(r *sql.Rows, m *moment) error {
		var mv move
		if err := r.Scan(&m.At, &mv.sku, &mv.quantity, &mv.short, &m.Event, &m.row); err != nil {
			return err
		}
		m.Kind, m.ID, m.Text = "stock", mv.sku, mv.text()
		return nil
	})
}

// text tells a move in words.
func (m move) text() string {
	switch {
	case m.quantity < 0:
		return fmt.Sprintf("gave back %d × %s", -m.quantity, m.sku)
	case m.short > 0:
		return fmt.Sprintf("took %d × %s, of which %d were not there", m.quantity, m.sku, m.short)
	}
	return fmt.Sprintf("took %d × %s", m.quantity, m.sku)
}
