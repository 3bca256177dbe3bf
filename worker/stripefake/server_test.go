package stripefake_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"paidonce/worker/stripefake"
)

const testKey = "sk_test_fake"

// clock is the time that a server is given.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1760000000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// world is a fake over HTTP with a client of stripe-go.
type world struct {
	*stripefake.Server
	url    string
	clock  *clock
	client *stripe.Client
}

func newWorld(t *testing.T, configure ...func(*stripefake.ServerConfig)) *world {
	t.Helper()
	w := &world{clock: newClock()}
	cfg := stripefake.ServerConfig{Now: w.clock.Now, Key: testKey, Config: stripefake.Config{Seed: 7}}
	for _, f := range configure {
		f(&cfg)
	}
	w.Server = stripefake.NewServer(cfg)
	server := httptest.NewServer(w.Server)
	t.Cleanup(server.Close)
	t.Cleanup(w.Close)
	w.url = server.URL
	w.client = stripeClient(t, w.url, testKey)
	return w
}

// stripeClient is stripe-go, pointed at a server.
func stripeClient(t *testing.T, base, key string) *stripe.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return stripe.NewClient(key, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL: stripe.String(base), HTTPClient: &http.Client{Transport: transport},
		MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})))
}

// answer is what came back from a call.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) has(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(a.body, part) {
			t.Errorf("%d %s\nwant %s in it", a.status, a.body, part)
		}
	}
}

// call makes a call without stripe-go: params is a query string, headers are
// "Name: value".
func (w *world) call(t *testing.T, method, path, params string, headers ...string) answer {
	t.Helper()
	a, err := w.try(t, method, path, params, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (w *world) try(t *testing.T, method, path, params string, headers ...string) (answer, error) {
	t.Helper()
	target, body := w.url+path, ""
	if method == http.MethodPost {
		body = params
	} else if params != "" {
		target += "?" + params
	}
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body)))
	req.Header.Set("Authorization", "Bearer "+testKey)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(raw)}, err
}

// checkout is the usual session of 1250 EUR cents, for an order.
func checkout(order string) *stripe.CheckoutSessionCreateParams {
	meta := map[string]string{"order_id": order, "paidonce_operation": "op_" + order}
	return &stripe.CheckoutSessionCreateParams{
		Mode: stripe.String("payment"), SuccessURL: stripe.String("https://shop.example/ok?s={CHECKOUT_SESSION_ID}"), CancelURL: stripe.String("https://shop.example/no"),
		ClientReferenceID: stripe.String(order), CustomerEmail: stripe.String("ada@example.com"), Metadata: meta,
		PaymentIntentData: &stripe.CheckoutSessionCreatePaymentIntentDataParams{Metadata: meta},
		LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{
			Quantity: stripe.Int64(2),
			PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
				Currency: stripe.String("eur"), UnitAmount: stripe.Int64(500), ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: stripe.String("Book")},
			},
		}, {
			Quantity: stripe.Int64(1),
			PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
				Currency: stripe.String("eur"), UnitAmount: stripe.Int64(250), ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: stripe.String("Wrapping")},
			},
		}},
	}
}

// open opens the usual session.
func (w *world) open(t *testing.T, order string) *stripe.CheckoutSession {
	t.Helper()
	return must[*stripe.CheckoutSession](t)(w.client.V1CheckoutSessions.Create(t.Context(), checkout(order)))
}

// paid is a session that a buyer has paid, and its payment intent.
func (w *world) paid(t *testing.T, order string) (session, intent string) {
	t.Helper()
	s := must[stripefake.Session](t)(w.Pay(w.open(t, order).ID))
	return s.ID, s.Intent
}

const sessionForm = "mode=payment&success_url=https%3A%2F%2Fshop.example%2Fok&line_items[0][quantity]=1" +
	"&line_items[0][price_data][currency]=eur&line_items[0][price_data][unit_amount]=1250&line_items[0][price_data][product_data][name]=Book"

// stripeError is the error of a call through stripe-go.
func stripeError(t *testing.T, err error) *stripe.Error {
	t.Helper()
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		t.Fatalf("got %v, want an error of Stripe's", err)
	}
	return e
}

