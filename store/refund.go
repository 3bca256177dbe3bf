package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"paidonce/store/payment"
)

// RefundRequest asks for money to go back. The request id is the caller's: the
// same one again is the same refund (design.md §7).
type RefundRequest struct {
	AmountMinor *int64 `json:"amount_minor,omitempty"` // nil is all that is refundable
	Payment     string `json:"payment,omitempty"`      // any Stripe id of it; "" is the only one that holds money
	Reason      string `json:"reason,omitempty"`
	RequestID   string `json:"request_id"`
}

// refundReasons are what Stripe takes.
var refundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}

func (r RefundRequest) check() error {
	var bad problems
	checkID(&bad, "request_id", r.RequestID)
	if len(r.RequestID) > 200 {
		bad.add("request_id", "must be at most 200 bytes")
	}
	if r.Payment != "" {
		checkID(&bad, "payment", r.Payment)
	}
	if r.AmountMinor != nil && *r.AmountMinor < 1 {
		bad.add("amount_minor", "must be at least 1, in minor units such as 1250 for 12.50 EUR")
	}
	if r.Reason != "" && !slices.Contains(refundReasons, r.Reason) {
		bad.add("reason", "must be duplicate, fraudulent or requested_by_customer")
	}
	return bad.invalid("refund")
}

// RequestRefund queues a refund of a payment of the order. The same request id
// again returns the effect that it made; with other parameters it is
// CodeRequestConflict. More than is refundable (received less what was
// refunded, is pending, was charged back or is queued) is CodeNotRefundable,
// and an amount that Stripe cannot pay in that currency is CodeInvalid. Money
// that stands in suspense can go back too: name its payment.
func (s *Store) RequestRefund(ctx context.Context, tenant, id string, r RefundRequest) (Effect, error) {
	if err := r.check(); err != nil {
		return Effect{}, err
	}
	var effect Effect
	err := s.onOrder(ctx, "refund", tenant, id, func(t *Tx, o Order, row int64) error {
		operation := OperationRefund + ":" + r.RequestID
		var known int64
		var asked string
		ok, err := one(t, `SELECT id, request FROM effects WHERE subject = ? AND operation = ? AND target = ?`,
			[]any{orderSubject(o.Tenant, o.ID), operation, StripeTarget}, &known, &asked)
		if err != nil {
			return err
		}
		if ok {
			if asked != jsonText(r) {
				return problem(CodeRequestConflict, "request id %s was used for another refund of order %s: use a new one for a new refund", r.RequestID, id)
			}
			effect, err = viewEffect(t, known)
			return err
		}
		if err := s.needStripeKey(t, "a refund"); err != nil {
			return err
		}
		p, call, err := refundable(t, row, id, r)
		if err != nil {
			return err
		}
		if call.Account, err = callAccount(t, p.Key.Scope); err != nil {
			return err
		}
		effectRow, err := s.queueCall(t, o, row, operation, func(key string) any {
			call.Metadata = callMetadata(key, id)
			return call
		}, func(n *newEffect) { n.request, n.amountMinor = jsonText(r), call.AmountMinor })
		if err != nil {
			return err
		}
		note := payment.FormatMinor(call.AmountMinor, call.Currency) + ", request " + r.RequestID
		if err := s.actEffect(t, "refund", row, effectRow, p.Key.Object, note); err != nil {
			return err
		}
		effect, err = viewEffect(t, effectRow)
		return err
	})
	return effect, err
}

