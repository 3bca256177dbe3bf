package worker

import (
	"context"
	"log/slog"
	"time"

	"paidonce/store"
)

// AlertStore is what the alerts need of the store.
type AlertStore interface {
	CheckAlerts(ctx context.Context, rules store.AlertRules) ([]store.Alert, error)
}

// AlertsConfig is what main decides for the alerts.
type AlertsConfig struct {
	Store AlertStore
	Rules store.AlertRules // Rejects is asked for at each check
	// Rejects, when set, says what the public listener has refused of late.
	Rejects func() store.RejectsSeen
	Log     *slog.Logger
	Every   time.Duration // between two checks; 0 is 15 seconds
}

// Alerts looks again and again at whether a person should know something. What
// is told goes out as effects, which the store has queued by then; here it is
// logged too, so that a shop without an [[effect]] for alerts is told as well.
type Alerts struct{ cfg AlertsConfig }

// NewAlerts returns Alerts that have not begun.
func NewAlerts(cfg AlertsConfig) *Alerts {
	if cfg.Every == 0 {
		cfg.Every = 15 * time.Second
	}
	return &Alerts{cfg: cfg}
}

// Run checks at once and then again and again until stop is done, finishes the
// check in hand, and returns nil. An error never ends it.
func (a *Alerts) Run(stop, work context.Context) error {
	return every(stop, work, a.cfg.Every, func(failures int) (more bool, err error) {
		rules := a.cfg.Rules
		if a.cfg.Rejects != nil {
			rules.Rejects = a.cfg.Rejects()
		}
		told, err := a.cfg.Store.CheckAlerts(work, rules)
		for _, t := range told {
			a.log(work, t)
		}
		if err != nil && work.Err() == nil {
			a.cfg.Log.ErrorContext(work, "worker: alerts not checked", "err", err, "failures", failures+1)
		}
		return false, err
	})
}

func (a *Alerts) log(ctx context.Context, t store.Alert) {
	level := slog.LevelWarn
	if t.State == "resolved" {
		level = slog.LevelInfo
	}
	a.cfg.Log.Log(ctx, level, "worker: alert "+t.State, "alert", t.Name, "count", t.Count, "summary", t.Summary, "next", t.Next, "command", t.Command)
}

// every runs pass at once and then every d, at once again while pass says that
// there may be more, and after a failure later each time, up to a minute. It
// ends with stop, after the pass in hand, or with work.
func every(stop, work context.Context, d time.Duration, pass func(failures int) (more bool, err error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		select {
		case <-stop.Done():
		case <-work.Done():
		case <-timer.C:
		}
		if work.Err() != nil {
			return context.Cause(work)
		}
		if stop.Err() != nil { // select picks at random when several are ready
			return nil
		}
		delay := d
		switch more, err := pass(failures); {
		case work.Err() != nil:
			return context.Cause(work)
		case err != nil:
			failures++
			delay = max(d, min(d<<min(failures-1, 6), time.Minute))
		case more:
			failures, delay = 0, 0
		default:
			failures = 0
		}
		timer.Reset(delay)
	}
}
