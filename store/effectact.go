package store

import (
	"context"
	"fmt"
)

// RetryEffect sends an effect again by a person's word, at once and whatever
// its status, under the key and the body that it has: a manual resend really
// sends, and is written down as one (cases.md B48). What Stripe has done is
// never done again: CodeNotRetryable; a call that Stripe refused is looked up
// first, and goes out under the next generation of its key. One that is being
// sent is CodeInFlight.
func (s *Store) RetryEffect(ctx context.Context, id string) (EffectDetail, error) {
	return s.actOnEffect(ctx, "retry", id, "", func(t *Tx, e *effectRow) (string, error) {
		switch {
		case e.status == "sending":
			return "", problem(CodeInFlight, "effect %s is being sent right now: look again in a minute", id)
		case e.kind == KindStripe && (e.status == "done" || e.status == "canceled"):
			return "", problem(CodeNotRetryable, "effect %s is %s: what was asked of Stripe is not asked again; make a new request", id, e.status)
		case e.status == "canceled" && e.reason == reasonNoLonger:
			return "", problem(CodeNotRetryable, "effect %s tells that the order is paid, and it is not", id)
		case e.emptyBody(t):
			return "", problem(CodeNotRetryable, "effect %s has nothing to send: its template failed, its order was forgotten, or it was purged", id)
		}
		was, restored := e.status, e.reason == reasonRestored
		e.dueAt, e.planFrom, e.failures, e.doneAt, e.reason = t.now, 0, 0, 0, ""
		e.status = "pending"
		if e.kind == KindStripe && (was == "failed" || was == "held" || was == "unknown") && (e.attempts > 0 || restored) {
			// It was tried, here or before a restore, and nobody may take for granted
			// that it came to nothing.
			e.status, e.lookUp, e.doubts = "unknown", true, 0
		}
		return "was " + was, nil
	})
}

// ResolveEffect ends an effect by a person's word: done, for one that is known
// to have happened, or canceled. It frees the lane. An effect with an end, or
// one that is being sent, is CodeNotResolvable or CodeInFlight.
func (s *Store) ResolveEffect(ctx context.Context, id, outcome, note string) (EffectDetail, error) {
	var bad problems
	if outcome != "done" && outcome != "canceled" {
		bad.add("outcome", "must be done or canceled")
	}
	checkNote(&bad, note)
	if err := bad.invalid("resolution"); err != nil {
		return EffectDetail{}, err
	}
	return s.actOnEffect(ctx, "resolve", id, note, func(t *Tx, e *effectRow) (string, error) {
		switch e.status {
		case "sending":
			return "", problem(CodeInFlight, "effect %s is being sent right now: look again in a minute", id)
		case "done", "canceled":
			return "", problem(CodeNotResolvable, "effect %s is %s already", id, e.status)
		}
		was := e.status
		e.status, e.reason, e.dueAt, e.doneAt = outcome, "resolved by a person", 0, t.now
		return "was " + was + ", is " + outcome, nil
	})
}

// emptyBody reports whether there is nothing to send.
func (e *effectRow) emptyBody(q querier) bool {
	var n int64
	_, err := one(q, `SELECT length(body) FROM effects WHERE id = ?`, []any{e.row}, &n)
	return err == nil && n == 0
}

// actOnEffect runs a person's act on an effect and writes it down.
func (s *Store) actOnEffect(ctx context.Context, act, id, note string, fn func(t *Tx, e *effectRow) (string, error)) (EffectDetail, error) {
	row, err := effectRowOf(id)
	if err != nil {
		return EffectDetail{}, err
	}
	var d EffectDetail
	err = s.w.write(ctx, act+" effect "+id, func(t *Tx) error {
		e, ok, err := loadEffect(t, row)
		if err != nil {
			return err
		}
		if !ok {
			return noEffect(id)
		}
		before := e
		what, err := fn(t, &e)
		if err != nil {
			return err
		}
		if note != "" {
			what += ": " + note
		}
		// By the act, not by an attempt: the lease goes up, so that a worker
		// which believes to have it in hand lets go.
		if _, err := t.exec(`UPDATE effects SET lease = lease + 1 WHERE id = ?`, row); err != nil {
			return fmt.Errorf("%s effect %s: %w", act, id, err)
		}
		e.lease++
		if err := s.concludeEffect(t, before, e); err != nil {
			return err
		}
		if err := s.actEffect(t, act, e.order, row, e.operation, what); err != nil {
			return err
		}
		d, err = s.effectDetail(t, row)
		return err
	})
	return d, err
}

// actEffect writes down what a person did with an effect.
func (s *Store) actEffect(t *Tx, act string, order, effect int64, object, note string) error {
	return s.writeAct(t, act, order, 0, effect, object, note)
}
