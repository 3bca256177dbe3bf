package stripefake_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"paidonce/worker/stripefake"
)

// startStripeMock runs Stripe's own stripe-mock on loopback and returns where it
// is. PAIDONCE_STRIPE_MOCK names the program, else it is looked for on PATH.
func startStripeMock(t *testing.T) string {
	t.Helper()
	program := os.Getenv("PAIDONCE_STRIPE_MOCK")
	if program == "" {
		found, err := exec.LookPath("stripe-mock")
		if err != nil {
			t.Skip("stripe-mock is not on PATH and PAIDONCE_STRIPE_MOCK is not set: go install github.com/stripe/stripe-mock@v0.203.0")
		}
		program = found
	}
	cmd := exec.CommandContext(t.Context(), program, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	stdout := must[interface{ Read([]byte) (int, error) }](t)(cmd.StdoutPipe())
	allow(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if addr, found := strings.CutPrefix(lines.Text(), "Listening for HTTP at address: "); found {
			return "http://" + addr
		}
	}
	t.Fatal("stripe-mock does not say where it listens")
	return ""
}

// kindAt is the JSON type of what stands at a path such as data.0.id.
func kindAt(v any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		switch o := v.(type) {
		case map[string]any:
			var known bool
			if v, known = o[name]; !known {
				return "absent"
			}
		case []any:
			if len(o) == 0 {
				return "null" // nothing to compare
			}
			v = o[0]
		default:
			return "null"
		}
	}
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "list"
	}
	return fmt.Sprintf("%T", v)
}

// The fields that a shop's program reads, by object.
const (
	sessionFields = "id object created expires_at livemode mode status payment_status amount_total amount_subtotal currency metadata " +
		"client_reference_id customer_email customer_details payment_intent payment_link subscription url success_url cancel_url " +
		"total_details.amount_discount total_details.amount_shipping total_details.amount_tax payment_method_types"
	intentFields = "id object created livemode status amount amount_capturable amount_received currency metadata latest_charge " +
		"canceled_at cancellation_reason capture_method client_secret last_payment_error"
	chargeFields = "id object created livemode status amount amount_captured amount_refunded currency captured paid refunded disputed " +
		"payment_intent metadata failure_code"
	refundFields  = "id object created status amount currency charge payment_intent metadata reason"
	disputeFields = "id object created livemode status amount currency charge payment_intent reason metadata balance_transactions evidence_details.due_by is_charge_refundable"
	eventFields   = "id object type created livemode api_version pending_webhooks request data.object"
	hookFields    = "id object created livemode status url enabled_events api_version description metadata"
)

// inList are the fields of a list of such objects.
func inList(fields string) string {
	return "object url has_more data data.0." + strings.ReplaceAll(fields, " ", " data.0.")
}