// refundable picks the payment and the amount of a refund, or says why there is
// none.
func refundable(t *Tx, row int64, id string, r RefundRequest) (payment.Payment, RefundCall, error) {
	fail := func(err error) (payment.Payment, RefundCall, error) { return payment.Payment{}, RefundCall{}, err }
	o, err := loadOrder(t, row)
	if err != nil {
		return fail(err)
	}
	g := newGraph(t)
	if err := g.growOrder(row, o.reg.Tenant, o.reg.ID); err != nil {
		return fail(err)
	}
	groups, err := g.groups()
	if err != nil {
		return fail(err)
	}
	queued, err := queuedRefunds(t, row)
	if err != nil {
		return fail(err)
	}
	left := func(p payment.Payment) int64 {
		n := p.ReceivedMinor - p.RefundedMinor - p.RefundPendingMinor - p.ChargedBackMinor
		for _, q := range queued {
			if slices.Contains(p.Objects, q.object) {
				n -= q.amount
			}
		}
		return max(n, 0)
	}
	var fits, holding []payment.Payment
	for _, p := range o.derive(groups).Payments {
		switch {
		case r.Payment != "" && slices.Contains(p.Objects, r.Payment):
			fits = append(fits, p)
		case r.Payment == "" && p.Accepted:
			fits = append(fits, p)
		}
	}
	for _, p := range fits {
		if left(p) > 0 {
			holding = append(holding, p)
		}
	}
	switch {
	case r.Payment != "" && len(fits) == 0:
		return fail(problem(CodeNotFound, "%s is not a payment of order %s: `orders show %s` lists them", r.Payment, id, id))
	case len(holding) == 0:
		return fail(problem(CodeNotRefundable, "nothing of order %s is refundable: it has received %s, and what was refunded, is under way, queued or charged back leaves nothing",
			id, payment.FormatMinor(o.received, o.reg.Currency)))
	case len(holding) > 1:
		var names []string
		for _, p := range holding {
			names = append(names, p.Key.Object+" ("+payment.FormatMinor(left(p), p.Currency)+")")
		}
		return fail(problem(CodeAmbiguous, "several payments of order %s hold money: name one as payment: %s", id, strings.Join(slices.Sorted(slices.Values(names)), ", ")))
	}
	p := holding[0]
	call := RefundCall{AmountMinor: left(p), Currency: p.Currency, Reason: r.Reason}
	if r.AmountMinor != nil {
		call.AmountMinor = *r.AmountMinor
	}
	if err := payment.ValidateAmount(call.AmountMinor, p.Currency); err != nil {
		return fail(&Problem{Code: CodeInvalid, Message: "invalid refund: amount_minor: " + err.Error(), Fields: []FieldProblem{{"amount_minor", err.Error()}}})
	}
	if call.AmountMinor > left(p) {
		return fail(problem(CodeNotRefundable, "at most %s of payment %s is refundable", payment.FormatMinor(left(p), p.Currency), p.Key.Object))
	}
	for _, gr := range groups {
		for _, f := range gr.facts {
			switch {
			case !slices.Contains(p.Objects, f.ID):
			case f.Kind == payment.KindPaymentIntent:
				call.PaymentIntent = f.ID
			case f.PaymentIntent() != "":
				call.PaymentIntent = f.PaymentIntent()
			case f.Kind == payment.KindCharge && call.Charge == "":
				call.Charge = f.ID
			}
		}
	}
	if call.PaymentIntent != "" {
		call.Charge = ""
	}
	if call.PaymentIntent == "" && call.Charge == "" {
		return fail(problem(CodeNotRefundable, "neither the payment intent nor the charge of %s is known yet: wait for its event", p.Key.Object))
	}
	return p, call, nil
}

// queuedRefund is a refund that was asked for and that no fact tells of yet.
type queuedRefund struct {
	object string // the payment intent or charge
	amount int64
}

// queuedRefunds are the refunds of an order on their way: also those that
// Stripe has confirmed, until an event tells of them. One whose event came
// before its answer counts as what the event says.
func queuedRefunds(q querier, order int64) ([]queuedRefund, error) {
	rows, err := q.query(`
		SELECT e.amount_minor, e.body FROM effects e
		WHERE e.order_id = ? AND e.kind = 'stripe' AND e.operation LIKE ? || ':%' AND e.status NOT IN ('failed', 'canceled')
			AND NOT EXISTS (SELECT 1 FROM facts f WHERE f.operation = e.key)`, order, OperationRefund)
	return collect(rows, err, func(r *sql.Rows, v *queuedRefund) error {
		var body []byte
		if err := r.Scan(&v.amount, &body); err != nil {
			return err
		}
		var call RefundCall
		if err := json.Unmarshal(body, &call); err != nil {
			return fmt.Errorf("body of a refund: %w", err)
		}
		v.object = call.PaymentIntent
		if v.object == "" {
			v.object = call.Charge
		}
		return nil
	})
}
