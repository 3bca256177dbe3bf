package stripefake_test

import (
	"errors"
	"testing"

	"paidonce/worker/stripefake"
)

func TestStripeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		code string
		act  func(t *testing.T, a *stripefake.Account) error
	}{
		{"what is not there", "resource_missing", func(t *testing.T, a *stripefake.Account) error { return a.Succeed("pi_no") }},
		{"a payment of nothing", "parameter_invalid_integer", func(t *testing.T, a *stripefake.Account) error {
			_, err := a.CreateIntent(stripefake.IntentParams{Currency: "eur"})
			return err
		}},
		{"a session below nothing", "parameter_invalid_integer", func(t *testing.T, a *stripefake.Account) error {
			_, err := a.OpenSession(stripefake.SessionParams{Pricing: stripefake.Pricing{Subtotal: 5, Discount: 6}, Currency: "eur"})
			return err
		}},
		{"a bank debit that is held", "parameter_unknown", func(t *testing.T, a *stripefake.Account) error {
			_, err := a.CreateIntent(stripefake.IntentParams{Amount: 1, Currency: "eur", Manual: true, Method: stripefake.Debit})
			return err
		}},
		{"to pay a second time", "payment_intent_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			pi, _ := paidCharge(t, a)
			return a.Succeed(pi)
		}},
		{"a failure after the money came", "payment_intent_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			pi, _ := paidCharge(t, a)
			return a.Fail(pi, "generic_decline")
		}},
		{"to cancel what has been paid", "payment_intent_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			pi, _ := paidCharge(t, a)
			return a.Cancel(pi)
		}},
		{"to charge what is to be held", "payment_intent_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			pi := must[stripefake.Intent](t)(a.CreateIntent(stripefake.IntentParams{Amount: 1, Currency: "eur", Manual: true}))
			return a.Succeed(pi.ID)
		}},
		{"to capture more than is held", "amount_too_large", func(t *testing.T, a *stripefake.Account) error {
			pi, _ := held(t, a)
			return a.Capture(pi, 1001)
		}},
		{"to capture twice", "payment_intent_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			pi, _ := held(t, a)
			allow(t, a.Capture(pi, 400))
			return a.Capture(pi, 400)
		}},
		{"to capture a hold that ran out", "payment_intent_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			pi, _ := held(t, a)
			allow(t, a.ExpireHold(pi))
			return a.Capture(pi, 400)
		}},
		{"to refund a hold", "charge_not_refundable", func(t *testing.T, a *stripefake.Account) error {
			_, ch := held(t, a)
			_, err := a.Refund(ch, 1, false)
			return err
		}},
		{"to refund more than was captured", "amount_too_large", func(t *testing.T, a *stripefake.Account) error {
			pi, ch := held(t, a)
			allow(t, a.Capture(pi, 400))
			_, err := a.Refund(ch, 401, false)
			return err
		}},
		{"a refund while those under way are all", "charge_already_refunded", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			must[stripefake.Refund](t)(a.Refund(ch, 1000, true))
			_, err := a.Refund(ch, 1, false)
			return err
		}},
		{"a refund of a card that was charged back", "charge_disputed", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			must[stripefake.Dispute](t)(a.ChargeBack(ch, 500))
			_, err := a.Refund(ch, 500, false)
			return err
		}},
		{"a failed refund to succeed", "refund_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			r := must[stripefake.Refund](t)(a.Refund(ch, 10, false))
			allow(t, a.RefundFails(r.ID))
			return a.RefundSucceeds(r.ID)
		}},
		{"to cancel a refund that arrived", "refund_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			r := must[stripefake.Refund](t)(a.Refund(ch, 10, false))
			return a.RefundCanceled(r.ID)
		}},
		{"a dispute over a hold", "charge_not_captured", func(t *testing.T, a *stripefake.Account) error {
			_, ch := held(t, a)
			_, err := a.ChargeBack(ch, 10)
			return err
		}},
		{"a second dispute beside an open one", "charge_disputed", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			must[stripefake.Dispute](t)(a.Inquire(ch, 10))
			_, err := a.ChargeBack(ch, 10)
			return err
		}},
		{"an inquiry to be won", "dispute_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			return a.Win(must[stripefake.Dispute](t)(a.Inquire(ch, 10)).ID)
		}},
		{"a won dispute to be lost", "dispute_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			d := must[stripefake.Dispute](t)(a.ChargeBack(ch, 10))
			allow(t, a.Win(d.ID))
			return a.Lose(d.ID)
		}},
		{"an open dispute to be turned", "dispute_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			return a.Turn(must[stripefake.Dispute](t)(a.ChargeBack(ch, 10)).ID)
		}},
		{"money that is back to be reinstated", "dispute_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			_, ch := paidCharge(t, a)
			d := must[stripefake.Dispute](t)(a.ChargeBack(ch, 10))
			allow(t, a.ReinstateFunds(d.ID))
			return a.ReinstateFunds(d.ID)
		}},
		{"to expire a session that is complete", "checkout_session_not_open", func(t *testing.T, a *stripefake.Account) error {
			id := session(t, a, stripefake.SessionParams{})
			visit(t, a, id, a.Succeed)
			return a.ExpireSession(id)
		}},
		{"to expire a session while its money is on its way", "checkout_session_not_open", func(t *testing.T, a *stripefake.Account) error {
			id := session(t, a, stripefake.SessionParams{Method: stripefake.Debit})
			pi := must[stripefake.Intent](t)(a.ConfirmSession(id))
			allow(t, a.Process(pi.ID))
			return a.ExpireSession(id)
		}},
		{"to complete a session that nobody paid in", "checkout_session_unpaid", func(t *testing.T, a *stripefake.Account) error {
			return a.CompleteSession(session(t, a, stripefake.SessionParams{}))
		}},
		{"to pay in a session that expired", "checkout_session_not_open", func(t *testing.T, a *stripefake.Account) error {
			id := session(t, a, stripefake.SessionParams{})
			allow(t, a.ExpireSession(id))
			_, err := a.ConfirmSession(id)
			return err
		}},
		{"a second attempt after the bank refused a completed session", "payment_intent_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			pi := visit(t, a, session(t, a, stripefake.SessionParams{Method: stripefake.Debit}), a.Process)
			allow(t, a.Fail(pi, "insufficient_funds"))
			return a.Process(pi)
		}},
		{"to cancel the intent of an open session", "payment_intent_unexpected_state", func(t *testing.T, a *stripefake.Account) error {
			pi := must[stripefake.Intent](t)(a.ConfirmSession(session(t, a, stripefake.SessionParams{})))
			return a.Cancel(pi.ID)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, version := range []string{stripefake.Classic, stripefake.Basil} {
				a := stripefake.New(stripefake.Config{APIVersion: version})
				err := tt.act(t, a)
				var refusal *stripefake.Refusal
				if !errors.As(err, &refusal) || refusal.Code != tt.code {
					t.Errorf("%s: got %v, want the code %s", version, err, tt.code)
				}
				if err := a.Check(); err != nil {
					t.Errorf("%s: a refusal left something behind: %v", version, err)
				}
			}
		})
	}
}
