package compose

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Operations are the operations of orders, without their objects (design.md §5,
// rule 6).
var Operations = []string{
	"order.paid", "order.processing", "order.payment_failed", "order.expired", "order.canceled", "order.refunded",
	"refund.succeeded", "refund.failed", "dispute.opened", "dispute.closed",
}

// Alerts are the names of alerts: as an operation, "alert.NAME".
var Alerts = []string{
	"quarantined", "unlinked", "effect_failed", "effect_stuck", "pending", "oversold", "dispute", "rejects",
	"undelivered", "silence", "endpoint", "clock", "reconcile", "backup_failed", "disk_full", "wal",
}

// Known says what is wrong with a pattern, given the names of the configured
// sources; nil is nothing. A pattern that can never match is wrong: it would be
// an effect that somebody waits for. The error does not quote the pattern.
func Known(on string, sources []string) error {
	p, err := parsePattern(on)
	if err != nil {
		return err
	}
	if p.source != "" && !slices.Contains(sources, p.source) {
		return errors.New("names a source that is not configured (before the colon stands the name of a [[source]])")
	}
	return nil
}

// pattern is an `on` that was understood.
type pattern struct {
	source string // of raw events; "" is an operation
	text   string // what a kind must be, or begin with
	prefix bool
}

func (p pattern) matches(kind string) bool {
	if p.prefix {
		return len(kind) > len(p.text) && strings.HasPrefix(kind, p.text)
	}
	return kind == p.text
}

func parsePattern(on string) (pattern, error) {
	p := pattern{text: on}
	source, typ, raw := strings.Cut(on, ":")
	raw = raw && !strings.Contains(source, ".")
	last := on
	if raw {
		p.source, last = source, typ
	}
	if i := strings.LastIndexByte(last, '.'); i >= 0 {
		last = last[i+1:]
	}
	if last == "*" {
		p.text, p.prefix = strings.TrimSuffix(on, "*"), true
	}
	switch {
	case on == "*":
		return pattern{}, errors.New(`says too much: write which, such as "order.*", "refund.*", "dispute.*", "alert.*"`)
	case strings.ContainsFunc(on, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return pattern{}, errors.New("must not hold blanks")
	case !raw && strings.Contains(on, ":"):
		return pattern{}, errors.New("must name no object: the pattern ends before the colon")
	case strings.Contains(p.text, "*"):
		return pattern{}, errors.New(`may have "*" as its last part alone, after a dot or the colon, such as "refund.*"`)
	case raw && source == "":
		return pattern{}, errors.New("needs the name of a source before the colon")
	case raw && typ == "":
		return pattern{}, errors.New("needs a type after the colon, such as github:push")
	case raw:
		return p, nil
	}
	if slices.ContainsFunc(kinds(), p.matches) {
		return p, nil
	}
	return pattern{}, unknownOperation(on)
}

// kinds are all that a pattern without a source can match.
func kinds() []string {
	all := slices.Clone(Operations)
	for _, name := range Alerts {
		all = append(all, "alert."+name)
	}
	return all
}

// unknownOperation says what there is instead.
func unknownOperation(on string) error {
	family, _, _ := strings.Cut(on, ".")
	var near []string
	for _, k := range kinds() {
		if strings.HasPrefix(k, family+".") {
			near = append(near, k)
		}
	}
	if len(near) == 0 {
		return errors.New("is no known operation: there are order.…, refund.…, dispute.…, alert.… and SOURCE:TYPE for raw events")
	}
	return fmt.Errorf("is no known operation: of %s there are %s", family, strings.Join(near, ", "))
}
