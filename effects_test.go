package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"paidonce/store"
)

func TestEffectsAreListedAndNarrowed(t *testing.T) {
	w := newStripeShop(t)
	w.sellA1()
	if out := w.must("effects", "list", "--json"); !strings.Contains(out, `"items": []`) {
		t.Errorf("an empty list is %s", out)
	}
	for i := range 3 {
		w.must("orders", "refund", "A1", "--amount", "1", "--request-id", fmt.Sprintf("r-%d", i+1))
	}
	w.must("effects", "resolve", "2", "--outcome", "canceled")
	out := w.must("effects", "list")
	wantParts(t, "effects list", out, "CREATED", "refund.request:r-3", "pending", "canceled", "stripe", "A1")
	if strings.Index(out, "r-3") > strings.Index(out, "r-1") {
		t.Errorf("the newest is not first:\n%s", out)
	}
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"--status", "pending"}, 2},
		{[]string{"--status", "canceled", "--order", "A1"}, 1},
		{[]string{"--kind", "http"}, 0},
		{[]string{"--target", "stripe"}, 3},
		{[]string{"--order", "A2"}, 0},
		{[]string{"--order", "A1", "--tenant", "acct_B"}, 0},
	} {
		var page pageOf[store.Effect]
		w.mustJSON(&page, append([]string{"effects", "list"}, tt.args...)...)
		if len(page.Items) != tt.want {
			t.Errorf("%s: %d effects; want %d", tt.args, len(page.Items), tt.want)
		}
	}
	var page pageOf[store.Effect]
	w.mustJSON(&page, "effects", "list", "--limit", "2")
	rest := w.must("effects", "list", "--limit", "2", "--cursor", page.NextCursor)
	wantParts(t, "the last page", rest, "refund.request:r-1")
	unwanted(t, "the last page", rest, "r-2", "r-3")
	wantParts(t, "stats", w.must("stats"), "effects                      3: pending 2, canceled 1\n")
	wantParts(t, "orders show", w.must("orders", "show", "A1"), "\neffects\n  EFFECT  STATUS", "  1       pending   refund.request:r-1  stripe")
}

// An operator answers from it alone: what was sent, when, with which key, what
// came back, what happens next.
func TestAnEffectIsShownWithAllThereIsToKnow(t *testing.T) {
	w := newStripeShop(t)
	w.servedBy(func(c store.EffectClaim) store.Answer {
		if c.LookUp {
			return store.Answer{Outcome: store.OutcomeDone, Status: 200, Ref: "re_1", RequestID: "req_2"}
		}
		return store.Answer{Outcome: store.OutcomeRefused, Status: 402, Code: "charge_disputed", Error: "it is \x1b[31mdisputed", RequestID: "req_1",
			Body: []byte("{\"error\":{\"message\":\"\u009b2J\u202egone\"},\"n\":1}")}
	})
	w.sellA1()
	w.run("orders", "refund", "A1", "--amount", "2.50", "--request-id", "r-1")
	out := w.must("effects", "show", "1")
	var d store.EffectDetail
	w.mustJSON(&d, "effects", "show", "1")
	wantParts(t, "effects show", out, "effect 1: failed, refused: charge_disputed\n", "next          nothing by itself: `paidonce effects retry 1`",
		"operation     refund.request:r-1\n", "order         A1\n", "kind          stripe\n", "key           "+d.IdempotencyKey+"\n", "attempts      1\n",
		`last error    it is \x1b[31mdisputed`, "created       20", "sent  refused  402     charge_disputed", "  1: key "+d.IdempotencyKey+", request req_1: it is ",
		"what people did\n", "cli  refund  2.50 EUR, request r-1", "\nsent (", "  {\n    \"payment_intent\": \"pi_1\",\n", `"amount_minor": 250,`,
		"\ncame back from attempt 1 (", "another program's text)\n  {\n    \"error\": {\n", `"message": "\u009b2J\u202egone"`)
	unwanted(t, "effects show", out, "\x1b", "\u009b", "\u202e")
	var body bytes.Buffer
	if err := json.Compact(&body, d.Body); err != nil { // --json indents it
		t.Fatal(err)
	}
	if got := w.must("effects", "show", "1", "--body"); got != body.String() {
		t.Errorf("--body is %q; want %q, byte for byte", got, body.String())
	}
	w.must("effects", "retry", "1")
	w.settled("1")
	wantParts(t, "effects show", w.must("effects", "show", "1"), "effect 1: done", "ref           re_1\n", "looked up  done", "  2: key "+d.IdempotencyKey+", request req_2\n", "cli  retry", "came back from attempt 1")
	exit, _, stderr := w.run("effects", "retry", "1", "--json")
	if exit != 1 || !strings.Contains(stderr, `"code": "not_retryable"`) {
		t.Errorf("retry of what is done: exit %d, %s", exit, stderr)
	}
	for _, id := range []string{"2", "x", "-1"} {
		if exit, _, stderr := w.run("effects", "show", "--json", "--", id); exit != 1 || !strings.Contains(stderr, `"code": "not_found"`) {
			t.Errorf("effect %s: exit %d, %s", id, exit, stderr)
		}
	}
}

