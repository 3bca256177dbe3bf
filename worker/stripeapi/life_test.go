package stripeapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/worker/stripeapi"
	"paidonce/worker/stripefake"
)

const (
	createRefund = "POST /v1/refunds"
	listRefunds  = "GET /v1/refunds"
	listSessions = "GET /v1/checkout/sessions"
)

// shop is a client of a stateful Stripe, and the outbox's policy around it.
type shop struct {
	fake   *stripefake.Server
	client *stripeapi.Client
}

func newShop(t *testing.T, configure ...func(*stripefake.ServerConfig)) *shop {
	t.Helper()
	cfg := stripefake.ServerConfig{Now: func() time.Time { return now }, Key: keyText, Config: stripefake.Config{Seed: 7}}
	for _, f := range configure {
		f(&cfg)
	}
	s := &shop{fake: stripefake.NewServer(cfg)}
	server := httptest.NewServer(s.fake)
	t.Cleanup(server.Close)
	t.Cleanup(s.fake.Close)
	s.client, _ = newClient(t, server.URL)
	return s
}

// carry does with a claim what the outbox does, without its waits: Again goes
// out as it is, Unknown is looked up, and what two look-ups do not find gets
// the next generation of its key. It returns the last answer and all outcomes.
func (s *shop) carry(t *testing.T, claim store.EffectClaim) (store.Answer, []store.Outcome) {
	t.Helper()
	var seen []store.Outcome
	absent, generation := 0, 1
	for range 500 {
		a := s.client.Send(t.Context(), claim)
		seen = append(seen, a.Outcome)
		claim.Attempt++
		claim.FirstTriedAt = store.At(now)
		switch a.Outcome {
		case store.OutcomeAgain:
		case store.OutcomeUnknown:
			claim.LookUp = true
		case store.OutcomeAbsent:
			if absent++; absent == 2 {
				generation++
				claim.Key, claim.LookUp, absent = fmt.Sprintf("%s_%d", claim.BaseKey, generation), false, 0
			}
		default:
			return a, seen
		}
	}
	t.Fatalf("no end after %v", seen[:20])
	return store.Answer{}, nil
}

// paid is a payment by card, and its intent.
func (s *shop) paid(t *testing.T) string {
	t.Helper()
	var intent string
	err := s.fake.Do(func(a *stripefake.Account) error {
		session, err := a.OpenSession(stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 1250}, Currency: "eur"})
		if err != nil {
			return err
		}
		session, err = a.PaySession(session.ID, stripefake.Card)
		intent = session.Intent
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return intent
}

func (s *shop) refundClaim(t *testing.T) store.EffectClaim {
	call := refundCall()
	call.PaymentIntent = s.paid(t)
	return claimOf(t, "refund.request:R1", call)
}

func (s *shop) refunds() []stripefake.Refund { return s.fake.RefundsWith("paidonce_operation", opKey) }

func (s *shop) sessions() []stripefake.Session {
	return s.fake.SessionsWith("paidonce_operation", opKey)
}

