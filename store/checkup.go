package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"paidonce/store/payment"
)

const (
	// refPatience is when an id that was registered with an order is asked for,
	// if nothing has been heard of it.
	refPatience = time.Hour
	// sessionLife is when a Checkout Session of ours is asked for: Stripe
	// expires it after a day.
	sessionLife = 24*time.Hour + 10*time.Minute
	// checkupFirst and checkupMost are the first and the longest wait between
	// two looks at an unfinished object; each wait is twice the one before.
	checkupFirst = time.Hour
	checkupMost  = 24 * time.Hour
	// checkupTries is after how many looks an object that will not move is left
	// alone, about a week: most are checkouts that nobody finished, and what comes
	// of one after all is an event. Refunds and disputes are never left alone.
	checkupTries = 10
	// unlinkedFor is for how long a session is looked for that names an order
	// for unlinked money.
	unlinkedFor = 72 * time.Hour
)

// noteCheckup keeps the list of what should move: an object that is unfinished
// is on it, one that has come to an end is not. Two events that could not be
// ranked put their object on it at once.
func noteCheckup(t *Tx, stored *payment.Fact, merged, seen payment.Fact) error {
	why, due := "", t.now
	switch {
	case stored != nil && payment.Tied(*stored, seen) && !payment.IsFetchID(seen.Rank.Event):
		why = whyTie
	case merged.Unfinished():
		why, due = whyUnfinished, t.now+Time(checkupFirst.Milliseconds())
	}
	var err error
	if why != "" {
		_, err = t.exec(`
			INSERT INTO checkups (object_id, scope, why, due_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (object_id) DO UPDATE SET scope = excluded.scope, why = excluded.why, due_at = excluded.due_at, tries = 0`,
			merged.ID, merged.Scope, why, due)
	} else {
		_, err = t.exec(`DELETE FROM checkups WHERE object_id = ?`, merged.ID)
	}
	if err != nil {
		return fmt.Errorf("checkup of %s: %w", merged.ID, err)
	}
	return nil
}

// expectMoney has an object asked for at due that is tied to an order and was
// never heard of.
func expectMoney(t *Tx, object string, due Time) error {
	if kindOfID(object) == "" {
		return nil // nothing that could be asked for
	}
	_, err := t.exec(`
		INSERT INTO checkups (object_id, scope, why, due_at)
		SELECT ?1, '', ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM facts WHERE object_id = ?1) ON CONFLICT DO NOTHING`, object, whyOrderOpen, due)
	if err != nil {
		return fmt.Errorf("checkup of %s: %w", object, err)
	}
	return nil
}

// kindOfID is what kind of object an id that nothing was heard of names, "" for
// none that is asked for. What has been heard of says itself what it is.
func kindOfID(id string) payment.Kind {
	prefix, _, _ := strings.Cut(id, "_")
	switch prefix {
	case "cs":
		return payment.KindSession
	case "pi":
		return payment.KindPaymentIntent
	case "ch", "py":
		return payment.KindCharge
	case "re", "pyr":
		return payment.KindRefund
	case "dp", "du":
		return payment.KindDispute
	}
	return ""
}

