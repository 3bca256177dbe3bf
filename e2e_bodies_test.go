package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"paidonce/store"
)

// bodyCase is a signed body that other people's systems fell over (cases.md),
// and what must become of it. In the text, EVT, PI and ORD stand for ids of
// the case's own; an order ORD of 12.50 EUR waits when it arrives.
type bodyCase struct {
	name    string
	body    string
	hash    bool   // it has no usable id and is kept under its hash
	status  string // of the event
	verdict string
	order   string // its status afterwards
}

// intent is a payment of 12.50 EUR. Its parts that a case may change are
// between the backquotes of the call.
func intent(before, metadata string) string {
	return `{` + before + `"id":"EVT","object":"event","created":1750000000,"livemode":false,"type":"payment_intent.succeeded",` +
		`"data":{"object":{"id":"PI","object":"payment_intent","amount":1250,"amount_received":1250,"currency":"eur",` +
		`"status":"succeeded","metadata":` + metadata + `}}}`
}

const ours = `{"order_id":"ORD"}`

// spread is a payment as a person would write it: keys in reverse, indented,
// with an escape that needs none.
const spread = `{
    "type": "payment_intent.succeeded",
    "livemode": false,
    "name": "caf\u00e9",
    "data": {
        "object": {
            "status": "succeeded",
            "object": "payment_intent",
            "metadata": {
                "order_id": "ORD"
            },
            "id": "PI",
            "currency": "eur",
            "amount_received": 1250,
            "amount": 1250
        }
    },
    "created": 1750000000,
    "id": "EVT"
}`

// large is a paid session with 2,000 line items: more than 300 KiB.
func large() string {
	line := `{"object":"item","description":"An invented thing that is described at the length at which shops describe things, and then some more","amount":1,"quantity":1}`
	return `{"id":"EVT","object":"event","created":1750000000,"livemode":false,"type":"checkout.session.completed",` +
		`"data":{"object":{"id":"cs_test_PI","object":"checkout.session","mode":"payment","status":"complete","payment_status":"paid",` +
		`"amount_subtotal":1250,"amount_total":1250,"currency":"eur","payment_intent":"PI","client_reference_id":"ORD",` +
		`"line_items":{"object":"list","data":[` + strings.Repeat(line+",", 1999) + line + `]}}}}`
}