func TestACallHappensOnceWhateverBecomesOfItsAnswer(t *testing.T) {
	const (
		done, again, unknown, absent = store.OutcomeDone, store.OutcomeAgain, store.OutcomeUnknown, store.OutcomeAbsent
	)
	for _, tt := range []struct {
		name    string
		create  []stripefake.FaultKind
		list    []stripefake.FaultKind
		want    []store.Outcome
		renewed bool // by the next generation of its key
	}{
		{name: "it is answered", want: []store.Outcome{done}},
		{name: "it never arrives", create: []stripefake.FaultKind{stripefake.ClosedBefore}, want: []store.Outcome{again, done}},
		{name: "its answer is lost", create: []stripefake.FaultKind{stripefake.ClosedAfter}, want: []store.Outcome{again, done}},
		{name: "its answer is broken", create: []stripefake.FaultKind{stripefake.BrokenAfter}, want: []store.Outcome{again, done}},
		{name: "a gateway fails before it", create: []stripefake.FaultKind{stripefake.GatewayBefore}, want: []store.Outcome{again, done}},
		{name: "a gateway fails after it", create: []stripefake.FaultKind{stripefake.GatewayAfter}, want: []store.Outcome{again, done}},
		{name: "there were too many", create: []stripefake.FaultKind{stripefake.TooManyRequests}, want: []store.Outcome{again, done}},
		{name: "it fails after its work, and is found", create: []stripefake.FaultKind{stripefake.ErrorAfter}, want: []store.Outcome{unknown, done}},
		{name: "it fails after its work, and is found at the second look", create: []stripefake.FaultKind{stripefake.ErrorAfter}, list: []stripefake.FaultKind{stripefake.GatewayBefore},
			want: []store.Outcome{unknown, again, done}},
		{name: "it fails before its work, and gets another key", create: []stripefake.FaultKind{stripefake.ErrorBefore}, want: []store.Outcome{unknown, absent, absent, done}, renewed: true},
		{name: "it fails in every way in turn",
			create: []stripefake.FaultKind{stripefake.TooManyRequests, stripefake.ErrorBefore, stripefake.GatewayBefore, stripefake.ErrorAfter},
			list:   []stripefake.FaultKind{stripefake.ErrorAfter, stripefake.NoFault, stripefake.BrokenAfter},
			want:   []store.Outcome{again, unknown, again, absent, again, absent, again, unknown, done}, renewed: true},
	} {
		faults := func(kinds []stripefake.FaultKind) []stripefake.Fault {
			var out []stripefake.Fault
			for _, k := range kinds {
				out = append(out, stripefake.Fault{Kind: k, RetryAfter: "1"})
			}
			return out
		}
		t.Run("a refund: "+tt.name, func(t *testing.T) {
			s := newShop(t)
			claim := s.refundClaim(t)
			s.fake.FaultNext(createRefund, faults(tt.create)...)
			s.fake.FaultNext(listRefunds, faults(tt.list)...)
			a, seen := s.carry(t, claim)
			refunds := s.refunds()
			if !slices.Equal(seen, tt.want) || len(refunds) != 1 || a.Ref != refunds[0].ID || refunds[0].Amount != 500 {
				t.Errorf("got %v, refunds %+v, want %v: %s", seen, refunds, tt.want, a.Error)
			}
			if s.fake.FaultsLeft() != 0 {
				t.Error("a fault never came")
			}
		})
		t.Run("a session: "+tt.name, func(t *testing.T) {
			s := newShop(t)
			s.fake.FaultNext(createSession, faults(tt.create)...)
			s.fake.FaultNext(listSessions, faults(tt.list)...)
			a, seen := s.carry(t, claimOf(t, "checkout.open:1", checkoutCall()))
			sessions := s.sessions()
			if !slices.Equal(seen, tt.want) || len(sessions) != 1 || a.Ref != sessions[0].ID {
				t.Fatalf("got %v, sessions %+v, want %v: %s", seen, sessions, tt.want, a.Error)
			}
			var r store.CheckoutResult
			if err := json.Unmarshal(a.Result, &r); err != nil || r.Session != a.Ref || r.URL == "" || r.ExpiresAt != store.At(now.Add(24*time.Hour)) {
				t.Errorf("the result is %s: %v", a.Result, err)
			}
			if got := sessions[0]; got.Pricing.Total() != 1250 || got.Reference != "ORD-1" || got.Metadata["order_id"] != "ORD-1" {
				t.Errorf("opened %+v", got)
			}
			if s.fake.FaultsLeft() != 0 {
				t.Error("a fault never came")
			}
		})
	}
}

// checkoutClaim is a session of the same order under another key.
func checkoutClaim(t *testing.T, key string) store.EffectClaim {
	call := checkoutCall()
	call.Metadata["paidonce_operation"] = key
	c := claimOf(t, "checkout.open:1", call)
	c.Key, c.BaseKey = key, key
	return c
}

