package stripefake_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"paidonce/worker/stripefake"
)

// must gives the value of a call that the model must allow.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func allow(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// paidCharge is a card payment of 1000 in an intent of its own.
func paidCharge(t *testing.T, a *stripefake.Account) (intent, charge string) {
	t.Helper()
	pi := must[stripefake.Intent](t)(a.CreateIntent(stripefake.IntentParams{Amount: 1000, Currency: "eur"}))
	allow(t, a.Succeed(pi.ID))
	pi, _ = a.FindIntent(pi.ID)
	return pi.ID, pi.LatestCharge()
}

func held(t *testing.T, a *stripefake.Account) (intent, charge string) {
	t.Helper()
	pi := must[stripefake.Intent](t)(a.CreateIntent(stripefake.IntentParams{Amount: 1000, Currency: "eur", Manual: true}))
	allow(t, a.Authorize(pi.ID))
	pi, _ = a.FindIntent(pi.ID)
	return pi.ID, pi.LatestCharge()
}

func session(t *testing.T, a *stripefake.Account, p stripefake.SessionParams) string {
	t.Helper()
	if p.Currency == "" {
		p.Pricing, p.Currency = stripefake.Pricing{Subtotal: 1000}, "eur"
	}
	return must[stripefake.Session](t)(a.OpenSession(p)).ID
}

// visit is a buyer who goes through a session.
func visit(t *testing.T, a *stripefake.Account, id string, pay func(intent string) error) string {
	t.Helper()
	pi := must[stripefake.Intent](t)(a.ConfirmSession(id))
	allow(t, pay(pi.ID), a.CompleteSession(id))
	return pi.ID
}

func types(a *stripefake.Account) []string {
	var list []string
	for _, e := range a.Events() {
		list = append(list, e.Type)
	}
	return list
}

