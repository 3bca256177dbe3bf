package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// newServed makes a world in which serve runs.
func newServed(t *testing.T) (*world, *served) {
	t.Helper()
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
	return w, w.serve()
}

// waitFor asks until ok, for as long as a slow machine may need.
func (w *world) waitFor(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if ok() {
			return
		}
	}
	w.t.Fatalf("%s: it did not happen in 20 s", what)
}

func (w *world) order(id string) orderJSON {
	w.t.Helper()
	var o orderJSON
	w.mustJSON(&o, "orders", "show", id)
	return o
}

func (w *world) waitForStatus(id, status string) {
	w.t.Helper()
	w.waitFor(id+" is "+status, func() bool { return w.order(id).Status == status })
}

func TestAnOrderIsPaidFromTheCommandLine(t *testing.T) {
	w, s := newServed(t)
	hook := s.public + "/webhooks/stripe"
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur")
	var answers []answer
	w.mustJSON(&answers, "send", "payment_intent.succeeded", "--order", "A1", "--url", hook, "--times", "3", "--concurrent")
	accepted := 0
	for _, a := range answers {
		if strings.Contains(string(a.Body), `"accepted"`) {
			accepted++
		}
	}
	if len(answers) != 3 || accepted != 1 {
		t.Errorf("answers %s; want one accepted of three", answers)
	}
	w.waitForStatus("A1", "paid")
	out := w.must("orders", "show", "A1")
	wantParts(t, "orders show", out, "received  ", "12.50 EUR", "payments\n", "accepted", "books\n", "sales", "operations\n", "order.paid", "timeline\n")
	wantParts(t, "orders list", w.must("orders", "list", "--status", "paid"), "A1", "12.50 EUR")

	var events pageOf[eventJSON]
	w.mustJSON(&events, "events", "list", "--order", "A1")
	if len(events.Items) != 1 {
		t.Fatalf("%d events of A1; want 1", len(events.Items))
	}
	e := events.Items[0]
	if e.Via != "send" || e.Deliveries != 3 || e.Verdict != "applied" {
		t.Errorf("event %+v", e)
	}
	wantParts(t, "events list", w.must("events", "list"), "EVENT", e.ID, "payment_intent.succeeded", "applied", "A1")
	wantParts(t, "events show", w.must("events", "show", e.ID), e.ID, "stripe:self:test", "deliveries", "3", "bytes, see --payload")
	payload := w.must("events", "show", e.ID, "--payload")
	if !json.Valid([]byte(payload)) || !strings.Contains(payload, "  \"id\": \""+e.ID+"\"") {
		t.Errorf("the payload is not the body that was sent:\n%s", payload)
	}

	// The books of a later refund belong to the same payment.
	w.must("send", "refund.created", "--order", "A1", "--url", hook)
	w.waitForStatus("A1", "refunded")

	exit, _, stderr := w.run("orders", "edit", "A1", "--total", "1")
	if exit != 1 || !strings.Contains(stderr, "cannot be edited") {
		t.Errorf("the edit of a paid order: exit %d, %s", exit, stderr)
	}
	wantParts(t, "stats", w.must("stats"), "pending", "done", "applied", "last webhook")
	var st struct{ Events map[string]map[string]int64 }
	w.mustJSON(&st, "stats")
	if st.Events["done"]["applied"] == 0 {
		t.Errorf("stats %+v", st)
	}
}

func TestAWrongAmountWaitsForAPerson(t *testing.T) {
	w, s := newServed(t)
	hook := s.public + "/webhooks/stripe"
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur")
	w.must("send", "payment_intent.succeeded", "--order", "A1", "--set", "data.object.amount_received=500", "--set", "data.object.id=pi_short", "--url", hook)
	w.waitFor("quarantine", func() bool {
		return strings.Contains(w.must("events", "list", "--status", "quarantined"), "amount_mismatch")
	})
	wantParts(t, "orders list", w.must("orders", "list", "--attention", "any"), "A1", "amount_mismatch")
	wantParts(t, "orders show", w.must("orders", "show", "A1"), "in suspense", "5.00 EUR", "attention\n")
	if out := w.must("orders", "accept", "A1", "pi_short"); !strings.Contains(out, "A1 accepted\n") || !strings.Contains(out, "paid") {
		t.Errorf("orders accept prints\n%s", out)
	}
	exit, _, stderr := w.run("orders", "accept", "A1", "pi_short", "--json")
	if exit != 1 || !strings.Contains(stderr, "nothing_to_accept") {
		t.Errorf("a second accept: exit %d, %s", exit, stderr)
	}
}