func nested(depth int) string {
	return `"deep":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `,`
}

func bodyCases() []bodyCase {
	const paid, waits = "paid", "awaiting_payment"
	return []bodyCase{
		{"B01 indented, keys in reverse, escapes left", spread, false, "done", "applied", paid},
		{"B01 lines that end in CRLF", strings.ReplaceAll(spread, "\n", "\r\n"), false, "done", "applied", paid},
		{"B01 a newline at the end", spread + "\n", false, "done", "applied", paid},
		{"B02 an emoji and umlauts", intent(`"name":"Ünïcode — 店",`, `{"order_id":"ORD","note":"🧾"}`), false, "done", "applied", paid},
		{"B02 bytes that are no UTF-8", intent(``, "{\"order_id\":\"ORD\",\"note\":\"\xff\xfe\"}"), false, "quarantined", "malformed", waits},
		{"B03 a session of 300 KiB", large(), false, "done", "applied", paid},
		{"B08 an API version of 2015, a request that is a text", intent(`"api_version":"2015-02-16","request":"req_old",`, ours), false, "done", "applied", paid},
		{"B08 an API version of the future, unknown keys", intent(`"api_version":"2099-01-01.future","novelty":{"deep":[[[]]]},`, ours), false, "done", "applied", paid},
		{"B08 no API version", intent(`"api_version":null,`, ours), false, "done", "applied", paid},
		{"B08 a charge whose intent is null", `{"id":"EVT","object":"event","created":1750000000,"livemode":false,"type":"charge.succeeded",` +
			`"data":{"object":{"id":"ch_PI","object":"charge","amount":1250,"amount_captured":1250,"amount_refunded":0,"currency":"eur","captured":true,"paid":true,` +
			`"status":"succeeded","payment_intent":null,"metadata":` + ours + `}}}`, false, "done", "applied", paid},
		{"B08 an intent without charges", strings.Replace(intent(``, ours), `"status"`, `"latest_charge":null,"status"`, 1), false, "done", "applied", paid},
		{"B09 a type that is none of ours", `{"id":"EVT","object":"event","created":1750000000,"livemode":false,"type":"billing_portal.session.created",` +
			`"data":{"object":{"id":"bps_PI","object":"billing_portal.session","metadata":` + ours + `}}}`, false, "done", "ignored", waits},
		{"B09 an event of API v2 without an object", `{"id":"EVT","object":"v2.core.event","created":"2025-06-15T15:06:40.000Z","livemode":false,"type":"v2.core.event_destination.ping"}`,
			false, "done", "ignored", waits},
		{"B09 a payment that names no order", intent(``, `{}`), false, "done", "unlinked", waits},
		{"B66 an escaped NUL and half a surrogate pair", intent(``, `{"order_id":"ORD","note":"a\u0000b","s":"\ud83d"}`), false, "done", "applied", paid},
		{"B66 a raw NUL", intent(``, "{\"order_id\":\"ORD\",\"note\":\"a\x00b\"}"), true, "quarantined", "malformed", waits},
		{"B77 keys that differ in case alone", `{"id":"EVT","Id":"evt_other","type":"customer.updated","TYPE":"payment_intent.succeeded","created":1750000000,"livemode":false,` +
			`"data":{"object":{"id":"PI","object":"customer","Object":"payment_intent","Amount_Received":1250,"\u017ftatus":"succeeded","metadata":` + ours + `}}}`,
			false, "done", "ignored", waits},
		{"B77 an amount beside one of another case", strings.Replace(intent(``, ours), `"amount_received":1250`, `"amount_received":1,"Amount_Received":1250`, 1),
			false, "quarantined", "amount_mismatch", waits},
		{"B77 an amount twice", strings.Replace(intent(``, ours), `"amount_received":1250`, `"amount_received":1250,"amount_received":1`, 1),
			false, "quarantined", "malformed", waits},
		{"an amount as a text", strings.Replace(intent(``, ours), `"amount_received":1250`, `"amount_received":"1250"`, 1), false, "quarantined", "malformed", waits},
		{"an amount that is no whole number", strings.Replace(intent(``, ours), `"amount_received":1250`, `"amount_received":1250.5`, 1), false, "quarantined", "malformed", waits},
		{"an amount beyond 64 bits", strings.Replace(intent(``, ours), `"amount_received":1250`, `"amount_received":18446744073709552866`, 1), false, "quarantined", "malformed", waits},
		{"nothing at all", ``, true, "quarantined", "malformed", waits},
		{"a list", `[` + intent(``, ours) + `]`, true, "quarantined", "malformed", waits},
		{"two events in one body", intent(``, ours) + intent(``, ours), true, "quarantined", "malformed", waits},
		{"a body that ends in the middle", strings.TrimSuffix(intent(``, ours), `}}`), true, "quarantined", "malformed", waits},
		{"five thousand brackets", intent(nested(5_000), ours), false, "done", "applied", paid},
		{"fifty thousand brackets", intent(nested(50_000), ours), true, "quarantined", "malformed", waits},
	}
}

// TestBodiesThatOthersFellOver posts each body through the whole program:
// without a signature, it leaves no row; with one, it is answered 200, kept byte
// for byte, and worked on as the case says. A healthy payment after each shows
// that its neighbours do not suffer.
func TestBodiesThatOthersFellOver(t *testing.T) {
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"], w.env["GITHUB_SECRET"] = goodSecret, "a-github-secret-for-this-test"
	w.env["PAIDONCE_ADMIN_TOKEN"] = "a-token-for-this-test"
	w.write(defaultFile, `
