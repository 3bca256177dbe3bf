package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"paidonce/store"
)

const paidAt = "1767225600" // 2026-01-01

// sellA1 registers an order of 12.50 EUR, and has it paid.
func (w *world) sellA1() {
	w.t.Helper()
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur")
	w.deliver(paidIntent("evt_1", "pi_1", "A1", "eur", "1250", paidAt))
}

func TestARefundIsWaitedForAndTold(t *testing.T) {
	w := newStripeShop(t)
	w.servedBy(agrees)
	w.sellA1()
	out := w.must("orders", "refund", "A1", "--amount", "2.50", "--reason", "duplicate", "--request-id", "r-1")
	wantParts(t, "orders refund", out, "A1 refund of 2.50 EUR done: re_1\n", "request  r-1\n")
	// The same request is the same refund, whatever the same flags are typed for.
	if again := w.must("orders", "refund", "A1", "--amount", "2.5", "--reason", "duplicate", "--request-id", "r-1"); again != out {
		t.Errorf("again: %s; want\n%s", again, out)
	}
	exit, _, stderr := w.run("orders", "refund", "A1", "--amount", "3", "--request-id", "r-1", "--json")
	if exit != 1 || !strings.Contains(stderr, `"code": "request_conflict"`) {
		t.Errorf("another amount: exit %d, %s", exit, stderr)
	}
	var e store.Effect
	w.mustJSON(&e, "orders", "refund", "A1")
	if request, ok := strings.CutPrefix(e.Operation, "refund.request:cli_"); !ok || len(request) < 20 || e.Status != "done" || e.ProviderRef != "re_1" {
		t.Errorf("%+v; want it done, under a request id that was made", e)
	}
	var page pageOf[store.Effect]
	w.mustJSON(&page, "effects", "list", "--kind", "stripe", "--order", "A1")
	if len(page.Items) != 2 {
		t.Errorf("%d refunds; want 2: %+v", len(page.Items), page.Items)
	}
	wantParts(t, "the first", w.must("effects", "show", "1"), `"amount_minor": 250,`, `"reason": "duplicate"`)
	wantParts(t, "the second", w.must("effects", "show", "2"), `"amount_minor": 1000,`)
	exit, _, stderr = w.run("orders", "refund", "A1", "--amount", "0.01")
	if exit != 1 || !strings.Contains(stderr, "nothing of order A1 is refundable") {
		t.Errorf("when all is gone: exit %d, %s", exit, stderr)
	}
}

func TestARefundThatStripeRefusesExits1(t *testing.T) {
	w := newStripeShop(t)
	w.servedBy(refusesWith("charge_disputed", "it is disputed"))
	w.sellA1()
	exit, stdout, stderr := w.run("orders", "refund", "A1", "--request-id", "r-1")
	if exit != 1 || stdout != "" {
		t.Errorf("exit %d, stdout %q", exit, stdout)
	}
	wantParts(t, "stderr", stderr, "order A1, request r-1: Stripe did not do it: effect 1 (refund.request:r-1) failed, refused: charge_disputed: it is disputed", "`paidonce effects show 1`")
	exit, _, stderr = w.run("orders", "refund", "A1", "--request-id", "r-1", "--json")
	if exit != 1 || !strings.Contains(stderr, `"code": "stripe_refused"`) {
		t.Errorf("again: exit %d, %s", exit, stderr)
	}
}

func TestAnAmountToRefundIsTypedInThePaymentsCurrency(t *testing.T) {
	w := newStripeShop(t)
	w.sellA1()
	w.must("orders", "add", "--id", "J1", "--total", "500", "--currency", "jpy")
	w.must("orders", "add", "--id", "K1", "--total", "1.5", "--currency", "kwd")
	w.deliver(paidIntent("evt_2", "pi_2", "J1", "jpy", "500", paidAt), paidIntent("evt_3", "pi_3", "K1", "kwd", "1500", paidAt),
		paidIntent("evt_4", "pi_4", "J1", "eur", "700", paidAt)) // the wrong currency: in suspense
	for _, tt := range []struct {
		name string
		args []string
		exit int
		want string
	}{
		{"a decimal comma", []string{"A1", "--amount", "1,50"}, 2, "--amount: write an amount like 12.50"},
		{"more decimals than the currency has", []string{"A1", "--amount", "1.005"}, 2, "--amount: EUR has 2 decimals"},
		{"decimals of a currency that has none", []string{"J1", "--amount", "1.5"}, 2, "--amount: JPY has 0 decimals"},
		{"a third decimal that is not 0", []string{"K1", "--amount", "0.105"}, 1, "the last digit must be 0"},
		{"nothing", []string{"A1", "--amount", "0"}, 1, "amount_minor: must be at least 1"},
		{"an empty amount", []string{"A1", "--amount", ""}, 2, "--amount is empty"},
		{"an empty request id", []string{"A1", "--request-id", ""}, 2, "--request-id is empty"},
		{"a reason that Stripe does not know", []string{"A1", "--reason", "because"}, 2, "--reason must be one of duplicate, "},
		{"a third decimal that is 0", []string{"K1", "--amount", "0.11"}, 0, "K1 refund of 0.110 KWD queued as effect "},
		{"money in suspense, in its own currency", []string{"J1", "--amount", "1.50", "--payment", "pi_4"}, 0, "J1 refund of 1.50 EUR queued as effect "},
		{"money of the order", []string{"J1", "--amount", "150", "--payment", "pi_2"}, 0, "J1 refund of 150 JPY queued as effect "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exit, stdout, stderr := w.run(append([]string{"orders", "refund"}, tt.args...)...)
			if exit != tt.exit || !strings.Contains(stdout+stderr, tt.want) {
				t.Errorf("exit %d, %s%s; want %d, %q", exit, stdout, stderr, tt.exit, tt.want)
			}
		})
	}
}

