package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/store"
)

// world is what the program runs in during a test: a directory of its own and
// an environment that nothing else is in.
type world struct {
	t   *testing.T
	env map[string]string
	in  string
	// opened holds the time that the program is told, if it is not zero.
	now time.Time
}

// newWorld makes an empty world and goes there.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Chdir(t.TempDir())
	// Nobody listens there: no test asks Stripe itself.
	return &world{t: t, env: map[string]string{"STRIPE_API_BASE": "http://127.0.0.1:9"}}
}

// newShop makes a world with a database in it.
func newShop(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	s, err := store.Open(t.Context(), store.Options{
		Path: defaultDB, Mode: store.Serve, Env: "sandbox", Unlinked: "watch",
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatalf("make the database: %v", err)
	}
	return w
}

func (w *world) process(stdout, stderr io.Writer) process {
	now := time.Now
	if !w.now.IsZero() {
		now = func() time.Time { return w.now }
	}
	return process{
		lookup: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		now:    now,
		stdin:  strings.NewReader(w.in),
		stdout: stdout,
		stderr: stderr,
	}
}

// run carries out a command line.
func (w *world) run(args ...string) (exit int, stdout, stderr string) {
	w.t.Helper()
	var out, err bytes.Buffer
	exit = run(w.t.Context(), args, w.process(&out, &err))
	return exit, out.String(), err.String()
}

// must runs a command line that has to succeed and returns its stdout.
func (w *world) must(args ...string) string {
	w.t.Helper()
	exit, stdout, stderr := w.run(args...)
	if exit != 0 {
		w.t.Fatalf("%s: exit %d\n%s%s", strings.Join(args, " "), exit, stdout, stderr)
	}
	return stdout
}

// mustJSON runs a command line with --json and reads its answer into v.
func (w *world) mustJSON(v any, args ...string) {
	w.t.Helper()
	out := w.must(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		w.t.Fatalf("%s: %v in\n%s", strings.Join(args, " "), err, out)
	}
}

// write writes a file of the world.
func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// orderJSON, eventJSON and pageOf are what the tests read of the API's shapes.
type orderJSON struct {
	Tenant, ID, Status, Currency string
	TotalMinor                   int64             `json:"total_minor"`
	ReceivedMinor                int64             `json:"received_minor"`
	RefundedMinor                int64             `json:"refunded_minor"`
	AmountPolicy                 string            `json:"amount_policy"`
	AllowDiscount                bool              `json:"allow_discount"`
	PaymentIntent                string            `json:"payment_intent"`
	CreatedAt                    string            `json:"created_at"`
	Items                        []store.Item      `json:"items"`
	Customer                     store.Customer    `json:"customer"`
	Metadata                     map[string]string `json:"metadata"`
}

type eventJSON struct {
	Scope, ID, Via, Type, Status, Verdict, Order string
	Deliveries                                   int64
}

type pageOf[T any] struct {
	Items      []T
	NextCursor string `json:"next_cursor"`
}

// served is a serve that runs.
type served struct {
	public, admin string // base URLs
	ready         map[string]any
	end           func() (exit int, log string)
}

// serve starts serve on ports of its own and waits until it says ready. It is
// stopped when the test ends, if not before.
func (w *world) serve(args ...string) *served {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	read, write := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		code := run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...), w.process(io.Discard, write))
		_ = write.Close()
		exit <- code
	}()
	ready := make(chan map[string]any, 1)
	var log strings.Builder
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		defer close(ready)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			log.WriteString(lines.Text() + "\n")
			var line map[string]any
			if json.Unmarshal(lines.Bytes(), &line) == nil && line["msg"] == "serve: ready" {
				ready <- line
			}
		}
	}()
	s := &served{end: sync.OnceValues(func() (int, string) {
		cancel()
		code := <-exit
		<-logged
		return code, log.String()
	})}
	w.t.Cleanup(func() { s.end() })
	line, ok := <-ready
	if !ok {
		code, log := s.end()
		w.t.Fatalf("serve ended before it was ready: exit %d\n%s", code, log)
	}
	s.ready = line
	s.public, s.admin = "http://"+line["listen"].(string), "http://"+line["admin"].(string)
	return s
}

// wantParts fails unless text holds every part.
func wantParts(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

// unwanted fails if text holds any part.
func unwanted(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if p != "" && strings.Contains(text, p) {
			t.Errorf("%s holds %q:\n%s", what, p, text)
		}
	}
}
