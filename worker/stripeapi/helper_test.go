package stripeapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/worker/stripeapi"
)

const (
	keyText = "sk_test_MARKkey"
	opKey   = "po_0123456789abcdef0123456789abcdef"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// got is a request as it arrived.
type got struct {
	method, path string
	form         url.Values
	header       http.Header
}

func (g got) route() string { return g.method + " " + g.path }

// reply is an answer as it goes out. The zero status is 200.
type reply struct {
	status int
	header map[string]string
	body   string
	hangUp bool // instead of an answer
	cut    bool // in the middle of the body
}

// stub is a server that answers what the test says, and remembers what it got.
type stub struct {
	url string

	mu       sync.Mutex
	requests []got
	answer   func(n int, g got) reply // n counts from 1
}

func newStub(t *testing.T, answer func(n int, g got) reply) *stub {
	t.Helper()
	s := &stub{answer: answer}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// ServeHTTP implements http.Handler.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	for name, values := range r.URL.Query() {
		form[name] = append(form[name], values...)
	}
	s.mu.Lock()
	g := got{r.Method, r.URL.EscapedPath(), form, r.Header.Clone()}
	s.requests = append(s.requests, g)
	n := len(s.requests)
	s.mu.Unlock()
	a := s.answer(n, g)
	if a.hangUp {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Request-Id", fmt.Sprintf("req_%d", n))
	w.Header().Set("Content-Type", "application/json")
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.cut {
		w.Header().Set("Content-Length", fmt.Sprint(len(a.body)+10))
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func (s *stub) got() []got {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *stub) routes() []string {
	var out []string
	for _, g := range s.got() {
		out = append(out, g.route())
	}
	return out
}

// always answers every request the same.
func always(a reply) func(int, got) reply { return func(int, got) reply { return a } }

// byRoute answers by method and path; what is not there is a 404 of Stripe's.
// Of several answers each is given once, and the last for good.
func byRoute(routes map[string][]reply) func(int, got) reply {
	var mu sync.Mutex
	left := map[string][]reply{}
	for route, list := range routes {
		left[route] = list
	}
	return func(_ int, g got) reply {
		mu.Lock()
		defer mu.Unlock()
		list := left[g.route()]
		if len(list) == 0 {
			return stripeError(404, "invalid_request_error", "resource_missing")
		}
		if len(list) > 1 {
			left[g.route()] = list[1:]
		}
		return list[0]
	}
}

// stripeError is an error as Stripe answers it, with a customer's data in it.
func stripeError(status int, kind, code string) reply {
	return reply{status: status, body: fmt.Sprintf(
		`{"error":{"type":%q,"code":%q,"message":"No MARK for buyer.MARK@example.com","param":"amount","request_log_url":"https://MARK",
		"payment_intent":{"id":"pi_1","object":"payment_intent","client_secret":"pi_1_secret_MARK","receipt_email":"MARK@example.com"}}}`, kind, code)}
}

func ok(body string) []reply { return []reply{{body: body}} }

func refundBody(id, status string) string {
	return fmt.Sprintf(`{"id":%q,"object":"refund","status":%q,"amount":500,"currency":"eur","charge":"ch_1","payment_intent":"pi_1",
		"metadata":{"paidonce_operation":%q,"order_id":"ORD-1"},"instructions_email":"MARK@example.com"}`, id, status, opKey)
}

func sessionBody(id, status, payment string, intent ...string) string {
	pi := "null"
	if len(intent) > 0 {
		pi = `"` + intent[0] + `"`
	}
	url := "null"
	if status == "open" {
		url = `"https://checkout.stripe.com/c/pay/` + id + `#MARKfragment"`
	}
	return fmt.Sprintf(`{"id":%q,"object":"checkout.session","mode":"payment","status":%q,"payment_status":%q,"payment_intent":%s,"url":%s,
		"amount_total":1250,"currency":"eur","expires_at":1796212800,"client_secret":"cs_secret_MARK","customer_email":"MARK@example.com","metadata":{}}`,
		id, status, payment, pi, url)
}

func ownSession(id, status string) string {
	return strings.Replace(sessionBody(id, status, "unpaid"), `"metadata":{}`, `"metadata":{"paidonce_operation":"`+opKey+`"}`, 1)
}

func intentBody(id, status string) string {
	return fmt.Sprintf(`{"id":%q,"object":"payment_intent","status":%q,"amount":1250,"currency":"eur","client_secret":"pi_secret_MARK","receipt_email":"MARK@example.com"}`, id, status)
}

func listBody(more bool, items ...string) string {
	return fmt.Sprintf(`{"object":"list","url":"/v1/MARK","has_more":%t,"data":[%s]}`, more, strings.Join(items, ","))
}

// key is the key of all tests.
func key(t *testing.T) stripeapi.Key {
	t.Helper()
	k, err := stripeapi.NewKey(keyText)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newClient is a client of base that writes its log to the returned buffer.
func newClient(t *testing.T, base string, configure ...func(*stripeapi.Config)) (*stripeapi.Client, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := stripeapi.Config{
		Key: key(t), Base: base, Transport: transport, Now: func() time.Time { return now }, Rate: 10000,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range configure {
		f(&cfg)
	}
	c, err := stripeapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, log
}

// claimOf is a first attempt of an operation.
func claimOf(t *testing.T, operation string, body any) store.EffectClaim {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return store.EffectClaim{
		Row: 1, Lease: 1, Key: opKey, BaseKey: opKey, Operation: operation, Kind: store.KindStripe, Target: store.StripeTarget,
		Body: b, Attempt: 1, CreatedAt: store.At(now), Order: "ORD-1",
	}
}

func metadata() map[string]string {
	return map[string]string{"paidonce_operation": opKey, "order_id": "ORD-1"}
}

func refundCall() store.RefundCall {
	return store.RefundCall{PaymentIntent: "pi_1", AmountMinor: 500, Currency: "eur", Reason: "requested_by_customer", Metadata: metadata()}
}

func checkoutCall() store.CheckoutCall {
	return store.CheckoutCall{
		SuccessURL: "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}", CancelURL: "https://shop.example/cart", Currency: "eur",
		Lines: []store.CheckoutLine{{Name: "E-book", UnitMinor: 1000, Quantity: 1}, {Name: "Tea & Ü", UnitMinor: 125, Quantity: 2}},
		Email: "buyer@example.com", Reference: "ORD-1", Metadata: metadata(),
	}
}

// withSessions is a claim beside which sessions may still be open.
func withSessions(c store.EffectClaim, ids ...string) store.EffectClaim {
	c.Sessions = ids
	return c
}

func lookUp(c store.EffectClaim) store.EffectClaim {
	c.LookUp, c.Attempt, c.FirstTriedAt = true, 2, store.At(now)
	return c
}

// checkSecrecy fails if anything that must stay with us is in what an answer
// shows or the log says. Everything like that in these tests has MARK in it.
func checkSecrecy(t *testing.T, a store.Answer, log *bytes.Buffer) {
	t.Helper()
	for what, text := range map[string]string{
		"Error": a.Error, "Code": a.Code, "Ref": a.Ref, "RequestID": a.RequestID, "Body": string(a.Body), "the log": log.String(),
	} {
		for _, word := range []string{"MARK", "http://", "https://", "127.0.0.1", "@"} {
			if strings.Contains(text, word) {
				t.Errorf("%s holds %s: %s", what, word, text)
			}
		}
	}
	if len(a.Error) > 200 || len(a.Body) > store.MaxAnswerBody {
		t.Errorf("the error has %d bytes, the body %d", len(a.Error), len(a.Body))
	}
	if len(a.Body) > 0 && !json.Valid(a.Body) {
		t.Errorf("the body is not JSON: %s", a.Body)
	}
}
