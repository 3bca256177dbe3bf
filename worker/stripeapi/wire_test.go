package stripeapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
	"paidonce/worker/stripeapi"
)

func TestARequestCarriesWhatStripeNeedsAndNothingOfThisMachine(t *testing.T) {
	s := newStub(t, always(reply{body: refundBody("re_1", "succeeded")}))
	c, _ := newClient(t, s.url)
	claim := claimOf(t, "refund.request:R1", refundCall())
	for range 2 { // telemetry would begin with the second
		if a := c.Send(t.Context(), claim); a.Outcome != store.OutcomeDone {
			t.Fatalf("got %s: %s", a.Outcome, a.Error)
		}
	}
	for _, g := range s.got() {
		for name, want := range map[string]string{
			"Authorization": "Bearer " + keyText, "Stripe-Version": "2025-08-27.basil", "Idempotency-Key": opKey,
			"Content-Type": "application/x-www-form-urlencoded", "Stripe-Account": "",
			"X-Stripe-Client-User-Agent": "", "X-Stripe-Client-Telemetry": "",
		} {
			if got := g.header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newStub(t, func(n int, g got) reply {
			if n > 1 {
				return reply{body: refundBody("re_1", "succeeded")}
			}
			return reply{status: status, header: map[string]string{"Location": "/v1/refunds"}}
		})
		c, _ := newClient(t, s.url)
		if a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall())); a.Outcome != store.OutcomeAgain || len(s.got()) != 1 {
			t.Errorf("%d: got %s after %d requests", status, a.Outcome, len(s.got()))
		}
	}
}

// net/http repeats a request that has an Idempotency-Key if its connection,
// which had served before, ends without an answer.
func TestAConnectionThatEndsDoesNotRepeatTheRequest(t *testing.T) {
	s := newStub(t, func(n int, g got) reply {
		if n == 1 {
			return reply{body: refundBody("re_1", "succeeded")}
		}
		return reply{hangUp: true}
	})
	c, _ := newClient(t, s.url)
	claim := claimOf(t, "refund.request:R1", refundCall())
	if a := c.Send(t.Context(), claim); a.Outcome != store.OutcomeDone {
		t.Fatalf("got %s: %s", a.Outcome, a.Error)
	}
	if a := c.Send(t.Context(), claim); a.Outcome != store.OutcomeAgain || len(s.got()) != 2 {
		t.Errorf("got %s after %d requests, want again after 2", a.Outcome, len(s.got()))
	}
}

func TestTheOwnTransportSaysWhyThereIsNoAnswer(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	c, said := newClient(t, closed.URL, func(cfg *stripeapi.Config) { cfg.Transport = nil })
	a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
	if a.Outcome != store.OutcomeAgain || !strings.Contains(a.Error, "connection refused") {
		t.Errorf("got %s: %s", a.Outcome, a.Error)
	}
	checkSecrecy(t, a, said)

	plain := newStub(t, always(reply{}))
	c, said = newClient(t, strings.Replace(plain.url, "http:", "https:", 1), func(cfg *stripeapi.Config) { cfg.Transport = nil })
	a = c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
	if a.Outcome != store.OutcomeAgain || !strings.Contains(a.Error, "does not speak TLS") {
		t.Errorf("got %s: %s", a.Outcome, a.Error)
	}
	checkSecrecy(t, a, said)

	stranger := httptest.NewUnstartedServer(nil)
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	defer stranger.Close()
	c, said = newClient(t, stranger.URL, func(cfg *stripeapi.Config) { cfg.Transport = nil })
	a = c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
	if a.Outcome != store.OutcomeAgain || !strings.Contains(a.Error, "certificate is not valid") {
		t.Errorf("got %s: %s", a.Outcome, a.Error)
	}
	checkSecrecy(t, a, said)
}

func TestRequestsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t, "", func(cfg *stripeapi.Config) {
			cfg.Rate = 2
			cfg.Transport = answering(refundBody("re_1", "succeeded"))
		})
		begin := time.Now()
		for range 5 + 8 { // the first five may go at once
			if a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall())); a.Outcome != store.OutcomeDone {
				t.Fatalf("got %s: %s", a.Outcome, a.Error)
			}
		}
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("8 requests at 2 a second took %s, want 4s", took)
		}
	})
}

func TestARequestWhoseTurnComesTooLateIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		c, log := newClient(t, "", func(cfg *stripeapi.Config) {
			cfg.Rate = 0.01
			cfg.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				sent++
				return answering(refundBody("re_1", "succeeded")).RoundTrip(r)
			})
		})
		for range 5 {
			c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
		}
		a := c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall()))
		if a.Outcome != store.OutcomeAgain || sent != 5 {
			t.Errorf("got %s, and %d were sent: %s", a.Outcome, sent, a.Error)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		a = c.Send(ctx, claimOf(t, "refund.request:R1", refundCall()))
		if a.Outcome != store.OutcomeAgain || sent != 5 {
			t.Errorf("got %s, and %d were sent: %s", a.Outcome, sent, a.Error)
		}
		checkSecrecy(t, a, log)
	})
}

// answering is a transport that answers 200 with a body.
func answering(body string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func TestAKeyNeverPrintsItself(t *testing.T) {
	k := key(t)
	c, _ := newClient(t, "")
	cfg := stripeapi.Config{Key: k}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t"} {
		for _, v := range []any{k, &k, cfg, &cfg, struct{ hidden stripeapi.Key }{k}, []stripeapi.Key{k}, c, *c} {
			fmt.Fprintf(&out, verb, v)
		}
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", k, "cfg", cfg, "group", slog.GroupValue(slog.Any("k", k)))
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", k, "cfg", cfg)
	for _, v := range []any{k, map[string]any{"key": k}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	if strings.Contains(out.String(), "MARK") || strings.Contains(out.String(), fmt.Sprintf("%x", "MARK")) {
		t.Errorf("the key is in %s", out.String())
	}
}

func TestNewKeyRefusesWhatIsNone(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"nothing", ""}, {"blanks", " \n"}, {"a publishable key", "pk_test_MARK"}, {"a webhook secret", "whsec_MARK"},
		{"two lines", "sk_test_MARK\nsk_test_MARK"}, {"a blank inside", "sk_test MARK"}, {"a letter of no key", "sk_test_MARKü"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := stripeapi.NewKey(tt.text); err == nil || strings.Contains(err.Error(), "MARK") {
				t.Errorf("got %v", err)
			}
		})
	}
	s := newStub(t, always(reply{body: refundBody("re_1", "succeeded")}))
	trimmed, err := stripeapi.NewKey(" " + keyText + "\r\n")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newClient(t, s.url, func(cfg *stripeapi.Config) { cfg.Key = trimmed })
	if c.Send(t.Context(), claimOf(t, "refund.request:R1", refundCall())); s.got()[0].header.Get("Authorization") != "Bearer "+keyText {
		t.Error("the end of the line is in the key")
	}
}

func TestNewChecksWhereTheKeyWouldGo(t *testing.T) {
	for _, tt := range []struct {
		base string
		want bool
	}{
		{"", true}, {"https://api.stripe.com", true}, {"https://api.stripe.com/", true},
		{"http://127.0.0.1:12111", true}, {"http://127.0.0.1:12111/", true}, {"http://[::1]:1", true}, {"https://localhost:1", true}, {"http://127.8.9.10:1", true},
		{"http://api.stripe.com", false}, {"https://api.stripe.com.MARK.example", false}, {"https://api.stripe.com:8443", false},
		{"https://MARK.example", false}, {"http://10.0.0.1:1", false}, {"http://localhost.MARK.example", false}, {"http://127.0.0.1.MARK.example", false},
		{"http://u:MARK@127.0.0.1:1", false}, {"http://127.0.0.1:1/v1", false}, {"http://127.0.0.1:1?MARK", false}, {"http://127.0.0.1:1#MARK", false},
		{"https://api.stripe.com@MARK.example", false}, {"ftp://127.0.0.1", false}, {"127.0.0.1:12111", false}, {"http://", false}, {"http://0.0.0.0:1", false}, {" https://MARK", false},
	} {
		_, err := stripeapi.New(stripeapi.Config{Key: key(t), Base: tt.base, Now: func() time.Time { return now }})
		if (err == nil) != tt.want {
			t.Errorf("%s: got %v", tt.base, err)
		}
		if err != nil && strings.Contains(err.Error(), "MARK") {
			t.Errorf("%s: the error says %v", tt.base, err)
		}
	}
}

func TestNewRefusesAnIncompleteConfig(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*stripeapi.Config)
	}{
		{"no key", func(c *stripeapi.Config) { c.Key = stripeapi.Key{} }},
		{"no clock", func(c *stripeapi.Config) { c.Now = nil }},
		{"a rate below 0", func(c *stripeapi.Config) { c.Rate = -1 }},
		{"a timeout below 0", func(c *stripeapi.Config) { c.Timeout = -1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := stripeapi.Config{Key: key(t), Now: func() time.Time { return now }}
			tt.spoil(&cfg)
			if _, err := stripeapi.New(cfg); err == nil {
				t.Error("got no error")
			}
		})
	}
}
