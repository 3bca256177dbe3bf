package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/store"
	"paidonce/store/storetest"
)

func withKey(o *store.Options) { o.StripeKey = "sk_test" }

func asks(amount int64, request string) store.RefundRequest {
	r := store.RefundRequest{RequestID: request}
	if amount != 0 {
		r.AmountMinor = &amount
	}
	return r
}

// refundOf is a refund as Stripe tells of one that we asked for.
func refundOf(event, id, status, key string, amount, seconds int64) string {
	return of(event, "refund", id, opened+seconds, fmt.Sprintf(`,"amount":%d,"status":%q,"payment_intent":"pi_1","metadata":{"paidonce_operation":%q}`, amount, status, key))
}

func TestARequestIDIsOneRefund(t *testing.T) {
	s, _ := storetest.Open(t, withKey)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	first, err := s.RequestRefund(ctx, "", "ORD-1", asks(500, "r-1"))
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		if e, err := s.RequestRefund(ctx, "", "ORD-1", asks(500, "r-1")); err != nil || e.ID != first.ID {
			t.Fatalf("the same request: effect %s, %v; want %s", e.ID, err, first.ID)
		}
	}
	_, err = s.RequestRefund(ctx, "", "ORD-1", asks(501, "r-1"))
	wantProblem(t, "the same id for another amount", err, store.CodeRequestConflict)
	_, err = s.RequestRefund(ctx, "", "ORD-1", asks(0, "r-1"))
	wantProblem(t, "the same id for all of it", err, store.CodeRequestConflict)
	second, err := s.RequestRefund(ctx, "", "ORD-1", asks(500, "r-2")) // the same amount is another refund
	if err != nil || second.ID == first.ID || second.IdempotencyKey == first.IdempotencyKey {
		t.Fatalf("another request: %+v, %v", second, err)
	}
	_, err = s.RequestRefund(ctx, "", "ORD-1", asks(251, "r-3"))
	if p := wantProblem(t, "more than is left", err, store.CodeNotRefundable); !strings.Contains(p.Message, "2.50 EUR") {
		t.Errorf("%q does not say how much is left", p.Message)
	}
	rest, err := s.RequestRefund(ctx, "", "ORD-1", asks(0, "r-4"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.FindEffect(ctx, rest.ID)
	var call store.RefundCall
	if err != nil || json.Unmarshal(d.Body, &call) != nil || call.AmountMinor != 250 || call.PaymentIntent != "pi_1" ||
		call.Metadata["order_id"] != "ORD-1" || call.Metadata["paidonce_operation"] != rest.IdempotencyKey {
		t.Errorf("%s, %v; want the 250 that are left", d.Body, err)
	}
	_, err = s.RequestRefund(ctx, "", "ORD-1", asks(0, "r-5"))
	wantProblem(t, "when nothing is left", err, store.CodeNotRefundable)
	if c := storetest.ClaimOne(t, s, store.StripeTarget); c.Operation != "refund.request:r-1" {
		t.Errorf("claimed %s; refunds of one order go one by one", c.Operation)
	}
}

func TestARefundCountsOnceWhateverComesFirst(t *testing.T) {
	left := func(t *testing.T, s *store.Store) int64 {
		t.Helper()
		_, err := s.RequestRefund(ctx, "", "ORD-1", asks(99999, "probe"))
		p, _ := store.AsProblem(err)
		switch {
		case p == nil:
			t.Fatal("999.99 were refundable")
		case strings.Contains(p.Message, "nothing of order"):
			return 0
		}
		var whole, cents int64
		if _, err := fmt.Sscanf(p.Message, "at most %d.%d EUR", &whole, &cents); err != nil {
			t.Fatalf("%q", p.Message)
		}
		return whole*100 + cents
	}
	setUp := func(t *testing.T) (*store.Store, store.Effect) {
		s, _ := storetest.Open(t, withKey)
		storetest.Register(t, s, "ORD-1", 1250, "eur")
		storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
		e, err := s.RequestRefund(ctx, "", "ORD-1", asks(500, "r-1"))
		if err != nil {
			t.Fatal(err)
		}
		return s, e
	}
	want := func(t *testing.T, s *store.Store, when string, n int64) {
		t.Helper()
		if got := left(t, s); got != n {
			t.Errorf("%s: %d refundable; want %d", when, got, n)
		}
	}
	t.Run("the answer comes first", func(t *testing.T) {
		s, e := setUp(t)
		want(t, s, "queued", 750)
		c := storetest.ClaimOne(t, s, store.StripeTarget)
		want(t, s, "under way", 750)
		storetest.Finish(t, s, c, store.Answer{Outcome: store.OutcomeDone, Ref: "re_1"})
		want(t, s, "answered, and no event yet", 750)
		storetest.Deliver(t, s, refundOf("evt_2", "re_1", "pending", e.IdempotencyKey, 500, 2))
		want(t, s, "its event", 750)
		storetest.Deliver(t, s, refundOf("evt_3", "re_1", "failed", e.IdempotencyKey, 500, 3))
		want(t, s, "the bank refused it", 1250)
	})
	t.Run("the webhook comes first", func(t *testing.T) {
		s, e := setUp(t)
		c := storetest.ClaimOne(t, s, store.StripeTarget)
		storetest.Deliver(t, s, refundOf("evt_2", "re_1", "succeeded", e.IdempotencyKey, 500, 2))
		want(t, s, "its event, while the call is under way", 750)
		if got := storetest.Effects(t, s, "ORD-1")[0]; got.Status != "sending" {
			t.Errorf("it is %s; what is under way is left to its answer", got.Status)
		}
		storetest.Finish(t, s, c, store.Answer{Outcome: store.OutcomeDone, Ref: "re_1"})
		want(t, s, "the answer", 750)
	})
	t.Run("the answer is lost and the webhook tells", func(t *testing.T) {
		s, e := setUp(t)
		storetest.Finish(t, s, storetest.ClaimOne(t, s, store.StripeTarget), unknown)
		if got := storetest.Effects(t, s, "ORD-1")[0]; got.Status != "unknown" {
			t.Fatalf("it is %s", got.Status)
		}
		storetest.Deliver(t, s, refundOf("evt_2", "re_1", "succeeded", e.IdempotencyKey, 500, 2))
		if got := storetest.Effects(t, s, "ORD-1")[0]; got.Status != "done" || got.ProviderRef != "re_1" {
			t.Errorf("it is %s, ref %q; want done by re_1", got.Status, got.ProviderRef)
		}
		want(t, s, "learned", 750)
		if o := storetest.Order(t, s, "ORD-1"); o.Status != "partially_refunded" || o.RefundedMinor != 500 || o.Entries[len(o.Entries)-1].Event != "evt_2" {
			t.Errorf("%s, %d refunded, entries %+v", o.Status, o.RefundedMinor, o.Entries)
		}
	})
	t.Run("it is refused", func(t *testing.T) {
		s, _ := setUp(t)
		storetest.Finish(t, s, storetest.ClaimOne(t, s, store.StripeTarget), store.Answer{Outcome: store.OutcomeRefused, Code: "charge_disputed"})
		want(t, s, "refused", 1250)
		if o := storetest.Order(t, s, "ORD-1"); !slices.Contains(o.Attention, "effect_failed") {
			t.Errorf("attention %v", o.Attention)
		}
	})
	t.Run("it is proven to have come to nothing", func(t *testing.T) {
		s, clock := storetest.Open(t, withKey)
		storetest.Register(t, s, "ORD-1", 1250, "eur")
		storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
		if _, err := s.RequestRefund(ctx, "", "ORD-1", asks(500, "r-1")); err != nil {
			t.Fatal(err)
		}
		first := storetest.ClaimOne(t, s, store.StripeTarget)
		storetest.Finish(t, s, first, unknown)
		for range 2 {
			clock.Advance(time.Minute)
			c := storetest.ClaimOne(t, s, store.StripeTarget)
			if !c.LookUp || c.Key != first.Key {
				t.Fatalf("%+v; want a look-up", c)
			}
			storetest.Finish(t, s, c, absent)
		}
		next := storetest.ClaimOne(t, s, store.StripeTarget)
		if next.LookUp || next.Key == first.Key || next.BaseKey != first.BaseKey || string(next.Body) != string(first.Body) {
			t.Errorf("%+v; want the same call under the next generation of its key", next)
		}
	})
}

func TestWhatCanBeRefunded(t *testing.T) {
	s, _ := storetest.Open(t, withKey, func(o *store.Options) { o.Scopes["stripe"] = "stripe:self:test" })
	_, err := s.RequestRefund(ctx, "", "ORD-9", asks(0, "r"))
	wantProblem(t, "no such order", err, store.CodeNotFound)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	for _, bad := range []store.RefundRequest{{}, asks(-1, "r"), {RequestID: "r", Reason: "because"}, {RequestID: strings.Repeat("x", 201)}, {RequestID: "a\nb"}} {
		_, err := s.RequestRefund(ctx, "", "ORD-1", bad)
		wantProblem(t, fmt.Sprintf("%+v", bad), err, store.CodeInvalid)
	}
	_, err = s.RequestRefund(ctx, "", "ORD-1", asks(0, "r"))
	wantProblem(t, "an order without money", err, store.CodeNotRefundable)
	// Two payments: which one is for a person to say. One in suspense can go back too.
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1), pays("evt_2", "pi_2", 2), intent("evt_3", "pi_3", "succeeded", opened+3, 99, ""))
	_, err = s.RequestRefund(ctx, "", "ORD-1", asks(0, "r"))
	if p := wantProblem(t, "two that hold money", err, store.CodeAmbiguous); !strings.Contains(p.Message, "pi_1 (12.50 EUR), pi_2 (12.50 EUR)") {
		t.Errorf("%q does not name them", p.Message)
	}
	for _, tt := range []struct {
		payment string
		amount  int64
	}{{"pi_2", 1250}, {"pi_3", 99}} {
		e, err := s.RequestRefund(ctx, "", "ORD-1", store.RefundRequest{Payment: tt.payment, RequestID: tt.payment})
		if err != nil {
			t.Fatalf("%s: %v", tt.payment, err)
		}
		d, _ := s.FindEffect(ctx, e.ID)
		var call store.RefundCall
		if json.Unmarshal(d.Body, &call); call.PaymentIntent != tt.payment || call.AmountMinor != tt.amount {
			t.Errorf("%s; want %d of %s", d.Body, tt.amount, tt.payment)
		}
	}
	_, err = s.RequestRefund(ctx, "", "ORD-1", store.RefundRequest{Payment: "pi_77", RequestID: "x"})
	wantProblem(t, "a payment of nobody", err, store.CodeNotFound)

	storetest.Register(t, s, "KWD", 1500, "kwd")
	storetest.Deliver(t, s, strings.NewReplacer(`"eur"`, `"kwd"`, "ORD-1", "KWD").Replace(intent("evt_4", "pi_4", "succeeded", opened, 1500, "")))
	_, err = s.RequestRefund(ctx, "", "KWD", asks(105, "r"))
	wantProblem(t, "three decimals, of which the last is not 0", err, store.CodeInvalid)
	if _, err := s.RequestRefund(ctx, "", "KWD", asks(110, "r")); err != nil {
		t.Error(err)
	}
	// What a dispute has taken cannot go back a second time.
	storetest.Register(t, s, "LOST", 1250, "eur")
	storetest.Deliver(t, s, strings.Replace(pays("evt_5", "pi_5", 1), "ORD-1", "LOST", 1),
		of("evt_6", "dispute", "dp_5", opened+2, `,"amount":1000,"status":"lost","charge":null,"payment_intent":"pi_5","balance_transactions":[{"id":"txn_1","amount":-1000,"currency":"eur"}]`))
	_, err = s.RequestRefund(ctx, "", "LOST", asks(251, "r"))
	wantProblem(t, "more than a dispute has left", err, store.CodeNotRefundable)
	if _, err := s.RequestRefund(ctx, "", "LOST", asks(250, "r")); err != nil {
		t.Error(err)
	}
	keyless, _ := storetest.Open(t)
	storetest.Register(t, keyless, "ORD-1", 1250, "eur")
	storetest.Deliver(t, keyless, pays("evt_1", "pi_1", 1))
	_, err = keyless.RequestRefund(ctx, "", "ORD-1", asks(0, "r"))
	wantProblem(t, "without a key", err, store.CodeNoStripeKey)
}

