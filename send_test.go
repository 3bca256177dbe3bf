package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"
	"github.com/stripe/stripe-go/v82/webhook"

	"paidonce/store/payment"
)

// receiver is a webhook endpoint as Stripe's own library makes one: what it
// accepts, an application that uses the library accepts.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	events []stripe.Event
	bodies []string
	agents []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, "cannot read", http.StatusBadRequest)
			return
		}
		e, err := webhook.ConstructEvent(body, req.Header.Get("Stripe-Signature"), goodSecret)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error":{"code":"bad_signature"}}`)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events, r.bodies, r.agents = append(r.events, e), append(r.bodies, string(body)), append(r.agents, req.UserAgent())
		_, _ = fmt.Fprintf(w, "{\"status\": \"accepted\",\n\"event_id\": %q}", e.ID)
	}))
	t.Cleanup(r.Close)
	return r
}

// newSender makes a world with a database and a secret, and a receiver.
func newSender(t *testing.T) (*world, *receiver) {
	t.Helper()
	w := newShop(t)
	w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
	return w, newReceiver(t)
}

// send sends and returns the one event that arrived.
func (w *world) send(r *receiver, args ...string) (e stripe.Event, body string) {
	w.t.Helper()
	before := len(r.events)
	w.must(append([]string{"send", "--url", r.URL + "/webhooks/stripe"}, args...)...)
	if len(r.events) != before+1 {
		w.t.Fatalf("%d events arrived; want 1", len(r.events)-before)
	}
	return r.events[before], r.bodies[before]
}

func TestStripesLibraryAcceptsEveryBuiltInEvent(t *testing.T) {
	w, r := newSender(t)
	if len(templateTypes()) != 17 {
		t.Errorf("%d built-in events; want 17", len(templateTypes()))
	}
	for _, typ := range templateTypes() {
		t.Run(typ, func(t *testing.T) {
			e, body := w.send(r, typ)
			again, _ := w.send(r, typ)
			if string(e.Type) != typ || e.APIVersion != stripe.APIVersion || e.Livemode {
				t.Errorf("type %s, version %s, livemode %t", e.Type, e.APIVersion, e.Livemode)
			}
			if e.ID == again.ID || e.Data.Object["id"] == again.Data.Object["id"] {
				t.Errorf("two calls sent the same ids: %s, %v", e.ID, e.Data.Object["id"])
			}
			if age := time.Since(time.Unix(e.Created, 0)); age < -time.Minute || age > time.Minute {
				t.Errorf("created %s ago; want now", age)
			}
			if strings.Contains(body, templateID) || len(body) < 1000 {
				t.Errorf("not a finished event:\n%s", body)
			}
			if d := payment.Decode([]byte(body)); d.Verdict != "" {
				t.Errorf("Decode: %s, %s", d.Verdict, d.Reason)
			}
			if !strings.HasPrefix(r.agents[0], "paidonce-send/") {
				t.Errorf("User-Agent %s", r.agents[0])
			}
		})
	}
}

