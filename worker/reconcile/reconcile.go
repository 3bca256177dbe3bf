// Package reconcile asks Stripe what it has, and brings in what no webhook
// brought (promise P8): events by their list, objects by their ids. What it
// finds takes the one path that webhooks take, the inbox; it decides nothing
// about money and never writes a fact.
//
// A run has three passes (see store.Run): events, objects, sums. It can be
// killed anywhere: the place in a list is stored with what the page brought.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"paidonce/store"
	"paidonce/store/payment"
	"paidonce/worker/stripeapi"
)

// Store is what a run needs of the store; a store.Rehearsal has it too.
type Store interface {
	BeginRun(ctx context.Context, req store.RunRequest) (store.Run, error)
	TakePage(ctx context.Context, run int64, w store.Sweep, p store.EventPage) (store.Sweep, bool, error)
	RestartSweep(ctx context.Context, w store.Sweep) (store.Sweep, error)
	EndEvents(ctx context.Context, run int64) error
	Brought(ctx context.Context) (int64, error)
	Checkups(ctx context.Context, sources []store.ReconcileSource, everything bool, limit int) ([]store.Checkup, error)
	TakeCopy(ctx context.Context, run int64, c store.Checkup, o store.ObjectCopy) (store.Compared, error)
	CopyGone(ctx context.Context, run int64, c store.Checkup) error
	ClearSums(ctx context.Context, run int64) error
	Compare(ctx context.Context, run int64, src store.ReconcileSource, page []store.Listed) ([]store.Checkup, error)
	FinishRun(ctx context.Context, run int64, fault error) (store.RunReport, error)
	RunRequested(ctx context.Context) (bool, error)
	ConnectedAccounts(ctx context.Context, mode string) ([]string, error)
}

// Stripe is what is asked of Stripe. Errors are *stripeapi.Error.
type Stripe interface {
	ListEvents(ctx context.Context, account string, types []string, span stripeapi.Span, after string) (stripeapi.Page, error)
	ListObjects(ctx context.Context, account string, kind payment.Kind, span stripeapi.Span, after string) (stripeapi.Page, error)
	SessionsOf(ctx context.Context, account, intent string) ([]store.ObjectCopy, error)
	Fetch(ctx context.Context, account string, kind payment.Kind, id string) (store.ObjectCopy, error)
	AccountID(ctx context.Context) (string, error)
}

// Rate is how many requests a second a run makes at most: a quarter of what
// Stripe allows a test account, as refunds and checkouts go first.
const Rate = 5

// Source is a [[source]] of Stripe's.
type Source struct {
	Name    string
	Account string // "self", "acct_…", or "*"
	Scope   string // of its own account
	Live    bool
	Types   []string // of raw routes, beyond those that the rules want; "*" may end one
}

// Config is what main decides.
type Config struct {
	Store     Store
	Stripe    Stripe
	Sources   []Source
	Wake      func()  // there is something in the inbox
	Watcher   Watcher // nil: nothing is watched beside
	Endpoints Endpoints
	Now       func() time.Time
	Log       *slog.Logger
	Every     time.Duration // between two runs; 0 is 5 minutes
	Poll      time.Duration // between two looks for a run that was asked for; 0 is 250 ms
}

const (
	defaultEvery = 5 * time.Minute
	// longestRest is the longest wait after failures in a row.
	longestRest = time.Hour
	// perRun and perRunAsked bound what the object pass fetches in one run; the
	// rest is due in the next.
	perRun, perRunAsked = 100, 2000
	mainTenant          = "main"
)

// Reconciler runs again and again, and when it is asked to.
type Reconciler struct {
	cfg  Config
	keys map[string]string // source → Stripe-Account, where that is not the key's own
}

// New returns a Reconciler that has not begun.
func New(cfg Config) *Reconciler {
	if cfg.Every == 0 {
		cfg.Every = defaultEvery
	}
	if cfg.Poll == 0 {
		cfg.Poll = 250 * time.Millisecond
	}
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	return &Reconciler{cfg: cfg}
}

