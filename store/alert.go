package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of alerts. An [[effect]] asks for one as "alert.NAME", or for all
// of them as "alert.*".
const (
	AlertQuarantined  = "quarantined"   // events that are quarantined
	AlertUnlinked     = "unlinked"      // watched money that no order has claimed for a day
	AlertEffectFailed = "effect_failed" // effects that were refused or given up, and nobody has looked at
	AlertEffectStuck  = "effect_stuck"  // effects that fail again and again, or hold up their lane
	AlertPending      = "pending"       // the inbox is not worked on
	AlertOversold     = "oversold"      // orders that took more than there was
	AlertDispute      = "dispute"       // disputes that must be answered
	AlertRejects      = "rejects"       // deliveries of a source are refused, one after the other
	AlertUndelivered  = "undelivered"   // events that Stripe has and no webhook brought
	AlertSilence      = "silence"       // no webhook for a day, while Stripe has events
	AlertEndpoint     = "endpoint"      // the webhook endpoint is not configured as it must be
	AlertClock        = "clock"         // this machine's clock is off
	AlertReconcile    = "reconcile"     // Stripe could not be asked for an hour
	AlertBackup       = "backup_failed" // the scheduled backup failed
	AlertDiskFull     = "disk_full"     // webhooks are refused, since there is no room
	AlertWAL          = "wal"           // the -wal file grows, since somebody holds a snapshot
)

const (
	// alertPause is the least between two messages about the same alert, so
	// that a storm is one message. Only an end is told at once.
	alertPause = 5 * time.Minute
	// alertUnlinkedAfter is how long money may be unlinked before it is told
	// of (design.md §4). It is told of once.
	alertUnlinkedAfter = 24 * time.Hour
	// alertLaneHeld is how long an effect may hold its lane (design.md §6).
	alertLaneHeld = time.Hour
	// alertRejectsInARow is how many refusals in a row are no accident.
	alertRejectsInARow = 5
	// alertItems is how many things a message shows.
	alertItems = 10
	// alertWindow is how many of the newest things are known one by one. Of
	// more, only the number is known.
	alertWindow = 200
	// alertScan bounds what one question reads, whatever lies open: a check
	// costs milliseconds on a bad day too. What lies beyond it is counted where
	// a counter is kept, and else seen when the rows before it are gone.
	alertScan = 10_000
)

// AlertRules are what decides whether and when people are told.
type AlertRules struct {
	Pending time.Duration // an event that is pending for longer is an alert; 0 is off
	Remind  time.Duration // how often an alert that lasts is told again; 0 is never
	Rejects RejectsSeen   // what the public listener has refused of late
}

// RejectsSeen is what the public listener knows of refused deliveries. It is
// kept in memory: a process that has just begun knows nothing.
type RejectsSeen struct {
	Source     string // the source with the longest row
	InARow     int    // its refused deliveries since it last had one accepted
	LastAt     Time   // of the last refusal
	LastReason string // in our own words
	AcceptedAt Time   // when a delivery of any source was last accepted; 0 is not since the process began
}

// condition is something that people are told about.
type condition struct {
	name string
	// lasting: it is one thing that goes on, such as a backlog. That there is
	// more of it is no news.
	lasting bool
	once    bool // no reminders
	find    func(s *Store, q querier, now Time, rules AlertRules) (finding, error)
	items   func(s *Store, q querier, things []thing) ([]AlertItem, error)
	tell    func(f finding) words
	over    string // what is true when it has ended
}

// conditions are in the sequence in which they are told of.
func conditions() []condition {
	return []condition{
		{name: AlertQuarantined, find: (*Store).findQuarantined, items: eventItems(quarantinedText), tell: tellQuarantined,
			over: "no event is quarantined any more"},
		{name: AlertUnlinked, once: true, find: (*Store).findUnlinked, items: eventItems(unlinkedText), tell: tellUnlinked,
			over: "no money is unlinked for more than a day any more"},
		{name: AlertEffectFailed, find: (*Store).findFailedEffects, items: effectItems(failedText), tell: tellFailedEffects,
			over: "no failed effect waits for a person any more"},
		{name: AlertEffectStuck, find: (*Store).findStuckEffects, items: effectItems(stuckText), tell: tellStuckEffects,
			over: "no effect is stuck any more"},
		{name: AlertPending, lasting: true, find: (*Store).findPending, items: eventItems(pendingText), tell: tellPending,
			over: "events are worked on in time again"},
		{name: AlertOversold, find: findAttention(attentionOversold), items: oversoldItems, tell: tellOversold,
			over: "no order is oversold any more"},
		{name: AlertDispute, find: findAttention(attentionDispute), items: disputeItems, tell: tellDisputes,
			over: "no dispute waits for an answer any more"},
		{name: AlertRejects, lasting: true, find: findRejects, items: rejectItems, tell: tellRejects,
			over: "deliveries are accepted again"},
		{name: AlertUndelivered, find: findUndelivered, items: eventItems(undeliveredText), tell: tellUndelivered,
			over: "webhooks have brought all events of the last day"},
		{name: AlertSilence, lasting: true, find: findSilence, items: findingItems, tell: tellSilence,
			over: "webhooks come again, or Stripe has none to send"},
		{name: AlertEndpoint, find: findFindings(AlertEndpoint), items: findingItems, tell: tellEndpoint,
			over: "the webhook endpoint is as it must be again"},
		{name: AlertClock, lasting: true, find: findFindings(AlertClock), items: findingItems, tell: tellClock,
			over: "the clocks agree again"},
		{name: AlertReconcile, lasting: true, find: findFindings(AlertReconcile), items: findingItems, tell: tellReconcile,
			over: "Stripe answers again, and events that were missed are found"},
		{name: AlertBackup, lasting: true, find: findFindings(AlertBackup), items: findingItems, tell: tellBackup,
			over: "the scheduled backup is made again"},
		{name: AlertDiskFull, lasting: true, find: findDiskFull, items: findingItems, tell: tellDiskFull,
			over: "there is room on the disk again"},
		{name: AlertWAL, lasting: true, find: findFindings(AlertWAL), items: findingItems, tell: tellWAL,
			over: "the -wal file is small again"},
	}
}

