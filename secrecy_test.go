package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v82/webhook"
)

// TestSecretsAndCustomersStayWhereTheyBelong looks for markers in everything
// that the program says and writes, whatever goes wrong around it (promise
// P10).
func TestSecretsAndCustomersStayWhereTheyBelong(t *testing.T) {
	const (
		secret   = "whsec_WHMARK0123456789abcdef"
		key      = "sk_test_KEYMARK0123456789abcdef"
		token    = "TOKENMARK0123456789abcdef"
		customer = "customermark@example.com"
	)
	secrets := []string{"WHMARK", "KEYMARK", "TOKENMARK"}
	w := newWorld(t)
	w.env["STRIPE_WEBHOOK_SECRET"], w.env["STRIPE_API_KEY"], w.env["PAIDONCE_ADMIN_TOKEN"] = secret, key, token
	s := w.serve("-v")
	var said bytes.Buffer
	note := func(what string, text ...string) {
		for _, part := range text {
			said.WriteString(what + ": " + part + "\n")
		}
	}
	do := func(method, url, body string, header ...string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
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
		var answer bytes.Buffer
		if _, err := answer.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		note(method, answer.String()) // what we sent is not what was said
		return resp.StatusCode
	}
	signed := func(body string) string {
		return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: secret}).Header
	}
	hook := s.public + "/webhooks/stripe"
	broken := `{"id":"evt_broken","livemode":false,"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","object":"payment_intent",
		"amount_received":"1250","status":"succeeded","receipt_email":"` + customer + `"}}}`
	if code := do(http.MethodPost, hook, broken, "Stripe-Signature", signed(broken)); code != http.StatusOK {
		t.Errorf("a signed body that cannot be decoded: %d, want 200", code)
	}
	notJSON := customer + " is no JSON"
	if code := do(http.MethodPost, hook, notJSON, "Stripe-Signature", signed(notJSON)); code != http.StatusOK {
		t.Errorf("a signed body that is no JSON: %d, want 200", code)
	}
	if code := do(http.MethodPost, hook, broken, "Stripe-Signature", "t=1,v1="+secret); code != http.StatusUnauthorized {
		t.Errorf("an unsigned body: %d, want 401", code)
	}
	auth := []string{"Authorization", "Bearer " + token}
	if code := do(http.MethodPost, s.admin+"/v1/orders", `{"id":"A1","total_minor":1250,"currency":"eur","customer":{"email":"`+customer+` no address"}}`, auth...); code != http.StatusUnprocessableEntity {
		t.Errorf("a wrong e-mail: %d, want 422", code)
	}
	do(http.MethodGet, s.admin+"/v1/orders", "", "Authorization", "Bearer wrong-"+token)
	do(http.MethodGet, s.admin+"/v1/nothing/"+token, "", auth...)
	var events struct{ Items []demoEvent }
	for events.Items == nil || events.Items[0].Status == "pending" || events.Items[len(events.Items)-1].Status == "pending" {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.admin+"/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		events.Items = nil
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			err = errors.Join(json.NewDecoder(resp.Body).Decode(&events), resp.Body.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(events.Items) != 2 || events.Items[0].Verdict != "malformed" || events.Items[1].Verdict != "malformed" {
		t.Errorf("events %+v, want the two signed ones, malformed", events.Items)
	}
	for _, args := range [][]string{
		{"events", "list"}, {"events", "list", "--json"}, {"stats"}, {"orders", "show", "none"}, {"serve"}, {"version"},
		{"send", "payment_intent.succeeded", "--url", "http://127.0.0.1:1/" + "webhooks/stripe"},
	} {
		_, stdout, stderr := w.run(args...)
		note(strings.Join(args, " "), stdout, stderr)
	}
	exit, log := s.end()
	if exit != 0 {
		t.Errorf("exit %d", exit)
	}
	note("log", log)
	unwanted(t, "what was said", said.String(), append(secrets, "customermark")...)

	files, err := filepath.Glob("*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range secrets {
			if bytes.Contains(text, []byte(mark)) {
				t.Errorf("%s stands in %s", mark, name)
			}
		}
	}
}
