package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// A purge has two clocks (design.md §7): payloads and what was sent go some days
// after they are done with; the rows themselves, by which repeats are known,
// facts and books stay for as long as the file does. What waits for a person or
// for work keeps its payload: pending, quarantined, and watched unlinked events,
// failed and held effects.

const (
	// purgeStep is how many rows one write looks at: a few milliseconds.
	purgeStep = 200
	// vacuumStep is how many free pages one write gives back to the disk.
	vacuumStep = 250
)

// PurgePlan is what a purge would let go, and what it keeps although it is old.
type PurgePlan struct {
	Before       Time  `json:"before"` // done before
	Payloads     int64 `json:"payloads"`
	PayloadBytes int64 `json:"payload_bytes"`
	Oldest       Time  `json:"oldest"` // received, of those payloads
	Effects      int64 `json:"effects"`
	EffectBytes  int64 `json:"effect_bytes"`
	Kept         struct {
		Pending     int64 `json:"pending"`
		Quarantined int64 `json:"quarantined"`
		Unlinked    int64 `json:"unlinked"` // watched
		Recent      int64 `json:"recent"`   // received before, but done after
	} `json:"kept"`
	FreeBytes int64 `json:"free_bytes"` // of the file, not used by anything
	Shrinks   bool  `json:"shrinks"`    // the file gives free space back; older files do after a restore of their backup
}

// purgeCursor is the place in a purge, so that no step looks at what the step
// before it kept.
type purgeCursor struct {
	event   int64
	done    bool // with payloads
	effects bool // done with effects
}

// Purge is a purge under way. Its steps are small, so that accepts come between
// them.
type Purge struct {
	s      *Store
	before Time
	at     purgeCursor
	// Payloads and Effects are how many were let go.
	Payloads, Effects int64
}

// BeginPurge begins a purge of what was done before a time.
func (s *Store) BeginPurge(before Time) *Purge { return &Purge{s: s, before: before} }

// Step does one small step and reports whether there is more to do.
func (p *Purge) Step(ctx context.Context) (more bool, err error) {
	switch {
	case !p.at.done:
		return true, p.payloads(ctx)
	case !p.at.effects:
		return true, p.effects(ctx)
	}
	return p.s.giveBack(ctx)
}

type purgeRow struct {
	event, bytes int64
	received     Time
	done         Time
	status       string
	watched      bool
}

const purgeRows = `
	SELECT p.event, length(p.body), e.received_at, coalesce(e.done_at, 0), e.status, e.watched
	FROM payloads p JOIN events e ON e.id = p.event WHERE p.event > ? ORDER BY p.event LIMIT ?`

func scanPurgeRow(r *sql.Rows, x *purgeRow) error {
	return r.Scan(&x.event, &x.bytes, &x.received, &x.done, &x.status, &x.watched)
}

// old reports whether the payload is to go.
func (x purgeRow) old(before Time, watch bool) bool {
	return x.status == "done" && x.done < before && !(x.watched && watch)
}

// payloads lets go of the payloads of one page of events. Events stand in the
// sequence in which they were received, and none is done before that: the first
// that was received too late ends it.
func (p *Purge) payloads(ctx context.Context) error {
	watch := p.s.opt.Unlinked != "ignore"
	var gone int64
	next := p.at
	err := p.s.w.write(ctx, "purge payloads", func(t *Tx) error {
		gone, next = 0, p.at
		rows, err := t.query(purgeRows, p.at.event, purgeStep)
		page, err := collect(rows, err, scanPurgeRow)
		if err != nil {
			return err
		}
		next.done = len(page) < purgeStep
		for _, x := range page {
			if x.received >= p.before {
				next.done = true
				break
			}
			next.event = x.event
			if !x.old(p.before, watch) {
				continue
			}
			if _, err := t.exec(`DELETE FROM payloads WHERE event = ?`, x.event); err != nil {
				return err
			}
			gone++
		}
		return nil
	})
	if err == nil {
		p.at, p.Payloads = next, p.Payloads+gone
	}
	return err
}

