package store

import (
	"fmt"
	"time"
)

const (
	// undeliveredAfter is how long a webhook may take to bring what a
	// reconciliation found first.
	undeliveredAfter = 10 * time.Minute
	// undeliveredFor is for how long an event that no webhook brought is a
	// reason to look at the endpoint.
	undeliveredFor = 24 * time.Hour
	// silentFor is how long nothing may be heard while Stripe has events.
	silentFor = 24 * time.Hour
)

// undelivered are events that Stripe listed and no webhook has brought, of this
// installation's time and, after a restore, of the time since that.
const undelivered = `FROM events INDEXED BY events_undelivered
	WHERE via = 'reconcile' AND deliveries = 0 AND received_at >= ?1 AND received_at <= ?2 AND type NOT LIKE 'fetched.%'
		AND occurred_at >= coalesce((SELECT max(CAST(value AS INTEGER)) FROM meta WHERE key IN ('installed_at', 'restored_at')), 0)`

func findUndelivered(_ *Store, q querier, now Time, _ AlertRules) (finding, error) {
	var f finding
	since, until := now-Time(undeliveredFor.Milliseconds()), now-Time(undeliveredAfter.Milliseconds())
	if _, err := one(q, `SELECT count(*) `+undelivered, []any{since, until}, &f.count); err != nil || f.count == 0 {
		return f, err
	}
	rows, err := q.query(`SELECT id, event_id `+undelivered+` ORDER BY received_at DESC LIMIT ?3`, since, until, alertWindow)
	f.things, err = collect(rows, err, scanThing)
	return f, err
}

func undeliveredText(e openEvent, _ thing) (string, Time) {
	return "Stripe listed it, and no webhook has brought it", e.receivedAt
}

// findSilence finds out whether nothing was heard for a day while Stripe had
// events to tell.
func findSilence(s *Store, q querier, now Time, _ AlertRules) (finding, error) {
	var f finding
	var last, missed Time
	// Among the newest events only: were all of those found by reconciliation,
	// it would be silent for long.
	if _, err := one(q, `SELECT coalesce(max(received_at), 0) FROM events WHERE via = 'webhook' AND id > (SELECT coalesce(max(id), 0) FROM events) - ?`,
		[]any{alertScan}, &last); err != nil {
		return f, err
	}
	since := max(last, s.installed)
	if now-since < Time(silentFor.Milliseconds()) {
		return f, nil
	}
	if _, err := one(q, `SELECT coalesce(max(received_at), 0) `+undelivered, []any{since, now}, &missed); err != nil || missed == 0 {
		return f, err
	}
	f.count, f.things = 1, []thing{{mark: "webhooks", at: since, detail: "nothing has come since " + since.String()}}
	return f, nil
}

func tellUndelivered(f finding) words {
	return words{
		summary: fmt.Sprintf("%s found at Stripe that no webhook had brought", were(f.count, "event")),
		next:    "They are worked on already. But the endpoint does not bring all: look at Stripe's dashboard, Developers, Webhooks, whether it is disabled, blocked by a proxy, has another secret, or lacks types of events.",
		many:    "paidonce reconcile --since 24h --dry-run",
	}
}

func tellSilence(f finding) words {
	return words{
		summary: "no webhook has come for a day, and Stripe has events",
		next:    "What Stripe has is fetched every five minutes, so that nothing is lost; it is late. Look at Stripe's dashboard, Developers, Webhooks: the endpoint is disabled, has another address or secret, or a proxy blocks it.",
		many:    "paidonce reconcile --since 48h --dry-run",
	}
}

func tellBackup(f finding) words {
	return words{
		summary: "the scheduled backup fails",
		next:    "It is tried again every ten minutes. Until then the newest backup gets older.",
		many:    "paidonce backup FILE",
	}
}

func tellEndpoint(f finding) words {
	return words{
		summary: fmt.Sprintf("%s of the webhook endpoint at Stripe not as this shop needs it", isAre(f.count, "setting")),
		next:    "Mend it in Stripe's dashboard, Developers, Webhooks. What the endpoint does not bring is fetched every five minutes.",
		many:    "paidonce doctor",
	}
}

func tellClock(f finding) words {
	return words{
		summary: "the clock of this machine and Stripe's do not agree",
		next:    "Beyond five minutes all webhooks are refused as too old. Set the clock: timedatectl set-ntp true.",
		many:    "paidonce doctor",
	}
}

func tellWAL(f finding) words {
	return words{
		summary: "the -wal file of the database has grown large",
		next:    "Another program holds a snapshot of the database open. It shrinks by itself within seconds once that ends; until then it grows with every write.",
		many:    "fuser -v paidonce.db",
	}
}

func tellReconcile(f finding) words {
	return words{
		summary: "Stripe has not been asked with success for an hour",
		next:    "It is tried again by itself. Until then an event that no webhook brings is not found.",
		many:    "paidonce reconcile --dry-run",
	}
}

// findDiskFull finds out whether an event was refused of late for want of room.
func findDiskFull(s *Store, _ querier, now Time, _ AlertRules) (finding, error) {
	full := Time(s.w.fullAt.Load())
	if full == 0 || now-full >= Time(fullFor.Milliseconds()) {
		return finding{}, nil
	}
	return finding{count: 1, things: []thing{{mark: "disk", at: full, detail: "there was no room for an event"}}}, nil
}

func tellDiskFull(finding) words {
	return words{
		summary: "the disk is full: webhooks are answered with 503",
		next:    "Senders try again for days, Stripe for three: nothing is lost if there is room before that. Free some space; it heals by itself.",
		many:    "df -h",
	}
}

func isAre(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}
