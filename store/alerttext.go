package store

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// words are what a message says beside its items.
type words struct {
	summary string // without its full stop
	next    string // what happens if nobody does anything
	// one is the command for a single thing, with %s for its id; many that for
	// several, or for an id that is not safe to paste.
	one, many string
	id        func(AlertItem) string
}

// command is what to run.
func (w words) command(a Alert) string {
	if a.Count != 1 || len(a.Items) != 1 || w.id == nil {
		return w.many
	}
	id, ok := shellWord(w.id(a.Items[0]))
	if !ok {
		return w.many
	}
	return fmt.Sprintf(w.one, id)
}

func eventID(i AlertItem) string  { return i.Event }
func orderID(i AlertItem) string  { return i.Order }
func effectID(i AlertItem) string { return i.Effect }

func tellQuarantined(f finding) words {
	return words{
		summary: fmt.Sprintf("%s quarantined", are(f.count, "event")),
		next:    "Nothing by itself: their money stands in suspense, and their orders do not count it, until a person decides.",
		one:     "paidonce events explain %s", many: "paidonce events list --status quarantined", id: eventID,
	}
}

func tellUnlinked(f finding) words {
	return words{
		summary: fmt.Sprintf("%s of a payment that no order has claimed for more than a day", tells(f.count)),
		next:    "Nothing by itself: the money stands in suspense until an order with one of its ids is registered or linked, or the event is dismissed. This is told once.",
		one:     "paidonce events explain %s", many: "paidonce events list --verdict unlinked", id: eventID,
	}
}

func tellFailedEffects(f finding) words {
	return words{
		summary: fmt.Sprintf("%s refused or given up", were(f.count, "effect")),
		next:    "Nothing by itself: what failed is not sent again unless a person retries it.",
		one:     "paidonce effects show %s", many: "paidonce effects list --status failed", id: effectID,
	}
}

func tellStuckEffects(f finding) words {
	return words{
		summary: fmt.Sprintf("%s stuck", are(f.count, "effect")),
		next:    "What can be tried again is, at least once an hour and for 72 hours in all; what is held waits for a person, and what has no target for its configuration. Later effects of the same order wait behind it.",
		one:     "paidonce effects show %s", many: "paidonce effects list", id: effectID,
	}
}

func tellPending(f finding) words {
	longest := ""
	if len(f.things) > 0 {
		longest = ", the longest for " + f.things[0].detail
	}
	return words{
		summary: waits(f.count) + " to be worked on" + longest,
		next:    "Nothing is lost: they are tried again by themselves, at least once an hour. Until then their orders do not move.",
		many:    "paidonce events list --status pending",
	}
}

func tellOversold(f finding) words {
	return words{
		summary: fmt.Sprintf("%s oversold: there was less in stock than was paid for", cases(f.count)),
		next:    "The order stays paid. Nothing by itself: send it later, or give the money back; then acknowledge it.",
		one:     "paidonce orders show %s" + tenantFlag(f), many: "paidonce orders list --attention " + attentionOversold, id: orderID,
	}
}

func tellDisputes(f finding) words {
	first := Time(0)
	for _, t := range f.things {
		if t.at != 0 && (first == 0 || t.at < first) {
			first = t.at
		}
	}
	w := words{
		summary: fmt.Sprintf("%s a person's answer", waitFor(f.count, "dispute")),
		next:    "A dispute that is not answered in time is lost, and so is its money. The answer is given at Stripe.",
		one:     "paidonce orders show %s" + tenantFlag(f), many: "paidonce orders list --attention " + attentionDispute, id: orderID,
	}
	if first != 0 {
		w.summary += ", the first by " + first.String()
	}
	return w
}

func tellRejects(f finding) words {
	source := ""
	if len(f.things) > 0 {
		source = " of source " + plain(f.things[0].mark)
	}
	return words{
		summary: fmt.Sprintf("the last %d deliveries%s were refused, and none accepted between them", f.count, source),
		next:    "Senders give up after some days, Stripe after three: what they send until then is lost unless it is fetched or sent again. If they are the sender's own, its secret or its URL is wrong; if they are a stranger's, nothing is.",
		many:    "paidonce doctor",
	}
}

// tenantFlag tells a command the tenant of the one order it is about.
func tenantFlag(f finding) string {
	if len(f.things) == 1 && f.things[0].tenant != mainTenant {
		if tenant, ok := shellWord(f.things[0].tenant); ok {
			return " --tenant " + strings.ReplaceAll(tenant, "%", "%%")
		}
	}
	return ""
}

func are(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

func were(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " was"
	}
	return fmt.Sprintf("%d %ss were", n, what)
}

func waitFor(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " waits for"
	}
	return fmt.Sprintf("%d %ss wait for", n, what)
}

func waits(n int64) string {
	if n == 1 {
		return "1 event waits"
	}
	return fmt.Sprintf("%d events wait", n)
}

func tells(n int64) string {
	if n == 1 {
		return "1 event tells"
	}
	return fmt.Sprintf("%d events tell", n)
}

func cases(n int64) string {
	if n == 1 {
		return "1 item of an order is"
	}
	return fmt.Sprintf("%d items of orders are", n)
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// tellWait tells how long something has waited.
func tellWait(d Time) string {
	return (time.Duration(d) * time.Millisecond).Round(time.Second).String()
}

// plain makes foreign text harmless where it is shown: one line of at most 200
// bytes, without control characters and those that turn the direction of text
// around or cannot be seen.
func plain(text string) string {
	return cut(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, text))
}

// wordForShell needs no quotes in any shell.
var wordForShell = regexp.MustCompile(`^[A-Za-z0-9_.:/@+=,-]+$`)

// shellWord writes an id as one word of a command that a person may paste into
// a shell. An id that could be taken for a flag, or was cut or changed to be
// shown, is none.
func shellWord(id string) (string, bool) {
	switch {
	case id == "", id[0] == '-', len(id) > maxErrorText-3, strings.ContainsAny(id, "?"), plain(id) != id:
		return "", false
	case wordForShell.MatchString(id):
		return id, true
	}
	return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'", true
}