func TestAnUnlinkedPaymentIsLinkedOrDismissed(t *testing.T) {
	w, s := newServed(t)
	hook := s.public + "/webhooks/stripe"
	w.must("orders", "add", "--id", "A1", "--total", "20", "--currency", "usd")
	for _, name := range []string{"one", "two"} {
		w.must("send", "payment_intent.succeeded", "--url", hook, "--set", "id=evt_"+name, "--set", "data.object.id=pi_"+name, "--set", "data.object.latest_charge=ch_"+name)
	}
	w.waitFor("both are unlinked", func() bool { return strings.Count(w.must("events", "list", "--verdict", "unlinked"), "evt_") == 2 })
	if out := w.must("orders", "link", "A1", "pi_one"); !strings.Contains(out, "A1 linked\n") {
		t.Errorf("orders link prints\n%s", out)
	}
	w.waitForStatus("A1", "paid")
	if out := w.must("events", "dismiss", "evt_two", "--note", "of another shop"); out != "evt_two dismissed: done, ignored\n" {
		t.Errorf("events dismiss prints %s", out)
	}
	exit, _, stderr := w.run("events", "dismiss", "evt_two")
	if exit != 1 || !strings.Contains(stderr, "only unlinked and quarantined") {
		t.Errorf("a second dismiss: exit %d, %s", exit, stderr)
	}
	if out := w.must("events", "requeue", "evt_two"); !strings.HasPrefix(out, "evt_two is to run again: ") {
		t.Errorf("events requeue prints %s", out)
	}
	w.waitFor("it ran again", func() bool { return strings.Count(w.must("events", "list", "--verdict", "unlinked"), "evt_two") == 1 })
}

func TestTheStartLineTellsWhatRuns(t *testing.T) {
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"] = "whsec_WHMARK0000000000000000"
	w.env["STRIPE_API_KEY"] = "rk_test_KEYMARK"
	w.env["PAIDONCE_ADMIN_TOKEN"] = "TOKENMARK-0123456789"
	w.env["SMTP_URL"] = "smtp://u:SMTPMARK@mail.example:587"
	w.write("paidonce.toml", "[[source]]\nname = \"git\"\nprovider = \"github\"\nsecrets = [\"env:GIT\"]\n")
	w.env["GIT"] = "GITMARK"
	s := w.serve()
	for key, want := range map[string]any{"env": "sandbox", "key": "rk_test", "db": "paidonce.db", "level": "INFO"} {
		if s.ready[key] != want {
			t.Errorf("%s is %v; want %v", key, s.ready[key], want)
		}
	}
	sources, err := json.Marshal(s.ready["sources"])
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, "sources", string(sources), "git github:git:-", "stripe stripe:self:test")
	if text, _ := s.ready["missed_events"].(string); !strings.HasPrefix(text, "found within minutes") {
		t.Errorf("missed_events is %q: there is a key, and P8 is held", text)
	}
	resp, err := http.Get(s.admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("readyz: %d %s, %v", resp.StatusCode, body, err)
	}
	exit, log := s.end()
	if exit != 0 {
		t.Errorf("exit %d after the first signal; want 0", exit)
	}
	wantParts(t, "the log", log, "SMTP_URL is set, but", "serve: stopping", "serve: stopped")
	unwanted(t, "the log", log, "WHMARK", "KEYMARK", "TOKENMARK", "SMTPMARK", "GITMARK")
	file, err := os.ReadFile(defaultDB)
	if err != nil {
		t.Fatal(err)
	}
	unwanted(t, "the database", string(file), "WHMARK", "KEYMARK", "TOKENMARK", "SMTPMARK", "GITMARK")
	if _, err := os.Stat("paidonce.db.token"); err == nil {
		t.Error("a token file was made although the environment has the token")
	}
	if _, err := os.Stat("paidonce.db-wal"); err == nil {
		t.Error("the -wal file is left behind: the store was not closed")
	}
}

