package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"paidonce/worker/stripefake"
)

// demoWorld is the world that the demo's service calls: Stripe, and the shop's
// own app.
type demoWorld struct {
	stripe *stripefake.Server
	app    *demoApp
	toml   string
	env    map[string]string
	close  []func()
}

// newDemoWorld starts both on loopback.
func newDemoWorld(now func() time.Time) (*demoWorld, error) {
	const key = "sk_test_demo"
	w := &demoWorld{stripe: stripefake.NewServer(stripefake.ServerConfig{Now: now, Key: key}), app: &demoApp{called: make(chan struct{}, 1)}}
	w.close = append(w.close, w.stripe.Close)
	stripe, err := w.listen(w.stripe)
	if err != nil {
		return nil, err
	}
	app, err := w.listen(w.app)
	if err != nil {
		return nil, err
	}
	w.toml = fmt.Sprintf("[[effect]]\nname = \"app\"\non = [\"order.paid\"]\ndo = \"http\"\nurl = \"http://%s/paid\"\n", app)
	w.env = map[string]string{"STRIPE_API_KEY": key, "STRIPE_API_BASE": "http://" + stripe}
	return w, nil
}

func (w *demoWorld) listen(h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.end()
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // until it is closed
	w.close = append(w.close, func() { _ = server.Close() })
	return l.Addr().String(), nil
}

// end stops both.
func (w *demoWorld) end() {
	for _, f := range w.close {
		f()
	}
}

// use makes the service of d call this world, from its next start on.
func (w *demoWorld) use(d *demo) error {
	path := filepath.Join(d.dir, defaultFile)
	for name, value := range w.env {
		d.child.Env[name] = value
	}
	d.child.Env["PAIDONCE_CONFIG"] = path
	return os.WriteFile(path, []byte(w.toml), 0o600)
}

// demoApp is a shop's own app: it does its work once for each key, and counts
// the calls.
type demoApp struct {
	mu     sync.Mutex
	answer func(c demoCall, w http.ResponseWriter, r *http.Request) // nil is 204
	calls  []demoCall
	called chan struct{} // has one after a call
}

// demoCall is a call that the app took.
type demoCall struct {
	n     int // of this order, from 1
	order string
	key   string
	at    time.Time
}

// answers says what the next calls are answered.
func (a *demoApp) answers(f func(c demoCall, w http.ResponseWriter, r *http.Request)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

func (a *demoApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Data struct{ Order struct{ ID string } }
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	c := demoCall{n: 1, order: body.Data.Order.ID, key: r.Header.Get("Idempotency-Key"), at: time.Now()}
	a.mu.Lock()
	for _, before := range a.calls {
		if before.order == c.order {
			c.n++
		}
	}
	a.calls = append(a.calls, c)
	answer := a.answer
	a.mu.Unlock()
	select {
	case a.called <- struct{}{}:
	default:
	}
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	answer(c, w, r)
}

// took returns the calls about an order, once there are at least n, and how many
// keys they had.
func (a *demoApp) took(ctx context.Context, order string, n int) (calls []demoCall, keys int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		calls = calls[:0]
		known := map[string]bool{}
		a.mu.Lock()
		for _, c := range a.calls {
			if c.order == order {
				calls = append(calls, c)
				known[c.key] = true
			}
		}
		a.mu.Unlock()
		if len(calls) >= n {
			return calls, len(known), nil
		}
		select {
		case <-a.called:
		case <-ctx.Done():
			return calls, 0, fmt.Errorf("the app took %d calls, not %d", len(calls), n)
		}
	}
}
