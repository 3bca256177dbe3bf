// Package compose says what an occasion becomes for each target: the body that
// is frozen before an effect is first tried. It owns the patterns of `on`, the
// body that http and exec effects get, and the templates of mail.
//
// The rule that makes it safe: it is a pure function of the targets and the
// occasion. It has no clock, does no I/O and keeps nothing, so that the same
// occasion is the same bytes whenever a transaction is run again. A target that
// cannot be served is a Composed with Failed set. Nothing that a customer or a
// sender writes makes it panic or fail the event, and no Failed holds a
// customer's data.
//
// # Patterns
//
// An `on` is the operation without its object: "order.paid", "refund.succeeded",
// "dispute.closed", "alert.quarantined". "*" stands for all, as the last part
// after a dot and nowhere else: "refund.*", "alert.*". "*" alone is refused: it
// does not say whether alerts and raw events are meant too.
//
// A raw event is SOURCE:TYPE, where SOURCE is the name of a configured source:
// "github:push". Here "*" as the last part stands for whatever follows, further
// dots too: "stripe:customer.*" is also customer.subscription.created, and
// "github:*" is every event of that source.
//
// # The body of http and exec effects
//
// It is JSON in the envelope of Standard Webhooks:
//
//	{
//	  "type": "refund.succeeded:re_1",        the operation as recorded
//	  "timestamp": "2026-12-01T10:00:00.000Z", when it happened, by what proves it
//	  "version": 1,                            of this shape
//	  "data": {
//	    "order": {…} or null,                  as GET /v1/orders shows it, at this moment
//	    "operation": {
//	      "name": "refund.succeeded:re_1",
//	      "kind": "refund.succeeded",          what `on` matches
//	      "object": "re_1",                    left out where there is none
//	      "verdict": "won",                    dispute.closed only
//	      "occurred_at": "2026-12-01T10:00:00.000Z"
//	    },
//	    "event": {"scope", "id", "source", "type", "occurred_at"} or null,
//	    "alert": {…},                          alerts only: store.Alert
//	    "payload": …                           raw events only
//	  }
//	}
//
// The type of a raw event is SOURCE:TYPE, and its kind is the same. "event" is
// null where a person's act brought it about, or an order that was registered
// after its money came. "payload" is the body as it was received, byte for byte;
// where that is no JSON in UTF-8, it is a base64 string, with
// "payload_encoding": "base64" beside it. The version goes up when a field
// changes its meaning or goes away; new fields may come without that.
//
// # Mail
//
// To, subject and text are templates of text/template, html is one of
// html/template. [Data] is what they see. A key that metadata does not have is
// an error, for a mail with a hole in it is worse than none: where it may be
// absent, write {{with index .Order.Metadata "gift"}}…{{end}}. So it is with
// .Event, which not every operation has: {{with .Event}}…{{end}}. Besides the
// functions of text/template there are
//
//	money MINOR CURRENCY   "12.50 EUR": {{money .Order.RefundedMinor .Order.Currency}}
//	line TEXT              TEXT in one line, without control characters
//
// A recipient or subject that holds a control character fails the effect: a
// name with a line break in it would otherwise write headers.
package compose

import (
	"errors"
	"fmt"

	"paidonce/store"
)

// Template is a template as written.
type Template struct {
	Name string // for errors: the file, or the key that holds it
	Text string
}

// Target is one [[effect]]: what it is told of, and what it makes of that.
type Target struct {
	Name string
	On   []string // patterns, see the package comment
	Do   string   // store.KindHTTP, KindEmail or KindExec

	// Of mail. A target that is told of alerts alone may leave out the subject,
	// and both Text and HTML: there are readable ones for alerts.
	From    string // one RFC 5322 address, as configured
	To      Template
	Subject Template
	Text    Template // Text or HTML or both; the zero Template is none
	HTML    Template
}

// Problem is something that is wrong with a target.
type Problem struct {
	Key  string // of the [[effect]]: name, on, do, to, subject, body, html; from is MAIL_FROM
	Text string // what is wrong, with file and line of a template
}

func (p Problem) String() string { return p.Key + ": " + p.Text }

// composer makes the bodies of one target.
type composer struct {
	name  string
	kind  string
	on    []pattern
	write func(*occasion) (body []byte, failed string)
}

// New returns the Compose of these targets. It is safe for concurrent use, and
// keeps the sequence of targets. The error tells all that Check finds.
func New(targets []Target) (store.Compose, error) {
	var composers []composer
	var errs []error
	seen := map[string]bool{}
	for _, t := range targets {
		c, problems := t.composer()
		if seen[t.Name] {
			problems = append(problems, Problem{"name", "there are two effects of this name"})
		}
		seen[t.Name] = true
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("effect %s: %s", t.Name, p))
		}
		composers = append(composers, c)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return func(o store.Occasion) []store.Composed {
		var all []store.Composed
		about := newOccasion(o)
		for _, c := range composers {
			if c.wants(about.Operation.Kind) {
				all = append(all, c.compose(about))
			}
		}
		return all
	}, nil
}

// Check says everything that is wrong with t, but for sources that `on` names
// and that are not configured: those are for Known. Templates are tried out on
// made-up occasions of every kind that t is told of, so that a misspelt field
// is found here and not when the first payment comes.
func (t Target) Check() []Problem {
	_, problems := t.composer()
	return problems
}

func (t Target) composer() (composer, []Problem) {
	c := composer{name: t.Name, kind: t.Do}
	var problems []Problem
	if len(t.On) == 0 {
		problems = append(problems, Problem{"on", "says nothing: name what the effect is for, such as order.paid"})
	}
	for _, on := range t.On {
		p, err := parsePattern(on)
		if err != nil {
			problems = append(problems, Problem{"on", err.Error()})
			continue
		}
		c.on = append(c.on, p)
	}
	switch t.Do {
	case store.KindHTTP, store.KindExec:
		c.write = func(o *occasion) ([]byte, string) { return o.envelope() }
	case store.KindEmail:
		m, more := newMailer(t, c.on)
		c.write = m.write
		problems = append(problems, more...)
	default:
		problems = append(problems, Problem{"do", "must be http, email or exec"})
	}
	return c, problems
}

func (c composer) wants(kind string) bool {
	for _, p := range c.on {
		if p.matches(kind) {
			return true
		}
	}
	return false
}

// compose makes the body. What goes wrong stays with this effect: the event
// and its other effects are none the worse for it.
func (c composer) compose(o *occasion) (done store.Composed) {
	done = store.Composed{Target: c.name, Kind: c.kind}
	defer func() {
		if recover() != nil { // its value may hold anything
			done.Body, done.Failed = nil, "composing it panicked"
		}
	}()
	if done.Body, done.Failed = c.write(o); done.Failed != "" {
		done.Body, done.Failed = nil, o.discreet(done.Failed)
	}
	return done
}
