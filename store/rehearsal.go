package store

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// Rehearsal is a reconciliation that writes nothing: it has the methods that a
// run calls, and keeps the report in memory. What a run would bring in, it
// reports as missing. It is for one run, by one goroutine.
type Rehearsal struct {
	*Store
	tell   func(RunReport)
	report RunReport
	sums   map[dayCurrency]DaySum
}

// Rehearse begins a rehearsal on s. tell is told how far it is.
func Rehearse(s *Store, tell func(RunReport)) *Rehearsal {
	return &Rehearsal{Store: s, tell: tell, report: RunReport{State: "running", DryRun: true,
		Differences: []Difference{}, Gaps: []Gap{}, Sums: []DaySum{}}}
}

// BeginRun is [Store.BeginRun] for a run of its own.
func (r *Rehearsal) BeginRun(ctx context.Context, req RunRequest) (Run, error) {
	now := At(r.opt.Now())
	run := Run{Everything: true}
	err := r.read(ctx, func(q querier) error {
		plan, err := r.planRun(q, req, now)
		run.Since, run.Until, run.Sweeps = plan.since, plan.until, plan.sweeps
		r.report.Gaps = plan.gaps
		return err
	})
	r.report.Reason, r.report.StartedAt, r.report.Since, r.report.Until = req.Reason, now, run.Since, run.Until
	return run, err
}

// TakePage is [Store.TakePage] without taking anything.
func (r *Rehearsal) TakePage(ctx context.Context, _ int64, w Sweep, p EventPage) (Sweep, bool, error) {
	err := r.read(ctx, func(q querier) error {
		for _, e := range p.Events {
			known, err := one(q, `SELECT 1 FROM events WHERE source_scope = ? AND event_id = ?`, []any{e.Scope, e.ID}, new(int))
			if err != nil {
				return err
			}
			if !known {
				r.report.EventsNew++
				r.differs(missingEvent(e, false))
			}
		}
		return nil
	})
	r.report.Pages++
	r.report.EventsSeen += int64(len(p.Events))
	r.tell(r.report)
	w.After = p.Last
	return w, !p.More, err
}

// RestartSweep is [Store.RestartSweep].
func (r *Rehearsal) RestartSweep(_ context.Context, w Sweep) (Sweep, error) {
	w.After = ""
	return w, nil
}

// EndEvents moves no coverage.
func (r *Rehearsal) EndEvents(context.Context, int64) error { return nil }

// Brought is nothing.
func (r *Rehearsal) Brought(context.Context) (int64, error) { return 0, nil }

// TakeCopy is [Store.TakeCopy] without taking anything.
func (r *Rehearsal) TakeCopy(ctx context.Context, _ int64, c Checkup, o ObjectCopy) (Compared, error) {
	how := ComparedEqual
	r.report.ObjectsChecked++
	r.tell(r.report)
	err := r.read(ctx, func(q querier) error {
		d, _, compared, err := compareCopy(q, c, o)
		if how = compared; err == nil && how == ComparedDiffers {
			d.Resolved = false
			r.differs(d)
			how = ComparedEqual // nothing was brought in: nothing to look at again
		}
		return err
	})
	return how, err
}

// CopyGone is [Store.CopyGone].
func (r *Rehearsal) CopyGone(ctx context.Context, _ int64, c Checkup) error {
	r.report.ObjectsChecked++
	return r.read(ctx, func(q querier) error {
		d, err := goneDifference(q, c)
		if err == nil {
			r.differs(d)
		}
		return err
	})
}

// ClearSums is [Store.ClearSums].
func (r *Rehearsal) ClearSums(context.Context, int64) error {
	r.sums, r.report.PaymentsSeen = map[dayCurrency]DaySum{}, 0
	return nil
}

// Compare is [Store.Compare].
func (r *Rehearsal) Compare(ctx context.Context, _ int64, src ReconcileSource, page []Listed) ([]Checkup, error) {
	var c comparison
	err := r.read(ctx, func(q querier) error {
		var err error
		c, err = comparePage(q, src, page)
		return err
	})
	for k, sum := range c.sums {
		d := r.sums[k]
		r.sums[k] = DaySum{k.day, k.currency, d.StripeMinor + sum.stripe, d.BooksMinor + sum.books}
	}
	r.report.PaymentsSeen += c.payments
	r.tell(r.report)
	return c.differ, err
}

// FinishRun is [Store.FinishRun].
func (r *Rehearsal) FinishRun(_ context.Context, _ int64, fault error) (RunReport, error) {
	r.report.State, r.report.FinishedAt, r.report.Error = "done", At(r.opt.Now()), errorText(fault)
	if fault != nil {
		r.report.State = "failed"
	}
	for _, k := range slices.SortedFunc(maps.Keys(r.sums), func(a, b dayCurrency) int {
		return strings.Compare(a.day+a.currency, b.day+b.currency)
	}) {
		sum := r.sums[k]
		r.report.Sums = append(r.report.Sums, sum)
		if fault == nil && sum.StripeMinor != sum.BooksMinor {
			r.differs(sum.difference())
		}
	}
	r.report.Summary = r.report.summarize()
	return r.report, nil
}

func (r *Rehearsal) differs(d Difference) {
	d.Detail = cut(d.Detail)
	if r.report.DifferenceCount++; r.report.DifferenceCount <= maxDifferences {
		r.report.Differences = append(r.report.Differences, d)
	}
}