func TestAPersonActsOnAnEffect(t *testing.T) {
	w := newStripeShop(t)
	w.sellA1()
	w.must("orders", "refund", "A1", "--request-id", "r-1")
	exit, stdout, stderr := w.run("effects", "retry", "1")
	if exit != 0 || !strings.Contains(stdout, "effect 1 is to be sent: pending\nnext  ") || !strings.Contains(stderr, "serve is not running") {
		t.Errorf("retry: exit %d, %s%s", exit, stdout, stderr)
	}
	if exit, _, stderr := w.run("effects", "resolve", "1"); exit != 2 || !strings.Contains(stderr, "--outcome is needed") {
		t.Errorf("resolve as nothing: exit %d, %s", exit, stderr)
	}
	if exit, _, stderr := w.run("effects", "resolve", "1", "--outcome", "failed"); exit != 2 || !strings.Contains(stderr, "--outcome must be one of done, canceled") {
		t.Errorf("resolve as failed: exit %d, %s", exit, stderr)
	}
	wantParts(t, "resolve", w.must("effects", "resolve", "1", "--outcome", "done", "--note", "seen at the bank"), "effect 1 resolved: done\nnext  nothing, it is done\n")
	wantParts(t, "effects show", w.must("effects", "show", "1"), "cli  resolve", "seen at the bank")
	if exit, _, stderr := w.run("effects", "resolve", "1", "--outcome", "canceled", "--json"); exit != 1 || !strings.Contains(stderr, `"code": "not_resolvable"`) {
		t.Errorf("resolve again: exit %d, %s", exit, stderr)
	}
}

func TestLongTextsAreCutAndItIsSaid(t *testing.T) {
	long, err := json.Marshal(map[string]any{"text": strings.Repeat("x", 1000), "list": make([]int, 100)})
	if err != nil {
		t.Fatal(err)
	}
	d := store.EffectDetail{Effect: store.Effect{ID: "7", Status: "pending"}, Body: long}
	for i := range 25 {
		d.History = append(d.History, store.EffectAttempt{N: int64(i + 1), Outcome: "again", Answer: strings.Repeat("y\n", 512)})
	}
	var b bytes.Buffer
	effectDetail(&b, d)
	wantParts(t, "effects show", b.String(), "(cut: --body prints all of it)", "(cut: --json has all of it)", "5 earlier ones: --json has all", "\n  25  ", "attempt 25 (the first 1024 bytes, ")
	if n := strings.Count(b.String(), "\n"); n > 200 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(b.String()) {
		if len([]rune(line)) > mostLineWidth+3 {
			t.Errorf("a line of %d characters", len([]rune(line)))
		}
	}
	for _, tt := range []struct{ name, body, encoding, want string }{
		{"nothing", "null", "", nothingToSend},
		{"no JSON", `"/wD/"`, "base64", "to be sent (3 bytes)\n  no JSON: --body prints it\n"},
	} {
		b.Reset()
		effectDetail(&b, store.EffectDetail{Body: json.RawMessage(tt.body), BodyEncoding: tt.encoding})
		wantParts(t, tt.name, b.String(), tt.want)
	}
}
