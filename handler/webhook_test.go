package handler

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
)

// TestWebhookAnswers has every row of the table of design.md §7 that a sender
// can bring about.
func TestWebhookAnswers(t *testing.T) {
	w := newWorld(t)
	body := testEvent("evt_1")
	aged := func(d time.Duration) http.Header { return stripeHeader(w.clock.Now().Add(d), body, stripeSecret) }
	for _, tt := range []struct {
		name   string
		source string
		header http.Header
		body   []byte
		status int
		want   string // the code, or the status word
		rows   int64  // in the inbox afterwards
	}{
		{"a new event", "stripe", aged(0), body, 200, "accepted", 1},
		{"the same event", "stripe", aged(0), body, 200, "duplicate", 1},
		{"the same event with another signature", "stripe", aged(-time.Minute), body, 200, "duplicate", 1},
		{"a signed body that is no JSON", "stripe", w.signed([]byte("hello")), []byte("hello"), 200, "accepted", 2},
		{"the same again", "stripe", w.signed([]byte("hello")), []byte("hello"), 200, "duplicate", 2},
		{"a signed empty body", "stripe", w.signed(nil), nil, 200, "accepted", 3},
		{"no signature", "stripe", nil, body, 401, "missing_signature", 3},
		{"no signature and no body", "stripe", nil, nil, 401, "missing_signature", 3},
		{"an empty signature", "stripe", http.Header{"Stripe-Signature": {""}}, body, 401, "missing_signature", 3},
		{"an altered body", "stripe", aged(0), append(bytes.Clone(body), '\n'), 401, "bad_signature", 3},
		{"another secret", "stripe", stripeHeader(w.clock.Now(), body, "whsec_other"), body, 401, "bad_signature", 3},
		{"301 seconds old", "stripe", aged(-301 * time.Second), body, 401, "timestamp_out_of_tolerance", 3},
		{"301 seconds ahead", "stripe", aged(301 * time.Second), body, 401, "timestamp_out_of_tolerance", 3},
		{"a standard sender's missing id", "standard", http.Header{"Webhook-Timestamp": {"1"}, "Webhook-Signature": {"v1,x"}}, body, 401, "missing_signature", 3},
		{"a standard sender's missing timestamp", "standard", http.Header{"Webhook-Id": {"1"}, "Webhook-Signature": {"v1,x"}}, body, 401, "missing_signature", 3},
		{"another source", "nobody", aged(0), body, 404, "unknown_source", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := w.post(tt.source, tt.header, tt.body)
			if g.status != tt.status || g.code() != tt.want {
				t.Errorf("%d %s; want %d %s", g.status, g.body, tt.status, tt.want)
			}
			if n := w.events(); n != tt.rows {
				t.Errorf("%d rows; want %d", n, tt.rows)
			}
			if g.status == 200 && g.field(t, "event_id") == "" {
				t.Errorf("%s has no event_id", g.body)
			}
		})
	}
	if g := w.stripe("stripe", body); g.body != `{"status":"duplicate","event_id":"evt_1"}`+"\n" {
		t.Errorf("the answer is %q", g.body)
	}
}

// TestForeignEvents are signed, but not for this shop.
func TestForeignEvents(t *testing.T) {
	w := newWorld(t)
	account := []byte(`{"id":"evt_a","type":"payment_intent.succeeded","livemode":false,"account":"acct_B","data":{}}`)
	live := []byte(`{"id":"evt_l","type":"payment_intent.succeeded","livemode":true,"data":{}}`)
	if g := w.stripe("stripe", account); g.status != 403 || g.code() != "wrong_account" {
		t.Errorf("another account: %d %s", g.status, g.body)
	}
	if g := w.stripe("stripe", live); g.status != 403 || g.code() != "wrong_mode" {
		t.Errorf("live: %d %s", g.status, g.body)
	}
	if n := w.events(); n != 0 {
		t.Fatalf("%d rows; want none", n)
	}
	for _, tt := range []struct {
		body      []byte
		id, scope string
	}{{account, "evt_a", "stripe:acct_B:test"}, {live, "evt_l", "stripe:self:live"}} {
		wakes := w.wakes.Load()
		if g := w.stripe("lenient", tt.body); g.status != 200 || g.code() != "accepted" {
			t.Errorf("%s under ignore: %d %s", tt.id, g.status, g.body)
		}
		if g := w.stripe("lenient", tt.body); g.status != 200 || g.code() != "duplicate" {
			t.Errorf("%s under ignore again: %d %s", tt.id, g.status, g.body)
		}
		if e := w.event(tt.scope, tt.id); e.Status != "done" || e.Verdict != "ignored" || e.Reason == "" {
			t.Errorf("%s is %s, %s (%s); want done, ignored", tt.id, e.Status, e.Verdict, e.Reason)
		}
		if w.wakes.Load() != wakes {
			t.Errorf("%s woke the worker for nothing", tt.id)
		}
	}
}

