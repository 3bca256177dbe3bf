package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"paidonce/store/payment"
)

const (
	// leaseTime is how long a claim is good for. Work on an event is a few
	// milliseconds, so an expired lease means a worker that hangs.
	leaseTime = time.Minute
	// maxAttempts that a row is itself to blame for; then a person decides.
	maxAttempts = 10
	// maxErrorText is where foreign error text is cut (P10).
	maxErrorText = 200
)

// AddEvent stores a verified delivery, or counts a repeat of one that is
// stored. When it returns nil, the row and the repeat are on disk (P1, P2). It
// returns errUnavailable, a Problem, when that is not known.
func (s *Store) AddEvent(ctx context.Context, e NewEvent) (Added, error) {
	if e.Body == nil {
		e.Body = []byte{} // an empty body is a body; NULL would be none
	}
	if err := s.roomToTake(); err != nil {
		return Added{}, fmt.Errorf("add event: %w", err)
	}
	var added Added
	err := s.w.writePlain(ctx, "add event", func(t *Tx) error {
		var err error
		added, err = addEvent(t, e)
		return err
	})
	if err != nil {
		return Added{}, err
	}
	if !added.Duplicate {
		s.w.fullAt.Store(0)
	}
	return added, nil
}

func addEvent(t *Tx, e NewEvent) (Added, error) {
	status, verdict, doneAt := "pending", "new", any(nil)
	if e.Ignored != "" {
		status, verdict, doneAt = "done", "ignored", t.now
	}
	row, err := t.insert(`
		INSERT INTO events (source_scope, event_id, body_hash, source, tenant, via, type, api_version,
			status, verdict, reason, due_at, occurred_at, received_at, done_at)
		VALUES (?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, // either UNIQUE: the id, or the body where the id is not signed
		e.Scope, e.ID, e.BodyHash, e.Source, e.Tenant, e.Via, e.Type, e.APIVersion,
		status, verdict, e.Ignored, t.now, e.OccurredAt, t.now, doneAt)
	if err != nil {
		return Added{}, fmt.Errorf("add event %s: %w", e.ID, err)
	}
	if row != 0 {
		if _, err := t.insert(`INSERT INTO payloads (event, body) VALUES (?, ?)`, row, e.Body); err != nil {
			return Added{}, fmt.Errorf("add event %s: %w", e.ID, err)
		}
		t.count(status, verdict, 1)
		t.at("add:stored")
		return Added{ID: e.ID}, nil
	}
	id := e.ID
	known, err := one(t, `
		SELECT id, event_id FROM events WHERE source_scope = ? AND event_id = ?
		UNION ALL
		SELECT id, event_id FROM events WHERE source_scope = ? AND body_hash = nullif(?, '')
		LIMIT 1`, []any{e.Scope, e.ID, e.Scope, e.BodyHash}, &row, &id)
	if err != nil {
		return Added{}, fmt.Errorf("find event %s: %w", e.ID, err)
	}
	if !known {
		return Added{}, fmt.Errorf("event %s conflicts with a row that is not there", e.ID)
	}
	if _, err := t.exec(`UPDATE events SET deliveries = deliveries + 1 WHERE id = ?`, row); err != nil {
		return Added{}, fmt.Errorf("count delivery of %s: %w", e.ID, err)
	}
	return Added{ID: id, Duplicate: true}, nil
}

// Claim is an event that a worker may work on until its lease is taken by
// another claim.
type Claim struct {
	Row                     int64
	Lease                   int64
	Scope, ID, Source, Type string
	Tenant                  string
	OccurredAt, ReceivedAt  Time
	Attempts, Failures      int64
	Merged                  bool // it changed a fact before: this is a requeue
	Suspect                 bool // it was in hand when the process died
	Body                    []byte
	PayloadGone             bool
}

// ClaimEvents takes up to limit due events, oldest first. Rows that were in
// hand when the process died are left to ClaimSuspect.
func (s *Store) ClaimEvents(ctx context.Context, limit int) ([]Claim, error) {
	return s.claim(ctx, "batch", limit)
}

// ClaimSuspect takes one due event that was in hand when the process died. The
// caller works on it alone: if the process dies again, the row is to blame.
func (s *Store) ClaimSuspect(ctx context.Context) ([]Claim, error) {
	return s.claim(ctx, "alone", 1)
}

func (s *Store) claim(ctx context.Context, how string, limit int) ([]Claim, error) {
	// An idle poll must not cost an fsync: look before asking for the lock.
	suspect := how == "alone"
	var due bool
	err := s.read(ctx, func(q querier) error {
		var err error
		due, err = one(q, `SELECT 1 FROM events WHERE status = 'pending' AND suspect = ? AND due_at <= ? LIMIT 1`,
			[]any{suspect, At(s.opt.Now())}, new(int))
		return err
	})
	if err != nil || !due {
		return nil, err
	}
	var claims []Claim
	err = s.w.write(ctx, "claim events", func(t *Tx) error {
		rows, err := t.query(`
			UPDATE events SET lease = lease + 1, claim = ?, due_at = ?
			WHERE id IN (
				SELECT id FROM events WHERE status = 'pending' AND suspect = ? AND due_at <= ?
				ORDER BY due_at, id LIMIT ?)
			RETURNING id, lease, source_scope, event_id, source, type, tenant, occurred_at, received_at,
				attempts, failures, merged, suspect`,
			how, t.now+Time(leaseTime.Milliseconds()), suspect, t.now, limit)
		claims, err = collect(rows, err, func(r *sql.Rows, c *Claim) error {
			return r.Scan(&c.Row, &c.Lease, &c.Scope, &c.ID, &c.Source, &c.Type, &c.Tenant,
				&c.OccurredAt, &c.ReceivedAt, &c.Attempts, &c.Failures, &c.Merged, &c.Suspect)
		})
		t.wrote = true
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(claims, func(a, b Claim) int { return cmp.Compare(a.Row, b.Row) })
	return claims, s.loadBodies(ctx, claims)
}

// loadBodies reads the payloads of claims outside the write transaction.
func (s *Store) loadBodies(ctx context.Context, claims []Claim) error {
	return s.read(ctx, func(q querier) error {
		for i := range claims {
			c := &claims[i]
			ok, err := one(q, `SELECT body FROM payloads WHERE event = ?`, []any{c.Row}, &c.Body)
			if err != nil {
				return fmt.Errorf("read payload of %s: %w", c.ID, err)
			}
			c.PayloadGone = !ok
		}
		return nil
	})
}

// RetryEvent gives c back after a failure, to be tried again later. counted
// says that the row itself is to blame: the tenth such attempt quarantines it.
// It returns ErrLeaseLost, and changes nothing, if c was claimed again.
func (s *Store) RetryEvent(ctx context.Context, c Claim, cause error, counted bool) error {
	return s.w.write(ctx, "retry "+c.ID, func(t *Tx) error {
		if err := retryEvent(t, c, errorText(cause), counted); err != nil {
			return err
		}
		return s.auditDecision(t, c.Row)
	})
}

func retryEvent(t *Tx, c Claim, text string, counted bool) error {
	attempts := c.Attempts
	if counted {
		attempts++
	}
	if attempts >= maxAttempts {
		return finish(t, c, verdict{status: "quarantined", verdict: "too_many_attempts",
			reason:    fmt.Sprintf("failed %d times; look at last_error, then requeue or dismiss it", attempts),
			lastError: text, attempts: attempts})
	}
	var was string
	ok, err := one(t, `SELECT verdict FROM events WHERE id = ? AND lease = ? AND status = 'pending'`, []any{c.Row, c.Lease}, &was)
	if err != nil {
		return err
	}
	if !ok {
		return ErrLeaseLost
	}
	n, err := t.exec(`
		UPDATE events SET claim = '', suspect = 0, verdict = 'retrying', last_error = ?, attempts = ?, failures = failures + 1, due_at = ?
		WHERE id = ? AND lease = ? AND status = 'pending'`,
		text, attempts, t.now+Time(backoff(c.Failures).Milliseconds()), c.Row, c.Lease)
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrLeaseLost
	}
	t.count("pending", was, -1)
	t.count("pending", "retrying", 1)
	return nil
}

// backoff is the wait after the given number of earlier failures: 1 s doubling
// to 1 h, with jitter. It cannot overflow (cases.md B43).
func backoff(failures int64) time.Duration {
	const most = time.Hour
	d := most
	if failures < 12 {
		d = min(time.Second<<max(failures, 0), most)
	}
	return max(jitter(d), 500*time.Millisecond)
}

// errorText is what may be kept of an error: its text up to 200 bytes.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return cut(err.Error())
}

// cut shortens foreign text without splitting a character.
func cut(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	n := maxErrorText
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}

// releaseClaims ends every claim of the process before this one, which is dead
// since we hold the lock. What it had in hand may have killed it: those rows
// run one at a time, and only a row that was alone in hand pays with an attempt.
func (s *Store) releaseClaims(ctx context.Context) error {
	return s.w.write(ctx, "release old claims", func(t *Tx) error {
		rows, err := t.query(`
			SELECT id, lease, event_id, attempts, failures FROM events
			WHERE status = 'pending' AND claim = 'alone'`)
		alone, err := collect(rows, err, func(r *sql.Rows, c *Claim) error {
			return r.Scan(&c.Row, &c.Lease, &c.ID, &c.Attempts, &c.Failures)
		})
		if err != nil {
			return err
		}
		for _, c := range alone {
			if err := retryEvent(t, c, "the process ended while it worked on this event alone", true); err != nil {
				return err
			}
		}
		_, err = t.exec(`
			UPDATE events SET suspect = 1, claim = '', lease = lease + 1, due_at = ?
			WHERE status = 'pending' AND claim <> ''`, t.now)
		if err != nil {
			return err
		}
		for _, c := range alone { // those stay under suspicion
			if _, err := t.exec(`UPDATE events SET suspect = 1, lease = lease + 1 WHERE id = ? AND status = 'pending'`, c.Row); err != nil {
				return err
			}
		}
		return nil
	})
}

// verdict is where an event ends.
type verdict struct {
	status, verdict, reason, lastError string
	objectID                           string
	order                              int64 // orders.id; 0 is none
	merged                             bool
	watched                            bool // unlinked, and worth a look
	attempts                           int64
}

// finish moves the claimed event to its end, asking for the lease back (P6).
func finish(t *Tx, c Claim, v verdict) error {
	var was string
	ok, err := one(t, `SELECT verdict FROM events WHERE id = ? AND lease = ? AND status = 'pending'`, []any{c.Row, c.Lease}, &was)
	if err != nil {
		return err
	}
	if !ok {
		return ErrLeaseLost
	}
	n, err := t.exec(`
		UPDATE events SET status = ?, verdict = ?, reason = ?, last_error = CASE WHEN ? = '' THEN last_error ELSE ? END,
			object_id = nullif(?, ''), order_id = nullif(?, 0), merged = max(merged, ?), attempts = max(attempts, ?),
			watched = ?, claim = '', suspect = 0, done_at = ?
		WHERE id = ? AND lease = ? AND status = 'pending'`,
		v.status, v.verdict, v.reason, v.lastError, v.lastError, v.objectID, v.order, v.merged, v.attempts, v.watched, t.now, c.Row, c.Lease)
	if err != nil {
		return fmt.Errorf("finish %s: %w", c.ID, err)
	}
	if n == 0 {
		return ErrLeaseLost
	}
	t.count("pending", was, -1)
	t.count(v.status, v.verdict, 1)
	t.watch(false, v.watched)
	return nil
}

// ForeignTenant begins the tenant of an event that is not for this shop and was
// kept under foreign = "ignore". No order can be in such a tenant.
const ForeignTenant = "foreign:"

// IgnoredUnread says why a claimed event ends without a look at its object; ""
// is that it does not.
func (c Claim) IgnoredUnread() string {
	switch {
	case strings.HasPrefix(c.Tenant, ForeignTenant):
		return "a foreign account or mode"
	case !strings.HasPrefix(c.Scope, "stripe:"):
		// A source that is not Stripe has no orders (design.md §3).
		return "no effect is configured for this source"
	}
	return ""
}

// Decoded is a claimed event with what its body says. The worker decodes, so
// that a body which breaks the decoder breaks nothing else.
type Decoded struct {
	Claim
	Event payment.Event
	// Ignored, when not empty, ends the event with this reason and without a
	// look at its object: the source has no orders.
	Ignored string
}

// ApplyEvents merges each event into its fact, derives the orders around it
// and finishes it, all in one transaction per event (P3); the events share a
// commit. The result has one error per event: nil, ErrLeaseLost, or a failure
// after which nothing of that event has happened.
func (s *Store) ApplyEvents(ctx context.Context, events []Decoded) []error {
	errs := make([]error, len(events))
	ops := make([]*op, len(events))
	for i := range events {
		d := &events[i]
		ops[i] = &op{what: "apply " + d.ID, done: make(chan struct{}), run: func(t *Tx) error {
			if err := s.apply(t, d); err != nil {
				return err
			}
			return s.auditDecision(t, d.Row)
		}}
		if errs[i] = s.w.put(ops[i]); errs[i] != nil {
			ops[i] = nil
		}
	}
	for i, o := range ops {
		if o != nil {
			errs[i] = s.w.await(ctx, o)
		}
		if errors.Is(errs[i], errInconsistent) {
			errs[i] = s.quarantineInconsistent(ctx, events[i].Claim)
		}
		if errs[i] == nil {
			s.times.observe(timingDone, time.Duration(At(s.opt.Now())-events[i].ReceivedAt)*time.Millisecond)
		}
	}
	return errs
}

// quarantineInconsistent ends an event whose order stands in a state that no
// rule leads to. Nothing of the event has happened, and no retry can mend it.
func (s *Store) quarantineInconsistent(ctx context.Context, c Claim) error {
	return s.w.write(ctx, "quarantine "+c.ID, func(t *Tx) error {
		return finish(t, c, verdict{status: "quarantined", verdict: string(payment.VerdictContradiction),
			reason: errInconsistent.Error() + ": look at the order, then requeue the event"})
	})
}

var errNoPayload = errors.New("the payload was purged")
