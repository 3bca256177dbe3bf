package compose

import (
	"strings"
	"testing"
)

func TestAPatternIsKnownOrRefused(t *testing.T) {
	sources := []string{"stripe", "github", "alert"}
	for _, tt := range []struct {
		name, on string
		want     string // part of the error; "" is known
	}{
		{"an operation", "order.paid", ""},
		{"every operation of a family", "refund.*", ""},
		{"an alert", "alert.effect_failed", ""},
		{"every alert", "alert.*", ""},
		{"a raw event", "github:push", ""},
		{"raw events by their beginning", "stripe:customer.subscription.*", ""},
		{"every event of a source", "github:*", ""},
		{"a raw event of a source that is called like a family", "alert:push", ""},
		{"a misspelt operation", "order.payed", "of order there are order.paid,"},
		{"a family that is none", "invoice.paid", "is no known operation"},
		{"an alert that is none", "alert.fire", "of alert there are alert.quarantined,"},
		{"a family alone", "order", "is no known operation"},
		{"a family and a dot", "order.", "is no known operation"},
		{"nothing", "", "is no known operation"},
		{"everything", "*", "says too much"},
		{"a star inside a word", "order.p*", `"*" as its last part`},
		{"a star for the family", "*.paid", `"*" as its last part`},
		{"two stars", "refund.**", `"*" as its last part`},
		{"a star for every family", "*.*", `"*" as its last part`},
		{"a star below an operation", "order.paid.*", "is no known operation"},
		{"a star inside a raw type", "github:pull_*", `"*" as its last part`},
		{"a star for the source", "*:push", `"*" as its last part`},
		{"an object", "refund.succeeded:re_1", "must name no object"},
		{"every object", "refund.succeeded:*", "must name no object"},
		{"a source that is not configured", "gitlab:push", "names a source that is not configured"},
		{"no source before the colon", ":push", "needs the name of a source"},
		{"no type after the colon", "github:", "needs a type after the colon"},
		{"a blank at the end", "order.paid ", "must not hold blanks"},
		{"a line break", "github:pu\nsh", "must not hold blanks"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Known(tt.on, sources)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Known(%q) = %v", tt.on, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Known(%q) = %v; want %q", tt.on, err, tt.want)
			}
		})
	}
}

func TestEveryOperationAndAlertCanBeAskedFor(t *testing.T) {
	for _, kind := range kinds() {
		if err := Known(kind, nil); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		family, _, _ := strings.Cut(kind, ".")
		if p, err := parsePattern(family + ".*"); err != nil || !p.matches(kind) {
			t.Errorf("%s.* does not match %s: %v", family, kind, err)
		}
	}
}

func TestAPatternMatchesTheOperationWithoutItsObject(t *testing.T) {
	for _, tt := range []struct {
		name, on, operation string
		want                bool
	}{
		{"the operation itself", "order.paid", "order.paid", true},
		{"another one of the family", "order.paid", "order.payment_failed", false},
		{"an operation with an object", "refund.succeeded", "refund.succeeded:re_1", true},
		{"an operation with object and verdict", "dispute.closed", "dispute.closed:dp_1:won", true},
		{"a family", "refund.*", "refund.failed:re_1", true},
		{"another family", "refund.*", "order.refunded", false},
		{"an alert with its number", "alert.quarantined", "alert.quarantined:17", true},
		{"every alert", "alert.*", "alert.pending:1", true},
		{"another alert that begins alike", "alert.dispute", "alert.disputed:1", false},
		{"a raw event", "github:push", "github:push", true},
		{"a raw event that begins alike", "github:push", "github:push_force", false},
		{"the same type of another source", "github:push", "gitlab:push", false},
		{"raw events by their beginning", "stripe:customer.*", "stripe:customer.created", true},
		{"raw events further down", "stripe:customer.*", "stripe:customer.subscription.created", true},
		{"what is above the star", "stripe:customer.*", "stripe:customer", false},
		{"what begins alike before the dot", "stripe:customer.*", "stripe:customers.created", false},
		{"everything of a source", "github:*", "github:pull_request", true},
		{"a type that is empty", "github:*", "github:", false},
		{"a raw event is no operation", "order.paid", "shop:order.paid", false},
		{"an operation is no raw event", "shop:order.paid", "order.paid", false},
		{"a raw type with a colon", "hook:a:b", "hook:a:b", true},
		{"an alert is no raw event of a source of that name", "alert:*", "alert.pending:1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parsePattern(tt.on)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.matches(parseOperation(tt.operation, at).Kind); got != tt.want {
				t.Errorf("%s matches %s: %v; want %v", tt.on, tt.operation, got, tt.want)
			}
		})
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"order.paid", "refund.*", "*", "a:b.*", ":", "stripe:customer.*", "dispute.closed:dp_1:won", "order.*\x00"} {
		f.Add(s, "refund.succeeded:re_1")
		f.Add("github:*", s)
	}
	f.Fuzz(func(t *testing.T, on, operation string) {
		p, err := parsePattern(on)
		if err != nil {
			if p != (pattern{}) || len(on) > 300 && len(err.Error()) > 300 {
				t.Errorf("%q is refused as %+v: %v", on, p, err)
			}
			return
		}
		kind := parseOperation(operation, at).Kind
		if !p.matches(kind) {
			return
		}
		stem, star := strings.CutSuffix(on, "*")
		if star && !strings.HasPrefix(kind, stem) || !star && kind != on {
			t.Errorf("%q matches %q", on, operation)
		}
		if source, _, ok := strings.Cut(operation, ":"); p.source != "" && (!ok || source != p.source) {
			t.Errorf("%q, of source %s, matches %q", on, p.source, operation)
		}
	})
}
