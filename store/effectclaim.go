package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

// laneFree holds for an effect e that nothing of its lane stands in the way
// of: nothing earlier is open, and nothing at all is under way. Effects of one
// subject to one target keep their sequence.
const laneFree = `NOT EXISTS (
	SELECT 1 FROM effects b INDEXED BY effects_lane
	WHERE b.subject = e.subject AND b.target = e.target AND b.status IN ('pending', 'sending', 'unknown', 'held')
		AND b.id <> e.id AND (b.id < e.id OR b.status = 'sending'))`

// ClaimEffects takes up to limit due effects of a target, the longest due
// first, each at the head of its lane. What is claimed is "sending" until
// FinishEffect, or until the lease ends: EffectLease of its kind.
func (s *Store) ClaimEffects(ctx context.Context, target string, limit int) ([]EffectClaim, error) {
	// An idle poll must not cost an fsync, and a long look through blocked
	// lanes must not hold the writer.
	var due []int64
	err := s.read(ctx, func(q querier) error {
		rows, err := q.query(`
			SELECT id FROM effects e INDEXED BY effects_due
			WHERE target = ? AND status IN ('pending', 'unknown') AND due_at IS NOT NULL AND due_at <= ? AND `+laneFree+`
			ORDER BY due_at, id LIMIT ?`, target, At(s.opt.Now()), limit)
		due, err = collect(rows, err, func(r *sql.Rows, id *int64) error { return r.Scan(id) })
		return err
	})
	if err != nil || len(due) == 0 {
		return nil, err
	}
	var claims []EffectClaim
	err = s.w.write(ctx, "claim effects", func(t *Tx) error {
		claims = claims[:0]
		for _, id := range due {
			c, ok, err := s.claimEffect(t, id)
			if err != nil {
				return err
			}
			if ok {
				claims = append(claims, c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claims, nil
}

func (s *Store) claimEffect(t *Tx, id int64) (EffectClaim, bool, error) {
	var c EffectClaim
	var generation, order int64
	ok, err := one(t, `
		SELECT e.id, e.lease + 1, e.key, e.generation, e.operation, e.kind, e.target, e.body, e.attempts + 1,
			coalesce(e.first_tried_at, 0), e.created_at, e.look_up, coalesce(e.order_id, 0), coalesce(o.order_id, '')
		FROM effects e LEFT JOIN orders o ON o.id = e.order_id
		WHERE e.id = ? AND e.status IN ('pending', 'unknown') AND e.due_at <= ? AND `+laneFree, []any{id, t.now},
		&c.Row, &c.Lease, &c.BaseKey, &generation, &c.Operation, &c.Kind, &c.Target, &c.Body, &c.Attempt,
		&c.FirstTriedAt, &c.CreatedAt, &c.LookUp, &order, &c.Order)
	if err != nil || !ok {
		return EffectClaim{}, false, err
	}
	c.Key = generationKey(c.BaseKey, generation)
	if c.Kind == KindStripe && order != 0 {
		if c.Sessions, err = openSessions(t, order); err != nil {
			return EffectClaim{}, false, err
		}
	}
	if _, err := t.exec(`
		UPDATE effects SET status = 'sending', lease = ?, attempts = ?, due_at = ?, tried_at = ?,
			first_tried_at = coalesce(first_tried_at, ?), plan_from = coalesce(plan_from, ?)
		WHERE id = ?`, c.Lease, c.Attempt, t.now+Time(EffectLease(c.Kind).Milliseconds()), t.now, t.now, t.now, id); err != nil {
		return EffectClaim{}, false, fmt.Errorf("claim effect %d: %w", id, err)
	}
	if _, err := t.exec(`INSERT INTO effect_attempts (effect, n, key, look_up, started_at) VALUES (?, ?, ?, ?, ?)`,
		id, c.Attempt, c.Key, c.LookUp, t.now); err != nil {
		return EffectClaim{}, false, fmt.Errorf("claim effect %d: %w", id, err)
	}
	return c, true, nil
}

// FinishEffect writes down what an attempt came to, and what happens next. It
// returns ErrLeaseLost, and changes nothing, if the effect was claimed again
// or settled since the claim.
func (s *Store) FinishEffect(ctx context.Context, c EffectClaim, a Answer) error {
	return s.w.write(ctx, fmt.Sprintf("finish effect %d", c.Row), func(t *Tx) error {
		e, ok, err := loadEffect(t, c.Row)
		if err != nil {
			return err
		}
		if !ok || e.status != "sending" || e.lease != c.Lease {
			return ErrLeaseLost
		}
		body := a.Body
		if len(body) > MaxAnswerBody {
			body = body[:MaxAnswerBody]
		}
		if _, err := t.exec(`
			UPDATE effect_attempts SET finished_at = ?, outcome = ?, status = ?, code = ?, error = ?, ref = ?, request_id = ?, answer = ?
			WHERE effect = ? AND n = ?`,
			t.now, string(a.Outcome), a.Status, cut(a.Code), cut(a.Error), cut(a.Ref), cut(a.RequestID), body, c.Row, c.Attempt); err != nil {
			return fmt.Errorf("attempt of effect %d: %w", c.Row, err)
		}
		after := e
		after.effectState = e.settle(a, t.now)
		if why, ok := canceledRefusals[a.Code]; ok && a.Outcome == OutcomeRefused && e.kind == KindStripe {
			after.status, after.reason = "canceled", why
		}
		if a.Outcome == OutcomeDone {
			after.ref, after.result = cut(a.Ref), string(a.Result)
		}
		t.at("effect:answered")
		if err := s.auditCall(t, e, c, a); err != nil {
			return err
		}
		return s.concludeEffect(t, e, after)
	})
}

// effectRow is an effect as it stands in the file.
type effectRow struct {
	row, lease, order, event   int64
	subject, operation, target string
	key, ref, result           string
	effectState
}

func loadEffect(q querier, id int64) (effectRow, bool, error) {
	e := effectRow{row: id}
	ok, err := one(q, `
		SELECT lease, coalesce(order_id, 0), coalesce(event, 0), subject, operation, target, key, provider_ref, result,
			kind, status, reason, generation, attempts, failures, doubts, look_up, coalesce(due_at, 0), coalesce(plan_from, 0),
			coalesce(first_tried_at, 0), coalesce(tried_at, 0), coalesce(done_at, 0), last_error
		FROM effects WHERE id = ?`, []any{id},
		&e.lease, &e.order, &e.event, &e.subject, &e.operation, &e.target, &e.key, &e.ref, &e.result,
		&e.kind, &e.status, &e.reason, &e.generation, &e.attempts, &e.failures, &e.doubts, &e.lookUp, &e.dueAt, &e.planFrom,
		&e.firstTriedAt, &e.triedAt, &e.doneAt, &e.lastError)
	if err != nil {
		return effectRow{}, false, fmt.Errorf("load effect %d: %w", id, err)
	}
	return e, ok, nil
}

// concludeEffect writes what an effect came to, and derives its order again
// where that depends on it.
func (s *Store) concludeEffect(t *Tx, before, e effectRow) error {
	touched, err := s.saveEffect(t, before, e)
	if err != nil || !touched {
		return err
	}
	_, err = s.rederive(t, cause{}, nil, []int64{e.order})
	return err
}

// saveEffect writes what an effect came to and what follows from that: a
// session gets its order, an order its close. It reports whether the order has
// to be derived again, for these or for an attention that came or went.
func (s *Store) saveEffect(t *Tx, before, e effectRow) (touched bool, err error) {
	n, err := t.exec(`
		UPDATE effects SET status = ?, reason = ?, generation = ?, failures = ?, doubts = ?, look_up = ?, due_at = nullif(?, 0),
			plan_from = nullif(?, 0), first_tried_at = nullif(?, 0), done_at = nullif(?, 0), last_error = ?, provider_ref = ?, result = ?
		WHERE id = ? AND lease = ?`,
		e.status, e.reason, e.generation, e.failures, e.doubts, e.lookUp, e.dueAt,
		e.planFrom, e.firstTriedAt, e.doneAt, e.lastError, e.ref, e.result, e.row, e.lease)
	if err != nil {
		return false, fmt.Errorf("save effect %d: %w", e.row, err)
	}
	if n == 0 {
		return false, ErrLeaseLost
	}
	if e.status == "pending" || e.status == "unknown" || laneOpens(before.status, e.status) {
		t.queued = true
	}
	if e.order == 0 {
		return false, nil
	}
	touched = before.status == "failed" || e.status == "failed"
	if e.status == "done" && before.status != "done" && e.kind == KindStripe {
		more, err := s.followStripe(t, e)
		return touched || more, err
	}
	return touched, nil
}

// laneOpens reports whether what comes after an effect may go now.
func laneOpens(was, is string) bool {
	ended := func(s string) bool { return s == "done" || s == "failed" || s == "canceled" }
	return !ended(was) && ended(is)
}

// followStripe does what a call to Stripe was for, here.
func (s *Store) followStripe(t *Tx, e effectRow) (rederive bool, err error) {
	switch name, _, _ := strings.Cut(e.operation, ":"); name {
	case OperationOpenCheckout:
		// The session is the order's from now on, whatever its events say.
		_, err = t.exec(`INSERT INTO refs (object_id, order_id, by_hand, created_at) VALUES (?, ?, 0, ?) ON CONFLICT (object_id) DO NOTHING`,
			e.ref, e.order, t.now)
		if err == nil {
			err = expectMoney(t, e.ref, t.now+Time(sessionLife.Milliseconds()))
		}
		if err == nil {
			_, err = t.exec(`UPDATE orders SET updated_at = ? WHERE id = ?`, t.now, e.order)
		}
		return true, err
	case OperationCancelOrder:
		return true, closeOrder(t, e.order)
	}
	return false, nil
}

// learned ends the effect whose call made the object of f: its webhook may come
// before the answer, or after the answer was lost. One that is under way is
// left to its answer.
func (s *Store) learned(t *Tx, key, object string) error {
	var id int64
	ok, err := one(t, `SELECT id FROM effects WHERE key = ? AND kind = 'stripe' AND status IN ('pending', 'unknown', 'held', 'failed')`, []any{key}, &id)
	if err != nil || !ok {
		return err
	}
	e, _, err := loadEffect(t, id)
	if err != nil {
		return err
	}
	after := e
	after.effectState = e.settle(Answer{Outcome: OutcomeDone}, t.now)
	after.reason = "learned from Stripe's event"
	after.ref = object
	_, err = s.saveEffect(t, e, after) // the caller derives the order
	return err
}

// openSessions are the Checkout Sessions of an order that may still be open:
// those that we opened or the shop registered, but for those whose end is
// known.
func openSessions(q querier, order int64) ([]string, error) {
	refs, err := refsOf(q, order, "cs_")
	if err != nil {
		return nil, err
	}
	var open []string
	for _, id := range refs {
		rows, err := q.query(`SELECT `+factColumns+` FROM facts WHERE object_id = ? AND kind = 'session'`, id)
		facts, err := collect(rows, err, scanFact)
		if err != nil {
			return nil, fmt.Errorf("session %s: %w", id, err)
		}
		over := slices.ContainsFunc(facts, func(f factRow) bool { return f.fact.Sticky.Complete || f.fact.Sticky.Expired })
		if !over {
			open = append(open, id)
		}
	}
	return open, nil
}

// refsOf are the ids of a kind that were tied to an order, by prefix: these
// are ids that someone gave us, so that the prefix only narrows what is asked.
func refsOf(q querier, order int64, prefix string) ([]string, error) {
	rows, err := q.query(`SELECT object_id FROM refs WHERE order_id = ? AND substr(object_id, 1, 3) = ? ORDER BY created_at, object_id`, order, prefix)
	ids, err := collect(rows, err, func(r *sql.Rows, id *string) error { return r.Scan(id) })
	if err != nil {
		return nil, fmt.Errorf("refs of an order: %w", err)
	}
	return ids, nil
}

// releaseEffects is for the start under the lock: what the process before this
// one had under way is of unknown outcome, since it may have died between the
// call and the record.
func (s *Store) releaseEffects(ctx context.Context) error {
	_, err := s.doubtEffects(ctx, "the process ended while it was under way", func(*Tx) (string, []any) {
		return "", nil
	})
	return err
}

// ReleaseExpired does the same for effects whose lease has run out: their
// worker hangs. It returns how many there were.
func (s *Store) ReleaseExpired(ctx context.Context) (int, error) {
	now := At(s.opt.Now())
	var expired bool
	err := s.read(ctx, func(q querier) error {
		var err error
		expired, err = one(q, `SELECT 1 FROM effects INDEXED BY effects_open WHERE status = 'sending' AND status <> 'done' AND due_at < ? LIMIT 1`, []any{now}, new(int))
		return err
	})
	if err != nil || !expired {
		return 0, err
	}
	return s.doubtEffects(ctx, "its lease ran out while it was under way", func(t *Tx) (string, []any) {
		return " AND due_at < ?", []any{t.now}
	})
}

func (s *Store) doubtEffects(ctx context.Context, why string, which func(*Tx) (string, []any)) (n int, err error) {
	err = s.w.write(ctx, "release effects", func(t *Tx) error {
		cond, args := which(t)
		rows, err := t.query(`SELECT id FROM effects INDEXED BY effects_open WHERE status = 'sending' AND status <> 'done'`+cond+` ORDER BY id`, args...)
		ids, err := collect(rows, err, func(r *sql.Rows, id *int64) error { return r.Scan(id) })
		if err != nil {
			return err
		}
		for _, id := range ids {
			e, _, err := loadEffect(t, id)
			if err != nil {
				return err
			}
			if _, err := t.exec(`UPDATE effects SET lease = lease + 1 WHERE id = ?`, id); err != nil {
				return err
			}
			e.lease++
			after := e
			after.effectState = e.doubt(t.now, why)
			if err := s.concludeEffect(t, e, after); err != nil {
				return err
			}
		}
		n = len(ids)
		return nil
	})
	return n, err
}

// NextEffectIn is how long it is until an effect of a target comes due that is
// not due yet; ok is false when there is none. What is due and blocked is not
// in it: the end of what blocks it wakes the worker.
func (s *Store) NextEffectIn(ctx context.Context, target string) (wait time.Duration, ok bool, err error) {
	now := At(s.opt.Now())
	var due Time
	err = s.read(ctx, func(q querier) error {
		ok, err = one(q, `SELECT due_at FROM effects INDEXED BY effects_due
			WHERE target = ? AND status IN ('pending', 'unknown') AND due_at IS NOT NULL AND due_at > ? ORDER BY due_at LIMIT 1`,
			[]any{target, now}, &due)
		return err
	})
	return time.Duration(due-now) * time.Millisecond, ok && err == nil, err
}

// ClockWentBack brings forward what would wait for the time that the clock was
// set back by (cases.md B45).
func (s *Store) ClockWentBack(ctx context.Context, by time.Duration) error {
	return s.w.write(ctx, "follow the clock", func(t *Tx) error {
		for _, table := range []string{"effects", "events"} {
			if _, err := t.exec(`UPDATE `+table+` SET due_at = due_at - ?
				WHERE status IN ('pending', 'sending', 'unknown') AND due_at > ?`, by.Milliseconds(), t.now); err != nil {
				return fmt.Errorf("follow the clock: %w", err)
			}
		}
		return nil
	})
}
