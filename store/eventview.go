package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const eventColumns = `e.id, e.source_scope, e.event_id, e.source, e.via, e.type, e.status, e.verdict, e.reason, e.last_error,
	e.attempts, e.deliveries, CASE WHEN e.status = 'pending' THEN e.due_at ELSE 0 END, e.occurred_at, e.received_at,
	coalesce(e.done_at, 0), coalesce(o.order_id, ''), e.api_version, e.watched`

const eventTables = ` FROM events e LEFT JOIN orders o ON o.id = e.order_id `

// scopesCTE lists the scopes by hopping through the UNIQUE index: a handful of
// steps at any number of events.
const scopesCTE = `WITH RECURSIVE scopes (scope) AS (
	SELECT min(source_scope) FROM events
	UNION ALL
	SELECT (SELECT min(source_scope) FROM events WHERE source_scope > scope) FROM scopes WHERE scope IS NOT NULL) `

type eventView struct {
	Event
	row     int64
	watched bool
}

func scanEvent(rows *sql.Rows, e *eventView) error {
	return rows.Scan(&e.row, &e.Scope, &e.ID, &e.Source, &e.Via, &e.Type, &e.Status, &e.Verdict, &e.Reason, &e.LastError,
		&e.Attempts, &e.Deliveries, &e.NextAttemptAt, &e.OccurredAt, &e.ReceivedAt, &e.DoneAt, &e.Order, &e.APIVersion, &e.watched)
}

// findEvent finds one event. Without a scope, an id that stands in several is
// CodeAmbiguous.
func findEvent(q querier, scope, id string) (eventView, error) {
	query, args := `SELECT `+eventColumns+eventTables+`WHERE e.event_id = ? AND e.source_scope = ?`, []any{id, scope}
	if scope == "" {
		query, args = scopesCTE+`SELECT `+eventColumns+eventTables+`WHERE e.event_id = ? AND e.source_scope IN scopes LIMIT 2`, []any{id}
	}
	rows, err := q.query(query, args...)
	found, err := collect(rows, err, scanEvent)
	switch {
	case err != nil:
		return eventView{}, fmt.Errorf("find event %s: %w", id, err)
	case len(found) == 0:
		return eventView{}, problem(CodeNotFound, "no event %s", id)
	case len(found) > 1:
		return eventView{}, problem(CodeAmbiguous, "event %s stands in several scopes: name one, such as %s", id, found[0].Scope)
	}
	return found[0], nil
}

// FindEvent returns an event with its payload, as it came.
func (s *Store) FindEvent(ctx context.Context, scope, id string) (Event, error) {
	var e eventView
	err := s.read(ctx, func(q querier) error {
		var err error
		if e, err = findEvent(q, scope, id); err != nil {
			return err
		}
		var body []byte
		ok, err := one(q, `SELECT body FROM payloads WHERE event = ?`, []any{e.row}, &body)
		if err != nil {
			return fmt.Errorf("payload of %s: %w", id, err)
		}
		if ok {
			e.setPayload(body)
		}
		return nil
	})
	return e.Event, err
}

func (e *Event) setPayload(body []byte) {
	if json.Valid(body) && utf8.Valid(body) {
		e.Payload = body
		return
	}
	e.Payload, e.PayloadEncoding = json.RawMessage(`"`+base64.StdEncoding.EncodeToString(body)+`"`), "base64"
}