// Without a serve nobody waits: what is queued is done by the next one.
func TestWithoutServeARequestIsQueued(t *testing.T) {
	w := newStripeShop(t)
	w.sellA1()
	w.must("orders", "add", "--id", "A2", "--total", "1", "--currency", "eur", "--payment-intent", "pi_9")
	out := w.must("orders", "refund", "A1")
	wantParts(t, "orders refund", out, "A1 refund of 12.50 EUR queued as effect 1: serve is not running, and carries it out when it starts", "`paidonce effects show 1`", "request  cli_")
	wantParts(t, "orders cancel", w.must("orders", "cancel", "A2"), "A2 is not closed yet, queued as effect 2: serve is not running")
	exit, stdout, stderr := w.run("orders", "checkout", "A2", "--success-url", "https://shop.example/thanks")
	if exit != 1 || stdout != "" || !strings.Contains(stderr, "order A2 has no URL yet: queued as effect 3: serve is not running") {
		t.Errorf("orders checkout without serve: exit %d, %s%s; a script must not take nothing for a URL", exit, stdout, stderr)
	}
	exit, stdout, stderr = w.run("orders", "add", "--id", "A3", "--total", "1", "--currency", "eur", "--success-url", "https://shop.example/thanks")
	if exit != 0 || !strings.Contains(stdout, "A3 registered\n") || !strings.Contains(stderr, "it has no URL yet: queued as effect 4: serve is not running") {
		t.Errorf("orders add: exit %d, %s%s", exit, stdout, stderr)
	}
	if out := w.must("orders", "add", "--id", "A3", "--total", "1", "--currency", "eur", "--success-url", "https://shop.example/thanks", "--json"); !strings.Contains(out, `"checkout_url": null`) {
		t.Errorf("the same with --json: %s; want checkout_url null", out)
	}
	// The next serve carries it out.
	w.servedBy(agrees)
	for _, id := range []string{"1", "2", "3", "4"} {
		w.settled(id)
	}
	wantParts(t, "effects show", w.must("effects", "show", "1"), "effect 1: done\n", "re_1")
	wantParts(t, "orders show", w.must("orders", "show", "A2"), "canceled")
	wantParts(t, "orders add again", w.must("orders", "add", "--id", "A3", "--total", "1", "--currency", "eur", "--success-url", "https://shop.example/thanks"),
		"A3 was registered before\n", "https://pay.example/cs_1")
}