// Checkups are up to limit objects that are due for a look, the longest due
// first; with everything also those that are not due yet.
func (s *Store) Checkups(ctx context.Context, sources []ReconcileSource, everything bool, limit int) ([]Checkup, error) {
	var due []Checkup
	err := s.read(ctx, func(q querier) error {
		now := At(s.opt.Now())
		until := now
		if everything {
			until = 1 << 62
		}
		var err error
		if due, err = dueCheckups(q, sources, until, limit); err != nil || len(due) >= limit || s.opt.Unlinked == "ignore" {
			return err
		}
		more, err := unlinkedCheckups(q, sources, now, until, limit-len(due))
		due = append(due, more...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("choose objects to check: %w", err)
	}
	return due, nil
}

type dueRow struct {
	object, scope, why, tenant string
	kind                       payment.Kind
	version                    int64
}

func dueCheckups(q querier, sources []ReconcileSource, until Time, limit int) ([]Checkup, error) {
	rows, err := q.query(`
		SELECT c.object_id, c.scope, c.why, coalesce(f.kind, ''), coalesce(f.version, 0), coalesce(f.scope, ''), coalesce(o.tenant, '')
		FROM checkups c
		LEFT JOIN facts f ON f.object_id = c.object_id AND (f.scope = c.scope OR c.scope = '')
		LEFT JOIN refs r ON c.scope = '' AND r.object_id = c.object_id LEFT JOIN orders o ON o.id = r.order_id
		WHERE c.due_at <= ? ORDER BY c.due_at LIMIT ?`, until, limit)
	all, err := collect(rows, err, func(r *sql.Rows, d *dueRow) error {
		var known string
		if err := r.Scan(&d.object, &d.scope, &d.why, &d.kind, &d.version, &known, &d.tenant); err != nil {
			return err
		}
		if d.scope == "" {
			d.scope = known
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var due []Checkup
	for _, d := range all {
		if d.kind == "" {
			d.kind = kindOfID(d.object)
		}
		source, ok := sourceOf(sources, d.scope, d.tenant)
		if !ok || d.kind == "" {
			continue // of an account that is not configured now
		}
		due = append(due, Checkup{Source: source, Object: d.object, Kind: d.kind, Version: d.version, Why: d.why})
	}
	return due, nil
}

// sourceOf is where an object is asked for: by its scope, else by the tenant of
// the order that it is tied to, if that leaves no choice.
func sourceOf(sources []ReconcileSource, scope, tenant string) (ReconcileSource, bool) {
	var found []ReconcileSource
	for _, src := range sources {
		if scope != "" && src.Scope == scope || scope == "" && src.Tenant == tenant {
			found = append(found, src)
		}
	}
	if len(found) != 1 {
		return ReconcileSource{}, false
	}
	return found[0], true
}

// unlinkedCheckups are payment intents of watched money whose session nobody
// has told of: it may name the order (stripe.md §3.2).
func unlinkedCheckups(q querier, sources []ReconcileSource, now, until Time, limit int) ([]Checkup, error) {
	rows, err := q.query(`
		SELECT DISTINCT e.source_scope, CASE WHEN f.kind = 'payment_intent' THEN f.object_id ELSE f.payment_intent END AS intent
		FROM events e INDEXED BY events_watched JOIN facts f ON f.object_id = e.object_id AND f.scope = e.source_scope
		WHERE e.watched = 1 AND e.received_at >= ? AND intent IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM facts s WHERE s.payment_intent = intent AND s.scope = e.source_scope AND s.kind = 'session')
			AND NOT EXISTS (SELECT 1 FROM checkups c WHERE c.object_id = intent AND c.due_at > ?)
		LIMIT ?`, now-Time(unlinkedFor.Milliseconds()), until, limit)
	var due []Checkup
	_, err = collect(rows, err, func(r *sql.Rows, c *Checkup) error {
		var scope string
		if err := r.Scan(&scope, &c.Object); err != nil {
			return err
		}
		c.Kind, c.Why = payment.KindPaymentIntent, WhyUnlinked
		var ok bool
		if c.Source, ok = sourceOf(sources, scope, ""); ok {
			due = append(due, *c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range due {
		if err := due[i].findVersion(q); err != nil {
			return nil, err
		}
	}
	return due, nil
}

func (c *Checkup) findVersion(q querier) error {
	_, err := one(q, `SELECT version FROM facts WHERE object_id = ? AND scope = ?`, []any{c.Object, c.Source.Scope}, &c.Version)
	return err
}

// TakeCopy compares a fetched object with what is known of it. One that says
// something new is put into the inbox, as an event of its own, unless the fact
// has changed since the checkup was chosen: then nobody knows which is the
// newer (design.md §5, Merge). run is noted on what differs.
func (s *Store) TakeCopy(ctx context.Context, run int64, c Checkup, o ObjectCopy) (Compared, error) {
	if err := s.roomToTake(); err != nil {
		return "", err
	}
	result := ComparedEqual
	err := s.w.write(ctx, "check "+c.Object, func(t *Tx) error {
		result = ComparedEqual
		if _, err := t.exec(`UPDATE runs SET objects_checked = objects_checked + 1 WHERE id = ?`, run); err != nil {
			return err
		}
		d, e, how, err := compareCopy(t, c, o)
		if err != nil {
			return err
		}
		if result = how; how == ComparedDiffers {
			added, err := addEvent(t, e)
			if err != nil {
				return err
			}
			if added.Duplicate {
				result = ComparedMoved // fetched in this second already, and not worked on yet
			} else {
				// As for what a pass lists: no webhook has brought it.
				if _, err := t.exec(`UPDATE events SET deliveries = 0 WHERE source_scope = ? AND event_id = ?`, e.Scope, e.ID); err != nil {
					return err
				}
				if err := addDifference(t, run, d); err != nil {
					return err
				}
			}
		}
		return checkedUp(t, c)
	})
	return result, err
}

// compareCopy says what a copy adds to what is known, and which event it makes.
func compareCopy(q querier, c Checkup, o ObjectCopy) (Difference, NewEvent, Compared, error) {
	id, eventType, body := payment.Fetched(o.Word, o.ID, c.Source.Account, c.Source.Live, payment.Millis(o.Date), o.Raw)
	ev := payment.Decode(body)
	switch {
	case o.foreign(c.Source):
		return Difference{}, NewEvent{}, "", fmt.Errorf("%s is of the other mode: the key does not fit this shop", o.ID)
	case ev.Verdict != "":
		return Difference{}, NewEvent{}, "", fmt.Errorf("%s cannot be read: %s", o.ID, ev.Reason)
	}
	ev.Fact.Scope = c.Source.Scope
	rows, err := q.query(`SELECT `+factColumns+` FROM facts WHERE object_id = ? AND scope = ?`, o.ID, c.Source.Scope)
	found, err := collect(rows, err, scanFact)
	if err != nil {
		return Difference{}, NewEvent{}, "", err
	}
	d := Difference{Object: o.ID, What: DifferenceObject, Detail: "unknown here, " + ev.Fact.Told() + " at Stripe", Resolved: true}
	if len(found) > 0 {
		known := found[0]
		if known.version != c.Version && o.ID == c.Object {
			return Difference{}, NewEvent{}, ComparedMoved, nil
		}
		if _, change, _ := payment.MergeEvent(&known.fact, ev.Fact); change != payment.Changed {
			return Difference{}, NewEvent{}, ComparedEqual, nil
		}
		if d.Detail = known.fact.Told() + " here, " + ev.Fact.Told() + " at Stripe"; known.fact.Told() == ev.Fact.Told() {
			d.Detail = ev.Fact.Told() + " here and at Stripe, but its numbers or ties differ"
		}
		if d.Order, err = orderIDOf(q, known.order); err != nil {
			return Difference{}, NewEvent{}, "", err
		}
	} else if c.Version != 0 && o.ID == c.Object {
		return Difference{}, NewEvent{}, ComparedMoved, nil
	} else if ev.Fact.Idle() {
		return Difference{}, NewEvent{}, ComparedEqual, nil // a checkout that nobody has begun to pay
	}
	if d.Order == "" {
		if _, err := one(q, `SELECT o.order_id FROM refs r JOIN orders o ON o.id = r.order_id WHERE r.object_id = ?`, []any{o.ID}, &d.Order); err != nil {
			return Difference{}, NewEvent{}, "", err
		}
	}
	return d, NewEvent{
		Scope: c.Source.Scope, ID: id, Source: c.Source.Name, Tenant: c.Source.Tenant, Via: viaReconcile,
		Type: eventType, OccurredAt: o.Date - o.Date%1000, Body: body,
	}, ComparedDiffers, nil
}

const viaReconcile = "reconcile"

// orderIDOf is the id of an order's row; "" for 0.
func orderIDOf(q querier, row int64) (string, error) {
	var id string
	if row == 0 {
		return "", nil
	}
	_, err := one(q, `SELECT order_id FROM orders WHERE id = ?`, []any{row}, &id)
	return id, err
}

// checkedUp puts the next look off, further each time. What the copy has ended
// leaves the list when its event is applied.
func checkedUp(t *Tx, c Checkup) error {
	_, err := t.exec(`
		INSERT INTO checkups (object_id, scope, why, due_at, tries) VALUES (?1, ?2, ?3, ?4 + ?5, 1)
		ON CONFLICT (object_id) DO UPDATE SET tries = tries + 1, due_at = ?4 + min(?5 << min(tries, 6), ?6)`,
		c.Object, c.Source.Scope, c.Why, t.now, checkupFirst.Milliseconds(), checkupMost.Milliseconds())
	if err != nil {
		return err
	}
	keep := slices.Contains([]payment.Kind{payment.KindRefund, payment.KindDispute}, c.Kind)
	_, err = t.exec(`DELETE FROM checkups WHERE object_id = ? AND (why IN (?, ?) OR tries >= ? AND ? = 0)`,
		c.Object, whyTie, whySums, checkupTries, keep)
	return err
}

// CopyGone notes that Stripe does not know an object that an order or a fact
// names.
func (s *Store) CopyGone(ctx context.Context, run int64, c Checkup) error {
	return s.w.write(ctx, "check "+c.Object, func(t *Tx) error {
		if _, err := t.exec(`UPDATE runs SET objects_checked = objects_checked + 1 WHERE id = ?`, run); err != nil {
			return err
		}
		d, err := goneDifference(t, c)
		if err != nil {
			return err
		}
		if err := addDifference(t, run, d); err != nil {
			return err
		}
		return checkedUp(t, c)
	})
}

func goneDifference(q querier, c Checkup) (Difference, error) {
	d := Difference{Object: c.Object, What: DifferenceGone, Detail: "named here, unknown to this key at Stripe"}
	_, err := one(q, `
		SELECT o.order_id FROM orders o WHERE o.id = coalesce(
			(SELECT order_id FROM facts WHERE object_id = ?1 AND scope = ?2), (SELECT order_id FROM refs WHERE object_id = ?1))`,
		[]any{c.Object, c.Source.Scope}, &d.Order)
	return d, err
}
