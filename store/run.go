package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// keepRuns is how many reports are kept of runs that found nothing; those that
// found something stay.
const keepRuns = 2000

// RequestRun asks serve for a run and returns its id. since 0 is what coverage
// says; otherwise the run reaches back to it. reason is who asks.
func (s *Store) RequestRun(ctx context.Context, since Time, reason string) (int64, error) {
	var id int64
	err := s.w.write(ctx, "request a reconciliation", func(t *Tx) error {
		if err := s.needStripeKey(t, "reconciliation"); err != nil {
			return err
		}
		if since > t.now {
			return &Problem{Code: CodeInvalid, Message: "since is in the future", Fields: []FieldProblem{{"since", "must be in the past"}}}
		}
		var err error
		id, err = t.insert(`INSERT INTO runs (state, reason, asked_since, created_at) VALUES ('requested', ?, ?, ?)`, reason, since, t.now)
		return err
	})
	return id, err
}

// RunRequested reports whether somebody has asked for a run that has not begun.
func (s *Store) RunRequested(ctx context.Context) (bool, error) {
	var asked bool
	err := s.read(ctx, func(q querier) error {
		var err error
		asked, err = one(q, `SELECT 1 FROM runs WHERE state = 'requested' LIMIT 1`, nil, new(int))
		return err
	})
	return asked, err
}

// BeginRun goes on with the run that a process before this one had in hand;
// else it begins the oldest that was asked for; else one of its own. What a run
// that failed has already read is not read again.
func (s *Store) BeginRun(ctx context.Context, req RunRequest) (Run, error) {
	var run Run
	err := s.w.write(ctx, "begin a reconciliation", func(t *Tx) error {
		run = Run{}
		ok, err := one(t, `SELECT id, since, until, reason <> ? AND reason <> ? FROM runs WHERE state = 'running'`,
			[]any{RunAtStart, RunScheduled}, &run.ID, &run.Since, &run.Until, &run.Everything)
		if err != nil {
			return err
		}
		if ok {
			run.Resumed = true
			run.Sweeps, err = openSweeps(t, run.ID)
			return err
		}
		return s.newRun(t, req, &run)
	})
	return run, err
}

