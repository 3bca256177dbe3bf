package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"paidonce/store"
	"paidonce/store/storetest"
)

// intent is an event about a payment intent of order ORD-1.
func intent(event, id, status string, created, received int64, more string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","api_version":"2025-08-27.basil","created":%d,"livemode":false,
		"type":"payment_intent.%s","data":{"object":{"id":%q,"object":"payment_intent","amount":1250,"amount_received":%d,
		"currency":"eur","status":%q,"latest_charge":null,"metadata":{"order_id":"ORD-1"}%s}}}`, event, created, status, id, received, status, more)
}

func paid(event, id string) string { return intent(event, id, "succeeded", 1750000000, 1250, "") }

func wantOrder(t *testing.T, s *store.Store, id, status string, received, suspense int64, attention ...string) store.OrderDetail {
	t.Helper()
	o := storetest.Order(t, s, id)
	if string(o.Status) != status || o.ReceivedMinor != received || o.SuspenseMinor != suspense || !slices.Equal(o.Attention, attention) {
		t.Errorf("order %s is %s, received %d, suspense %d, attention %q; want %s, %d, %d, %q",
			id, o.Status, o.ReceivedMinor, o.SuspenseMinor, o.Attention, status, received, suspense, attention)
	}
	return o
}

func wantVerdict(t *testing.T, s *store.Store, id, status, verdict string) store.Event {
	t.Helper()
	e := storetest.Event(t, s, id)
	if e.Status != status || e.Verdict != verdict {
		t.Errorf("event %s is %s, %s (%s); want %s, %s", id, e.Status, e.Verdict, e.Reason, status, verdict)
	}
	return e
}

func TestASignedPaymentMarksItsOrderPaidOnce(t *testing.T) {
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, paid("evt_1", "pi_1"), paid("evt_1", "pi_1"), paid("evt_2", "pi_1"),
		intent("evt_3", "pi_1", "processing", 1750000009, 0, ""))
	o := wantOrder(t, s, "ORD-1", "paid", 1250, 0)
	wantVerdict(t, s, "evt_1", "done", "applied")
	wantVerdict(t, s, "evt_2", "done", "duplicate")
	wantVerdict(t, s, "evt_3", "done", "stale")
	if len(o.Operations) != 1 || o.Operations[0].Name != "order.paid" {
		t.Errorf("operations %+v, want order.paid once", o.Operations)
	}
	if len(o.Entries) != 1 || o.Entries[0].Account != "sales" || o.Entries[0].AmountMinor != 1250 {
		t.Errorf("entries %+v, want one of 1250 in sales", o.Entries)
	}
	if o.PaidAt != 1750000000_000 {
		t.Errorf("paid_at %v, want the event's created", o.PaidAt)
	}
}

func TestAnEventBeforeItsOrderIsAppliedByTheRegistration(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*store.NewOrder)
	}{
		{"named by metadata", func(*store.NewOrder) {}},
		{"named by a registered id", func(n *store.NewOrder) { n.ID = "OTHER"; n.Refs = []string{"pi_1"} }},
		{"named by the registered payment intent", func(n *store.NewOrder) { n.ID = "OTHER"; pi := "pi_1"; n.PaymentIntent = &pi }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t)
			storetest.Deliver(t, s, paid("evt_1", "pi_1"))
			wantVerdict(t, s, "evt_1", "done", "unlinked")
			o := storetest.Register(t, s, "ORD-1", 1250, "eur", tt.change)
			if o.Status != "paid" || o.ReceivedMinor != 1250 {
				t.Errorf("the registration answers %s, %d; want paid at once", o.Status, o.ReceivedMinor)
			}
			if e := wantVerdict(t, s, "evt_1", "done", "applied"); e.Order != o.ID {
				t.Errorf("event belongs to %q, want %q", e.Order, o.ID)
			}
			d := storetest.Order(t, s, o.ID)
			if len(d.Entries) != 1 || d.Entries[0].AmountMinor != 1250 {
				t.Errorf("the order's entries %+v, want its side of the move out of suspense", d.Entries)
			}
		})
	}
}

func TestAWrongPaymentNeverPays(t *testing.T) {
	usd := strings.Replace(paid("evt_1", "pi_1"), `"eur"`, `"usd"`, 1)
	for _, tt := range []struct {
		name, body string
		verdict    string
		suspense   int64
		attention  []string
	}{
		{"too little", intent("evt_1", "pi_1", "succeeded", 1750000000, 50, ""), "amount_mismatch", 50, []string{"amount_mismatch", "underpaid"}},
		{"too much", intent("evt_1", "pi_1", "succeeded", 1750000000, 1251, ""), "amount_mismatch", 1251, []string{"amount_mismatch", "overpaid"}},
		{"another currency", usd, "currency_mismatch", 0, []string{"currency_mismatch"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t)
			storetest.Register(t, s, "ORD-1", 1250, "eur")
			storetest.Deliver(t, s, tt.body)
			o := wantOrder(t, s, "ORD-1", "awaiting_payment", 0, tt.suspense, tt.attention...)
			e := wantVerdict(t, s, "evt_1", "quarantined", tt.verdict)
			if e.Reason == "" {
				t.Error("a quarantine without a reason")
			}
			if len(o.Operations) != 0 {
				t.Errorf("operations %+v, want none", o.Operations)
			}
		})
	}
}

func TestUpperCaseCurrencyIsTheSameCurrency(t *testing.T) {
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "EUR")
	storetest.Deliver(t, s, strings.Replace(paid("evt_1", "pi_1"), `"eur"`, `"EUR"`, 1))
	wantOrder(t, s, "ORD-1", "paid", 1250, 0)
}

func TestAfterACorrectionTheQuarantineEnds(t *testing.T) {
	ctx := context.Background()
	low := intent("evt_1", "pi_1", "succeeded", 1750000000, 1000, "")
	for _, tt := range []struct {
		name    string
		correct func(s *store.Store) error
		requeue bool
	}{
		{"the payment is accepted by a person", func(s *store.Store) error {
			_, err := s.AcceptPayment(ctx, "", "ORD-1", "pi_1")
			return err
		}, false},
		{"the order is corrected", func(s *store.Store) error {
			total := int64(1000)
			_, err := s.EditOrder(ctx, "", "ORD-1", store.NewOrder{TotalMinor: &total})
			return err
		}, false},
		{"the order is corrected and the event requeued", func(s *store.Store) error {
			total := int64(1000)
			if _, err := s.EditOrder(ctx, "", "ORD-1", store.NewOrder{TotalMinor: &total}); err != nil {
				return err
			}
			_, err := s.RequeueEvent(ctx, "", "evt_1")
			return err
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t)
			storetest.Register(t, s, "ORD-1", 1250, "eur")
			storetest.Deliver(t, s, low)
			wantVerdict(t, s, "evt_1", "quarantined", "amount_mismatch")
			if err := tt.correct(s); err != nil {
				t.Fatal(err)
			}
			storetest.Work(t, s)
			o := wantOrder(t, s, "ORD-1", "paid", 1000, 0)
			wantVerdict(t, s, "evt_1", "done", "applied")
			if len(o.Operations) != 1 {
				t.Errorf("operations %+v, want order.paid once", o.Operations)
			}
			if _, err := s.AcceptPayment(ctx, "", "ORD-1", "pi_1"); problemCode(err) != store.CodeNothingToAccept {
				t.Errorf("accept again = %v", err)
			}
		})
	}
}

func problemCode(err error) store.Code {
	p, ok := store.AsProblem(err)
	if !ok {
		return ""
	}
	return p.Code
}

func TestThoseThatNameDifferentOrdersPayNone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first bool // the payment comes before the orders
	}{{"orders first", false}, {"payment first", true}} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t)
			if tt.first {
				storetest.Deliver(t, s, paid("evt_1", "pi_1"))
			}
			storetest.Register(t, s, "ORD-1", 1250, "eur")
			storetest.Register(t, s, "ORD-2", 1250, "eur", func(n *store.NewOrder) { n.Refs = []string{"pi_1"} })
			if !tt.first {
				storetest.Deliver(t, s, paid("evt_1", "pi_1"))
			}
			wantOrder(t, s, "ORD-1", "awaiting_payment", 0, 0, "order_conflict")
			wantOrder(t, s, "ORD-2", "awaiting_payment", 0, 0, "order_conflict")
			wantVerdict(t, s, "evt_1", "quarantined", "order_conflict")

			if _, err := s.LinkOrder(context.Background(), "", "ORD-2", "pi_1"); err != nil {
				t.Fatal(err)
			}
			wantOrder(t, s, "ORD-1", "awaiting_payment", 0, 0)
			wantOrder(t, s, "ORD-2", "paid", 1250, 0)
			wantVerdict(t, s, "evt_1", "done", "applied")

			if _, err := s.LinkOrder(context.Background(), "", "ORD-1", "pi_1"); err != nil {
				t.Fatal(err)
			}
			wantOrder(t, s, "ORD-1", "paid", 1250, 0)
			wantOrder(t, s, "ORD-2", "awaiting_payment", 0, 0)
		})
	}
}

func TestAnotherPaymentIntentThanTheRegisteredOneDoesNotPay(t *testing.T) {
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur", func(n *store.NewOrder) { pi := "pi_A"; n.PaymentIntent = &pi })
	storetest.Deliver(t, s, paid("evt_1", "pi_FOREIGN"))
	wantOrder(t, s, "ORD-1", "awaiting_payment", 0, 1250, "order_conflict")
	wantVerdict(t, s, "evt_1", "quarantined", "order_conflict")
	storetest.Deliver(t, s, paid("evt_2", "pi_A"))
	o := storetest.Order(t, s, "ORD-1")
	if o.Status != "paid" || o.ReceivedMinor != 1250 {
		t.Errorf("order is %s, received %d, want paid by pi_A", o.Status, o.ReceivedMinor)
	}
}

func TestLinkAndAcceptRefuseWhatIsNotThere(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	if _, err := s.LinkOrder(ctx, "", "ORD-1", "pi_none"); problemCode(err) != store.CodeNotFound {
		t.Errorf("link of an unknown object = %v", err)
	}
	if _, err := s.LinkOrder(ctx, "", "NONE", "pi_none"); problemCode(err) != store.CodeNotFound {
		t.Errorf("link to an unknown order = %v", err)
	}
	if _, err := s.AcceptPayment(ctx, "", "ORD-1", "pi_none"); problemCode(err) != store.CodeNothingToAccept {
		t.Errorf("accept of an unknown payment = %v", err)
	}
	storetest.Deliver(t, s, intent("evt_1", "pi_1", "processing", 1750000000, 0, ""))
	if _, err := s.AcceptPayment(ctx, "", "ORD-1", "pi_1"); problemCode(err) != store.CodeNothingToAccept {
		t.Errorf("accept of a payment without money = %v", err)
	}
}

func TestAPaidOrderCannotBeEdited(t *testing.T) {
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, paid("evt_1", "pi_1"))
	total := int64(1)
	if _, err := s.EditOrder(context.Background(), "", "ORD-1", store.NewOrder{TotalMinor: &total}); problemCode(err) != store.CodeOrderPaid {
		t.Errorf("edit = %v, want order_paid", err)
	}
}

func TestRegisteringAgain(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur", func(n *store.NewOrder) { n.Refs = []string{"pi_1"} })
	total, cur, up := int64(1250), "eur", "EUR"
	if _, created, err := s.RegisterOrder(ctx, store.NewOrder{ID: "ORD-1", TotalMinor: &total, Currency: &up, Refs: []string{"pi_1"}}); err != nil || created {
		t.Errorf("the same again = created %v, %v, want the order that is there", created, err)
	}
	if _, _, err := s.RegisterOrder(ctx, store.NewOrder{ID: "ORD-1", TotalMinor: &total, Currency: &cur}); problemCode(err) != store.CodeOrderConflict {
		t.Errorf("other content = %v, want order_conflict", err)
	}
	if _, _, err := s.RegisterOrder(ctx, store.NewOrder{ID: "ORD-2", TotalMinor: &total, Currency: &cur, Refs: []string{"pi_1"}}); problemCode(err) != store.CodeOrderConflict {
		t.Errorf("another order's id = %v, want order_conflict", err)
	}
	if _, err := s.FindOrder(ctx, "", "ORD-2"); problemCode(err) != store.CodeNotFound {
		t.Errorf("a refused registration left something: %v", err)
	}
	if _, created, err := s.RegisterOrder(ctx, store.NewOrder{ID: "ORD-1", Tenant: "other", TotalMinor: &total, Currency: &cur}); err != nil || !created {
		t.Errorf("the same id in another tenant = created %v, %v", created, err)
	}
}

func TestRegistrationNamesEveryWrongField(t *testing.T) {
	s, _ := storetest.Open(t)
	total, cur, policy := int64(-1), "zzz", "some"
	_, _, err := s.RegisterOrder(context.Background(), store.NewOrder{ID: " a", Tenant: "a/b", TotalMinor: &total, Currency: &cur, AmountPolicy: &policy,
		Refs: []string{""}, Items: []store.Item{{SKU: "", Quantity: 0, UnitMinor: -1}}, Customer: &store.Customer{Email: "marker-secret"},
		Metadata: map[string]string{"": "x"}})
	p, ok := store.AsProblem(err)
	if !ok || p.Code != store.CodeInvalid {
		t.Fatalf("RegisterOrder = %v, want invalid", err)
	}
	var fields []string
	for _, f := range p.Fields {
		fields = append(fields, f.Field)
	}
	for _, want := range []string{"id", "tenant", "total_minor", "amount_policy", "refs[0]", "items[0].sku", "items[0].quantity", "items[0].unit_minor", "customer.email", "metadata"} {
		if !slices.Contains(fields, want) {
			t.Errorf("problems with %q, want %q among them", fields, want)
		}
	}
	if strings.Contains(err.Error(), "marker-secret") {
		t.Error("the error repeats a customer's data")
	}
}

func TestAMalformedBodyIsKeptForAPerson(t *testing.T) {
	ctx := context.Background()
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	added := storetest.Deliver(t, s,
		`not json`,
		strings.Replace(paid("evt_float", "pi_1"), `"amount_received":1250`, `"amount_received":1250.0`, 1),
		strings.Replace(paid("evt_text", "pi_1"), `"amount_received":1250`, `"amount_received":"1250"`, 1),
		strings.Replace(paid("evt_big", "pi_1"), `"amount_received":1250`, `"amount_received":92233720368547758080`, 1),
		strings.Replace(paid("evt_mode", "pi_1"), `"livemode":false`, `"livemode":"no"`, 1),
	)
	for _, a := range added {
		wantVerdict(t, s, a.ID, "quarantined", "malformed")
	}
	wantOrder(t, s, "ORD-1", "awaiting_payment", 0, 0)
	e, err := s.FindEvent(ctx, "", added[0].ID)
	if err != nil || e.PayloadEncoding != "base64" {
		t.Errorf("a body that is no JSON is shown as %q, %v", e.PayloadEncoding, err)
	}
	if e, err := s.DismissEvent(ctx, "", added[0].ID, "a test"); err != nil || e.Status != "done" || e.Verdict != "ignored" {
		t.Errorf("dismiss = %+v, %v", e, err)
	}
	if _, err := s.DismissEvent(ctx, "", added[0].ID, ""); problemCode(err) != store.CodeNotDismissible {
		t.Errorf("dismiss again = %v", err)
	}
}

func TestManyWritersOnOneOrderLoseNothing(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 10
	}
	s, _ := storetest.Open(t)
	var wg sync.WaitGroup
	for i := range n {
		id := fmt.Sprintf("ORD-%d", i)
		storetest.Register(t, s, id, 1250, "eur")
		for j, body := range []string{paid(fmt.Sprintf("evt_a%d", i), fmt.Sprintf("pi_%d", i)),
			intent(fmt.Sprintf("evt_b%d", i), fmt.Sprintf("pi_%d", i), "processing", 1750000000, 0, "")} {
			wg.Go(func() {
				if _, err := s.AddEvent(context.Background(), storetest.NewEvent(strings.ReplaceAll(body, "ORD-1", id))); err != nil {
					t.Errorf("event %d of %s: %v", j, id, err)
				}
			})
		}
		wg.Go(func() {
			if _, err := s.EditOrder(context.Background(), "", id, store.NewOrder{Metadata: map[string]string{"note": "x"}}); err != nil && problemCode(err) != store.CodeOrderPaid {
				t.Errorf("edit %s: %v", id, err)
			}
		})
	}
	wg.Wait()
	storetest.Work(t, s)
	for i := range n {
		o := wantOrder(t, s, fmt.Sprintf("ORD-%d", i), "paid", 1250, 0)
		if o.PaidAt == 0 {
			t.Errorf("%s is paid without a date", o.ID)
		}
	}
}

func TestAnEventIDInSeveralScopesIsAmbiguous(t *testing.T) {
	s, _ := storetest.Open(t)
	e := storetest.NewEvent(paid("evt_1", "pi_1"))
	for _, scope := range []string{"stripe:acct_1:test", "stripe:acct_2:test"} {
		e.Scope = scope
		if added, err := s.AddEvent(context.Background(), e); err != nil || added.Duplicate {
			t.Fatal(added, err)
		}
	}
	if _, err := s.FindEvent(context.Background(), "", "evt_1"); problemCode(err) != store.CodeAmbiguous {
		t.Errorf("without a scope: %v, want ambiguous", err)
	}
	if _, err := s.FindEvent(context.Background(), "stripe:acct_2:test", "evt_1"); err != nil {
		t.Errorf("with a scope: %v", err)
	}
}

func TestAPaymentOfALinkLeavesTheOrderThatItNamed(t *testing.T) {
	session := `{"id":"evt_cs","object":"event","created":1750000001,"livemode":false,"type":"checkout.session.completed",
		"data":{"object":{"id":"cs_1","object":"checkout.session","mode":"payment","status":"complete","payment_status":"paid",
		"amount_total":1250,"amount_subtotal":1250,"currency":"eur","payment_intent":"pi_1","payment_link":"plink_1"}}}`
	for _, tt := range []struct {
		name     string
		adopt    []string
		sessions []string // delivered in this sequence
	}{
		{"adopted, the payment first", []string{"plink_1"}, []string{paid("evt_1", "pi_1"), session}},
		{"adopted, the session first", []string{"plink_1"}, []string{session, paid("evt_1", "pi_1")}},
		{"not adopted, the payment first", nil, []string{paid("evt_1", "pi_1"), session}},
		{"not adopted, the session first", nil, []string{session, paid("evt_1", "pi_1")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t, func(o *store.Options) { o.Adopt = tt.adopt })
			storetest.Register(t, s, "ORD-1", 1250, "eur")
			for _, body := range tt.sessions {
				storetest.Deliver(t, s, body)
				storetest.Check(t, s)
			}
			wantOrder(t, s, "ORD-1", "awaiting_payment", 0, 0)
			if tt.adopt != nil {
				wantOrder(t, s, "cs_1", "paid", 1250, 0)
			} else {
				wantVerdict(t, s, "evt_1", "done", "unlinked")
			}
		})
	}
}

// With adopt = "*" a plain session that names nothing becomes an order, until
// something speaks for its payment: whichever of them came first.
func TestAnAdoptedOrderYieldsToOneThatIsNamed(t *testing.T) {
	session := `{"id":"evt_cs","object":"event","created":1750000001,"livemode":false,"type":"checkout.session.completed",
		"data":{"object":{"id":"cs_1","object":"checkout.session","mode":"payment","status":"complete","payment_status":"paid",
		"amount_total":1250,"amount_subtotal":1250,"currency":"eur","payment_intent":"pi_1"}}}`
	named := paid("evt_1", "pi_1")
	register := "register"
	for _, tt := range []struct {
		name  string
		steps []string
		refs  []string
	}{
		{"order, intent, session", []string{register, named, session}, nil},
		{"order, session, intent", []string{register, session, named}, nil},
		{"session, intent, order", []string{session, named, register}, nil},
		{"session, order, intent", []string{session, register, named}, nil},
		{"session, then an order with its id in refs", []string{session, register}, []string{"cs_1"}},
		{"an order with its id in refs, then the session", []string{register, session}, []string{"cs_1"}},
		{"session, then an order with its intent in refs", []string{session, register}, []string{"pi_1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t, func(o *store.Options) { o.Adopt = []string{"*"} })
			for _, step := range tt.steps {
				if step == register {
					storetest.Register(t, s, "ORD-1", 1250, "eur", func(n *store.NewOrder) { n.Refs = tt.refs })
				} else {
					storetest.Deliver(t, s, step)
				}
				storetest.Check(t, s)
			}
			wantOrder(t, s, "ORD-1", "paid", 1250, 0)
			if o, err := s.FindOrder(context.Background(), "", "cs_1"); err == nil && (o.ReceivedMinor != 0 || o.Status == "paid" || len(o.Attention) != 0) {
				t.Errorf("the adopted order is %s, received %d, attention %q; want it without money", o.Status, o.ReceivedMinor, o.Attention)
			}
		})
	}
}

func TestMoneyInAnotherCurrencyCannotBeAccepted(t *testing.T) {
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "usd")
	storetest.Deliver(t, s, paid("evt_1", "pi_1"))
	if _, err := s.AcceptPayment(context.Background(), "", "ORD-1", "pi_1"); problemCode(err) != store.CodeNothingToAccept {
		t.Errorf("accept = %v, want it refused with the reason", err)
	}
}

func TestAnEventThatDoesNotSayWhenIsKeptForAPerson(t *testing.T) {
	s, _ := storetest.Open(t)
	storetest.Register(t, s, "ORD-1", 1250, "eur")
	storetest.Deliver(t, s, strings.Replace(paid("evt_1", "pi_1"), `"created":1750000000,`, "", 1))
	wantVerdict(t, s, "evt_1", "quarantined", "malformed")
	wantOrder(t, s, "ORD-1", "awaiting_payment", 0, 0)
}

// A conflict that ends by itself leaves no attention behind, whichever event
// came first.
func TestAConflictThatEndsLeavesNoAttention(t *testing.T) {
	first := strings.Replace(intent("evt_1", "pi_1", "succeeded", 1750000000, 1250, ""), `"latest_charge":null`, `"latest_charge":"ch_1"`, 1)
	later := intent("evt_2", "pi_1", "succeeded", 1750000005, 1250, "")
	for _, tt := range []struct {
		name   string
		bodies []string
	}{{"the conflict comes first", []string{first, later}}, {"the conflict never shows", []string{later, first}}} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := storetest.Open(t)
			storetest.Register(t, s, "ORD-A", 1250, "eur", func(n *store.NewOrder) { n.Refs = []string{"ch_1"} })
			storetest.Register(t, s, "ORD-B", 1250, "eur", func(n *store.NewOrder) { n.Refs = []string{"pi_1"} })
			for _, body := range tt.bodies {
				storetest.Deliver(t, s, body)
				storetest.Check(t, s)
			}
			wantOrder(t, s, "ORD-A", "awaiting_payment", 0, 0)
			wantOrder(t, s, "ORD-B", "paid", 1250, 0)
		})
	}
}