// Parameters that stripe-mock, which knows Stripe's own specification, refuses
// here would be refused there; and what both answer has one shape.
func TestTheFakeAgreesWithStripeMock(t *testing.T) {
	mock := &world{url: startStripeMock(t)}
	w := newWorld(t)
	session, intent := w.paid(t, "A1")
	open, expiring := w.open(t, "A2").ID, w.open(t, "A3").ID
	w.call(t, "POST", "/v1/refunds", "amount=5&payment_intent="+intent)
	refund := w.RefundsWith("none", "")[0]
	var dispute stripefake.Dispute
	var held, idle stripefake.Intent
	allow(t, w.Do(func(a *stripefake.Account) (err error) {
		dispute, err = a.Inquire(refund.Charge, 100)
		allow(t, err)
		held, err = a.CreateIntent(stripefake.IntentParams{Amount: 500, Currency: "eur", Manual: true})
		allow(t, err, a.Authorize(held.ID))
		idle, err = a.CreateIntent(stripefake.IntentParams{Amount: 500, Currency: "eur"})
		return err
	}))
	event := w.Events()[0].ID
	w.call(t, "POST", "/v1/webhook_endpoints", "url=https%3A%2F%2Fshop.example&enabled_events[]=*")
	list, _ := ids(t, w.call(t, "GET", "/v1/webhook_endpoints", ""))
	endpoint := list[0]
	page := func(cursor string) string {
		return "limit=3&created[gte]=1&created[lt]=9999999999&starting_after=" + cursor
	}

	for _, tt := range []struct {
		name, method, path, params string
		status                     int
		fields                     string
	}{
		{"open a session", "POST", "/v1/checkout/sessions", sessionForm + "&cancel_url=https%3A%2F%2Fshop.example&customer_email=a%40example.com&client_reference_id=A9&metadata[order_id]=A9&payment_intent_data[metadata][order_id]=A9&payment_intent_data[capture_method]=automatic&payment_method_types[0]=card&line_items[0][price_data][product_data][description]=x&expand[]=line_items&expires_at=" + fmt.Sprint(w.clock.Now().Unix()+3600), 200, sessionFields},
		{"retrieve a session", "GET", "/v1/checkout/sessions/" + session, "expand[]=payment_intent", 200, strings.Replace(sessionFields, "payment_intent ", "", 1)},
		{"list sessions", "GET", "/v1/checkout/sessions", page(open) + "&payment_intent=" + intent + "&status=complete", 200, inList(sessionFields)},
		{"list sessions of a link", "GET", "/v1/checkout/sessions", "payment_link=plink_1", 200, "object has_more data url"},
		{"list the lines of a session", "GET", "/v1/checkout/sessions/" + session + "/line_items", "limit=2", 200, inList("id object description quantity currency amount_total amount_subtotal price.id")},
		{"expire a session", "POST", "/v1/checkout/sessions/" + expiring + "/expire", "", 200, sessionFields},
		{"retrieve an intent", "GET", "/v1/payment_intents/" + intent, "expand[]=latest_charge", 200, strings.Replace(intentFields, "latest_charge ", "", 1)},
		{"list intents", "GET", "/v1/payment_intents", page(idle.ID), 200, inList(intentFields)},
		{"cancel an intent", "POST", "/v1/payment_intents/" + idle.ID + "/cancel", "cancellation_reason=abandoned", 200, intentFields},
		{"capture an intent", "POST", "/v1/payment_intents/" + held.ID + "/capture", "amount_to_capture=400", 200, intentFields},
		{"retrieve a charge", "GET", "/v1/charges/" + refund.Charge, "", 200, chargeFields},
		{"list charges", "GET", "/v1/charges", "created[lte]=9999999999&payment_intent=" + intent, 200, inList(chargeFields)},
		{"refund an intent", "POST", "/v1/refunds", "amount=10&reason=requested_by_customer&metadata[paidonce_operation]=k&payment_intent=" + intent, 200, refundFields},
		{"refund a charge", "POST", "/v1/refunds", "amount=10&reason=duplicate&charge=" + refund.Charge, 200, refundFields},
		{"retrieve a refund", "GET", "/v1/refunds/" + refund.ID, "", 200, refundFields},
		{"list refunds", "GET", "/v1/refunds", "limit=100&created[gt]=1&charge=" + refund.Charge + "&payment_intent=" + intent, 200, inList(refundFields)},
		{"retrieve a dispute", "GET", "/v1/disputes/" + dispute.ID, "", 200, disputeFields},
		{"list disputes", "GET", "/v1/disputes", "created[gt]=1&charge=" + refund.Charge + "&payment_intent=" + intent, 200, inList(disputeFields)},
		{"retrieve an event", "GET", "/v1/events/" + event, "", 200, eventFields},
		{"list events", "GET", "/v1/events", "limit=100&created[gte]=1&types[0]=charge.succeeded&types[1]=payment_intent.succeeded&delivery_success=true", 200, inList(eventFields)},
		{"list events of one type", "GET", "/v1/events", "type=charge.succeeded&created=1", 200, "object has_more data url"},
		{"list events from one on", "GET", "/v1/events", "ending_before=" + event, 200, inList(eventFields)},
		{"make an endpoint", "POST", "/v1/webhook_endpoints", "url=https%3A%2F%2Fshop.example&enabled_events[0]=charge.succeeded&description=x&metadata[a]=b&connect=false", 200, hookFields},
		{"retrieve an endpoint", "GET", "/v1/webhook_endpoints/" + endpoint, "", 200, hookFields},
		{"list endpoints", "GET", "/v1/webhook_endpoints", "limit=16", 200, inList(hookFields)},
		{"change an endpoint", "POST", "/v1/webhook_endpoints/" + endpoint, "disabled=true&enabled_events[]=*&metadata[a]=b", 200, hookFields},
		{"delete an endpoint", "DELETE", "/v1/webhook_endpoints/" + endpoint, "", 200, "id object deleted"},
		{"the account", "GET", "/v1/account", "", 200, "id object country default_currency charges_enabled"},
		{"the balance", "GET", "/v1/balance", "", 200, "object livemode available.0.amount available.0.currency pending"},

		{"an unknown parameter", "POST", "/v1/refunds", "colour=red&payment_intent=" + intent, 400, "error.type error.message"},
		{"an unknown parameter of a session", "POST", "/v1/checkout/sessions", sessionForm + "&colour=red", 400, "error.type error.message"},
		{"a word that is none of the list", "POST", "/v1/refunds", "reason=mood&payment_intent=" + intent, 400, "error.type error.message"},
		{"an amount that is no number", "POST", "/v1/refunds", "amount=ten&payment_intent=" + intent, 400, "error.type error.message"},
		{"a reason that no cancellation has", "POST", "/v1/payment_intents/" + idle.ID + "/cancel", "cancellation_reason=mood", 400, "error.type error.message"},
		{"a filter that is unknown", "GET", "/v1/events", "colour=red", 400, "error.type error.message"},
		{"an unknown path", "GET", "/v1/nothing", "", 404, "error.type error.message"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var shapes [2]any
			for i, target := range []*world{w, mock} {
				got := target.call(t, tt.method, tt.path, tt.params)
				if got.status != tt.status {
					t.Fatalf("%s: %d %s, want %d", []string{"the fake", "stripe-mock"}[i], got.status, got.body, tt.status)
				}
				allow(t, json.Unmarshal([]byte(got.body), &shapes[i]))
			}
			for field := range strings.FieldsSeq(tt.fields) {
				ours, theirs := kindAt(shapes[0], field), kindAt(shapes[1], field)
				if ours != theirs && ours != "null" && theirs != "null" || ours == "absent" {
					t.Errorf("%s is %s, and %s at stripe-mock", field, ours, theirs)
				}
			}
		})
	}
	t.Run("a key that is none", func(t *testing.T) {
		for _, target := range []*world{w, mock} {
			if got := target.call(t, "GET", "/v1/refunds", "", "Authorization: Bearer none"); got.status != http.StatusUnauthorized {
				t.Errorf("%d %s", got.status, got.body)
			}
		}
	})
}
