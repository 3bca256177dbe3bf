package store

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"paidonce/store/payment"
)

// notAnAlerts holds for an effect that is not an alert's own: a message that
// cannot be sent must not cause the next one.
const notAnAlerts = `substr(subject, 1, 6) <> '` + alertSubject + `'`

// findFailedEffects finds effects that were refused or given up: those of
// orders as long as the order shows them, which ends with an acknowledgement,
// and those of no order as long as they are failed. One that fails again after
// a retry is another thing.
func (s *Store) findFailedEffects(q querier, now Time, rules AlertRules) (finding, error) {
	var failed int64
	if _, err := one(q, `SELECT n FROM effect_counts WHERE status = 'failed'`, nil, &failed); err != nil || failed == 0 {
		return finding{}, err
	}
	f, err := findAttention(AttentionEffectFailed)(s, q, now, rules)
	if err != nil {
		return f, err
	}
	for i, t := range f.things { // by effect: the cause is "ID/ATTEMPTS"
		id, attempts, _ := strings.Cut(t.mark, "/")
		f.things[i].row, _ = strconv.ParseInt(id, 10, 64) // we wrote it
		f.things[i].mark = attempts
	}
	const loose = ` FROM effects INDEXED BY effects_failed WHERE order_id IS NULL AND status = 'failed' AND ` + notAnAlerts
	var n int64
	if _, err := one(q, `SELECT count(*)`+loose, nil, &n); err != nil || n == 0 {
		return f.newest(), err
	}
	rows, err := q.query(`SELECT id, attempts`+loose+` ORDER BY id DESC LIMIT ?`, alertWindow)
	more, err := collect(rows, err, scanThing)
	if err != nil {
		return f, err
	}
	f.count += n
	f.things = append(f.things, more...)
	return f.newest(), nil
}

// findStuckEffects finds effects that are past their quick retries, that hold
// their lane for more than an hour, or whose target is not configured (any
// more). One that is being sent at this moment is no less stuck.
func (s *Store) findStuckEffects(q querier, now Time, _ AlertRules) (finding, error) {
	var open int64
	if _, err := one(q, `SELECT coalesce(sum(n), 0) FROM effect_counts WHERE status IN ('pending', 'sending', 'unknown', 'held')`, nil, &open); err != nil || open == 0 {
		return finding{}, err
	}
	// Since when it holds its lane: its first attempt since a person last said
	// "again", or that word itself; held, its last attempt or its making.
	const stuck = ` FROM (
			SELECT * FROM (SELECT id, subject, target, status, attempts, failures, plan_from, due_at, tried_at, created_at
				FROM effects INDEXED BY effects_open WHERE status <> 'done' AND status = ? ORDER BY id LIMIT ?))
		WHERE ` + notAnAlerts + ` AND (failures > ?
			OR status = 'pending' AND attempts = 0 AND target NOT IN (SELECT value FROM json_each(?))
			OR attempts > 0 AND status <> 'held' AND coalesce(plan_from, due_at, tried_at, created_at) < ?
			OR status = 'held' AND coalesce(tried_at, created_at) < ?)`
	var f finding
	for _, status := range []string{"pending", "sending", "unknown", "held"} {
		hour := now - Time(alertLaneHeld.Milliseconds())
		args := []any{status, alertScan, len(quickRetries), jsonText(s.targets()), hour, hour}
		var n int64
		if _, err := one(q, `SELECT count(*)`+stuck, args, &n); err != nil {
			return f, err
		}
		if n == 0 {
			continue
		}
		rows, err := q.query(`SELECT id, ''`+stuck+` ORDER BY id DESC LIMIT ?`, append(args, alertWindow)...)
		more, err := collect(rows, err, scanThing)
		if err != nil {
			return f, err
		}
		f.count += n
		f.things = append(f.things, more...)
	}
	return f.newest(), nil
}

// targets are all that effects can go to.
func (s *Store) targets() []string {
	all := append([]string{}, s.opt.Targets...)
	if s.opt.StripeKey != "" {
		all = append(all, StripeTarget)
	}
	return all
}

// openEffect is what an item says of an effect.
type openEffect struct {
	operation, target, status, reason string
	attempts, failures                int64
	createdAt, triedAt, doneAt        Time
	planFrom                          Time
	configured                        bool // its target
}

func effectItems(text func(openEffect) (string, Time)) func(*Store, querier, []thing) ([]AlertItem, error) {
	return func(s *Store, q querier, things []thing) ([]AlertItem, error) {
		var items []AlertItem
		for _, th := range things {
			var e openEffect
			var order, event, currency string
			var refund, total int64
			ok, err := one(q, `
				SELECT e.operation, e.target, e.status, e.reason, e.attempts, e.failures, e.created_at, coalesce(e.tried_at, 0), coalesce(e.done_at, 0),
					coalesce(e.plan_from, 0), e.amount_minor, coalesce(o.order_id, ''), coalesce(o.total_minor, 0), coalesce(o.currency, ''), coalesce(v.event_id, '')
				FROM effects e LEFT JOIN orders o ON o.id = e.order_id LEFT JOIN events v ON v.id = e.event WHERE e.id = ?`, []any{th.row},
				&e.operation, &e.target, &e.status, &e.reason, &e.attempts, &e.failures, &e.createdAt, &e.triedAt, &e.doneAt,
				&e.planFrom, &refund, &order, &total, &currency, &event)
			if err != nil {
				return nil, fmt.Errorf("effect %d: %w", th.row, err)
			}
			if !ok {
				continue
			}
			item := AlertItem{Order: plain(order), Event: plain(event), Effect: strconv.FormatInt(th.row, 10)}
			switch {
			case currency == "":
			case refund != 0:
				item.Amount = payment.FormatMinor(refund, currency)
			default:
				item.Amount = payment.FormatMinor(total, currency)
			}
			e.configured = slices.Contains(s.targets(), e.target)
			what, at := text(e)
			item.Text, item.At = plain(e.operation+" for "+e.target+": "+what), at
			items = append(items, item)
		}
		return items, nil
	}
}

func failedText(e openEffect) (string, Time) { return failureWord(e.reason), e.doneAt }

func stuckText(e openEffect) (string, Time) {
	since := e.planFrom
	if since == 0 {
		since = e.createdAt
	}
	tried := strconv.FormatInt(e.attempts, 10) + " attempts"
	if e.attempts == 1 {
		tried = "1 attempt"
	}
	switch {
	case e.status == "held":
		if e.triedAt != 0 {
			since = e.triedAt
		}
		return "it waits for a person's word", since
	case !e.configured:
		return "no [[effect]] of the configuration has that name", since
	case e.status == "unknown":
		return "nobody knows whether it happened, after " + tried, since
	}
	if (effectState{failures: e.failures}).alarmed() {
		return "it is past its quick retries, and not done after " + tried, since
	}
	return "it holds its lane, and is not done after " + tried, since
}

// codeWord is what the other side may call a refusal; anything longer or
// stranger is no code.
var codeWord = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// failureWord says in our own words, and with the other side's code, why an
// effect failed. What a template said of itself is not ours.
func failureWord(reason string) string {
	if code, ok := strings.CutPrefix(reason, "refused: "); ok {
		if codeWord.MatchString(code) {
			return "it was refused: " + code
		}
		return "it was refused"
	}
	switch {
	case reason == "refused":
		return "it was refused"
	case strings.HasPrefix(reason, reasonNoTemplate):
		return "its text could not be made: " + reasonNoTemplate
	case strings.HasPrefix(reason, "given up"):
		return reason
	}
	return "it failed"
}