func TestAWholeSaleThroughStripeGo(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	opened := w.open(t, "A1")
	if opened.Status != "open" || opened.PaymentStatus != "unpaid" || opened.AmountTotal != 1250 || opened.AmountSubtotal != 1250 || opened.Currency != "eur" ||
		opened.Metadata["order_id"] != "A1" || opened.ClientReferenceID != "A1" || opened.CustomerEmail != "ada@example.com" ||
		opened.URL != w.url+"/pay/"+opened.ID || opened.ExpiresAt != w.clock.Now().Unix()+86400 || opened.PaymentIntent != nil || opened.SuccessURL == "" {
		t.Fatalf("opened %+v", opened)
	}
	done := must[stripefake.Session](t)(w.Pay(opened.ID))
	session := must[*stripe.CheckoutSession](t)(w.client.V1CheckoutSessions.Retrieve(ctx, opened.ID, nil))
	if session.Status != "complete" || session.PaymentStatus != "paid" || session.PaymentIntent == nil || session.PaymentIntent.ID != done.Intent ||
		session.URL != "" || session.CustomerDetails.Email != "ada@example.com" {
		t.Fatalf("paid %+v", session)
	}
	pi := must[*stripe.PaymentIntent](t)(w.client.V1PaymentIntents.Retrieve(ctx, done.Intent, nil))
	if pi.Status != "succeeded" || pi.AmountReceived != 1250 || pi.Metadata["order_id"] != "A1" || pi.LatestCharge == nil {
		t.Fatalf("intent %+v", pi)
	}
	charge := must[*stripe.Charge](t)(w.client.V1Charges.Retrieve(ctx, pi.LatestCharge.ID, nil))
	if !charge.Paid || !charge.Captured || charge.AmountCaptured != 1250 || charge.PaymentIntent.ID != pi.ID || charge.Metadata["order_id"] != "A1" {
		t.Fatalf("charge %+v", charge)
	}
	refund := must[*stripe.Refund](t)(w.client.V1Refunds.Create(ctx, &stripe.RefundCreateParams{
		PaymentIntent: stripe.String(pi.ID), Amount: stripe.Int64(300), Reason: stripe.String("requested_by_customer"),
		Metadata: map[string]string{"paidonce_operation": "k"},
	}))
	if refund.Status != "succeeded" || refund.Amount != 300 || refund.Metadata["paidonce_operation"] != "k" || refund.Reason != "requested_by_customer" || refund.Charge.ID != charge.ID {
		t.Fatalf("refund %+v", refund)
	}
	rest := must[*stripe.Refund](t)(w.client.V1Refunds.Create(ctx, &stripe.RefundCreateParams{Charge: stripe.String(charge.ID)}))
	if rest.Amount != 950 {
		t.Errorf("without an amount %d was refunded, want the 950 that were left", rest.Amount)
	}
	if again := must[*stripe.Refund](t)(w.client.V1Refunds.Retrieve(ctx, refund.ID, nil)); again.Amount != 300 {
		t.Errorf("retrieved %+v", again)
	}
	var listed []string
	for r, err := range w.client.V1Refunds.List(ctx, &stripe.RefundListParams{PaymentIntent: stripe.String(pi.ID), ListParams: stripe.ListParams{Limit: stripe.Int64(1)}}) {
		allow(t, err)
		listed = append(listed, r.ID)
	}
	if fmt.Sprint(listed) != fmt.Sprint([]string{rest.ID, refund.ID}) {
		t.Errorf("listed %v", listed)
	}
	var dispute stripefake.Dispute
	second, secondIntent := w.paid(t, "A2")
	allow(t, w.Do(func(a *stripefake.Account) (err error) {
		pi, _ := a.FindIntent(secondIntent)
		dispute, err = a.ChargeBack(pi.LatestCharge(), 1250)
		return err
	}))
	d := must[*stripe.Dispute](t)(w.client.V1Disputes.Retrieve(ctx, dispute.ID, nil))
	if d.Status != "needs_response" || len(d.BalanceTransactions) != 1 || d.BalanceTransactions[0].Amount != -1250 {
		t.Errorf("dispute %+v", d)
	}
	for s, err := range w.client.V1CheckoutSessions.List(ctx, &stripe.CheckoutSessionListParams{PaymentIntent: stripe.String(secondIntent)}) {
		if allow(t, err); s.ID != second {
			t.Errorf("the session of %s is %s, listed was %s", secondIntent, second, s.ID)
		}
	}
	for _, account := range []string{must[*stripe.Account](t)(w.client.V1Accounts.Retrieve(ctx, nil)).ID} {
		if !strings.HasPrefix(account, "acct_") {
			t.Errorf("account %q", account)
		}
	}
	if b := must[*stripe.Balance](t)(w.client.V1Balance.Retrieve(ctx, nil)); len(b.Available) != 1 || b.Available[0].Amount != 0 {
		t.Errorf("balance %+v, want all refunded or disputed", b.Available)
	}
	sums := fmt.Sprint(w.Ledger().Sums())
	if sums != "[{eur 2500 1250 0 1250}]" {
		t.Errorf("sums %s", sums)
	}
	if n := len(w.RefundsWith("paidonce_operation", "k")); n != 1 {
		t.Errorf("%d refunds of k", n)
	}
	if n := len(w.SessionsWith("order_id", "A1")); n != 1 {
		t.Errorf("%d sessions of A1", n)
	}
	allow(t, w.Check())
}

func TestCallsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	paidSession, paidIntent := w.paid(t, "A1")
	_, halfIntent := w.paid(t, "A2")
	w.call(t, "POST", "/v1/refunds", "amount=1000&payment_intent="+halfIntent)
	_, goneIntent := w.paid(t, "A3")
	w.call(t, "POST", "/v1/refunds", "payment_intent="+goneIntent)
	_, disputed := w.paid(t, "A4")
	allow(t, w.Do(func(a *stripefake.Account) error {
		pi, _ := a.FindIntent(disputed)
		_, err := a.ChargeBack(pi.LatestCharge(), 100)
		return err
	}))
	declined := must[stripefake.Session](t)(w.Decline(w.open(t, "A5").ID))
	var dinar stripefake.Intent
	allow(t, w.Do(func(a *stripefake.Account) (err error) {
		dinar, err = a.CreateIntent(stripefake.IntentParams{Amount: 5000, Currency: "kwd"})
		return errors.Join(err, a.Succeed(dinar.ID))
	}))
	events := len(w.Events())
	for _, tt := range []struct {
		name                 string
		method, path, params string
		status               int
		code, param, message string
	}{
		{"a session that is not there", "GET", "/v1/checkout/sessions/cs_no", "", 404, "resource_missing", "id", "No such checkout.session: 'cs_no'"},
		{"a payment intent that is not there", "GET", "/v1/payment_intents/pi_no", "", 404, "resource_missing", "id", "No such payment_intent"},
		{"a charge that is not there", "GET", "/v1/charges/ch_no", "", 404, "resource_missing", "id", "No such charge"},
		{"a refund that is not there", "GET", "/v1/refunds/re_no", "", 404, "resource_missing", "id", "No such refund"},
		{"a dispute that is not there", "GET", "/v1/disputes/dp_no", "", 404, "resource_missing", "id", "No such dispute"},
		{"an event that is not there", "GET", "/v1/events/evt_no", "", 404, "resource_missing", "id", "No such event"},
		{"an endpoint that is not there", "DELETE", "/v1/webhook_endpoints/we_no", "", 404, "resource_missing", "id", "No such webhook endpoint"},
		{"a session of another kind of object", "GET", "/v1/checkout/sessions/" + paidIntent, "", 404, "resource_missing", "id", "No such"},
		{"lines of a session that is not there", "GET", "/v1/checkout/sessions/cs_no/line_items", "", 404, "resource_missing", "id", "No such"},
		{"a refund of an intent that is not there", "POST", "/v1/refunds", "payment_intent=pi_no", 404, "resource_missing", "payment_intent", "No such payment_intent: 'pi_no'"},
		{"a refund of a charge that is not there", "POST", "/v1/refunds", "charge=ch_no", 404, "resource_missing", "charge", "No such charge"},
		{"a list behind what is not there", "GET", "/v1/refunds", "starting_after=re_no", 400, "resource_missing", "starting_after", "No such refund"},
		{"a list ahead of what is not there", "GET", "/v1/events", "ending_before=evt_no", 400, "resource_missing", "ending_before", "No such event"},
		{"a list in both directions", "GET", "/v1/events", "ending_before=evt_no&starting_after=evt_no", 400, "parameters_exclusive", "ending_before", ""},
		{"a list of none", "GET", "/v1/events", "limit=0", 400, "parameter_invalid_integer", "limit", ""},
		{"a list of 101", "GET", "/v1/charges", "limit=101", 400, "parameter_invalid_integer", "limit", ""},
		{"a limit that is no number", "GET", "/v1/charges", "limit=ten", 400, "parameter_invalid_integer", "limit", "Invalid integer"},
		{"a time that is no number", "GET", "/v1/events", "created[gte]=yesterday", 400, "parameter_invalid_integer", "created[gte]", ""},
		{"a comparison that Stripe has not", "GET", "/v1/events", "created[ge]=1", 400, "parameter_unknown", "created[ge]", "Received unknown parameter: created[ge]"},
		{"one type and several", "GET", "/v1/events", "type=a&types[]=b", 400, "parameters_exclusive", "type", ""},
		{"more than 20 types", "GET", "/v1/events", strings.Repeat("types[]=a&", 21), 400, "", "types", ""},
		{"success that is neither true nor false", "GET", "/v1/events", "delivery_success=maybe", 400, "", "delivery_success", ""},
		{"a parameter that is unknown", "POST", "/v1/refunds", "payment_intent=" + paidIntent + "&force=true", 400, "parameter_unknown", "force", "Received unknown parameter: force"},
		{"an unknown parameter within another", "POST", "/v1/checkout/sessions", sessionForm + "&line_items[0][color]=red", 400, "parameter_unknown", "line_items[0][color]", ""},
		{"metadata without a name", "POST", "/v1/refunds", "payment_intent=" + paidIntent + "&metadata=x", 400, "parameter_unknown", "metadata", ""},
		{"a parameter given twice", "POST", "/v1/refunds", "amount=1&amount=2&payment_intent=" + paidIntent, 400, "parameter_invalid_string_empty", "amount", "given twice"},
		{"a refund of nothing in particular", "POST", "/v1/refunds", "amount=5", 400, "parameter_missing", "charge", ""},
		{"a refund of an intent and a charge", "POST", "/v1/refunds", "payment_intent=a&charge=b", 400, "parameters_exclusive", "charge", ""},
		{"a refund of zero", "POST", "/v1/refunds", "amount=0&payment_intent=" + paidIntent, 400, "parameter_invalid_integer", "amount", "Invalid positive integer"},
		{"a refund of half a cent", "POST", "/v1/refunds", "amount=0.5&payment_intent=" + paidIntent, 400, "parameter_invalid_integer", "amount", "Invalid integer"},
		{"a refund with an empty amount", "POST", "/v1/refunds", "amount=&payment_intent=" + paidIntent, 400, "parameter_invalid_empty", "amount", ""},
		{"a refund with a reason of its own", "POST", "/v1/refunds", "reason=mood&payment_intent=" + paidIntent, 400, "", "reason", "Invalid reason"},
		{"a refund of more than was paid", "POST", "/v1/refunds", "amount=1251&payment_intent=" + paidIntent, 400, "amount_too_large", "amount", "greater than unrefunded amount"},
		{"a refund of more than is left", "POST", "/v1/refunds", "amount=251&payment_intent=" + halfIntent, 400, "amount_too_large", "amount", "greater than unrefunded amount"},
		{"a refund when nothing is left", "POST", "/v1/refunds", "amount=1&payment_intent=" + goneIntent, 400, "charge_already_refunded", "", "already been refunded"},
		{"a refund of all when nothing is left", "POST", "/v1/refunds", "payment_intent=" + goneIntent, 400, "charge_already_refunded", "", ""},
		{"a refund of what was charged back", "POST", "/v1/refunds", "amount=5&payment_intent=" + disputed, 400, "charge_disputed", "", ""},
		{"a refund of an intent that was declined", "POST", "/v1/refunds", "payment_intent=" + declined.Intent, 400, "payment_intent_unexpected_state", "", "does not have a successful charge"},
		{"a refund that three decimals cannot be", "POST", "/v1/refunds", "amount=1001&payment_intent=" + dinar.ID, 400, "parameter_invalid_integer", "amount", "multiple of 10"},
		{"to expire a session that is complete", "POST", "/v1/checkout/sessions/" + paidSession + "/expire", "", 400, "", "", "only an open session can expire"},
		{"to cancel what is paid", "POST", "/v1/payment_intents/" + paidIntent + "/cancel", "", 400, "payment_intent_unexpected_state", "", `"client_secret":"` + paidIntent},
		{"to cancel the intent of an open session", "POST", "/v1/payment_intents/" + declined.Intent + "/cancel", "", 400, "payment_intent_unexpected_state", "", "ends with its session"},
		{"to cancel for no reason of Stripe's", "POST", "/v1/payment_intents/" + paidIntent + "/cancel", "cancellation_reason=late", 400, "", "cancellation_reason", ""},
		{"to capture what is not held", "POST", "/v1/payment_intents/" + paidIntent + "/capture", "", 400, "payment_intent_unexpected_state", "", ""},
		{"a session without a mode", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "mode=payment&", "", 1), 400, "parameter_missing", "mode", "Missing required param: mode."},
		{"a subscription's session", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "mode=payment", "mode=subscription", 1), 400, "", "mode", ""},
		{"a session without an end", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "success_url=", "cancel_url=", 1), 400, "parameter_missing", "success_url", ""},
		{"a session with an end that is no URL", "POST", "/v1/checkout/sessions", sessionForm + "&cancel_url=shop", 400, "url_invalid", "cancel_url", "Not a valid URL"},
		{"a session without lines", "POST", "/v1/checkout/sessions", "mode=payment&success_url=https%3A%2F%2Fshop.example", 400, "parameter_missing", "line_items", ""},
		{"a line without an amount", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "&line_items[0][price_data][unit_amount]=1250", "", 1), 400, "parameter_missing", "line_items[0][price_data][unit_amount]", ""},
		{"a line without a number", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "line_items[0][quantity]=1&", "", 1), 400, "parameter_missing", "line_items[0][quantity]", ""},
		{"a line of none", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "[quantity]=1", "[quantity]=0", 1), 400, "parameter_invalid_integer", "line_items[0][quantity]", ""},
		{"a line without a name", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "&line_items[0][price_data][product_data][name]=Book", "", 1), 400, "parameter_missing", "line_items[0][price_data][product_data][name]", ""},
		{"a line below nothing", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "=1250", "=-1", 1), 400, "parameter_invalid_integer", "line_items[0][price_data][unit_amount]", ""},
		{"a line of nine digits", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "=1250", "=100000000", 1), 400, "amount_too_large", "line_items[0][price_data][unit_amount]", ""},
		{"lines that come to nine digits", "POST", "/v1/checkout/sessions", strings.Replace(strings.Replace(sessionForm, "=1250", "=50000000", 1), "[quantity]=1", "[quantity]=2", 1), 400, "amount_too_large", "line_items", ""},
		{"a currency in capitals", "POST", "/v1/checkout/sessions", strings.Replace(sessionForm, "=eur", "=EUR", 1), 400, "", "line_items[0][price_data][currency]", "lower case"},
		{"an amount that three decimals cannot be", "POST", "/v1/checkout/sessions", strings.Replace(strings.Replace(sessionForm, "=eur", "=kwd", 1), "=1250", "=1251", 1), 400, "parameter_invalid_integer", "line_items[0][price_data][unit_amount]", ""},
		{"lines of two currencies", "POST", "/v1/checkout/sessions", sessionForm + strings.ReplaceAll(strings.ReplaceAll("&"+sessionForm[strings.Index(sessionForm, "line_items"):], "[0]", "[1]"), "=eur", "=usd"), 400, "", "line_items[1]", "same currency"},
		{"a session that ends too soon", "POST", "/v1/checkout/sessions", sessionForm + fmt.Sprintf("&expires_at=%d", w.clock.Now().Unix()+60), 400, "", "expires_at", "30 minutes"},
		{"a session that ends too late", "POST", "/v1/checkout/sessions", sessionForm + fmt.Sprintf("&expires_at=%d", w.clock.Now().Unix()+86401), 400, "", "expires_at", ""},
		{"a way to pay that is unknown", "POST", "/v1/checkout/sessions", sessionForm + "&payment_method_types[]=barter", 400, "", "payment_method_types", "barter"},
		{"a debit that is to be held", "POST", "/v1/checkout/sessions", sessionForm + "&payment_method_types[]=sepa_debit&payment_intent_data[capture_method]=manual", 400, "parameter_unknown", "", ""},
		{"metadata with a long name", "POST", "/v1/checkout/sessions", sessionForm + "&metadata[" + strings.Repeat("n", 41) + "]=x", 400, "", "metadata", "40 characters"},
		{"metadata with a long value", "POST", "/v1/checkout/sessions", sessionForm + "&metadata[n]=" + strings.Repeat("v", 501), 400, "", "metadata[n]", "500 characters"},
		{"metadata with 51 names", "POST", "/v1/checkout/sessions", sessionForm + manyLabels(51), 400, "", "metadata", "50 metadata keys"},
		{"an expansion that is not to be had", "GET", "/v1/refunds", "expand[]=data.amount", 200, "", "", `"data":[`},
		{"an endpoint without events", "POST", "/v1/webhook_endpoints", "url=https%3A%2F%2Fshop.example", 400, "parameter_missing", "enabled_events", ""},
		{"an endpoint of another version", "POST", "/v1/webhook_endpoints", "url=https%3A%2F%2Fshop.example&enabled_events[]=*&api_version=2020-08-27", 400, "", "api_version", ""},
		{"a path that is unknown", "GET", "/v1/customers", "", 404, "", "", "Unrecognized request URL (GET: /v1/customers)"},
		{"a method that is unknown", "DELETE", "/v1/refunds/re_1", "", 404, "", "", "Unrecognized request URL"},
		{"a path with a slash too many", "GET", "/v1/refunds/", "", 404, "", "", "Unrecognized request URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.name, "an expansion") { // there are refunds, and amount is no id
				tt.status, tt.param, tt.message = 400, "expand", "cannot be expanded"
			}
			got := w.call(t, tt.method, tt.path, tt.params)
			if got.status != tt.status {
				t.Fatalf("%d %s, want %d", got.status, got.body, tt.status)
			}
			got.has(t, `"type":"invalid_request_error"`, tt.message)
			for name, want := range map[string]string{"code": tt.code, "param": tt.param} {
				if want == "" && strings.Contains(got.body, `"`+name+`":`) || want != "" && !strings.Contains(got.body, fmt.Sprintf(`"%s":%q`, name, want)) {
					t.Errorf("%s, want the %s %q", got.body, name, want)
				}
			}
			if !strings.HasPrefix(got.header.Get("Request-Id"), "req_") || got.header.Get("Date") != w.clock.Now().UTC().Format(http.TimeFormat) {
				t.Errorf("headers %v", got.header)
			}
		})
	}
	if n := len(w.Events()); n != events {
		t.Errorf("refusals made %d events", n-events)
	}
	allow(t, w.Check())
}

