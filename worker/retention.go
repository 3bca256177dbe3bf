package worker

import (
	"context"
	"log/slog"
	"time"

	"paidonce/store"
)

// RetentionConfig is what main decides for it: [retention] of the TOML file.
type RetentionConfig struct {
	Begin func(before store.Time) *store.Purge
	Days  int64 // how long payloads stay once their event is done
	Now   func() time.Time
	Log   *slog.Logger
	Every time.Duration // between two purges; 0 is an hour
	Pause time.Duration // between two steps, for accepts; 0 is 20 ms
}

// Retention lets go of what is done with and old, an hour after the other, in
// small steps.
type Retention struct{ cfg RetentionConfig }

// NewRetention returns a Retention that has not begun.
func NewRetention(cfg RetentionConfig) *Retention {
	if cfg.Every == 0 {
		cfg.Every = time.Hour
	}
	if cfg.Pause == 0 {
		cfg.Pause = 20 * time.Millisecond
	}
	return &Retention{cfg: cfg}
}

// Run purges at once and then every hour, until stop or work is done. A purge
// that is cut off is gone on with by the next one.
func (r *Retention) Run(stop, work context.Context) error {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	defer context.AfterFunc(stop, cancel)()
	return every(stop, work, r.cfg.Every, func(failures int) (bool, error) {
		p := r.cfg.Begin(store.PurgeBefore(r.cfg.Now(), r.cfg.Days))
		for {
			more, err := p.Step(ctx)
			if ctx.Err() != nil {
				return false, nil
			}
			if err != nil {
				r.cfg.Log.WarnContext(ctx, "worker: purge broken off", "err", err, "failures", failures+1)
				return false, err
			}
			if !more {
				break
			}
			timer := time.NewTimer(r.cfg.Pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return false, nil
			}
		}
		if p.Payloads+p.Effects > 0 {
			r.cfg.Log.InfoContext(ctx, "worker: purged what is old", "payloads", p.Payloads, "effects", p.Effects)
		}
		return false, nil
	})
}
