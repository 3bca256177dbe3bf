package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"paidonce/handler"
	"paidonce/store"
	"paidonce/worker/reconcile"
	"paidonce/worker/stripeapi"
)

// reconciler asks Stripe what no webhook has brought. nil is that there is no
// key, or no source of Stripe's.
func (a *app) reconciler(c *config, sec secrets, s reconcile.Store, wake func(), log *slog.Logger) (*reconcile.Reconciler, error) {
	sources := c.reconcileSources(sec.sources)
	if sec.keyKind == "" || len(sources) == 0 {
		return nil, nil
	}
	// A client of its own: its limit leaves room for refunds and checkouts.
	api, err := stripeapi.New(stripeapi.Config{Key: sec.stripeKey, Base: c.apiBase, Now: a.now, Log: log, Rate: reconcile.Rate})
	if err != nil {
		return nil, err
	}
	cfg := reconcile.Config{Store: s, Stripe: api, Sources: sources, Wake: wake, Now: a.now, Log: log}
	if w, ok := s.(*store.Store); ok {
		cfg.Watcher, cfg.Endpoints = w, api
	}
	return reconcile.New(cfg), nil
}

// reconcileSources are the sources of Stripe's, with the types that raw routes
// want of each.
func (c *config) reconcileSources(sources []handler.Source) []reconcile.Source {
	var all []reconcile.Source
	for _, src := range sources {
		if src.Provider != handler.ProviderStripe {
			continue
		}
		r := reconcile.Source{Name: src.Name, Account: or(src.Account, "self"), Scope: src.OwnScope(), Live: src.Live}
		for _, e := range c.effects {
			for _, on := range e.on {
				if name, eventType, raw := strings.Cut(on, ":"); raw && name == src.Name && !slices.Contains(r.Types, eventType) {
					r.Types = append(r.Types, eventType)
				}
			}
		}
		all = append(all, r)
	}
	return all
}

// reconcilePatience is how long the command waits without seeing the run get
// on: a serve that is at it reads at least a page in that time.
const reconcilePatience = 60 * time.Second

func (a *app) reconcileCommand() *cobra.Command {
	var sinceText string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Ask Stripe what no webhook has brought, and bring it in",
		Long: `Lists Stripe's events and compares them with what is known; fetches what should
have moved and did not; compares Stripe's charges, refunds and disputes with the
books. serve does this at start and every five minutes. This command has it done
now, shows how far it is, and prints the report. Without --since it goes on from
where the last one ended.

With --dry-run it asks Stripe itself and writes nothing: what is missing is
listed, and stays missing.

It exits with 1 when something was missing or differs.`,
		Example: `  paidonce reconcile
  paidonce reconcile --since 7d
  paidonce reconcile --since 2026-11-01 --dry-run`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := a.now()
			var since store.Time
			if sinceText != "" {
				t, ok := parseTime(sinceText, now)
				if !ok || t.After(now) {
					return usagef(cmd, "--since must be a time before now, such as 2026-11-30T12:00:00Z, a date or a duration such as 36h")
				}
				since = store.At(t)
			}
			var report store.RunReport
			var err error
			if dryRun {
				report, err = a.rehearse(cmd.Context(), since)
			} else {
				report, err = a.askToReconcile(cmd.Context(), since)
			}
			if err != nil {
				return err
			}
			if err := a.print(report, func(w *bytes.Buffer) { reportLines(w, report) }); err != nil {
				return err
			}
			return verdictOf(report)
		},
	}
	cmd.Flags().StringVar(&sinceText, "since", "", "from this `time` on: RFC 3339, a date (UTC), or a duration ago such as 36h or 30d")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "write nothing: only tell what is missing")
	return cmd
}

// verdictOf makes an error of a report that does not say that all is well.
func verdictOf(r store.RunReport) error {
	switch {
	case r.Error != "":
		return errors.New("reconciliation did not finish: " + clean(r.Error))
	case !r.Agrees() && r.DryRun:
		return errors.New("something is missing or differs: `paidonce reconcile` brings in what Stripe still has")
	case !r.Agrees():
		return errors.New("something was missing or differs: see above; a second `paidonce reconcile` tells what is left")
	}
	return nil
}