// finding is how a condition stands.
type finding struct {
	unknown bool // nobody can tell now: what was told stands
	count   int64
	things  []thing // the newest first, at most alertWindow
}

// thing is one of what a condition is about.
type thing struct {
	row    int64
	mark   string // together with row: the same thing, or one that came again
	detail string // our words on it, for the item
	tenant string // of an order
	at     Time   // what that means is the condition's
}

func (t thing) key() string { return strconv.FormatInt(t.row, 10) + "/" + t.mark }

// alertState is what people have been told: a row of alerts.
type alertState struct {
	firing bool
	seq    int64 // messages so far
	since  Time
	toldAt Time
	count  int64
	known  []string // keys of the newest things, the newest first
}

// CheckAlerts looks at every condition and queues what has to be told: that
// one begins ("firing"), that there is more of it (again "firing"), that it
// lasts ("reminder") and that it has ended ("resolved"). The message and the
// note that it was told commit together, so that a crash neither loses nor
// doubles one. The result is what was told now, also where no [[effect]] wants
// to hear of it. An alert's own effects never cause an alert.
//
// A check that finds nothing to tell writes nothing. If one condition cannot be
// looked at, the others are, and the error says which.
func (s *Store) CheckAlerts(ctx context.Context, rules AlertRules) (told []Alert, err error) {
	now := At(s.opt.Now())
	var due []condition
	var failed []error
	err = s.read(ctx, func(q querier) error {
		states, err := alertStates(q)
		if err != nil {
			return err
		}
		for _, c := range conditions() {
			f, err := c.find(s, q, now, rules)
			if err != nil {
				failed = append(failed, fmt.Errorf("look for alert %s: %w", c.name, err))
				continue
			}
			if step, rest := states[c.name].next(c, f, rules, now); step != "" || rest {
				due = append(due, c)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("check alerts: %w", err)
	}
	if len(due) > 0 {
		tell := func() error {
			return s.w.write(ctx, "tell of alerts", func(t *Tx) error {
				told = nil
				return s.tellAlerts(t, due, rules, &told)
			})
		}
		if err = tell(); err != nil && s.w.fullAt.Load() != 0 && s.spare.release() {
			s.log.Warn("store: the disk is full; the reserve is let go of, for alerts alone")
			err = tell()
		}
		if err != nil {
			told = nil
			failed = append(failed, err)
		}
	}
	return told, errors.Join(failed...)
}

// tellAlerts looks once more, since the snapshot is a moment old, and tells.
func (s *Store) tellAlerts(t *Tx, due []condition, rules AlertRules, told *[]Alert) error {
	states, err := alertStates(t)
	if err != nil {
		return err
	}
	for _, c := range due {
		f, err := c.find(s, t, t.now, rules)
		if err != nil {
			return fmt.Errorf("look for alert %s: %w", c.name, err)
		}
		state := states[c.name]
		switch step, rest := state.next(c, f, rules, t.now); {
		case step != "":
			a, err := s.tellAlert(t, c, &state, step, f)
			if err != nil {
				return fmt.Errorf("tell of alert %s: %w", c.name, err)
			}
			*told = append(*told, a)
		case rest:
			state.forget(f)
		default:
			continue
		}
		if err := state.save(t, c.name); err != nil {
			return err
		}
	}
	return nil
}

// next is what has to be told now, if anything; rest says that something has
// gone, and should be news when it comes back.
func (a alertState) next(c condition, f finding, rules AlertRules, now Time) (step string, rest bool) {
	// A told_at in the future is a clock that was set back: it holds nothing up.
	passed := func(d time.Duration) bool {
		return a.seq == 0 || now < a.toldAt || now-a.toldAt >= Time(d.Milliseconds())
	}
	switch {
	case f.unknown:
	case f.count == 0 && a.firing:
		return "resolved", false
	case f.count == 0:
	case !a.firing && passed(alertPause):
		return "firing", false
	case !a.firing:
	case !c.lasting && a.more(f) && passed(alertPause):
		return "firing", false
	case !c.once && rules.Remind > 0 && passed(rules.Remind):
		return "reminder", false
	default:
		return "", !c.lasting && a.less(f)
	}
	return "", false
}

// more reports whether f has something that nobody was told of.
func (a alertState) more(f finding) bool {
	if f.count > a.count {
		return true
	}
	known := a.knownSet()
	for _, t := range f.things {
		if !known[t.key()] && a.wouldKnow(t.row) {
			return true
		}
	}
	return false
}

// wouldKnow reports whether a thing of that row, had it been there when people
// were last told, would be among the known ones.
func (a alertState) wouldKnow(row int64) bool {
	return len(a.known) < alertWindow || row > rowOfKey(a.known[len(a.known)-1])
}

// less reports whether something is gone.
func (a alertState) less(f finding) bool {
	after := a
	after.forget(f)
	return after.count != a.count || len(after.known) != len(a.known)
}

// forget lets go of what is gone.
func (a *alertState) forget(f finding) {
	there := map[string]bool{}
	last := int64(0)
	for _, t := range f.things {
		there[t.key()] = true
		last = t.row
	}
	a.count = min(a.count, f.count)
	a.known = slices.DeleteFunc(slices.Clone(a.known), func(k string) bool {
		return !there[k] && (len(f.things) < alertWindow || rowOfKey(k) > last)
	})
}

func (a alertState) knownSet() map[string]bool {
	set := make(map[string]bool, len(a.known))
	for _, k := range a.known {
		set[k] = true
	}
	return set
}

func rowOfKey(key string) int64 {
	digits, _, _ := strings.Cut(key, "/")
	row, _ := strconv.ParseInt(digits, 10, 64) // we wrote it
	return row
}

// tellAlert makes the message, queues it for whoever wants it, and notes in a
// that it was told.
func (s *Store) tellAlert(t *Tx, c condition, a *alertState, step string, f finding) (Alert, error) {
	began := a.since
	if !a.firing {
		began = t.now
	}
	m := Alert{Name: c.name, State: step, Since: began, Count: f.count, Items: []AlertItem{}}
	if step == "resolved" {
		m.Summary = sentence(c.over + "; it was an alert for " + (time.Duration(t.now-began) * time.Millisecond).Round(time.Second).String())
		m.Next, m.Command = "Nothing more: this alert is over.", "paidonce stats"
	} else {
		items, err := c.items(s, t, f.things[:min(len(f.things), alertItems)])
		if err != nil {
			return Alert{}, err
		}
		m.Items = append(m.Items, items...)
		w := c.tell(f)
		summary := w.summary
		if step == "reminder" {
			summary += "; it has been so since " + began.String()
		}
		m.Summary, m.Next, m.Command = sentence(summary), w.next, w.command(m)
	}
	a.seq++
	a.toldAt, a.count, a.since, a.firing = t.now, f.count, began, step != "resolved"
	if !a.firing {
		a.since = t.now
	}
	a.known = []string{}
	if !c.lasting {
		for _, th := range f.things {
			a.known = append(a.known, th.key())
		}
	}
	if s.opt.Compose == nil {
		return m, nil
	}
	// What is told now is neither historic nor late, whatever the clock says.
	o := Occasion{Operation: fmt.Sprintf("alert.%s:%d", c.name, a.seq), OccurredAt: max(t.now, s.installed), Alert: &m}
	_, _, err := s.fanOut(t, o, newEffect{tenant: mainTenant, subject: alertSubject + c.name})
	return m, err
}

// alertSubject begins the subject of an alert's effects.
const alertSubject = "alert:"

func alertStates(q querier) (map[string]alertState, error) {
	type named struct {
		name string
		alertState
	}
	rows, err := q.query(`SELECT name, firing, seq, since, told_at, count, newest FROM alerts`)
	all, err := collect(rows, err, func(r *sql.Rows, a *named) error {
		var newest []byte
		if err := r.Scan(&a.name, &a.firing, &a.seq, &a.since, &a.toldAt, &a.count, &newest); err != nil {
			return err
		}
		if json.Unmarshal(newest, &a.known) != nil {
			a.known = nil // then all of it is news: better twice than never
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the alerts: %w", err)
	}
	states := make(map[string]alertState, len(all))
	for _, a := range all {
		states[a.name] = a.alertState
	}
	return states, nil
}

func (a alertState) save(t *Tx, name string) error {
	_, err := t.exec(`
		INSERT INTO alerts (name, firing, seq, since, told_at, count, newest) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET firing = excluded.firing, seq = excluded.seq, since = excluded.since,
			told_at = excluded.told_at, count = excluded.count, newest = excluded.newest`,
		name, a.firing, a.seq, a.since, a.toldAt, a.count, jsonText(append([]string{}, a.known...)))
	if err != nil {
		return fmt.Errorf("save alert %s: %w", name, err)
	}
	return nil
}
