package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Stats counts where everything stands. It costs the same at any size: the
// counts are kept by the transactions that move the events.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	if s.opt.Mode == Serve {
		if err := s.flushTimings(ctx); err != nil {
			s.log.Warn("store: timings not written", "err", err)
		}
	}
	st := Stats{Events: map[string]map[string]int64{}, Effects: map[string]int64{}}
	for _, status := range []string{"pending", "done", "quarantined"} {
		st.Events[status] = map[string]int64{}
	}
	now := At(s.opt.Now())
	err := s.read(ctx, func(q querier) error {
		type place struct {
			status, verdict string
			n, watched      int64
		}
		rows, err := q.query(`SELECT status, verdict, n, watched FROM event_counts WHERE n > 0 ORDER BY status, verdict`)
		places, err := collect(rows, err, func(r *sql.Rows, p *place) error { return r.Scan(&p.status, &p.verdict, &p.n, &p.watched) })
		if err != nil {
			return err
		}
		for _, p := range places {
			st.Events[p.status][p.verdict] = p.n
			switch {
			case p.status == "quarantined":
				st.Quarantined += p.n
			case p.verdict == "unlinked" && s.opt.Unlinked != "ignore":
				st.Unlinked = p.watched
			case p.verdict == "retrying":
				st.Retries = p.n
			}
		}
		for _, status := range []string{"pending", "sending", "done", "failed", "unknown", "canceled", "held"} {
			st.Effects[status] = 0
		}
		type standing struct {
			status string
			n      int64
		}
		rows, err = q.query(`SELECT status, n FROM effect_counts`)
		effects, err := collect(rows, err, func(r *sql.Rows, e *standing) error { return r.Scan(&e.status, &e.n) })
		if err != nil {
			return err
		}
		for _, e := range effects {
			st.Effects[e.status] = e.n
		}
		var oldest Time
		if _, err := one(q, `SELECT min(received_at) FROM events INDEXED BY events_due WHERE status = 'pending' HAVING count(*) > 0`, nil, &oldest); err != nil {
			return err
		}
		if oldest != 0 {
			st.OldestPendingSeconds = max(0, float64(now-oldest)/1000)
		}
		var last Time
		if ok, err := one(q, `SELECT received_at FROM events WHERE via = 'webhook' ORDER BY id DESC LIMIT 1`, nil, &last); err != nil {
			return err
		} else if ok {
			st.LastWebhookAt = &last
		}
		var reconciled Time
		if ok, err := one(q, `SELECT finished_at FROM runs WHERE state = 'done' ORDER BY id DESC LIMIT 1`, nil, &reconciled); err != nil {
			return err
		} else if ok {
			st.LastReconcile = &reconciled
		}
		if st.AckMS, err = percentiles(q, timingAck, now); err != nil {
			return err
		}
		st.ReceiptToDoneMS, err = percentiles(q, timingDone, now)
		return err
	})
	if err != nil {
		return Stats{}, fmt.Errorf("stats: %w", err)
	}
	return st, nil
}

// readiness remembers the last probe, so that asking often writes seldom. Its
// turn is a channel and not a mutex: who cannot wait need not.
type readiness struct {
	turn chan struct{}
	at   time.Time
	err  error
}

// fullFor is how long a disk that had no room for an event counts as full, if
// no event is stored meanwhile. Senders try again all the time.
const fullFor = 30 * time.Second

func newReadiness() readiness { return readiness{turn: make(chan struct{}, 1)} }

// Ready says whether a write reaches the disk, by making one, at most once a
// second. A ctx that ends first is an answer too: not now.
func (s *Store) Ready(ctx context.Context) error {
	select {
	case s.ready.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("readiness: %w", errUnavailable)
	}
	defer func() { <-s.ready.turn }()
	now := s.opt.Now()
	if since := now.Sub(s.ready.at); !s.ready.at.IsZero() && since >= 0 && since < time.Second {
		return s.ready.err
	}
	err := s.w.write(ctx, "readiness", func(t *Tx) error {
		_, err := t.exec(`INSERT INTO meta (key, value) VALUES ('ready_at', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
			t.now.String())
		return err
	})
	if full := s.w.fullAt.Load(); err == nil && full != 0 && int64(At(now))-full < fullFor.Milliseconds() {
		// The probe is one small row, and there may be room for that.
		err = fmt.Errorf("readiness: the disk had no room for an event: %w", errUnavailable)
	}
	if err == nil || ctx.Err() == nil { // one who could not wait knows nothing
		s.ready.at, s.ready.err = s.opt.Now(), err
	}
	return err
}
