package store

import (
	"context"
	"database/sql"
	"fmt"
)

// TakePage puts the events of a page into the inbox that are not there, moves
// the sweep behind the page, and counts, all in one transaction. known events
// are left as they are: what Stripe lists is no delivery. It returns the sweep
// as it stands now, and whether it is through.
func (s *Store) TakePage(ctx context.Context, run int64, w Sweep, p EventPage) (Sweep, bool, error) {
	if err := s.roomToTake(); err != nil {
		return w, false, err
	}
	next, done := w, !p.More
	err := s.w.write(ctx, "take in a page of events", func(t *Tx) error {
		next = w
		next.After = p.Last
		if w.After == "" && p.Date != 0 && p.Date < w.Until {
			next.Until = p.Date // a clock of ours that is ahead must not cover what Stripe has not had yet
		}
		fresh := int64(0)
		for _, e := range p.Events {
			isNew, err := addListed(t, e)
			if err != nil {
				return err
			}
			if !isNew {
				continue
			}
			fresh++
			if err := addDifference(t, run, missingEvent(e, true)); err != nil {
				return err
			}
		}
		n, err := t.exec(`UPDATE sweeps SET after = ?, until = ?, done = ? WHERE id = ? AND after = ? AND done = 0`,
			next.After, next.Until, done, w.ID, w.After)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("the list of events of %s has moved on meanwhile", w.Source.Name)
		}
		_, err = t.exec(`UPDATE runs SET pages = pages + 1, events_seen = events_seen + ?, events_new = events_new + ? WHERE id = ?`,
			len(p.Events), fresh, run)
		return err
	})
	return next, done, err
}

func missingEvent(e NewEvent, resolved bool) Difference {
	return Difference{Object: e.ID, What: DifferenceEvent, Detail: e.Type + " of " + e.OccurredAt.String() + ": no webhook had brought it", Resolved: resolved}
}

// addListed stores an event that Stripe lists, unless it is known by its id
// (design.md P2), and reports whether it was new. deliveries 0 says that no
// webhook has brought it.
func addListed(t *Tx, e NewEvent) (bool, error) {
	known, err := one(t, `SELECT 1 FROM events WHERE source_scope = ? AND event_id = ?`, []any{e.Scope, e.ID}, new(int))
	if err != nil || known {
		return false, err
	}
	if e.Body == nil {
		e.Body = []byte{}
	}
	if _, err := addEvent(t, e); err != nil {
		return false, err
	}
	_, err = t.exec(`UPDATE events SET deliveries = 0 WHERE source_scope = ? AND event_id = ?`, e.Scope, e.ID)
	return true, err
}

// RestartSweep begins a list again whose place Stripe no longer knows: the
// event there has become too old to be listed.
func (s *Store) RestartSweep(ctx context.Context, w Sweep) (Sweep, error) {
	err := s.w.write(ctx, "begin a list again", func(t *Tx) error {
		_, err := t.exec(`UPDATE sweeps SET after = '' WHERE id = ?`, w.ID)
		return err
	})
	w.After = ""
	return w, err
}

// EndEvents moves coverage to where all lists of the run have read everything.
// It is an error if one is not through.
func (s *Store) EndEvents(ctx context.Context, run int64) error {
	return s.w.write(ctx, "move coverage", func(t *Tx) error {
		open, err := one(t, `SELECT 1 FROM sweeps WHERE run = ? AND done = 0`, []any{run}, new(int))
		if err != nil {
			return err
		}
		if open {
			return fmt.Errorf("reconciliation %d: a list of events is not through", run)
		}
		// Of lists that go on from an earlier run's place, the newest one of each
		// set of types counts.
		_, err = t.exec(`
			INSERT INTO coverage (scope, until)
			SELECT scope, min(newest) FROM (SELECT scope, max(until) AS newest FROM sweeps WHERE run = ? GROUP BY scope, types) GROUP BY scope
			ON CONFLICT (scope) DO UPDATE SET until = max(until, excluded.until)`, run)
		return err
	})
}

// Brought is how many events have not been worked on once, those in hand among
// them. Sums are compared when there are none.
func (s *Store) Brought(ctx context.Context) (int64, error) {
	var n int64
	err := s.read(ctx, func(q querier) error {
		_, err := one(q, `SELECT count(*) FROM events WHERE status = 'pending' AND verdict = 'new'`, nil, &n)
		return err
	})
	return n, err
}

// ConnectedAccounts are the accounts other than own of which a scope of Stripe
// is known: "acct_…" by scope. Under account = "*" each has events of its own.
func (s *Store) ConnectedAccounts(ctx context.Context, mode string) ([]string, error) {
	var accounts []string
	err := s.read(ctx, func(q querier) error {
		// One look-up of the index for each scope, however many events there are.
		rows, err := q.query(`
			WITH RECURSIVE scopes (scope) AS (
				SELECT min(source_scope) FROM events
				UNION ALL
				SELECT (SELECT min(source_scope) FROM events WHERE source_scope > scopes.scope) FROM scopes WHERE scope IS NOT NULL)
			SELECT scope FROM scopes WHERE scope LIKE 'stripe:acct\_%:' || ? ESCAPE '\'`, mode)
		scopes, err := collect(rows, err, func(r *sql.Rows, scope *string) error { return r.Scan(scope) })
		for _, scope := range scopes {
			account := scope[len("stripe:") : len(scope)-len(mode)-1]
			accounts = append(accounts, account)
		}
		return err
	})
	return accounts, err
}
