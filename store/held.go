package store

import (
	"context"
	"database/sql"
	"fmt"
)

// After a restore nothing goes out by itself: what had no end in the backup may
// have happened since, and what is learned again has been learned before
// (design.md §6). Every effect, a new one too, begins as held.

const (
	reasonRestored = "held after a restore"
	reasonMayHave  = "it may have happened before the restore: find out, then retry or resolve it"
	// releaseStep is how many effects one write lets go.
	releaseStep = 500
)

// isHeld reports whether the file was restored and not released.
func isHeld(q querier) (bool, error) {
	held, err := one(q, `SELECT 1 FROM meta WHERE key = '`+metaHeld+`' AND value = '1'`, nil, new(int))
	if err != nil {
		return false, fmt.Errorf("read whether effects are held: %w", err)
	}
	return held, nil
}

// HeldSince is when the file was restored, if its effects are held; else 0.
func (s *Store) HeldSince(ctx context.Context) (Time, error) {
	var at Time
	err := s.read(ctx, func(q querier) error {
		held, err := isHeld(q)
		if err != nil || !held {
			return err
		}
		at = 1 // a copy that was put in place by hand: nobody knows when
		_, err = one(q, `SELECT CAST(value AS INTEGER) FROM meta WHERE key = '`+metaRestoredAt+`'`, nil, &at)
		return err
	})
	return at, err
}

// Released is what a release let go, by kind, and what it did not.
type Released struct {
	HTTP   int64    `json:"http"`   // sent again with the keys that they had
	Stripe int64    `json:"stripe"` // looked up at Stripe before anything else
	New    int64    `json:"new"`    // mails and programs for what happened after the restore
	Left   int64    `json:"left"`   // mails and programs that may have run already
	Items  []Effect `json:"items"`  // the first of those
}

// Release ends the hold after a restore. Calls to the shop's own app go out
// under their old keys; calls to Stripe are looked up by their metadata first;
// mails and programs that may have happened before the restore wait for a
// person, each on its own. It may be called again, for what came between.
func (s *Store) Release(ctx context.Context) (Released, error) {
	var restored Time
	err := s.w.write(ctx, "release effects", func(t *Tx) error {
		if _, err := one(t, `SELECT CAST(value AS INTEGER) FROM meta WHERE key = '`+metaRestoredAt+`'`, nil, &restored); err != nil {
			return err
		}
		if _, err := t.exec(`UPDATE meta SET value = '0' WHERE key = '` + metaHeld + `'`); err != nil {
			return err
		}
		return s.writeAct(t, "release", 0, 0, 0, "", "effects are let go after the restore")
	})
	if err != nil {
		return Released{}, err
	}
	r := Released{Items: []Effect{}}
	const again = `status = 'pending', reason = '', due_at = ?, plan_from = NULL, failures = 0`
	const since = `created_at >= ? AND occurred_at >= ?`
	now := At(s.opt.Now())
	for _, part := range []struct {
		n          *int64
		set, which string
		setTo      any
		args       []any
	}{
		{&r.HTTP, again, `kind = 'http'`, now, nil},
		{&r.Stripe, `status = 'unknown', reason = '', due_at = ?, plan_from = NULL, failures = 0, look_up = 1, doubts = 0`, `kind = 'stripe'`, now, nil},
		{&r.New, again, `kind IN ('email', 'exec') AND ` + since, now, []any{restored, restored}},
		{&r.Left, `reason = ?`, `kind IN ('email', 'exec')`, reasonMayHave, nil},
	} {
		query := `UPDATE effects SET lease = lease + 1, ` + part.set + ` WHERE id IN (
			SELECT id FROM effects WHERE status = 'held' AND reason = ? AND ` + part.which + ` ORDER BY id LIMIT ?)`
		args := append(append([]any{part.setTo, reasonRestored}, part.args...), releaseStep)
		for n := int64(releaseStep); n == releaseStep; {
			err := s.w.write(ctx, "release effects", func(t *Tx) error {
				var err error
				n, err = t.exec(query, args...)
				t.queued = true
				return err
			})
			if err != nil {
				return r, err
			}
			*part.n += n
		}
	}
	page, err := s.heldBack(ctx)
	r.Items, r.Left = page, max(r.Left, int64(len(page)))
	return r, err
}

// heldBack are the first effects that wait for a person after a restore.
func (s *Store) heldBack(ctx context.Context) ([]Effect, error) {
	items := []Effect{}
	err := s.read(ctx, func(q querier) error {
		rows, err := q.query(`SELECT id FROM effects WHERE status = 'held' AND reason = ? ORDER BY id LIMIT 50`, reasonMayHave)
		ids, err := collect(rows, err, func(r *sql.Rows, id *int64) error { return r.Scan(id) })
		if err != nil {
			return err
		}
		for _, id := range ids {
			e, err := viewEffect(q, id)
			if err != nil {
				return err
			}
			items = append(items, e)
		}
		return nil
	})
	return items, err
}
