package store

import (
	"context"
	"fmt"
)

// RequestCancel closes an unpaid order for the shop. Where something at Stripe
// could still be paid and there is a key, Stripe is asked first: the result is
// then an effect, and the order closes when it is done. A paid order is
// CodeOrderPaid. An order that is closed stays closed.
func (s *Store) RequestCancel(ctx context.Context, tenant, id string) (Order, *Effect, error) {
	var order Order
	var effect *Effect
	err := s.onOrder(ctx, "cancel", tenant, id, func(t *Tx, o Order, row int64) error {
		order = o
		view := func(id int64) error {
			e, err := viewEffect(t, id)
			effect = &e
			return err
		}
		loaded, err := loadOrder(t, row)
		if err != nil {
			return err
		}
		if loaded.reg.ClosedAt != 0 {
			return nil
		}
		if o.ReceivedMinor != 0 || o.PaidAt != 0 {
			return problem(CodeOrderPaid, "order %s is %s: a paid order is not closed but refunded", id, o.Status)
		}
		if id, err := underWay(t, row, OperationCancelOrder); err != nil || id != 0 {
			if err != nil {
				return err
			}
			return view(id)
		}
		sessions, err := openSessions(t, row)
		if err != nil {
			return err
		}
		call := CancelCall{Account: orderAccount(o.Tenant)}
		if call.PaymentIntents, err = openIntents(t, row); err != nil {
			return err
		}
		opening, err := underWay(t, row, OperationOpenCheckout)
		if err != nil {
			return err
		}
		hasKey, err := s.hasStripeKey(t)
		if err != nil {
			return err
		}
		if !hasKey || len(sessions)+len(call.PaymentIntents) == 0 && opening == 0 {
			if err := closeOrder(t, row); err != nil {
				return err
			}
			if err := s.act(t, "cancel", row, 0, "", ""); err != nil {
				return err
			}
			if _, err := s.rederive(t, cause{}, nil, []int64{row}); err != nil {
				return err
			}
			order, err = viewOrder(t, row)
			return err
		}
		n, err := nextNumber(t, row, OperationCancelOrder)
		if err != nil {
			return err
		}
		queued, err := s.queueCall(t, o, row, fmt.Sprintf("%s:%d", OperationCancelOrder, n), func(string) any { return call }, nil)
		if err != nil {
			return err
		}
		if err := s.actEffect(t, "cancel", row, queued, "", "Stripe is asked first"); err != nil {
			return err
		}
		return view(queued)
	})
	return order, effect, err
}

// closeOrder notes that the shop has closed an order. The caller derives it
// again.
func closeOrder(t *Tx, row int64) error {
	_, err := t.exec(`UPDATE orders SET closed_at = coalesce(closed_at, ?), version = version + 1, updated_at = ? WHERE id = ?`, t.now, t.now, row)
	if err != nil {
		return fmt.Errorf("close an order: %w", err)
	}
	return nil
}

// openIntents are the payment intents of an order that may still bring money:
// those that facts tell of, and those that the shop registered.
func openIntents(q querier, order int64) ([]string, error) {
	rows, err := q.query(`SELECT `+factColumns+` FROM facts WHERE order_id = ? AND kind = 'payment_intent' ORDER BY id`, order)
	facts, err := collect(rows, err, scanFact)
	if err != nil {
		return nil, fmt.Errorf("payment intents of an order: %w", err)
	}
	known := map[string]bool{}
	var open []string
	for _, f := range facts {
		known[f.fact.ID] = true
		if !f.fact.Sticky.Canceled && !f.fact.Sticky.Succeeded {
			open = append(open, f.fact.ID)
		}
	}
	registered, err := refsOf(q, order, "pi_")
	if err != nil {
		return nil, err
	}
	for _, id := range registered {
		if !known[id] {
			open = append(open, id)
		}
	}
	return open, nil
}

// onOrder runs a person's request about an order in one write.
func (s *Store) onOrder(ctx context.Context, what, tenant, id string, fn func(t *Tx, o Order, row int64) error) error {
	if tenant == "" {
		tenant = mainTenant
	}
	return s.w.write(ctx, what+" order "+id, func(t *Tx) error {
		row, err := findOrderRow(t, tenant, id)
		if err != nil {
			return err
		}
		if row == 0 {
			return noOrder(tenant, id)
		}
		o, err := viewOrder(t, row)
		if err != nil {
			return err
		}
		return fn(t, o, row)
	})
}

// canceledRefusals are the refusals by which nothing failed: the buyer was
// faster. The request is canceled, and the order tells the rest.
var canceledRefusals = map[string]string{
	string(CodeOrderPaid):       "the order was paid meanwhile",
	string(CodePaymentUnderWay): "a payment is under way",
}
