package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82/webhook"

	"paidonce/handler"
	"paidonce/store"
)

// BenchmarkAccept is what a webhook costs, over real HTTP, at 1, 32 and 256
// senders: verified only and stored nowhere; stored in a transaction of its
// own; and as the program does it, sharing a transaction with its neighbours.
// The ratios in one run are the figures, the rates are the machine's:
//
//	go test -run '^$' -bench Accept -benchtime 20000x .
func BenchmarkAccept(b *testing.B) {
	template, err := templates.ReadFile("testdata/events/payment_intent.succeeded.json")
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"verify-only", "one-transaction", "grouped"} {
		for _, senders := range []int{1, 32, 256} {
			b.Run(fmt.Sprintf("%s/%d", kind, senders), func(b *testing.B) {
				address := acceptor(b, kind)
				requests := make([][]byte, b.N)
				for i := range requests {
					requests[i] = request(string(template), fmt.Sprintf("evt_3SBench%016d", i))
				}
				took := make([]time.Duration, b.N)
				var next atomic.Int64
				var wg sync.WaitGroup
				b.ResetTimer()
				for range senders {
					wg.Go(func() { sendAll(b, address, requests, took, &next) })
				}
				wg.Wait()
				b.StopTimer()
				slices.Sort(took)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
				b.ReportMetric(float64(took[b.N/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}

const benchSecret = "whsec_bench"

// request is a whole signed delivery, ready to be written.
func request(template, id string) []byte {
	body := strings.Replace(template, "evt_"+templateID, id, 1)
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(body), Secret: benchSecret})
	return fmt.Appendf(nil, "POST /webhooks/stripe HTTP/1.1\r\nHost: shop\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s", signed.Header, len(body), body)
}

// sendAll is one sender: a kept connection, the next request after each answer.
func sendAll(b *testing.B, address string, requests [][]byte, took []time.Duration, next *atomic.Int64) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Error(err)
		return
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for {
		i := next.Add(1) - 1
		if i >= int64(len(requests)) {
			return
		}
		start := time.Now()
		if _, err := conn.Write(requests[i]); err != nil {
			b.Error(err)
			return
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			b.Error(err)
			return
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Errorf("answer %d, %v", resp.StatusCode, err)
			return
		}
		took[i] = time.Since(start)
	}
}

// acceptor serves the public listener over one way to store.
func acceptor(b *testing.B, kind string) (address string) {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(b.Context(), store.Options{Path: filepath.Join(b.TempDir(), defaultDB), Env: "sandbox", Now: time.Now, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	var inbox handler.Store = s
	switch kind {
	case "verify-only":
		inbox = verifyOnly{s}
	case "one-transaction":
		inbox = oneTransaction(b, s, filepath.Join(b.TempDir(), "alone.db"))
	}
	secret, err := handler.NewSecret("stripe", benchSecret)
	if err != nil {
		b.Fatal(err)
	}
	token, err := handler.NewToken("a-token-for-this-benchmark")
	if err != nil {
		b.Fatal(err)
	}
	h, err := handler.New(handler.Config{Store: inbox, Wake: func() {}, Now: time.Now, Log: log, Token: token,
		Sources: []handler.Source{{Name: "stripe", Provider: "stripe", Account: "self", Secrets: []handler.Secret{secret}}}})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := handler.NewServer(h.Public(), log)
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

// verifyOnly stores nothing.
type verifyOnly struct{ *store.Store }

func (verifyOnly) AddEvent(_ context.Context, e store.NewEvent) (store.Added, error) {
	return store.Added{ID: e.ID}, nil
}

// alone stores each event in a transaction of its own, on one connection with
// the same pragmas and with statements that are prepared once.
type alone struct {
	*store.Store
	mu                            sync.Mutex
	begin, event, payload, commit *sql.Stmt
}

func oneTransaction(b *testing.B, s *store.Store, path string) *alone {
	b.Helper()
	model, err := store.Open(b.Context(), store.Options{Path: path, Env: "sandbox", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err == nil { // only for its schema
		err = model.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file://"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	prepare := func(query string) *sql.Stmt {
		st, err := conn.PrepareContext(b.Context(), query)
		if err != nil {
			b.Fatal(err)
		}
		return st
	}
	return &alone{Store: s, begin: prepare("BEGIN IMMEDIATE"), commit: prepare("COMMIT"),
		event: prepare(`INSERT INTO events (source_scope, event_id, source, tenant, via, type, api_version, status, verdict, due_at, occurred_at, received_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', 'new', ?, ?, ?) ON CONFLICT DO NOTHING`),
		payload: prepare(`INSERT INTO payloads (event, body) VALUES (?, ?)`)}
}

func (a *alone) AddEvent(_ context.Context, e store.NewEvent) (store.Added, error) {
	ctx := context.Background()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.begin.ExecContext(ctx); err != nil {
		return store.Added{}, err
	}
	now := time.Now().UnixMilli()
	res, err := a.event.ExecContext(ctx, e.Scope, e.ID, e.Source, e.Tenant, e.Via, e.Type, e.APIVersion, now, int64(e.OccurredAt), now)
	if err != nil {
		return store.Added{}, err
	}
	row, err := res.LastInsertId()
	if err != nil {
		return store.Added{}, err
	}
	if _, err := a.payload.ExecContext(ctx, row, e.Body); err != nil {
		return store.Added{}, err
	}
	_, err = a.commit.ExecContext(ctx)
	return store.Added{ID: e.ID}, err
}