// ListEvents returns a page of events, the newest received first.
func (s *Store) ListEvents(ctx context.Context, f EventFilter) (Page[Event], error) {
	limit, before, err := paging(f.Limit, f.Cursor)
	if err != nil {
		return Page[Event]{}, err
	}
	where, args := []string{"e.id < ?"}, []any{before}
	for _, c := range []struct{ column, value string }{
		{"e.status", f.Status}, {"e.verdict", f.Verdict}, {"e.type", f.Type}, {"e.source", f.Source},
	} {
		if c.value != "" {
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	if narrow := f.narrow(); narrow != "" {
		where = append(where, narrow)
	}
	page := Page[Event]{Items: []Event{}}
	err = s.read(ctx, func(q querier) error {
		if f.Order != "" {
			tenant := f.Tenant
			if tenant == "" {
				tenant = mainTenant
			}
			row, err := findOrderRow(q, tenant, f.Order)
			if err != nil {
				return err
			}
			where, args = append(where, "e.order_id = ?"), append(args, row)
		}
		if f.Source != "" {
			// Most events are Stripe's, and have no index for this: it would cost
			// each accept, for a list that ends after a page anyway.
			var scope string
			if _, err := one(q, `SELECT value FROM meta WHERE key = 'scope:' || ?`, []any{f.Source}, &scope); err != nil {
				return err
			}
			if !strings.HasPrefix(scope, "stripe:") {
				where = append(where, "e.source_scope NOT GLOB 'stripe:*'")
			}
		}
		rows, err := q.query(`SELECT `+eventColumns+eventTables+`WHERE `+strings.Join(where, " AND ")+` ORDER BY e.id DESC LIMIT ?`, append(args, limit+1)...)
		found, err := collect(rows, err, scanEvent)
		if err != nil {
			return fmt.Errorf("list events: %w", err)
		}
		if len(found) > limit {
			found = found[:limit]
			page.NextCursor = cursor(found[limit-1].row)
		}
		for _, e := range found {
			page.Items = append(page.Items, e.Event)
		}
		return nil
	})
	return page, err
}

// narrow says once more what the filter says, in the words of a partial index,
// so that SQLite takes that and does not read all that is done.
func (f EventFilter) narrow() string {
	switch {
	case f.Order != "":
		return "" // an order has few events
	case f.Status == "pending":
		return `e.id IN (SELECT id FROM events INDEXED BY events_due WHERE status = 'pending')`
	case f.Status == "quarantined":
		return `e.id IN (SELECT id FROM events INDEXED BY events_open WHERE ` + openVerdicts + ` AND verdict <> 'unlinked')`
	case slices.Contains([]string{"ignored", "routed", "stale", "duplicate"}, f.Verdict):
		return `e.verdict IN ('ignored', 'routed', 'stale', 'duplicate')`
	case f.Verdict != "" && f.Verdict != "applied":
		return strings.ReplaceAll(openVerdicts, "verdict", "e.verdict")
	}
	return ""
}

// RequeueEvent makes an event run again under today's rules, whatever its
// status. Without its payload there is nothing to run: CodePayloadGone.
func (s *Store) RequeueEvent(ctx context.Context, scope, id string) (Event, error) {
	return s.actOnEvent(ctx, "requeue", scope, id, "", func(t *Tx, e eventView) error {
		ok, err := one(t, `SELECT 1 FROM payloads WHERE event = ?`, []any{e.row}, new(int))
		if err != nil {
			return err
		}
		if !ok {
			return problem(CodePayloadGone, "the payload of %s was purged: its facts stand, and there is nothing to run again", id)
		}
		// The lease is raised, so that a worker that has the row in hand lets go of it.
		if _, err := t.exec(`
			UPDATE events SET status = 'pending', verdict = 'new', reason = '', attempts = 0, failures = 0, lease = lease + 1,
				claim = '', suspect = 0, watched = 0, due_at = ?, done_at = NULL
			WHERE id = ?`, t.now, e.row); err != nil {
			return fmt.Errorf("requeue %s: %w", id, err)
		}
		t.count(e.Status, e.Verdict, -1)
		t.count("pending", "new", 1)
		t.watch(e.watched, false)
		return nil
	})
}

// DismissEvent ends an unlinked or quarantined event by a person's word. Its
// fact stays, and so does its money in suspense.
func (s *Store) DismissEvent(ctx context.Context, scope, id, note string) (Event, error) {
	var bad problems
	checkNote(&bad, note)
	if err := bad.invalid("request"); err != nil {
		return Event{}, err
	}
	return s.actOnEvent(ctx, "dismiss", scope, id, note, func(t *Tx, e eventView) error {
		if e.Status != "quarantined" && e.Verdict != "unlinked" {
			return problem(CodeNotDismissible, "event %s is %s, %s: only unlinked and quarantined events can be dismissed", id, e.Status, e.Verdict)
		}
		reason := "dismissed, was " + e.Verdict
		if note != "" {
			reason += ": " + note
		}
		if _, err := t.exec(`UPDATE events SET status = 'done', verdict = 'ignored', reason = ?, watched = 0, done_at = ? WHERE id = ?`, reason, t.now, e.row); err != nil {
			return fmt.Errorf("dismiss %s: %w", id, err)
		}
		t.count(e.Status, e.Verdict, -1)
		t.count("done", "ignored", 1)
		t.watch(e.watched, false)
		return nil
	})
}

// actOnEvent runs a person's act on an event and writes it down.
func (s *Store) actOnEvent(ctx context.Context, act, scope, id, note string, fn func(*Tx, eventView) error) (Event, error) {
	var after eventView
	err := s.w.write(ctx, act+" event "+id, func(t *Tx) error {
		e, err := findEvent(t, scope, id)
		if err != nil {
			return err
		}
		if err := fn(t, e); err != nil {
			return err
		}
		var order int64
		if _, err := one(t, `SELECT coalesce(order_id, 0) FROM events WHERE id = ?`, []any{e.row}, &order); err != nil {
			return err
		}
		if err := s.act(t, act, order, e.row, e.ID, note); err != nil {
			return err
		}
		after, err = findEvent(t, e.Scope, id)
		return err
	})
	if err != nil {
		return Event{}, err
	}
	return after.Event, nil
}