// settled waits until an effect has come to an end.
func (w *world) settled(id string) {
	w.t.Helper()
	a := &app{process: w.process(io.Discard, io.Discard)}
	err := a.withStore(w.t.Context(), func(s *store.Store) error {
		_, err := s.AwaitEffect(w.t.Context(), id)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestACheckoutPrintsItsURLAlone(t *testing.T) {
	w := newStripeShop(t)
	w.servedBy(agrees)
	w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur")
	exit, stdout, stderr := w.run("orders", "checkout", "A1")
	if exit != 1 || !strings.Contains(stderr, "checkout.success_url: is required") {
		t.Errorf("without an address: exit %d, %s%s", exit, stdout, stderr)
	}
	if exit, _, stderr := w.run("orders", "checkout", "A1", "--cancel-url", "https://shop.example"); exit != 2 || !strings.Contains(stderr, "--cancel-url needs --success-url") {
		t.Errorf("half an address: exit %d, %s", exit, stderr)
	}
	if out := w.must("orders", "checkout", "A1", "--success-url", "https://shop.example/thanks", "--cancel-url", "https://shop.example/cart"); out != "https://pay.example/cs_1\n" {
		t.Errorf("printed %q", out)
	}
	wantParts(t, "effects show", w.must("effects", "show", "1"), `"success_url": "https://shop.example/thanks",`, `"cancel_url": "https://shop.example/cart",`)
	var o store.Order
	w.mustJSON(&o, "orders", "checkout", "A1", "--success-url", "https://shop.example/thanks")
	if o.ID != "A1" || o.CheckoutURL != "https://pay.example/cs_1" {
		t.Errorf("--json: %+v", o)
	}
	out := w.must("orders", "add", "--id", "A2", "--total", "1", "--currency", "eur", "--success-url", "https://shop.example/thanks")
	wantParts(t, "orders add", out, "A2 registered\n", "checkout  ", "https://pay.example/cs_1")
	w.deliver(paidIntent("evt_1", "pi_1", "A1", "eur", "1250", paidAt))
	if exit, _, stderr := w.run("orders", "checkout", "A1", "--json"); exit != 1 || !strings.Contains(stderr, `"code": "order_paid"`) {
		t.Errorf("a paid order: exit %d, %s", exit, stderr)
	}
}

func TestAnOrderIsClosedFromTheCommandLine(t *testing.T) {
	w := newStripeShop(t)
	answer := agrees
	w.servedBy(func(c store.EffectClaim) store.Answer { return answer(c) })
	add := func(id string) {
		w.must("orders", "add", "--id", id, "--total", "1", "--currency", "eur", "--payment-intent", "pi_"+id)
	}
	add("A1")
	add("A2")
	add("A3")
	wantParts(t, "orders cancel", w.must("orders", "cancel", "A1"), "A1 closed\n", "canceled")
	wantParts(t, "closed again", w.must("orders", "cancel", "A1"), "A1 closed\n")
	for id, code := range map[string]string{"A2": "order_paid", "A3": "payment_under_way"} {
		answer = refusesWith(code, "")
		exit, _, stderr := w.run("orders", "cancel", id, "--json")
		if exit != 1 || !strings.Contains(stderr, `"code": "`+code+`"`) {
			t.Errorf("exit %d, %s; want 1 and %s", exit, stderr, code)
		}
		wantParts(t, "it", w.must("orders", "show", id), "awaiting_payment")
	}
	answer = refusesWith("401", "the key is not good")
	exit, _, stderr := w.run("orders", "add", "--id", "A4", "--total", "1", "--currency", "eur", "--success-url", "https://shop.example")
	if exit != 1 || !strings.Contains(stderr, "order A4 registered, but: Stripe did not do it: effect ") || !strings.Contains(stderr, "the key is not good") {
		t.Errorf("a session that is refused: exit %d, %s", exit, stderr)
	}
	wantParts(t, "it", w.must("orders", "show", "A4"), "awaiting_payment", "effect_failed")
}

func TestWhatNeedsAStripeKeyIsRefusedWithoutOne(t *testing.T) {
	w := newShop(t)
	w.sellA1()
	w.must("orders", "add", "--id", "A2", "--total", "1", "--currency", "eur")
	for _, args := range [][]string{{"refund", "A1"}, {"checkout", "A2", "--success-url", "https://shop.example"}} {
		exit, _, stderr := w.run(append([]string{"orders", "--json"}, args...)...)
		if exit != 1 || !strings.Contains(stderr, `"code": "no_stripe_key"`) || !strings.Contains(stderr, "STRIPE_API_KEY") {
			t.Errorf("%s: exit %d, %s", args, exit, stderr)
		}
	}
	exit, _, stderr := w.run("orders", "add", "--total", "1", "--currency", "eur", "--success-url", "https://shop.example")
	if exit != 1 || !strings.Contains(stderr, "STRIPE_API_KEY") {
		t.Errorf("orders add: exit %d, %s", exit, stderr)
	}
	wantParts(t, "orders cancel", w.must("orders", "cancel", "A2"), "A2 closed\n")
}

// Whoever gives up waiting is told what goes on without them.
func TestWhoInterruptsTheWaitIsToldWhatIsQueued(t *testing.T) {
	w := newStripeShop(t)
	w.servedBy(nil)
	w.sellA1()
	ctx, interrupt := context.WithCancel(t.Context())
	var out bytes.Buffer
	said := &signalWriter{sign: "waiting for serve to carry out effect 1", seen: interrupt}
	exit := run(ctx, []string{"orders", "refund", "A1"}, w.process(&out, said))
	if exit != 0 {
		t.Errorf("exit %d, %s", exit, said)
	}
	wantParts(t, "orders refund", out.String(), "A1 refund of 12.50 EUR queued as effect 1: serve has no answer yet, and goes on")
}

// signalWriter calls seen when sign is written to it.
type signalWriter struct {
	bytes.Buffer
	sign string
	seen func()
}

func (s *signalWriter) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.sign) {
		s.seen()
	}
	return n, err
}

func TestACommandWaitsForThirtySecondsAndNoLonger(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, env: w.env}
		w.servedBy(nil)
		w.must("orders", "add", "--id", "A1", "--total", "12.50", "--currency", "eur")
		began := time.Now()
		exit, stdout, stderr := w.run("orders", "checkout", "A1", "--success-url", "https://shop.example")
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it waited %v", took)
		}
		if exit != 1 || stdout != "" {
			t.Errorf("exit %d, %s", exit, stdout)
		}
		wantParts(t, "stderr", stderr, "waiting for serve to carry out effect 1, for up to 30 s\n", "order A1 has no URL yet: queued as effect 1: serve has no answer yet, and goes on")
	})
}

func TestTheSecondsAreCountedOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		stop := countSeconds(&b, "waiting")
		time.Sleep(2500 * time.Millisecond) // of the bubble's time
		stop()
		if want := "\rwaiting … 0 s\rwaiting … 1 s\rwaiting … 2 s\r\x1b[K"; b.String() != want {
			t.Errorf("%q; want %q", b.String(), want)
		}
	})
}
