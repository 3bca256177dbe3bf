package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"paidonce/store"
)

func effectTable(w *bytes.Buffer, effects []store.Effect) {
	t := table{header: []string{"CREATED", "EFFECT", "STATUS", "OPERATION", "TARGET", "ORDER"}}
	for _, e := range effects {
		t.add(clock(e.CreatedAt), e.ID, e.Status, e.Operation, e.Target, e.Order)
	}
	t.write(w, "")
}

// effectHeader and effectRows are the effects of one order.
var effectHeader = []string{"EFFECT", "STATUS", "OPERATION", "TARGET", ">ATTEMPTS", "NEXT ATTEMPT"}

func effectRows(t *table, effects []store.Effect) {
	for _, e := range effects {
		t.add(e.ID, e.Status, e.Operation, e.Target, count(e.Attempts), clock(e.NextAttemptAt))
	}
}

// What is shown of long texts; the rest is in --json.
const (
	mostAttempts  = 20  // the latest
	mostBodyLines = 60  // of what is sent and of what came back
	mostLineWidth = 160 // characters
)

// effectDetail tells all of an effect: what is sent, when, with which key, what
// came back, and what happens next.
func effectDetail(w *bytes.Buffer, d store.EffectDetail) {
	standing := d.Status
	if d.Reason != "" {
		standing += ", " + d.Reason
	}
	fmt.Fprintf(w, "effect %s: %s\n", d.ID, clean(standing))
	pairs(w,
		"next", d.Next,
		"operation", d.Operation,
		"order", d.Order,
		"event", d.Event,
		"kind", d.Kind,
		"target", d.Target,
		"key", d.IdempotencyKey,
		"attempts", count(d.Attempts),
		"next attempt", clock(d.NextAttemptAt),
		"last error", d.LastError,
		"ref", d.ProviderRef,
		"occurred", clock(d.OccurredAt),
		"created", clock(d.CreatedAt),
		"ended", clock(d.DoneAt),
	)
	attempts(w, d.History)
	section(w, "what people did", len(d.Acts), func(t *table) {
		for _, x := range d.Acts {
			t.add(clock(x.At), x.Actor, x.Act, x.Note)
		}
	}, "AT", "WHO", "ACT", "NOTE")
	title := "sent"
	if d.Attempts == 0 {
		title = "to be sent"
	}
	body, err := sentBody(d)
	switch {
	case err != nil || len(body) == 0:
		fmt.Fprintf(w, "\n%s\n  %s\n", title, nothingToSend)
	case d.BodyEncoding != "":
		fmt.Fprintf(w, "\n%s (%d bytes)\n  no JSON: --body prints it\n", title, len(body))
	default:
		fmt.Fprintf(w, "\n%s (%d bytes)\n", title, len(body))
		foreign(w, body, "--body prints all of it")
	}
	if len(d.Result) > 0 {
		fmt.Fprintf(w, "\nwhat it brought\n")
		foreign(w, d.Result, "--json has all of it")
	}
	for _, x := range slices.Backward(d.History) {
		if x.Answer != "" {
			most := ""
			if len(x.Answer) >= store.MaxAnswerBody {
				most = "the first "
			}
			fmt.Fprintf(w, "\ncame back from attempt %d (%s%d bytes, another program's text)\n", x.N, most, len(x.Answer))
			foreign(w, []byte(x.Answer), "--json has all of it")
			break
		}
	}
}

// attempts tells each call and what came of it.
func attempts(w *bytes.Buffer, history []store.EffectAttempt) {
	left := 0
	if len(history) > mostAttempts {
		left = len(history) - mostAttempts
		history = history[left:]
	}
	section(w, "attempts", len(history), func(t *table) {
		for _, x := range history {
			took, status, what := "", "", "sent"
			if x.FinishedAt != 0 {
				took = (time.Duration(x.FinishedAt-x.StartedAt) * time.Millisecond).String()
			}
			if x.Status != 0 {
				status = count(int64(x.Status))
			}
			if x.LookUp {
				what = "looked up"
			}
			t.add(count(x.N), clock(x.StartedAt), took, what, x.Outcome, status, x.Code, x.ProviderRef)
		}
	}, ">N", "STARTED", ">TOOK", "WHAT", "OUTCOME", "STATUS", "CODE", "REF")
	for _, x := range history {
		said := "key " + x.IdempotencyKey
		if x.RequestID != "" {
			said += ", request " + x.RequestID
		}
		if x.Error != "" {
			said += ": " + x.Error
		}
		fmt.Fprintf(w, "  %d: %s\n", x.N, clean(said))
	}
	if left > 0 {
		fmt.Fprintf(w, "  %d earlier ones: --json has all\n", left)
	}
}

// foreign prints a text that is not ours, indented, as JSON where it is that:
// nothing in it can move the cursor, and what is cut is said.
func foreign(w *bytes.Buffer, text []byte, rest string) {
	var pretty bytes.Buffer
	if json.Indent(&pretty, text, "", "  ") == nil {
		text = pretty.Bytes()
	}
	cutShort := false
	n := 0
	for line := range strings.Lines(string(text)) {
		if n++; n > mostBodyLines {
			cutShort = true
			break
		}
		shown := clean(strings.TrimRight(line, "\r\n"))
		if r := []rune(shown); len(r) > mostLineWidth {
			shown, cutShort = string(r[:mostLineWidth-1])+"…", true
		}
		fmt.Fprintf(w, "  %s\n", shown)
	}
	if cutShort {
		fmt.Fprintf(w, "  (cut: %s)\n", rest)
	}
}