func TestStripeSends(t *testing.T) {
	for _, tt := range []struct {
		name           string
		live           func(t *testing.T, a *stripefake.Account)
		classic, basil string
	}{
		{"a card in a session", func(t *testing.T, a *stripefake.Account) {
			visit(t, a, session(t, a, stripefake.SessionParams{}), a.Succeed)
		}, "", "payment_intent.created charge.succeeded payment_intent.succeeded checkout.session.completed"},
		{"a debit that arrives", func(t *testing.T, a *stripefake.Account) {
			pi := visit(t, a, session(t, a, stripefake.SessionParams{Method: stripefake.Debit}), a.Process)
			allow(t, a.Succeed(pi))
		}, "", "payment_intent.created charge.pending payment_intent.processing checkout.session.completed " +
			"charge.succeeded payment_intent.succeeded checkout.session.async_payment_succeeded"},
		{"a debit that bounces", func(t *testing.T, a *stripefake.Account) {
			pi := visit(t, a, session(t, a, stripefake.SessionParams{Method: stripefake.Debit}), a.Process)
			allow(t, a.Fail(pi, "insufficient_funds"))
		}, "", "payment_intent.created charge.pending payment_intent.processing checkout.session.completed " +
			"charge.failed payment_intent.payment_failed checkout.session.async_payment_failed"},
		{"a declined card, 3D Secure, and then the money", func(t *testing.T, a *stripefake.Account) {
			pi := must[stripefake.Intent](t)(a.CreateIntent(stripefake.IntentParams{Amount: 5, Currency: "eur"}))
			allow(t, a.Fail(pi.ID, "generic_decline"), a.RequireAction(pi.ID), a.Succeed(pi.ID))
		}, "", "payment_intent.created charge.failed payment_intent.payment_failed payment_intent.requires_action charge.succeeded payment_intent.succeeded"},
		{"a session that expires", func(t *testing.T, a *stripefake.Account) {
			allow(t, a.ExpireSession(session(t, a, stripefake.SessionParams{})))
		}, "payment_intent.created payment_intent.canceled checkout.session.expired", "checkout.session.expired"},
		{"a free session", func(t *testing.T, a *stripefake.Account) {
			allow(t, a.CompleteSession(session(t, a, stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 5, Discount: 5}, Currency: "eur"})))
		}, "", "checkout.session.completed"},
		{"a hold, captured in part", func(t *testing.T, a *stripefake.Account) {
			pi, _ := held(t, a)
			allow(t, a.Capture(pi, 400))
		}, "payment_intent.created charge.succeeded payment_intent.amount_capturable_updated charge.captured payment_intent.succeeded",
			"payment_intent.created charge.succeeded payment_intent.amount_capturable_updated charge.captured payment_intent.succeeded refund.created"},
		{"a refund that fails", func(t *testing.T, a *stripefake.Account) {
			_, ch := paidCharge(t, a)
			allow(t, a.RefundFails(must[stripefake.Refund](t)(a.Refund(ch, 1000, false)).ID))
		}, "payment_intent.created charge.succeeded payment_intent.succeeded charge.refunded charge.refund.updated",
			"payment_intent.created charge.succeeded payment_intent.succeeded refund.created charge.refunded refund.failed charge.refund.updated"},
		{"an inquiry that escalates and is won", func(t *testing.T, a *stripefake.Account) {
			_, ch := paidCharge(t, a)
			d := must[stripefake.Dispute](t)(a.Inquire(ch, 1000))
			allow(t, a.Escalate(d.ID), a.SubmitEvidence(d.ID), a.Win(d.ID))
		}, "", "payment_intent.created charge.succeeded payment_intent.succeeded charge.dispute.created charge.dispute.updated " +
			"charge.dispute.funds_withdrawn charge.dispute.updated charge.dispute.closed charge.dispute.funds_reinstated"},
		{"a subscription", func(t *testing.T, a *stripefake.Account) {
			must[stripefake.Invoice](t)(a.Subscribe(900, "eur"))
		}, "payment_intent.created charge.succeeded payment_intent.succeeded invoice.paid invoice.payment_succeeded checkout.session.completed",
			"payment_intent.created charge.succeeded payment_intent.succeeded invoice.paid invoice.payment_succeeded invoice_payment.paid checkout.session.completed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, version := range []string{stripefake.Classic, stripefake.Basil} {
				want := tt.basil
				if version == stripefake.Classic && tt.classic != "" {
					want = tt.classic
				}
				a := stripefake.New(stripefake.Config{APIVersion: version, Release: stripefake.ReleaseRefund})
				tt.live(t, a)
				if got := strings.Join(types(a), " "); got != want {
					t.Errorf("%s:\ngot  %s\nwant %s", version, got, want)
				}
				if err := a.Check(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestLedgerTellsWhatMoved(t *testing.T) {
	for _, tt := range []struct {
		name string
		live func(t *testing.T, a *stripefake.Account) (payment string)
		want stripefake.Money
	}{
		{"a hold is no money", func(t *testing.T, a *stripefake.Account) string {
			pi, _ := held(t, a)
			return pi
		}, stripefake.Money{}},
		{"a captured part is all there is", func(t *testing.T, a *stripefake.Account) string {
			pi, _ := held(t, a)
			allow(t, a.Capture(pi, 400))
			return pi
		}, stripefake.Money{Received: 400}},
		{"refunds count while they stand", func(t *testing.T, a *stripefake.Account) string {
			pi, ch := paidCharge(t, a)
			must[stripefake.Refund](t)(a.Refund(ch, 300, false))
			must[stripefake.Refund](t)(a.Refund(ch, 200, true))
			allow(t, a.RefundFails(must[stripefake.Refund](t)(a.Refund(ch, 100, false)).ID))
			return pi
		}, stripefake.Money{Received: 1000, Refunded: 300, Pending: 200}},
		{"a refund that its bank returned is under way again", func(t *testing.T, a *stripefake.Account) string {
			pi, ch := paidCharge(t, a)
			allow(t, a.RefundReturnedByBank(must[stripefake.Refund](t)(a.Refund(ch, 300, false)).ID))
			return pi
		}, stripefake.Money{Received: 1000, Pending: 300}},
		{"an inquiry takes nothing", func(t *testing.T, a *stripefake.Account) string {
			pi, ch := paidCharge(t, a)
			must[stripefake.Dispute](t)(a.Inquire(ch, 1000))
			return pi
		}, stripefake.Money{Received: 1000}},
		{"a chargeback takes its amount, in whatever currency it is booked", func(t *testing.T, a *stripefake.Account) string {
			pi, ch := paidCharge(t, a)
			must[stripefake.Dispute](t)(a.ChargeBack(ch, 1030))
			return pi
		}, stripefake.Money{Received: 1000, Taken: 1030, OpenDispute: true}},
		{"a lost dispute that is paid all the same", func(t *testing.T, a *stripefake.Account) string {
			pi, ch := paidCharge(t, a)
			d := must[stripefake.Dispute](t)(a.ChargeBack(ch, 600))
			allow(t, a.Lose(d.ID), a.ReinstateFunds(d.ID))
			return pi
		}, stripefake.Money{Received: 1000, Lost: true}},
		{"one that was reversed early and is lost", func(t *testing.T, a *stripefake.Account) string {
			pi, ch := paidCharge(t, a)
			d := must[stripefake.Dispute](t)(a.ChargeBack(ch, 600))
			allow(t, a.ReinstateFunds(d.ID), a.Lose(d.ID))
			return pi
		}, stripefake.Money{Received: 1000, Taken: 600, Lost: true}},
		{"one that is turned", func(t *testing.T, a *stripefake.Account) string {
			pi, ch := paidCharge(t, a)
			d := must[stripefake.Dispute](t)(a.ChargeBack(ch, 600))
			allow(t, a.Lose(d.ID), a.Turn(d.ID))
			return pi
		}, stripefake.Money{Received: 1000}},
		{"a charge of its own", func(t *testing.T, a *stripefake.Account) string {
			return must[stripefake.Charge](t)(a.ChargeDirectly(700, "eur", nil)).ID
		}, stripefake.Money{Received: 700}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := stripefake.New(stripefake.Config{Settlement: "usd"})
			id := tt.live(t, a)
			got := a.Ledger().Of(id)
			tt.want.Payment = id
			if tt.want.Received > 0 {
				tt.want.Currency, tt.want.ReceivedAt = "eur", a.Now()
			}
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if err := a.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMetadataIsCopiedWhereStripeCopiesIt(t *testing.T) {
	a := stripefake.New(stripefake.Config{})
	id := session(t, a, stripefake.SessionParams{
		Pricing: stripefake.Pricing{Subtotal: 100, Tax: 19, Shipping: 5, Discount: 10}, Currency: "eur", Reference: "REF",
		Metadata: map[string]string{"order_id": "S"}, IntentMetadata: map[string]string{"order_id": "P"},
	})
	pi := visit(t, a, id, a.Succeed)
	intent, _ := a.FindIntent(pi)
	r := must[stripefake.Refund](t)(a.Refund(intent.LatestCharge(), 10, true))
	d := must[stripefake.Dispute](t)(a.Inquire(intent.LatestCharge(), 10))
	want := map[string]string{id: "S", pi: "P", intent.LatestCharge(): "P", r.ID: "", d.ID: ""}
	for _, e := range a.Events() {
		var body struct {
			Data struct {
				Object struct {
					Metadata map[string]string
					Total    *int64 `json:"amount_total"`
				}
			}
		}
		allow(t, json.Unmarshal(e.Body(1), &body))
		if got := body.Data.Object.Metadata["order_id"]; got != want[e.Object] {
			t.Errorf("%s: names %q, want %q", e, got, want[e.Object])
		}
		if total := body.Data.Object.Total; total != nil && *total != 114 {
			t.Errorf("%s: a total of %d, want subtotal, shipping and tax without the discount", e, *total)
		}
	}
}

func TestASecondEventForOneChange(t *testing.T) {
	a := stripefake.New(stripefake.Config{Connected: "acct_7", Livemode: true})
	paidCharge(t, a)
	first := a.Events()[2]
	a.Advance(60)
	allow(t, a.Repeat(first.ID))
	again := a.Events()[3]
	if again.ID == first.ID {
		t.Error("the second has the id of the first")
	}
	if got, want := strings.Replace(string(again.Body(2)), again.ID, first.ID, 1), string(first.Body(2)); got != want {
		t.Errorf("the second says something else:\n%s\n%s", got, want)
	}
	for _, part := range []string{`"account":"acct_7"`, `"livemode":true`, `"pending_webhooks":2,`, `"type":"payment_intent.succeeded"`} {
		if !strings.Contains(string(first.Body(2)), part) {
			t.Errorf("the body lacks %s", part)
		}
	}
}

func TestTheClocksOfEventsMayDiffer(t *testing.T) {
	a := stripefake.New(stripefake.Config{})
	a.Lag("payment_intent.processing", 1)
	pi := must[stripefake.Intent](t)(a.CreateIntent(stripefake.IntentParams{Amount: 5, Currency: "eur", Method: stripefake.Debit}))
	allow(t, a.Process(pi.ID), a.Succeed(pi.ID))
	created := map[string]int64{}
	for _, e := range a.Events() {
		created[e.Type] = e.Created - a.Now()
	}
	if created["payment_intent.processing"] != 1 || created["payment_intent.succeeded"] != 0 {
		t.Errorf("created %v, want processing a second after what came later", created)
	}
	if err := a.Check(); err != nil {
		t.Error(err)
	}
}
