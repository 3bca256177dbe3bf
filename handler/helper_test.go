package handler

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"

	"paidonce/store"
	"paidonce/store/storetest"
)

const (
	stripeSecret   = "whsec_test_WHMARK"
	githubSecret   = "It's a Secret to Everybody"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hmacSecret     = "HMACMARK"
	adminToken     = "TOKMARK-0123456789"
)

// marks must never stand in a log line or an answer.
var marks = []string{"WHMARK", "HMACMARK", "TOKMARK", "BODYMARK", "MfKQ9r8GKY", "Secret to Everybody"}

func mustSecret(t testing.TB, provider, text string) Secret {
	t.Helper()
	s, err := NewSecret(provider, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// logBuffer is a log that several goroutines write and the test reads.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fakeStore forces what a real store does only on a bad day. A method that a
// test does not set panics.
type fakeStore struct {
	Store
	add   func(context.Context, store.NewEvent) (store.Added, error)
	ack   func(time.Duration) // may be nil
	ready func(context.Context) error
	find  func(ctx context.Context, tenant, id string) (store.OrderDetail, error)
	await func(ctx context.Context, id string) (store.EffectDetail, error)
}

func (f *fakeStore) AddEvent(ctx context.Context, e store.NewEvent) (store.Added, error) {
	return f.add(ctx, e)
}
func (f *fakeStore) Ready(ctx context.Context) error { return f.ready(ctx) }
func (f *fakeStore) ObserveAck(d time.Duration) {
	if f.ack != nil {
		f.ack(d)
	}
}
func (f *fakeStore) FindOrder(ctx context.Context, tenant, id string) (store.OrderDetail, error) {
	return f.find(ctx, tenant, id)
}
func (f *fakeStore) AwaitEffect(ctx context.Context, id string) (store.EffectDetail, error) {
	return f.await(ctx, id)
}

// RequestCheckout queues effect 7, whatever is asked for.
func (f *fakeStore) RequestCheckout(context.Context, string, string, *store.Checkout) (store.Effect, error) {
	return store.Effect{ID: "7", Status: "pending"}, nil
}

// world is a Handler behind two real listeners.
type world struct {
	t      testing.TB
	h      *Handler
	s      *store.Store // nil when the store is a fake one
	clock  *storetest.Clock
	log    *logBuffer
	wakes  atomic.Int64
	public string // http://127.0.0.1:…
	admin  string
	seen   strings.Builder // all answers
}

func testSources(t testing.TB) []Source {
	return []Source{
		{Name: "stripe", Provider: ProviderStripe, Secrets: []Secret{mustSecret(t, ProviderStripe, stripeSecret)}},
		{Name: "lenient", Provider: ProviderStripe, Secrets: []Secret{mustSecret(t, ProviderStripe, stripeSecret)}, Foreign: ForeignIgnore},
		{Name: "connect", Provider: ProviderStripe, Secrets: []Secret{mustSecret(t, ProviderStripe, stripeSecret)}, Account: "*"},
		{Name: "github", Provider: ProviderGitHub, Secrets: []Secret{mustSecret(t, ProviderGitHub, githubSecret)}},
		{Name: "standard", Provider: ProviderStandard, Secrets: []Secret{mustSecret(t, ProviderStandard, standardSecret)}},
		{Name: "hmac", Provider: ProviderHMAC, Secrets: []Secret{mustSecret(t, ProviderHMAC, hmacSecret)},
			SignatureHeader: "X-Signature", IDHeader: "X-Id"},
		{Name: "hmac2", Provider: ProviderHMAC, Secrets: []Secret{mustSecret(t, ProviderHMAC, hmacSecret)},
			SignatureHeader: "X-Signature", IDHeader: "X-Id"},
	}
}

// newWorld starts a Handler over a real store.
func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	s, clock := storetest.Open(t)
	w := &world{t: t, s: s, clock: clock}
	w.start(append([]func(*Config){func(c *Config) { c.Store = s }}, change...)...)
	return w
}

// newFakeWorld starts a Handler over a fake store.
func newFakeWorld(t testing.TB, f *fakeStore) *world {
	t.Helper()
	w := &world{t: t, clock: storetest.NewClock()}
	w.start(func(c *Config) { c.Store = f })
	return w
}

func (w *world) start(change ...func(*Config)) {
	w.t.Helper()
	w.log = &logBuffer{}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	token, err := NewToken(adminToken)
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := Config{Sources: testSources(w.t), Wake: func() { w.wakes.Add(1) }, Now: w.clock.Now, Log: log, Token: token}
	for _, f := range change {
		f(&cfg)
	}
	if w.h, err = New(cfg); err != nil {
		w.t.Fatal(err)
	}
	w.public, w.admin = w.listen(w.h.Public(), log), w.listen(w.h.Admin(), log)
	w.t.Cleanup(func() {
		for _, mark := range marks {
			if strings.Contains(w.log.String(), mark) {
				w.t.Errorf("the log holds the marker %s", mark)
			}
			if strings.Contains(w.seen.String(), mark) {
				w.t.Errorf("an answer holds the marker %s", mark)
			}
		}
	})
}

func (w *world) listen(h http.Handler, log *slog.Logger) string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	srv := NewServer(h, log)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			w.t.Errorf("serve: %v", err)
		}
	}()
	w.t.Cleanup(func() {
		if err := srv.Shutdown(context.Background()); err != nil {
			w.t.Error(err)
		}
		<-done
	})
	return "http://" + l.Addr().String()
}