// TestBodiesAreVerifiedAndKeptByteForByte (cases.md B01, B02, B66).
func TestBodiesAreVerifiedAndKeptByteForByte(t *testing.T) {
	w := newWorld(t)
	indented := "{\n    \"type\": \"charge.succeeded\",\n    \"name\": \"caf\\u00e9\",\n    \"livemode\": false,\n    \"id\": \"evt_%s\"\n}"
	crlf := strings.ReplaceAll(fmt.Sprintf(indented, "b"), "\n", "\r\n")
	newline := fmt.Sprintf(indented, "c") + "\n"
	for _, tt := range []struct{ name, id, body string }{
		{"indented, keys in reverse, escapes left", "evt_a", fmt.Sprintf(indented, "a")},
		{"CRLF", "evt_b", crlf},
		{"a newline at the end", "evt_c", newline},
		{"an emoji", "evt_d", `{"id":"evt_d","type":"t","livemode":false,"metadata":{"note":"🧾"}}`},
		{"what HTML would escape", "evt_h", `{"id":"evt_h","type":"t","livemode":false,"metadata":{"note":"<b>&</b>"}}`},
		{"an escaped NUL and half a surrogate pair", "evt_e", `{"id":"evt_e","type":"t","livemode":false,"metadata":{"note":"a\u0000b","s":"\ud83d"}}`},
		{"bytes that are no UTF-8", "", "{\"id\":\"evt_f\",\"type\":\"t\",\"livemode\":false,\"note\":\"\xff\xfe\"}"},
		{"a raw NUL", "", "{\"id\":\"evt_g\",\"type\":\"t\",\"note\":\"a\x00b\"}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := []byte(tt.body)
			if g := w.post("stripe", nil, body); g.status != 401 {
				t.Errorf("unsigned: %d; want 401", g.status)
			}
			g := w.stripe("stripe", body)
			if g.status != 200 {
				t.Fatalf("%d %s; want 200", g.status, g.body)
			}
			id := g.field(t, "event_id")
			if tt.id != "" && id != tt.id {
				t.Errorf("id %q; want %q", id, tt.id)
			}
			if kept := w.payload("stripe:self:test", id); !bytes.Equal(kept, body) {
				t.Errorf("kept %q; want %q", kept, body)
			}
			if g := w.call("GET", "/v1/events/"+id, ""); strings.Contains(tt.body, "<b>") && !strings.Contains(g.body, tt.body) {
				t.Errorf("shown as %s; want it as it came", g.body)
			}
		})
	}
	signature := w.signed([]byte(newline))
	if g := w.post("stripe", signature, []byte(strings.TrimSuffix(newline, "\n"))); g.code() != "bad_signature" {
		t.Errorf("without its newline: %s; want bad_signature", g.body)
	}
}

// payload is the stored body.
func (w *world) payload(scope, id string) []byte {
	w.t.Helper()
	e := w.event(scope, id)
	if e.PayloadEncoding == "base64" {
		return unbase64(w.t, strings.Trim(string(e.Payload), `"`))
	}
	return e.Payload
}

