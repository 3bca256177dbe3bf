package stripeapi_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"paidonce/store"
	"paidonce/worker/stripeapi"
)

// startStripeMock runs Stripe's own stripe-mock on loopback and returns where it
// is. PAIDONCE_STRIPE_MOCK names the program, else it is looked for on PATH.
func startStripeMock(t *testing.T) string {
	t.Helper()
	program := os.Getenv("PAIDONCE_STRIPE_MOCK")
	if program == "" {
		found, err := exec.LookPath("stripe-mock")
		if err != nil {
			t.Skip("stripe-mock is not on PATH and PAIDONCE_STRIPE_MOCK is not set: go install github.com/stripe/stripe-mock@v0.203.0")
		}
		program = found
	}
	cmd := exec.CommandContext(t.Context(), program, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if addr, found := strings.CutPrefix(lines.Text(), "Listening for HTTP at address: "); found {
			return "http://" + addr
		}
	}
	t.Fatal("stripe-mock does not say where it listens")
	return ""
}

// stripe-mock knows Stripe's own specification: a path or a parameter that is
// not there is a 404 or a 400. It has no state, so that nothing more is asked of
// its answers than that they are ones.
func TestStripesOwnSpecificationTakesEveryCall(t *testing.T) {
	base := startStripeMock(t)
	c, log := newClient(t, base, func(cfg *stripeapi.Config) {
		k, err := stripeapi.NewKey("sk_test_123") // it takes no other shape
		if err != nil {
			t.Fatal(err)
		}
		cfg.Key = k
	})
	ofCharge := refundCall()
	ofCharge.PaymentIntent, ofCharge.Charge = "", "ch_1"
	for _, tt := range []struct {
		name  string
		claim store.EffectClaim
		want  store.Outcome
	}{
		{"a refund of a payment intent", claimOf(t, "refund.request:R1", refundCall()), store.OutcomeDone},
		{"a refund of a charge", claimOf(t, "refund.request:R1", ofCharge), store.OutcomeDone},
		{"the look-up of a refund", lookUp(claimOf(t, "refund.request:R1", refundCall())), store.OutcomeAbsent},
		{"the look-up of a charge's refund", lookUp(claimOf(t, "refund.request:R1", ofCharge)), store.OutcomeAbsent},
		{"a session", claimOf(t, "checkout.open:1", checkoutCall()), store.OutcomeDone},
		{"the look-up of a session", lookUp(claimOf(t, "checkout.open:1", checkoutCall())), store.OutcomeAbsent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if a := c.Send(t.Context(), tt.claim); a.Outcome != tt.want || a.Status != 200 {
				t.Errorf("got %s %d %q: %s %s", a.Outcome, a.Status, a.Code, a.Error, a.Body)
			}
		})
	}
	t.Run("an expiry", func(t *testing.T) {
		// The canned session stays open, whatever is asked of it.
		if a := c.ExpireCheckout(t.Context(), claimOf(t, "checkout.open:1", nil), "", "cs_test_1"); a.Status != 200 {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("the end of an order", func(t *testing.T) {
		claim := claimOf(t, "order.cancel:1", store.CancelCall{PaymentIntents: []string{"pi_1"}})
		if a := c.Send(t.Context(), claim); a.Status != 200 {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("every reading", func(t *testing.T) {
		_, err1 := c.RetrieveSession(t.Context(), "", "cs_test_1")
		_, err2 := c.RetrievePaymentIntent(t.Context(), "", "pi_1")
		_, err3 := c.RetrieveRefund(t.Context(), "", "re_1")
		_, err4 := c.RetrieveDispute(t.Context(), "", "dp_1")
		for _, err := range []error{err1, err2, err3, err4} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	for _, refusal := range []string{"status=400", "status=404", "status=401"} {
		if strings.Contains(log.String(), refusal) {
			t.Errorf("stripe-mock refuses a call: %s", log)
		}
	}
}
