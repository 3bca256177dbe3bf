package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// AuditLine is one line of the trail: a decision on an event, a call, or a
// person's act. It holds ids, words and amounts; no secret, no customer's data,
// and not what a person wrote in a note.
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
	Detail    string `json:"detail,omitempty"`     // of a call: the other side's code, or the error
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
	var status, verdict, reason string
	if _, err := one(t, `SELECT e.event_id, e.type, e.status, e.verdict, e.reason, coalesce(o.order_id, '')
		FROM events e LEFT JOIN orders o ON o.id = e.order_id WHERE e.id = ?`, []any{row},
		&l.Event, &l.Operation, &status, &verdict, &reason, &l.Order); err != nil {
		return fmt.Errorf("audit event %d: %w", row, err)
	}
	l.Outcome, l.Detail = status+", "+verdict, decisionDetail(reason)
	return s.audit(t, l)
}

// dismissed begins the reason of an event that a person set aside; a note
// follows it.
const dismissed = "dismissed, was "

// decisionDetail is what the trail keeps of an event's reason: not a note.
func decisionDetail(reason string) string {
	if rest, ok := strings.CutPrefix(reason, dismissed); ok {
		was, _, _ := strings.Cut(rest, ":")
		reason = dismissed + was
	}
	return cut(reason)
}

// auditCall writes down one call and its outcome, with the other side's word
// for it and its id of the request.
func (s *Store) auditCall(t *Tx, e effectRow, c EffectClaim, a Answer) error {
	if !s.opt.Audit {
		return nil
	}
	l := AuditLine{Kind: "call", Order: c.Order, Effect: c.Row, Operation: c.Operation, Target: c.Target, Key: c.Key,
		Outcome: string(a.Outcome), Detail: callDetail(a), RequestID: cut(a.RequestID)}
	if e.event != 0 {
		if _, err := one(t, `SELECT event_id FROM events WHERE id = ?`, []any{e.event}, &l.Event); err != nil {
			return fmt.Errorf("audit effect %d: %w", c.Row, err)
		}
	}
	return s.audit(t, l)
}

// callDetail is the code of an answer, or its error's text where it has none.
func callDetail(a Answer) string {
	if a.Code != "" {
		return cut(a.Code)
	}
	return cut(a.Error)
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

// auditCursorKey is where meta keeps the seq of the last line that was copied.
const auditCursorKey = "audit_cursor"

// auditStep is how many copied lines one write deletes.
const auditStep = 1000

// AuditCursor is the seq of the last line that was copied; 0 is none.
func (s *Store) AuditCursor(ctx context.Context) (int64, error) {
	var seq int64
	err := s.read(ctx, func(q querier) error {
		_, err := one(q, `SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?`, []any{auditCursorKey}, &seq)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the audit cursor: %w", err)
	}
	return seq, nil
}

// AuditCopied notes that all lines up to seq are on disk in the file, and
// deletes some of those that are: a step deletes at least as many as one copy
// brings. The cursor never goes back. A crash before it leaves the lines, and
// the file's own end says that they are there.
func (s *Store) AuditCopied(ctx context.Context, seq int64) error {
	return s.w.write(ctx, "note the audit cursor", func(t *Tx) error {
		if _, err := t.exec(`INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value
			WHERE CAST(excluded.value AS INTEGER) > CAST(value AS INTEGER)`, auditCursorKey, strconv.FormatInt(seq, 10)); err != nil {
			return fmt.Errorf("note the audit cursor: %w", err)
		}
		if _, err := t.exec(`DELETE FROM audit WHERE id IN (SELECT id FROM audit
			WHERE id <= (SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?) ORDER BY id LIMIT ?)`, auditCursorKey, auditStep); err != nil {
			return fmt.Errorf("delete copied audit lines: %w", err)
		}
		return nil
	})
}
