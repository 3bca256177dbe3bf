package main

import (
	"encoding/json"
	"strings"
	"testing"

	"paidonce/worker/stripefake"
)

// states are the doctor's lines as "check state", each once.
func (w *world) states(exit int) map[string]finding {
	w.t.Helper()
	got, stdout, stderr := w.run("doctor", "--deep", "--json")
	if got != exit {
		w.t.Errorf("doctor exits with %d; want %d\n%s\n%s", got, exit, stdout, stderr)
	}
	var all []finding
	if err := json.Unmarshal([]byte(stdout), &all); err != nil {
		w.t.Fatalf("doctor said %s: %v", stdout, err)
	}
	states := map[string]finding{}
	for _, f := range all {
		if was, ok := states[f.Check]; !ok || was.State == stateOK {
			states[f.Check] = f
		}
	}
	return states
}

func wantStates(t *testing.T, got map[string]finding, want map[string]string) {
	t.Helper()
	for check, state := range want {
		if f := got[check]; f.State != state || f.State != stateOK && f.Next == "" && check != "config" && check != "database" {
			t.Errorf("%s is %q (%s; next: %s); want %s", check, f.State, f.Detail, f.Next, state)
		}
	}
}

// TestDoctorOfAHealthyShop: serve runs, Stripe answers, the endpoint is right.
func TestDoctorOfAHealthyShop(t *testing.T) {
	w, _ := stripeWorld(t)
	s := w.serve()
	w.env["PAIDONCE_LISTEN"], w.env["PAIDONCE_ADMIN_LISTEN"] = strings.TrimPrefix(s.public, "http://"), strings.TrimPrefix(s.admin, "http://")
	w.must("reconcile")
	wantStates(t, w.states(0), map[string]string{"config": "ok", "database": "ok", "connections": "ok", "serve": "ok", "promises": "ok",
		"stripe": "ok", "clock": "ok", "endpoint": "ok", "coverage": "ok"})
	out := w.must("doctor")
	wantParts(t, "doctor", out, "busy_timeout 5000", "txlock immediate", "journal_mode wal", "the key may read disputes")
	unwanted(t, "doctor", out, "sk_test_fake", "whsec_test")
}

// TestDoctorTellsWhatToDo: each trouble is a line with its next step.
func TestDoctorTellsWhatToDo(t *testing.T) {
	w, fake := stripeWorld(t)
	w.serve()
	w.must("reconcile")
	fake.Fault(func(r stripefake.FaultRequest) stripefake.Fault {
		switch r.Route {
		case "GET /v1/disputes":
			return stripefake.Fault{Kind: stripefake.Answered, Status: 403, ContentType: "application/json",
				Body: `{"error":{"type":"invalid_request_error","code":"more_permissions_required","message":"secret sk_test_MARK"}}`}
		case "GET /v1/webhook_endpoints":
			return stripefake.Fault{Kind: stripefake.Answered, Status: 200, ContentType: "application/json",
				Body: `{"object":"list","has_more":false,"data":[{"id":"we_1","object":"webhook_endpoint","url":"https://x/webhooks/stripe","status":"disabled","livemode":false,"enabled_events":["*"]}]}`}
		}
		return stripefake.Fault{}
	})
	got := w.states(1)
	wantStates(t, got, map[string]string{"stripe": "fail", "endpoint": "fail", "serve": "warn"})
	if !strings.Contains(got["stripe"].Next, "disputes") || !strings.Contains(got["endpoint"].Detail, "we_1: it is disabled") || strings.Contains(got["stripe"].Detail, "MARK") {
		t.Errorf("%+v", got)
	}
	w.env["STRIPE_WEBHOOK_SECRET"] = "sk_test_MARK"
	_, stdout, stderr := w.run("doctor")
	unwanted(t, "doctor", stdout+stderr, "MARK")
	wantParts(t, "doctor", stdout, "fail  config", "STRIPE_WEBHOOK_SECRET")
}

func TestDoctorWithoutAnything(t *testing.T) {
	w := newWorld(t)
	wantStates(t, w.states(1), map[string]string{"config": "fail", "database": "fail"})
}