// TestRealSizesAreTaken (cases.md B03).
func TestRealSizesAreTaken(t *testing.T) {
	w := newWorld(t)
	head := `{"id":"evt_big","type":"checkout.session.completed","livemode":false,"data":{"object":{"object":"checkout.session","lines":[`
	line := `{"sku":"invented","quantity":1,"description":"a line item that somebody made up to be long enough for this test, as they are on invoices with many lines"}`
	body := []byte(head + line + strings.Repeat(","+line, 2000) + `]}}}`)
	if len(body) < 300<<10 {
		t.Fatalf("the body is %d bytes", len(body))
	}
	if g := w.stripe("stripe", body); g.status != 200 || g.code() != "accepted" {
		t.Errorf("300 KiB: %d %s", g.status, g.body)
	}
	if !bytes.Equal(w.payload("stripe:self:test", "evt_big"), body) {
		t.Error("300 KiB: the kept body differs")
	}
	push := bytes.Repeat([]byte("a"), 5<<20)
	if g := w.post("github", githubHeader(push, "d-1"), push); g.status != 200 {
		t.Errorf("5 MiB from GitHub: %d %s", g.status, g.body)
	}
	exact := bytes.Repeat([]byte(" "), 1<<20)
	if g := w.stripe("stripe", exact); g.status != 200 {
		t.Errorf("1 MiB: %d %s", g.status, g.body)
	}
	w.rejected("stripe", "too_large", 0)
	// Only announced: the answer does not wait for the body.
	if g := w.raw("POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n"); g.status != 413 || g.code() != "too_large" {
		t.Errorf("one byte more, announced: %d %s", g.status, g.body)
	}
	w.rejected("stripe", "too_large", 1)
	chunked := "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"100001\r\n" + strings.Repeat(" ", 1<<20+1) + "\r\n0\r\n\r\n"
	if g := w.raw(chunked); g.status != 413 || g.code() != "too_large" {
		t.Errorf("one byte more, in chunks: %d %s", g.status, g.body)
	}
	w.rejected("stripe", "too_large", 2)
}

func githubHeader(body []byte, id string) http.Header {
	h := http.Header{"X-Github-Event": {"push"},
		"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(sign([]byte(githubSecret), body))}}
	if id != "" {
		h.Set("X-GitHub-Delivery", id)
	}
	return h
}

// rejected checks how often a source's webhooks were refused with code.
func (w *world) rejected(source, code string, want int64) {
	w.t.Helper()
	var n int64
	for _, c := range w.h.Rejects().Counts {
		if c.Source == source && c.Code == code {
			n += c.Count
		}
	}
	if n != want {
		w.t.Errorf("%d %s of %q; want %d", n, code, source, want)
	}
}

// raw sends bytes to the public listener as they are, and reads one answer.
func (w *world) raw(request string) got {
	w.t.Helper()
	return w.rawTo(w.public, request)
}

func (w *world) rawTo(listener, request string) got {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(listener, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	return w.exchange(conn, request)
}

func (w *world) exchange(conn net.Conn, request string) got {
	w.t.Helper()
	method, _, _ := strings.Cut(request, " ")
	if _, err := io.WriteString(conn, request); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.seen.Write(b)
	return got{resp.StatusCode, resp.Header, string(b)}
}

// TestARequestThatCannotBeReadIsMalformed: the one 400 there is.
func TestARequestThatCannotBeReadIsMalformed(t *testing.T) {
	w := newWorld(t)
	body := string(testEvent("evt_1"))
	signature := w.signed([]byte(body)).Get("Stripe-Signature")
	for _, tt := range []struct{ name, request string }{
		{"shorter than its Content-Length", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body)+1, body)},
		{"a broken chunk", "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body},
		{"no last chunk", fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(w.public, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nStripe-Signature: "+signature+"\r\n"+tt.request); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			if g := (got{resp.StatusCode, resp.Header, string(b)}); g.status != 400 || g.code() != "malformed" {
				t.Errorf("%d %s; want 400 malformed", g.status, g.body)
			}
			if n := w.events(); n != 0 {
				t.Errorf("%d rows; want none", n)
			}
		})
	}
}