// Run reconciles at once, then every Every and whenever somebody has asked,
// until stop or work is done. A run that is cut off is gone on with by the next
// process. Failures in a row make the waits longer, up to an hour.
func (r *Reconciler) Run(stop, work context.Context) error {
	ctx, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	defer context.AfterFunc(stop, func() { cancel(errStopped) })()
	timer := time.NewTimer(0)
	defer timer.Stop()
	reason, due, failures := store.RunAtStart, r.cfg.Now(), 0
	reached := r.cfg.Now() // when Stripe last answered
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errStopped) {
				return nil
			}
			return context.Cause(work)
		case <-timer.C:
		}
		timer.Reset(r.cfg.Poll)
		asked, err := r.cfg.Store.RunRequested(ctx)
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "reconcile: requests not read", "err", err)
		}
		now := r.cfg.Now()
		if !asked && now.Before(due) && due.Sub(now) <= longestRest { // a clock that was set back holds nothing up
			continue
		}
		report, err := r.Once(ctx, store.RunRequest{Reason: reason})
		if ctx.Err() != nil {
			continue
		}
		reason = store.RunScheduled
		rest := r.cfg.Every
		switch {
		case err != nil || report.Error != "":
			failures++
			rest = min(r.cfg.Every<<min(failures-1, 6), max(longestRest, r.cfg.Every))
			r.cfg.Log.WarnContext(ctx, "reconcile: not finished", "err", errors.Join(err, textError(report.Error)), "failures", failures, "next", rest)
			if r.cfg.Now().Sub(reached) >= unreachedFor {
				r.find(ctx, store.AlertReconcile, []store.Finding{{Thing: "Stripe", Text: cutAfter(errors.Join(err, textError(report.Error)).Error(), 150)}})
			}
		default:
			failures, reached = 0, r.cfg.Now()
			r.find(ctx, store.AlertReconcile, nil)
			r.watch(ctx)
			if r.cfg.Now().Sub(report.Until.Std()) >= r.cfg.Every {
				rest = 0 // it went on with one of long ago, or took long: there is more
			}
			r.tell(ctx, report)
		}
		due = r.cfg.Now().Add(rest)
	}
}

var errStopped = errors.New("stopped")

func textError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func cutAfter(text string, n int) string {
	if len(text) > n {
		return text[:n] + "…"
	}
	return text
}

// tell logs what a run came to: one that found something as a warning.
func (r *Reconciler) tell(ctx context.Context, report store.RunReport) {
	level := slog.LevelDebug
	if !report.Agrees() {
		level = slog.LevelWarn
	} else if report.Reason != store.RunScheduled {
		level = slog.LevelInfo
	}
	r.cfg.Log.Log(ctx, level, "reconcile: "+report.Summary, "run", report.ID, "since", report.Since, "until", report.Until)
}

// Once is one run: one that was asked for or broken off, else one of its own.
// The error is the store's, or of a context that ended, after which the run is
// not over; what Stripe refused is in the report.
func (r *Reconciler) Once(ctx context.Context, req store.RunRequest) (store.RunReport, error) {
	sources, err := r.sources(ctx)
	if err == nil {
		req.Sources, req.Types = sources, r.types()
	}
	fault := err
	run, err := r.cfg.Store.BeginRun(ctx, req)
	if err != nil {
		return store.RunReport{}, fmt.Errorf("begin: %w", err)
	}
	if fault == nil {
		fault = r.passes(ctx, run, sources)
	}
	if ctx.Err() != nil {
		return store.RunReport{}, context.Cause(ctx)
	}
	report, err := r.cfg.Store.FinishRun(ctx, run.ID, fault)
	if err != nil {
		return store.RunReport{}, fmt.Errorf("finish: %w", err)
	}
	return report, nil
}

func (r *Reconciler) passes(ctx context.Context, run store.Run, sources []store.ReconcileSource) error {
	fresh, err := r.events(ctx, run)
	if err != nil {
		return err
	}
	if fresh {
		r.settle(ctx)
	}
	return r.objects(ctx, run, sources)
}