// TestAnEffectWithoutItsTargetWaits: an older program, another configuration or a
// key that was taken away throws nothing out (cases.md B40).
func TestAnEffectWithoutItsTargetWaits(t *testing.T) {
	dir, clock := t.TempDir(), storetest.NewClock()
	open := func(change func(*store.Options)) *store.Store {
		o := storetest.Options(dir, clock)
		change(&o)
		s, err := store.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(func(o *store.Options) { withKey(o); fan("app")(o); o.Targets = []string{"app", "stripe"} })
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
	if _, err := s.RequestRefund(ctx, "", "ORD-1", asks(0, "r")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Advance(100 * time.Hour)
	s = open(func(o *store.Options) { o.Targets = []string{} })
	for id, want := range map[string]string{
		"1": "it waits for a target named app: no [[effect]] of the configuration has that name",
		"2": "it waits for a key: serve has no STRIPE_API_KEY",
	} {
		if d, err := s.FindEffect(ctx, id); err != nil || d.Status != "pending" || d.Attempts != 0 || d.Next != want {
			t.Errorf("effect %s is %s after %d attempts, next %q, %v; want %q", id, d.Status, d.Attempts, d.Next, err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(func(o *store.Options) { withKey(o); fan("app")(o) })
	defer s.Close()
	storetest.ClaimOne(t, s, "app")
	storetest.ClaimOne(t, s, store.StripeTarget)
}

func TestACheckoutSessionIsOpenedOnceAndAfterTheOldOneIsClosed(t *testing.T) {
	s, clock := storetest.Open(t, withKey)
	urls := &store.Checkout{SuccessURL: "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}", CancelURL: "https://shop.example/cart"}
	order := func(n *store.NewOrder) {
		n.Checkout = urls
		n.Items = []store.Item{{SKU: "ebook", Name: "A book", Quantity: 2, UnitMinor: 500}, {SKU: "pen", Quantity: 1, UnitMinor: 250}}
	}
	storetest.Register(t, s, "ORD-1", 1250, "eur", order)
	storetest.Register(t, s, "ORD-1", 1250, "eur", order) // the same again asks for no second one
	wantStanding(t, s, "registered", "checkout.open:1 stripe pending")
	c := storetest.ClaimOne(t, s, store.StripeTarget)
	var call store.CheckoutCall
	if err := json.Unmarshal(c.Body, &call); err != nil || call.SuccessURL != urls.SuccessURL || len(call.Lines) != 2 || call.Lines[1].Name != "pen" ||
		call.Metadata["order_id"] != "ORD-1" || call.Metadata["paidonce_operation"] != c.BaseKey || call.Reference != "ORD-1" || len(c.Sessions) != 0 {
		t.Errorf("%s, sessions %v", c.Body, c.Sessions)
	}
	// While it is under way, asking again gives the same one.
	if e, err := s.RequestCheckout(ctx, "", "ORD-1", nil); err != nil || e.ID != fmt.Sprint(c.Row) {
		t.Errorf("asked meanwhile: %+v, %v", e, err)
	}
	opened := func(c store.EffectClaim, id string) {
		storetest.Finish(t, s, c, store.Answer{Outcome: store.OutcomeDone, Ref: id,
			Result: json.RawMessage(fmt.Sprintf(`{"session":%q,"url":"https://pay.example/%s","expires_at":"2026-12-02T09:00:00Z"}`, id, id))})
	}
	opened(c, "cs_1")
	if o := storetest.Order(t, s, "ORD-1"); o.CheckoutURL != "https://pay.example/cs_1" || !slices.Contains(o.Refs, "cs_1") {
		t.Errorf("url %q, refs %v", o.CheckoutURL, o.Refs)
	}
	clock.Advance(time.Minute)
	if _, err := s.RequestCheckout(ctx, "", "ORD-1", nil); err != nil {
		t.Fatal(err)
	}
	c = storetest.ClaimOne(t, s, store.StripeTarget)
	if !slices.Equal(c.Sessions, []string{"cs_1"}) || c.Operation != "checkout.open:2" {
		t.Errorf("%s with sessions %v; want the old one closed first", c.Operation, c.Sessions)
	}
	opened(c, "cs_2")
	// An ended session is not asked about any more; the buyer pays in the second.
	storetest.Deliver(t, s, of("evt_1", "checkout.session", "cs_1", 1796115700, `,"mode":"payment","status":"expired","payment_status":"unpaid","amount_total":1250`))
	if _, err := s.RequestCheckout(ctx, "", "ORD-1", nil); err != nil {
		t.Fatal(err)
	}
	c = storetest.ClaimOne(t, s, store.StripeTarget)
	if !slices.Equal(c.Sessions, []string{"cs_2"}) {
		t.Errorf("sessions %v; want only the one that may be open", c.Sessions)
	}
	storetest.Finish(t, s, c, store.Answer{Outcome: store.OutcomeRefused, Code: "order_paid"})
	if e := storetest.Effects(t, s, "ORD-1")[2]; e.Status != "canceled" || e.Reason != "the order was paid meanwhile" {
		t.Errorf("%s, %s; nothing has failed", e.Status, e.Reason)
	}
	storetest.Deliver(t, s, of("evt_2", "checkout.session", "cs_2", 1796115701, `,"mode":"payment","status":"complete","payment_status":"paid","amount_total":1250`))
	o := storetest.Order(t, s, "ORD-1")
	if o.Status != "paid" || o.CheckoutURL != "" || len(o.Attention) != 0 {
		t.Errorf("%s, url %q, attention %v: it names no order and is the order's all the same", o.Status, o.CheckoutURL, o.Attention)
	}
	_, err := s.RequestCheckout(ctx, "", "ORD-1", nil)
	wantProblem(t, "for a paid order", err, store.CodeOrderPaid)
}

func TestCheckoutIsCheckedAtTheRegistration(t *testing.T) {
	s, _ := storetest.Open(t, withKey)
	total, eur := int64(1250), "eur"
	for _, u := range []string{"", "thanks", "javascript:alert(1)", "ftp://shop.example", "https://", "https://shop.example/" + strings.Repeat("x", 2000)} {
		_, _, err := s.RegisterOrder(ctx, store.NewOrder{ID: "ORD-1", TotalMinor: &total, Currency: &eur, Checkout: &store.Checkout{SuccessURL: u}})
		wantProblem(t, fmt.Sprintf("%.30q", u), err, store.CodeInvalid)
	}
	keyless, _ := storetest.Open(t)
	_, _, err := keyless.RegisterOrder(ctx, store.NewOrder{ID: "ORD-1", TotalMinor: &total, Currency: &eur, Checkout: &store.Checkout{SuccessURL: "https://shop.example"}})
	if p := wantProblem(t, "without a key", err, store.CodeInvalid); !strings.Contains(p.Message, "STRIPE_API_KEY") {
		t.Errorf("%q", p.Message)
	}
	if _, err := keyless.FindOrder(ctx, "", "ORD-1"); err == nil {
		t.Error("the order was registered all the same")
	}
	// Items that do not add up to the total are one line of the total.
	storetest.Register(t, s, "ORD-2", 1250, "eur", func(n *store.NewOrder) {
		n.Checkout = &store.Checkout{SuccessURL: "https://shop.example"}
		n.Items = []store.Item{{SKU: "x", Quantity: 3, UnitMinor: 400}}
	})
	var call store.CheckoutCall
	if json.Unmarshal(storetest.ClaimOne(t, s, store.StripeTarget).Body, &call); len(call.Lines) != 1 || call.Lines[0].UnitMinor != 1250 || call.Lines[0].Quantity != 1 {
		t.Errorf("lines %+v", call.Lines)
	}
}

func TestAnOrderIsClosedAfterStripeWasAsked(t *testing.T) {
	s, _ := storetest.Open(t, withKey, fan("app"))
	checkout := func(n *store.NewOrder) { n.Checkout = &store.Checkout{SuccessURL: "https://shop.example"} }
	storetest.Register(t, s, "ORD-1", 1250, "eur", checkout)
	storetest.Finish(t, s, storetest.ClaimOne(t, s, store.StripeTarget), store.Answer{Outcome: store.OutcomeDone, Ref: "cs_1", Result: json.RawMessage(`{"url":"https://pay.example"}`)})
	o, e, err := s.RequestCancel(ctx, "", "ORD-1")
	if err != nil || e == nil || o.Status != "awaiting_payment" {
		t.Fatalf("%s, %+v, %v; want a question to Stripe first", o.Status, e, err)
	}
	if _, again, err := s.RequestCancel(ctx, "", "ORD-1"); err != nil || again == nil || again.ID != e.ID {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	c := storetest.ClaimOne(t, s, store.StripeTarget)
	if !slices.Equal(c.Sessions, []string{"cs_1"}) {
		t.Errorf("sessions %v", c.Sessions)
	}
	storetest.Finish(t, s, c, store.Answer{Outcome: store.OutcomeRefused, Code: "payment_under_way"})
	if o := storetest.Order(t, s, "ORD-1"); o.Status != "awaiting_payment" || len(o.Attention) != 0 {
		t.Errorf("refused, and it is %s, attention %v", o.Status, o.Attention)
	}
	if _, e, err = s.RequestCancel(ctx, "", "ORD-1"); err != nil || e == nil {
		t.Fatal(e, err)
	}
	storetest.Finish(t, s, storetest.ClaimOne(t, s, store.StripeTarget), done)
	wantStanding(t, s, "closed", "checkout.open:1 stripe done", "order.cancel:1 stripe canceled", "order.cancel:2 stripe done", "order.canceled app pending")
	if o, e, err := s.RequestCancel(ctx, "", "ORD-1"); err != nil || e != nil || o.Status != "canceled" {
		t.Errorf("closed again: %s, %+v, %v", o.Status, e, err)
	}
	_, err = s.RequestCheckout(ctx, "", "ORD-1", nil)
	wantProblem(t, "checkout of a closed order", err, store.CodeOrderClosed)

	// Nothing at Stripe can be paid: it closes at once, with and without a key.
	storetest.Register(t, s, "ORD-2", 1250, "eur")
	if o, e, err := s.RequestCancel(ctx, "", "ORD-2"); err != nil || e != nil || o.Status != "canceled" {
		t.Errorf("%s, %+v, %v", o.Status, e, err)
	}
	storetest.Register(t, s, "ORD-3", 1250, "eur", func(n *store.NewOrder) { pi := "pi_3"; n.PaymentIntent = &pi })
	if _, e, err := s.RequestCancel(ctx, "", "ORD-3"); err != nil || e == nil {
		t.Errorf("a registered payment intent: %+v, %v; want a question to Stripe", e, err)
	} else if d, _ := s.FindEffect(ctx, e.ID); string(d.Body) != `{"payment_intents":["pi_3"]}` {
		t.Errorf("body %s", d.Body)
	}
	storetest.Register(t, s, "ORD-5", 1250, "eur")
	storetest.Deliver(t, s, strings.Replace(intent("evt_5", "pi_5", "canceled", opened, 0, ""), "ORD-1", "ORD-5", 1))
	if o, e, err := s.RequestCancel(ctx, "", "ORD-5"); err != nil || e != nil || o.Status != "canceled" {
		t.Errorf("an intent whose end is known: %s, %+v, %v; want no question", o.Status, e, err)
	}
	storetest.Register(t, s, "ORD-4", 1250, "eur")
	storetest.Deliver(t, s, strings.Replace(pays("evt_4", "pi_4", 1), "ORD-1", "ORD-4", 1))
	_, _, err = s.RequestCancel(ctx, "", "ORD-4")
	wantProblem(t, "a paid order", err, store.CodeOrderPaid)
}

func TestWhatAPersonMayDoWithAnEffect(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kind    string
		answers []store.Answer // to the attempts before
		retry   store.Code     // "" is allowed
		then    string         // its status after the retry
		resolve store.Code
	}{
		{"pending", "http", nil, "", "pending", ""},
		{"failed before", "http", []store.Answer{again}, "", "pending", ""},
		{"done: a resend really sends", "http", []store.Answer{done}, "", "pending", store.CodeNotResolvable},
		{"refused", "http", []store.Answer{refused}, "", "pending", ""},
		{"a mail of unknown outcome", "email", []store.Answer{unknown}, "", "pending", ""},
		{"a command of unknown outcome", "exec", []store.Answer{unknown}, "", "pending", ""},
		{"a refund that is done is never done again", "stripe", []store.Answer{done}, store.CodeNotRetryable, "", store.CodeNotResolvable},
		{"a refund that was refused is looked up first", "stripe", []store.Answer{refused}, "", "unknown", ""},
		{"a refund of unknown outcome", "stripe", []store.Answer{unknown}, "", "unknown", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setUp := func() *store.Store {
				s, _ := storetest.Open(t, withKey, func(o *store.Options) {
					o.Compose = func(oc store.Occasion) []store.Composed {
						if oc.Order == nil || tt.kind == store.KindStripe {
							return nil
						}
						return []store.Composed{{Target: "t", Kind: tt.kind, Body: []byte("{}")}}
					}
				})
				storetest.Register(t, s, "ORD-1", 1250, "eur")
				storetest.Deliver(t, s, pays("evt_1", "pi_1", 1))
				target := "t"
				if tt.kind == store.KindStripe {
					target = store.StripeTarget
					if _, err := s.RequestRefund(ctx, "", "ORD-1", asks(0, "r")); err != nil {
						t.Fatal(err)
					}
				}
				for _, a := range tt.answers {
					c := storetest.ClaimOne(t, s, target)
					_, err := s.RetryEffect(ctx, "1")
					wantProblem(t, "retry while it is sent", err, store.CodeInFlight)
					_, err = s.ResolveEffect(ctx, "1", "done", "")
					wantProblem(t, "resolve while it is sent", err, store.CodeInFlight)
					storetest.Finish(t, s, c, a)
				}
				return s
			}
			s := setUp()
			key := storetest.Effects(t, s, "ORD-1")[0].IdempotencyKey
			d, err := s.RetryEffect(ctx, "1")
			if tt.retry != "" {
				wantProblem(t, "retry", err, tt.retry)
			} else if err != nil || d.Status != tt.then || d.IdempotencyKey != key || len(d.Acts) == 0 || d.Acts[len(d.Acts)-1].Act != "retry" {
				t.Errorf("retry: %s, key %s, acts %+v, %v; want %s under %s", d.Status, d.IdempotencyKey, d.Acts, err, tt.then, key)
			} else if c := storetest.ClaimOne(t, s, d.Target); c.LookUp != (tt.then == "unknown") || c.Attempt != int64(len(tt.answers)+1) {
				t.Errorf("claimed at once: %+v", c)
			}
			for _, outcome := range []string{"done", "canceled"} {
				s := setUp()
				d, err := s.ResolveEffect(ctx, "1", outcome, "seen at the bank")
				if tt.resolve != "" {
					wantProblem(t, "resolve", err, tt.resolve)
				} else if err != nil || d.Status != outcome || !strings.Contains(d.Acts[len(d.Acts)-1].Note, "seen at the bank") {
					t.Errorf("resolve: %s, %+v, %v", d.Status, d.Acts, err)
				}
			}
		})
	}
	s, _ := storetest.Open(t)
	for _, id := range []string{"1", "0", "-1", "x", "01", "99999999999999999999", ""} {
		_, err := s.RetryEffect(ctx, id)
		wantProblem(t, "retry "+id, err, store.CodeNotFound)
	}
	_, err := s.ResolveEffect(ctx, "1", "perhaps", "")
	wantProblem(t, "an outcome that is none", err, store.CodeInvalid)
}
