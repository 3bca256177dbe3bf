package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"paidonce/store/payment"
)

// operationPaid is the one operation that can stop being true before anything
// was sent for it.
const operationPaid = "order.paid"

// Reasons that the store itself reads again.
const (
	reasonHistoric   = "historic"       // it happened before paidonce was installed
	reasonNoLonger   = "no longer true" // order.paid, before its first try
	reasonLate       = "learned more than 72 hours after it happened"
	reasonNoTemplate = "the template failed"
)

// effectKey is the idempotency key: a function of these four alone, so that a
// row which is made again after a restore has the same one (P7).
func effectKey(tenant, subject, operation, target string) string {
	h := sha256.New()
	for _, part := range []string{tenant, subject, operation, target} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return "po_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// generationKey is the key that a call goes out with. Only calls to Stripe
// ever have more than one generation.
func generationKey(key string, generation int64) string {
	if generation <= 1 {
		return key
	}
	return fmt.Sprintf("%s_%d", key, generation)
}

// orderSubject is the subject of an order's effects. A tenant has no slash.
func orderSubject(tenant, id string) string { return "order:" + tenant + "/" + id }

// newEffect is an effect that is about to be queued.
type newEffect struct {
	tenant, subject   string
	order, event      int64 // rows; 0 is none
	operation, target string
	kind              string
	body              []byte
	request           string
	amountMinor       int64
	occurredAt        Time
	status, reason    string // "" is pending
}

func (n newEffect) key() string { return effectKey(n.tenant, n.subject, n.operation, n.target) }

// queue writes an effect, unless there is one of its subject, operation and
// target: then the first body stands. It returns the new row, or 0.
func queue(t *Tx, n newEffect) (int64, error) {
	if n.status == "" {
		held, err := isHeld(t)
		if err != nil {
			return 0, err
		}
		if held {
			n.status, n.reason = "held", reasonRestored
		}
	}
	status, due, done := n.status, any(nil), any(nil)
	switch status {
	case "":
		status, due = "pending", t.now
	case "canceled", "failed":
		done = t.now
	}
	row, err := t.insert(`
		INSERT INTO effects (subject, order_id, event, operation, target, kind, key, body, request, amount_minor,
			status, reason, due_at, occurred_at, created_at, done_at)
		VALUES (?, nullif(?, 0), nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (subject, operation, target) DO NOTHING`,
		n.subject, n.order, n.event, n.operation, n.target, n.kind, n.key(), n.body, n.request, n.amountMinor,
		status, n.reason, due, n.occurredAt, t.now, done)
	if err != nil {
		return 0, fmt.Errorf("queue %s for %s: %w", n.operation, n.target, err)
	}
	if row != 0 {
		t.queued = true
		t.at("effect:queued")
	}
	return row, nil
}

// standing is what an occasion's effects begin as: ready to go, unless what
// they tell of is so old that nobody waits for it.
func (s *Store) standing(t *Tx, occurredAt Time) (status, reason string) {
	switch {
	case occurredAt < s.installed-Time(installedMargin.Milliseconds()):
		return "canceled", reasonHistoric
	case t.now-occurredAt > Time(lateAfter.Milliseconds()):
		return "held", reasonLate
	}
	return "", ""
}

// fanOut queues the effects of an occasion, for the targets that are
// configured at this moment. It returns how many the occasion makes, be they
// new or not, and how many of the new ones failed at once.
func (s *Store) fanOut(t *Tx, o Occasion, n newEffect) (made, failed int, err error) {
	o.At = t.now
	n.operation, n.occurredAt = o.Operation, o.OccurredAt
	composed := s.opt.Compose(o)
	for _, c := range composed {
		n.target, n.kind, n.body = c.Target, c.Kind, c.Body
		n.status, n.reason = s.standing(t, o.OccurredAt)
		if c.Failed != "" && n.status != "canceled" {
			n.status, n.reason, n.body = "failed", cut(reasonNoTemplate+": "+c.Failed), []byte{}
		}
		if n.body == nil {
			n.body = []byte{}
		}
		row, err := queue(t, n)
		if err != nil {
			return 0, 0, err
		}
		if row != 0 && n.status == "failed" {
			failed++
		}
	}
	return len(composed), failed, nil
}

// saveOperations records the operations that should exist and do not, and
// queues what they make. What order.paid has queued goes and comes with its
// truth until it is first tried. It reports whether an effect failed at once,
// which the order has to show.
func (s *Store) saveOperations(t *Tx, why cause, order int64, ops []payment.Operation) (failed bool, err error) {
	paid := false
	for _, op := range ops {
		paid = paid || op.Name == operationPaid
		row, err := t.insert(`
			INSERT INTO operations (order_id, name, occurred_at, recorded_at, event, fanned_out) VALUES (?, ?, ?, ?, nullif(?, 0), ?)
			ON CONFLICT (order_id, name) DO NOTHING`, order, op.Name, op.OccurredAt, t.now, why.event, s.opt.Compose != nil)
		if err != nil {
			return false, fmt.Errorf("record operation %s: %w", op.Name, err)
		}
		if row == 0 {
			continue
		}
		if s.opt.Compose == nil {
			t.queued = true // for serve, which looks every second
			continue
		}
		bad, err := s.fanOutOperation(t, order, why.event, op.Name, Time(op.OccurredAt))
		if err != nil {
			return false, err
		}
		failed = failed || bad
	}
	return failed, followPaid(t, order, paid)
}

// fanOutOperation queues what an operation of an order makes, and reports
// whether any of it failed at once.
func (s *Store) fanOutOperation(t *Tx, order, event int64, name string, occurredAt Time) (failed bool, err error) {
	o, err := viewOrder(t, order)
	if err != nil {
		return false, err
	}
	ref, err := eventRef(t, event)
	if err != nil {
		return false, err
	}
	_, n, err := s.fanOut(t, Occasion{Operation: name, OccurredAt: occurredAt, Order: &o, Event: ref},
		newEffect{tenant: o.Tenant, subject: orderSubject(o.Tenant, o.ID), order: order, event: event})
	return n > 0, err
}

// eventRef names the event in a row; nil for row 0.
func eventRef(q querier, row int64) (*EventRef, error) {
	if row == 0 {
		return nil, nil
	}
	var e EventRef
	if _, err := one(q, `SELECT source_scope, event_id, source, type, occurred_at FROM events WHERE id = ?`, []any{row},
		&e.Scope, &e.ID, &e.Source, &e.Type, &e.OccurredAt); err != nil {
		return nil, fmt.Errorf("event of an effect: %w", err)
	}
	return &e, nil
}

// followPaid cancels what order.paid has queued and nobody has tried when it
// is not true any more, and brings it back under the same key when it is.
func followPaid(t *Tx, order int64, paid bool) error {
	var err error
	if paid {
		// As when it was new: held if it is late, or all are.
		held, herr := isHeld(t)
		if herr != nil {
			return herr
		}
		waits, why := `?1 - occurred_at > ?2`, reasonLate
		if held {
			waits, why = `?2 = ?2`, reasonRestored
		}
		_, err = t.exec(`
			UPDATE effects SET done_at = NULL,
				status = CASE WHEN `+waits+` THEN 'held' ELSE 'pending' END,
				reason = CASE WHEN `+waits+` THEN ?3 ELSE '' END,
				due_at = CASE WHEN `+waits+` THEN NULL ELSE ?1 END
			WHERE order_id = ?4 AND operation = 'order.paid' AND status = 'canceled' AND reason = ?5`,
			t.now, lateAfter.Milliseconds(), why, order, reasonNoLonger)
	} else {
		_, err = t.exec(`
			UPDATE effects SET status = 'canceled', reason = ?, due_at = NULL, done_at = ?
			WHERE order_id = ? AND operation = 'order.paid' AND status IN ('pending', 'held') AND attempts = 0`, reasonNoLonger, t.now, order)
	}
	if err != nil {
		return fmt.Errorf("effects of order.paid: %w", err)
	}
	return nil
}

// FanOutWaiting queues the effects of operations that a command recorded
// beside the process that serves. It reports whether there may be more.
func (s *Store) FanOutWaiting(ctx context.Context, limit int) (more bool, err error) {
	if s.opt.Compose == nil {
		return false, nil
	}
	var waiting bool
	err = s.read(ctx, func(q querier) error {
		waiting, err = one(q, `SELECT 1 FROM operations WHERE fanned_out = 0 LIMIT 1`, nil, new(int))
		return err
	})
	if err != nil || !waiting {
		return false, err
	}
	type op struct {
		row, order, event int64
		name              string
		occurredAt        Time
	}
	var ops []op
	err = s.w.write(ctx, "queue what commands recorded", func(t *Tx) error {
		rows, err := t.query(`
			SELECT id, order_id, coalesce(event, 0), name, occurred_at FROM operations WHERE fanned_out = 0 ORDER BY id LIMIT ?`, limit)
		ops, err = collect(rows, err, func(r *sql.Rows, o *op) error {
			return r.Scan(&o.row, &o.order, &o.event, &o.name, &o.occurredAt)
		})
		if err != nil {
			return err
		}
		for _, o := range ops {
			failed, err := s.fanOutOperation(t, o.order, o.event, o.name, o.occurredAt)
			if err != nil {
				return err
			}
			if _, err := t.exec(`UPDATE operations SET fanned_out = 1 WHERE id = ?`, o.row); err != nil {
				return err
			}
			if o.name != operationPaid && !failed {
				continue
			}
			// order.paid may have stopped being true while it waited.
			if _, err := s.rederive(t, cause{}, nil, []int64{o.order}); err != nil {
				return err
			}
		}
		return nil
	})
	return len(ops) == limit, err
}

// route queues the raw effects of an event, and reports whether there are any
// under today's rules.
func (s *Store) route(t *Tx, d *Decoded) (bool, error) {
	if s.opt.Compose == nil || d.PayloadGone || strings.HasPrefix(d.Tenant, ForeignTenant) || payment.IsFetched(d.Type) {
		return false, nil
	}
	o := Occasion{Operation: d.Source + ":" + d.Type, OccurredAt: d.OccurredAt, Payload: d.Body,
		Event: &EventRef{Scope: d.Scope, ID: d.ID, Source: d.Source, Type: d.Type, OccurredAt: d.OccurredAt}}
	made, _, err := s.fanOut(t, o, newEffect{tenant: d.Tenant, subject: "event:" + d.Scope + "/" + d.ID, event: d.Row})
	return made > 0, err
}

// failedEffects are the attentions of an order whose effects were given up.
// The cause has the attempt in it, so that the next failure is news again.
func failedEffects(q querier, order int64) ([]payment.Attention, error) {
	rows, err := q.query(`SELECT id, attempts, operation, target, reason FROM effects INDEXED BY effects_failed
		WHERE order_id = ? AND status = 'failed' ORDER BY id`, order)
	return collect(rows, err, func(r *sql.Rows, a *payment.Attention) error {
		var id, attempts int64
		var operation, target, reason string
		if err := r.Scan(&id, &attempts, &operation, &target, &reason); err != nil {
			return err
		}
		a.Word = AttentionEffectFailed
		a.Cause = fmt.Sprintf("%d/%d", id, attempts)
		a.Detail = fmt.Sprintf("effect %d (%s for %s): %s", id, operation, target, reason)
		return nil
	})
}

// attentionNow is what of an order's attention a person has not looked at:
// standing, and its failed effects.
func (o *orderRow) attentionNow(t *Tx, standing []payment.Attention) ([]payment.Attention, error) {
	failed, err := failedEffects(t, o.row)
	if err != nil {
		return nil, fmt.Errorf("failed effects of order %s: %w", o.reg.ID, err)
	}
	return o.unacknowledged(t, slices.Concat(standing, failed))
}

// AttentionEffectFailed is the word for an effect of the order that was refused
// or given up.
const AttentionEffectFailed = "effect_failed"