// askToReconcile has serve do it, and waits for as long as it gets on.
func (a *app) askToReconcile(ctx context.Context, since store.Time) (report store.RunReport, err error) {
	err = a.withStore(ctx, func(s *store.Store) error {
		if !s.Serving() {
			return errors.New("serve is not running: start it, it reconciles at once; or look with --dry-run")
		}
		id, err := s.RequestRun(ctx, since, "cli")
		if err != nil {
			return err
		}
		tell := a.tellProgress()
		defer tell.end()
		timer := time.NewTimer(0)
		defer timer.Stop()
		for seen, at := (store.RunReport{}), a.now(); ; {
			if report, err = s.Report(context.WithoutCancel(ctx), id); err != nil || report.Over() {
				return err
			}
			if report.State != seen.State || report.Pages != seen.Pages || report.ObjectsChecked != seen.ObjectsChecked || report.PaymentsSeen != seen.PaymentsSeen {
				seen, at = report, a.now()
				tell.progress(report)
			} else if a.now().Sub(at) > reconcilePatience {
				return fmt.Errorf("serve has asked for it (run %d) and does not get on: look at its log, and at `paidonce reconcile --dry-run`", id)
			}
			timer.Reset(100 * time.Millisecond)
			select {
			case <-ctx.Done():
				return fmt.Errorf("not waited for: serve goes on with run %d", id)
			case <-timer.C:
			}
		}
	})
	return report, err
}

// rehearse asks Stripe from here, and writes nothing.
func (a *app) rehearse(ctx context.Context, since store.Time) (report store.RunReport, err error) {
	c, err := a.config(overrides{})
	if err != nil {
		return report, err
	}
	sec, err := c.forServe()
	if err != nil {
		return report, err
	}
	s, err := a.openStore(ctx, c)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	tell := a.tellProgress()
	defer tell.end()
	r, err := a.reconciler(c, sec, store.Rehearse(s, tell.progress), nil, a.log())
	if err != nil {
		return report, err
	}
	if r == nil {
		return report, errors.New("reconciliation needs a Stripe key and a stripe source: set STRIPE_API_KEY and STRIPE_WEBHOOK_SECRET")
	}
	return r.Once(ctx, store.RunRequest{Since: since, Reason: "cli"})
}

// reportLines tells a report: the sentence first, then what differs.
func reportLines(w *bytes.Buffer, r store.RunReport) {
	fmt.Fprintf(w, "%s\n", clean(r.Summary))
	pairs(w, "since", clock(r.Since), "until", clock(r.Until), "objects checked", fmt.Sprint(r.ObjectsChecked))
	for _, d := range r.Differences {
		about := ""
		if d.Order != "" {
			about = " (order " + clean(d.Order) + ")"
		}
		state := "missing"
		switch {
		case d.Resolved:
			state = "brought in"
		case d.What != store.DifferenceEvent && d.What != store.DifferenceObject:
			state = "differs"
		}
		fmt.Fprintf(w, "  %-10s  %s: %s%s\n", state, clean(d.Object), clean(d.Detail), about)
	}
	if more := r.DifferenceCount - int64(len(r.Differences)); more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(w, "  gap         Stripe lists no events from %s to %s any more: look at its dashboard for payments of that time\n", clock(g.From), clock(g.To))
	}
}

// teller tells how far a run is: one line that changes on a terminal, a plain
// line at each change elsewhere, at most one a second; nothing under --json.
type teller struct {
	a        *app
	terminal bool
	told     time.Time
	wrote    bool
}

func (a *app) tellProgress() *teller {
	f, ok := a.stderr.(*os.File)
	return &teller{a: a, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

func (t *teller) progress(r store.RunReport) {
	if t.a.json {
		return
	}
	text := fmt.Sprintf("reading Stripe: %d pages, %d events, %d new, %d payments, %d objects checked", r.Pages, r.EventsSeen, r.EventsNew, r.PaymentsSeen, r.ObjectsChecked)
	if r.State == "requested" {
		text = "waiting for serve to begin"
	}
	now := t.a.now()
	switch {
	case t.terminal:
		fmt.Fprintf(t.a.stderr, "\r\x1b[K%s", text)
		t.wrote = true
	case t.told.IsZero() || now.Sub(t.told) >= time.Second:
		t.told = now
		fmt.Fprintln(t.a.stderr, text)
	}
}

func (t *teller) end() {
	if t.wrote {
		fmt.Fprint(t.a.stderr, "\r\x1b[K")
	}
}
