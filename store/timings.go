package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"sync"
	"time"
)

// What is timed: how long a webhook's answer took, and how long an event took
// from receipt to done.
const (
	timingAck  = "ack"
	timingDone = "receipt_to_done"
)

// growth is the ratio of neighbouring buckets: a percentile is read off with an
// error of at most 10 %.
const growth = 1.1

// timings gathers in memory what flushTimings adds to the file, so that an
// accept pays for a map and not for a row.
type timings struct {
	mu   sync.Mutex
	rows map[timingKey]*timingRow
}

type timingKey struct {
	kind   string
	bucket int64
}

type timingRow struct{ n, maxUS int64 }

func newTimings() *timings { return &timings{rows: map[timingKey]*timingRow{}} }

// bucketOf numbers the bucket whose upper bound is growth^n microseconds.
func bucketOf(us int64) int64 {
	if us <= 1 {
		return 0
	}
	return int64(math.Ceil(math.Log(float64(us)) / math.Log(growth)))
}

func (tm *timings) observe(kind string, d time.Duration) {
	us := max(d.Microseconds(), 0)
	key := timingKey{kind, bucketOf(us)}
	tm.mu.Lock()
	defer tm.mu.Unlock()
	r := tm.rows[key]
	if r == nil {
		r = &timingRow{}
		tm.rows[key] = r
	}
	r.n++
	r.maxUS = max(r.maxUS, us)
}

func (tm *timings) take() map[timingKey]*timingRow {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	rows := tm.rows
	tm.rows = map[timingKey]*timingRow{}
	return rows
}

// ObserveAck notes how long the answer to a stored webhook took.
func (s *Store) ObserveAck(d time.Duration) { s.times.observe(timingAck, d) }

// FlushTimings adds what was observed since the last call to the file. main
// calls it every few seconds; what a crash loses is a few seconds of figures.
func (s *Store) FlushTimings(ctx context.Context) error { return s.flushTimings(ctx) }

func (s *Store) flushTimings(ctx context.Context) error {
	rows := s.times.take()
	if len(rows) == 0 {
		return nil
	}
	return s.w.write(ctx, "flush timings", func(t *Tx) error {
		minute := t.now - t.now%60_000
		for k, r := range rows {
			if _, err := t.exec(`
				INSERT INTO timings (kind, minute, bucket, n, max_us) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (kind, minute, bucket) DO UPDATE SET n = n + excluded.n, max_us = max(max_us, excluded.max_us)`,
				k.kind, minute, k.bucket, r.n, r.maxUS); err != nil {
				return err
			}
		}
		// Two days are enough for any page.
		_, err := t.exec(`DELETE FROM timings WHERE kind IN (?, ?) AND minute < ?`, timingAck, timingDone, t.now-48*3600_000)
		return err
	})
}

// percentiles reads the last hour of kind.
func percentiles(q querier, kind string, now Time) (Percentiles, error) {
	type bucket struct{ b, n, maxUS int64 }
	rows, err := q.query(`
		SELECT bucket, sum(n), max(max_us) FROM timings WHERE kind = ? AND minute > ?
		GROUP BY bucket ORDER BY bucket`, kind, now-3600_000)
	all, err := collect(rows, err, func(r *sql.Rows, b *bucket) error { return r.Scan(&b.b, &b.n, &b.maxUS) })
	if err != nil {
		return Percentiles{}, fmt.Errorf("timings: %w", err)
	}
	var total, most int64
	for _, b := range all {
		total += b.n
		most = max(most, b.maxUS)
	}
	at := func(p float64) float64 {
		var seen int64
		for _, b := range all {
			if seen += b.n; float64(seen) >= p*float64(total) {
				return min(math.Pow(growth, float64(b.b)), float64(most))
			}
		}
		return 0
	}
	ms := func(us float64) float64 { return math.Round(us/10) / 100 }
	if total == 0 {
		return Percentiles{}, nil
	}
	return Percentiles{P50: ms(at(.5)), P99: ms(at(.99)), Max: ms(float64(most))}, nil
}