[[source]]
name = "stripe"
provider = "stripe"
secrets = ["env:STRIPE_WEBHOOK_SECRET"]

[[source]]
name = "github"
provider = "github"
secrets = ["env:GITHUB_SECRET"]
`)
	s := w.serve()
	kept := map[string][]byte{} // event → its body as it was sent
	for i, c := range bodyCases() {
		t.Run(c.name, func(t *testing.T) {
			ids := strings.NewReplacer("EVT", fmt.Sprintf("evt_body%d", i), "PI", fmt.Sprintf("pi_body%d", i), "ORD", fmt.Sprintf("body-%d", i))
			body, order := []byte(ids.Replace(c.body)), ids.Replace("ORD")
			registerOrder(t, s, order)
			if code, answer := postWith(t, s, "stripe", body, "Stripe-Signature", "t=1,v1=00"); code != http.StatusUnauthorized {
				t.Errorf("not signed: %d %s, want 401", code, answer)
			}
			code, answer := postSigned(t, s, body)
			if code != http.StatusOK {
				t.Fatalf("signed: %d %s, want 200", code, answer)
			}
			id := ids.Replace("EVT")
			if c.hash {
				id = fmt.Sprintf("sha256:%x", sha256.Sum256(body))
			}
			kept[id] = body
			e := settledEvent(t, s, id)
			if e.Status != c.status || e.Verdict != c.verdict || e.Attempts != 0 || e.Deliveries != 1 {
				t.Errorf("%+v, want it %s, %s at the first attempt", e, c.status, c.verdict)
			}
			if e.Verdict != "applied" && e.Reason == "" {
				t.Errorf("%+v says no reason", e)
			}
			wantOrder(t, s, order, c.order)
			if testing.Short() && e.Status == "done" {
				return
			}

			healthy, next := []byte(strings.NewReplacer("EVT", fmt.Sprintf("evt_next%d", i), "PI", fmt.Sprintf("pi_next%d", i),
				"ORD", fmt.Sprintf("next-%d", i)).Replace(intent(``, ours))), fmt.Sprintf("next-%d", i)
			registerOrder(t, s, next)
			if code, answer := postSigned(t, s, healthy); code != http.StatusOK {
				t.Errorf("the next one: %d %s, want 200", code, answer)
			}
			settledEvent(t, s, fmt.Sprintf("evt_next%d", i))
			wantOrder(t, s, next, "paid")
			kept[fmt.Sprintf("evt_next%d", i)] = healthy
		})
	}
	t.Run("B01 a newline that was signed and is gone", func(t *testing.T) {
		body := []byte(strings.NewReplacer("EVT", "evt_cut", "PI", "pi_cut", "ORD", "cut").Replace(spread))
		if code, answer := postWith(t, s, "stripe", body, "Stripe-Signature", signStripe(append(body, '\n'))); code != http.StatusUnauthorized {
			t.Errorf("%d %s, want 401", code, answer)
		}
	})
	t.Run("B02, B03 a push of 5 MiB with an emoji", func(t *testing.T) {
		body := []byte(`{"ref":"x","title":"🎁 Ünïcode — 店","padding":"` + strings.Repeat("p", 5<<20) + `"}`)
		mac := hmac.New(sha256.New, []byte(w.env["GITHUB_SECRET"]))
		mac.Write(body)
		code, answer := postWith(t, s, "github", body, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)),
			"X-GitHub-Event", "push", "X-GitHub-Delivery", "delivery-1", "Content-Type", "application/json")
		if code != http.StatusOK {
			t.Fatalf("%d %s, want 200", code, answer)
		}
		var said struct {
			EventID string `json:"event_id"`
		}
		if err := json.Unmarshal(answer, &said); err != nil {
			t.Fatal(err)
		}
		kept[said.EventID] = body
		waitUntil(t, "the push is worked on", func() bool { // by the list, which does not carry the 5 MiB
			var page struct{ Items []demoEvent }
			getJSON(t, s, "/v1/events?source=github", &page)
			return len(page.Items) == 1 && page.Items[0].Status == "done"
		})
	})
	t.Run("B03 one byte over the limit", func(t *testing.T) {
		body := bytes.Repeat([]byte{' '}, 1<<20+1)
		code, answer := postSigned(t, s, body)
		if code != http.StatusRequestEntityTooLarge || !bytes.Contains(answer, []byte(`"too_large"`)) {
			t.Errorf("%d %s, want 413 too_large", code, answer)
		}
	})
	exit, log := s.end()
	if exit != 0 {
		t.Errorf("exit %d", exit)
	}
	unwanted(t, "the log", log, "panic", `"level":"ERROR"`)
	wantParts(t, "the log", log, "too_large", "bad_signature")
	wantKept(t, kept)
}

// wantKept fails unless the file holds these events and no other, each worked
// on, with its body byte for byte.
func wantKept(t *testing.T, kept map[string][]byte) {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Path: defaultDB, Mode: store.Client, Env: "sandbox", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	page, err := st.ListEvents(t.Context(), store.EventFilter{Limit: 200})
	if err != nil || len(page.Items) != len(kept) {
		t.Errorf("%d rows, %v; want %d", len(page.Items), err, len(kept))
	}
	for _, e := range page.Items {
		if e.Status == "pending" {
			t.Errorf("%s was left pending, %s", e.ID, e.Verdict)
		}
		if _, ok := kept[e.ID]; !ok {
			t.Errorf("a row %s, %s, %s that nobody was told of", e.ID, e.Status, e.Verdict)
		}
	}
	broken, err := st.CheckInvariants(t.Context())
	if err != nil || len(broken) != 0 {
		t.Errorf("broken: %q, %v", broken, err)
	}
	db := openFile(t)
	for id, body := range kept {
		var stored []byte
		err := db.QueryRowContext(t.Context(), `SELECT p.body FROM payloads p JOIN events e ON e.id = p.event WHERE e.event_id = ?`, id).Scan(&stored)
		if err != nil || !bytes.Equal(stored, body) {
			t.Errorf("%s: %d bytes are kept, %v; want the %d that were sent, byte for byte", id, len(stored), err, len(body))
		}
	}
}

func registerOrder(t *testing.T, s *served, id string) {
	t.Helper()
	code, answer := admin(t, s, http.MethodPost, "/v1/orders", fmt.Sprintf(`{"id":%q,"total_minor":1250,"currency":"eur"}`, id))
	if code != http.StatusCreated {
		t.Fatalf("register %s: %d %s", id, code, answer)
	}
}

// wantOrder fails unless the order has the status, and money only if it is paid.
func wantOrder(t *testing.T, s *served, id, status string) {
	t.Helper()
	var o demoOrder
	getJSON(t, s, "/v1/orders/"+id, &o)
	received, times := int64(0), 0
	if status == "paid" {
		received, times = 1250, 1
	}
	if o.Status != status || o.ReceivedMinor != received || o.paidTimes() != times {
		t.Errorf("order %s is %+v, want it %s with %d received", id, o, status, received)
	}
}

// settledEvent waits until an event is worked on.
func settledEvent(t *testing.T, s *served, id string) (e demoEvent) {
	t.Helper()
	waitUntil(t, id+" is worked on", func() bool {
		getJSON(t, s, "/v1/events/"+id, &e)
		return e.Status != "pending"
	})
	return e
}

// waitUntil looks again and again, for half a minute at most.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("after half a minute it is still not true that %s", what)
		}
	}
}

func admin(t *testing.T, s *served, method, path, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.admin+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return call(t, req)
}

// postWith posts a body to a source with the headers given, in pairs.
func postWith(t *testing.T, s *served, source string, body []byte, header ...string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.public+"/webhooks/"+source, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// signStripe is Stripe's signature over body, now.
func signStripe(body []byte) string {
	at := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(goodSecret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