// TestPathsAreTakenAsSent: no redirect, ever (cases.md B06).
func TestPathsAreTakenAsSent(t *testing.T) {
	w := newWorld(t)
	body := testEvent("evt_1")
	for _, tt := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"POST", "/webhooks/stripe", 200, "accepted", ""},
		{"POST", "/webhooks/stripe?x=1", 200, "duplicate", ""},
		{"POST", "/webhooks/stripe/", 404, "unknown_source", ""},
		{"POST", "//webhooks/stripe", 404, "unknown_source", ""},
		{"POST", "/webhooks//stripe", 404, "unknown_source", ""},
		{"POST", "/x/../webhooks/stripe", 404, "unknown_source", ""},
		{"POST", "/webhooks/./stripe", 404, "unknown_source", ""},
		{"POST", "/webhooks/Stripe", 404, "unknown_source", ""},
		{"POST", "/webhooks/%73tripe", 404, "unknown_source", ""},
		{"POST", "/webhooks/", 404, "unknown_source", ""},
		{"POST", "/webhooks", 404, "unknown_source", ""},
		{"GET", "/webhooks/nobody", 404, "unknown_source", ""},
		{"POST", "/", 404, "not_found", ""},
		{"GET", "/v1/orders", 404, "not_found", ""},
		{"GET", "/readyz", 404, "not_found", ""},
		{"GET", "/metrics", 404, "not_found", ""},
		{"GET", "/webhooks/stripe", 405, "method_not_allowed", "POST"},
		{"HEAD", "/webhooks/stripe", 405, "", "POST"},
		{"PUT", "/webhooks/stripe", 405, "method_not_allowed", "POST"},
		{"OPTIONS", "/webhooks/stripe", 405, "method_not_allowed", "POST"},
		{"FOO", "/webhooks/stripe", 405, "method_not_allowed", "POST"},
		{"GET", "/healthz", 200, "ok", ""},
		{"HEAD", "/healthz", 200, "", ""},
		{"POST", "/healthz", 405, "method_not_allowed", "GET, HEAD"},
		{"GET", "/healthz/", 404, "not_found", ""},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			g := w.raw(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s",
				tt.method, tt.path, w.signed(body).Get("Stripe-Signature"), len(body), body))
			if tt.method == "HEAD" {
				if g.body != "" {
					t.Errorf("HEAD has the body %q", g.body)
				}
			} else if g.code() != tt.code {
				t.Errorf("%s; want %s", g.body, tt.code)
			}
			if g.status != tt.status || g.header.Get("Allow") != tt.allow || g.header.Get("Location") != "" {
				t.Errorf("%d, Allow %q, Location %q; want %d, %q", g.status, g.header.Get("Allow"), g.header.Get("Location"), tt.status, tt.allow)
			}
		})
	}
	if g := w.raw("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"); g.status != 404 {
		t.Errorf("OPTIONS *: %d; want 404", g.status)
	}
}

// TestAGitHubFormIsVerifiedAndKeptAsItCame (cases.md B07).
func TestAGitHubFormIsVerifiedAndKeptAsItCame(t *testing.T) {
	w := newWorld(t)
	form := []byte("payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D")
	header := githubHeader(form, "d-1")
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	if g := w.post("github", header, form); g.status != 200 || g.field(t, "event_id") != "d-1" {
		t.Fatalf("%d %s", g.status, g.body)
	}
	if e := w.event("github:github:-", "d-1"); e.Type != "push" || !bytes.Equal(w.payload("github:github:-", "d-1"), form) {
		t.Errorf("event %+v", e)
	}
	decoded := []byte(`{"ref":"refs/heads/main"}`)
	header = githubHeader(decoded, "d-2")
	if g := w.post("github", header, form); g.code() != "bad_signature" {
		t.Errorf("signed over the decoded JSON: %s; want bad_signature", g.body)
	}
	emoji := []byte(`{"ref":"x","title":"🎁 Ünïcode — 店"}`)
	if g := w.post("github", githubHeader(emoji, "d-3"), emoji); g.status != 200 || !bytes.Equal(w.payload("github:github:-", "d-3"), emoji) {
		t.Errorf("an emoji: %d %s", g.status, g.body)
	}
}

// TestDedupeWithoutASignedID (cases.md B18).
func TestDedupeWithoutASignedID(t *testing.T) {
	w := newWorld(t)
	a, b := []byte(`{"n":1}`), []byte(`{"n":2}`)
	send := func(source string, body []byte, id ...string) got {
		h := http.Header{"X-Signature": {hex.EncodeToString(sign([]byte(hmacSecret), body))}}
		if len(id) > 0 {
			h["X-Id"] = id
		}
		return w.post(source, h, body)
	}
	hashA, hashB := hashID(a), hashID(b)
	for _, tt := range []struct {
		name string
		got  got
		want string
		id   string
	}{
		{"A without an id", send("hmac", a), "accepted", hashA},
		{"A again", send("hmac", a), "duplicate", hashA},
		{"B without an id", send("hmac", b), "accepted", hashB},
		{"A with an empty id", send("hmac", a, ""), "duplicate", hashA},
		{"A as a replay under a fresh id", send("hmac", a, "fresh"), "duplicate", hashA},
		{"A on another source", send("hmac2", a), "accepted", hashA},
		{"an emoji as id", send("hmac", []byte(`{"n":3}`), "🎁"), "accepted", "🎁"},
		{"the same id with another body", send("hmac", []byte(`{"n":4}`), "🎁"), "duplicate", "🎁"},
		{"the same id on another source", send("hmac2", []byte(`{"n":3}`), "🎁"), "accepted", "🎁"},
		{"an id of 300 bytes", send("hmac", []byte(`{"n":5}`), strings.Repeat("a", 300)), "accepted", hashID([]byte(`{"n":5}`))},
	} {
		if tt.got.status != 200 || tt.got.code() != tt.want || tt.got.field(t, "event_id") != tt.id {
			t.Errorf("%s: %d %s; want %s %s", tt.name, tt.got.status, tt.got.body, tt.want, tt.id)
		}
	}
	d1 := githubHeader(a, "d-1")
	d2 := githubHeader(a, "d-2")
	if first, replay := w.post("github", d1, a), w.post("github", d2, a); first.code() != "accepted" || replay.code() != "duplicate" || replay.field(t, "event_id") != "d-1" {
		t.Errorf("GitHub's replay under a fresh id: %s, %s", first.body, replay.body)
	}
}