// got is an answer as it came.
type got struct {
	status int
	header http.Header
	body   string
}

// code is the error code of the answer, or the status word of a good one.
func (g got) code() string {
	var v struct {
		Status string
		Error  struct{ Code string }
	}
	if json.Unmarshal([]byte(g.body), &v) != nil {
		return "not JSON"
	}
	return v.Status + v.Error.Code
}

// problems are the fields of a 422, each with its words.
func (g got) problems(t testing.TB) map[string]string {
	t.Helper()
	var v errorBody
	if err := json.Unmarshal([]byte(g.body), &v); err != nil {
		t.Fatalf("%v in %s", err, g.body)
	}
	m := map[string]string{}
	for _, f := range v.Error.Fields {
		m[f.Field] += f.Problem
	}
	return m
}

// field reads one member of the answer.
func (g got) field(t testing.TB, name string) string {
	t.Helper()
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(g.body), &v); err != nil {
		t.Fatalf("%v in %s", err, g.body)
	}
	return strings.Trim(string(v[name]), `"`)
}

var client = &http.Client{
	Transport: &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
}

// do sends a request and checks what every answer must have.
func (w *world) do(method, url string, header http.Header, body []byte) got {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, lines := range header {
		r.Header[name] = lines
	}
	resp, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	g := got{resp.StatusCode, resp.Header, string(b)}
	w.seen.WriteString(g.body)
	w.check(method, url, g)
	return g
}

func (w *world) check(method, url string, g got) {
	w.t.Helper()
	if method != http.MethodHead && !json.Valid([]byte(g.body)) {
		w.t.Errorf("%s %s: the answer is not JSON: %q", method, url, g.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if have := g.header.Get(name); have != want {
			w.t.Errorf("%s %s: %s is %q; want %q", method, url, name, have, want)
		}
	}
	if g.status == http.StatusServiceUnavailable && g.header.Get("Retry-After") == "" {
		w.t.Errorf("%s %s: 503 without Retry-After", method, url)
	}
}

// post posts a delivery to a source.
func (w *world) post(source string, header http.Header, body []byte) got {
	w.t.Helper()
	return w.do(http.MethodPost, w.public+"/webhooks/"+source, header, body)
}

// stripe posts a delivery that is well signed.
func (w *world) stripe(source string, body []byte) got {
	w.t.Helper()
	return w.post(source, w.signed(body), body)
}

// signed are the headers of a well-signed Stripe delivery, sent now.
func (w *world) signed(body []byte) http.Header {
	return stripeHeader(w.clock.Now(), body, stripeSecret)
}

func stripeHeader(at time.Time, body []byte, secret string) http.Header {
	return http.Header{"Stripe-Signature": {fmt.Sprintf("t=%d,v1=%s", at.Unix(), v1(at.Unix(), body, secret))}}
}

func v1(t int64, body []byte, secret string) string {
	return hex.EncodeToString(webhook.ComputeSignature(time.Unix(t, 0), body, secret))
}

// call makes an admin request with the token.
func (w *world) call(method, path, body string) got {
	w.t.Helper()
	return w.do(method, w.admin+path, http.Header{"Authorization": {"Bearer " + adminToken}}, []byte(body))
}

// event is what the store holds of an event.
func (w *world) event(scope, id string) store.Event {
	w.t.Helper()
	e, err := w.s.FindEvent(context.Background(), scope, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// events counts the rows of the inbox.
func (w *world) events() int64 {
	w.t.Helper()
	st, err := w.s.Stats(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	var n int64
	for _, verdicts := range st.Events {
		for _, k := range verdicts {
			n += k
		}
	}
	return n
}

// testEvent is the harness event of the failure catalogue.
func testEvent(id string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2024-06-20","created":1750000000,"livemode":false,`+
		`"pending_webhooks":1,"request":{"id":"req_T1","idempotency_key":null},"type":"payment_intent.succeeded",`+
		`"data":{"object":{"id":"pi_T1","object":"payment_intent","amount":1250,"amount_received":1250,"currency":"eur",`+
		`"status":"succeeded","latest_charge":"ch_T1","metadata":{"order_id":"ORD-1"}}}}`, id)
}
