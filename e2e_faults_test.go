package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"paidonce/store"
	"paidonce/worker/stripefake"
)

// The situations of the fault table: what may go wrong with one call to the
// outside world.
const (
	allWell         = "ok"
	notApplied      = "failed and not applied"
	applied         = "failed but applied"
	killedBefore    = "killed before the call"
	killedAfterCall = "killed after the call"
	killedAnswered  = "killed after the answer"
)

// outside is the world that effects of one kind go to.
type outside interface {
	// setUp writes what the service needs to reach it: lines of the TOML file,
	// and variables.
	setUp(t *testing.T, dir string) (toml string, env map[string]string)
	// begin makes the effect come about, and returns its order.
	begin(ctx context.Context, t *testing.T, d *demo) (order string)
	// arm decides about the next call. kill ends the service as kill -9 does,
	// and returns when it is gone.
	arm(situation string, kill func())
	// keys are the idempotency keys of what it has done, in sequence: once for
	// each time that the world outside saw the operation happen.
	keys() []string
}

// TestFaultTable: every kind of effect, and everything that may go wrong with
// its call. The kills are real ones.
func TestFaultTable(t *testing.T) {
	type end struct {
		status string // of the effect, when nothing more happens by itself, or a person is waited for
		did    int    // how often the outside world saw it
	}
	for _, kind := range []struct {
		name string
		out  func() outside
		end  map[string]end
		// after is what a person's retry leads to where one is waited for.
		after map[string]end
	}{
		{"http", func() outside { return &httpOutside{} }, map[string]end{
			allWell: {"done", 1}, notApplied: {"done", 1}, applied: {"done", 2}, // twice under one key: the receiver tells
			killedBefore: {"done", 1}, killedAfterCall: {"done", 2}, killedAnswered: {"done", 2},
		}, nil},
		{"email", func() outside { return &mailOutside{} }, map[string]end{
			allWell: {"done", 1}, notApplied: {"done", 1}, applied: {"unknown", 1},
			killedBefore: {"unknown", 0}, killedAfterCall: {"unknown", 1}, killedAnswered: {"unknown", 1},
		}, map[string]end{applied: {"done", 2}, killedBefore: {"done", 1}, killedAfterCall: {"done", 2}, killedAnswered: {"done", 2}}},
		{"exec", func() outside { return &execOutside{} }, map[string]end{
			allWell: {"done", 1}, notApplied: {"done", 1}, applied: {"held", 1},
			killedBefore: {"held", 0}, killedAfterCall: {"held", 1}, killedAnswered: {"held", 1},
		}, map[string]end{killedBefore: {"done", 1}}},
		{"stripe", func() outside { return &stripeOutside{} }, map[string]end{
			allWell: {"done", 1}, notApplied: {"done", 1}, applied: {"done", 1},
			killedBefore: {"done", 1}, killedAfterCall: {"done", 1}, killedAnswered: {"done", 1},
		}, nil},
	} {
		for _, situation := range []string{allWell, notApplied, applied, killedBefore, killedAfterCall, killedAnswered} {
			if testing.Short() && situation != killedAfterCall {
				continue
			}
			t.Run(kind.name+", "+situation, func(t *testing.T) {
				if kind.name == "exec" && runtime.GOOS == "windows" {
					t.Skip("the program of this test is a shell script")
				}
				out := kind.out()
				ctx, d := startDemoWith(t, out.setUp)
				how := demoChild{}
				switch situation {
				case killedBefore:
					how.DieAt = "effect:claimed"
				case killedAnswered:
					how.DieAt = "effect:sent"
				}
				if how.DieAt != "" {
					if err := d.restart(ctx, how); err != nil {
						t.Fatal(err)
					}
				}
				killed := make(chan struct{})
				out.arm(situation, func() {
					d.kill()
					close(killed)
				})
				order := out.begin(ctx, t, d)
				if strings.HasPrefix(situation, "killed") {
					if situation == killedAfterCall {
						<-killed // by another goroutine: d is this one's again
					}
					<-d.gone
					out.arm(allWell, nil)
					if err := d.start(ctx, demoChild{}); err != nil {
						t.Fatal(err)
					}
				}
				e := d.effectAtRest(ctx, t, order)
				want := kind.end[situation]
				check := func(when string, want end) {
					t.Helper()
					keys := out.keys()
					if e.Status != want.status || len(keys) != want.did {
						t.Errorf("%s: the effect is %s (%s), and happened %d times; want %s, %d times", when, e.Status, e.LastError, len(keys), want.status, want.did)
					}
					for _, k := range keys {
						if k != e.IdempotencyKey {
							t.Errorf("%s: it went out under %s, and its key is %s", when, k, e.IdempotencyKey)
						}
					}
					if e.Next == "" || len(e.History) == 0 {
						t.Errorf("%s: the operator is not told: %+v", when, e)
					}
				}
				check(situation, want)
				if after, ok := kind.after[situation]; ok {
					if status, err := d.api(ctx, http.MethodPost, "/v1/effects/"+e.ID+"/retry", nil, nil); status != http.StatusOK || err != nil {
						t.Fatalf("retry: %d, %v", status, err)
					}
					e = d.effectAtRest(ctx, t, order)
					check("sent again by hand", after)
				} else if want.status == "held" {
					if status, err := d.api(ctx, http.MethodPost, "/v1/effects/"+e.ID+"/resolve", map[string]any{"outcome": "done", "note": "seen"}, &e); status != http.StatusOK || err != nil {
						t.Fatalf("resolve: %d, %v", status, err)
					}
					check("resolved by a person", end{"done", want.did})
				}
				checkFile(t, d, nil)
			})
		}
	}
}