// TestOnlyExactKeysCount (cases.md B77): id and type are those of the exact
// case, and a body with one of them twice goes to a person.
func TestOnlyExactKeysCount(t *testing.T) {
	w := newWorld(t)
	folded := []byte(`{"id":"evt_K1","Id":"evt_K2","type":"customer.updated","TYPE":"payment_intent.succeeded","\u017ftatus":1,"livemode":false,"Livemode":true,"Account":"acct_X"}`)
	if g := w.stripe("stripe", folded); g.status != 200 || g.field(t, "event_id") != "evt_K1" {
		t.Fatalf("%d %s", g.status, g.body)
	}
	if e := w.event("stripe:self:test", "evt_K1"); e.Type != "customer.updated" {
		t.Errorf("type %q; want customer.updated", e.Type)
	}
	for _, body := range []string{
		`{"id":"evt_D1","id":"evt_D2","type":"t","livemode":false}`,
		`{"id":"evt_D3","i\u0064":"evt_D4","type":"t","livemode":false}`,
	} {
		if g := w.stripe("stripe", []byte(body)); g.status != 200 || g.field(t, "event_id") != hashID([]byte(body)) {
			t.Errorf("%s: %d %s; want it under its hash", body, g.status, g.body)
		}
	}
}

// TestUnusableSecretsAndHeaders (cases.md B71): one generic text for each code,
// whatever is wrong.
func TestUnusableSecretsAndHeaders(t *testing.T) {
	w := newWorld(t)
	body := testEvent("evt_1")
	now := w.clock.Now().Unix()
	good := v1(now, body, stripeSecret)
	texts := map[string]bool{}
	for _, line := range []string{
		"t=,v1=", "t=x,v1=zz", fmt.Sprintf("t=%d,v1=%s", now, good[:63]), fmt.Sprintf("t=%d,v1=%s0", now, good),
		fmt.Sprintf("t=%d,v1=", now), fmt.Sprintf("t=%d,v1=%s", now, v1(now, body, "")), "abc", "v1=" + good,
	} {
		g := w.post("stripe", http.Header{"Stripe-Signature": {line}}, body)
		if g.status != 401 || g.code() != "bad_signature" {
			t.Errorf("%s: %d %s", line, g.status, g.body)
		}
		texts[g.body] = true
	}
	for _, line := range []string{"757107ea", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59", "sha256=zz"} {
		g := w.post("github", http.Header{"X-Hub-Signature-256": {line}}, body)
		if g.status != 401 {
			t.Errorf("%s: %d %s", line, g.status, g.body)
		}
		texts[g.body] = true
	}
	if len(texts) != 1 {
		t.Errorf("%d texts; want one: %v", len(texts), texts)
	}
	if w.post("github", http.Header{"X-Hub-Signature": {"sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"}}, body).code() != "missing_signature" {
		t.Error("SHA-1 alone is a signature")
	}
	if n := w.events(); n != 0 {
		t.Errorf("%d rows; want none", n)
	}
	reasons := map[string]bool{}
	for _, c := range w.h.Rejects().Counts {
		reasons[c.Reason] = true
	}
	for _, want := range []string{"unreadable Stripe-Signature header", "signature mismatch", "X-Hub-Signature-256 header without sha256="} {
		if !reasons[want] || !strings.Contains(w.log.String(), want) {
			t.Errorf("the operator is not told %q: %v", want, reasons)
		}
	}
	if _, err := New(Config{Store: w.s, Wake: func() {}, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler),
		Sources: []Source{{Name: "a", Provider: ProviderStripe}}}); err == nil ||
		!strings.Contains(err.Error(), "no secret") || !strings.Contains(err.Error(), "token is empty") {
		t.Errorf("New without secret and token = %v", err)
	}
	twice := append(testSources(t), testSources(t)[0])
	if _, err := New(Config{Store: w.s, Wake: func() {}, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler), Sources: twice}); err == nil ||
		!strings.Contains(err.Error(), "two of this name") {
		t.Errorf("New with a source twice = %v", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("New took nothing")
	}
}