// everyFault is a Stripe at its worst: more than half of all calls go wrong.
func everyFault(seed uint64) func(stripefake.FaultRequest) stripefake.Fault {
	chances := map[stripefake.FaultKind]float64{}
	for _, k := range []stripefake.FaultKind{
		stripefake.ClosedBefore, stripefake.ClosedAfter, stripefake.ErrorBefore, stripefake.ErrorAfter,
		stripefake.GatewayBefore, stripefake.GatewayAfter, stripefake.TooManyRequests, stripefake.BrokenAfter,
	} {
		chances[k] = 0.08
	}
	return stripefake.RandomFaults(seed, chances)
}

func TestEveryCallHappensOnceAtAStripeThatFailsAtRandom(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		s := newShop(t)
		refund := s.refundClaim(t)
		s.fake.Fault(everyFault(seed))
		if a, seen := s.carry(t, refund); a.Outcome != store.OutcomeDone || len(s.refunds()) != 1 || a.Ref != s.refunds()[0].ID {
			t.Errorf("seed %d: refund %s after %v: %s, there are %+v", seed, a.Outcome, seen, a.Error, s.refunds())
		}
		first, seen := s.carry(t, checkoutClaim(t, "po_first"))
		sessions := s.fake.SessionsWith("paidonce_operation", "po_first")
		if first.Outcome != store.OutcomeDone || len(sessions) != 1 || first.Ref != sessions[0].ID {
			t.Fatalf("seed %d: session %s after %v: %s, there are %+v", seed, first.Outcome, seen, first.Error, sessions)
		}
		// The next one closes it, and the end of the order closes the next one.
		second, seen := s.carry(t, withSessions(checkoutClaim(t, "po_second"), first.Ref))
		sessions = s.fake.SessionsWith("order_id", "ORD-1")
		if second.Outcome != store.OutcomeDone || len(sessions) != 2 || second.Ref != sessions[1].ID || sessions[0].Status != stripefake.SessionExpired {
			t.Fatalf("seed %d: next session %s after %v: %s, there are %+v", seed, second.Outcome, seen, second.Error, sessions)
		}
		end := claimOf(t, "order.cancel:1", store.CancelCall{})
		end.Key, end.BaseKey = "po_end", "po_end"
		last, seen := s.carry(t, withSessions(end, first.Ref, second.Ref))
		if last.Outcome != store.OutcomeDone || slices.Contains(seen, store.OutcomeAbsent) || slices.Contains(seen, store.OutcomeUnknown) {
			t.Errorf("seed %d: order.cancel %s after %v: %s", seed, last.Outcome, seen, last.Error)
		}
		if sessions = s.fake.SessionsWith("order_id", "ORD-1"); len(sessions) != 2 || sessions[1].Status != stripefake.SessionExpired {
			t.Errorf("seed %d: the end leaves %+v", seed, sessions)
		}
		if err := s.fake.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestTwoCallsUnderOneKeyMakeOneRefund(t *testing.T) {
	s := newShop(t)
	claim := s.refundClaim(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	s.fake.Fault(func(r stripefake.FaultRequest) stripefake.Fault {
		if r.Attempt == 1 {
			close(arrived)
			return stripefake.Fault{WaitBefore: release}
		}
		return stripefake.Fault{}
	})
	first := make(chan store.Answer)
	go func() { first <- s.client.Send(t.Context(), claim) }()
	<-arrived
	// The fake takes the key just after it has asked for the fault.
	var second store.Answer
	for second.Code != "idempotency_key_in_use" {
		if second = s.client.Send(t.Context(), claim); second.Outcome != store.OutcomeAgain {
			break
		}
	}
	if second.Outcome != store.OutcomeAgain || second.Status != 409 {
		t.Errorf("the second call got %+v", second)
	}
	close(release)
	if a := <-first; a.Outcome != store.OutcomeDone || len(s.refunds()) != 1 {
		t.Errorf("the first call got %+v", a)
	}
	if a := s.client.Send(t.Context(), claim); a.Outcome != store.OutcomeDone || len(s.refunds()) != 1 {
		t.Errorf("the third call got %+v", a)
	}
}

func TestOtherParametersUnderTheSameKeyAreAMistake(t *testing.T) {
	s := newShop(t)
	claim := s.refundClaim(t)
	s.carry(t, claim)
	claim.Body = []byte(string(claim.Body[:len(claim.Body)-1]) + `,"amount_minor":400}`)
	if a := s.client.Send(t.Context(), claim); a.Outcome != store.OutcomeRefused || a.Code != "idempotency_error" || len(s.refunds()) != 1 {
		t.Errorf("got %+v", a)
	}
}

func TestWhatStripeRefusesIsTold(t *testing.T) {
	s := newShop(t)
	claim := s.refundClaim(t)
	var call store.RefundCall
	if err := json.Unmarshal(claim.Body, &call); err != nil {
		t.Fatal(err)
	}
	call.AmountMinor = 1250
	all := claimOf(t, "refund.request:ALL", call)
	if a, _ := s.carry(t, all); a.Outcome != store.OutcomeDone {
		t.Fatalf("got %+v", a)
	}
	claim.Key = opKey + "_9"
	if a, _ := s.carry(t, claim); a.Outcome != store.OutcomeRefused || a.Code != "charge_already_refunded" || a.Status != 400 {
		t.Errorf("got %+v", a)
	}
	call.PaymentIntent = "pi_nobody"
	missing := claimOf(t, "refund.request:R3", call)
	missing.Key = opKey + "_8"
	if a, _ := s.carry(t, missing); a.Outcome != store.OutcomeRefused || a.Code != "resource_missing" {
		t.Errorf("got %+v", a)
	}
}

func TestACallForAConnectedAccountGoesThere(t *testing.T) {
	s := newShop(t, func(cfg *stripefake.ServerConfig) { cfg.Config.Connected = "acct_1" })
	call := checkoutCall()
	if a := s.client.Send(t.Context(), claimOf(t, "checkout.open:1", call)); a.Outcome != store.OutcomeAgain || a.Status != 403 {
		t.Errorf("without the account: got %+v", a)
	}
	call.Account = "acct_1"
	a, _ := s.carry(t, claimOf(t, "checkout.open:1", call))
	if a.Outcome != store.OutcomeDone || len(s.sessions()) != 1 {
		t.Fatalf("got %+v", a)
	}
	if found := s.client.Send(t.Context(), lookUp(claimOf(t, "checkout.open:1", call))); found.Outcome != store.OutcomeDone || found.Ref != a.Ref {
		t.Errorf("the look-up got %+v", found)
	}
	end := withSessions(claimOf(t, "order.cancel:1", store.CancelCall{Account: "acct_1"}), a.Ref)
	if a, _ := s.carry(t, end); a.Outcome != store.OutcomeDone || s.sessions()[0].Status != stripefake.SessionExpired {
		t.Errorf("the end of the order got %+v", a)
	}
}

func TestTheBuyerIsFasterThanTheEnd(t *testing.T) {
	s := newShop(t)
	opened, _ := s.carry(t, claimOf(t, "checkout.open:1", checkoutCall()))
	end := withSessions(claimOf(t, "order.cancel:1", store.CancelCall{}), opened.Ref)
	// Between the look and the expiry.
	s.fake.Fault(func(r stripefake.FaultRequest) stripefake.Fault {
		if r.Route == "POST /v1/checkout/sessions/{id}/expire" {
			if _, err := s.fake.Pay(opened.Ref); err != nil {
				t.Error(err)
			}
		}
		return stripefake.Fault{}
	})
	if a, _ := s.carry(t, end); a.Outcome != store.OutcomeRefused || a.Code != "order_paid" {
		t.Errorf("got %+v", a)
	}
	next := withSessions(claimOf(t, "checkout.open:2", checkoutCall()), opened.Ref)
	next.Key = opKey + "_2"
	if a, _ := s.carry(t, next); a.Outcome != store.OutcomeRefused || a.Code != "order_paid" || len(s.sessions()) != 1 {
		t.Errorf("the next session got %+v", a)
	}
}

func TestADebitIsUnderWayUntilItsBankSaysMore(t *testing.T) {
	for _, tt := range []struct {
		name string
		bank func(*stripefake.Server, string) (stripefake.Session, error)
		want store.Outcome
		code string
	}{
		{"it has said nothing", nil, store.OutcomeRefused, "payment_under_way"},
		{"it pays", (*stripefake.Server).Settle, store.OutcomeRefused, "order_paid"},
		{"it refuses", (*stripefake.Server).Bounce, store.OutcomeDone, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t)
			opened, _ := s.carry(t, claimOf(t, "checkout.open:1", checkoutCall()))
			if _, err := s.fake.PayByDebit(opened.Ref); err != nil {
				t.Fatal(err)
			}
			if tt.bank != nil {
				if _, err := tt.bank(s.fake, opened.Ref); err != nil {
					t.Fatal(err)
				}
			}
			next := withSessions(claimOf(t, "checkout.open:2", checkoutCall()), opened.Ref)
			next.Key = opKey + "_2"
			if a, _ := s.carry(t, next); a.Outcome != tt.want || a.Code != tt.code {
				t.Errorf("the next session got %+v", a)
			}
			end := withSessions(claimOf(t, "order.cancel:1", store.CancelCall{}), opened.Ref)
			if a, _ := s.carry(t, end); a.Outcome != tt.want || a.Code != tt.code {
				t.Errorf("the end got %+v", a)
			}
		})
	}
}

