package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"
)

// demo is a service in a process of its own, and the world around it: Stripe
// that signs and posts, and a shop that registers and asks.
type demo struct {
	app    *app
	dir    string
	child  demoChild
	world  *demoWorld // what it calls; nil is nothing
	secret string
	token  string
	client *http.Client
	kills  int

	cmd           *exec.Cmd
	stdin         io.WriteCloser
	stdout        *bufio.Reader
	gone          chan struct{} // closed when the process has ended
	public, admin string        // host:port
	errText       *lastLines

	mu     sync.Mutex
	serial int
}

func newDemo(a *app, dir string) (*demo, error) {
	d := &demo{app: a, dir: dir, secret: "whsec_" + rand.Text(), token: rand.Text()}
	// A short time, so that a service that hangs is told as a failed row.
	d.client = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	d.child = demoChild{Dir: dir, Nonce: rand.Text(), Env: map[string]string{
		"STRIPE_WEBHOOK_SECRET": d.secret,
		"PAIDONCE_ADMIN_TOKEN":  d.token,
	}}
	return d, os.WriteFile(filepath.Join(dir, demoMark), []byte(d.child.Nonce), 0o600)
}

// start starts the service and waits until it says ready. how tells what is
// special about it this time.
func (d *demo) start(ctx context.Context, how demoChild) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	how.Dir, how.Nonce, how.Env = d.child.Dir, d.child.Nonce, d.child.Env
	told, err := json.Marshal(how)
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, "demo-child")
	cmd.Dir = d.dir // no .env and no TOML file of the user's
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	d.cmd, d.stdin, d.stdout, d.gone, d.errText = cmd, stdin, bufio.NewReader(stdout), make(chan struct{}), &lastLines{}
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			var line struct{ Msg, Listen, Admin string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serve: ready" {
				d.public, d.admin = line.Listen, line.Admin
				close(ready)
			}
			d.errText.add(lines.Text())
		}
		_ = cmd.Wait() // how it ended is what the rows look at
		close(d.gone)
	}()
	if _, err := stdin.Write(append(told, '\n')); err != nil {
		return err
	}
	select {
	case <-ready:
		return nil
	case <-d.gone:
		return fmt.Errorf("the service ended: %s", d.errText)
	case <-ctx.Done():
		d.stop()
		return context.Cause(ctx)
	}
}

// kill ends the service as kill -9 does.
func (d *demo) kill() {
	_ = d.cmd.Process.Kill() // it may have died by itself
	<-d.gone
	d.kills++
	d.client.CloseIdleConnections()
}

// stop ends the service in good order.
func (d *demo) stop() {
	if d.cmd == nil {
		return
	}
	// A server that stops waits five seconds for a connection that has not been
	// used yet, and a client makes such in a rush.
	d.client.CloseIdleConnections()
	_ = d.stdin.Close()
	select {
	case <-d.gone:
	case <-time.After(8 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.gone
	}
	d.client.CloseIdleConnections()
}

// restart ends the service, however it is, and starts it again.
func (d *demo) restart(ctx context.Context, how demoChild) error {
	d.stop()
	return d.start(ctx, how)
}

// limitPages makes the service's disk end at n pages; 0 gives it room again.
func (d *demo) limitPages(n int64) error {
	if err := json.NewEncoder(d.stdin).Encode(demoTold{Pages: n}); err != nil {
		return err
	}
	_, err := d.stdout.ReadString('\n')
	return err
}

// lastLines keeps the end of what a process says, for an error.
type lastLines struct {
	mu   sync.Mutex
	text []string
}

func (l *lastLines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text = append(l.text, s); len(l.text) > 3 {
		l.text = l.text[1:]
	}
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cut(fmt.Sprint(l.text))
}

// number returns a fresh number for ids.
func (d *demo) number() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serial++
	return d.serial
}

// sale is an order and the payment intent that is to pay it.
type sale struct {
	order  string
	intent string
	n      int // of events so far
}

// register registers an order of 12.50 EUR.
func (d *demo) register(ctx context.Context) (*sale, error) {
	n := d.number()
	s := &sale{order: fmt.Sprintf("demo-%d", n), intent: fmt.Sprintf("pi_demo%d", n)}
	status, err := d.api(ctx, http.MethodPost, "/v1/orders", map[string]any{"id": s.order, "total_minor": 1250, "currency": "eur"}, nil)
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("register %s: %d", s.order, status)
	}
	return s, err
}

