package handler

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"paidonce/store"
)

// keptRejects is how many refused webhooks are remembered one by one.
const keptRejects = 256

// Reject is a webhook that was refused. Its body was not kept.
type Reject struct {
	At     time.Time `json:"at"`
	Source string    `json:"source"` // "" is none that is configured
	Code   string    `json:"code"`
	Reason string    `json:"reason"`
	Size   int64     `json:"size"` // bytes, as far as known
}

// RejectCount is how often one source's webhooks were refused for one reason
// since the process began. There are few of them, whatever strangers send:
// sources are those that are configured, and reasons are our own words.
type RejectCount struct {
	Source string `json:"source"`
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Rejected is what was refused.
type Rejected struct {
	Counts []RejectCount `json:"counts"` // by source, code and reason
	Recent []Reject      `json:"recent"` // the newest first
}

// Rejects returns what the public listener has refused.
func (h *Handler) Rejects() Rejected { return h.rejects.list() }

// RejectsInARow tells of the configured source that has had the most deliveries
// refused since it last had one accepted, for the alert. What is no delivery (a
// GET, an unknown source) does not count: browsers and strangers do that.
func (h *Handler) RejectsInARow() store.RejectsSeen { return h.rejects.inARow() }

// rejects counts refused webhooks and remembers the latest in a ring. They are
// in memory alone: a stranger must not be able to fill the disk.
type rejects struct {
	mu     sync.Mutex
	counts map[RejectCount]int64 // the key's Count is 0
	ring   []Reject
	next   int

	rows       map[string]store.RejectsSeen // by source, since its last accepted delivery
	acceptedAt store.Time
}

func newRejects() *rejects {
	return &rejects{counts: map[RejectCount]int64{}, rows: map[string]store.RejectsSeen{}}
}

func (r *rejects) add(x Reject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[RejectCount{Source: x.Source, Code: x.Code, Reason: x.Reason}]++
	if x.Source != "" && x.Code != "method_not_allowed" {
		r.rows[x.Source] = store.RejectsSeen{Source: x.Source, InARow: r.rows[x.Source].InARow + 1, LastAt: store.At(x.At), LastReason: x.Reason}
	}
	if len(r.ring) < keptRejects {
		r.ring = append(r.ring, x)
		return
	}
	r.ring[r.next] = x
	r.next = (r.next + 1) % keptRejects
}

// accepted ends the row of a source: a delivery of it was stored, or known.
func (r *rejects) accepted(source string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rows, source)
	r.acceptedAt = store.At(at)
}

func (r *rejects) inARow() store.RejectsSeen {
	r.mu.Lock()
	defer r.mu.Unlock()
	var most store.RejectsSeen
	for _, row := range r.rows {
		if row.InARow > most.InARow || row.InARow == most.InARow && row.Source < most.Source {
			most = row
		}
	}
	most.AcceptedAt = r.acceptedAt
	return most
}

func (r *rejects) list() Rejected {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Rejected{Counts: []RejectCount{}, Recent: []Reject{}}
	for key, n := range r.counts {
		key.Count = n
		out.Counts = append(out.Counts, key)
	}
	slices.SortFunc(out.Counts, func(a, b RejectCount) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Reason, b.Reason))
	})
	out.Recent = append(append(out.Recent, r.ring[r.next:]...), r.ring[:r.next]...)
	slices.Reverse(out.Recent)
	return out
}

// quietTime is how long a line is held back after one of its kind.
const quietTime = time.Minute

// quiet logs what strangers can cause as often as they like: the first of a
// kind at once, then at most one line a minute that says how many there were.
// Kinds are made of our own words and of configured names, so they are few.
type quiet struct {
	log  *slog.Logger
	mu   sync.Mutex
	open map[quietKind]*quietLine
}

type quietKind struct{ what, reason, source string }

// quietLine is what came since the last line of its kind.
type quietLine struct {
	level slog.Level
	attrs []any // of the latest
	times int64
}

func newQuiet(log *slog.Logger) *quiet { return &quiet{log: log, open: map[quietKind]*quietLine{}} }

// say logs a line of the kind (what, reason, source), or counts it for later.
func (q *quiet) say(level slog.Level, what, reason, source string, attrs ...any) {
	kind := quietKind{what, reason, source}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.open[kind]; l != nil {
		l.level, l.attrs = level, attrs
		l.times++
		return
	}
	q.open[kind] = &quietLine{}
	q.line(kind, level, 1, attrs)
	time.AfterFunc(quietTime, func() { q.sum(kind) })
}

// sum logs what was held back, and opens another quiet minute if there was any.
func (q *quiet) sum(kind quietKind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.open[kind]
	if l.times == 0 {
		delete(q.open, kind)
		return
	}
	q.line(kind, l.level, l.times, l.attrs)
	q.open[kind] = &quietLine{}
	time.AfterFunc(quietTime, func() { q.sum(kind) })
}

// line writes, for example, "handler: webhook refused: signature mismatch for
// source stripe (50×)".
func (q *quiet) line(kind quietKind, level slog.Level, times int64, attrs []any) {
	text := "handler: " + kind.what
	if kind.reason != "" {
		text += ": " + kind.reason
	}
	if kind.source != "" {
		text += " for source " + kind.source
		attrs = append([]any{"source", kind.source}, attrs...)
	}
	if times > 1 {
		text += fmt.Sprintf(" (%d×)", times)
	}
	q.log.Log(background, level, text, append(attrs, "times", times)...)
}