// startDemoWith starts the service with what setUp says.
func startDemoWith(t *testing.T, setUp func(t *testing.T, dir string) (toml string, env map[string]string)) (context.Context, *demo) {
	t.Helper()
	t.Setenv(runMain, "1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	d, err := newDemo(&app{process: process{now: time.Now, stdout: io.Discard}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	toml, env := setUp(t, d.dir)
	for name, value := range env {
		d.child.Env[name] = value
	}
	if toml != "" {
		path := filepath.Join(d.dir, "paidonce.toml")
		if err := os.WriteFile(path, []byte(toml), 0o600); err != nil {
			t.Fatal(err)
		}
		d.child.Env["PAIDONCE_CONFIG"] = path
	}
	if err := d.start(ctx, demoChild{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	return ctx, d
}

// payOrder registers an order and delivers its payment.
func payOrder(ctx context.Context, t *testing.T, d *demo) string {
	t.Helper()
	total := map[string]any{"total_minor": 1250, "currency": "eur", "customer": map[string]any{"email": "ann@example.com", "name": "Ann"}}
	n := d.number()
	s := &sale{order: fmt.Sprintf("demo-%d", n), intent: fmt.Sprintf("pi_demo%d", n)}
	total["id"] = s.order
	if status, err := d.api(ctx, http.MethodPost, "/v1/orders", total, nil); status != http.StatusCreated || err != nil {
		t.Fatalf("register: %d, %v", status, err)
	}
	_, body := s.paid(d)
	if r, err := d.post(ctx, body); err == nil && r.code != http.StatusOK {
		t.Fatalf("webhook: %v", r)
	} // an error is the service that was killed while it answered: the row may be there or not
	return s.order
}

// effectAtRest waits until the order's only effect is settled, or waits for a
// person or for a quarter of an hour.
func (d *demo) effectAtRest(ctx context.Context, t *testing.T, order string) store.EffectDetail {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var e store.EffectDetail
	for {
		var page store.Page[store.Effect]
		if _, err := d.api(ctx, http.MethodGet, "/v1/effects?order="+order, nil, &page); err != nil {
			t.Fatalf("effects: %v; last seen %+v", err, e)
		}
		if len(page.Items) > 0 {
			if _, err := d.api(ctx, http.MethodGet, "/v1/effects/"+page.Items[0].ID, nil, &e); err != nil {
				t.Fatal(err)
			}
			// What Stripe and http do about an unknown outcome comes at once.
			if e.Settled() || e.Status == "unknown" && e.Kind == store.KindEmail {
				return e
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the effect of %s does not come to rest: %+v", order, e)
		}
	}
}

// httpOutside is a shop's own app.
type httpOutside struct {
	mu        sync.Mutex
	situation string
	kill      func()
	did       []string
}

func (o *httpOutside) setUp(t *testing.T, _ string) (string, map[string]string) {
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	return "[[effect]]\nname = \"app\"\non = [\"order.paid\"]\ndo = \"http\"\nurl = \"" + server.URL + "\"\nsecret = \"env:SHOP_HOOK_SECRET\"\n",
		map[string]string{"SHOP_HOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
}

func (o *httpOutside) begin(ctx context.Context, t *testing.T, d *demo) string {
	return payOrder(ctx, t, d)
}

func (o *httpOutside) arm(situation string, kill func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.situation, o.kill = situation, kill
}

func (o *httpOutside) keys() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.did
}

func (o *httpOutside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	o.mu.Lock()
	situation, kill := o.situation, o.kill
	switch situation {
	case notApplied, applied, killedAfterCall: // once
		o.situation = allWell
	}
	if situation != notApplied {
		o.did = append(o.did, r.Header.Get("Idempotency-Key"))
	}
	o.mu.Unlock()
	switch situation {
	case notApplied:
		w.WriteHeader(http.StatusServiceUnavailable)
	case applied:
		panic(http.ErrAbortHandler) // the answer is lost
	case killedAfterCall:
		kill()
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// mailOutside is a mail server.
type mailOutside struct {
	httpOutside // its state; nothing of it listens
}

func (o *mailOutside) setUp(t *testing.T, dir string) (string, map[string]string) {
	server := smtp.NewServer(o)
	server.Domain = "mail.test"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	if err := os.WriteFile(filepath.Join(dir, "paid.txt"), []byte("Thank you for {{.Amount}}.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "[[effect]]\nname = \"thanks\"\non = [\"order.paid\"]\ndo = \"email\"\nto = \"{{.Order.Customer.Email}}\"\nsubject = \"Order {{.Order.ID}}\"\nbody = \"paid.txt\"\n",
		map[string]string{"SMTP_URL": "smtp://" + l.Addr().String(), "MAIL_FROM": "shop@example.com"}
}

// NewSession implements smtp.Backend.
func (o *mailOutside) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &mailSession{out: o, conn: c}, nil
}

type mailSession struct {
	out  *mailOutside
	conn *smtp.Conn
}

func (s *mailSession) Reset()                               {}
func (s *mailSession) Logout() error                        { return nil }
func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *mailSession) Rcpt(_ string, _ *smtp.RcptOptions) error {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if s.out.situation == notApplied {
		s.out.situation = allWell
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"}
	}
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err
	}
	key, _, _ := strings.Cut(strings.Trim(m.Header.Get("Message-ID"), "<>"), "@")
	o := s.out
	o.mu.Lock()
	o.did = append(o.did, key)
	situation, kill := o.situation, o.kill
	if situation == applied || situation == killedAfterCall {
		o.situation = allWell
	}
	o.mu.Unlock()
	switch situation {
	case applied: // the 250 never comes
		_ = s.conn.Conn().Close()
	case killedAfterCall:
		kill()
	}
	return nil
}

// execOutside is a program: it writes down that it did its work, and ends as it
// is told in a file.
type execOutside struct {
	dir  string
	kill func()
}

func (o *execOutside) setUp(t *testing.T, dir string) (string, map[string]string) {
	o.dir = dir
	script := filepath.Join(dir, "work.sh")
	const text = `cat > /dev/null
how=$(cat how)
echo ok > how
case "$how" in
"failed and not applied") exit 75 ;;
esac
echo "$PAIDONCE_KEY" >> did
case "$how" in
"failed but applied") kill -9 $$ ;;
"killed after the call") : > kill; sleep 60 ;;
esac
`
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	command, _ := json.Marshal([]string{"/bin/sh", script})
	return "[[effect]]\nname = \"work\"\non = [\"order.paid\"]\ndo = \"exec\"\ncommand = " + string(command) + "\n", nil
}

// begin makes the effect, and kills the service when the program says that it
// has done its work.
func (o *execOutside) begin(ctx context.Context, t *testing.T, d *demo) string {
	order := payOrder(ctx, t, d)
	if o.kill != nil {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			if _, err := os.Stat(filepath.Join(o.dir, "kill")); err == nil {
				o.kill()
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatal("the program did not run")
			}
		}
	}
	return order
}

func (o *execOutside) arm(situation string, kill func()) {
	if o.kill = nil; situation == killedAfterCall {
		o.kill = kill
	}
	if err := os.WriteFile(filepath.Join(o.dir, "how"), []byte(situation), 0o600); err != nil {
		panic(err)
	}
}

func (o *execOutside) keys() []string {
	b, _ := os.ReadFile(filepath.Join(o.dir, "did")) // none: it never did
	return strings.Fields(string(b))
}

// stripeOutside is Stripe: the effect is a refund.
type stripeOutside struct{ fake *stripefake.Server }

func (o *stripeOutside) setUp(t *testing.T, _ string) (string, map[string]string) {
	o.fake = stripefake.NewServer(stripefake.ServerConfig{Now: time.Now, Key: "sk_test_fake"})
	server := httptest.NewServer(o.fake)
	t.Cleanup(func() {
		o.fake.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return "", map[string]string{"STRIPE_API_KEY": "sk_test_fake", "STRIPE_API_BASE": server.URL}
}

// begin has an order paid at Stripe, told by its event, and asks for a refund.
func (o *stripeOutside) begin(ctx context.Context, t *testing.T, d *demo) string {
	s, err := d.register(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = o.fake.Do(func(a *stripefake.Account) error {
		named := map[string]string{"order_id": s.order}
		session, err := a.OpenSession(stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 1250}, Currency: "eur", Metadata: named, IntentMetadata: named})
		if err == nil {
			_, err = a.PaySession(session.ID, stripefake.Card)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range o.fake.Events() {
		if r, err := d.post(ctx, e.Body(1)); err != nil || r.code != http.StatusOK {
			t.Fatalf("deliver %s: %v, %v", e, r, err)
		}
		if _, err := d.settled(ctx, e.ID); err != nil {
			t.Fatal(err)
		}
	}
	// The service may be killed before it answers.
	_, _ = d.api(ctx, http.MethodPost, "/v1/orders/"+s.order+"/refund", map[string]any{"request_id": "r-1", "amount_minor": 500}, nil)
	return s.order
}

func (o *stripeOutside) arm(situation string, kill func()) {
	const route = "POST /v1/refunds"
	switch situation {
	case notApplied:
		o.fake.FaultNext(route, stripefake.Fault{Kind: stripefake.GatewayBefore})
	case applied:
		o.fake.FaultNext(route, stripefake.Fault{Kind: stripefake.ClosedAfter})
	case killedAfterCall:
		o.fake.FaultNext(route, stripefake.Fault{WaitAfter: make(chan struct{}), OnWait: func() { go kill() }})
	}
}

func (o *stripeOutside) keys() []string {
	var keys []string
	for _, e := range o.fake.Events() {
		if e.Type == "refund.created" {
			var body struct {
				Data struct {
					Object struct{ Metadata map[string]string }
				}
			}
			if err := json.Unmarshal(e.Body(1), &body); err != nil {
				panic(err)
			}
			keys = append(keys, body.Data.Object.Metadata["paidonce_operation"])
		}
	}
	return keys
}