// TestAWrongSecretIsToldOnceAMinute (cases.md B84), and the ring keeps the rest.
func TestAWrongSecretIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logBuffer{}
		h := bareHandler(t, log, time.Now, nil)
		refuse := func(n int) {
			for range n {
				r, _ := http.NewRequest("POST", "/webhooks/stripe", strings.NewReader("BODYMARK"))
				r.Header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", time.Now().Unix(), v1(time.Now().Unix(), []byte("BODYMARK"), "whsec_wrong")))
				serveBare(h, r)
			}
		}
		lines := func() []string {
			var found []string
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "webhook refused") {
					found = append(found, line)
				}
			}
			return found
		}
		refuse(51)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "signature mismatch for source stripe\"") {
			t.Fatalf("after a burst: %q; want one line at once", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := lines(); len(got) != 2 || !strings.Contains(got[1], "signature mismatch for source stripe (50×)") {
			t.Fatalf("after a minute: %q; want a second line with the rest", got)
		}
		refuse(3)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := lines(); len(got) != 3 || !strings.Contains(got[2], "(3×)") {
			t.Fatalf("after another minute: %q; want a third line", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := lines(); len(got) != 3 {
			t.Fatalf("after a silent hour: %q; want no more lines", got)
		}
		refuse(300)
		list := h.Rejects()
		if len(list.Counts) != 1 || list.Counts[0].Count != 354 || list.Counts[0].Reason != "signature mismatch" {
			t.Errorf("counts %+v", list.Counts)
		}
		if len(list.Recent) != keptRejects || list.Recent[0].At.Before(list.Recent[1].At) || list.Recent[0].Size != 8 {
			t.Errorf("%d recent, first %+v", len(list.Recent), list.Recent[0])
		}
		if got := lines(); len(got) != 4 {
			t.Errorf("%q; want a line at once after the silence", got)
		}
		if strings.Contains(log.String(), "BODYMARK") {
			t.Error("the log holds a body")
		}
		time.Sleep(2 * time.Minute) // let the last timers run out
	})
}

// TestTheRingKeepsTheLatest, the newest first.
func TestTheRingKeepsTheLatest(t *testing.T) {
	r := newRejects()
	for i := range 2*keptRejects + 10 {
		r.add(Reject{Size: int64(i)})
	}
	recent := r.list().Recent
	if len(recent) != keptRejects {
		t.Fatalf("%d are kept; want %d", len(recent), keptRejects)
	}
	for i, x := range recent {
		if want := int64(2*keptRejects + 9 - i); x.Size != want {
			t.Fatalf("number %d is %d; want %d", i, x.Size, want)
		}
	}
}

// TestStrangersCannotGrowTheCounts (cases.md B81).
func TestStrangersCannotGrowTheCounts(t *testing.T) {
	h := bareHandler(t, &logBuffer{}, time.Now, nil)
	for i := range 2000 {
		r, _ := http.NewRequest("POST", fmt.Sprintf("/webhooks/BODYMARK-%d", i), strings.NewReader("x"))
		serveBare(h, r)
		r, _ = http.NewRequest(fmt.Sprintf("FOO%d", i), "/webhooks/stripe", strings.NewReader("x"))
		serveBare(h, r)
	}
	list := h.Rejects()
	if len(list.Counts) != 2 || len(h.quiet.open) != 2 {
		t.Errorf("%d counts, %d kinds of lines; want two of each: %+v", len(list.Counts), len(h.quiet.open), list.Counts)
	}
	for _, r := range list.Recent {
		if strings.Contains(fmt.Sprint(r), "BODYMARK") {
			t.Fatalf("a path is kept: %+v", r)
		}
	}
}

// bareHandler is a Handler without listeners, for tests inside a bubble.
func bareHandler(t testing.TB, log io.Writer, now func() time.Time, s Store) *Handler {
	t.Helper()
	token, err := NewToken(adminToken)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		s = &fakeStore{}
	}
	h, err := New(Config{Store: s, Sources: testSources(t), Wake: func() {}, Now: now, Token: token,
		Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestWhatIsNotStoredIs503 and says nothing of why.
func TestWhatIsNotStoredIs503(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		panic any
		level string
	}{
		{"the queue is full", fmt.Errorf("add event: the write queue is full: %w", &store.Problem{Code: store.CodeUnavailable, Message: "x"}), nil, "WARN"},
		{"the commit came too late", context.DeadlineExceeded, nil, "WARN"},
		{"an error that nobody expected", errors.New("constraint failed: BODYINNER"), nil, "ERROR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newFakeWorld(t, &fakeStore{add: func(context.Context, store.NewEvent) (store.Added, error) {
				return store.Added{}, tt.err
			}})
			g := w.stripe("stripe", testEvent("evt_1"))
			if g.status != 503 || g.code() != "unavailable" || strings.Contains(g.body, "INNER") || strings.Contains(g.body, "queue") {
				t.Errorf("%d %s; want 503 unavailable", g.status, g.body)
			}
			if n := w.wakes.Load(); n != 0 {
				t.Errorf("%d wakes; want none", n)
			}
			if !strings.Contains(w.log.String(), "level="+tt.level) || !strings.Contains(w.log.String(), "source=stripe") {
				t.Errorf("log %q; want a line at %s", w.log.String(), tt.level)
			}
			if len(w.h.Rejects().Counts) != 0 {
				t.Error("our own trouble counts as the sender's")
			}
		})
	}
}