// object returns the data.object of an event with its numbers as written.
func object(t *testing.T, body string) map[string]any {
	t.Helper()
	var e struct {
		Data struct{ Object map[string]any }
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e.Data.Object
}

func TestAnEventOfAnOrderCarriesItsTotalAndCurrency(t *testing.T) {
	w, r := newSender(t)
	w.must("orders", "add", "--id", "A1", "--total", "19.99", "--currency", "eur")
	w.must("orders", "add", "--id", "J/1", "--total", "500", "--currency", "jpy")
	for _, tt := range []struct {
		typ, order string
		want       map[string]string // path in data.object → value
	}{
		{"payment_intent.succeeded", "A1", map[string]string{"amount": "1999", "amount_received": "1999", "amount_capturable": "0", "currency": "eur", "metadata.order_id": "A1"}},
		{"payment_intent.amount_capturable_updated", "A1", map[string]string{"amount": "1999", "amount_received": "0", "amount_capturable": "1999"}},
		{"payment_intent.payment_failed", "A1", map[string]string{"amount": "1999", "amount_received": "0", "status": "requires_payment_method"}},
		{"checkout.session.completed", "J/1", map[string]string{"amount_total": "500", "amount_subtotal": "500", "currency": "jpy", "metadata.order_id": "J/1", "client_reference_id": "J/1"}},
		{"charge.succeeded", "A1", map[string]string{"amount": "1999", "amount_captured": "1999", "amount_refunded": "0", "metadata.order_id": "A1"}},
		{"charge.refunded", "A1", map[string]string{"amount_captured": "1999", "amount_refunded": "1999"}},
		{"refund.created", "A1", map[string]string{"amount": "1999", "currency": "eur", "metadata.order_id": ""}},
		{"charge.dispute.created", "A1", map[string]string{"amount": "1999", "balance_transactions.0.amount": "-1999", "balance_transactions.0.net": "-3499", "balance_transactions.0.currency": "eur"}},
	} {
		t.Run(tt.typ, func(t *testing.T) {
			_, body := w.send(r, tt.typ, "--order", tt.order)
			root, err := parseJSON([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range tt.want {
				n := root.at(append([]string{"data", "object"}, strings.Split(path, ".")...)...)
				got := ""
				if n != nil {
					got = strings.Trim(string(n.scalar), `"`)
				}
				if got != want {
					t.Errorf("%s = %s; want %s", path, got, want)
				}
			}
		})
	}
}

func TestTheEventsOfAnOrderAreOfOnePayment(t *testing.T) {
	w, r := newSender(t)
	w.must("orders", "add", "--id", "A1", "--total", "5", "--currency", "eur")
	w.must("orders", "add", "--id", "A2", "--total", "5", "--currency", "eur", "--payment-intent", "pi_mine")
	paid, _ := w.send(r, "payment_intent.succeeded", "--order", "A1")
	session, _ := w.send(r, "checkout.session.completed", "--order", "A1")
	refund, _ := w.send(r, "refund.created", "--order", "A1")
	dispute, _ := w.send(r, "charge.dispute.closed", "--order", "A1")
	other, _ := w.send(r, "payment_intent.succeeded", "--order", "A2")
	id := paid.Data.Object["id"]
	for _, e := range []stripe.Event{session, refund, dispute} {
		if e.Data.Object["payment_intent"] != id {
			t.Errorf("%s is of %v; want %v", e.Type, e.Data.Object["payment_intent"], id)
		}
		if e.ID == paid.ID {
			t.Errorf("%s has the id of another event", e.Type)
		}
	}
	if refund.Data.Object["charge"] != paid.Data.Object["latest_charge"] {
		t.Errorf("the refund is of %v; want %v", refund.Data.Object["charge"], paid.Data.Object["latest_charge"])
	}
	if got := other.Data.Object["id"]; got != "pi_mine" {
		t.Errorf("payment intent %v; want the registered pi_mine", got)
	}
}

func TestAFreeOrderHasNoPaymentIntent(t *testing.T) {
	w, r := newSender(t)
	w.must("orders", "add", "--id", "F", "--total", "0", "--currency", "eur")
	_, body := w.send(r, "checkout.session.completed", "--order", "F")
	got := object(t, body)
	if got["payment_status"] != "no_payment_required" || got["payment_intent"] != nil || got["amount_total"] != json.Number("0") {
		t.Errorf("payment_status %v, payment_intent %v, amount_total %v", got["payment_status"], got["payment_intent"], got["amount_total"])
	}
}

func TestSettingsAndAgeChangeTheEvent(t *testing.T) {
	w, r := newSender(t)
	w.now = time.Now().Truncate(time.Second)
	e, body := w.send(r, "payment_intent.succeeded", "--late", "2h",
		"--set", "id=evt_mine", "--set", "data.object.amount_received=9007199254740993",
		"--set", "data.object.metadata.order_id=A9", "--set", `data.object.description="7"`, "--set", "account=acct_1A")
	got := object(t, body)
	if e.ID != "evt_mine" || e.Account != "acct_1A" {
		t.Errorf("id %s, account %s", e.ID, e.Account)
	}
	if want := w.now.Add(-2 * time.Hour).Unix(); e.Created != want {
		t.Errorf("created %d; want %d", e.Created, want)
	}
	if got["amount_received"] != json.Number("9007199254740993") || got["description"] != "7" {
		t.Errorf("amount_received %v, description %v", got["amount_received"], got["description"])
	}
	if m, _ := got["metadata"].(map[string]any); m["order_id"] != "A9" {
		t.Errorf("metadata %v", got["metadata"])
	}
}

func TestAFileIsSentByteForByte(t *testing.T) {
	w, r := newSender(t)
	const body = "{ \"id\" : \"evt_f\",\r\n \"object\":\"event\", \"api_version\":\"2025-08-27.basil\", \"type\":\"x.y\", \"data\":{\"object\":{\"n\":1.50}} }\n"
	w.write("event.json", body)
	if _, got := w.send(r, "event.json"); got != body {
		t.Errorf("the file arrived as %q", got)
	}
	w.in = body
	if _, got := w.send(r, "-"); got != body {
		t.Errorf("stdin arrived as %q", got)
	}
	if _, got := w.send(r, "event.json", "--set", "type=x.z"); !strings.Contains(got, `"x.z"`) || !strings.Contains(got, "1.50") {
		t.Errorf("the edited file arrived as %s", got)
	}
	w.write("broken.json", "{")
	exit, _, stderr := w.run("send", "broken.json", "--set", "a=1", "--url", r.URL)
	if exit != 1 || !strings.Contains(stderr, "cannot be edited") {
		t.Errorf("a broken file with --set: exit %d, %s", exit, stderr)
	}
}

func TestOneEventIsSentManyTimes(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		t.Run(fmt.Sprintf("concurrent %t", concurrent), func(t *testing.T) {
			w, r := newSender(t)
			var answers []answer
			w.mustJSON(&answers, "send", "charge.succeeded", "--url", r.URL, "--times", "20", fmt.Sprintf("--concurrent=%t", concurrent))
			if len(answers) != 20 || len(r.bodies) != 20 {
				t.Fatalf("%d answers to %d events; want 20", len(answers), len(r.bodies))
			}
			slices.Sort(r.bodies)
			if len(slices.Compact(r.bodies)) != 1 {
				t.Error("the bodies differ")
			}
			for _, a := range answers {
				if a.Status != 200 || !strings.HasPrefix(string(a.Body), "{") {
					t.Errorf("answer %+v", a)
				}
			}
		})
	}
}

func TestTheAnswersDecideTheExit(t *testing.T) {
	var status int
	var text string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	for _, tt := range []struct {
		name   string
		status int
		text   string
		args   []string
		exit   int
		stdout string
		stderr string
	}{
		{"taken", 200, `{"status":"accepted"}`, nil, 0, `200 {"status":"accepted"}`, ""},
		{"another 2xx", 204, ``, nil, 0, `204 ""`, ""},
		{"refused", 401, `{"error":{}}`, nil, 1, `401 {"error":{}}`, "1 of 1 were not answered with 2xx"},
		{"a redirect is not followed", 302, `moved`, nil, 1, `302 "moved"`, "1 of 1 were not answered with 2xx"},
		{"not now", 503, "<b>\x1b[2J</b>", []string{"--times", "2"}, 1, `503 `, "2 of 2 were not answered with 2xx"},
		{"a wrong signature is refused", 401, `{}`, []string{"--bad-signature"}, 0, "401 {}", ""},
		{"a wrong signature is taken", 200, `{}`, []string{"--bad-signature"}, 1, "200 {}", "1 of 1 were not refused with 401"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, text = tt.status, tt.text
			w := newWorld(t)
			w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
			exit, stdout, stderr := w.run(append([]string{"send", "charge.succeeded", "--url", server.URL}, tt.args...)...)
			if exit != tt.exit {
				t.Errorf("exit %d; want %d", exit, tt.exit)
			}
			wantParts(t, "stdout", stdout, "charge.succeeded evt_", tt.stdout)
			wantParts(t, "stderr", stderr, tt.stderr)
			unwanted(t, "stdout", stdout, "\x1b")
		})
	}
}

func TestASignatureCanBeWrongOrOld(t *testing.T) {
	w, r := newSender(t)
	exit, stdout, stderr := w.run("send", "charge.succeeded", "--url", r.URL, "--bad-signature")
	if exit != 0 {
		t.Errorf("--bad-signature: exit %d\n%s%s", exit, stdout, stderr)
	}
	if exit, stdout, _ := w.run("send", "charge.succeeded", "--url", r.URL, "--age", "10m"); exit != 1 || !strings.Contains(stdout, "401 ") {
		t.Errorf("--age 10m: exit %d\n%s", exit, stdout)
	}
	if len(r.events) != 0 {
		t.Errorf("%d events were taken", len(r.events))
	}
}

func TestTheSecretComesFromTheSource(t *testing.T) {
	const toml = "[[source]]\nname = \"shop\"\nprovider = \"stripe\"\nsecrets = [\"file:shop.secret\"]\n[[source]]\nname = \"git\"\nprovider = \"github\"\nsecrets = [\"env:GIT\"]\n"
	for _, tt := range []struct {
		name string
		env  map[string]string
		toml string
		args []string
		exit int
		want string // in stderr
	}{
		{"the variable", map[string]string{"STRIPE_WEBHOOK_SECRET": goodSecret}, "", nil, 0, ""},
		{"the first of the variable", map[string]string{"STRIPE_WEBHOOK_SECRET": goodSecret + ",whsec_old"}, "", nil, 0, ""},
		{"a source of the file", nil, toml, []string{"--source", "shop"}, 0, ""},
		{"a named place", map[string]string{"S": goodSecret}, "", []string{"--secret", "env:S"}, 0, ""},
		{"a named file", nil, "", []string{"--secret", "file:shop.secret"}, 0, ""},
		{"nothing", nil, "", nil, 1, "there is no secret to sign with"},
		{"an empty variable", map[string]string{"STRIPE_WEBHOOK_SECRET": ""}, "", nil, 1, "STRIPE_WEBHOOK_SECRET: is empty"},
		{"an API key", map[string]string{"STRIPE_WEBHOOK_SECRET": "sk_test_MARK"}, "", nil, 1, "STRIPE_WEBHOOK_SECRET: "},
		{"the secret itself", nil, "", []string{"--secret", "whsec_MARK"}, 2, "a secret does not belong here"},
		{"a source that does not sign so", map[string]string{"GIT": "MARK"}, toml, []string{"--source", "git"}, 2, "source git is a github source"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, r := newSender(t)
			w.env = tt.env
			w.write("shop.secret", goodSecret+"\n")
			if tt.toml != "" {
				w.write("paidonce.toml", tt.toml)
			}
			exit, _, stderr := w.run(append([]string{"send", "charge.succeeded", "--url", r.URL}, tt.args...)...)
			if exit != tt.exit {
				t.Errorf("exit %d; want %d", exit, tt.exit)
			}
			wantParts(t, "stderr", stderr, tt.want)
			unwanted(t, "stderr", stderr, "MARK", goodSecret)
		})
	}
}