func TestTheEndOfAnOrderLetsItsHoldGo(t *testing.T) {
	s := newShop(t)
	var held, waits stripefake.Intent
	err := s.fake.Do(func(a *stripefake.Account) (err error) {
		if held, err = a.CreateIntent(stripefake.IntentParams{Amount: 1250, Currency: "eur", Manual: true}); err != nil {
			return err
		}
		if waits, err = a.CreateIntent(stripefake.IntentParams{Amount: 1250, Currency: "eur"}); err != nil {
			return err
		}
		return a.Authorize(held.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	claim := claimOf(t, "order.cancel:1", store.CancelCall{PaymentIntents: []string{held.ID, waits.ID}})
	for range 2 { // and once more: nothing changes
		if a, _ := s.carry(t, claim); a.Outcome != store.OutcomeDone {
			t.Errorf("got %+v", a)
		}
		for _, id := range []string{held.ID, waits.ID} {
			if pi, err := s.client.RetrievePaymentIntent(t.Context(), "", id); err != nil || pi.Status != "canceled" {
				t.Errorf("%s is %v: %v", id, pi, err)
			}
		}
	}
}

func TestAnIntentEndsWithTheSessionThatItBelongsTo(t *testing.T) {
	s := newShop(t)
	opened, _ := s.carry(t, claimOf(t, "checkout.open:1", checkoutCall()))
	session, err := s.fake.Decline(opened.Ref) // an attempt that failed: now there is an intent
	if err != nil {
		t.Fatal(err)
	}
	call := store.CancelCall{PaymentIntents: []string{session.Intent}}
	for _, claim := range []store.EffectClaim{
		claimOf(t, "order.cancel:1", call), // of a session that nobody told of
		withSessions(claimOf(t, "order.cancel:2", call), opened.Ref),
	} {
		if a, _ := s.carry(t, claim); a.Outcome != store.OutcomeDone || s.sessions()[0].Status != stripefake.SessionExpired {
			t.Errorf("got %+v", a)
		}
	}
}