func manyLabels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "&metadata[n%d]=x", i)
	}
	return b.String()
}

func TestWhoMayCall(t *testing.T) {
	own := newWorld(t)
	connected := newWorld(t, func(c *stripefake.ServerConfig) { c.Config.Connected = "acct_1shop" })
	for _, tt := range []struct {
		name    string
		w       *world
		path    string
		headers []string
		status  int
		code    string
	}{
		{"the key", own, "/v1/refunds", nil, 200, ""},
		{"the key by basic authentication", own, "/v1/refunds", []string{"Authorization: Basic c2tfdGVzdF9mYWtlOg=="}, 200, ""},
		{"another key", own, "/v1/refunds", []string{"Authorization: Bearer sk_test_other"}, 401, ""},
		{"no key", own, "/v1/refunds", []string{"Authorization: "}, 401, ""},
		{"no key, and a path that is unknown", own, "/v1/no", []string{"Authorization: "}, 401, ""},
		{"an account that is not there", own, "/v1/refunds", []string{"Stripe-Account: acct_1shop"}, 403, "account_invalid"},
		{"the connected account", connected, "/v1/refunds", []string{"Stripe-Account: acct_1shop"}, 200, ""},
		{"another connected account", connected, "/v1/refunds", []string{"Stripe-Account: acct_2"}, 403, "account_invalid"},
		{"the platform itself, about money", connected, "/v1/refunds", nil, 403, "account_invalid"},
		{"another connected account, about the platform's endpoints", connected, "/v1/webhook_endpoints", []string{"Stripe-Account: acct_2"}, 403, "account_invalid"},
		{"the platform itself, about its endpoints", connected, "/v1/webhook_endpoints", nil, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.w.call(t, "GET", tt.path, "", tt.headers...)
			if got.status != tt.status {
				t.Fatalf("%d %s, want %d", got.status, got.body, tt.status)
			}
			if tt.code != "" {
				got.has(t, `"code":"`+tt.code+`"`)
			}
			if strings.Contains(got.body, "sk_test") {
				t.Errorf("the answer has a key in it: %s", got.body)
			}
		})
	}
}