func (s *Store) newRun(t *Tx, req RunRequest, run *Run) error {
	asked, err := one(t, `SELECT id, asked_since FROM runs WHERE state = 'requested' ORDER BY id LIMIT 1`, nil, &run.ID, &req.Since)
	if err != nil {
		return err
	}
	if asked {
		run.Everything = true
	} else if run.ID, err = t.insert(`INSERT INTO runs (state, reason, asked_since, created_at) VALUES ('requested', ?, ?, ?)`,
		req.Reason, req.Since, t.now); err != nil {
		return err
	}
	plan, err := s.planRun(t, req, t.now)
	if err != nil {
		return err
	}
	for _, w := range plan.sweeps {
		if _, err := t.insert(`
			INSERT INTO sweeps (run, source, account, scope, tenant, live, types, since, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			run.ID, w.Source.Name, w.Source.Account, w.Source.Scope, w.Source.Tenant, w.Source.Live, jsonText(w.Types), w.Since, w.Until); err != nil {
			return err
		}
	}
	if req.Since == 0 {
		if err := inheritSweeps(t, run.ID); err != nil {
			return err
		}
	}
	run.Since, run.Until = plan.since, plan.until
	if _, err := t.exec(`UPDATE runs SET state = 'running', started_at = ?, since = ?, until = ?, gaps = ? WHERE id = ?`,
		t.now, run.Since, run.Until, jsonText(plan.gaps), run.ID); err != nil {
		return err
	}
	run.Sweeps, err = openSweeps(t, run.ID)
	return err
}

// inheritSweeps takes over the place of the lists that the last run, which
// failed, was in the middle of: it had read them from the newest down to that
// place. The new list still begins at its own newest; it ends where that one
// has read everything.
func inheritSweeps(t *Tx, run int64) error {
	_, err := t.exec(`
		INSERT INTO sweeps (run, source, account, scope, tenant, live, types, since, until, after)
		SELECT n.run, n.source, n.account, n.scope, n.tenant, n.live, n.types, n.since, o.until, o.after
		FROM sweeps o JOIN sweeps n ON n.run = ?1 AND n.scope = o.scope AND n.account = o.account AND n.types = o.types
		WHERE o.run = (SELECT max(id) FROM runs WHERE id < ?1 AND state = 'failed')
			AND o.done = 0 AND o.after <> '' AND o.until > n.since`, run)
	if err != nil {
		return err
	}
	// The list that goes on from there covers what is older; the first one only
	// what came since that run began.
	_, err = t.exec(`
		UPDATE sweeps SET since = max(since, (SELECT max(i.until) - ?2 FROM sweeps i
			WHERE i.run = sweeps.run AND i.scope = sweeps.scope AND i.account = sweeps.account AND i.types = sweeps.types AND i.after <> ''))
		WHERE run = ?1 AND after = '' AND EXISTS (SELECT 1 FROM sweeps i
			WHERE i.run = sweeps.run AND i.scope = sweeps.scope AND i.account = sweeps.account AND i.types = sweeps.types AND i.after <> '')`,
		run, EventOverlap.Milliseconds())
	return err
}

// runPlan is what a run will read.
type runPlan struct {
	since, until Time
	sweeps       []Sweep
	gaps         []Gap
}

// planRun says what has to be listed: for each account from where coverage
// ends, with an overlap, or from where a person wants it, whichever is older.
// What Stripe does not list any more is a gap.
func (s *Store) planRun(q querier, req RunRequest, now Time) (runPlan, error) {
	p := runPlan{until: now, since: now, gaps: []Gap{}}
	for _, src := range req.Sources {
		since, err := covered(q, src.Scope)
		if err != nil {
			return runPlan{}, err
		}
		since -= Time(EventOverlap.Milliseconds())
		if req.Since != 0 {
			since = min(since, req.Since)
		}
		if oldest := now - Time(EventLife.Milliseconds()); since < oldest {
			if gap := (Gap{since, oldest}); !slices.Contains(p.gaps, gap) {
				p.gaps = append(p.gaps, gap)
			}
			since = oldest
		}
		since = max(since-since%1000, 0)
		p.since = min(p.since, since)
		for _, types := range req.Types[src.Name] {
			p.sweeps = append(p.sweeps, Sweep{Source: src, Types: types, Since: since, Until: now})
		}
	}
	return p, nil
}

// covered is up to when the events of a scope are known: at first, the moment
// of the installation.
func covered(q querier, scope string) (Time, error) {
	var until Time
	ok, err := one(q, `SELECT until FROM coverage WHERE scope = ?`, []any{scope}, &until)
	if err != nil || ok {
		return until, err
	}
	_, err = one(q, `SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'installed_at'`, nil, &until)
	return until, err
}

func openSweeps(q querier, run int64) ([]Sweep, error) {
	rows, err := q.query(`
		SELECT id, source, account, scope, tenant, live, types, since, until, after FROM sweeps WHERE run = ? AND done = 0 ORDER BY id`, run)
	return collect(rows, err, func(r *sql.Rows, w *Sweep) error {
		var types []byte
		if err := r.Scan(&w.ID, &w.Source.Name, &w.Source.Account, &w.Source.Scope, &w.Source.Tenant, &w.Source.Live,
			&types, &w.Since, &w.Until, &w.After); err != nil {
			return err
		}
		return json.Unmarshal(types, &w.Types)
	})
}

// FinishRun writes the end of a run and its sentence. fault, when it is not
// nil, is what kept it from coming to its end.
func (s *Store) FinishRun(ctx context.Context, run int64, fault error) (RunReport, error) {
	var r RunReport
	err := s.w.write(ctx, "finish a reconciliation", func(t *Tx) error {
		state := "done"
		if fault != nil {
			state = "failed"
		}
		if state == "done" {
			if err := sumDifferences(t, run); err != nil {
				return err
			}
		}
		if _, err := t.exec(`UPDATE runs SET state = ?, finished_at = ?, error = ? WHERE id = ? AND state = 'running'`,
			state, t.now, errorText(fault), run); err != nil {
			return err
		}
		var err error
		if r, err = runReport(t, run); err != nil {
			return err
		}
		r.Summary = r.summarize()
		if _, err := t.exec(`UPDATE runs SET summary = ? WHERE id = ?`, r.Summary, run); err != nil {
			return err
		}
		if state == "done" { // a failed one's lists are gone on with
			if _, err := t.exec(`DELETE FROM sweeps WHERE run <= ?`, run); err != nil {
				return err
			}
		}
		return pruneRuns(t, run)
	})
	return r, err
}

// pruneRuns lets go of old reports that say nothing but that all was well.
func pruneRuns(t *Tx, newest int64) error {
	old := `SELECT id FROM runs WHERE id <= ? AND state IN ('done', 'failed') AND events_new = 0 AND differences = 0 AND gaps = '[]' ORDER BY id LIMIT 20`
	for _, table := range []string{"sweeps WHERE run", "run_sums WHERE run", "runs WHERE id"} {
		if _, err := t.exec(`DELETE FROM `+table+` IN (`+old+`)`, newest-keepRuns); err != nil {
			return err
		}
	}
	return nil
}

// addDifference notes one more, and keeps it if there is room in the report.
func addDifference(t *Tx, run int64, d Difference) error {
	if _, err := t.exec(`UPDATE runs SET differences = differences + 1 WHERE id = ?`, run); err != nil {
		return err
	}
	_, err := t.exec(`
		INSERT INTO run_differences (run, n, object, what, detail, order_id, resolved)
		SELECT id, differences, ?, ?, ?, ?, ? FROM runs WHERE id = ? AND differences <= ?`,
		d.Object, d.What, cut(d.Detail), d.Order, d.Resolved, run, maxDifferences)
	return err
}

// Reports are the newest runs, the newest first; limit 0 is 20.
func (s *Store) Reports(ctx context.Context, limit int) ([]RunReport, error) {
	if limit <= 0 || limit > 200 {
		limit = 20
	}
	reports := []RunReport{}
	err := s.read(ctx, func(q querier) error {
		rows, err := q.query(`SELECT id FROM runs ORDER BY id DESC LIMIT ?`, limit)
		ids, err := collect(rows, err, func(r *sql.Rows, id *int64) error { return r.Scan(id) })
		if err != nil {
			return err
		}
		for _, id := range ids {
			r, err := runReport(q, id)
			if err != nil {
				return err
			}
			reports = append(reports, r)
		}
		return nil
	})
	return reports, err
}

// Report is the report of one run, as far as it is.
func (s *Store) Report(ctx context.Context, run int64) (RunReport, error) {
	var r RunReport
	err := s.read(ctx, func(q querier) error {
		var err error
		r, err = runReport(q, run)
		return err
	})
	return r, err
}

// AwaitRun is Report when the run is over, or as it stands when ctx ends.
func (s *Store) AwaitRun(ctx context.Context, run int64) (RunReport, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r, err := s.Report(context.WithoutCancel(ctx), run)
		if err != nil || r.Over() {
			return r, err
		}
		timer.Reset(100 * time.Millisecond)
		select {
		case <-ctx.Done():
			return r, nil
		case <-timer.C:
		}
	}
}

func runReport(q querier, run int64) (RunReport, error) {
	r := RunReport{Differences: []Difference{}, Gaps: []Gap{}, Sums: []DaySum{}}
	var gaps []byte
	ok, err := one(q, `
		SELECT id, state, reason, coalesce(started_at, 0), coalesce(finished_at, 0), since, until, pages, events_seen, events_new,
			objects_checked, payments_seen, differences, gaps, summary, error
		FROM runs WHERE id = ?`, []any{run},
		&r.ID, &r.State, &r.Reason, &r.StartedAt, &r.FinishedAt, &r.Since, &r.Until, &r.Pages, &r.EventsSeen, &r.EventsNew,
		&r.ObjectsChecked, &r.PaymentsSeen, &r.DifferenceCount, &gaps, &r.Summary, &r.Error)
	if err != nil {
		return RunReport{}, fmt.Errorf("read reconciliation %d: %w", run, err)
	}
	if !ok {
		return RunReport{}, problem(CodeNotFound, "there is no reconciliation %d", run)
	}
	if err := json.Unmarshal(gaps, &r.Gaps); err != nil {
		return RunReport{}, err
	}
	rows, err := q.query(`SELECT object, what, detail, order_id, resolved FROM run_differences WHERE run = ? ORDER BY n`, run)
	found, err := collect(rows, err, func(rows *sql.Rows, d *Difference) error {
		return rows.Scan(&d.Object, &d.What, &d.Detail, &d.Order, &d.Resolved)
	})
	if err != nil {
		return RunReport{}, err
	}
	r.Differences = append(r.Differences, found...)
	rows, err = q.query(`SELECT day, currency, stripe_minor, books_minor FROM run_sums WHERE run = ? ORDER BY day, currency`, run)
	sums, err := collect(rows, err, func(rows *sql.Rows, d *DaySum) error {
		return rows.Scan(&d.Day, &d.Currency, &d.StripeMinor, &d.BooksMinor)
	})
	r.Sums = append(r.Sums, sums...)
	return r, err
}

// difference is a day whose sums do not agree.
func (d DaySum) difference() Difference {
	return Difference{Object: d.Day + " " + d.Currency, What: DifferenceSums,
		Detail: fmt.Sprintf("Stripe %d, books %d (minor units)", d.StripeMinor, d.BooksMinor)}
}