// TestAPanicIsContained: one request must not end the process, and what was
// thrown may be a body.
func TestAPanicIsContained(t *testing.T) {
	for _, tt := range []struct {
		name   string
		thrown any
		index  []int // is left when nothing is thrown
	}{
		{"a body", "BODYMARK", nil},
		{"an error", errors.New("BODYMARK"), nil},
		{"a runtime error", nil, []int{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newFakeWorld(t, &fakeStore{add: func(context.Context, store.NewEvent) (store.Added, error) {
				if tt.thrown == nil {
					tt.index[len(tt.index)] = 0
				}
				panic(tt.thrown)
			}})
			for range 2 { // it lives on
				g := w.stripe("stripe", testEvent("evt_1"))
				if g.status != 500 || g.code() != "internal" {
					t.Errorf("%d %s; want 500 internal", g.status, g.body)
				}
			}
			if log := w.log.String(); !strings.Contains(log, "panic contained") || !strings.Contains(log, "stack=") {
				t.Errorf("log %q", log)
			}
			w.nothingHeld()
		})
	}
}

// nothingHeld checks that no request has left bytes in the gate.
func (w *world) nothingHeld() {
	w.t.Helper()
	w.h.bodies.mu.Lock()
	defer w.h.bodies.mu.Unlock()
	if w.h.bodies.used != 0 {
		w.t.Errorf("%d bytes are still held", w.h.bodies.used)
	}
}

// TestAClientThatLeavesCancelsNothing (cases.md B61), and none waits longer
// than the answer may take.
func TestAClientThatLeavesCancelsNothing(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	acks := 0
	f := &fakeStore{
		ack: func(time.Duration) { acks++ },
		add: func(work context.Context, e store.NewEvent) (store.Added, error) {
			leave()
			if work.Err() != nil {
				t.Errorf("the store's context ended with the client: %v", work.Err())
			}
			deadline, _ := work.Deadline()
			if wait := time.Until(deadline); wait <= 5*time.Second || wait > 8*time.Second {
				t.Errorf("the store may take %v; want more than busy_timeout and at most 8 s", wait)
			}
			return store.Added{ID: e.ID}, nil
		},
	}
	body := testEvent("evt_1")
	r, err := http.NewRequestWithContext(ctx, "POST", "/webhooks/stripe", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = stripeHeader(time.Now(), body, stripeSecret)
	if g := serveBare(bareHandler(t, io.Discard, time.Now, f), r); g.status != 200 {
		t.Errorf("%d %s", g.status, g.body)
	}
	if acks != 1 {
		t.Errorf("%d answers were timed; want one", acks)
	}
}

// TestClientsThatResetLeaveTheStoreWell posts into resets, then posts well.
func TestClientsThatResetLeaveTheStoreWell(t *testing.T) {
	w := newWorld(t)
	n := 200
	if testing.Short() {
		n = 40
	}
	address := strings.TrimPrefix(w.public, "http://")
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			body := testEvent(fmt.Sprintf("evt_r%d", i))
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(conn, "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s",
				w.signed(body).Get("Stripe-Signature"), len(body), body)
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		})
	}
	wg.Wait()
	for i := range 20 {
		if g := w.stripe("stripe", testEvent(fmt.Sprintf("evt_w%d", i))); g.status != 200 {
			t.Fatalf("%d %s", g.status, g.body)
		}
	}
}