func TestWhatIsNoFormIsRefused(t *testing.T) {
	w := newWorld(t)
	got := w.call(t, "POST", "/v1/refunds", `{"charge":"ch_1"}`, "Content-Type: application/json")
	got.has(t, "content type")
	if got.status != 400 {
		t.Errorf("JSON: %d", got.status)
	}
	_, intent := w.paid(t, "A1")
	for name, params := range map[string]string{
		"a broken escape":    "payment_intent=" + intent + "&metadata[a]=%zz",
		"a body above 1 MiB": "payment_intent=" + intent + "&" + strings.Repeat("&", 1<<20),
	} {
		if got := w.call(t, "POST", "/v1/refunds", params); got.status != 400 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if n := len(w.RefundsWith("none", "")); n != 0 {
		t.Errorf("%d refunds by requests that could not be read", n)
	}
}

func TestExpansions(t *testing.T) {
	w := newWorld(t)
	session, intent := w.paid(t, "A1")
	for _, tt := range []struct {
		name, path, params string
		want               []string
	}{
		{"the intent of a session", "/v1/checkout/sessions/" + session, "expand[]=payment_intent", []string{`"payment_intent":{`, `"object":"payment_intent"`}},
		{"the lines of a session", "/v1/checkout/sessions/" + session, "expand[0]=line_items", []string{`"description":"Wrapping"`, `"quantity":2`}},
		{"the charge of an intent", "/v1/payment_intents/" + intent, "expand[]=latest_charge", []string{`"latest_charge":{`}},
		{"in a list", "/v1/charges", "expand[]=data.payment_intent", []string{`"payment_intent":{`}},
		{"what is not there yet", "/v1/checkout/sessions/" + w.open(t, "A2").ID, "expand[]=payment_intent", []string{`"payment_intent":null`}},
		{"the lines by themselves", "/v1/checkout/sessions/" + session + "/line_items", "limit=1", []string{`"has_more":true`, `"description":"Book"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := w.call(t, "GET", tt.path, tt.params)
			if got.status != 200 {
				t.Fatal(got.body)
			}
			got.has(t, tt.want...)
		})
	}
}

func TestACaptureAndACancelByTheAPI(t *testing.T) {
	w := newWorld(t)
	var pay, drop stripefake.Intent
	allow(t, w.Do(func(a *stripefake.Account) (err error) {
		pay, err = a.CreateIntent(stripefake.IntentParams{Amount: 900, Currency: "eur", Manual: true})
		allow(t, err, a.Authorize(pay.ID))
		drop, err = a.CreateIntent(stripefake.IntentParams{Amount: 900, Currency: "eur"})
		return err
	}))
	got := must[*stripe.PaymentIntent](t)(w.client.V1PaymentIntents.Capture(t.Context(), pay.ID, &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(700)}))
	if got.Status != "succeeded" || got.AmountReceived != 700 {
		t.Errorf("captured %+v", got)
	}
	params := &stripe.PaymentIntentCancelParams{CancellationReason: stripe.String("abandoned")}
	params.SetIdempotencyKey("cancel-1")
	gone := must[*stripe.PaymentIntent](t)(w.client.V1PaymentIntents.Cancel(t.Context(), drop.ID, params))
	if gone.Status != "canceled" || gone.CancellationReason != "abandoned" || gone.CanceledAt != w.clock.Now().Unix() {
		t.Errorf("canceled %+v", gone)
	}
	last := w.Events()[len(w.Events())-1]
	if last.Type != "payment_intent.canceled" || !strings.Contains(string(last.Body(0)), `"idempotency_key":"cancel-1"`) {
		t.Errorf("the event does not name the call that caused it: %s", last.Body(0))
	}
	other := must[*stripe.PaymentIntent](t)(w.client.V1PaymentIntents.Retrieve(t.Context(), drop.ID, nil))
	if other.Status != "canceled" {
		t.Errorf("retrieved %s", other.Status)
	}
}

func TestSessionsRunOutByTheClock(t *testing.T) {
	w := newWorld(t)
	short := must[*stripe.CheckoutSession](t)(w.client.V1CheckoutSessions.Create(t.Context(), func() *stripe.CheckoutSessionCreateParams {
		p := checkout("A1")
		p.ExpiresAt = stripe.Int64(w.clock.Now().Unix() + 1800)
		return p
	}()))
	long := w.open(t, "A2")
	for _, tt := range []struct {
		name        string
		wait        time.Duration
		short, long stripe.CheckoutSessionStatus
	}{
		{"before either ends", 1799 * time.Second, "open", "open"},
		{"after half an hour", time.Second, "expired", "open"},
		{"after a day", 24 * time.Hour, "expired", "expired"},
	} {
		w.clock.advance(tt.wait)
		for id, want := range map[string]stripe.CheckoutSessionStatus{short.ID: tt.short, long.ID: tt.long} {
			if s := must[*stripe.CheckoutSession](t)(w.client.V1CheckoutSessions.Retrieve(t.Context(), id, nil)); s.Status != want {
				t.Errorf("%s: %s is %s, want %s", tt.name, id, s.Status, want)
			}
		}
	}
	for _, e := range w.Events() {
		if body := string(e.Body(0)); !strings.Contains(body, `"request":{"id":null,"idempotency_key":null}`) {
			t.Errorf("time passed, and its event names a call: %s", body)
		}
	}
	expired := must[*stripe.CheckoutSession](t)(w.client.V1CheckoutSessions.Expire(t.Context(), w.open(t, "A3").ID, nil))
	if expired.Status != "expired" || expired.URL != "" {
		t.Errorf("expired by the API: %+v", expired)
	}
}

func TestRefundsThatTakeTheirTime(t *testing.T) {
	w := newWorld(t, func(c *stripefake.ServerConfig) { c.PendingRefunds = true })
	_, intent := w.paid(t, "A1")
	r := must[*stripe.Refund](t)(w.client.V1Refunds.Create(t.Context(), &stripe.RefundCreateParams{PaymentIntent: stripe.String(intent), Amount: stripe.Int64(50)}))
	if r.Status != "pending" || w.Ledger().Of(intent).Pending != 50 || w.Ledger().Of(intent).Refunded != 0 {
		t.Errorf("%s, %+v", r.Status, w.Ledger().Of(intent))
	}
	allow(t, w.Do(func(a *stripefake.Account) error { return a.RefundSucceeds(r.ID) }))
	if m := w.Ledger().Of(intent); m.Refunded != 50 || m.Pending != 0 {
		t.Errorf("%+v", m)
	}
	debit := newWorld(t)
	s := must[stripefake.Session](t)(debit.PayByDebit(debit.open(t, "A1").ID))
	if s.PaymentStatus != "unpaid" || s.Status != "complete" {
		t.Fatalf("a debit: %+v", s)
	}
	s = must[stripefake.Session](t)(debit.Settle(s.ID))
	if s.PaymentStatus != "paid" {
		t.Fatalf("a debit that was paid: %+v", s)
	}
	r = must[*stripe.Refund](t)(debit.client.V1Refunds.Create(t.Context(), &stripe.RefundCreateParams{PaymentIntent: stripe.String(s.Intent)}))
	if r.Status != "pending" || !strings.HasPrefix(r.ID, "pyr_") {
		t.Errorf("the refund of a debit: %+v", r)
	}
}

func TestManyCallsAtOnceAreOneAccount(t *testing.T) {
	w := newWorld(t)
	_, intent := w.paid(t, "A1")
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			_, err := w.client.V1Refunds.Create(t.Context(), &stripe.RefundCreateParams{PaymentIntent: stripe.String(intent), Amount: stripe.Int64(50), Metadata: map[string]string{"n": fmt.Sprint(i)}})
			if err != nil && stripeError(t, err).Code != stripe.ErrorCodeChargeAlreadyRefunded {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if m := w.Ledger().Of(intent); m.Refunded != 1250 {
		t.Errorf("refunded %d of 1250", m.Refunded)
	}
	ids := map[string]bool{}
	for i := range 300 {
		ids[w.open(t, fmt.Sprint("B", i)).ID] = true
	}
	if len(ids) != 300 {
		t.Errorf("300 sessions have %d ids", len(ids))
	}
	allow(t, w.Check())
}

func TestABuyerOnThePage(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		name     string
		visit    []string // what is posted, one after the other
		status   int      // of the last answer
		location string
		session  string
		payment  string
	}{
		{"who looks only", nil, 200, "", "open", "unpaid"},
		{"who pays", []string{"method=card"}, 303, "https://shop.example/ok?s=ID", "complete", "paid"},
		{"who pays without saying how", []string{""}, 303, "https://shop.example/ok?s=ID", "complete", "paid"},
		{"whose card is declined", []string{"method=decline"}, 200, "", "open", "unpaid"},
		{"who pays after a decline", []string{"method=decline", "method=card"}, 303, "https://shop.example/ok?s=ID", "complete", "paid"},
		{"who pays by debit after a decline", []string{"method=decline", "method=debit"}, 303, "https://shop.example/ok?s=ID", "complete", "unpaid"},
		{"who presses twice", []string{"method=card", "method=card"}, 409, "", "complete", "paid"},
		{"who makes up a method", []string{"method=barter"}, 400, "", "open", "unpaid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := w.open(t, "A1").ID
			got := w.call(t, "GET", "/pay/"+id, "", "Authorization: ")
			got.has(t, "12.50 EUR", "2 × Book")
			for _, form := range tt.visit {
				got = w.call(t, "POST", "/pay/"+id, form, "Authorization: ", "Content-Type: application/x-www-form-urlencoded")
			}
			if got.status != tt.status || got.header.Get("Location") != strings.Replace(tt.location, "ID", id, 1) {
				t.Errorf("%d to %q\n%s", got.status, got.header.Get("Location"), got.body)
			}
			s := must[*stripe.CheckoutSession](t)(w.client.V1CheckoutSessions.Retrieve(t.Context(), id, nil))
			if string(s.Status) != tt.session || string(s.PaymentStatus) != tt.payment {
				t.Errorf("%s and %s, want %s and %s", s.Status, s.PaymentStatus, tt.session, tt.payment)
			}
		})
	}
	if got := w.call(t, "GET", "/pay/cs_no", ""); got.status != 404 {
		t.Errorf("a page of no session: %d", got.status)
	}
	if got := w.call(t, "PUT", "/pay/cs_no", ""); got.status != 405 {
		t.Errorf("PUT: %d", got.status)
	}
	hostile := must[*stripe.CheckoutSession](t)(w.client.V1CheckoutSessions.Create(t.Context(), func() *stripe.CheckoutSessionCreateParams {
		p := checkout("A9")
		p.LineItems[0].PriceData.ProductData.Name = stripe.String("<script>alert(1)</script>")
		return p
	}()))
	if got := w.call(t, "GET", "/pay/"+hostile.ID, ""); strings.Contains(got.body, "<script>") {
		t.Errorf("the page runs the shop's text: %s", got.body)
	}
	allow(t, w.Check())
}

func TestWaysToPayAreTheSessions(t *testing.T) {
	for _, tt := range []struct {
		name, params string
		card, debit  bool
	}{
		{"whatever the account has", "", true, true},
		{"cards only", "&payment_method_types[]=card", true, false},
		{"debits only", "&payment_method_types[0]=sepa_debit", false, true},
		{"held, so no debit", "&payment_intent_data[capture_method]=manual", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			for _, way := range []struct {
				pay  func(string) (stripefake.Session, error)
				want bool
			}{{w.Pay, tt.card}, {w.PayByDebit, tt.debit}} {
				got := w.call(t, "POST", "/v1/checkout/sessions", sessionForm+tt.params)
				if got.status != 200 {
					t.Fatal(got.body)
				}
				sessions := w.SessionsWith("none", "")
				s, err := way.pay(sessions[len(sessions)-1].ID)
				if (err == nil) != way.want {
					t.Errorf("%+v, %v", s, err)
				}
				allow(t, w.Check())
			}
		})
	}
}

func TestABankThatAnswersLater(t *testing.T) {
	w := newWorld(t)
	s := must[stripefake.Session](t)(w.PayByDebit(w.open(t, "A1").ID))
	if bounced := must[stripefake.Session](t)(w.Bounce(s.ID)); bounced.PaymentStatus != "unpaid" {
		t.Errorf("%+v", bounced)
	}
	if _, err := w.Settle(s.ID); err == nil {
		t.Error("the bank paid what it had refused")
	}
	if e := w.Events()[len(w.Events())-1]; e.Type != "checkout.session.async_payment_failed" {
		t.Errorf("the last event is %s", e)
	}
}

func TestParametersKeepTheirMeaning(t *testing.T) {
	w := newWorld(t)
	meta := url.Values{"metadata[order id]": {"ö & ü"}, "metadata[gone]": {""}, "metadata[a=b]": {"x"}}
	got := w.call(t, "POST", "/v1/checkout/sessions", sessionForm+"&"+meta.Encode())
	got.has(t, `"order id":"ö \u0026 ü"`, `"a=b":"x"`)
	if strings.Contains(got.body, "gone") {
		t.Errorf("an empty value is kept: %s", got.body)
	}
}