// event is a payment intent's event, as Stripe would write it.
func (s *sale) event(d *demo, status string, received int64, change ...func(event, object map[string]any)) (id string, body []byte) {
	s.n++
	id = fmt.Sprintf("evt_%s_%d", s.order, s.n)
	object := map[string]any{
		"id": s.intent, "object": "payment_intent", "amount": 1250, "amount_received": received, "currency": "eur",
		"status": status, "metadata": map[string]any{"order_id": s.order},
	}
	event := map[string]any{
		"id": id, "object": "event", "api_version": "2025-08-27.basil", "created": d.app.now().Unix(), "livemode": false,
		"type": "payment_intent." + status, "data": map[string]any{"object": object},
	}
	for _, f := range change {
		f(event, object)
	}
	body, err := json.MarshalIndent(event, "", "  ")
	if err != nil { // strings and numbers
		panic(err)
	}
	return id, body
}

// paid is the event that the order was paid in full.
func (s *sale) paid(d *demo) (id string, body []byte) { return s.event(d, "succeeded", 1250) }

// sign is Stripe's signature over body, now.
func (d *demo) sign(body []byte) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: d.secret, Timestamp: d.app.now()}).Header
}

// reply is how the service answered a webhook.
type reply struct {
	code   int
	status string // accepted, duplicate
	err    string // the error's code
}

func (r reply) String() string {
	if r.err != "" {
		return fmt.Sprintf("%d %s", r.code, r.err)
	}
	return fmt.Sprintf("%d %s", r.code, r.status)
}

// post delivers body under its signature.
func (d *demo) post(ctx context.Context, body []byte) (reply, error) {
	return d.postSigned(ctx, body, d.sign(body))
}

func (d *demo) postSigned(ctx context.Context, body []byte, signature string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.public+"/webhooks/stripe", bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Stripe-Signature", signature)
	resp, err := d.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	var answer struct {
		Status string
		Error  struct{ Code string }
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&answer); err != nil {
		return reply{}, fmt.Errorf("answer %d: %w", resp.StatusCode, err)
	}
	return reply{resp.StatusCode, answer.Status, answer.Error.Code}, nil
}

// postAndHangUp sends the whole request and closes the connection without
// waiting for the answer.
func (d *demo) postAndHangUp(ctx context.Context, body []byte) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.public)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conn, "POST /webhooks/stripe HTTP/1.1\r\nHost: %s\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s",
		d.public, d.sign(body), len(body), body)
	return errors.Join(err, conn.Close())
}

// api calls the admin API and reads the answer into v.
func (d *demo) api(ctx context.Context, method, path string, in, v any) (status int, err error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+d.admin+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	resp, err := d.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<24))
	if err == nil && v != nil && resp.StatusCode < 300 {
		err = json.Unmarshal(answer, v)
	}
	return resp.StatusCode, err
}

// demoOrder and demoEvent are what the rows read of the API's shapes.
type demoOrder struct {
	Status        string
	ReceivedMinor int64 `json:"received_minor"`
	SuspenseMinor int64 `json:"suspense_minor"`
	Attention     []string
	Operations    []struct{ Name string }
	Entries       []struct{ Account string }
	PaidAt        time.Time `json:"paid_at"`
}

// paidTimes is how often order.paid was recorded.
func (o demoOrder) paidTimes() int {
	n := 0
	for _, op := range o.Operations {
		if op.Name == "order.paid" {
			n++
		}
	}
	return n
}

type demoEvent struct {
	Status, Verdict, Reason string
	Deliveries, Attempts    int64
}

func (d *demo) order(ctx context.Context, id string) (o demoOrder, err error) {
	status, err := d.api(ctx, http.MethodGet, "/v1/orders/"+id, nil, &o)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("order %s: %d", id, status)
	}
	return o, err
}

// event looks an event up; known says whether there is a row of it.
func (d *demo) event(ctx context.Context, id string) (e demoEvent, known bool, err error) {
	status, err := d.api(ctx, http.MethodGet, "/v1/events/"+id, nil, &e)
	return e, status == http.StatusOK, err
}

// settled waits until the event is worked on.
func (d *demo) settled(ctx context.Context, id string) (demoEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		e, known, err := d.event(ctx, id)
		if err != nil {
			return e, err
		}
		if known && e.Status != "pending" {
			return e, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return e, fmt.Errorf("event %s is still pending", id)
		}
	}
}