// sources are the accounts to read: each source's own, and under account = "*"
// those that events have come from.
func (r *Reconciler) sources(ctx context.Context) ([]store.ReconcileSource, error) {
	var all []store.ReconcileSource
	for _, src := range r.cfg.Sources {
		account, err := r.accountOf(ctx, src)
		if err != nil {
			return nil, err
		}
		all = append(all, store.ReconcileSource{Name: src.Name, Account: account, Scope: src.Scope, Tenant: mainTenant, Live: src.Live})
		if src.Account != "*" {
			continue
		}
		mode := "test"
		if src.Live {
			mode = "live"
		}
		connected, err := r.cfg.Store.ConnectedAccounts(ctx, mode)
		if err != nil {
			return nil, err
		}
		for _, id := range connected {
			scope := "stripe:" + id + ":" + mode
			if !slices.ContainsFunc(r.cfg.Sources, func(s Source) bool { return s.Scope == scope }) {
				all = append(all, store.ReconcileSource{Name: src.Name, Account: id, Scope: scope, Tenant: id, Live: src.Live})
			}
		}
	}
	return all, nil
}

// accountOf is the Stripe-Account of a source. With one source the key is that
// account's own; with several, Stripe says whose it is.
func (r *Reconciler) accountOf(ctx context.Context, src Source) (string, error) {
	if len(r.cfg.Sources) == 1 || src.Account == "*" {
		return "", nil
	}
	if r.keys == nil {
		own, err := attempts(ctx, func() (string, error) { return r.cfg.Stripe.AccountID(ctx) })
		if err != nil {
			return "", err
		}
		r.keys = map[string]string{}
		for _, s := range r.cfg.Sources {
			if s.Account != own && s.Account != "*" {
				r.keys[s.Name] = s.Account
			}
		}
	}
	return r.keys[src.Name], nil
}

// types are the lists of types that each source's events are read by.
func (r *Reconciler) types() map[string][][]string {
	all := map[string][][]string{}
	for _, src := range r.cfg.Sources {
		all[src.Name] = typeLists(append(payment.EventTypes(), src.Types...))
	}
	return all
}

// typeLists sorts types into as few lists as there can be: a name with "*" at
// its end is a list of its own, and makes those that it covers unnecessary.
func typeLists(types []string) [][]string {
	var lists [][]string
	var names, groups []string
	for _, t := range types {
		if t[len(t)-1] == '*' {
			groups = append(groups, t)
		}
	}
	covered := func(t string) bool {
		return slices.ContainsFunc(groups, func(g string) bool {
			prefix := g[:len(g)-1]
			return g != t && len(t) >= len(prefix) && t[:len(prefix)] == prefix
		})
	}
	slices.Sort(groups)
	for _, g := range slices.Compact(groups) {
		if !covered(g) {
			lists = append(lists, []string{g})
		}
	}
	for _, t := range types {
		if t[len(t)-1] != '*' && !covered(t) && !slices.Contains(names, t) {
			names = append(names, t)
		}
	}
	for chunk := range slices.Chunk(names, store.MaxEventTypes) {
		lists = append(lists, chunk)
	}
	return lists
}

// settle waits until what was brought in has been worked on, for as long as
// that gets on.
func (r *Reconciler) settle(ctx context.Context) {
	r.cfg.Wake()
	timer := time.NewTimer(0)
	defer timer.Stop()
	least, stuck := int64(-1), 0
	for stuck < 50 {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		n, err := r.cfg.Store.Brought(ctx)
		if err != nil || n == 0 {
			return
		}
		if stuck++; least < 0 || n < least {
			least, stuck = n, 0
		}
		timer.Reset(100 * time.Millisecond)
	}
}

// retryPauses are the waits between tries of one call: three failures in a row
// end the run.
var retryPauses = []time.Duration{time.Second, 3 * time.Second}

// longestAsked is the longest Retry-After that a run waits for; with a longer
// one it ends, and the next run comes in its time.
const longestAsked = 30 * time.Second

// attempts makes one call, again after a failure that can get better.
func attempts[T any](ctx context.Context, call func() (T, error)) (T, error) {
	for i := 0; ; i++ {
		out, err := call()
		var e *stripeapi.Error
		if err == nil || i == len(retryPauses) || !errors.As(err, &e) || e.Outcome != store.OutcomeAgain || e.RetryAfter > longestAsked {
			return out, err
		}
		timer := time.NewTimer(max(retryPauses[i], e.RetryAfter))
		select {
		case <-ctx.Done():
			timer.Stop()
			return out, context.Cause(ctx)
		case <-timer.C:
		}
	}
}
