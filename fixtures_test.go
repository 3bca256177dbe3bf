package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"
)

var update = flag.Bool("update", false, "write the golden files anew")

const fixtureDir = "../shared/fixtures"

// contradictory are the fixtures whose type says what their object does not
// (INDEX.md there): the type alone must move nothing.
func contradictory(t *testing.T) []string {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(fixtureDir, "INDEX.md"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(index)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.Contains(line, "CONTRADICTORY:") {
			names = append(names, strings.TrimSpace(cells[1]))
		}
	}
	if len(names) < 8 {
		t.Fatalf("only %d contradictory fixtures are found in INDEX.md", len(names))
	}
	return names
}

// TestEveryFixtureGetsItsAnswer signs and posts real event bodies. Each comes
// to a fresh file with an order that waits for just that object. The golden
// files say what became of each and why, for a person to read.
func TestEveryFixtureGetsItsAnswer(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(fixtureDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no event bodies in %s", fixtureDir)
	}
	odd := contradictory(t)
	if testing.Short() {
		files = slices.DeleteFunc(files, func(f string) bool { return !slices.Contains(odd, filepath.Base(f)) })[:4]
	}
	for i := range files {
		if files[i], err = filepath.Abs(files[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, foreign := range []string{"reject", "ignore"} {
		golden, err := filepath.Abs("testdata/fixtures." + foreign + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		for _, file := range files {
			name := filepath.Base(file)
			t.Run(foreign+"/"+name, func(t *testing.T) {
				fmt.Fprintf(&got, "%s\n    %s\n", name, postFixture(t, file, foreign, slices.Contains(odd, name)))
			})
		}
		if testing.Short() {
			continue
		}
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("the verdicts differ from %s; look at them, and run with -update if they are right:\n%s", golden, got.String())
		}
	}
}

// postFixture posts one body and returns what became of it, in a line.
func postFixture(t *testing.T, file, foreign string, contradicts bool) string {
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"] = goodSecret
	w.env["PAIDONCE_ADMIN_TOKEN"] = "a-token-for-this-test"
	w.write(defaultFile, fmt.Sprintf("[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"env:STRIPE_WEBHOOK_SECRET\"]\nforeign = %q\n", foreign))
	s := w.serve()
	registerFor(t, s, body)

	status, answer := postSigned(t, s, body)
	line := fmt.Sprint(status)
	var said struct {
		EventID string `json:"event_id"`
		Error   struct{ Code string }
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		t.Fatal(err)
	}
	switch {
	case status == http.StatusForbidden && foreign == "reject":
		line += " " + said.Error.Code
	case status < 200 || status > 299:
		t.Errorf("answer %d %s", status, answer)
	default:
		var e demoEvent
		for deadline := time.Now().Add(20 * time.Second); e.Status == "" || e.Status == "pending"; {
			if getJSON(t, s, "/v1/events/"+said.EventID, &e); time.Now().After(deadline) {
				t.Fatalf("%s is still %s, %s", said.EventID, e.Status, e.Verdict)
			}
		}
		if e.Attempts != 0 || e.Verdict == "too_many_attempts" {
			t.Errorf("%d attempts, %s", e.Attempts, e.Verdict)
		}
		line += fmt.Sprintf(" %s, %s: %s", e.Status, e.Verdict, e.Reason)
	}
	var orders struct{ Items []demoOrder }
	getJSON(t, s, "/v1/orders", &orders)
	for _, o := range orders.Items {
		line += "\n    its order is " + o.Status
		if !contradicts {
			continue
		}
		if o.Status != "awaiting_payment" || o.ReceivedMinor != 0 || len(o.Operations)+len(o.Entries)+len(o.Attention) != 0 {
			t.Errorf("a type that its object contradicts moved the order: %+v", o)
		}
	}
	if exit, log := s.end(); exit != 0 || strings.Contains(log, "panic") || strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("exit %d\n%s", exit, log)
	}
	return line
}

// registerFor registers an order that waits for the body's object.
func registerFor(t *testing.T, s *served, body []byte) {
	t.Helper()
	var e struct {
		Data struct {
			Object struct {
				ID       string
				Amount   *int64
				Total    *int64 `json:"amount_total"`
				Currency string
			}
		}
	}
	if json.Unmarshal(body, &e) != nil || e.Data.Object.ID == "" || e.Data.Object.Currency == "" {
		return
	}
	o := e.Data.Object
	if o.Amount == nil {
		o.Amount = o.Total
	}
	if o.Amount == nil || *o.Amount < 0 {
		return
	}
	in, err := json.Marshal(map[string]any{"id": "ORD-1", "total_minor": *o.Amount, "currency": o.Currency, "refs": []string{o.ID}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.admin+"/v1/orders", bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := call(t, req); status != http.StatusCreated {
		t.Fatalf("register: %d %s", status, answer)
	}
}

func postSigned(t *testing.T, s *served, body []byte) (int, []byte) {
	t.Helper()
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: goodSecret})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.public+"/webhooks/stripe", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", signed.Header)
	return call(t, req)
}

func getJSON(t *testing.T, s *served, path string, v any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := call(t, req)
	if err := json.Unmarshal(answer, v); err != nil || status != http.StatusOK {
		t.Fatalf("GET %s: %d, %v\n%s", path, status, err, answer)
	}
}

func call(t *testing.T, req *http.Request) (int, []byte) {
	t.Helper()
	req.Header.Set("Authorization", "Bearer a-token-for-this-test")
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