func TestTheTokenFileOpensTheAdminListener(t *testing.T) {
	_, s := newServed(t)
	info, err := os.Stat("paidonce.db.token")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the token file has mode %s", info.Mode())
	}
	token, err := os.ReadFile("paidonce.db.token")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		bearer string
		want   int
	}{{strings.TrimSpace(string(token)), 200}, {"wrong", 401}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.admin+"/v1/stats", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tt.bearer)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("status %d; want %d", resp.StatusCode, tt.want)
		}
	}
	if _, log := s.end(); strings.Contains(log, strings.TrimSpace(string(token))) {
		t.Error("the token is in the log")
	}
}

func TestServeThatCannotStartSaysWhy(t *testing.T) {
	t.Run("the file is served already", func(t *testing.T) {
		w, _ := newServed(t)
		exit, _, stderr := w.run("serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
		if exit != 1 {
			t.Errorf("exit %d; want 1", exit)
		}
		wantParts(t, "stderr", stderr, "paidonce.db is in use: pid ", "stop it first")
	})
	t.Run("the address is taken", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		w := newWorld(t)
		w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
		for _, flag := range []string{"--listen", "--admin-listen"} {
			args := []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}
			exit, _, stderr := w.run(append(args, flag, l.Addr().String())...)
			if exit != 1 || !strings.Contains(stderr, "cannot listen on the ") || !strings.Contains(stderr, "address already in use") ||
				runtime.GOOS != "windows" && !strings.Contains(stderr, "name another address with "+flag+"\n") {
				t.Errorf("%s: exit %d, %s", flag, exit, stderr)
			}
		}
		// Nothing of the failed starts holds the file.
		w.serve()
	})
	t.Run("the file belongs to the other environment", func(t *testing.T) {
		w, s := newServed(t)
		s.end()
		w.env["INTEGRATION_ENV"] = "live"
		exit, _, stderr := w.run("serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
		if exit != 1 || !strings.Contains(stderr, "belongs to INTEGRATION_ENV=sandbox") {
			t.Errorf("exit %d, %s", exit, stderr)
		}
	})
	t.Run("a source has another account than before", func(t *testing.T) {
		w, s := newServed(t)
		s.end()
		w.write("paidonce.toml", "[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"env:STRIPE_WEBHOOK_SECRET\"]\naccount = \"acct_2\"\n")
		exit, _, stderr := w.run("serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
		if exit != 1 || !strings.Contains(stderr, `source "stripe" was stripe:self:test`) {
			t.Errorf("exit %d, %s", exit, stderr)
		}
	})
	t.Run("the directory is not there", func(t *testing.T) {
		w := newWorld(t)
		w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
		exit, _, stderr := w.run("serve", "--db", "absent/shop.db", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
		if exit != 1 || !strings.Contains(stderr, "absent/shop.db as uid ") {
			t.Errorf("exit %d, %s", exit, stderr)
		}
	})
}

// A request in hand when the signal comes is finished and answered.
func TestServeFinishesWhatIsInHand(t *testing.T) {
	w, s := newServed(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.public, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The headers are here and half of the body: the server waits for the rest.
	if _, err := io.WriteString(conn, "POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 256)
	n, err := conn.Read(buf)
	if err != nil || !strings.Contains(string(buf[:n]), "100 Continue") {
		t.Fatalf("read %q, %v; want 100 Continue", buf[:n], err)
	}
	done := make(chan struct{})
	var exit int
	go func() { defer close(done); exit, _ = s.end() }()
	w.waitFor("the listener is closed", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.public, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(conn, "body"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
		t.Errorf("answer %q, %v", answer, err)
	}
	<-done
	if exit != 0 {
		t.Errorf("exit %d; want 0", exit)
	}
}

func TestASignedBodyThatIsNoJSONIsKeptAsItCame(t *testing.T) {
	w, s := newServed(t)
	const body = "not \x00 JSON \xff\r\n"
	w.write("body", body)
	var answers []struct {
		Body struct {
			EventID string `json:"event_id"`
		}
	}
	w.mustJSON(&answers, "send", "body", "--url", s.public+"/webhooks/stripe")
	id := answers[0].Body.EventID
	if !strings.HasPrefix(id, "sha256:") {
		t.Errorf("event id %s", id)
	}
	w.waitFor("it is judged", func() bool { return strings.Contains(w.must("events", "show", id), "malformed") })
	if got := w.must("events", "show", id, "--payload"); got != body {
		t.Errorf("the payload is %q; want %q", got, body)
	}
	wantParts(t, "events show --json", w.must("events", "show", id, "--json"), `"payload_encoding": "base64"`)
}