func TestSendTellsWhereNobodyListens(t *testing.T) {
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
	server := httptest.NewServer(http.NotFoundHandler())
	url := strings.Replace(server.URL, "http://", "http://u:MARK@", 1)
	server.Close()
	exit, stdout, stderr := w.run("send", "charge.succeeded", "--url", url+"/hook?token=MARK")
	if exit != 1 {
		t.Errorf("exit %d; want 1", exit)
	}
	wantParts(t, "stderr", stderr, "1 of 1 got no answer from 127.0.0.1:", "is `paidonce serve` running there?")
	wantParts(t, "stdout", stdout, "no answer: ", "connection refused")
	unwanted(t, "the output", stdout+stderr, "MARK")
}

func TestLiveEventsSaySo(t *testing.T) {
	w, r := newSender(t)
	w.env["INTEGRATION_ENV"] = "live"
	exit, _, stderr := w.run("send", "checkout.session.completed", "--url", r.URL)
	if exit != 0 || !strings.Contains(stderr, "INTEGRATION_ENV is live") {
		t.Errorf("exit %d, %s", exit, stderr)
	}
	if e := r.events[0]; !e.Livemode || e.Data.Object["livemode"] != true || !strings.HasPrefix(e.Data.Object["id"].(string), "cs_live_") {
		t.Errorf("livemode %t, object %v %v", e.Livemode, e.Data.Object["livemode"], e.Data.Object["id"])
	}
}

// The files are written for the project: each is what Stripe would have sent,
// whole and pretty-printed.
func TestTheTemplatesAreWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/events/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n, err := parseJSON(body)
			if err != nil {
				t.Fatal(err)
			}
			again, err := n.format()
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(string(again)) != strings.TrimSpace(string(body)) {
				t.Error("the file is not formatted as send formats it")
			}
			if got := n.at("type").text() + ".json"; got != filepath.Base(file) {
				t.Errorf("its type is %s", got)
			}
		})
	}
}