const effectsToPurge = `FROM effects INDEXED BY effects_purge
	WHERE status IN ('done', 'canceled') AND length(body) > 0 AND done_at < ?`

// effects lets go of what was sent, and of what came back.
func (p *Purge) effects(ctx context.Context) error {
	var gone int64
	err := p.s.w.write(ctx, "purge effects", func(t *Tx) error {
		rows, err := t.query(`SELECT id `+effectsToPurge+` ORDER BY done_at LIMIT ?`, p.before, purgeStep)
		ids, err := collect(rows, err, func(r *sql.Rows, id *int64) error { return r.Scan(id) })
		if err != nil {
			return err
		}
		gone = int64(len(ids))
		for _, id := range ids {
			if _, err := t.exec(`UPDATE effects SET body = x'' WHERE id = ?`, id); err != nil {
				return err
			}
			if _, err := t.exec(`UPDATE effect_attempts SET answer = NULL WHERE effect = ?`, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		p.Effects += gone
		p.at.effects = gone < purgeStep
	}
	return err
}

// giveBack returns some free pages to the disk, if the file was made for that.
func (s *Store) giveBack(ctx context.Context) (more bool, err error) {
	free, shrinks, _, err := s.freePages(ctx)
	if err != nil || !shrinks || free == 0 {
		return false, err
	}
	err = s.w.write(ctx, "give space back", func(t *Tx) error {
		rows, err := t.query(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumStep))
		_, err = collect(rows, err, func(*sql.Rows, *struct{}) error { return nil })
		t.wrote = true
		return err
	})
	return err == nil && free > vacuumStep, err
}

func (s *Store) freePages(ctx context.Context) (free int64, shrinks bool, pageSize int64, err error) {
	err = s.read(ctx, func(q querier) error {
		var mode int64
		_, err := one(q, `SELECT (SELECT freelist_count FROM pragma_freelist_count), (SELECT auto_vacuum FROM pragma_auto_vacuum),
			(SELECT page_size FROM pragma_page_size)`, nil, &free, &mode, &pageSize)
		shrinks = mode == 2
		return err
	})
	return free, shrinks, pageSize, err
}

// PlanPurge says what a purge of what was done before a time would do, and
// writes nothing. It reads page by page, so that no snapshot stays open.
func (s *Store) PlanPurge(ctx context.Context, before Time) (PurgePlan, error) {
	p := PurgePlan{Before: before}
	watch := s.opt.Unlinked != "ignore"
	for after, done := int64(0), false; !done; {
		err := s.read(ctx, func(q querier) error {
			rows, err := q.query(purgeRows, after, purgeStep*10)
			page, err := collect(rows, err, scanPurgeRow)
			done = len(page) < purgeStep*10
			for _, x := range page {
				after = x.event
				switch {
				case x.received >= before:
					done = true
					return err
				case x.old(before, watch):
					p.Payloads, p.PayloadBytes = p.Payloads+1, p.PayloadBytes+x.bytes
					if p.Oldest == 0 {
						p.Oldest = x.received
					}
				case x.status == "pending":
					p.Kept.Pending++
				case x.status == "quarantined":
					p.Kept.Quarantined++
				case x.watched && watch:
					p.Kept.Unlinked++
				default:
					p.Kept.Recent++
				}
			}
			return err
		})
		if err != nil {
			return p, fmt.Errorf("plan a purge: %w", err)
		}
	}
	err := s.read(ctx, func(q querier) error {
		_, err := one(q, `SELECT count(*), coalesce(sum(length(body)), 0) `+effectsToPurge, []any{before}, &p.Effects, &p.EffectBytes)
		return err
	})
	if err != nil {
		return p, fmt.Errorf("plan a purge: %w", err)
	}
	free, shrinks, size, err := s.freePages(ctx)
	p.FreeBytes, p.Shrinks = free*size, shrinks
	return p, err
}

// PurgeBefore is the time before which a payload of so many days is old.
func PurgeBefore(now time.Time, days int64) Time {
	return At(now.AddDate(0, 0, -int(days)))
}
