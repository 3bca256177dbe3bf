package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// AuditLine is one line of the trail: a decision on an event, a call, or a
// person's act. It holds ids, words and amounts; no secret and no customer's
// data.
type AuditLine struct {
	Seq       int64  `json:"seq"` // one up from the line before; set when it is copied
	At        Time   `json:"at"`
	Kind      string `json:"kind"` // decision | call | act
	Order     string `json:"order,omitempty"`
	Event     string `json:"event,omitempty"`
	Effect    int64  `json:"effect,omitempty"`
	Operation string `json:"operation,omitempty"`
	Target    string `json:"target,omitempty"`
	Key       string `json:"key,omitempty"` // the idempotency key of a call
	Outcome   string `json:"outcome,omitempty"`
	Detail    string `json:"detail,omitempty"`
	RequestID string `json:"request_id,omitempty"` // Stripe's
	Actor     string `json:"actor,omitempty"`
}

// audit writes a line of the trail, if there is one.
func (s *Store) audit(t *Tx, l AuditLine) error {
	if !s.opt.Audit {
		return nil
	}
	l.At = t.now
	if _, err := t.insert(`INSERT INTO audit (line) VALUES (?)`, jsonText(l)); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// auditDecision writes down where an event stands after a decision on it.
func (s *Store) auditDecision(t *Tx, row int64) error {
	if !s.opt.Audit {
		return nil
	}
	l := AuditLine{Kind: "decision"}
	var status, verdict string
	if _, err := one(t, `SELECT e.event_id, e.type, e.status, e.verdict, e.reason, coalesce(o.order_id, '')
		FROM events e LEFT JOIN orders o ON o.id = e.order_id WHERE e.id = ?`, []any{row},
		&l.Event, &l.Operation, &status, &verdict, &l.Detail, &l.Order); err != nil {
		return fmt.Errorf("audit event %d: %w", row, err)
	}
	l.Outcome = status + ", " + verdict
	return s.audit(t, l)
}

// auditCall writes down one call and its outcome.
func (s *Store) auditCall(t *Tx, e effectRow, c EffectClaim, a Answer) error {
	return s.audit(t, AuditLine{Kind: "call", Order: c.Order, Effect: c.Row, Operation: c.Operation, Target: c.Target, Key: c.Key,
		Outcome: string(a.Outcome), Detail: cut(a.Error), RequestID: cut(a.RequestID)})
}

// AuditAfter returns up to limit lines of the trail after seq, in sequence.
func (s *Store) AuditAfter(ctx context.Context, seq int64, limit int) ([]AuditLine, error) {
	var lines []AuditLine
	err := s.read(ctx, func(q querier) error {
		rows, err := q.query(`SELECT id, line FROM audit WHERE id > ? ORDER BY id LIMIT ?`, seq, limit)
		lines, err = collect(rows, err, func(r *sql.Rows, l *AuditLine) error {
			var id int64
			var text []byte
			if err := r.Scan(&id, &text); err != nil {
				return err
			}
			if err := json.Unmarshal(text, l); err != nil {
				return fmt.Errorf("audit line %d: %w", id, err)
			}
			l.Seq = id
			return nil
		})
		return err
	})
	return lines, err
}