// TestWhileDraining nothing new is taken, and the process says so.
func TestWhileDraining(t *testing.T) {
	w := newWorld(t)
	if g := w.do("GET", w.admin+"/readyz", nil, nil); g.status != 200 || g.code() != "ready" {
		t.Errorf("before: readyz %d %s", g.status, g.body)
	}
	w.h.SetDraining()
	if g := w.stripe("stripe", testEvent("evt_1")); g.status != 503 || g.code() != "unavailable" {
		t.Errorf("a webhook: %d %s", g.status, g.body)
	}
	if g := w.do("GET", w.admin+"/readyz", nil, nil); g.status != 503 || g.code() != "unavailable" {
		t.Errorf("readyz %d %s", g.status, g.body)
	}
	if g := w.do("GET", w.public+"/healthz", nil, nil); g.status != 200 {
		t.Errorf("healthz %d %s", g.status, g.body)
	}
	if n := w.events(); n != 0 {
		t.Errorf("%d rows; want none", n)
	}
}

func TestWhereAnEventCameFromIsKept(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ agent, want string }{
		{"Stripe/1.0 (+https://stripe.com/docs/webhooks)", "webhook"},
		{"paidonce-send/v0.1.0", "send"},
		{"not paidonce-send/v0.1.0", "webhook"},
	} {
		id := "evt_" + hexSum([]byte(tt.agent))[:8]
		body := testEvent(id)
		h := w.signed(body)
		h.Set("User-Agent", tt.agent)
		if g := w.post("stripe", h, body); g.status != 200 {
			t.Fatalf("%d %s", g.status, g.body)
		}
		e := w.event("stripe:self:test", id)
		if e.Via != tt.want || e.Source != "stripe" || e.Type != "payment_intent.succeeded" || e.APIVersion != "2024-06-20" ||
			e.OccurredAt.Std().Unix() != 1750000000 || e.Status != "pending" {
			t.Errorf("event %+v; want via %s", e, tt.want)
		}
	}
	if n := w.wakes.Load(); n != 3 {
		t.Errorf("%d wakes; want one for each new event", n)
	}
}

// TestTheSameEventFiftyTimesAtOnce is one row and no error (cases.md B14, B15).
func TestTheSameEventFiftyTimesAtOnce(t *testing.T) {
	w := newWorld(t)
	body := testEvent("evt_D1")
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[string]int{}
	for i := range 50 {
		source := []string{"stripe", "lenient"}[i%2]
		wg.Go(func() {
			r, _ := http.NewRequest("POST", w.public+"/webhooks/"+source, bytes.NewReader(body))
			r.Header = w.signed(body)
			resp, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			mu.Lock()
			defer mu.Unlock()
			codes[got{body: string(b)}.code()]++
		})
	}
	wg.Wait()
	if codes["accepted"] != 1 || codes["duplicate"] != 49 {
		t.Errorf("answers %v; want one accepted, 49 duplicates", codes)
	}
	if e := w.event("stripe:self:test", "evt_D1"); e.Deliveries != 50 {
		t.Errorf("%d deliveries; want 50", e.Deliveries)
	}
}

// TestCollectedBodiesAreAnswered posts every public body that was collected.
func TestCollectedBodiesAreAnswered(t *testing.T) {
	files, err := filepath.Glob("../../shared/fixtures/*.json")
	if err != nil || len(files) == 0 {
		t.Skip("the collected fixtures are not here")
	}
	w := newWorld(t)
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		env := parse(body)
		want := 200
		if env.Account != "" || env.HasLivemode && env.Livemode {
			want = 403
		}
		if g := w.stripe("stripe", body); g.status != want {
			t.Errorf("%s: %d %s; want %d", name, g.status, g.body, want)
		}
		for _, source := range []string{"lenient", "connect"} {
			if g := w.stripe(source, body); g.status != 200 {
				t.Errorf("%s at %s: %d %s; want 200", name, source, g.status, g.body)
			}
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	w := newWorld(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.public, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nStripe-Signature: "+strings.Repeat("v1=0,", 40000)+"\r\n\r\n")
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d; want 431", resp.StatusCode)
	}
}
